"""What sequences share whose set is an ellipsoid cut by the norm ball: emptiness, e-values, audit, known ranges."""

from __future__ import annotations

import abc
import logging
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mixbandit._validation import Array, interval, multiplier, one_of, positive
from mixbandit.confidence.audit import Audit, audit
from mixbandit.confidence.base import ConfidenceSequence, Reported
from mixbandit.confidence.support import Maximum, ResidualBall, split
from mixbandit.features import FeatureMap

logger = logging.getLogger(__name__)


class BallSequence(ConfidenceSequence):
    """A sequence of sets {θ : (θ−θ̂)ᵀP(θ−θ̂) ≤ G, ‖θ‖ ≤ B}; a child says what P, θ̂ and G are in `_ball_at`."""

    guarantee = "anytime"

    def __init__(
        self,
        features: FeatureMap | int,
        *,
        sigma: float,
        norm_bound: float,
        delta: float,
        reward_range: tuple[float, float] | None,
        on_empty: str,
    ) -> None:
        super().__init__(features, sigma=sigma, delta=delta)
        self.norm_bound = positive(norm_bound, "norm_bound")
        self.reward_range = None if reward_range is None else interval(reward_range, "reward_range")
        self.on_empty = one_of(on_empty, ("raise", "inflate"), "on_empty")
        self._ball_cache: ResidualBall | None = None
        self._open_ball_cache: ResidualBall | None = None

    def analytic_radius(self, alpha: float | None = None) -> float:
        """√ρ(α), the radius of the closed-form bound (R_AMM in the paper); at `alpha0` unless given."""
        at = self.alpha0 if alpha is None else multiplier(alpha, "alpha")
        return math.sqrt(max(self._open_ball().rho(at), 0.0))

    @property
    def is_empty(self) -> bool:
        """Whether the data refute the assumptions at level δ."""
        return self._ball().feasibility.is_empty

    def contains(self, theta: ArrayLike, *, rtol: float = 1e-9) -> bool:
        return self._ball().contains(self._theta(theta), rtol)

    def log_evalue(self, theta: ArrayLike) -> float:
        """Logarithm of the mixture martingale E_t(θ): an e-value against θ* = θ, to be read at any time.

        If θ* = θ, it exceeds ln(1/a) at some time with probability at most a, for every a.
        """
        ball = self._ball()
        beyond = ball.distance2(self._theta(theta)) - ball.excess
        return beyond / (2.0 * self.sigma**2) - math.log(self.delta)

    def pvalue(self, theta: ArrayLike) -> float:
        """An anytime-valid p-value of θ* = θ: if that is so, it is ever ≤ a with probability at most a."""
        return math.exp(min(-self.log_evalue(theta), 0.0))

    def audit(self) -> Audit:
        """What the data so far say about the assumptions, at no extra δ; print it to read it."""
        return audit(
            t=self.t,
            delta=self.delta,
            sigma=self.sigma,
            norm_bound=self.norm_bound,
            spectrum=self._spectrum(),
            residual_spread=self._residual_spread(),
            ball_at=self._ball_at,
            reward_range=self.reward_range,
            noise_refuted=self.noise_refuted,
        )

    @abc.abstractmethod
    def _ball_at(self, sigma: float, norm_bound: float) -> ResidualBall | None:
        """The set had these been stated; None where it cannot be told for another σ."""

    def _maximum(self, phi: Array, alpha: float | None, *, with_theta: bool) -> Maximum:
        ball = self._open_ball()
        directions = split(phi, ball.spectrum, with_outside=with_theta)
        if alpha is None:
            return ball.maximise(directions, self.alpha0, with_theta=with_theta)
        return ball.closed_form(directions, alpha, with_theta=with_theta)

    def _reported(self, maximum: Array, sign: float) -> Reported:
        bounds = sign * maximum
        if self.reward_range is None:
            return Reported(bounds, np.zeros(len(bounds), dtype=np.bool_), trusted=not self.is_empty)
        low, high = self.reward_range
        # A lower bound above the range, or an upper bound below it, contradicts what was stated.
        slack = 1e-9 * (high - low)
        wrong = bool((bounds < low - slack if sign > 0.0 else bounds > high + slack).any())
        if wrong:
            self._refuted("a bound on an expected reward lies outside reward_range")
        cut = np.clip(bounds, low, high)
        return Reported(cut, cut != bounds, trusted=not (wrong or self.is_empty))

    def _forget(self) -> None:
        super()._forget()
        self._ball_cache = self._open_ball_cache = None

    def _ball(self) -> ResidualBall:
        """The set as it is, empty or not."""
        if self._ball_cache is None:
            self._ball_cache = self._ball_at(self.sigma, self.norm_bound)
        assert self._ball_cache is not None
        return self._ball_cache

    def _open_ball(self) -> ResidualBall:
        """The set as bounds are made from it: with an inside, or an error, or a warning every time."""
        ball = self._ball()
        if self.is_empty:
            self._refuted("the confidence set is empty")
        if self._open_ball_cache is None:
            if self.is_empty:
                ball = ball.opened(margin=self._delta_term(self.sigma))
            elif ball.feasibility.is_touching or ball.feasibility.is_empty:
                logger.info("the confidence set is a single point up to rounding (t = %d)", self.t)
                ball = ball.opened()
            self._open_ball_cache = ball
        return self._open_ball_cache

    def _residual_spread(self) -> float | None:
        """Root mean square of the least-squares residuals, in units in which it should be about σ."""
        spare = self.t - self._spectrum().rank
        return math.sqrt(self._spectrum().residual(self.norm_bound) / spare) if spare > 0 else None

    def _delta_term(self, sigma: float) -> float:
        return -2.0 * sigma**2 * math.log(self.delta)

    def _stated(self) -> str:
        stated = f"{super()._stated()}, norm_bound={self.norm_bound:g}"
        return stated if self.reward_range is None else f"{stated}, reward_range={self.reward_range}"

    def _parameters(self) -> dict[str, Any]:
        return {
            "norm_bound": self.norm_bound,
            "reward_range": None if self.reward_range is None else list(self.reward_range),
            "on_empty": self.on_empty,
        }

    @staticmethod
    def _stored_options(state: Mapping[str, Any]) -> dict[str, Any]:
        names = ("sigma", "norm_bound", "delta", "reward_range", "on_empty")
        return {name: state[name] for name in names}
