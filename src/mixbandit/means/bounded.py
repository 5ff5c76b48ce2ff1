"""Results in a known range, and nothing else known: `portfolio` in the units of the range."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from mixbandit._checks import Array
from mixbandit.errors import STATEMENTS, InvalidInput
from mixbandit.means.kinds import Interval, Range, Record
from mixbandit.means.portfolio import Tally, log_beta_path, log_path, log_wealth, lowest, tally

_MOST_NODES = 4096


class Bounded:
    """Results in a known range: `portfolio`. The sums are S, N − S, A, B and the number of values strictly between."""

    width, counts_samples, multiplies = 5, True, True

    def __init__(self, reward_range: Range) -> None:
        self.low, self.high = reward_range
        self.span = self.high - self.low

    def check(self, values: Array, seen: Record) -> None:
        outside = (values < self.low) | (values > self.high)
        if outside.any():
            at = int(np.argmax(outside))
            raise InvalidInput(
                f"values[{at}] is {values[at]:g}, outside reward_range ({self.low:g}, {self.high:g}), which "
                f"must contain every result; state sigma or noise if single results may lie outside; {STATEMENTS}"
            )

    def terms(self, values: Array, samples: Array) -> Array:
        up, down = (values - self.low) / self.span, (self.high - values) / self.span
        inside = (samples == 1.0) & (up > 0.0) & (down > 0.0)
        known = np.where(inside, 0.0, samples)
        return np.stack((up * samples, down * samples, up * known, down * known, inside), axis=1)

    def mean(self, seen: Record) -> float:
        up, down = float(seen.sums[0]), float(seen.sums[1])
        # From the nearer end, so that means next to an end keep their digits.
        near = self.low + self.span * (up / (up + down)) if up < down else self.high - self.span * (down / (up + down))
        return min(max(near, self.low), self.high)

    def interval(self, seen: Record, level: float) -> Interval:
        data = self._tally(seen)
        low = self.low + self.span * lowest(data, level)
        high = self.high - self.span * lowest(data.mirrored(), level)
        mean = self.mean(seen)
        return max(min(low, mean), self.low), min(max(high, mean), self.high)

    def log_evalue(self, seen: Record, mean: float) -> float:
        return self._log_evalue(self._tally(seen), mean)

    def _log_evalue(self, data: Tally, mean: float) -> float:
        p, rest = (mean - self.low) / self.span, (self.high - mean) / self.span
        # Next to the upper end 1 − p keeps its digits.
        return log_wealth(data, p) if p <= 0.5 else log_wealth(data.mirrored(), rest)

    def log_path(self, seen: Record, mean: float) -> tuple[Array, Array]:
        rows = np.cumsum(self.terms(seen.values, seen.samples), axis=0)
        p = (mean - self.low) / self.span
        ahead = rows[:, 0] * (1.0 - p) - rows[:, 1] * p
        if not 0.0 < p < 1.0:
            # One result away from this end refutes it.
            return np.where(rows[:, 0 if p <= 0.0 else 1] > 0.0, math.inf, 0.0), ahead
        between = self._between(seen)
        count = 64 + 3 * math.isqrt(int(rows[-1, 0] + rows[-1, 1]))
        if not between.any():
            logs = log_beta_path(rows[:, 2], rows[:, 3], p)
        elif count <= _MOST_NODES:
            up, down = (seen.values - self.low) / self.span, (self.high - seen.values) / self.span
            logs = log_path(rows[:, 2], rows[:, 3], np.where(between, up, math.nan), down, p, count)
        else:  # few values that stand for very many results
            logs = np.array([self._log_evalue(self._tally(seen, t), mean) for t in range(1, len(rows) + 1)])
        return logs, ahead

    def _between(self, seen: Record) -> NDArray[np.bool_]:
        between: NDArray[np.bool_] = (seen.samples == 1.0) & (seen.values > self.low) & (seen.values < self.high)
        return between

    def _tally(self, seen: Record, t: int | None = None) -> Tally:
        """The first t results; all by default."""
        if t is not None:
            first = seen.values[:t], seen.samples[:t]
            ones, zeros = (float(total) for total in self.terms(*first)[:, 2:4].sum(axis=0))
            values = first[0][self._between(seen)[:t]]
        else:
            ones, zeros = float(seen.sums[2]), float(seen.sums[3])
            values = seen.values[self._between(seen)] if seen.sums[4] else seen.values[:0]
        return tally(ones, zeros, (values - self.low) / self.span, (self.high - values) / self.span)
