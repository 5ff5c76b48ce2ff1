"""Figure 1 of the paper: bounds of CMM-UCB, AMM-UCB and OFUL for a function of random Fourier features.

The paper gives d = 20, one input, σ = 0.1, B = 10, δ = 0.01, θ* ~ N(0, I) scaled down to norm 10 if needed.
It does not state the number of points, their places, or the length-scale; those are settings here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mixbandit import plots
from mixbandit._checks import Array
from mixbandit.paper.functions import FunctionSettings, Known, NoisyFunction
from mixbandit.paper.published import Claim
from mixbandit.sequences import MartingaleMixture, OFULSequence

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METHODS = ("CMM-UCB", "AMM-UCB", "OFUL")


@dataclass(frozen=True)
class Fig1Settings(FunctionSettings):
    """What the figure depends on."""


@dataclass(frozen=True)
class Fig1:
    """The figure as numbers."""

    x: Array  # (n,)
    truth: Array  # (n,)
    data: tuple[Array, Array]
    bands: dict[str, tuple[Array, Array]]  # lower and upper bounds per method

    @property
    def mean_widths(self) -> dict[str, float]:
        return {method: float(np.mean(upper - lower)) for method, (lower, upper) in self.bands.items()}


def run(settings: Fig1Settings) -> Fig1:
    """Draw a function and data, and bound the function on a grid over [0, 1]."""
    function = settings.function()
    x = np.linspace(0.0, 1.0, 301)[:, None]
    return Fig1(
        x=x[:, 0],
        truth=function(x),
        data=(function.actions[:, 0], function.rewards),
        bands=bands(function, settings.known, x),
    )


def bands(function: NoisyFunction, known: Known, x: Array) -> dict[str, tuple[Array, Array]]:
    """Lower and upper bounds at the rows of x, per method."""
    mixture = function.seen_by(MartingaleMixture(function.features, **known))
    oful = function.seen_by(OFULSequence(function.features, **known))
    return {
        "CMM-UCB": (mixture.lower(x), mixture.upper(x)),
        "AMM-UCB": (mixture.lower(x, alpha=mixture.alpha0), mixture.upper(x, alpha=mixture.alpha0)),
        "OFUL": (oful.lower(x), oful.upper(x)),
    }


def claims(result: Fig1) -> list[Claim]:
    """The order, and which step is the larger one."""
    cmm, amm, oful = (result.mean_widths[method] for method in METHODS)
    seen = f"mean widths: CMM-UCB {cmm:.3f}, AMM-UCB {amm:.3f}, OFUL {oful:.3f}"
    return [
        Claim(
            "Figure 1",
            "CMM-UCB's bounds are tighter than AMM-UCB's, which are tighter than OFUL's.",
            seen,
            cmm < amm < oful,
        ),
        Claim(
            "Figure 1",
            "The step from AMM-UCB to OFUL is considerable, the one from CMM-UCB to AMM-UCB slight.",
            f"AMM-UCB's are {amm / cmm:.2f} times as wide as CMM-UCB's, OFUL's {oful / amm:.2f} times as AMM-UCB's",
            oful / amm > amm / cmm,
        ),
    ]


def table(result: Fig1) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """A row per method."""
    return ("method", "mean width"), [(method, f"{width:.6g}") for method, width in result.mean_widths.items()]


def draw(result: Fig1) -> Figure:
    """The three panels of the paper, on one scale."""
    fig, axes = plots.figure(columns=len(METHODS), sharey=True)
    for ax, method, colour in zip(axes, METHODS, plots.COLOURS, strict=False):
        lower, upper = result.bands[method]
        plots.bounds(ax, result.x, lower, upper, truth=result.truth, data=result.data, colour=colour, label=method)
        ax.set(title=f"{method}: mean width {result.mean_widths[method]:.2f}", xlabel="x", xlim=(0.0, 1.0))
        ax.legend(loc="lower left", fontsize="small", ncols=3)
    axes[0].set_ylabel("f(x)")
    # OFUL's bounds leave the picture between data points; the paper's panels are cut in the same way.
    low, high = result.truth.min(), result.truth.max()
    axes[0].set_ylim(low - 1.2 * (high - low), high + 1.2 * (high - low))
    return fig
