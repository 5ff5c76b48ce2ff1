"""Is a challenger worse than the best of the others? Evidence that may be looked at after every step.

A challenger and m others are measured step by step: on the same folds, seeds, instances or prompts. At each step the
challenger is compared with one opponent, the one that leads on the steps *before*.

| symbol | meaning |
|---|---|
| c_k, b_k | the rewards of the challenger and of its opponent at step k |
| d_k = c_k − b_k | their difference |
| s_k | (Σ_{i≤k} d_i²/k)^½, the size of the differences so far, the k-th included |
| u, g | how boldly to bet: several at once, each with an equal part of the wealth |

The wealth of someone who bets that the challenger is worse is the mean over bets of Π_k f(d_k), with one of

- f(d_k) = 2/(1 + exp(2u·d_k/s_k)). It falls in d_k, and f(d) + f(−d) = 2 for whatever |d| and the past are: its
  expectation is at most 1 if d_k, given the steps before, is symmetric around a number ≥ 0. Nothing else is assumed,
  neither a scale nor moments. For Gaussian differences it is close to the best bet that there is.
- f(d_k) = 1 − g·d_k/(high − low), for rewards in [low, high]: at most 1 in expectation if the mean of d_k is ≥ 0.
- f(d_k) = exp(−u·z_k − u²/2), z_k = d_k/τ, for differences that are τ-sub-Gaussian: the same. τ is σ√2 if the noises
  of both are σ-sub-Gaussian and independent, and 2σ whatever they have to do with each other.

So if the challenger is at least as good as every other, and steps are independent of each other, the wealth is a
supermartingale: it ever reaches 1/δ with probability ≤ δ (Ville), however often one looks. The best of many others
is lucky where it was chosen by the same numbers that it is compared by. Here it never is: the leader on the steps
before has no more luck in the next one than anybody else. That is why the number of others costs nothing.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mixbandit._checks import Array
from mixbandit.means.finite import SHARES
from mixbandit.means.kinds import Range

# A difference of one standard deviation of a single reward is best bet on with u of about .9.
_BOLDNESS = np.array([0.25, 0.5, 1.0, 2.0])
_BOLDNESS_OF_LEVEL = np.array([0.25, 0.5, 1.0, 2.0, 4.0])


class Bets(Protocol):
    """Bets that differences are negative."""

    count: int

    def log_factors(self, differences: Array) -> Array:
        """(n, count): what each bet multiplies the wealth by, for n differences that could have come."""
        ...


class SymmetricBets:
    """On differences that are symmetric around their centre, whatever their scale is."""

    count = len(_BOLDNESS)

    def __init__(self) -> None:
        self._norm, self._steps = 0.0, 0

    def log_factors(self, differences: Array) -> Array:
        self._steps += 1
        size = np.hypot(self._norm, differences) / math.sqrt(self._steps)  # squares of large numbers would overflow
        self._norm = math.hypot(self._norm, *(differences / math.sqrt(len(differences))).tolist())
        z = np.divide(differences, size, out=np.zeros_like(differences), where=size > 0.0)
        found: Array = math.log(2.0) - np.logaddexp(0.0, 2.0 * z[:, None] * _BOLDNESS)
        return found


class RangeBets:
    """On the mean of differences of rewards in a known range."""

    count = len(SHARES)

    def __init__(self, reward_range: Range) -> None:
        self._width = reward_range[1] - reward_range[0]

    def log_factors(self, differences: Array) -> Array:
        with np.errstate(divide="ignore"):  # all of the wealth can be lost
            found: Array = np.log1p(-np.clip(differences / self._width, -1.0, 1.0)[:, None] * SHARES)
        return found


class LevelBets:
    """On the mean of differences of a known level."""

    count = len(_BOLDNESS_OF_LEVEL)

    def __init__(self, level: float) -> None:
        self._level = level

    def log_factors(self, differences: Array) -> Array:
        found: Array = -differences[:, None] / self._level * _BOLDNESS_OF_LEVEL - 0.5 * _BOLDNESS_OF_LEVEL**2
        return found


class Challenge:
    """One challenger against `others`, step by step; `pvalue` is of "it is at least as good as each of them"."""

    def __init__(self, others: int, *bets: Bets) -> None:
        self._bets = bets
        self._log_wealth = np.zeros(sum(each.count for each in bets))
        # How far each of the others was ahead of the challenger, in all, and over how many steps.
        self._ahead, self._compared = np.zeros(others), np.zeros(others)
        self._most = 0.0
        self.steps = 0
        self.leader: int | None = None  # the last opponent; None if there was no single one

    @property
    def pvalue(self) -> float:
        """It may be read after any step, and never rises."""
        return math.exp(-self._most)

    def step(self, reward: float, others: Array) -> None:
        """The challenger's reward at the next step, and those of the others, (m,), NaN where there is none."""
        with np.errstate(over="ignore", under="ignore"):  # whatever a user's program does about them
            self._step(reward, others)

    def _step(self, reward: float, others: Array) -> None:
        there = np.isfinite(reward - others)
        if not there.any():
            return
        opponents = np.flatnonzero(self._leading(there))
        differences = reward - others[opponents]
        factors = np.concatenate([each.log_factors(differences) for each in self._bets], axis=1)
        # Where nobody leads yet, the bets are spread over all opponents.
        self._log_wealth += np.logaddexp.reduce(factors, axis=0) - math.log(len(opponents))
        total = float(np.logaddexp.reduce(self._log_wealth)) - math.log(len(self._log_wealth))
        self._most = max(self._most, total)
        self.steps += 1
        self.leader = int(opponents[0]) if len(opponents) == 1 else None
        self._ahead[there] += others[there] - reward
        self._compared[there] += 1.0

    def _leading(self, there: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Who of those that are there leads, on the steps before."""
        known = there & (self._compared > 0.0)
        if not known.any():
            return there
        margins = np.full(len(there), -np.inf)
        margins[known] = self._ahead[known] / self._compared[known]
        found: NDArray[np.bool_] = margins == margins.max()
        return found
