"""Figure 2 of the paper: the average width of bounds for every number of rewards T and every dimension d.

Inputs are uniform in the unit cube of 10 dimensions, the features random Fourier features of length-scale 1, widths are
averaged over 100 fresh points. The paper shows d = 10 and T = 100 and says that the order is the same everywhere; here
every pair is shown, averaged over repetitions with a function each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mixbandit import plots
from mixbandit._checks import Array
from mixbandit.paper.fig1 import METHODS, bands
from mixbandit.paper.functions import Known, noisy_function
from mixbandit.paper.parallel import ALONE, Workers, gather, numbers
from mixbandit.paper.published import Claim

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ROUNDING = 1e-9


@dataclass(frozen=True)
class Fig2Settings:
    """What the figure depends on."""

    sizes: tuple[int, ...] = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
    dims: tuple[int, ...] = (1, 2, 5, 10, 20, 50, 100)
    shown_dim: int = 10
    shown_size: int = 100
    dim_in: int = 10
    lengthscale: float = 1.0
    test_points: int = 100
    sigma: float = 0.1
    norm_bound: float = 10.0
    delta: float = 0.01
    seed: int = 0


COLUMNS = ("widths",)


@dataclass(frozen=True)
class Fig2:
    """The figure as numbers."""

    settings: Fig2Settings
    widths: Array  # (repetitions, sizes, dims, methods)

    @property
    def mean(self) -> Array:
        return np.asarray(self.widths.mean(axis=0))

    @property
    def ratios(self) -> tuple[Array, Array]:
        """AMM's width over CMM's, and OFUL's over AMM's, the least over all repetitions, per size and dimension."""
        w = self.widths
        return np.asarray((w[..., 1] / w[..., 0]).min(axis=0)), np.asarray((w[..., 2] / w[..., 1]).min(axis=0))


def simulate(settings: Fig2Settings, repetition: int) -> tuple[str]:
    """Widths for one function per size and dimension."""
    widths = [
        width
        for i in range(len(settings.sizes))
        for j in range(len(settings.dims))
        for width in _widths(settings, i, j, repetition)
    ]
    return (" ".join(f"{w:.12g}" for w in widths),)


def _widths(settings: Fig2Settings, i: int, j: int, repetition: int) -> list[float]:
    rng = np.random.default_rng(np.random.SeedSequence(settings.seed, spawn_key=(repetition, i, j)))
    known = Known(sigma=settings.sigma, norm_bound=settings.norm_bound, delta=settings.delta)
    kind: dict[str, Any] = {"dim_in": settings.dim_in, "dim": settings.dims[j], "lengthscale": settings.lengthscale}
    function = noisy_function(rng, settings.sizes[i], known, **kind)
    x = rng.uniform(size=(settings.test_points, settings.dim_in))
    return [float(np.mean(upper - lower)) for lower, upper in bands(function, known, x).values()]


def measure(
    settings: Fig2Settings,
    repetitions: int,
    *,
    folder: Path | None = None,
    workers: Workers = ALONE,
    progress: Callable[[int], None] = lambda done: None,
) -> Fig2:
    """All pairs, `repetitions` times, resuming from those in `folder`."""
    how: dict[str, Any] = {"folder": folder, "workers": workers, "progress": progress}
    rows = gather("fig2", simulate, settings, COLUMNS, repetitions, **how)
    shape = (repetitions, len(settings.sizes), len(settings.dims), len(METHODS))
    return Fig2(settings, numbers(rows, "widths").reshape(shape))


def claims(result: Fig2) -> list[Claim]:
    """CMM ≤ AMM < OFUL, for every pair and in every repetition."""
    tighter, oful = result.ratios
    pairs = f"{tighter.size} pairs (T, d), {len(result.widths)} functions each"
    return [
        Claim(
            "Figure 2",
            "CMM-UCB has the tightest bounds, followed by AMM-UCB, at every T and d.",
            f"AMM-UCB's are at least {tighter.min():.3f} times as wide as CMM-UCB's, over {pairs}",
            bool((tighter >= 1.0 - _ROUNDING).all()),
        ),
        Claim(
            "Figure 2",
            "OFUL has the widest at every T and d.",
            f"OFUL's are at least {oful.min():.3f} times as wide as AMM-UCB's, over {pairs}",
            bool((oful > 1.0).all()),
        ),
    ]


def table(result: Fig2) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """A row per pair."""
    rows = [
        (T, d, *(f"{w:.6g}" for w in result.mean[i, j]), *(f"{r[i, j]:.6g}" for r in result.ratios))
        for i, T in enumerate(result.settings.sizes)
        for j, d in enumerate(result.settings.dims)
    ]
    return ("T", "d", *METHODS, "least AMM/CMM", "least OFUL/AMM"), rows


def draw(result: Fig2) -> Figure:
    """The paper's two panels, and below them every pair at a glance."""
    settings = result.settings
    fig, axes = plots.figure(columns=2, rows=2, width=5.2, height=3.4)
    column, row = settings.dims.index(settings.shown_dim), settings.sizes.index(settings.shown_size)
    for k, method in enumerate(METHODS):
        plots.curve(axes[0], np.array(settings.sizes), result.mean[:, column, k], label=method, position=k, marks=True)
        plots.curve(axes[1], np.array(settings.dims), result.mean[row, :, k], label=method, position=k, marks=True)
    axes[0].set(xlabel="number of rewards T", ylabel="average width", title=f"d = {settings.shown_dim}")
    axes[1].set(xlabel="dimension d", ylabel="average width", title=f"T = {settings.shown_size}")
    for ax in axes[:2]:
        ax.set(xscale="log", yscale="log")
        ax.legend()
    titles = ("AMM-UCB's width over CMM-UCB's, at least", "OFUL's width over AMM-UCB's, at least")
    for ax, ratios, title in zip(axes[2:], result.ratios, titles, strict=True):
        _grid(ax, ratios, settings.sizes, settings.dims)
        ax.set_title(title)
    return fig


def _grid(ax: Axes, ratios: Array, sizes: Sequence[int], dims: Sequence[int]) -> None:
    """Ratios as numbers on a map; below 1 they would be red."""
    darkest = max(2.0, float(ratios.max()))
    ax.imshow(ratios.T, cmap="Blues", origin="lower", aspect="auto", vmin=1.0, vmax=darkest)
    for i in range(len(sizes)):
        for j in range(len(dims)):
            wrong = ratios[i, j] < 1.0 - _ROUNDING
            dark = ratios[i, j] - 1.0 > 0.6 * (darkest - 1.0)
            colour = "red" if wrong else "white" if dark else "black"
            ax.text(i, j, f"{ratios[i, j]:.2f}", ha="center", va="center", fontsize=7, color=colour)
    ax.set_xticks(range(len(sizes)), [str(size) for size in sizes])
    ax.set_yticks(range(len(dims)), [str(dim) for dim in dims])
    ax.set(xlabel="number of rewards T", ylabel="dimension d")
