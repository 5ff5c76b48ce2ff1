"""Plots: axes in, axes out. Colours are Okabe and Ito's plus two more, safe for colour-blind readers."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mixbandit._checks import (
    Array,
    as_float_array,
    as_path,
    as_text,
    as_vector,
    check_finite,
    flag,
    nonnegative_int,
    positive,
    positive_int,
    probability,
    shown,
)
from mixbandit._extras import import_extra
from mixbandit._files import write_atomically
from mixbandit.errors import InvalidInput

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#882255", "#999999",
           "#332288")  # fmt: skip
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LINES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (3, 1, 1, 1)), (0, (5, 1)), (0, (1, 1)))
_MOST_PANELS, _LARGEST_SIDE, _MOST_ROUNDS = 100, 100.0, 100_000_000  # the side in inches


def figure(
    columns: int = 1, *, rows: int = 1, width: float = 4.0, height: float = 3.0, **options: Any
) -> tuple[Figure, list[Axes]]:
    """A figure with axes of this size, row by row, outside pyplot's global state."""
    across, down = positive_int(columns, "columns", _MOST_PANELS), positive_int(rows, "rows", _MOST_PANELS)
    size = positive(width, "width", most=_LARGEST_SIDE), positive(height, "height", most=_LARGEST_SIDE)
    module = import_extra("matplotlib.figure", extra="plots")
    fig = module.Figure(figsize=(size[0] * across, size[1] * down), layout="constrained")
    axes = fig.subplots(down, across, squeeze=False, **options)
    return fig, list(axes.flat)


def _on(ax: Axes) -> Axes:
    if not hasattr(ax, "fill_between") or isinstance(ax, type):
        raise InvalidInput(f"ax must be the axes of a figure, got {shown(ax)}")
    return ax


def _columns(**given: Any) -> list[Array]:
    """Vectors of one length; NaN and infinity stand for what is unknown."""
    found = [as_float_array(value, name) for name, value in given.items()]
    if any(vector.ndim != 1 or len(vector) != len(found[0]) for vector in found):
        shapes = ", ".join(f"{name} {vector.shape}" for name, vector in zip(given, found, strict=True))
        raise InvalidInput(f"vectors of one length are needed, got {shapes}")
    return found


def _line(value: Any) -> Any:
    for known in LINES:
        if type(value) is type(known) and value == known:
            return known
    raise InvalidInput(f"line must be one of mixbandit.plots.LINES, got {shown(value)}")


def _colour(value: str) -> str:
    if not import_extra("matplotlib.colors", extra="plots").is_color_like(as_text(value, "colour")):
        raise InvalidInput(f"colour must be a colour that matplotlib knows, got {shown(value)}")
    return as_text(value, "colour")


def save(fig: Figure, path: Path) -> None:
    """Write the figure as PNG, PDF or SVG, depending on the extension of the path. Writing is atomic."""
    path = as_path(path)
    if not hasattr(fig, "savefig") or isinstance(fig, type):
        raise InvalidInput(f"fig must be a figure, got {shown(fig)}")
    kind = path.suffix[1:].lower()
    if kind not in ("png", "pdf", "svg"):
        raise InvalidInput(f"path must end in .png, .pdf or .svg, got {shown(str(path))}")
    picture = io.BytesIO()
    fig.savefig(picture, dpi=150, format=kind)
    write_atomically(path, picture.getvalue())


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
    x, lower, upper = _columns(x=x, lower=lower, upper=upper)
    points = None if data is None else _pair(data)
    known = None if truth is None else _columns(x=x, truth=truth)[1]
    style: dict[str, Any] = {"color": _colour(colour), "linestyle": _line(line), "linewidth": 1.2}
    label = as_text(label, "label")
    _on(ax).fill_between(x, lower, upper, color=style["color"], alpha=0.25, linewidth=0)
    ax.plot(x, upper, **style, label=label)
    ax.plot(x, lower, **style)
    if known is not None:
        ax.plot(x, known, "k--", linewidth=1.2, label="truth")
    if points is not None:
        ax.plot(*points, "k.", markersize=4, label="data")
    return ax


