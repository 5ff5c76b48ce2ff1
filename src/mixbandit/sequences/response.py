"""From φᵀθ, which sets bound, to expected rewards, which users ask about."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from mixbandit._checks import Array

_ROUNDING = 1e-9
Number = TypeVar("Number", float, Array)


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


class Response(abc.ABC):
    """How expected rewards follow from φᵀθ, the index: by a function that never decreases, up to `deviation`.

    Give `reward`, its `slope`, and `difference`; bounds follow.
    """

    deviation: float = 0.0
    range: tuple[float, float] | None = None  # in which expected rewards lie, where that is known
    linear: ClassVar[bool] = False  # whether `reward` is linear: then rows may be summed up with their expected rewards

    @abc.abstractmethod
    def reward(self, index: Number) -> Number:
        """The expected reward at an index, but for the deviation."""

    @abc.abstractmethod
    def slope(self, index: Array) -> Array:
        """The derivative of `reward`."""

    @abc.abstractmethod
    def difference(self, index: float) -> float:
        """The most by which one expected reward exceeds another whose index is smaller by at most `index`."""

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
        bounds = self.reward(maximum)
        if self.deviation:
            bounds = bounds + self.deviation
        if self.range is None:
            return Bounds(bounds)
        low, high = self.range
        cut = np.clip(bounds, low, high)
        return Bounds(cut, cut != bounds, bool((bounds < low - _ROUNDING * (high - low)).any()))

    def lower(self, maximum: Array) -> Bounds:
        """Lower bounds, from the maxima of −φᵀθ."""
        bounds = self.reward(-maximum)
        if self.deviation:
            bounds = bounds - self.deviation
        if self.range is None:
            return Bounds(bounds)
        low, high = self.range
        cut = np.clip(bounds, low, high)
        return Bounds(cut, cut != bounds, bool((bounds > high + _ROUNDING * (high - low)).any()))

    def interval(self, minimum: Array, maximum: Array) -> Interval:
        """Bounds on both sides, from the minimum and maximum of φᵀθ."""
        if self.range is None and not self.deviation:
            return Interval(self.reward(minimum), self.reward(maximum))
        lower, upper = self.lower(-minimum), self.upper(maximum)
        return Interval(lower.values, upper.values, lower.contradicts or upper.contradicts)

    def ends(self, minimum: float, maximum: float) -> tuple[float, float, bool]:
        """The same for one action, as numbers."""
        if self.range is None:
            return self.reward(minimum) - self.deviation, self.reward(maximum) + self.deviation, False
        found = self.interval(np.array([minimum]), np.array([maximum]))
        return float(found.lower[0]), float(found.upper[0]), found.contradicts

    def most(self, maximum: float) -> float:
        """A bound that no expected reward exceeds if φᵀθ never exceeds `maximum`."""
        most = self.reward(maximum) + self.deviation
        return most if self.range is None else min(max(most, self.range[0]), self.range[1])


@dataclass(frozen=True)
class Affine(Response):
    """Expected rewards are φᵀθ up to `deviation`, and lie in `range` where that is known."""

    deviation: float = 0.0
    range: tuple[float, float] | None = None
    linear: ClassVar[bool] = True

    def reward(self, index: Number) -> Number:
        return index

    def slope(self, index: Array) -> Array:
        return np.ones_like(index)

    def difference(self, index: float) -> float:
        return index + 2.0 * self.deviation
