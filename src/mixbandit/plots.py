"""Pictures: axes in, axes out. Colours are Okabe and Ito's plus two more, safe for colour-blind readers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mixbandit._checks import Array
from mixbandit._extras import import_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#882255", "#999999",
           "#332288")  # fmt: skip
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LINES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (3, 1, 1, 1)), (0, (5, 1)), (0, (1, 1)))


def figure(
    columns: int = 1, *, rows: int = 1, width: float = 4.0, height: float = 3.0, **options: Any
) -> tuple[Figure, list[Axes]]:
    """A figure with axes of this size, row by row, outside pyplot's global state."""
    module = import_extra("matplotlib.figure", extra="plots")
    fig = module.Figure(figsize=(width * columns, height * rows), layout="constrained")
    axes = fig.subplots(rows, columns, squeeze=False, **options)
    return fig, list(axes.flat)


def save(fig: Figure, path: Path) -> None:
    """Write the figure as PNG, PDF or SVG, depending on the extension of the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fig.savefig(path, dpi=150)


def bounds(
    ax: Axes,
    x: Array,
    lower: Array,
    upper: Array,
    *,
    truth: Array | None = None,
    data: tuple[Array, Array] | None = None,
    colour: str = COLOURS[0],
    label: str = "bounds",
    line: Any = "-",
) -> Axes:
    """A band of error bars over x (n,), with the true function and the data if known."""
    ax.fill_between(x, lower, upper, color=colour, alpha=0.25, linewidth=0)
    ax.plot(x, upper, color=colour, linestyle=line, linewidth=1.2, label=label)
    ax.plot(x, lower, color=colour, linestyle=line, linewidth=1.2)
    if truth is not None:
        ax.plot(x, truth, "k--", linewidth=1.2, label="truth")
    if data is not None:
        ax.plot(*data, "k.", markersize=4, label="data")
    return ax


def curve(
    ax: Axes,
    x: Array,
    y: Array,
    *,
    label: str,
    position: int = 0,
    low: Array | None = None,
    high: Array | None = None,
    marks: bool = False,
) -> Axes:
    """A line over x (n,) in the colour and style of its position, with a band from low to high if given."""
    colour = COLOURS[position % len(COLOURS)]
    if low is not None and high is not None:
        ax.fill_between(x, low, high, color=colour, alpha=0.2, linewidth=0)
    ax.plot(x, y, color=colour, linestyle=LINES[position % len(LINES)], linewidth=1.4, label=label,
            marker=MARKERS[position % len(MARKERS)] if marks else None, markersize=4)  # fmt: skip
    return ax


def outcomes(ax: Axes, t: Array, lower: Array, upper: Array, reward: Array, expected: Array) -> Axes:
    """Rewards over time with the bounds known at the time of choice, and expected rewards if known."""
    ax.fill_between(t, lower, upper, color=COLOURS[0], alpha=0.25, linewidth=0, label="bounds")
    ax.plot(t, reward, ".", color="black", markersize=3, alpha=0.5, label="rewards")
    if not np.isnan(expected).all():
        ax.plot(t, expected, color=COLOURS[1], linewidth=1.2, label="expected")
    # The first bounds are so wide that they would hide the rest: cut the picture around the rewards.
    low, high = float(np.nanmin(reward)), float(np.nanmax(reward))
    margin = 0.5 * (high - low) or 1.0
    ax.set(xlabel="round", ylabel="reward", ylim=(low - margin, high + margin))
    ax.legend(fontsize="small", loc="lower right")
    return ax


def miss_rates(ax: Axes, first_misses: Mapping[tuple[str, str], Sequence[int]], rounds: int, delta: float) -> Axes:
    """Share of runs that have missed by time t. Keys are (what sets the colour, what sets the line style).

    Each run is the time of its first miss, 0 for none. The scale is linear below δ and logarithmic above.
    """
    t = np.arange(1, rounds + 1)
    colours = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(dict.fromkeys(k[0] for k in first_misses))}
    styles = {name: LINES[i % len(LINES)] for i, name in enumerate(dict.fromkeys(k[1] for k in first_misses))}
    for (colour, style), times in first_misses.items():
        missed = np.sort([time for time in times if time > 0])
        share = np.searchsorted(missed, t, side="right") / max(len(times), 1)
        ax.step(t, share, where="post", color=colours[colour], linestyle=styles[style], linewidth=1.2)
    ax.axhline(delta, color="black", linewidth=1.0)
    ax.annotate(f"δ = {delta:g}", (t[-1], delta), ha="right", va="bottom")
    for name, value in colours.items():
        ax.plot([], [], color=value, label=name)
    if len(styles) > 1:
        for name, value in styles.items():
            ax.plot([], [], color="black", linestyle=value, label=name)
    ax.set_yscale("symlog", linthresh=delta)
    ax.set(xlabel="t", ylabel="share of runs missed by time t", xlim=(1, max(rounds, 2)), ylim=(0.0, 1.05))
    ax.set_yticks(sorted({0.0, delta / 2, delta, 0.1, 0.3, 1.0}))
    ax.get_yaxis().set_major_formatter("{x:g}")
    return ax


def tuning(values: Array, lower: Array, upper: Array, recommended: tuple[float, float]) -> Figure:
    """Values of a tuner in order, the intervals known beforehand, and that of the recommended configuration."""
    fig, (ax,) = figure(width=6.0)
    t = np.arange(1.0, len(values) + 1.0)
    outcomes(ax, t, lower, upper, values, np.full(len(values), np.nan))
    low, high = recommended
    for end, label in ((low, "the recommended one's interval"), (high, None)):
        ax.axhline(end, color=COLOURS[1], linestyle="--", linewidth=1.5, label=label)
    margin = 0.05 * (max(high, values.max()) - min(low, values.min()))
    bottom, top = min(low, values.min()) - margin, max(high, values.max()) + margin
    ax.set(xlabel="trial, in the order of values", ylabel="value", ylim=(bottom, top))
    ax.legend(fontsize="small", loc="best")
    return fig
