"""The paper's confidence sequence (Corollary mm_conf_set) with its exact and closed-form bounds."""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from mixbandit._validation import Array, one_of, positive
from mixbandit.confidence.base import ConfidenceSequence
from mixbandit.confidence.support import Maximum, ResidualBall, split
from mixbandit.errors import AssumptionsRefuted, AssumptionsRefutedWarning, DamagedState
from mixbandit.features import FeatureMap
from mixbandit.forecasters import Forecaster, Mixture, Standard, as_cost, mixture_from_state_dict

logger = logging.getLogger(__name__)


class MartingaleMixture(ConfidenceSequence):
    """Θ_t = {θ : ‖Φθ − r‖ ≤ R_t, ‖θ‖ ≤ B} holds θ* at all times t at once with probability ≥ 1−δ.

    Assumed: expected rewards φ(a)ᵀθ* with ‖θ*‖ ≤ `norm_bound`, and noise that is conditionally
    `sigma`-sub-Gaussian. Nothing is assumed about how the actions were chosen.

    `upper` and `lower` are exact (the paper's CMM); with `alpha` they are its closed form (AMM), valid at
    every α > 0. `mixture` decides how tight the set is, never whether it is valid.

    An empty set has probability ≤ δ under the assumptions, so it refutes them. `on_empty` says what bounds
    then do: "raise" AssumptionsRefuted, or "inflate" the radius until the set has an inside again, with a
    warning and `Support.inflated` set, because no guarantee remains.
    """

    guarantee = "anytime"

    def __init__(
        self,
        features: FeatureMap | int,
        *,
        sigma: float,
        norm_bound: float,
        delta: float = 0.01,
        mixture: Mixture | Forecaster | None = None,
        on_empty: str = "raise",
    ) -> None:
        super().__init__(features, sigma=sigma, delta=delta)
        self.norm_bound = positive(norm_bound, "norm_bound")
        self.mixture = Standard() if mixture is None else mixture
        self.on_empty = one_of(on_empty, ("raise", "inflate"), "on_empty")
        self._cost = as_cost(self.mixture, self.features, self.sigma)
        self._ball_cache: ResidualBall | None = None
        self._open_ball_cache: ResidualBall | None = None

    @property
    def alpha0(self) -> float:
        if isinstance(self.mixture, Mixture):
            return self.mixture.alpha0(self.features.dim, self.sigma)
        return self.sigma**2

    @property
    def radius(self) -> float:
        """R, the bound on ‖Φθ* − r‖ (label eq:confidence-set)."""
        ball = self._ball()
        return math.sqrt(max(ball.excess + ball.spectrum.rss, 0.0))

    def analytic_radius(self, alpha: float | None = None) -> float:
        """√ρ(α), the radius of the closed-form bound (R_AMM in the paper); at `alpha0` unless given."""
        multiplier = self.alpha0 if alpha is None else positive(alpha, "alpha")
        rho = self._ball().rho(multiplier)
        if rho < 0.0:
            raise AssumptionsRefuted(self._refutation())
        return math.sqrt(rho)

    @property
    def is_empty(self) -> bool:
        """Whether the data refute the assumptions at level δ."""
        return self._ball().feasibility.is_empty

    def contains(self, theta: ArrayLike, *, rtol: float = 1e-9) -> bool:
        vector, ball = self._theta(theta), self._ball()
        return bool(
            ball.distance2(vector) <= ball.excess * (1.0 + rtol)
            and np.linalg.norm(vector) <= self.norm_bound * (1.0 + rtol)
        )

    def log_evalue(self, theta: ArrayLike) -> float:
        """Logarithm of the mixture martingale E_t(θ): an e-value against θ* = θ, to be read at any time.

        Under H₀ it exceeds ln(1/δ) at some time with probability at most δ, for every δ.
        """
        ball = self._ball()
        beyond = ball.distance2(self._theta(theta)) - ball.excess
        return beyond / (2.0 * self.sigma**2) - math.log(self.delta)

    def copy(self) -> Self:
        new = super().copy()
        new._cost = self._cost.copy()
        return new

    def _maximum(self, phi: Array, alpha: float | None, *, with_theta: bool) -> Maximum:
        ball = self._open_ball()
        directions = split(phi, ball.spectrum, with_outside=with_theta)
        if alpha is None:
            return ball.maximise(directions, self.alpha0, with_theta=with_theta)
        return ball.closed_form(directions, alpha, with_theta=with_theta)

    def _before_update(self, actions: Array, rewards: Array, weights: Array) -> None:
        self._cost.update(actions, rewards, weights)

    def _forget(self) -> None:
        super()._forget()
        self._ball_cache = self._open_ball_cache = None

    def _ball(self) -> ResidualBall:
        """The set as it is, empty or not."""
        if self._ball_cache is None:
            spectrum = self._spectrum()
            excess = self._cost.excess(self._statistics, spectrum) + self._delta_term
            self._ball_cache = ResidualBall(spectrum, excess, self.norm_bound)
        return self._ball_cache

    def _open_ball(self) -> ResidualBall:
        """The set as bounds are made from it: with an inside, or an error or a warning."""
        if self._open_ball_cache is None:
            ball = self._ball()
            if ball.feasibility.is_empty:
                message = self._refutation()
                if self.on_empty == "raise":
                    raise AssumptionsRefuted(message)
                logger.warning(message)
                warnings.warn(message, AssumptionsRefutedWarning, stacklevel=4)
                ball = ball.opened(margin=self._delta_term)
            elif ball.feasibility.is_touching:
                logger.info("the confidence set is a single point up to rounding (t = %d)", self.t)
                ball = ball.opened()
            self._open_ball_cache = ball
        return self._open_ball_cache

    @property
    def _delta_term(self) -> float:
        return -2.0 * self.sigma**2 * math.log(self.delta)

    @property
    def _is_inflated(self) -> bool:
        return self.is_empty

    def _refutation(self) -> str:
        return (
            f"after {self.t} rewards the confidence set is empty: at level delta={self.delta:g} the data "
            f"refute sigma={self.sigma:g}, norm_bound={self.norm_bound:g} or that the expected reward is "
            "linear in the features"
        )

    def _parameters(self) -> dict[str, Any]:
        if not isinstance(self.mixture, Mixture):
            raise DamagedState(
                f"the forecaster {type(self.mixture).__name__} is code and cannot be stored by mixbandit"
            )
        return {
            "norm_bound": self.norm_bound,
            "mixture": self.mixture.state_dict(),
            "on_empty": self.on_empty,
        }

    @classmethod
    def _from_parameters(cls, features: FeatureMap, state: Mapping[str, Any]) -> Self:
        return cls(
            features,
            sigma=state["sigma"],
            norm_bound=state["norm_bound"],
            delta=state["delta"],
            mixture=mixture_from_state_dict(state["mixture"]),
            on_empty=state["on_empty"],
        )
