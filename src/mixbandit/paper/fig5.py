"""Figure 5 of the paper: bounds of CMM-UCB with the standard and with the adaptive mixture.

The paper shows one function for which the adaptive mixture is tighter. Here we count over many, with θ* of the
size that the standard mixture expects and of others. Theory says what to expect: among all mixtures, on average over
θ* ~ N(0, I), N(0, ΦΦᵀ) has the largest likelihood and so the smallest radius. Only another θ* can favour another one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mixbandit import plots
from mixbandit._checks import Array
from mixbandit.paper.functions import FunctionSettings, NoisyFunction
from mixbandit.paper.parallel import ALONE, Workers, gather, numbers
from mixbandit.paper.published import Claim
from mixbandit.paper.svm import MIXTURES
from mixbandit.sequences import MartingaleMixture

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

# θ* ~ N(0, size² I), scaled down to norm B where needed.
SIZES = (0.25, 1.0, 2.0)
POINTS = (10, 30, 100)
_GRID = 101


@dataclass(frozen=True)
class Fig5Settings(FunctionSettings):
    """What the figure depends on."""

    @property
    def label(self) -> str:
        return f"{self.points} rewards, θ* × {self.size:g}"


COLUMNS = ("widths", "radii")


@dataclass(frozen=True)
class Fig5:
    """Per function: mean widths and radii with both mixtures."""

    settings: Fig5Settings
    widths: Array  # (repetitions, 2), standard and adaptive
    radii: Array  # (repetitions, 2)

    @property
    def ratio(self) -> Array:
        """Adaptive over standard: below 1 where the adaptive mixture is tighter."""
        return np.asarray(self.widths[:, 1] / self.widths[:, 0])

    @property
    def tighter(self) -> int:
        return int((self.ratio < 1.0).sum())


def sequences(settings: Fig5Settings, function: NoisyFunction) -> list[MartingaleMixture]:
    """Both mixtures after the data."""
    return [
        function.seen_by(MartingaleMixture(function.features, **settings.known, mixture=mixture()))
        for mixture in MIXTURES.values()
    ]


def simulate(settings: Fig5Settings, repetition: int) -> tuple[str, str]:
    """One function."""
    both = sequences(settings, settings.function(repetition))
    x = np.linspace(0.0, 1.0, _GRID)[:, None]
    widths = [float(np.mean(sequence.upper(x) - sequence.lower(x))) for sequence in both]
    return " ".join(f"{w:.8g}" for w in widths), " ".join(f"{sequence.radius:.8g}" for sequence in both)


def measure(
    settings: Fig5Settings,
    repetitions: int,
    *,
    folder: Path | None = None,
    workers: Workers = ALONE,
    progress: Callable[[int], None] = lambda done: None,
) -> Fig5:
    """Repeat for many functions, resuming from those in `folder`."""
    how: dict[str, Any] = {"folder": folder, "workers": workers, "progress": progress}
    rows = gather("fig5", simulate, settings, COLUMNS, repetitions, **how)
    return Fig5(settings, *(numbers(rows, name) for name in COLUMNS))


def claims(results: Sequence[Fig5]) -> list[Claim]:
    """The paper's claim, which is about one function."""
    shown = next(r for r in results if r.settings == Fig5Settings(seed=r.settings.seed))
    n = len(shown.ratio)
    return [
        Claim(
            "Figure 5",
            "The adaptive mixture leads to tighter bounds (in the paper's example).",
            f"tighter for {shown.tighter} of {n} functions; {shown.ratio.mean():.3f} times as wide on average",
            shown.tighter > n / 2,
        )
    ]


def table(results: Sequence[Fig5]) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """A row per number of rewards and size of θ*."""
    columns = ("rewards", "size of θ*", "functions", "adaptive tighter", "width ratio", "difference of R² in σ²")
    rows = [
        (
            r.settings.points,
            f"{r.settings.size:g}",
            len(r.ratio),
            r.tighter,
            f"{r.ratio.mean():.4f}",
            f"{np.mean(r.radii[:, 1] ** 2 - r.radii[:, 0] ** 2) / r.settings.sigma**2:.3g}",
        )
        for r in results
    ]
    return columns, rows


def draw(results: Sequence[Fig5]) -> Figure:
    """The paper's panel, for the first function; next to it all of them."""
    shown = next(r for r in results if r.settings == Fig5Settings(seed=r.settings.seed))
    function = shown.settings.function(0)
    x = np.linspace(0.0, 1.0, 301)[:, None]
    fig, (left, right) = plots.figure(columns=2, width=5.4, height=3.4)
    truth = function(x)
    for k, (name, sequence) in enumerate(zip(MIXTURES, sequences(shown.settings, function), strict=True)):
        band = sequence.lower(x), sequence.upper(x)
        plots.bounds(left, x[:, 0], *band, colour=plots.COLOURS[k], label=name, line=plots.LINES[k])
    left.plot(x[:, 0], truth, color="black", linestyle=":", linewidth=1.2, label="truth")
    left.plot(function.actions[:, 0], function.rewards, "k.", markersize=4, label="data")
    low, high = truth.min(), truth.max()
    left.set(xlabel="x", ylabel="f(x)", xlim=(0.0, 1.0), ylim=(low - 0.6 * (high - low), high + 0.6 * (high - low)))
    left.legend(loc="lower left", fontsize="small", ncols=2)
    left.set_title("one function")
    labels = [f"{r.settings.points} rewards,\nθ* × {r.settings.size:g}" for r in results]
    right.boxplot([r.ratio for r in results], orientation="horizontal", tick_labels=labels, medianprops={"color": "k"})
    right.axvline(1.0, color=plots.COLOURS[1], linewidth=1.2)
    right.set(xlabel="width, adaptive over standard", title=f"{len(shown.ratio)} functions each")
    right.tick_params(axis="y", labelsize="x-small")
    return fig
