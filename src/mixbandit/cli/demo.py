"""`mixbandit demo`: what the best value of a tuning run claims, what is certain instead, and the paper's bandits."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich import box
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from mixbandit import plots
from mixbandit._extras import import_extra
from mixbandit.bench.timing import one_thread
from mixbandit.cli.shared import console
from mixbandit.paper import regret
from mixbandit.paper.datasets import load_dataset
from mixbandit.reporting import report
from mixbandit.simulate.runner import run
from mixbandit.tuning import Float, Space, StudyCertificate, Trial, Tuner

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TRIALS, CONFIRMATIONS, ROWS = 60, 20, 100
ROUNDS = 150
ALGORITHMS = ("OFUL", "AMM-UCB", "CMM-UCB")
DEFAULT = {"C": 1.0, "gamma": 1.0 / 7.0}  # scikit-learn's, for seven standardised columns
SPACE = Space({"C": Float(1e-2, 1e3, log=True), "gamma": Float(1e-4, 1e1, log=True)})
_EVERY = 5  # trials between two certificates of the picture
_TRAINING_STEPS = 20_000  # of the support vector machine; corners of the space would take much longer


@dataclass(frozen=True)
class TuningRun:
    """A tuning run, and the truth about it, which the tuner never sees."""

    values: list[float]  # of all trials, confirmations last
    floors: dict[int, float]  # what was guaranteed, by the number of trials until then
    claimed: float  # the best value of the search
    true_of_claimed: float  # the expected value of the configuration that had it
    true_of_leaders: list[float]  # the same for the best value so far, trial by trial of the search
    before: StudyCertificate
    after: StudyCertificate  # with confirmations
    true_of_recommended: float
    rows: int  # on which the truth is known


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the picture and the report.")] = Path("out/demo"),
    seed: Annotated[int, typer.Option(min=0, help="The first seed.")] = 0,
    seeds: Annotated[int, typer.Option(min=2, max=100, help="How many seeds.")] = 5,
) -> None:
    """Tune a classifier, compare its best value with the truth, certify it; then play the paper's bandits."""
    for module, extra in (("sklearn.svm", "sklearn"), ("matplotlib.figure", "plots")):
        import_extra(module, extra=extra)
    with one_thread():  # more of them only get in each other's way on matrices of this size
        _show(out, range(seed, seed + seeds))


def _show(out: Path, numbers: range) -> None:
    seed, seeds = numbers[0], len(numbers)
    with _progress(f"tuning a support vector machine, {seeds} seeds", seeds) as advance:
        runs = {number: advance(tuned(number)) for number in numbers}
    _tell_tuning(runs)
    with _progress(f"playing {len(ALGORITHMS)} bandits, {seeds} problems", seeds * len(ALGORITHMS)) as advance:
        losses = {
            name: np.stack([advance(_cumulative_regret(name, number)) for number in numbers]) for name in ALGORITHMS
        }
    _tell_bandits(losses)
    figure, (left, right) = plots.figure(2, width=5.2, height=3.9)
    _draw_tuning(left, runs[seed])
    _draw_bandits(right, losses)
    picture, page = out / "demo.png", out / "report.html"
    plots.save(figure, picture)
    report(runs[seed].after, page, default=DEFAULT, title=f"Support vector machine on Raisin, seed {seed}")
    console.print(f"\nPicture: {picture}\nReport:  {page} (open it in a browser)", highlight=False)


