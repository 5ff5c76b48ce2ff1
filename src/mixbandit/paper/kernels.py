"""How tight are bounds for functions of a kernel, and how much do bandits lose that act on them?

A repetition draws arms uniformly in a cube and f* = Σ c_i k(z_i, ·) of norm exactly B, z_i uniform and c_i normal. Five
methods play it, each acting on its own upper bounds, all with the same noise in the same rounds and told the true σ and
B. The mixture is N(0, cK), so that α₀ = σ²/c:

- CMM-UCB: exact bounds; DMM-UCB: the best of closed forms at four multiples of α₀; AMM-UCB: the one at α₀;
- AY-GP-UCB (Abbasi-Yadkori 2012), at the same α₀; IGP-UCB (Chowdhury & Gopalan 2017), η = 2/T.

Now and then all bounds are compared with the truth at all arms, and their widths averaged: on the data that a method
played itself, and, for all methods, on those that CMM-UCB played.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mixbandit import plots
from mixbandit._checks import Array, one_of, positive, positive_int, probability
from mixbandit.actions import Arms
from mixbandit.bandits import UCB
from mixbandit.kernels import RBF, Kernel, Matern
from mixbandit.mixtures import Scaled
from mixbandit.paper.parallel import ALONE, Workers, gather, numbers
from mixbandit.paper.store import SIGNIFICANCE, binomial_pvalue
from mixbandit.sequences import ConfidenceSequence, IGPSequence, KernelMixture, OFULSequence

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KERNELS: dict[str, Callable[[float], Kernel]] = {
    "RBF": RBF,
    "Matérn 5/2": lambda lengthscale: Matern(2.5, lengthscale),
    "Matérn 3/2": lambda lengthscale: Matern(1.5, lengthscale),
}
METHODS = ("CMM-UCB", "DMM-UCB", "AMM-UCB", "AY-GP-UCB", "IGP-UCB")
# DMM's multipliers, as multiples of α₀.
MULTIPLES = (1.0, 4.0, 16.0, 64.0)
# Times at which bounds are compared with the truth.
LOOKS = 25
_ROUNDING = 1e-9


@dataclass(frozen=True)
class KernelSettings:
    """Functions of one kernel."""

    kernel: str = "RBF"
    lengthscale: float = 0.2
    dim_in: int = 2
    arms: int = 500
    centres: int = 20
    rounds: int = 250
    sigma: float = 0.1
    norm_bound: float = 10.0
    scale: float = 1.0  # c
    delta: float = 0.01
    seed: int = 0

    def __post_init__(self) -> None:
        one_of(self.kernel, tuple(KERNELS), "kernel")
        positive_int(self.rounds, "rounds")
        positive(self.scale, "scale")
        probability(self.delta, "delta")

    @property
    def looks(self) -> list[int]:
        """Rounds after which to compare: about evenly spaced, the last one included."""
        return sorted({math.ceil(self.rounds * k / LOOKS) for k in range(1, LOOKS + 1)})


class Problem(NamedTuple):
    """Arms (n, k), their expected rewards (n,), the noise of every round (T,)."""

    kernel: Kernel
    arms: Array
    expected: Array
    noise: Array


class Method(NamedTuple):
    """A sequence, and the multipliers of its closed form; None for its exact bounds."""

    sequence: ConfidenceSequence
    alpha: float | list[float] | None

    def bounds(self, arms: Array) -> tuple[Array, Array]:
        return self.sequence.lower(arms, self.alpha), self.sequence.upper(arms, self.alpha)


def problem(settings: KernelSettings, repetition: int) -> Problem:
    """The same for every method."""
    rng = np.random.default_rng([settings.seed, repetition])
    kernel = KERNELS[settings.kernel](settings.lengthscale)
    arms = rng.uniform(size=(settings.arms, settings.dim_in))
    centres, weights = rng.uniform(size=(settings.centres, settings.dim_in)), rng.normal(size=settings.centres)
    weights *= settings.norm_bound / math.sqrt(weights @ kernel(centres, centres) @ weights)
    return Problem(kernel, arms, kernel(arms, centres) @ weights, settings.sigma * rng.normal(size=settings.rounds))


def methods(settings: KernelSettings, kernel: Kernel) -> Iterator[Method]:
    """In the order of METHODS, without data and told what is true; empty sets, which are counted, stop nothing."""
    alpha = settings.sigma**2 / settings.scale
    stated: dict[str, Any] = {"sigma": settings.sigma, "norm_bound": settings.norm_bound, "delta": settings.delta}
    for multipliers in (None, [multiple * alpha for multiple in MULTIPLES], alpha):
        mixture = KernelMixture(kernel, **stated, mixture=Scaled(settings.scale), on_empty="inflate")
        yield Method(mixture, multipliers)
    yield Method(OFULSequence(kernel, **stated, alpha=alpha, on_empty="inflate"), None)
    yield Method(IGPSequence(kernel, **stated, horizon=settings.rounds, on_empty="inflate"), None)


class _Played(NamedTuple):
    """One method on one problem: per look the cumulative regret, the mean width and whether a bound was wrong."""

    regret: list[float]
    widths: list[float]
    missed: bool
    milliseconds: float
    choices: list[int]


def _play(settings: KernelSettings, found: Problem, method: Method) -> _Played:
    policy = UCB(method.sequence, Arms(found.arms), method.alpha, rng=0, track_regret=False)
    policy.sequence.silent = True
    looks, best = set(settings.looks), float(found.expected.max())
    regret, widths, curve, choices = 0.0, [], [], []
    missed, seconds = False, 0.0
    for t in range(settings.rounds):
        started = time.perf_counter()
        choice = policy.ask()
        assert choice.index is not None
        policy.tell(choice, float(found.expected[choice.index] + found.noise[t]))
        seconds += time.perf_counter() - started
        choices.append(choice.index)
        regret += best - float(found.expected[choice.index])
        if t + 1 in looks:
            lower, upper = method.bounds(found.arms)
            wrong = (found.expected < lower - _ROUNDING) | (found.expected > upper + _ROUNDING)
            missed |= bool(wrong.any()) or method.sequence.is_empty
            curve.append(regret)
            widths.append(float(np.mean(upper - lower)))
    return _Played(curve, widths, missed, 1e3 * seconds / settings.rounds, choices)


def _on_the_same_data(settings: KernelSettings, found: Problem, choices: Sequence[int]) -> list[list[float]]:
    """Mean widths per method and look on data that one of them chose."""
    rewards = found.expected[choices] + found.noise
    rows = found.arms[choices]
    widths: list[list[float]] = []
    for method in methods(settings, found.kernel):
        method.sequence.silent = True
        widths.append([])
        for before, look in zip([0, *settings.looks], settings.looks, strict=False):
            method.sequence.update(rows[before:look], rewards[before:look])
            lower, upper = method.bounds(found.arms)
            widths[-1].append(float(np.mean(upper - lower)))
    return widths


COLUMNS = ("regret", "own_widths", "same_widths", "missed", "milliseconds")


def simulate(settings: KernelSettings, repetition: int) -> tuple[str, ...]:
    """All methods on one function; numbers by method, then by look."""
    found = problem(settings, repetition)
    played = [_play(settings, found, method) for method in methods(settings, found.kernel)]
    same = _on_the_same_data(settings, found, played[0].choices)
    return (
        _text([x for each in played for x in each.regret]),
        _text([x for each in played for x in each.widths]),
        _text([x for widths in same for x in widths]),
        _text([float(each.missed) for each in played]),
        " ".join(f"{each.milliseconds:.4g}" for each in played),
    )


def _text(values: Sequence[float]) -> str:
    return " ".join(f"{value:.8g}" for value in values)


@dataclass(frozen=True)
class KernelComparison:
    """Results for one kernel."""

    settings: KernelSettings
    regret: Array  # (repetitions, methods, looks), cumulative
    own_widths: Array  # the same, mean widths over the arms on own data
    same_widths: Array  # and on those of CMM-UCB
    missed: Array  # (repetitions, methods), 1 where a bound was ever wrong
    milliseconds: Array  # (repetitions, methods), per round

    def holds(self, method: int) -> bool:
        """Whether this many misses are compatible with a rate of at most δ, by a binomial test."""
        misses = int(self.missed[:, method].sum())
        return binomial_pvalue(misses, len(self.missed), self.settings.delta) >= SIGNIFICANCE


def measure(
    settings: KernelSettings,
    repetitions: int,
    *,
    folder: Path | None = None,
    workers: Workers = ALONE,
    progress: Callable[[int], None] = lambda done: None,
) -> KernelComparison:
    """All methods on `repetitions` functions, resuming from those in `folder`."""
    how: dict[str, Any] = {"folder": folder, "workers": workers, "progress": progress}
    rows = gather("kernels", simulate, settings, COLUMNS, repetitions, **how)
    by_look = repetitions, len(METHODS), len(settings.looks)
    curves = {name: numbers(rows, name).reshape(by_look) for name in ("regret", "own_widths", "same_widths")}
    return KernelComparison(
        settings, **curves, missed=numbers(rows, "missed"), milliseconds=numbers(rows, "milliseconds")
    )


Table = tuple[tuple[str, ...], list[tuple[Any, ...]]]


def mean_and_error(values: Array) -> tuple[Array, Array]:
    """Over the first axis; without a second repetition the error is unknown, NaN."""
    n = len(values)
    error = values.std(axis=0, ddof=1) / math.sqrt(n) if n > 1 else np.full(values.shape[1:], np.nan)
    return np.asarray(values.mean(axis=0)), np.asarray(error)


def _shown(values: Array, digits: int) -> str:
    mean, error = mean_and_error(values)
    return f"{mean:.{digits}f}" + ("" if np.isnan(error) else f" ± {error:.{digits}f}")


def table(results: Sequence[KernelComparison]) -> Table:
    """A row per kernel and method, at the end: means ± standard errors."""
    columns = ("kernel", "method", "regret", "width, own data", "width, same data", "runs with a wrong bound",
               "ms per round")  # fmt: skip
    rows: list[tuple[Any, ...]] = []
    for r in results:
        for i, method in enumerate(METHODS):
            wrong = f"{int(r.missed[:, i].sum())} of {len(r.missed)}"
            ends = [_shown(curves[:, i, -1], digits) for curves, digits in
                    ((r.regret, 0), (r.own_widths, 2), (r.same_widths, 2))]  # fmt: skip
            rows.append((r.settings.kernel, method, *ends, wrong, f"{r.milliseconds[:, i].mean():.1f}"))
    return columns, rows


def curves_table(results: Sequence[KernelComparison]) -> Table:
    """A row per kernel, method and look."""
    names = ("regret", "own_widths", "same_widths")
    columns = ("kernel", "method", "round", *(column for name in names for column in (name, f"{name}_error")))
    rows: list[tuple[Any, ...]] = []
    for r in results:
        found = [mean_and_error(getattr(r, name)) for name in names]
        for i, method in enumerate(METHODS):
            for j, look in enumerate(r.settings.looks):
                numbers_ = [f"{part[i, j]:.6g}" for pair in found for part in pair]
                rows.append((r.settings.kernel, method, look, *numbers_))
    return columns, rows


def draw(results: Sequence[KernelComparison]) -> Figure:
    """A column per kernel: regret above, widths on the same data below; bands are two standard errors."""
    n = len(results)
    fig, axes = plots.figure(columns=n, rows=2, width=3.6, height=2.9, sharey="row", sharex=True)
    for column, r in enumerate(results):
        above, below = axes[column], axes[n + column]
        looks = np.array(r.settings.looks, dtype=np.float64)
        regret = np.concatenate((np.zeros((*r.regret.shape[:2], 1)), r.regret), axis=2)
        for ax, t, curves in ((above, np.append(0.0, looks), regret), (below, looks, r.same_widths)):
            mean, error = mean_and_error(curves)
            error = np.nan_to_num(2.0 * error)
            for i, method in enumerate(METHODS):
                low, high = mean[i] - error[i], mean[i] + error[i]
                plots.curve(ax, t, mean[i], label=method, position=i, low=low, high=high)
        # Kernels of variance 1: |f(x)| ≤ B.
        below.axhline(2.0 * r.settings.norm_bound, color="black", linewidth=0.8)
        above.set(title=r.settings.kernel, xlim=(0.0, r.settings.rounds))
        below.set_xlabel("round")
    trivial = 2.0 * results[0].settings.norm_bound
    axes[n].annotate(
        "known without data: 2B", (0.98, trivial), xycoords=("axes fraction", "data"), ha="right", va="bottom"
    )
    # Shared, and so only now: the panels have all their curves.
    axes[0].set(ylabel="cumulative regret", ylim=(0.0, None))
    axes[n].set(ylabel="mean width, data of CMM-UCB", ylim=(0.0, None))
    handles, labels = axes[0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside upper center", ncols=len(METHODS), frameon=False)
    return fig
