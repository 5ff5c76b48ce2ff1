"""The command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

import mixbandit
from mixbandit import plots
from mixbandit.environments import NOISES
from mixbandit.experiments import coverage as coverage_experiment
from mixbandit.experiments import fig1
from mixbandit.experiments.coverage import DESIGNS, SEQUENCES, Coverage, CoverageSettings

app = typer.Typer(
    help="Sequential decisions with guarantees: error bars that hold at all times at once.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
console = Console()


def _version(asked: bool) -> None:
    if asked:
        console.print(f"mixbandit {mixbandit.__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path("out/demo"),
    seed: Annotated[int, typer.Option(min=0, help="Another function and other data.")] = 0,
) -> None:
    """Redraw Figure 1 of the paper: error bars of CMM-UCB, AMM-UCB and OFUL for the same data."""
    result = fig1.run(fig1.Fig1Settings(seed=seed))
    path = out / "figure1.png"
    plots.save(fig1.draw(result), path)
    widths = result.mean_widths
    table = Table(title="Figure 1: mean width of the error bars")
    table.add_column("method")
    for column in ("mean width", "narrower than OFUL by", "contains the truth"):
        table.add_column(column, justify="right")
    for method, (lower, upper) in result.bands.items():
        inside = bool(((lower <= result.truth) & (result.truth <= upper)).all())
        narrower = 1.0 - widths[method] / widths["OFUL"]
        table.add_row(method, f"{widths[method]:.3f}", f"{narrower:.1%}", "everywhere" if inside else "NO")
    console.print(table)
    console.print(f"Picture: {path}", highlight=False)


@app.command()
def coverage(
    sequence: Annotated[list[str], typer.Option(help=f"One or more of {', '.join(SEQUENCES)}; or all.")] = ["standard"],
    noise: Annotated[list[str], typer.Option(help=f"One or more of {', '.join(NOISES)}; or all.")] = ["gaussian"],
    design: Annotated[list[str], typer.Option(help=f"One or more of {', '.join(DESIGNS)}; or all.")] = ["iid"],
    dim: Annotated[int, typer.Option("--dim", "-d", help="Dimension d.")] = 5,
    rounds: Annotated[int, typer.Option("--rounds", "-T", help="Length T of a run.")] = 200,
    delta: Annotated[float, typer.Option(help="Promised miss rate.")] = 0.05,
    sigma: Annotated[float, typer.Option(help="Noise level.")] = 0.5,
    runs: Annotated[int, typer.Option("--runs", "-n", help="Independent runs per cell.")] = 1000,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Processes.")] = 1,
    out: Annotated[Path, typer.Option(help="Folder for results and picture; a stopped run goes on there.")] = Path(
        "out/coverage"
    ),
) -> None:
    """Measure how often a sequence ever misses the truth in T rounds, against its promise δ.

    Exits with 1 if a sequence with an anytime guarantee misses more often than δ can explain.
    """
    cells = [
        CoverageSettings(s, n, d, dim, rounds, delta, sigma, seed)
        for s in _expand(sequence, tuple(SEQUENCES))
        for n in _expand(noise, NOISES)
        for d in _expand(design, DESIGNS)
    ]
    results: list[Coverage] = []
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
    ) as bar:
        total = bar.add_task("all runs", total=len(cells) * runs)
        try:
            for cell in cells:
                before = len(results) * runs
                bar.update(total, description=cell.label)
                result = coverage_experiment.measure(
                    cell,
                    runs,
                    folder=out,
                    jobs=jobs,
                    progress=lambda done, before=before: bar.update(total, completed=before + done),  # type: ignore[misc]
                )
                results.append(result)
        except KeyboardInterrupt:
            bar.stop()
            console.print(f"Stopped. The same command goes on from what is in {out}.", highlight=False)
            raise typer.Exit(130) from None
    console.print(_coverage_table(results))
    path = out / "coverage.png"
    plots.save(coverage_experiment.draw(results), path)
    coverage_experiment.write_summary(out / "summary.csv", results)
    console.print(f"Picture: {path}; numbers: {out / 'summary.csv'}", highlight=False)
    if any(not r.holds for r in results if r.guarantee == "anytime"):
        raise typer.Exit(1)


def _expand(given: list[str], known: tuple[str, ...]) -> list[str]:
    if "all" in given:
        return list(known)
    for name in given:
        if name not in known:
            raise typer.BadParameter(f"{name!r} is none of {', '.join(known)}, all")
    return given


def _coverage_table(results: list[Coverage]) -> Table:
    delta = results[0].settings.delta
    table = Table(title=f"Runs in which the set ever missed the truth, against δ = {delta:g}", box=box.SIMPLE)
    for column in ("sequence / noise / design", "missed", "rate, 95 %", "verdict"):
        table.add_column(column, justify="left" if "/" in column else "right", no_wrap=True)
    for r in results:
        low, high = r.interval
        # A Bayesian interval promises nothing for one θ*: more misses than δ do not break it.
        verdict = "holds" if r.holds else "BROKEN" if r.guarantee == "anytime" else "misses"
        table.add_row(r.settings.label, f"{r.misses}/{r.runs}", f"{low:.3f}–{high:.3f}", verdict)
    return table
