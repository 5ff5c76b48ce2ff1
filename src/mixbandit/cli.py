"""The command line."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

import mixbandit
from mixbandit import plots
from mixbandit.environments import NOISES
from mixbandit.experiments import coverage as coverage_experiment
from mixbandit.experiments import delays as delays_experiment
from mixbandit.experiments import fig1
from mixbandit.experiments import regret as regret_experiment
from mixbandit.experiments.coverage import DESIGNS, SEQUENCES, Coverage, CoverageSettings
from mixbandit.experiments.delays import FEEDBACKS, Delays, DelaySettings
from mixbandit.experiments.regret import ALGORITHMS, Regret, RegretSettings
from mixbandit.runner import run

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
    out: Annotated[Path, typer.Option(help="Folder for the pictures.")] = Path("out/demo"),
    seed: Annotated[int, typer.Option(min=0, help="Another function and other data.")] = 0,
) -> None:
    """Redraw Figure 1 of the paper, error bars for the same data, and let bandits act on such error bars."""
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
    _demo_bandits(out, seed)


def _demo_bandits(out: Path, seed: int) -> None:
    """Three bandits on one problem, and what the best of them can promise."""
    settings = RegretSettings(rounds=200, seed=seed)
    environment = regret_experiment.problem(settings, 0)
    fig, (ax,) = plots.figure(width=5.0)
    console.print(f"\nThree bandits look for the best action of a box, {settings.rounds} noisy rewards each:")
    for i, name in enumerate(("OFUL", "AMM-UCB", "CMM-UCB")):
        policy = regret_experiment.player(dataclasses.replace(settings, algorithm=name), environment, 0)
        records = run(policy, environment, settings.rounds)
        plots.curve(ax, records.column("round") + 1.0, records.cumulative_regret, label=name, position=2 - i)
        console.print(f"  {name} lost {records.cumulative_regret[-1]:.1f} against always playing the best.")
    ax.set(xlabel="round", ylabel="cumulative regret", ylim=(0.0, None))
    ax.legend()
    path = out / "regret.png"
    plots.save(fig, path)
    console.print(f"\nWhat CMM-UCB can say, without knowing that the optimum is {environment.best(0):.4g}:")
    console.print(str(policy.certificate()), highlight=False)
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
    results: list[Coverage] = _measured(coverage_experiment.measure, cells, [c.label for c in cells], runs, out, jobs)
    console.print(_coverage_table(results))
    path = out / "coverage.png"
    plots.save(coverage_experiment.draw(results), path)
    coverage_experiment.write_summary(out / "summary.csv", results)
    console.print(f"Picture: {path}; numbers: {out / 'summary.csv'}", highlight=False)
    if any(not r.holds for r in results if r.guarantee == "anytime"):
        raise typer.Exit(1)


@app.command()
def regret(
    algorithm: Annotated[list[str], typer.Option(help=f"One or more of {', '.join(ALGORITHMS)}; or all.")] = [
        "CMM-UCB",
        "AMM-UCB",
        "OFUL",
    ],
    dim: Annotated[int, typer.Option("--dim", "-d", min=1, help="Number of random Fourier features.")] = 20,
    dim_in: Annotated[int, typer.Option(min=1, help="Dimension of the box.")] = 2,
    rounds: Annotated[int, typer.Option("--rounds", "-T", min=1, help="Length T of a run.")] = 500,
    delta: Annotated[float, typer.Option(help="Promised rate of wrong statements.")] = 0.01,
    sigma: Annotated[float, typer.Option(help="Noise level.")] = 0.1,
    reps: Annotated[int, typer.Option("--reps", "-n", min=1, help="Problems, the same for every algorithm.")] = 20,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Processes.")] = 1,
    out: Annotated[Path, typer.Option(help="Folder for results and picture; a stopped run goes on there.")] = Path(
        "out/regret"
    ),
) -> None:
    """Compare bandit algorithms on synthetic problems, and count broken promises.

    Exits with 1 if regret bounds or certificates are wrong in more runs than δ can explain.
    """
    cells = [
        RegretSettings(name, dim_in=dim_in, dim=dim, rounds=rounds, sigma=sigma, delta=delta, seed=seed)
        for name in _expand(algorithm, tuple(ALGORITHMS))
    ]
    results: list[Regret] = _measured(regret_experiment.measure, cells, [c.algorithm for c in cells], reps, out, jobs)
    console.print(_regret_table(results))
    for before, after in itertools.pairwise(results):
        console.print(_compared(before, after), highlight=False)
    path = out / "regret.png"
    plots.save(regret_experiment.draw(results), path)
    regret_experiment.write_summary(out / "summary.csv", results)
    console.print(f"Picture: {path}; numbers: {out / 'summary.csv'}", highlight=False)
    if not all(r.promises_kept for r in results):
        raise typer.Exit(1)


@app.command()
def delays(
    runs: Annotated[int, typer.Option("--runs", "-n", min=1, help="Independent runs per row.")] = 200,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Processes.")] = 1,
    out: Annotated[Path, typer.Option(help="Folder for results; a stopped run goes on there.")] = Path("out/delays"),
) -> None:
    """Measure how often bounds ever miss the truth when rewards come late or never, against their promise δ.

    Exits with 1 if they do so more often than δ can explain where theory promises that they do not.
    """
    cells = [DelaySettings(feedback, strict, seed=seed) for feedback in FEEDBACKS for strict in (False, True)]
    results: list[Delays] = _measured(delays_experiment.measure, cells, [c.label for c in cells], runs, out, jobs)
    table = Table(title=f"Runs in which the set ever missed the truth, at δ = {cells[0].delta:g}", box=box.SIMPLE)
    for column in ("rewards arrive, and count", "missed", "promised"):
        table.add_column(column, justify="left" if "," in column else "right", no_wrap=True)
    for r in results:
        promised = f"≤ {r.settings.delta:g}" if r.settings.valid else "nothing"
        broken = " BROKEN" if r.settings.valid and not r.holds else ""
        table.add_row(r.settings.label, f"{r.misses}/{runs}{broken}", promised)
    console.print(table)
    if any(r.settings.valid and not r.holds for r in results):
        raise typer.Exit(1)


def _measured(
    measure: Callable[..., Any], cells: Sequence[Any], labels: Sequence[str], runs: int, out: Path, jobs: int
) -> list[Any]:
    """Measure all cells with a bar; Ctrl-C says how to go on."""
    results: list[Any] = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as bar:
        total = bar.add_task("all runs", total=len(cells) * runs)

        def show(done: int) -> None:
            bar.update(total, completed=len(results) * runs + done)

        try:
            for cell, label in zip(cells, labels, strict=True):
                bar.update(total, description=label)
                results.append(measure(cell, runs, folder=out, jobs=jobs, progress=show))
        except KeyboardInterrupt:
            bar.stop()
            console.print(f"Stopped. The same command goes on from what is in {out}.", highlight=False)
            raise typer.Exit(130) from None
    return results


def _regret_table(results: list[Regret]) -> Table:
    settings, n = results[0].settings, len(results[0].final)
    table = Table(title=f"Means over {n} problems of {settings.rounds} rounds, δ = {settings.delta:g}", box=box.SIMPLE)
    table.padding = (0, 1, 0, 0)
    names = ("algorithm", "regret", "bounds:\nhindsight", "\nwidths", "closed\nform", "gap", "wrong*", "ms per\nround")
    for name in names:
        table.add_column(name, justify="left" if name == "algorithm" else "right", no_wrap=True)
    for r in results:
        spread = f" ± {r.final.std(ddof=1) / math.sqrt(n):.1f}" if n > 1 else ""
        wrong = " ".join(str(int(misses.sum())) for misses in (r.regret_missed, r.certificate_missed, r.refuted))
        table.add_row(
            r.settings.algorithm,
            f"{r.final.mean():.1f}{spread}",
            *(f"{values.mean():.0f}" for values in (r.hindsight, r.widths, r.analytic)),
            f"{r.gap.mean():.3f}",
            wrong if r.promises_kept else f"{wrong} BROKEN",
            f"{r.milliseconds.mean():.1f}",
        )
    table.caption = "* runs with a regret bound or a certificate that was ever wrong, or true assumptions refuted"
    return table


def _compared(one: Regret, other: Regret) -> str:
    """Two algorithms on the same problems: the mean difference, with its standard error."""
    difference = other.final - one.final
    names = f"{other.settings.algorithm} − {one.settings.algorithm}"
    share = f"{one.settings.algorithm} lost less in {int((difference > 0).sum())} of {len(difference)} problems"
    if len(difference) < 2:
        return f"{names}: {difference.mean():.2f}; {share}."
    error = difference.std(ddof=1) / math.sqrt(len(difference))
    return f"{names}: {difference.mean():.2f} ± {error:.2f} on average; {share}."


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
