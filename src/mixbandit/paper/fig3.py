"""Figure 3 of the paper: test accuracy over the rounds of the bandits of Table 1, smoothed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mixbandit import plots
from mixbandit._checks import Array
from mixbandit.paper.published import Claim
from mixbandit.paper.svm import SvmTuning

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Standard deviation of the Gaussian that curves are smoothed with, in rounds; the paper does not say.
SMOOTHING = 5.0


def smoothed(accuracy: Array) -> Array:
    """Smoothed along the last axis; beyond the first and the last round the curve is taken as constant."""
    from scipy.ndimage import gaussian_filter1d

    return np.asarray(gaussian_filter1d(accuracy, SMOOTHING, axis=-1, mode="nearest"))


def claims(results: Sequence[SvmTuning]) -> list[Claim]:
    """The order of the curves over time."""
    found = []
    for dataset, of_dataset in _by_dataset(results).items():
        curve = {r.settings.algorithm: smoothed(r.accuracy.mean(axis=0)) for r in of_dataset}
        others = np.maximum.reduce([c for name, c in curve.items() if name not in ("CMM-UCB", "AMM-UCB")])
        above = np.mean(np.minimum(curve["CMM-UCB"], curve["AMM-UCB"]) > others)
        found.append(
            Claim(
                "Figure 3",
                f"{dataset}: CMM-UCB and AMM-UCB outperform all other methods (in most rounds).",
                f"both are above all others in {above:.0%} of the rounds",
                bool(above > 0.5),
            )
        )
        first, second = (np.mean(curve[a] > curve[b]) for a, b in (("CMM-UCB", "AMM-UCB"), ("AMM-UCB", "OFUL")))
        found.append(
            Claim(
                "Figure 3",
                f"{dataset}: CMM-UCB outperforms AMM-UCB, which outperforms OFUL (in most rounds).",
                f"CMM-UCB is above AMM-UCB in {first:.0%} of the rounds, AMM-UCB above OFUL in {second:.0%}",
                bool(first > 0.5 and second > 0.5),
            )
        )
    return found


def table(results: Sequence[SvmTuning]) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """A row per round: the mean accuracy over repetitions, not smoothed."""
    columns = ("round", *(f"{r.settings.dataset} {r.settings.algorithm}" for r in results))
    curves = [r.accuracy.mean(axis=0) for r in results]
    return columns, [(t + 1, *(f"{curve[t]:.4f}" for curve in curves)) for t in range(len(curves[0]))]


def draw(results: Sequence[SvmTuning]) -> Figure:
    """A panel per data set, as in the paper; bands are two standard errors of the mean."""
    panels = _by_dataset(results)
    fig, axes = plots.figure(columns=len(panels), width=4.2, height=3.2)
    for ax, (dataset, of_dataset) in zip(axes, panels.items(), strict=True):
        for i, r in enumerate(of_dataset):
            n, rounds = r.accuracy.shape
            curves = smoothed(r.accuracy)
            mean = curves.mean(axis=0)
            error = 2.0 * curves.std(axis=0, ddof=1) / math.sqrt(n) if n > 1 else np.zeros(rounds)
            t = np.arange(1.0, rounds + 1.0)
            plots.curve(ax, t, mean, label=r.settings.algorithm, position=i, low=mean - error, high=mean + error)
        ax.set(title=dataset.capitalize(), xlabel="round", xlim=(1, rounds))
    axes[0].set_ylabel("test accuracy, smoothed")
    axes[0].legend(fontsize="small", loc="center right")
    return fig


def _by_dataset(results: Sequence[SvmTuning]) -> dict[str, list[SvmTuning]]:
    names = dict.fromkeys(r.settings.dataset for r in results)
    return {name: [r for r in results if r.settings.dataset == name] for name in names}
