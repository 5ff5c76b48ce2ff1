"""`mixbandit bench`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from mixbandit import plots
from mixbandit._files import write_atomically
from mixbandit.bench import report
from mixbandit.cli.shared import console


def bench(
    parts: Annotated[
        list[str] | None, typer.Argument(help=f"What to measure: {', '.join(report.PARTS)}; by default all.")
    ] = None,
    quick: Annotated[bool, typer.Option(help="Fewer repeats and smaller sizes: under two minutes.")] = False,
    peers: Annotated[bool, typer.Option(help="Measure other libraries as well, if installed.")] = True,
    out: Annotated[Path, typer.Option(help="Folder for the picture and the numbers.")] = Path("out/bench"),
) -> None:
    """Measure the speed of whole decisions and of bounds against other libraries, in one process on one thread.

    Timings vary between runs: compare only numbers of the same run. Results are medians over interleaved repeats. To
    install the other libraries: pip install 'mixbandit[bench]'.
    """
    chosen = parts or list(report.PARTS)
    unknown = [part for part in chosen if part not in report.PARTS]
    if unknown:
        raise typer.BadParameter(f"unknown: {', '.join(unknown)}; known: {', '.join(report.PARTS)}")
    with console.status("measuring") as status:
        found = report.measure(chosen, quick=quick, peers=peers, say=status.update)
    for name, title, columns in _TABLES:
        if found.get(name):
            _show(found[name], title, columns)
    if "slopes" in found:
        slopes = ", ".join(f"{policy} {value:.2f}" for policy, value in found["slopes"].items())
        console.print(f"Slope of the median round over d, on a log-log scale: {slopes}", highlight=False)
        path = out / "growth.png"
        plots.save(report.draw(found), path)
        console.print(f"Picture: {path}", highlight=False)
    path = out / "bench.json"
    write_atomically(path, json.dumps(found, indent=1, ensure_ascii=False).encode())
    facts = found["facts"]
    console.print(f"{facts['processor']}, Python {facts['python']}, one thread. Numbers: {path}", highlight=False)


_TABLES: tuple[tuple[str, str, dict[str, str]], ...] = (
    (
        "rounds",
        "µs per round: choose, observe, update",
        {
            "d": "d", "arms": "arms", "player": "player", "microseconds": "µs per round",
            "times_floor": "times the bare loop", "first_quarter": "reward, first quarter", "last_quarter": "last",
        },
    ),
    (
        "contexts",
        "µs per decision in context: choose, observe, learn",
        {
            "d": "features", "arms": "arms", "rewards": "rewards", "player": "player", "microseconds": "µs per round",
            "times_floor": "times LinUCB", "first_quarter": "reward, first quarter", "last_quarter": "last",
            "rounds": "rounds",
        },
    ),
    (
        "busy",
        "µs per decision in context, another process on both cores",
        {
            "d": "features", "arms": "arms", "blas_threads": "BLAS threads", "player": "player",
            "microseconds": "µs per round", "times_floor": "times LinUCB", "busy_times_quiet": "times quiet",
        },
    ),
    ("first_decision", "ms of a new process", {"process": "process", "milliseconds": "ms",
                                               "beyond_numpy": "beyond numpy and scipy"}),
    (
        "bounds",
        "µs per action",
        {
            "t": "t", "d": "d", "norm_bound": "norm bound", "method": "method", "microseconds": "µs per action",
            "times_faster_than_cvxpy": "times faster than CVXPY's best",
        },
    ),
    (
        "gradients",
        "ms for value and gradient of 100 actions",
        {
            "t": "t", "d": "d", "milliseconds": "ours", "cvxpylayers": "cvxpylayers", "times_faster": "times faster",
            "largest_difference": "largest difference, in B",
        },
    ),
    ("over_time", "µs per round as time passes", {"policy": "policy", "t": "t", "median_microseconds": "median",
                                                 "mean_microseconds": "mean"}),
    ("over_dimension", "µs per round by dimension", {"policy": "policy", "d": "d", "median_microseconds": "median",
                                                    "mean_microseconds": "mean"}),
    ("memory", "kilobytes held by a policy", {"policy": "policy", "d": "d", "rounds": "rounds",
                                                 "kilobytes": "kilobytes"}),
    (
        "blocks",
        "kilobytes held with a belief per arm",
        {
            "policy": "policy", "d": "features", "arms": "arms", "rounds": "rounds", "kilobytes": "kilobytes",
            "times_bare": "times a matrix per arm", "microseconds": "µs per round",
        },
    ),
)  # fmt: skip


def _show(rows: list[dict[str, Any]], title: str, columns: dict[str, str]) -> None:
    table = Table(title=title)
    for key, heading in columns.items():
        table.add_column(heading, justify="left" if isinstance(rows[0][key], str) else "right")
    for row in rows:
        table.add_row(*(_cell(row[key]) for key in columns))
    console.print(table)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, float):
        return f"{value:,}" if isinstance(value, int) else str(value)
    return f"{value:,.0f}" if abs(value) >= 100.0 else f"{value:.3g}"
