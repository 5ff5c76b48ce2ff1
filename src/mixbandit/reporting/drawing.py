"""Pictures as SVG inside a page: no fonts, files or scripts of others, and readable at the width of a phone.

A picture is drawn at the size at which it is usually seen, so that its text is as large as that of the page. Colours
are classes, which the style of the page defines.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from mixbandit._checks import Array
from mixbandit.reporting.wording import cut, escaped, number

_LETTER = 8.4  # the width of a letter on an axis
_TICKS = 5


class Tick(NamedTuple):
    """A mark on an axis."""

    at: float
    label: str


class Row(NamedTuple):
    """One interval in a picture of several."""

    label: str
    low: float
    high: float
    kind: str = ""  # a class: "best", "ruled-out"
    dots: Array = np.empty(0)


class Picture:
    """Axes with what is drawn on them; beyond their ends, everything is drawn on the edge."""

    def __init__(
        self, width: float, height: float, x: tuple[float, float], y: tuple[float, float], left: float
    ) -> None:
        self._size, self._x, self._y = (width, height), x, y
        self._left, self._right, self._top, self._bottom = left, 10.0, 10.0, 26.0
        self._parts: list[str] = []

    def svg(self, described: str) -> str:
        """The picture; the description is for those who cannot see it."""
        return _svg(self._size, self._parts, described)

    def across(self, x: Array | float) -> Array:
        return self._scaled(x, self._x, self._left, self._size[0] - self._right)

    def down(self, y: Array | float) -> Array:
        return self._scaled(y, self._y, self._size[1] - self._bottom, self._top)

    @staticmethod
    def _scaled(value: Array | float, ends: tuple[float, float], first: float, last: float) -> Array:
        low, high = ends
        share = (np.clip(np.asarray(value, dtype=np.float64), low, high) - low) / ((high - low) or 1.0)
        return np.asarray(first + share * (last - first))

    def frame(self, x_ticks: Sequence[Tick] = (), y_ticks: Sequence[Tick] = ()) -> None:
        """The axes, with lines across at the ticks of y."""
        width, height = self._size
        floor, end = height - self._bottom, width - self._right
        for tick in y_ticks:
            at = float(self.down(tick.at))
            self._parts.append(f'<path class="grid" d="M{self._left:g} {at:.1f}H{end:g}"/>')
            self._parts.append(_text(self._left - 5.0, at + 4.0, tick.label, "end"))
        self._parts.append(f'<path class="axis" d="M{self._left:g} {self._top:g}V{floor:g}H{end:g}"/>')
        for tick in x_ticks:
            at = float(self.across(tick.at))
            self._parts.append(f'<path class="axis" d="M{at:.1f} {floor:g}v4"/>')
            half = 0.5 * _LETTER * len(tick.label)
            self._parts.append(_text(min(max(at, half), width - half), floor + 18.0, tick.label, "middle"))

    def shade(self, low: float, high: float, kind: str) -> None:
        """The full height between two places of x."""
        left, right = float(self.across(low)), float(self.across(high))
        width = max(right - left, 3.0)
        top, height = self._top, self._size[1] - self._bottom - self._top
        self._parts.append(
            f'<rect class="{kind}" x="{min(left, self._size[0] - self._right - width):.1f}" y="{top:g}" '
            f'width="{width:.1f}" height="{height:g}"/>'
        )

    def band(self, x: Array, low: Array, high: Array) -> None:
        points = [*_points(self.across(x), self.down(low)), *_points(self.across(x), self.down(high))[::-1]]
        self._parts.append(f'<path class="band" d="M{"L".join(points)}Z"/>')

    def line(self, x: Array, y: Array, kind: str, *, steps: bool = False) -> None:
        across, down = self.across(x), self.down(y)
        if steps:  # a value holds until the next
            across, down = np.repeat(across, 2)[1:], np.repeat(down, 2)[:-1]
        self._parts.append(f'<path class="line {kind}" d="M{"L".join(_points(across, down))}"/>')

    def level(self, y: float, kind: str) -> None:
        """A line across the picture."""
        self.line(np.array(self._x), np.array([y, y]), kind)

    def dots(self, x: Array, y: Array, kind: str = "", size: float = 2.2) -> None:
        drawn = dict.fromkeys(_points(self.across(x), self.down(y)))  # one of those on top of each other
        places = (point.split() for point in drawn)
        circles = "".join(f'<circle cx="{a}" cy="{b}" r="{size:g}"/>' for a, b in places)
        self._parts.append(f'<g class="dots {kind}">{circles}</g>')

    def bar(self, x: float, low: float, high: float, kind: str) -> None:
        """An interval of y at one place."""
        at, first, last = float(self.across(x)), float(self.down(low)), float(self.down(high))
        caps = f"M{at - 4:.1f} {first:.1f}h8M{at - 4:.1f} {last:.1f}h8"
        self._parts.append(f'<path class="line {kind}" d="M{at:.1f} {first:.1f}V{last:.1f}{caps}"/>')


def rows(found: Sequence[Row], ends: tuple[float, float], described: str, *, width: float = 300.0) -> str:
    """Intervals below each other, each under its label."""
    longest = int((width - 20.0) / _LETTER)
    step, top = 38.0, 6.0
    height = top + step * len(found) + 30.0
    picture = Picture(width, height, ends, (0.0, 1.0), 10.0)
    parts, floor = [], height - 26.0
    for tick in ticks(*ends):
        at = float(picture.across(tick.at))
        half = 0.5 * _LETTER * len(tick.label)
        parts.append(f'<path class="grid" d="M{at:.1f} {top:g}V{floor:g}"/>')
        parts.append(_text(min(max(at, half), width - half), floor + 18.0, tick.label, "middle"))
    for i, row in enumerate(found):
        label, bar = top + step * i + 14.0, top + step * i + 25.0
        left, right = (float(picture.across(end)) for end in (row.low, row.high))
        parts.append(_text(10.0, label, cut(row.label, longest), "start", row.kind))
        parts.append(
            f'<rect class="interval {row.kind}" x="{left:.1f}" y="{bar - 4:g}" width="{max(right - left, 2.0):.1f}" '
            'height="8" rx="2"/>'
        )
        parts += [f'<circle class="dots on-bar" cx="{x:.1f}" cy="{bar:g}" r="1.8"/>' for x in picture.across(row.dots)]
    return _svg((width, height), parts, described)


def ticks(low: float, high: float, most: int = _TICKS) -> list[Tick]:
    """Round numbers between two ends."""
    width = high - low
    if not (math.isfinite(width) and width > 0.0):
        return [Tick(low, number(low))]
    step = 10.0 ** math.floor(math.log10(width / most))
    step *= next(times for times in (1.0, 2.0, 5.0, 10.0) if width / (times * step) <= most + 1e-9)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return _distinct([Tick(i * step, number(i * step)) for i in range(first, last + 1)], low, high)


def log_ticks(low: float, high: float, most: int = _TICKS) -> list[Tick]:
    """Powers of ten between two positive ends, or round numbers if there are few of them."""
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    if last - first < 1:
        round_ones = [digit * 10.0**power for power in range(first - 1, last + 1) for digit in (1.0, 2.0, 5.0)]
        return _distinct([Tick(v, number(v)) for v in round_ones if low <= v <= high], low, high)
    every = math.ceil((last - first + 1) / (most + 1))
    return [Tick(10.0**power, _power(power)) for power in range(first, last + 1, every)]


def _power(power: int) -> str:
    """A power of ten, in full if it is short."""
    if abs(power) < 4:
        return number(10.0**power)
    return f"10{str(power).translate(str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'))}"


def _distinct(found: list[Tick], low: float, high: float) -> list[Tick]:
    """The ticks, or the ends where four digits do not tell them apart."""
    if len({tick.label for tick in found}) == len(found) > 1:
        return found
    return [Tick(low, number(low)), Tick(high, f"+{number(high - low)}")]


def extent(values: Array, others: Iterable[float]) -> tuple[float, float]:
    """The part of the axis to show: nearly all values, and all others that are finite."""
    low, high = (float(end) for end in np.quantile(values, (0.02, 0.98))) if len(values) > 50 else _ends(values)
    finite = [low, high, *(float(each) for each in others if math.isfinite(each))]
    low, high = min(finite), max(finite)
    margin = 0.06 * (high - low) or 0.1 * abs(high) or 1.0
    return low - margin, high + margin


def _ends(values: Array) -> tuple[float, float]:
    return float(values.min()), float(values.max())


def left_of(found: Sequence[Tick]) -> float:
    """The room that labels of y need."""
    return 12.0 + _LETTER * max((len(tick.label) for tick in found), default=1)


def _svg(size: tuple[float, float], parts: Sequence[str], described: str) -> str:
    width, height = size
    label = escaped(described)
    return f'<svg viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{label}">{"".join(parts)}</svg>'


def _points(x: Array, y: Array) -> list[str]:
    return [f"{a:.1f} {b:.1f}" for a, b in zip(np.atleast_1d(x), np.atleast_1d(y), strict=True)]


def _text(x: float, y: float, text: str, anchor: str, kind: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{kind}">{escaped(text)}</text>'
