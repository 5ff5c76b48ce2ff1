"""Refutation: what the data say about the assumptions, and an answer to "how do I choose σ and the norm bound?".

**Emptiness.** Under true assumptions the set is empty with probability at most δ, at all times together. So any σ or
norm bound that would make it empty is refuted at level δ, by the same event that the bounds rest on, at no extra cost.

- A larger norm bound only enlarges the set, so there is a least one that the data allow.
- Noise that is σ-sub-Gaussian is so at every larger σ too. The refuted levels are those below which *every* set is
  empty: the true level is among them with probability at most δ.

**Noise.** A fixed linear mixture never makes the residual ball smaller than the least-squares residual, so rewards
noisier than σ allows do not empty it by themselves. A mixture that expects more noise does: for the
mixtures N(0, cΦΦᵀ + κσ²I), which are as valid as any,

    2 ln E_{c,κ}(θ) = (‖Φθ − r‖² − q_{c,κ})/σ² − t ln(1+κ) − Σ_i ln(1 + s_i/a),   a = σ²(1+κ)/c,
    q_{c,κ} = min_θ (‖Φθ − r‖² + a‖θ‖²)/(1+κ),

and the mean of E_{c,κ} over a list of c and κ is an e-value against θ* = θ. It depends on θ only through ‖Φθ − r‖, so
every θ of the norm ball is refuted at once when the mean exceeds 1/δ at the least residual over that ball. With a norm
bound this sees functions that only huge parameters would fit; without one the least-squares residual is all there is.
This test has its own δ.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from mixbandit.data import Data, Decomposed
from mixbandit.sequences.response import Response
from mixbandit.sets import ResidualBall
from mixbandit.spending import Parts, Spending

# 1 + κ: suspected noise variances, as multiples of the stated one.
_INFLATIONS = 2.0 ** np.arange(0.5, 21.0, 0.5)
_LEAST_INFLATION = float(_INFLATIONS[0])
# c: sizes of the parameter that the mixtures expect, as multiples of B²/d.
_SHARES = (1.0, 0.1, 0.01)
# The d of a kernel, for that purpose.
_NOMINAL = 10
_EPS = float(np.finfo(np.float64).eps)
# Norm bounds and noise levels are searched for within this factor of the stated one.
_REACH = 1e6
# Times of tests grow by this factor, as a logarithm.
_LATER = math.log(1.1)
# A norm bound beyond this would be refused.
_NEVER = 1e20
# Residuals below or above this multiple of σ are worth a hint.
_FAR_BELOW, _FAR_ABOVE = 0.5, 1.5
# Singular values of the features further apart than this look collinear.
_COLLINEAR = 1e6


def parts_of_tests(delta: float, *, suspects: bool = False) -> Parts:
    """How the tests of a rule share the δ that they have beside that of the bounds: suspects, if any, have half."""
    whole = Spending(delta)
    return whole.named(noise=0.5, suspects=0.5) if suspects else whole.named(noise=1.0)


def scales_of(norm_bound: float, dim: int | None) -> tuple[float, ...]:
    """Variances c of the entries of a parameter of about this norm, or of a smaller one."""
    return tuple(share * norm_bound**2 / (dim or _NOMINAL) for share in _SHARES)


def least_residual(spectrum: Decomposed, norm_bound: float) -> float:
    """The least ‖Φθ − r‖² over ‖θ‖ ≤ B, rounded down: what may be a rounding error must not count as noise."""
    certain = spectrum.residual(norm_bound)
    if not spectrum.rank or float(np.linalg.norm(spectrum.z / spectrum.singular)) <= norm_bound:
        return certain
    top = float(spectrum.singular[0])
    # The multiplier at which ridge regression has norm B, in units of the largest singular value.
    alpha = ResidualBall(spectrum, 0.0, norm_bound, start=1.0).nearest_alpha
    short = float(np.linalg.norm(alpha / ((spectrum.singular / top) ** 2 + alpha) * spectrum.z))
    directions = spectrum.rank + len(spectrum.lost_z)
    rounding = 4.0 * directions * _EPS * (top * norm_bound + float(np.linalg.norm(spectrum.z)))
    return certain + max(short - rounding, 0.0) ** 2


class Glimpse(NamedTuple):
    """What ridge regression at α says of residuals."""

    alpha: float
    loss: float  # min_θ ‖Φθ − r‖² + α‖θ‖²
    norm2: float  # ‖θ̂_α‖²
    towards: float  # how much more than the loss the residual is at a point of the norm ball
    size2: float  # the sum of squared lengths of all rows
    dim: int


@dataclass(frozen=True)
class NoiseTest:
    """Whether residuals of every linear function in the norm ball are larger than σ allows, by a test at level δ.

    Expected rewards may differ from linear ones by up to `deviation`, as a vector. Spectra are those of rows and
    rewards multiplied by σ/σ_k.
    """

    sigma: float
    delta: float
    norm_bound: float | None  # None: any parameter is possible
    scales: tuple[float, ...]  # c of the mixtures

    @functools.cached_property
    def least_alpha(self) -> float:
        """At most the smallest multiplier a of the mixtures."""
        return self.sigma**2 / max(self.scales)

    def glance(self, ridge: Glimpse, t: int) -> bool | None:
        """The verdict after t rewards where ridge regression at one α tells; None where it does not."""
        variance, a, alpha = self.sigma**2, self.least_alpha, ridge.alpha
        # What the mixtures pay for the rewards is at least the loss at `least_alpha`, in which it is concave; its
        # derivative there is at most (α/least_alpha)²‖θ̂_α‖².
        paid = ridge.loss
        if alpha > a:
            paid = max(paid * a / alpha, paid - alpha * ridge.norm2 * (alpha / a - 1.0))
        if not self.may_refute(max(ridge.loss + ridge.towards, 0.0), paid, t):
            return False
        if self.norm_bound is None:
            return None
        # In the norm ball ‖Φθ − r‖² ≥ loss − α‖θ‖², and at θ̂_α the cost of a mixture is at least what it really is.
        nearest = max(ridge.loss - alpha * self.norm_bound**2, 0.0)
        multipliers = variance * _INFLATIONS / np.array(self.scales)[:, None]
        paid_at_most = (ridge.loss + (multipliers - alpha) * ridge.norm2) / _INFLATIONS
        volume = t * np.log(_INFLATIONS) + ridge.dim * np.log1p(ridge.size2 / (ridge.dim * multipliers))
        twice = (nearest - paid_at_most) / variance - volume
        at_least = float(np.logaddexp.reduce(0.5 * twice, axis=None)) - math.log(twice.size)
        return True if at_least >= -math.log(self.delta) else None

    def refutes(self, spectrum: Decomposed, t: int, deviation: float = 0.0) -> bool:
        """The verdict after t rewards."""
        if not self.may_refute(self._most(spectrum), spectrum.outside, t, deviation):
            return False
        residual = self.residual(spectrum)
        if not self.may_refute(residual, spectrum.outside, t, deviation):
            return False
        return self.log_evalue(spectrum, t, residual, deviation) >= -math.log(self.delta)

    def may_refute(self, residual: float, least_squares: float, t: int, deviation: float = 0.0) -> bool:
        """A cheap necessary condition: no c or κ can do better than this.

        `residual` is that of any point of the norm ball, and `least_squares` at most that of any point at all.
        """
        if not t:
            return False
        # q ≥ least_squares/(1+κ), and the volume is at least t ln(1+κ).
        variance = self.sigma**2
        inflation = max(least_squares / (t * variance), _LEAST_INFLATION)
        nearest = beyond(residual, deviation)
        twice = (nearest - least_squares / inflation) / variance - t * math.log(inflation)
        return twice >= -2.0 * math.log(self.delta)

    def residual(self, spectrum: Decomposed) -> float:
        """The least ‖Φθ − r‖² over the parameters that are possible, rounded down."""
        if self.norm_bound is None:
            return spectrum.residual(1.0)
        return least_residual(spectrum, self.norm_bound)

    def log_evalue(self, spectrum: Decomposed, t: int, residual: float | None = None, deviation: float = 0.0) -> float:
        """Ln of the mean of E_{c,κ} at a squared residual, by default the least one."""
        nearest = beyond(self.residual(spectrum) if residual is None else residual, deviation)
        a = (self.sigma**2 * _INFLATIONS / np.array(self.scales)[:, None])[..., None]  # (scales, inflations, 1)
        s, lost = spectrum.singular**2, spectrum.lost_singular**2
        shrunk = np.sum(a / (s + a) * spectrum.z**2, axis=-1) + np.sum(a / (lost + a) * spectrum.lost_z**2, axis=-1)
        volume = t * np.log(_INFLATIONS) + np.sum(np.log1p(s / a), axis=-1) + np.sum(np.log1p(lost / a), axis=-1)
        twice = (nearest - (spectrum.outside + shrunk) / _INFLATIONS) / self.sigma**2 - volume
        return float(np.logaddexp.reduce(0.5 * twice, axis=None) - math.log(twice.size))

    def _most(self, spectrum: Decomposed) -> float:
        """The residual at least squares, or at the end of the norm ball towards it."""
        found = spectrum.outside + float(spectrum.lost_z @ spectrum.lost_z)
        if self.norm_bound is None:
            return found
        estimate = spectrum.z / spectrum.singular
        norm = math.sqrt(float(estimate @ estimate))
        if norm > self.norm_bound:
            found += (1.0 - self.norm_bound / norm) ** 2 * float(spectrum.z @ spectrum.z)
        return found


def is_due(t: int, more: int = 1) -> bool:
    """Whether a test that takes a decomposition is made after t rewards, of which `more` came at once.

    Any set of times is valid. These grow by a tenth each, so that rounds cost no decomposition.
    """
    return t >= more and _power(t) > _power(t - more)


def _power(t: int) -> int:
    return int(math.log(t) / _LATER) if t > 0 else -1


def beyond(residual: float, deviation: float) -> float:
    """What a squared residual leaves unexplained by a deviation."""
    return max(math.sqrt(residual) - deviation, 0.0) ** 2 if deviation else residual


@dataclass(frozen=True)
class Audit:
    """The findings; `str` gives them as sentences."""

    t: int
    delta: float
    refuted: bool  # the set is empty: the stated assumptions together are refuted at level δ
    stated_norm_bound: float
    least_norm_bound: float  # smaller ones are refuted at level δ; 0 if none is, inf if all are
    stated_sigma: float | None  # None where the noise level is not stated but learnt
    refuted_sigma: float | None  # it and smaller ones are refuted at level δ; None where unknown
    residual_spread: float | None  # root mean square of least-squares residuals; None with no rewards to spare
    unseen_directions: int  # dimensions of the features in which nothing was measured
    condition: float  # ratio of the largest to the least singular value of the features seen
    reward_range: tuple[float, float] | None = None
    misspecification: float = 0.0
    noise_refuted: bool = False  # residuals of every function in the norm ball are larger than σ allows, at level δ
    suspect_refuted: bool = False  # suspected functions predict the rewards too well, at level δ
    levels_given: bool = False  # rewards came with their own noise levels, which scale with σ
    kernel: bool = False  # whether functions are those of a kernel, not linear ones of features
    noise_tested: bool = True  # False: nothing here can tell that the noise is larger than σ allows

    @property
    def norm_bound_refuted(self) -> bool:
        return self.least_norm_bound > self.stated_norm_bound

    @property
    def sigma_refuted(self) -> bool:
        known = self.refuted_sigma is not None and self.stated_sigma is not None
        return known and self.refuted_sigma >= self.stated_sigma  # type: ignore[operator]

    @property
    def sentences(self) -> tuple[str, ...]:
        """What a practitioner should know, most important first; findings that are only likely are marked as hints."""
        level = f"at level {self.delta:g}"
        found = []
        if self.noise_refuted:
            found.append(
                f"REFUTED {level}: residuals of every {self._function} with norm_bound={self.stated_norm_bound:g} are "
                f"larger than {self._sigma()} allows. One of them is too small, or {self._not_so}{self._up_to}."
            )
        if self.suspect_refuted:
            found.append(
                f"REFUTED {level}: suspected functions, such as rougher ones, predict these {self.t} rewards far "
                f"better than any {self._function} with norm_bound={self.stated_norm_bound:g} can explain them."
            )
        if self.refuted:
            found.append(
                f"REFUTED {level}: no {self._function} satisfies {self._sigma(' and ')}"
                f"norm_bound={self.stated_norm_bound:g} on these {self.t} rewards. "
                f"{'It' if self.stated_sigma is None else 'One of them'} is too small, or "
                f"{self._not_so}{self._up_to}."
            )
        elif not (self.noise_refuted or self.suspect_refuted):
            found.append(f"The {self.t} rewards do not contradict the assumptions {level}.")
        if not self.noise_tested:
            found.append("Whether the noise is larger than stated is not tested.")
        if math.isinf(self.least_norm_bound):
            found.append("No norm bound, however large, would help.")
        elif self.least_norm_bound > 0.0:
            found.append(
                f"{'These' if self.stated_sigma is None else f'With {self._sigma()} these'} data need "
                f"norm_bound ≥ {self.least_norm_bound:.4g} "
                f"(stated: {self.stated_norm_bound:.4g}); smaller ones are refuted {level}."
            )
        if self.reward_range is not None:
            found.append(f"reward_range={self.reward_range} is tested when bounds are computed, not here.")
        if self.refuted_sigma:
            found.append(
                f"With norm_bound={self.stated_norm_bound:g} noise levels up to {self.refuted_sigma:.4g} are refuted "
                f"{level} (stated: {self.stated_sigma:.4g}"
                f"{'; levels given with rewards scale with it' if self.levels_given else ''})."
            )
        found += self._hints()
        return tuple(found)

    def without_repeats(self) -> Audit:
        """The same without a word about repeated actions, for those who test them on their own."""
        return self

    def _sigma(self, joined: str = "") -> str:
        """The stated noise level, where there is one."""
        return "" if self.stated_sigma is None else f"sigma={self.stated_sigma:g}{joined}"

    @property
    def _function(self) -> str:
        return "function of the kernel" if self.kernel else "linear function"

    @property
    def _not_so(self) -> str:
        missing = "does not lie in the kernel's function space" if self.kernel else "is not linear in the features"
        return f"the expected reward {missing}"

    @property
    def _up_to(self) -> str:
        return f" up to misspecification={self.misspecification:g}" if self.misspecification else ""

    def _hints(self) -> list[str]:
        hints, spread, sigma = [], self.residual_spread, self.stated_sigma
        if spread is not None and sigma is not None and not self.levels_given:  # else it is of weighted residuals
            if spread < _FAR_BELOW * sigma:
                hints.append(
                    f"Hint, not proven: the residual spread {spread:.4g} is below the stated sigma={sigma:.4g}. If "
                    "you know that a smaller sigma holds, it gives narrower bounds."
                )
            if spread > _FAR_ABOVE * math.hypot(sigma, self.misspecification):
                hints.append(
                    f"Hint, not proven: the residual spread {spread:.4g} exceeds the stated sigma={sigma:.4g}. "
                    f"Sigma may be too small, or {self._not_so}."
                )
        if self.unseen_directions:
            plural = "" if self.unseen_directions == 1 else "s"
            hints.append(f"Nothing was measured in {self.unseen_directions} direction{plural} of the features.")
        elif self.condition > _COLLINEAR:
            hints.append(
                f"The features look collinear: one direction is measured {self.condition:.1g} times as "
                "strongly as another."
            )
        return hints

    def __str__(self) -> str:
        return "\n".join(self.sentences)


BallIf = Callable[[float, float], ResidualBall | None]
"""The set if σ and the norm bound were stated like this; None where unknown."""


class Auditable(Protocol):
    """A rule whose sets are residual balls cut by the norm ball."""

    delta: float
    sigma: float | None
    norm_bound: float

    def ball(self, data: Data) -> ResidualBall: ...

    def ball_if(self, data: Data, sigma: float | None, norm_bound: float) -> ResidualBall | None: ...

    def residual_spread(self, data: Data) -> float | None: ...

    def noise_refuted(self, data: Data) -> bool: ...

    def suspect_refuted(self, data: Data) -> bool: ...


def audit(rule: Auditable, data: Data, response: Response) -> Audit:
    """What the data say about the assumptions of a rule."""
    sigma, norm_bound, spectrum = rule.sigma, rule.norm_bound, data.spectrum

    def ball_if(level: float, bound: float) -> ResidualBall | None:
        return rule.ball_if(data, None if sigma is None else level, bound)

    return Audit(
        t=data.count,
        delta=rule.delta,
        refuted=rule.ball(data).is_empty,
        stated_norm_bound=norm_bound,
        least_norm_bound=_least_norm_bound(ball_if, sigma or 0.0, norm_bound),
        stated_sigma=sigma,
        refuted_sigma=None if sigma is None else _refuted_sigma(ball_if, sigma, norm_bound),
        residual_spread=rule.residual_spread(data),
        unseen_directions=0 if data.dim is None else data.dim - spectrum.rank,
        # A kernel's sections nearly always look collinear; that does no harm.
        condition=float(spectrum.singular[0] / spectrum.singular[-1]) if spectrum.rank and data.dim else 1.0,
        reward_range=response.range,
        misspecification=response.deviation,
        noise_refuted=rule.noise_refuted(data),
        suspect_refuted=rule.suspect_refuted(data),
        levels_given=data.weight2 != data.count,
        kernel=data.dim is None,
    )


def _least_norm_bound(ball_if: BallIf, sigma: float, norm_bound: float) -> float:
    def empty(bound: float) -> bool:
        ball = ball_if(sigma, bound)
        return ball is not None and ball.is_empty

    low, high = norm_bound / _REACH, norm_bound * _REACH
    if not empty(low):
        return 0.0
    while empty(high):
        if high > _NEVER:
            return math.inf
        low, high = high, high * _REACH
    return _boundary(empty, low, high)


def _refuted_sigma(ball_if: BallIf, sigma: float, norm_bound: float) -> float | None:
    def empty(level: float) -> bool:
        ball = ball_if(level, norm_bound)
        return ball is not None and ball.is_empty

    low = sigma / _REACH
    if ball_if(low, norm_bound) is None:
        return None
    if not empty(low):
        return 0.0
    # Upwards in small steps: the levels must be refuted without a gap.
    step = 10.0**0.125
    while low < sigma * _REACH and empty(low * step):
        low *= step
    return _boundary(empty, low, low * step)


def _boundary(empty: Callable[[float], bool], low: float, high: float) -> float:
    """The largest value found at which the set is empty; it is empty at `low` and not at `high`."""
    while high > low * (1.0 + 1e-9):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if empty(middle) else (low, middle)
    return low
