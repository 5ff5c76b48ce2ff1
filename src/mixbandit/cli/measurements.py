"""`mixbandit coverage`, `mixbandit regret` and `mixbandit delays`: how often guarantees fail."""

from __future__ import annotations

import itertools
import math
import shlex
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.table import Table

from mixbandit import plots
from mixbandit.cli.shared import console, expand, measured
from mixbandit.paper import coverage as coverage_experiment
from mixbandit.paper import delays as delays_experiment
from mixbandit.paper import regret as regret_experiment
from mixbandit.paper.coverage import ARRIVALS, DESIGNS, SEQUENCES, Coverage, CoverageSettings
from mixbandit.paper.delays import FEEDBACKS, Delays, DelaySettings
from mixbandit.paper.parallel import Workers
from mixbandit.paper.regret import ALGORITHMS, Regret, RegretSettings
from mixbandit.simulate.environments import NOISES


def coverage(
    sequence: Annotated[list[str], typer.Option(help=f"One or more of {', '.join(SEQUENCES)}; or all.")] = ["standard"],
    noise: Annotated[list[str], typer.Option(help=f"One or more of {', '.join(NOISES)}; or all.")] = ["gaussian"],
    design: Annotated[list[str], typer.Option(help=f"One or more of {', '.join(DESIGNS)}; or all.")] = ["iid"],
    feedback: Annotated[
        list[str],
        typer.Option(help=f"How rewards arrive: one or more of {', '.join(ARRIVALS)}; or all."),
    ] = ["at once"],
    late: Annotated[int, typer.Option(help="How many rounds a late reward takes.")] = 20,
    dim: Annotated[int, typer.Option("--dim", "-d", help="Dimension of actions or contexts.")] = 5,
    rounds: Annotated[int, typer.Option("--rounds", "-T", help="Length T of a run.")] = 200,
    delta: Annotated[float, typer.Option(help="Promised miss rate.")] = 0.05,
    sigma: Annotated[float, typer.Option(help="Noise level.")] = 0.5,
    runs: Annotated[int, typer.Option("--runs", "-n", help="Independent runs per cell.")] = 1000,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Processes.")] = 1,
    out: Annotated[Path, typer.Option(help="Folder for results and picture; a stopped run resumes there.")] = Path(
        "out/coverage"
    ),
) -> None:
    """Measure how often a sequence ever misses the truth in T rounds, against its promise δ.

    Exits with 1 if a sequence with an anytime guarantee misses more often than δ can explain, unless rewards arrive
    "by value", where nothing is promised.
    """
    crossed = [(s, n) for s in expand(sequence, tuple(SEQUENCES)) for n in expand(noise, NOISES)]
    left_out = [pair for pair in crossed if not coverage_experiment.assumes_this_noise(*pair)]
    if "all" in (*sequence, *noise):  # otherwise they were asked for by name, and the settings refuse them
        crossed = [pair for pair in crossed if pair not in left_out]
    cells = [
        CoverageSettings(s, n, d, dim, rounds, delta, sigma, seed, f, late)
        for s, n in crossed
        for d in expand(design, DESIGNS)
        for f in expand(feedback, tuple(ARRIVALS))
    ]
    for name, law in left_out:
        console.print(f"Left out: {name} with {law} noise, which it does not assume.", highlight=False)
    results: list[Coverage] = measured(
        coverage_experiment.measure, cells, [c.label for c in cells], runs, out, Workers(jobs)
    )
    console.print(_coverage_table(results))
    path = out / "coverage.png"
    plots.save(coverage_experiment.draw(results), path)
    chosen = {"--sequence": sequence, "--noise": noise, "--design": design, "--feedback": feedback}
    command = _coverage_command(chosen, results[0])
    coverage_experiment.write_summary(out / "summary.csv", results, command=command)
    coverage_experiment.write_by_sequence(out / "by_sequence.csv", results, command=command)
    console.print(f"Picture: {path}; numbers: {out / 'summary.csv'}, {out / 'by_sequence.csv'}", highlight=False)
    if any(not r.holds for r in results if r.promised):
        raise typer.Exit(1)


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
    out: Annotated[Path, typer.Option(help="Folder for results and picture; a stopped run resumes there.")] = Path(
        "out/regret"
    ),
) -> None:
    """Compare bandit algorithms on synthetic problems, and count broken promises.

    Exits with 1 if regret bounds or certificates are wrong in more runs than δ can explain.
    """
    cells = [
        RegretSettings(name, dim_in=dim_in, dim=dim, rounds=rounds, sigma=sigma, delta=delta, seed=seed)
        for name in expand(algorithm, tuple(ALGORITHMS))
    ]
    results: list[Regret] = measured(
        regret_experiment.measure, cells, [c.algorithm for c in cells], reps, out, Workers(jobs)
    )
    console.print(_regret_table(results))
    for before, after in itertools.pairwise(results):
        console.print(_compared(before, after), highlight=False)
    path = out / "regret.png"
    plots.save(regret_experiment.draw(results), path)
    regret_experiment.write_summary(out / "summary.csv", results)
    console.print(f"Picture: {path}; numbers: {out / 'summary.csv'}", highlight=False)
    if not all(r.promises_kept for r in results):
        raise typer.Exit(1)


