"""The mean of a finite list of numbers, some of which were drawn without replacement.

| symbol | meaning |
|---|---|
| K, μ | the length of the list, and its mean |
| x_1 … x_n | the numbers drawn so far, in [0, 1], in the order of drawing |
| S_t | x_1 + … + x_t |
| m_t(μ) = (Kμ − S_{t−1})/(K − t + 1) | the mean of the numbers that are left before the t-th draw |

Two bounds hold. One is certain: S_n/K ≤ μ ≤ (S_n + K − n)/K, because numbers that are left lie in [0, 1]. And if each
draw is uniform among the numbers left, whatever happened before, then x_t has the expectation m_t(μ), so that
Π_t (1 − g + g·x_t/m_t(μ)) is a nonnegative martingale for every g in [0, 1], and so is the mean of several of them. By
Ville's inequality it reaches 1/δ with a probability of at most δ, however many are drawn and for whatever reason
(Waudby-Smith & Ramdas 2020, in the form of a bet of a fixed share g of the wealth). It decreases in μ: a lower bound is
where it falls below 1/δ. An upper bound is the lower bound for the numbers 1 − x.
"""

from __future__ import annotations

import math

import numpy as np

from mixbandit._checks import Array
from mixbandit.means.kinds import Interval
from mixbandit.spending import level_of_each

# The shares of wealth that are bet: small ones for numbers that scatter, all of it for numbers that hardly do.
SHARES = np.array([0.05, 0.15, 0.3, 0.5, 0.75, 1.0])
# Halving an interval in [0, 1] this often leaves less than rounding.
_HALVINGS = 60


def mean_of_finite_list(drawn: Array, count: int, reward_range: Interval | None, delta: float) -> Interval:
    """An interval for the mean of `count` numbers in the range, given those `drawn`, in the order of drawing.

    Once all are drawn, it is a point. Until then it covers the mean with probability ≥ 1−δ, for all numbers of draws
    at once, if each draw was uniform among the numbers that were left. Without a range nothing bounds the others.
    """
    if len(drawn) == count:
        mean = float(np.mean(drawn))
        return mean, mean
    if reward_range is None:
        return -math.inf, math.inf
    low, high = reward_range
    unit = np.clip((drawn - low) / (high - low), 0.0, 1.0)
    lower, upper = _lowest(unit, count, delta), 1.0 - _lowest(1.0 - unit, count, delta)
    return low + (high - low) * lower, low + (high - low) * upper


def _lowest(drawn: Array, count: int, delta: float) -> float:
    """The lower end, at δ/2: the larger of the two bounds."""
    outside, inside = float(drawn.sum()) / count, 1.0
    enough = level_of_each(-math.log(delta), math.log(2.0))
    if _log_wealth(drawn, count, outside) < enough:
        return outside
    for _ in range(_HALVINGS):
        middle = 0.5 * (outside + inside)
        if _log_wealth(drawn, count, middle) >= enough:
            outside = middle
        else:
            inside = middle
    return outside


def _log_wealth(drawn: Array, count: int, mean: float) -> float:
    """The logarithm of the martingale at a mean ≥ S_n/K."""
    before = np.concatenate(([0.0], np.cumsum(drawn)[:-1]))
    left = np.maximum(count * mean - before, 0.0) / (count - np.arange(len(drawn)))
    # 0 counts as 0, also where nothing is left; rounding may leave nothing for the last of several numbers.
    ratios = np.where(drawn > 0.0, drawn / np.maximum(left, np.finfo(np.float64).tiny), 0.0)
    with np.errstate(divide="ignore"):  # a bet of everything on a number that was 0
        logs = np.log(1.0 - SHARES[:, None] + SHARES[:, None] * ratios).sum(axis=1)
    most = float(logs.max())
    return most + math.log(float(np.exp(logs - most).mean()))
