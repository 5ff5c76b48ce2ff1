"""How numbers of contexts are standardised: what was seen of each, and the scale that follows from it.

| symbol | meaning | shape |
|---|---|---|
| n | names | |
| m, s | mean and spread of a number in the scale in use | (n,) |
| z = (x − m)/s | a number as rows have it | (n,) |

A scale is set when the number of contexts reaches a power of two, so that it serves as many contexts as it rests on.
Where a number has not varied, z = 0 was all that rows ever had, whatever its spread: the first different value sets it.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from mixbandit._checks import LARGEST_DATUM, Array, underflowing

# As small as the largest number is large, so that no row overflows.
_SMALLEST_SPREAD = 1.0 / LARGEST_DATUM
# Differences of this size, relative to the numbers, are rounding errors.
_FINEST = 40


class Moments(NamedTuple):
    """What was seen of each number, (n,) each. A number never seen has zeros."""

    seen: Array
    mean: Array
    squares: Array  # the sum of squared deviations from the mean
    low: Array
    high: Array

    @classmethod
    def unknown(cls, names: int) -> Self:
        return cls(*np.zeros((5, names)))

    def extended(self, names: int) -> Moments:
        """With as many more names that the number is `names`."""
        if names == len(self.mean):
            return self
        return Moments(*(np.append(part, np.zeros(names - len(part))) for part in self))

    @underflowing
    def after(self, numbers: Array) -> Moments:
        """With some contexts' numbers (m, n), NaN where one has none."""
        given = ~np.isnan(numbers)
        new = given.sum(axis=0, dtype=np.float64)
        # Deviations from the mean so far, and then from their own mean: nothing cancels.
        deviations = np.where(given, numbers - self.mean, 0.0)
        shift = deviations.sum(axis=0) / np.maximum(new, 1.0)
        deviations = np.where(given, deviations - shift, 0.0)
        seen = self.seen + new
        share = new / np.maximum(seen, 1.0)
        squares = self.squares + np.einsum("mn,mn->n", deviations, deviations) + shift * shift * self.seen * share
        low, high = np.fmin.reduce(numbers, axis=0), np.fmax.reduce(numbers, axis=0)
        known, comes = self.seen > 0.0, new > 0.0
        low = np.where(known, np.fmin(self.low, low), np.where(comes, low, 0.0))
        high = np.where(known, np.fmax(self.high, high), np.where(comes, high, 0.0))
        # Equal numbers are their own mean, without rounding.
        mean = np.where(low == high, low, self.mean + share * shift)
        return Moments(seen, mean, squares, low, high)


class Scale(NamedTuple):
    """A scale: z = (x − mean)·weight. Where a number has not varied, the weight is 0."""

    reach: float  # how many spreads a number may lie outside of the range of those before it
    mean: Array
    weight: Array  # 1/s
    low: Array  # smaller numbers are taken as this
    high: Array
    known: NDArray[np.bool_]  # whether the number was ever seen
    fixed: NDArray[np.int64]  # the numbers that have not varied

    @classmethod
    def of(cls, reach: float, mean: Array, weight: Array, low: Array, high: Array, known: NDArray[np.bool_]) -> Self:
        low, high = np.maximum(low, -LARGEST_DATUM), np.minimum(high, LARGEST_DATUM)
        return cls(reach, mean, weight, low, high, known, np.flatnonzero(weight == 0.0))

    @classmethod
    def unknown(cls, reach: float, names: int) -> Self:
        zeros, most = np.zeros(names), np.full(names, LARGEST_DATUM)
        return cls.of(reach, zeros, zeros, -most, most, np.zeros(names, dtype=np.bool_))

    @underflowing
    def set_by(self, moments: Moments) -> Scale:
        """The scale of what was seen."""
        seen, mean, squares, low, high = moments
        variance = squares / np.maximum(seen, 1.0)
        # Two numbers may be close by chance. A spread is trusted down to 2^−seen of their size.
        least = np.sqrt(mean * mean + variance) * np.exp2(-np.minimum(seen, _FINEST))
        spread = np.maximum(np.maximum(np.sqrt(variance), least), _SMALLEST_SPREAD)
        varied, most = low < high, np.full(len(mean), LARGEST_DATUM)
        weight = np.where(varied, 1.0 / spread, 0.0)
        low = np.where(varied, low - self.reach * spread, -most)
        high = np.where(varied, high + self.reach * spread, most)
        return Scale.of(self.reach, mean, weight, low, high, seen > 0.0)

    def extended(self, names: int) -> Scale:
        """With as many more names that the number is `names`."""
        if names == len(self.mean):
            return self
        reach, mean, weight, low, high, known, _ = self
        more = Scale.unknown(reach, names - len(mean))
        return Scale.of(
            reach, np.append(mean, more.mean), np.append(weight, more.weight), np.append(low, more.low),
            np.append(high, more.high), np.append(known, more.known),
        )  # fmt: skip

    def standardised(self, numbers: Array, out: Array) -> Array:
        """The z of numbers (n,) or (m, n), in `out`; NaN where they are."""
        try:
            np.subtract(numbers, self.mean, out)
            return np.multiply(out, self.weight, out)
        except FloatingPointError:  # after np.seterr(all="raise"): what underflows is 0
            with np.errstate(under="ignore"):
                return np.multiply(numbers - self.mean, self.weight, out)

    def limited(self, numbers: Array) -> Array:
        """Numbers (n,) within the limits; the same array if they are."""
        outside = (numbers < self.low) | (numbers > self.high)
        return np.clip(numbers, self.low, self.high) if outside.any() else numbers

    def moved(self, numbers: Array) -> Scale:
        """With limits that follow the numbers (n,) beyond them: each moves its limit by the distance of both limits.

        One wild number changes little, and a few in a row, as after a change of units, are soon believed.
        """
        width = self.high - self.low
        low = np.where(numbers < self.low, self.low - width, self.low)
        high = np.where(numbers > self.high, self.high + width, self.high)
        return Scale.of(self.reach, self.mean, self.weight, low, high, self.known)

    @underflowing
    def met(self, numbers: Array) -> Scale:
        """The scale after numbers (n,) that may be the first, or the first different, where none have varied."""
        fixed = self.fixed
        own, old, known = numbers[fixed], self.mean[fixed], self.known[fixed]
        first = ~(np.isnan(own) | known)
        differs = known & (own != old) & ~np.isnan(own)
        if not (first.any() or differs.any()):
            return self
        mean, weight, low, high = self.mean.copy(), self.weight.copy(), self.low.copy(), self.high.copy()
        at = fixed[first]
        mean[at] = own[first]
        at, spread = fixed[differs], np.maximum(np.abs(own - old)[differs], _SMALLEST_SPREAD)
        weight[at] = 1.0 / spread
        low[at] = np.minimum(own, old)[differs] - self.reach * spread
        high[at] = np.maximum(own, old)[differs] + self.reach * spread
        return Scale.of(self.reach, mean, weight, low, high, self.known | ~np.isnan(numbers))
