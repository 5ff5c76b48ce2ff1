"""Figure 6 of the paper: AMM-UCB on Raisin with the standard and with the adaptive mixture; radius and accuracy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mixbandit import plots
from mixbandit._checks import Array
from mixbandit.paper.fig3 import smoothed
from mixbandit.paper.published import Claim
from mixbandit.paper.svm import SvmTuning, radius_rounds

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def radii(result: SvmTuning) -> tuple[NDArray[np.int64], Array]:
    """Rounds at which the radius was kept, and the radii (repetitions, rounds)."""
    assert result.radius is not None
    return np.array(radius_rounds(result.settings.rounds)), result.radius


def claims(results: Sequence[SvmTuning]) -> list[Claim]:
    """Over the second half of the rounds a logarithm still grows, a constant does not."""
    standard, adaptive = results
    grown = []
    for result in results:
        _, radius = radii(result)
        mean = radius.mean(axis=0)
        grown.append(float(mean[-1] - mean[len(mean) // 2 - 1]) if len(mean) > 1 else 0.0)
    difference = adaptive.mean - standard.mean
    n = len(difference)
    error = float(difference.std(ddof=1)) / math.sqrt(n) if n > 1 else math.inf
    return [
        Claim(
            "Figure 6",
            "The radius of AMM-UCB grows with the standard mixture; with the adaptive one it seems to be bounded "
            "(over the second half of the rounds it grows less than a tenth as much).",
            f"over the second half of the rounds {grown[0]:+.4f} (standard), {grown[1]:+.4f} (adaptive)",
            grown[0] > 0.0 and grown[1] < 0.1 * grown[0],
        ),
        Claim(
            "Figure 6",
            "The adaptive mixture reaches a slightly higher test accuracy (by more than two standard errors).",
            f"{adaptive.mean.mean():.4f} against {standard.mean.mean():.4f}: {difference.mean():+.4f} ± {error:.4f}; "
            f"assumptions refuted in {int(adaptive.refuted.sum())} of {n} runs against {int(standard.refuted.sum())}",
            bool(difference.mean() > 2.0 * error),
        ),
    ]


def table(results: Sequence[SvmTuning]) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """A row per round at which the radius was kept."""
    t, _ = radii(results[0])
    columns = ["round"]
    series = []
    for result in results:
        columns += [f"{result.settings.mixture} {what}" for what in ("radius", "radius deviation", "accuracy")]
        _, radius = radii(result)
        accuracy = result.accuracy.mean(axis=0)[t - 1]
        series += [radius.mean(axis=0), radius.std(axis=0), accuracy]
    return tuple(columns), [(int(t[i]), *(f"{s[i]:.5f}" for s in series)) for i in range(len(t))]


def draw(results: Sequence[SvmTuning]) -> Figure:
    """The paper's panels: radius, mean ± one standard deviation; accuracy, smoothed."""
    fig, (left, right) = plots.figure(columns=2, width=4.6, height=3.2)
    for k, result in enumerate(results):
        t, radius = radii(result)
        mean, deviation = radius.mean(axis=0), radius.std(axis=0)
        name = result.settings.mixture
        plots.curve(
            left, t.astype(np.float64), mean, label=name, position=k, low=mean - deviation, high=mean + deviation
        )
        accuracy = smoothed(result.accuracy.mean(axis=0))
        plots.curve(right, np.arange(1.0, len(accuracy) + 1.0), accuracy, label=name, position=k)
    left.set(xlabel="round", ylabel="radius of AMM-UCB")
    right.set(xlabel="round", ylabel="test accuracy, smoothed")
    left.legend()
    right.legend(loc="lower right")
    return fig