def delays(
    runs: Annotated[int, typer.Option("--runs", "-n", min=1, help="Independent runs per row.")] = 200,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Processes.")] = 1,
    out: Annotated[Path, typer.Option(help="Folder for results; a stopped run resumes there.")] = Path("out/delays"),
) -> None:
    """Measure how often bounds ever miss the truth when rewards come late or never, against their promise δ.

    Exits with 1 if they miss more often than δ can explain in a case where theory guarantees them.
    """
    cells = [DelaySettings(feedback, strict, seed=seed) for feedback in FEEDBACKS for strict in (False, True)]
    results: list[Delays] = measured(
        delays_experiment.measure, cells, [c.label for c in cells], runs, out, Workers(jobs)
    )
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


def _regret_table(results: list[Regret]) -> Table:
    settings, n = results[0].settings, len(results[0].final)
    table = Table(title=f"Means over {n} problems of {settings.rounds} rounds, δ = {settings.delta:g}", box=box.SIMPLE)
    table.padding = (0, 1, 0, 0)
    names = ("algorithm", "regret", "bounds:\nhindsight", "\nwidths", "gap", "wrong*", "ms per\nround")
    for name in names:
        table.add_column(name, justify="left" if name == "algorithm" else "right", no_wrap=True)
    for r in results:
        spread = f" ± {r.final.std(ddof=1) / math.sqrt(n):.1f}" if n > 1 else ""
        wrong = " ".join(str(int(misses.sum())) for misses in (r.regret_missed, r.certificate_missed, r.refuted))
        table.add_row(
            r.settings.algorithm,
            f"{r.final.mean():.1f}{spread}",
            *(f"{values.mean():.0f}" for values in (r.hindsight, r.widths)),
            f"{r.gap.mean():.3f}",
            wrong if r.promises_kept else f"{wrong} BROKEN",
            f"{r.milliseconds.mean():.1f}",
        )
    table.caption = "* runs in which a regret bound or a certificate was ever wrong, or true assumptions were refuted"
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


def _coverage_command(chosen: dict[str, list[str]], result: Coverage) -> str:
    """What to type for these numbers; jobs and folder do not affect them and are left out."""
    words = ["mixbandit", "coverage"]
    words += [word for option, names in chosen.items() for name in names for word in (option, name)]
    settings = result.settings
    words += ["--late", str(settings.late), "-d", str(settings.dim), "-T", str(settings.rounds), "-n", str(result.runs)]
    words += ["--delta", f"{settings.delta:g}", "--sigma", f"{settings.sigma:g}", "--seed", str(settings.seed)]
    return shlex.join(words)


def _coverage_table(results: list[Coverage]) -> Table:
    delta = results[0].settings.delta
    table = Table(title=f"Runs in which the set ever missed the truth, against δ = {delta:g}", box=box.SIMPLE)
    table.add_column(
        "sequence / noise / design / feedback"
    )  # wraps where a terminal is narrow: numbers must not be cut
    for column in ("missed", "rate, 95 %", "verdict"):
        table.add_column(column, justify="right", no_wrap=True)
    for r in results:
        low, high = r.interval
        # A Bayesian interval promises nothing for one θ*: more misses than δ do not break it.
        verdict = "holds" if r.holds else "BROKEN" if r.promised else "misses"
        table.add_row(r.settings.label, f"{r.misses}/{r.runs}", f"{low:.3f}–{high:.3f}", verdict)
    return table
