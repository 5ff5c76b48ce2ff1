"""From φᵀθ, which sets bound, to expected rewards, which users ask about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixbandit._checks import Array

_ROUNDING = 1e-9


class Bounds(NamedTuple):
    """Bounds on expected rewards, on one side."""

    values: Array  # (n,)
    capped: NDArray[np.bool_] | None = None  # (n,) where a known range cut them; None: nowhere
    contradicts: bool = False  # whether one lies outside the range, which refutes the assumptions


class Interval(NamedTuple):
    """Bounds on expected rewards, on both sides."""

    lower: Array  # (n,)
    upper: Array  # (n,)
    contradicts: bool = False  # whether a bound lies outside the range, which refutes the assumptions


@dataclass(frozen=True)
class Response:
    """Expected rewards are φᵀθ up to `deviation`, and lie in `range` where that is known."""

    deviation: float = 0.0
    range: tuple[float, float] | None = None

    @property
    def lowest(self) -> float | None:
        """A bound that no expected reward is below, where known."""
        return None if self.range is None else self.range[0]

    @property
    def highest(self) -> float | None:
        """A bound that no expected reward exceeds, where known."""
        return None if self.range is None else self.range[1]

    def upper(self, maximum: Array) -> Bounds:
        """Upper bounds, from the maxima of φᵀθ."""
        bounds = maximum + self.deviation if self.deviation else maximum
        if self.range is None:
            return Bounds(bounds)
        low, high = self.range
        cut = np.clip(bounds, low, high)
        return Bounds(cut, cut != bounds, bool((bounds < low - _ROUNDING * (high - low)).any()))

    def lower(self, maximum: Array) -> Bounds:
        """Lower bounds, from the maxima of −φᵀθ."""
        bounds = -maximum - self.deviation if self.deviation else -maximum
        if self.range is None:
            return Bounds(bounds)
        low, high = self.range
        cut = np.clip(bounds, low, high)
        return Bounds(cut, cut != bounds, bool((bounds > high + _ROUNDING * (high - low)).any()))

    def interval(self, minimum: Array, maximum: Array) -> Interval:
        """Bounds on both sides, from the minimum and maximum of φᵀθ."""
        if self.range is None and not self.deviation:
            return Interval(minimum, maximum)
        lower, upper = self.lower(-minimum), self.upper(maximum)
        return Interval(lower.values, upper.values, lower.contradicts or upper.contradicts)

    def ends(self, minimum: float, maximum: float) -> tuple[float, float, bool]:
        """The same for one action, as numbers."""
        if self.range is None:
            return minimum - self.deviation, maximum + self.deviation, False
        found = self.interval(np.array([minimum]), np.array([maximum]))
        return float(found.lower[0]), float(found.upper[0]), found.contradicts

    def most(self, maximum: float) -> float:
        """A bound that no expected reward exceeds if φᵀθ never exceeds `maximum`."""
        most = maximum + self.deviation
        return most if self.range is None else min(max(most, self.range[0]), self.range[1])

    def difference(self, maximum: float) -> float:
        """A bound on the difference of two expected rewards, from the largest difference of φᵀθ."""
        return maximum + 2.0 * self.deviation
