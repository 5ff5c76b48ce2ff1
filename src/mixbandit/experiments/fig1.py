"""Figure 1 of the paper: bounds of CMM-UCB, AMM-UCB and OFUL for a function of random Fourier features.

The paper gives d = 20, one input, σ = 0.1, B = 10, δ = 0.01, θ* ~ N(0, I) scaled down to norm 10 if needed.
It leaves open how many points there are, where, and the length-scale; those are settings here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mixbandit import plots
from mixbandit._validation import Array
from mixbandit.confidence import MartingaleMixture, OFULSequence
from mixbandit.features import RandomFourier

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METHODS = ("CMM-UCB", "AMM-UCB", "OFUL")


@dataclass(frozen=True)
class Fig1Settings:
    """What the figure depends on."""

    dim: int = 20
    points: int = 30
    lengthscale: float = 0.15
    sigma: float = 0.1
    norm_bound: float = 10.0
    delta: float = 0.01
    seed: int = 0


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
    rng = np.random.default_rng(settings.seed)
    phi = RandomFourier(dim_in=1, dim=settings.dim, lengthscale=settings.lengthscale, rng=rng)
    theta = rng.normal(size=settings.dim)
    theta *= min(1.0, settings.norm_bound / float(np.linalg.norm(theta)))
    actions = rng.uniform(size=(settings.points, 1))
    rewards = phi(actions) @ theta + settings.sigma * rng.normal(size=settings.points)

    mixture, oful = (
        kind(phi, sigma=settings.sigma, norm_bound=settings.norm_bound, delta=settings.delta)
        for kind in (MartingaleMixture, OFULSequence)
    )
    for sequence in (mixture, oful):
        sequence.update(actions, rewards)
    x = np.linspace(0.0, 1.0, 301)[:, None]
    return Fig1(
        x=x[:, 0],
        truth=phi(x) @ theta,
        data=(actions[:, 0], rewards),
        bands={
            "CMM-UCB": (mixture.lower(x), mixture.upper(x)),
            "AMM-UCB": (mixture.lower(x, alpha=mixture.alpha0), mixture.upper(x, alpha=mixture.alpha0)),
            "OFUL": (oful.lower(x), oful.upper(x)),
        },
    )


def draw(result: Fig1) -> Figure:
    """The three panels of the paper, on one scale."""
    fig, axes = plots.figure(columns=len(METHODS), sharey=True)
    for ax, method, colour in zip(axes, METHODS, plots.COLOURS, strict=False):
        lower, upper = result.bands[method]
        plots.bounds(ax, result.x, lower, upper, truth=result.truth, data=result.data, colour=colour, label=method)
        ax.set(title=f"{method}: mean width {result.mean_widths[method]:.2f}", xlabel="x", xlim=(0.0, 1.0))
        ax.legend(loc="lower left", fontsize="small", ncols=3)
    axes[0].set_ylabel("f(x)")
    # OFUL's bounds leave the picture between data; the paper's panels are cut in the same way.
    low, high = result.truth.min(), result.truth.max()
    axes[0].set_ylim(low - 1.2 * (high - low), high + 1.2 * (high - low))
    return fig
