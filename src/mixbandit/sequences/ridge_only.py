"""The paper's set with a mixture N(0, cΦΦᵀ), kept as nothing but ridge regression at α₀ = σ²/c.

That is enough for the closed form at α₀, for the tests of the assumptions in most rounds, and, by a decomposition, for
everything else. `Blocks` keeps thousands of arms so.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from mixbandit.data import About, Factor, Recovered, Ridge, Ridges, widened
from mixbandit.sequences.refutation import Glimpse, NoiseTest

_EPS = float(np.finfo(np.float64).eps)
# Rows this much shorter than √α would be lost next to it, and those this much longer would leave few digits of √α.
_LEAST_SIZE, _LARGEST_SIZE = 1e-4, 0.99e5


class Verdict(NamedTuple):
    """What is known about an arm's assumptions without a decomposition; None: that takes one."""

    is_empty: bool | None
    noise_refuted: bool | None


class RidgeOnly(NamedTuple):
    """A rule of one arm."""

    alpha: float  # α₀
    sigma: float
    norm_bound: float
    delta_term: float  # 2σ² ln(1/δ)
    noise: NoiseTest

    def start(self, dim: int, arms: int) -> Ridges:
        """Ridge regressions without rewards."""
        return Ridges(self.alpha, dim).extended(arms)

    def radius(self, ridges: Ridges, arm: int) -> float:
        """The radius of the closed form at α₀, widened by what rounding may have done."""
        return self.examined(ridges, arm)[0]

    def examined(self, ridges: Ridges, arm: int) -> tuple[float, Verdict, About]:
        """The same, whether the rewards of the arm refute the assumptions, and what else is known of it."""
        ridge, known = ridges.of(arm), ridges.about(arm)
        bound2, allowed = self.norm_bound**2, self.sigma**2 * ridge.log_det + self.delta_term
        radius = math.sqrt(allowed + self.alpha * bound2)
        if not known.rewards:
            return radius, Verdict(False, False), known
        white2 = float(ridge.white.dot(ridge.white))
        relative = 4.0 * math.sqrt(len(ridge.theta)) * _EPS + known.slack
        reach = math.sqrt((known.size2 + self.alpha) * bound2)
        radius = widened(radius, relative * (reach + math.sqrt(ridge.loss + white2)))
        towards = ridge.towards(self.norm_bound)
        occupied = ridge.norm2 <= bound2 or towards <= allowed
        glimpse = Glimpse(self.alpha, ridge.loss, ridge.norm2, towards, known.size2, len(ridge.theta))
        return radius, Verdict(False if occupied else None, self.noise.glance(glimpse, known.rewards)), known

    def keeps_digits(self, size2: float) -> bool:
        """Whether ridge regression at α₀ has enough digits of rows with this sum of squared lengths."""
        return size2 == 0.0 or _LEAST_SIZE**2 <= size2 / self.alpha <= _LARGEST_SIZE**2

    def data(self, ridges: Ridges, arm: int) -> Factor:
        """The data of an arm, for its own confidence set."""
        known = ridges.about(arm)
        return Recovered(ridges.of(arm), known.rewards, known.size2, known.slack).data

    def taken(self, data: Factor) -> tuple[Ridge, About] | None:
        """Ridge regression of data, and what else `Ridges` know of an arm; None where that loses digits."""
        ridge, size2 = data.ridge(self.alpha), data.sizes2[0]
        if not (ridge.is_accurate and self.keeps_digits(size2)):
            return None
        return ridge, About(size2, data.folded.error, data.count)
