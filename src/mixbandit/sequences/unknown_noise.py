"""Gaussian noise of a constant, unstated level: the residual ball again, with another radius.

Universal inference: with any predictive density p of the rewards, a product of one-step ones, the ratio of p to the
likelihood maximised over σ is an e-value against θ* = θ,

    ln E(θ) = ln p(r₁, …, r_t) + (t/2)(ln(2π‖Φθ − r‖²/t) + 1),

so that with probability ≥ 1−δ, at all times at once and whatever chose the actions,

    ‖Φθ* − r‖² ≤ R² = (t/2π) exp((2/t)(ln(1/δ) − ln p(r₁, …, r_t)) − 1).

| symbol | meaning |
|---|---|
| θ ~ N(0, σ²cI) given σ, σ² ~ IG(a₀, b₀) | one member of the mixture that predicts |
| a_t = a₀ + t/2, b_t = b₀ + ½rᵀ(I + cΦΦᵀ)⁻¹r | what it has learnt |
| ln p_{c,b₀} | lnΓ(a_t) − lnΓ(a₀) + a₀ ln b₀ − a_t ln b_t − ½ ln det(I + cΦᵀΦ) − (t/2) ln 2π |

p averages the members of a grid over c and b₀, the latter in units of B². The grid suits any noise level between
10⁻⁸ and 10 times the norm bound, and costs ln 285 ≈ 5.7 nats.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from mixbandit._checks import Array, as_range, nonnegative, positive, probability
from mixbandit._lazy import setting
from mixbandit.data import Data
from mixbandit.errors import InvalidInput
from mixbandit.features import FeatureMap
from mixbandit.kernels import Kernel
from mixbandit.models import DataModel, single_model
from mixbandit.sequences.base import ResidualBallSequence
from mixbandit.sequences.response import Affine
from mixbandit.sequences.rules import BallRule
from mixbandit.sets import ResidualBall

_A0 = 0.5
_SCALES = 10.0 ** np.arange(-2.0, 13.0)  # c
_LEVELS = 10.0 ** np.arange(-16.0, 3.0)  # b₀ over B²
_NOTHING = 1e-9
_LOG_WEIGHT = -math.log(len(_SCALES) * len(_LEVELS))


class Evidence(NamedTuple):
    """How the mixture explains the rewards."""

    log_density: float  # ln p(r₁, …, r_t)
    scale: float  # c of the member that explains them best


class UnknownNoiseRule(BallRule):
    """The residual ball with the radius of universal inference."""

    kind = "unknown noise"

    def __init__(self, model: DataModel, norm_bound: float, delta: float, misspecification: float) -> None:
        super().__init__(model, delta, norm_bound)
        self.misspecification = misspecification

    def evidence(self, data: Data) -> Evidence:
        """The predictive density of the rewards, by the grid."""
        spectrum, t = data.spectrum, data.count
        squares = _SCALES[:, None] * spectrum.singular**2
        explained = (spectrum.z**2 / (1.0 + squares)).sum(axis=1)
        unexplained = spectrum.outside + float(spectrum.lost_z @ spectrum.lost_z)
        # Lost singular values explain nothing, but take up as much volume as they may: that is never too dense.
        volume = np.log1p(_SCALES[:, None] * spectrum.all_singular**2).sum(axis=1)
        b0 = self.norm_bound**2 * _LEVELS
        a, b = _A0 + 0.5 * t, b0 + 0.5 * (unexplained + explained)[:, None]
        known = math.lgamma(a) - math.lgamma(_A0) - 0.5 * t * math.log(2.0 * math.pi)
        logs = known + _A0 * np.log(b0) - a * np.log(b) - 0.5 * volume[:, None]
        best = np.unravel_index(int(np.argmax(logs)), logs.shape)
        density = float(np.logaddexp.reduce(logs, axis=None)) + _LOG_WEIGHT
        return Evidence(density, float(_SCALES[best[0]]))

    def radius2(self, data: Data) -> float:
        """R², the bound on ‖f* − r‖² for the expected rewards f*, linear or not."""
        t = data.count
        if not t:
            return 0.0
        spectrum, level = data.spectrum, -math.log(self.delta)
        log_radius2 = math.log(t / (2.0 * math.pi)) + 2.0 / t * (level - self.evidence(data).log_density) - 1.0
        # No function that the assumptions allow leaves a larger residual than this, and beyond it exp may overflow.
        top = float(spectrum.singular[0]) if spectrum.rank else 0.0
        rewards = math.sqrt(float(spectrum.z @ spectrum.z) + spectrum.residual(0.0))
        reach = top * self.norm_bound + rewards + self.misspecification * math.sqrt(t)
        most = (2.0 * reach) ** 2 + np.finfo(np.float64).tiny
        return float(most if log_radius2 >= math.log(most) else math.exp(log_radius2))

    def ball_if(self, data: Data, sigma: float | None, norm_bound: float) -> ResidualBall:
        # The grid stays that of the stated norm bound, so that one event covers all others that are tried.
        radius2 = self.radius2(data)
        margin = 2.0 * radius2 * -math.log(self.delta) / max(data.count, 1)
        deviation = self.misspecification * math.sqrt(data.count)
        radius2 = (math.sqrt(radius2) + deviation) ** 2
        start = self.alpha0(data)
        # Without data any excess will do: next to nothing, in the units of the norm ball.
        excess = radius2 - data.spectrum.residual(norm_bound) if data.count else _NOTHING * start * norm_bound**2
        rounding = data.rounding(norm_bound)
        return ResidualBall(data.spectrum, excess, norm_bound, start=start, margin=margin, rounding=rounding)

    def alpha0(self, data: Data) -> float:
        return 1.0 / self.evidence(data).scale

    def log_evalue(self, data: Data, theta: Array) -> float:
        if self.misspecification:
            raise InvalidInput("an e-value against one θ needs misspecification=0: it tests a linear function")
        t = data.count
        residual = self.ball(data).distance2(theta) + data.spectrum.residual(self.norm_bound)
        if not t or not residual:
            return -math.inf if t else 0.0
        return self.evidence(data).log_density + 0.5 * t * (math.log(2.0 * math.pi * residual / t) + 1.0)

    def stated(self) -> str:
        return f"Gaussian noise of one level, norm_bound={self.norm_bound:g}"


class UnknownNoise(ResidualBallSequence):
    """Θ_t = {θ : ‖Φθ − r‖ ≤ R_t, ‖θ‖ ≤ B} as in `MartingaleMixture`, for Gaussian noise of an unstated level.

    Assumed: expected rewards φ(a)ᵀθ* with ‖θ*‖ ≤ `norm_bound`, and Gaussian noise of any one constant level. With many
    more rewards than features the bounds are 1.1 to 1.2 times as wide as with a known level; with no more rewards than
    features they are necessarily wide. `alpha0` is 1/c of the member of the grid that explains the rewards best.

    Never use it for accuracies, clicks and the like: with single yes-or-no results the true parameter was missed far
    more often than δ allows (results/unknown-noise in the documentation). Their noise is known from their range.
    """

    keywords = ("delta", "norm_bound", "reward_range", "on_empty", "misspecification")

    misspecification: float = setting("moment.response.deviation", "How far expected rewards may be from linear ones.")

    def __init__(
        self,
        features: FeatureMap | Kernel | int,
        *,
        norm_bound: float,
        delta: float = 0.01,
        reward_range: tuple[float, float] | None = None,
        misspecification: float = 0.0,
        on_empty: str = "raise",
    ) -> None:
        model, deviation = single_model(features), nonnegative(misspecification, "misspecification")
        bound, level = positive(norm_bound, "norm_bound"), probability(delta, "delta")
        self._rule = UnknownNoiseRule(model, bound, level, deviation)
        ends = None if reward_range is None else as_range(reward_range, "reward_range")
        super().__init__(self._rule, Affine(deviation, ends), on_empty)

    @property
    def radius(self) -> float:
        """R, the bound on ‖f* − r‖ for the expected rewards f*, linear or not."""
        return math.sqrt(self._rule.radius2(self.moment.data))