def _pair(data: tuple[Array, Array]) -> list[Array]:
    if not isinstance(data, list | tuple) or len(data) != 2:
        raise InvalidInput(f"data must be a pair (x, y), got {shown(data)}")
    return _columns(x=data[0], y=data[1])


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
    x, y = _columns(x=x, y=y)
    band = None if low is None or high is None else _columns(x=x, low=low, high=high)[1:]
    place, marked, label = nonnegative_int(position, "position"), flag(marks, "marks"), as_text(label, "label")
    colour = COLOURS[place % len(COLOURS)]
    if band is not None:
        _on(ax).fill_between(x, band[0], band[1], color=colour, alpha=0.2, linewidth=0)
    _on(ax).plot(x, y, color=colour, linestyle=LINES[place % len(LINES)], linewidth=1.4, label=label,
                 marker=MARKERS[place % len(MARKERS)] if marked else None, markersize=4)  # fmt: skip
    return ax


def outcomes(ax: Axes, t: Array, lower: Array, upper: Array, reward: Array, expected: Array) -> Axes:
    """Rewards over time with the bounds known at the time of choice, and expected rewards if known."""
    t, lower, upper, reward, expected = _columns(t=t, lower=lower, upper=upper, reward=reward, expected=expected)
    _on(ax)
    if not np.isnan(lower).all():
        ax.fill_between(t, lower, upper, color=COLOURS[0], alpha=0.25, linewidth=0, label="bounds")
    ax.plot(t, reward, ".", color="black", markersize=3, alpha=0.5, label="rewards")
    if not np.isnan(expected).all():
        ax.plot(t, expected, color=COLOURS[1], linewidth=1.2, label="expected")
    ax.set(xlabel="round", ylabel="reward")
    seen = reward[np.isfinite(reward)]
    if len(seen):
        # The first bounds are so wide that they would hide the rest: cut the picture around the rewards.
        low, high = float(seen.min()), float(seen.max())
        margin = 0.5 * (high - low) or 1.0
        ax.set(ylim=(low - margin, high + margin))
    ax.legend(fontsize="small", loc="lower right")
    return ax


def miss_rates(ax: Axes, first_misses: Mapping[tuple[str, str], Sequence[int]], rounds: int, delta: float) -> Axes:
    """Share of runs that have missed by time t. Keys are (what sets the colour, what sets the line style).

    Each run is the time of its first miss, 0 for none. The scale is linear below δ and logarithmic above.
    """
    if not isinstance(first_misses, Mapping) or not all(isinstance(k, tuple) and len(k) == 2 for k in first_misses):
        raise InvalidInput(f"first_misses must be a dict with pairs of names as keys, got {shown(first_misses)}")
    rounds, delta = positive_int(rounds, "rounds", _MOST_ROUNDS), probability(delta, "delta")
    _on(ax)
    t = np.arange(1, rounds + 1)
    colours = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(dict.fromkeys(k[0] for k in first_misses))}
    styles = {name: LINES[i % len(LINES)] for i, name in enumerate(dict.fromkeys(k[1] for k in first_misses))}
    for (colour, style), times in first_misses.items():
        (given,) = _columns(times=times)
        share = np.searchsorted(np.sort(given[given > 0]), t, side="right") / max(len(given), 1)
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
    """A tuner's values in order, the intervals known beforehand, and that of the recommended configuration."""
    values, lower, upper = _columns(values=values, lower=lower, upper=upper)
    low, high = as_vector(recommended, 2, "recommended")
    check_finite(values, "values")
    if not len(values):
        raise InvalidInput("there are no values to draw")
    fig, (ax,) = figure(width=6.0)
    t = np.arange(1.0, len(values) + 1.0)
    outcomes(ax, t, lower, upper, values, np.full(len(values), np.nan))
    for end, label in ((low, "interval of the recommended one"), (high, None)):
        ax.axhline(end, color=COLOURS[1], linestyle="--", linewidth=1.5, label=label)
    margin = 0.05 * (max(high, values.max()) - min(low, values.min()))
    bottom, top = min(low, values.min()) - margin, max(high, values.max()) + margin
    ax.set(xlabel="trial, in the order in which values came", ylabel="value", ylim=(bottom, top))
    ax.legend(fontsize="small", loc="best")
    return fig
