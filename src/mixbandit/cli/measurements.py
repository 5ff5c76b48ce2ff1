"""`mixbandit coverage`, `regret`, `delays` and `kernels`: how often guarantees fail, and what methods gain by them."""

from __future__ import annotations

import itertools
import math
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.table import Table

from mixbandit import plots
from mixbandit.cli.shared import console, expand, measured
from mixbandit.paper import coverage as coverage_experiment
from mixbandit.paper import delays as delays_experiment
from mixbandit.paper import kernels as kernels_experiment
from mixbandit.paper import regret as regret_experiment
from mixbandit.paper.coverage import ARRIVALS, DESIGNS, MEANS, SEQUENCES, Coverage, CoverageSettings
from mixbandit.paper.delays import FEEDBACKS, Delays, DelaySettings
from mixbandit.paper.kernels import KERNELS, METHODS, KernelComparison, KernelSettings
from mixbandit.paper.parallel import Workers
from mixbandit.paper.regret import ALGORITHMS, Regret, RegretSettings
from mixbandit.paper.store import write_table
from mixbandit.simulate.environments import NOISES, RANGED


def coverage(
    sequence: Annotated[list[str], typer.Option(help=f"One or more of {', '.join(SEQUENCES)}; or all.")] = ["standard"],
    noise: Annotated[list[str], typer.Option(help=f"One or more of {', '.join(NOISES)}; or all.")] = ["gaussian"],
    design: Annotated[list[str], typer.Option(help=f"One or more of {', '.join(DESIGNS)}; or all.")] = ["iid"],
    feedback: Annotated[
        list[str],
        typer.Option(help=f"How rewards arrive: one or more of {', '.join(ARRIVALS)}; or all."),
    ] = ["at once"],
    means: Annotated[
        list[str],
        typer.Option(help=f"Where in the range expected rewards lie: one or more of {', '.join(MEANS)}; or all."),
    ] = ["anywhere"],
    late: Annotated[int, typer.Option(help="Delay of a late reward, in rounds.")] = 20,
    dim: Annotated[int, typer.Option("--dim", "-d", help="Dimension of actions or contexts.")] = 5,
    rounds: Annotated[int, typer.Option("--rounds", "-T", help="Length T of a run.")] = 200,
    delta: Annotated[float, typer.Option(help="Promised miss rate.")] = 0.05,
    sigma: Annotated[
        list[float],
        typer.Option(help="One or more noise levels; rewards in a range are means of 1/4σ² results."),
    ] = [0.5],
    runs: Annotated[int, typer.Option("--runs", "-n", help="Independent runs per cell.")] = 1000,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Processes.")] = 1,
    out: Annotated[Path, typer.Option(help="Folder for results and picture; a stopped run resumes from it.")] = Path(
        "out/coverage"
    ),
) -> None:
    """Measure how often a sequence ever misses the truth in T rounds, against its promise δ.

    Exits with 1 if a sequence with an anytime guarantee misses more often than δ can explain, except where rewards
    arrive "by value" and nothing is promised.
    """
    names, laws, designs = expand(sequence, tuple(SEQUENCES)), expand(noise, NOISES), expand(design, DESIGNS)
    wanted = list(itertools.product(names, laws, designs, expand(means, MEANS)))
    left_out: list[str] = []
    if "all" in (*sequence, *noise, *design, *means):  # otherwise asked for by name, and the settings refuse them
        left_out = list(dict.fromkeys(reason for cell in wanted if (reason := _unassumed(*cell))))
        wanted = [cell for cell in wanted if not _unassumed(*cell)]
    cells = [
        CoverageSettings(s, n, d, dim, rounds, delta, level, seed, f, late, place)
        for s, n, d, place in wanted
        for f in expand(feedback, tuple(ARRIVALS))
        for level in sigma
    ]
    for reason in left_out:
        console.print(f"Left out: {reason}.", highlight=False)
    if not cells:
        raise typer.BadParameter("there is nothing left to measure")
    results: list[Coverage] = measured(
        coverage_experiment.measure, cells, [c.label for c in cells], runs, out, Workers(jobs)
    )
    console.print(_coverage_table(results))
    path = out / "coverage.png"
    plots.save(coverage_experiment.draw(results), path)
    chosen = {"--sequence": sequence, "--noise": noise, "--design": design, "--feedback": feedback, "--means": means}
    command = _coverage_command({**chosen, "--sigma": [f"{level:g}" for level in sigma]}, results[0])
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
    out: Annotated[Path, typer.Option(help="Folder for results and picture; a stopped run resumes from it.")] = Path(
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
    out: Annotated[Path, typer.Option(help="Folder for results; a stopped run resumes from it.")] = Path("out/delays"),
) -> None:
    """Measure how often bounds ever miss the truth when rewards come late or never, against their promise δ.

    Exits with 1 if they miss more often than δ can explain where theory guarantees them.
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


def kernels(
    kernel: Annotated[list[str], typer.Option(help=f"One or more of {', '.join(KERNELS)}; or all.")] = ["all"],
    dim_in: Annotated[int, typer.Option(min=1, help="Dimension of the cube of actions.")] = 2,
    arms: Annotated[int, typer.Option(min=1, help="Number of random arms.")] = 500,
    lengthscale: Annotated[float, typer.Option(help="Length-scale of the kernels.")] = 0.2,
    norm_bound: Annotated[float, typer.Option(help="Norm of the functions, known to the methods.")] = 10.0,
    rounds: Annotated[int, typer.Option("--rounds", "-T", min=1, help="Length T of a run.")] = 250,
    delta: Annotated[float, typer.Option(help="Promised rate of wrong bounds.")] = 0.01,
    sigma: Annotated[float, typer.Option(help="Noise level.")] = 0.1,
    scale: Annotated[float, typer.Option(help="c of the mixtures N(0, cK): the multiplier α₀ is σ²/c.")] = 1.0,
    reps: Annotated[int, typer.Option("--reps", "-n", min=1, help="Functions per kernel.")] = 20,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Processes.")] = 1,
    out: Annotated[Path, typer.Option(help="Folder for results and picture; a stopped run resumes from it.")] = Path(
        "out/kernels"
    ),
) -> None:
    """Compare widths and regret of CMM, DMM, AMM, AY-GP-UCB and IGP-UCB on random functions of a kernel.

    Exits with 1 if bounds are wrong at any time in more runs than δ can explain.
    """
    cells = [
        KernelSettings(
            name,
            lengthscale=lengthscale,
            dim_in=dim_in,
            arms=arms,
            rounds=rounds,
            sigma=sigma,
            norm_bound=norm_bound,
            scale=scale,
            delta=delta,
            seed=seed,
        )
        for name in expand(kernel, tuple(KERNELS))
    ]
    results: list[KernelComparison] = measured(
        kernels_experiment.measure, cells, [c.kernel for c in cells], reps, out, Workers(jobs)
    )
    columns, rows = kernels_experiment.table(results)
    console.print(_kernels_table(rows, f"After {rounds} rounds, means over {reps} functions ± standard errors"))
    path = out / "kernels.png"
    plots.save(kernels_experiment.draw(results), path)
    command = _kernels_command(results)
    write_table(out / "summary.csv", columns, rows, command=command)
    write_table(out / "curves.csv", *kernels_experiment.curves_table(results), command=command)
    console.print(f"Picture: {path}; numbers: {out / 'summary.csv'}, {out / 'curves.csv'}", highlight=False)
    broken = [(r.settings.kernel, name) for r in results for i, name in enumerate(METHODS) if not r.holds(i)]
    for name, method in broken:
        console.print(
            f"BROKEN: the bounds of {method} with {name} are wrong more often than δ = {delta:g} can explain."
        )
    if broken:
        raise typer.Exit(1)


def _kernels_table(rows: Sequence[Sequence[str]], title: str) -> Table:
    """A section per kernel."""
    table = Table(title=title, box=box.SIMPLE)
    table.padding = (0, 1, 0, 0)
    for name in ("", "regret", "width,\nown data", "width,\nsame data", "runs with a\nwrong bound", "ms per\nround"):
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    for kernel, method, *numbers in rows:
        if method == METHODS[0]:
            table.add_row(f"[bold]{kernel}[/bold]")
        table.add_row(f"  {method}", *numbers, end_section=method == METHODS[-1])
    return table


def _kernels_command(results: Sequence[KernelComparison]) -> str:
    """What to type for these numbers; jobs and folder do not affect them and are left out."""
    settings, names = results[0].settings, [r.settings.kernel for r in results]
    words = ["mixbandit", "kernels"]
    if len(names) < len(KERNELS):
        words += [word for name in names for word in ("--kernel", name)]
    words += ["--dim-in", str(settings.dim_in), "--arms", str(settings.arms)]
    words += ["--lengthscale", f"{settings.lengthscale:g}", "--norm-bound", f"{settings.norm_bound:g}"]
    words += ["-T", str(settings.rounds), "-n", str(len(results[0].missed)), "--delta", f"{settings.delta:g}"]
    words += ["--sigma", f"{settings.sigma:g}", "--scale", f"{settings.scale:g}", "--seed", str(settings.seed)]
    return shlex.join(words)


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
    table.caption = (
        "* runs in which a regret bound or a certificate was wrong at any time, or true assumptions were refuted"
    )
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
    words += ["--delta", f"{settings.delta:g}", "--seed", str(settings.seed)]
    return shlex.join(words)


def _unassumed(sequence: str, noise: str, design: str, means: str) -> str:
    """Why a cell is left out; empty if it is not."""
    if not coverage_experiment.assumes_this_noise(sequence, noise):
        return f"{sequence} with {noise} noise, which it does not assume"
    if not coverage_experiment.assumes_this_design(sequence, design):
        return f"{sequence} with the design {design!r}: it is for one mean"
    if means != MEANS[0] and noise not in RANGED:
        return f"{noise} noise with means {means}, which needs a range"
    return ""


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
