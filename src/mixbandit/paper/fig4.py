"""Figure 4 of the paper: bounds of CMM-UCB and Bayesian intervals under three priors, one of them wrong.

Functions are drawn as in Figure 1. A prior N(θ₀, Σ₀) of the Bayesian interval is the mixture N(Φθ₀, ΦΣ₀Φᵀ) of CMM-UCB:
uninformative N(0, I), informative N(θ*, 0.1 I), misspecified N(−θ*, 0.1 I). The paper shows one function; here we
also count, over many, how often an interval misses the function anywhere on a grid. A prior matters if data are few,
and the paper states neither their number nor the length-scale: several are tried.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mixbandit import plots
from mixbandit._checks import Array
from mixbandit.mixtures import Linear
from mixbandit.paper.functions import FunctionSettings, NoisyFunction
from mixbandit.paper.parallel import ALONE, Workers, gather, numbers
from mixbandit.paper.published import Claim
from mixbandit.sequences import BayesCredible, MartingaleMixture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METHODS = ("CMM-UCB", "Bayes")
# θ₀ as a multiple of θ*, and Σ₀ as one of I.
PRIORS = {"uninformative": (0.0, 1.0), "informative": (1.0, 0.1), "misspecified": (-1.0, 0.1)}
POINTS = (5, 10, 20, 30)
LENGTHSCALES = (0.05, 0.15)
# A ratio of widths up to which one is called slightly larger.
SLIGHTLY = 1.25
_GRID = 201


@dataclass(frozen=True)
class Fig4Settings(FunctionSettings):
    """What the figure depends on; the defaults are drawn."""

    points: int = 10
    lengthscale: float = 0.05

    @property
    def label(self) -> str:
        return f"{self.points} rewards, length-scale {self.lengthscale:g}"


COLUMNS = ("missed", "widths")


@dataclass(frozen=True)
class Fig4:
    """The figure as numbers: by prior and method, a row per function."""

    settings: Fig4Settings
    missed: Array  # (repetitions, priors, methods), 1 where the function leaves the interval somewhere
    widths: Array  # (repetitions, priors, methods), means over the grid

    def misses(self, prior: str, method: str) -> int:
        return int(self.missed[:, list(PRIORS).index(prior), METHODS.index(method)].sum())

    def width(self, prior: str, method: str) -> float:
        return float(self.widths[:, list(PRIORS).index(prior), METHODS.index(method)].mean())


def bands(settings: Fig4Settings, function: NoisyFunction, prior: str, x: Array) -> list[tuple[Array, Array]]:
    """Lower and upper bounds per method."""
    multiple, scale = PRIORS[prior]
    mixture = Linear(multiple * function.theta, scale * np.eye(settings.dim))
    sequences = (
        kind(function.features, **settings.known, mixture=mixture) for kind in (MartingaleMixture, BayesCredible)
    )
    return [(sequence.lower(x), sequence.upper(x)) for sequence in map(function.seen_by, sequences)]


def simulate(settings: Fig4Settings, repetition: int) -> tuple[str, str]:
    """One function, all priors and methods."""
    function = settings.function(repetition)
    x = np.linspace(0.0, 1.0, _GRID)[:, None]
    truth = function(x)
    missed, widths = [], []
    for prior in PRIORS:
        for lower, upper in bands(settings, function, prior, x):
            missed.append(int(((truth < lower) | (truth > upper)).any()))
            widths.append(float(np.mean(upper - lower)))
    return " ".join(map(str, missed)), " ".join(f"{w:.6g}" for w in widths)


def measure(
    settings: Fig4Settings,
    repetitions: int,
    *,
    folder: Path | None = None,
    workers: Workers = ALONE,
    progress: Callable[[int], None] = lambda done: None,
) -> Fig4:
    """Repeat for many functions, resuming from those in `folder`."""
    how: dict[str, Any] = {"folder": folder, "workers": workers, "progress": progress}
    rows = gather("fig4", simulate, settings, COLUMNS, repetitions, **how)
    shape = (repetitions, len(PRIORS), len(METHODS))
    return Fig4(settings, *(numbers(rows, name).reshape(shape) for name in COLUMNS))


def _shown(results: Sequence[Fig4]) -> Fig4:
    return next(r for r in results if r.settings == Fig4Settings(seed=r.settings.seed))


def claims(results: Sequence[Fig4]) -> list[Claim]:
    """What the paper sees in one function, counted over many; the drawn setting decides, the others are mentioned."""
    result = _shown(results)
    n = len(result.missed)
    found = []
    for prior in ("uninformative", "informative"):
        ratios = [r.width(prior, "CMM-UCB") / r.width(prior, "Bayes") for r in results]
        ratio = result.width(prior, "CMM-UCB") / result.width(prior, "Bayes")
        found.append(
            Claim(
                "Figure 4",
                f"With a well-specified, {prior} prior CMM-UCB's bounds are slightly (up to {SLIGHTLY:g} times) looser "
                "than Bayesian intervals.",
                f"{ratio:.2f} times as wide; {min(ratios):.2f} to {max(ratios):.2f} times in all settings tried",
                1.0 <= ratio <= SLIGHTLY,
            )
        )
    bayes, cmm = ([r.misses("misspecified", method) for r in results] for method in ("Bayes", "CMM-UCB"))
    missed = result.misses("misspecified", "Bayes")
    looser, before = result.width("misspecified", "CMM-UCB"), result.width("uninformative", "CMM-UCB")
    found += [
        Claim(
            "Figure 4",
            "With the misspecified prior the Bayesian interval does not contain the function (for most functions).",
            f"missed {missed} of {n} functions after {result.settings.label}; {min(bayes)} to {max(bayes)} of {n} in "
            "all settings tried, fewer where data are dense",
            missed > n / 2,
        ),
        Claim(
            "Figure 4",
            "With the misspecified prior CMM-UCB's bounds contain the function, and get looser.",
            f"missed at most {max(cmm)} of {n} in all settings tried; {looser / before:.2f} times as wide as with the "
            "uninformative prior",
            max(cmm) == 0 and looser > before,
        ),
    ]
    return found


def table(results: Sequence[Fig4]) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """A row per setting, prior and method."""
    rows = [
        (
            r.settings.lengthscale,
            r.settings.points,
            prior,
            method,
            len(r.missed),
            r.misses(prior, method),
            f"{r.width(prior, method):.5g}",
        )
        for r in results
        for prior in PRIORS
        for method in METHODS
    ]
    return ("length-scale", "rewards", "prior", "method", "functions", "missed", "mean width"), rows


def draw(results: Sequence[Fig4]) -> Figure:
    """The paper's panels, priors from top to bottom, CMM-UCB on the left and Bayes on the right.

    The function is the first that the Bayesian interval misses under the misspecified prior, if there is one.
    """
    result = _shown(results)
    missed = result.missed[:, list(PRIORS).index("misspecified"), METHODS.index("Bayes")]
    function = result.settings.function(int(np.argmax(missed)))
    x = np.linspace(0.0, 1.0, 301)[:, None]
    truth = function(x)
    fig, axes = plots.figure(columns=2, rows=len(PRIORS), width=5.0, height=2.4, sharex=True, sharey=True)
    data = (function.actions[:, 0], function.rewards)
    for i, prior in enumerate(PRIORS):
        for k, (lower, upper) in enumerate(bands(result.settings, function, prior, x)):
            ax, method = axes[2 * i + k], METHODS[k]
            plots.bounds(ax, x[:, 0], lower, upper, truth=truth, data=data, colour=plots.COLOURS[k], label=method)
            outside = np.where((truth < lower) | (truth > upper), truth, np.nan)
            ax.plot(x[:, 0], outside, color="red", linewidth=2.5, label="outside")
            count = result.misses(prior, method)
            ax.set_title(f"{method}, {prior}: missed {count} of {len(missed)} functions", fontsize="medium")
    low, high = truth.min(), truth.max()
    axes[0].set(xlim=(0.0, 1.0), ylim=(low - 0.6 * (high - low), high + 0.6 * (high - low)))
    for ax in axes[-2:]:
        ax.set_xlabel("x")
        ax.legend(loc="lower left", fontsize="small", ncols=4)
    return fig
