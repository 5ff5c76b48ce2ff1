"""What the data say about the assumptions: an answer to "how do I choose σ and the norm bound?".

Under true assumptions the set is empty with probability at most δ, at all times together. So whatever σ or norm
bound would make it empty is refuted at level δ, by the same event on which the bounds rest: it costs nothing.

- A larger norm bound only enlarges the set, so that there is a least one that the data allow.
- Noise that is σ-sub-Gaussian is so at every larger σ. Refuted are the levels below which *every* set is
  empty: then the true level is among them with probability at most δ.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from mixbandit.confidence.support import ResidualBall
from mixbandit.statistics import Spectrum

# Norm bounds and noise levels are looked for between the stated one divided and multiplied by this.
_REACH = 1e6
# A norm bound beyond this would be refused.
_NEVER = 1e20
# Residuals below or above this multiple of σ are worth a hint.
_FAR_BELOW, _FAR_ABOVE = 0.5, 1.5
# Singular values of the features further apart than this look collinear.
_COLLINEAR = 1e6


@dataclass(frozen=True)
class Audit:
    """The findings; `str` gives them as sentences."""

    t: int
    delta: float
    refuted: bool  # the set is empty: the stated assumptions together are refuted at level δ
    stated_norm_bound: float
    least_norm_bound: float  # smaller ones are refuted at level δ; 0 if none is, inf if all are
    stated_sigma: float
    refuted_sigma: float | None  # it and smaller ones are refuted at level δ; None where it cannot be told
    residual_spread: float | None  # root mean square of least-squares residuals; None without any to spare
    unseen_directions: int  # dimensions of the features in which nothing was measured
    condition: float  # ratio of the largest to the least singular value of the features seen
    reward_range: tuple[float, float] | None = None
    misspecification: float = 0.0
    noise_refuted: bool = False  # rewards scatter around every linear function more than σ allows, at level δ
    levels_given: bool = False  # rewards came with noise levels of their own, which scale with σ

    @property
    def norm_bound_refuted(self) -> bool:
        return self.least_norm_bound > self.stated_norm_bound

    @property
    def sigma_refuted(self) -> bool:
        return self.refuted_sigma is not None and self.refuted_sigma >= self.stated_sigma

    @property
    def sentences(self) -> tuple[str, ...]:
        """What a practitioner should know, most important first; what is only likely is marked as a hint."""
        level = f"at level {self.delta:g}"
        found = []
        if self.noise_refuted:
            found.append(
                f"REFUTED {level}: rewards scatter around every linear function more than sigma={self.stated_sigma:g} "
                f"allows. It is too small, or the expected reward is not linear in the features{self._up_to}."
            )
        if self.refuted:
            found.append(
                f"REFUTED {level}: no linear function satisfies sigma={self.stated_sigma:g} and "
                f"norm_bound={self.stated_norm_bound:g} on these {self.t} rewards. One of them is too small, or the "
                f"expected reward is not linear in the features{self._up_to}."
            )
        elif not self.noise_refuted:
            found.append(f"The {self.t} rewards do not contradict the assumptions {level}.")
        if math.isinf(self.least_norm_bound):
            found.append("No norm bound, however large, would help.")
        elif self.least_norm_bound > 0.0:
            found.append(
                f"With sigma={self.stated_sigma:g} these data need norm_bound ≥ {self.least_norm_bound:.4g} "
                f"(stated: {self.stated_norm_bound:.4g}); smaller ones are refuted {level}."
            )
        if self.reward_range is not None:
            found.append(f"reward_range={self.reward_range} is tested where bounds are asked for, not here.")
        if self.refuted_sigma:
            found.append(
                f"With norm_bound={self.stated_norm_bound:g} noise levels up to {self.refuted_sigma:.4g} are refuted "
                f"{level} (stated: {self.stated_sigma:.4g}"
                f"{'; levels given with rewards scale along' if self.levels_given else ''})."
            )
        found += self._hints()
        return tuple(found)

    @property
    def _up_to(self) -> str:
        return f" up to misspecification={self.misspecification:g}" if self.misspecification else ""

    def _hints(self) -> list[str]:
        hints = []
        expected = math.hypot(self.stated_sigma, self.misspecification)
        if self.residual_spread is not None and self.residual_spread < _FAR_BELOW * self.stated_sigma:
            hints.append(
                f"Hint, not proven: residuals spread by {self.residual_spread:.4g} where sigma={self.stated_sigma:.4g} "
                "is stated. If a smaller sigma is known to hold, the bounds become narrower."
            )
        if self.residual_spread is not None and self.residual_spread > _FAR_ABOVE * expected:
            hints.append(
                f"Hint, not proven: residuals spread by {self.residual_spread:.4g}, more than the stated "
                f"sigma={self.stated_sigma:.4g}. It may be too small, or the function not linear in the features."
            )
        if self.unseen_directions:
            hints.append(f"Nothing was measured in {self.unseen_directions} direction(s) of the features.")
        elif self.condition > _COLLINEAR:
            hints.append(
                f"The features look collinear: one direction is measured {self.condition:.1g} times as "
                "strongly as another."
            )
        return hints

    def __str__(self) -> str:
        return "\n".join(self.sentences)


BallAt = Callable[[float, float], ResidualBall | None]
"""The set had σ and the norm bound been stated so; None where that cannot be told."""


def audit(
    *,
    t: int,
    delta: float,
    sigma: float,
    norm_bound: float,
    spectrum: Spectrum,
    residual_spread: float | None,
    ball_at: BallAt,
    reward_range: tuple[float, float] | None = None,
    noise_refuted: bool = False,
) -> Audit:
    """Audit a sequence at its present time."""
    stated = ball_at(sigma, norm_bound)
    assert stated is not None
    condition = float(spectrum.singular[0] / spectrum.singular[-1]) if spectrum.rank else 1.0
    return Audit(
        t=t,
        delta=delta,
        refuted=stated.feasibility.is_empty,
        stated_norm_bound=norm_bound,
        least_norm_bound=_least_norm_bound(ball_at, sigma, norm_bound),
        stated_sigma=sigma,
        refuted_sigma=_refuted_sigma(ball_at, sigma, norm_bound),
        residual_spread=residual_spread,
        unseen_directions=len(spectrum.basis) - spectrum.rank,
        condition=condition,
        reward_range=reward_range,
        noise_refuted=noise_refuted,
    )


def _least_norm_bound(ball_at: BallAt, sigma: float, norm_bound: float) -> float:
    def empty(bound: float) -> bool:
        ball = ball_at(sigma, bound)
        return ball is not None and ball.feasibility.is_empty

    low, high = norm_bound / _REACH, norm_bound * _REACH
    if not empty(low):
        return 0.0
    while empty(high):
        if high > _NEVER:
            return math.inf
        low, high = high, high * _REACH
    return _boundary(empty, low, high)


def _refuted_sigma(ball_at: BallAt, sigma: float, norm_bound: float) -> float | None:
    def empty(level: float) -> bool:
        ball = ball_at(level, norm_bound)
        return ball is not None and ball.feasibility.is_empty

    low = sigma / _REACH
    if ball_at(low, norm_bound) is None:
        return None
    if not empty(low):
        return 0.0
    # Upwards in small steps: the levels must be refuted without a gap.
    step = 10.0**0.125
    while low < sigma * _REACH and empty(low * step):
        low *= step
    return _boundary(empty, low, low * step)


def _boundary(empty: Callable[[float], bool], low: float, high: float) -> float:
    """The largest value found at which the set is still empty, between one that is and one that is not."""
    while high > low * (1.0 + 1e-9):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if empty(middle) else (low, middle)
    return low
