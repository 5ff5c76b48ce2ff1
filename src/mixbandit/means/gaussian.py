"""Values of Gaussian noise, or noise with tails like it: of a stated level, or of one that is learnt."""

from __future__ import annotations

import math

import numpy as np

from mixbandit._checks import LARGEST_DATUM, Array, check_finite
from mixbandit.errors import STATEMENTS, AssumptionsRefuted, InvalidInput
from mixbandit.means.kinds import Interval, Range, Record

PRIOR_SCALE = 1.0
"""g: the mixtures draw the mean from N(μ, gσ²). At δ = 5 % and g = 1, bounds are tightest after some 10 values."""


class KnownLevel:
    """σ-sub-Gaussian values: E(μ) = (1+Tg)^{-½} exp(g(Σw(x−μ))²/(2σ²(1+Tg))), T = Σw. The sums are T and Σwx.

    A value of level σ_k counts as w = (σ/σ_k)² values of level σ, which are not necessarily a whole number of them.
    """

    width, counts_samples, multiplies = 2, False, True

    def __init__(self, sigma: float, reward_range: Range | None) -> None:
        self.sigma, self.range = sigma, reward_range

    def check(self, values: Array, seen: Record) -> None:
        check_finite(values, "values", LARGEST_DATUM)

    def terms(self, values: Array, samples: Array) -> Array:
        return np.stack((samples, samples * values), axis=1)

    def mean(self, seen: Record) -> float:
        return float(seen.sums[1] / seen.sums[0])

    def interval(self, seen: Record, level: float) -> Interval:
        t = float(seen.sums[0])
        spread = 1.0 + t * PRIOR_SCALE
        radius = self.sigma * math.sqrt(spread / (PRIOR_SCALE * t**2) * (2.0 * level + math.log(spread)))
        return capped(self.mean(seen), radius, self.range, f"sigma={self.sigma:g}")

    def log_evalue(self, seen: Record, mean: float) -> float:
        t, z = float(seen.sums[0]), (self.mean(seen) - mean) / self.sigma
        return _log_normal(t, t * z * (t * z)) if t else 0.0

    def log_path(self, seen: Record, mean: float) -> tuple[Array, Array]:
        ahead = np.cumsum(seen.samples * (seen.values - mean))
        spread = 1.0 + np.cumsum(seen.samples) * PRIOR_SCALE
        return PRIOR_SCALE * (ahead / self.sigma) ** 2 / (2.0 * spread) - 0.5 * np.log(spread), ahead


class UnknownLevel:
    """Gaussian values of one level that nobody states: the t mixture with the right-Haar prior on it.

    E(μ) = (1+tg)^{-½} ((V + td²)/(V + td²/(1+tg)))^{t/2}, V = Σ(x−x̄)², d = x̄ − μ. The sums are t and Σx.
    """

    width, counts_samples, multiplies = 2, False, False

    def __init__(self, reward_range: Range | None) -> None:
        self.range = reward_range

    def check(self, values: Array, seen: Record) -> None:
        check_finite(values, "values", LARGEST_DATUM)
        for end in self.range or ():
            if np.count_nonzero(values == end) + np.count_nonzero(seen.values == end) > 1:
                raise InvalidInput(
                    f"several values equal {end:g}, an end of reward_range: noise that piles up there is not "
                    "Gaussian, and bounds would be wrong; leave out noise to use the range alone, or state samples; "
                    f"{STATEMENTS}"
                )

    def terms(self, values: Array, samples: Array) -> Array:
        return np.stack((samples, values), axis=1)

    def mean(self, seen: Record) -> float:
        return float(seen.sums[1] / seen.sums[0])

    def interval(self, seen: Record, level: float) -> Interval:
        t, centre = len(seen.values), self.mean(seen)
        spread = 1.0 + t * PRIOR_SCALE
        log_ratio = (math.log(spread) + 2.0 * level) / t
        variation = float(((seen.values - centre) ** 2).sum())
        # Few values say nothing, as do equal ones, which Gaussian noise does not bring.
        if log_ratio >= math.log(spread) or np.ptp(seen.values) == 0.0:
            return self.range or (-math.inf, math.inf)
        excess = math.expm1(log_ratio)
        radius = math.sqrt(variation * excess / (t * (1.0 - (1.0 + excess) / spread)))
        return capped(centre, radius, self.range, 'noise="gaussian"')

    def log_evalue(self, seen: Record, mean: float) -> float:
        return float(self.log_path(seen, mean)[0][-1]) if len(seen.values) else 0.0

    def log_path(self, seen: Record, mean: float) -> tuple[Array, Array]:
        size = float(np.abs(seen.values - mean).max(initial=0.0)) or 1.0
        away = (seen.values - mean) / size
        t = np.arange(1.0, len(away) + 1.0)
        ahead, squares = np.cumsum(away), np.cumsum(away**2)
        spread = 1.0 + t * PRIOR_SCALE
        # Σ(x−μ)² and the part of it that the mixture cannot explain; equal values leave 1/(1+tg) of it.
        left = np.maximum(squares - PRIOR_SCALE * ahead**2 / spread, squares / spread)
        ratio = np.divide(squares, left, out=np.ones_like(left), where=squares > 0.0)
        logs = 0.5 * t * np.log(ratio) - 0.5 * np.log(spread)
        # Equal values are no evidence: see `interval`.
        differ = np.maximum.accumulate(away) > np.minimum.accumulate(away)
        return np.where(differ, logs, 0.0), ahead


def capped(centre: float, radius: float, reward_range: Range | None, stated: str) -> Interval:
    """The interval within the range; AssumptionsRefuted where nothing of it is left."""
    low, high = centre - radius, centre + radius
    if reward_range is None:
        return low, high
    least, most = reward_range
    if low > most or high < least:
        raise AssumptionsRefuted(
            f"at level delta the values refute {stated} with reward_range=({least:g}, {most:g}): the mean would lie in "
            f"[{low:.4g}, {high:.4g}]; pass reward_range=None if nothing bounds the mean"
        )
    return max(low, least), min(high, most)


def _log_normal(t: float, square: float) -> float:
    spread = 1.0 + t * PRIOR_SCALE
    return PRIOR_SCALE * square / (2.0 * spread) - 0.5 * math.log(spread)
