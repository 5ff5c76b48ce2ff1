"""`mixbandit paper`: every figure and table of the paper, redrawn and compared."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.progress import Progress, TaskID
from rich.table import Table

from mixbandit.cli.shared import console, expand, progress_bar
from mixbandit.experiments import table1
from mixbandit.experiments.paper import PARTS, Part, Plan, claims_table
from mixbandit.experiments.parallel import BACKENDS, Workers, cluster
from mixbandit.experiments.published import TABLE1, Claim
from mixbandit.experiments.store import write_table
from mixbandit.experiments.svm import SvmTuning


def paper(
    what: Annotated[list[str], typer.Argument(help=f"One or more of {', '.join(sorted(PARTS))}; or all.")],
    reps: Annotated[
        int | None, typer.Option("--reps", "-n", min=1, help="Repetitions; without it as many as in the paper.")
    ] = None,
    rounds: Annotated[int, typer.Option("--rounds", "-T", min=1, help="Rounds of the bandits.")] = 500,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Processes.")] = 1,
    backend: Annotated[str, typer.Option(help=f"Who runs them: {', '.join(BACKENDS)}.")] = "loky",
    out: Annotated[Path, typer.Option(help="Folder for results and pictures; a stopped run goes on there.")] = Path(
        "out/paper"
    ),
) -> None:
    """Redraw the figures and tables of the paper, and say which of its claims hold here.

    Any number of jobs, any backend and any interruption give the same numbers.
    """
    wanted = expand(what, tuple(PARTS))
    workers = Workers(jobs, *expand([backend], BACKENDS, everything=False))
    parts: list[Part] = []
    with cluster(workers):
        for name in (name for name in PARTS if name in wanted):
            with progress_bar(out) as bar:
                shown = functools.partial(_show, bar, bar.add_task(name, total=None))
                plan = Plan(out, reps, rounds, seed, workers, shown)
                part = PARTS[name](plan)
            parts.append(part)
            # Neither who worked nor where matters to the numbers: the command that is kept leaves them out.
            count = plan.repetitions(name)
            command = f"mixbandit paper {name} --reps {count} --rounds {rounds} --seed {seed}"
            _report(part, part.write(out, command=command))
    columns, rows = claims_table(parts)
    write_table(out / "claims.csv", columns, rows, command=f"mixbandit paper {' '.join(what)}")
    kept = sum(claim.holds for part in parts for claim in part.claims)
    console.print(f"\n{kept} of {len(rows)} claims hold here: {out / 'claims.csv'} lists them.", highlight=False)
    if rounds < 500 or (reps is not None and reps < 100):
        console.print("The paper's bandits play 500 rounds, 100 times: with less this is a look, not a check.")


def _show(bar: Progress, task: TaskID, label: str, done: int, total: int) -> None:
    bar.update(task, description=label, completed=done, total=total)


def _report(part: Part, paths: Sequence[Path]) -> None:
    console.print(f"\n[bold]{part.title}[/bold]")
    if part.name == "table1":
        console.print(_accuracies(part.results))
    console.print(_claims(part.claims))
    console.print(f"Written: {', '.join(map(str, paths))}", highlight=False)


def _claims(claims: Sequence[Claim]) -> Table:
    table = Table(box=box.SIMPLE, show_edge=False)
    for column in ("claim", "seen here", "holds"):
        table.add_column(column)
    for claim in claims:
        table.add_row(claim.text, claim.seen, "yes" if claim.holds else "[bold]no[/bold]")
    return table


def _accuracies(results: Sequence[SvmTuning]) -> Table:
    """In the paper's form: an algorithm a row, the best in bold, the published number in brackets."""
    cells = {(c.algorithm, c.dataset, c.measure): c for c in table1.cells(results)}
    table = Table(box=box.SIMPLE, caption="mean over repetitions, ± standard deviation, (published)")
    table.padding = (0, 1, 0, 0)
    table.add_column("", no_wrap=True)
    for dataset in TABLE1:
        for measure in ("mean", "max"):
            table.add_column(f"{dataset.capitalize()}\n{measure} acc", justify="right", no_wrap=True)
    for algorithm in TABLE1["raisin"]:
        row = []
        for dataset in TABLE1:
            for measure in table1.MEASURES:
                cell = cells[algorithm, dataset, measure]
                ours = f"[bold]{cell.ours:.3f}[/bold]" if cell.rank == 1 else f"{cell.ours:.3f}"
                row.append(f"{ours}\n±{cell.deviation:.3f}\n({cell.paper:.3f})")
        table.add_row(algorithm, *row)
    return table