@contextmanager
def _progress(doing: str, total: int) -> Iterator[Callable[[Any], Any]]:
    """A bar on a terminal, a line elsewhere. Pass it each result as it comes."""
    if not console.is_terminal:
        console.print(f"{doing[0].upper()}{doing[1:]} …", highlight=False)
    done = 0
    columns = (TextColumn("{task.description}"), BarColumn(20), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(doing, total=total)

        def advance(result: Any) -> Any:
            nonlocal done
            done += 1
            bar.advance(task)
            if not console.is_terminal:
                console.print(f"  {done} of {total} done", highlight=False)
            return result

        yield advance


def tuned(seed: int) -> TuningRun:
    """Tune a support vector machine on half of the Raisin data, and confirm what looks best.

    A value is the accuracy on ROWS rows of the other half, drawn with replacement and anew for every trial. That half
    is the pool, which is what the certificate is about: the truth is the accuracy on all of it.
    """
    svm = import_extra("sklearn.svm", extra="sklearn").SVC
    data, rng = load_dataset("raisin"), np.random.default_rng(seed)
    order, half = rng.permutation(len(data.y)), len(data.y) // 2
    X, y = data.X[order], data.y[order]
    X = (X - X[:half].mean(axis=0)) / X[:half].std(axis=0)

    @cache
    def hits(C: float, gamma: float) -> Any:
        model = svm(C=C, gamma=gamma, max_iter=_TRAINING_STEPS, tol=1e-2).fit(X[:half], y[:half])
        return model.predict(X[half:]) == y[half:]

    def accuracy(parameters: dict[str, float]) -> float:
        return float(rng.choice(hits(**parameters), ROWS).mean())

    tuner, floors = Tuner(SPACE, reward_range=(0, 1), samples=ROWS, pool=len(y) - half, rng=seed), {}

    def play(trials: Iterable[Trial]) -> None:
        for trial in trials:
            tuner.tell(trial, accuracy(dict(trial.parameters)))
            if tuner.told % _EVERY == 0:
                floors[tuner.told] = tuner.certificate().lower

    play(tuner.ask() for _ in range(TRIALS))
    before, searched = tuner.certificate(), tuner.history
    leaders = [max(searched[: i + 1], key=lambda told: told.value) for i in range(TRIALS)]
    play(tuner.confirm(CONFIRMATIONS))
    after = tuner.certificate()
    floors[tuner.told] = after.lower
    true = [float(hits(**leader.parameters).mean()) for leader in leaders]
    recommended = float(hits(**after.parameters).mean())
    values = [told.value for told in tuner.history]
    return TuningRun(values, floors, leaders[-1].value, true[-1], true, before, after, recommended, rows=len(y) - half)


def _tell_tuning(runs: dict[int, TuningRun]) -> None:
    first = next(iter(runs.values()))
    excess = np.array([run.claimed - run.true_of_claimed for run in runs.values()])
    _say(f"""
[bold]1. What is the best value of a tuning run worth?[/bold]

A support vector machine on the Raisin data: C and gamma, {TRIALS} trials, each on {ROWS} rows drawn anew.
The best trial has an accuracy of {first.claimed:.3f}. Its true accuracy, on all {first.rows} rows set aside, is \
{first.true_of_claimed:.3f}. The difference is luck.

[bold]What is certain instead[/bold] (mixbandit sees the {TRIALS} values, not the truth):
{first.before}

[bold]After {len(first.values) - TRIALS} more trials of the finalists[/bold], which `confirm` chose:
{first.after}
The true accuracy of that one is {first.true_of_recommended:.3f}.
""")
    table = Table(box=box.SIMPLE, title=f"The same with {len(runs)} seeds", title_justify="left")
    for column in ("seed", "best trial claims", "in truth", "guaranteed", "in truth "):
        table.add_column(column, justify="right")
    for number, each in runs.items():
        table.add_row(str(number), f"{each.claimed:.3f}", f"{each.true_of_claimed:.3f}", f"{each.after.lower:.3f}",
                      f"{each.true_of_recommended:.3f}")  # fmt: skip
    console.print(table)
    wrong = sum(each.after.lower > each.true_of_recommended for each in runs.values())
    _say(f"On average the best trial claims {_mean(excess)} more than the truth. Guarantees above the truth: {wrong}.")


def _cumulative_regret(algorithm: str, seed: int) -> Any:
    """What an algorithm has lost by each round, against always playing the best action."""
    settings = regret.RegretSettings(rounds=ROUNDS, seed=seed, algorithm=algorithm)
    environment = regret.problem(settings, 0)
    return run(regret.player(settings, environment, 0), environment, ROUNDS, progress=False).cumulative_regret


def _tell_bandits(losses: dict[str, Any]) -> None:
    baseline, count = losses[ALGORITHMS[0]][:, -1], len(losses[ALGORITHMS[0]])
    _say(f"""
[bold]2. Bandits that act on error bars[/bold]

Each looks for the best point of a square in {ROUNDS} noisy rewards; {count} random problems, the same for all.
""")
    table = Table(box=box.SIMPLE)
    for column in ("algorithm", "lost in total", f"less than {ALGORITHMS[0]} by", "problems"):
        table.add_column(column, justify="left" if column == "algorithm" else "right")
    for name in ALGORITHMS:
        final = losses[name][:, -1]
        less = 100.0 * (1.0 - final / baseline)
        compared = (
            ("", "")
            if name == ALGORITHMS[0]
            else (
                f"{_mean(less, 0)} %",
                f"{less.min():.0f} to {less.max():.0f} %",
            )
        )
        table.add_row(name, _mean(final, 1), *compared)
    console.print(table)
    _say("OFUL is the standard algorithm; AMM-UCB and CMM-UCB are the paper's, with closed-form and exact bounds.")


def _mean(values: Any, digits: int = 3) -> str:
    """A mean ± its standard error."""
    return f"{values.mean():.{digits}f} ± {values.std(ddof=1) / math.sqrt(len(values)):.{digits}f}"


def _say(text: str) -> None:
    console.print(text, highlight=False, soft_wrap=True)


def _draw_tuning(ax: Axes, run: TuningRun) -> None:
    values = np.array(run.values)
    trials = np.arange(1, len(values) + 1)
    orange, blue = plots.COLOURS[1], plots.COLOURS[0]
    ax.axvspan(TRIALS + 0.5, len(values) + 0.5, color="0.93", lw=0)
    ax.plot(trials, values, ".", color="0.6", markersize=5, label="values of trials")
    ax.plot(trials[:TRIALS], np.maximum.accumulate(values[:TRIALS]), color=orange, lw=1.8, label="best value so far")
    ax.plot(trials[:TRIALS], run.true_of_leaders, color=orange, lw=1.4, ls="--", label="true accuracy of that trial")
    ax.plot(list(run.floors), list(run.floors.values()), color=blue, lw=1.8, label="guaranteed by mixbandit")
    low = max(float(values.min()), min(run.true_of_claimed, run.after.lower) - 0.35)
    ax.set(xlabel="trial (grey: confirmations)", ylabel="accuracy", ylim=(low, 1.0), xlim=(0, len(values) + 1))
    ax.set_title("A tuning run: claimed, true, guaranteed", fontsize=11, fontweight="bold")
    ax.legend(fontsize=8, loc="lower right")


def _draw_bandits(ax: Axes, losses: dict[str, Any]) -> None:
    rounds = np.arange(1.0, ROUNDS + 1.0)
    for position, name in reversed(list(enumerate(reversed(losses)))):
        mean = losses[name].mean(axis=0)
        error = losses[name].std(axis=0, ddof=1) / math.sqrt(len(losses[name]))
        plots.curve(ax, rounds, mean, label=name, position=position, low=mean - error, high=mean + error)
    ax.set(xlabel="round", ylabel="lost against the best action", ylim=(0.0, None), xlim=(0, ROUNDS))
    count = len(losses[ALGORITHMS[0]])
    ax.set_title(f"What bandits lose: mean ± error, {count} problems", fontsize=11, fontweight="bold")
    ax.legend(fontsize=8, loc="upper left")
