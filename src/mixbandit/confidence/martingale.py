"""The paper's confidence sequence (Corollary mm_conf_set) with its exact and closed-form bounds."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from mixbandit._validation import Array, multiplier, nonnegative
from mixbandit.confidence.audit import Audit
from mixbandit.confidence.ball import BallSequence
from mixbandit.confidence.base import Reported
from mixbandit.confidence.support import Maximum, ResidualBall, ellipsoid_maximum, ridge_ball, ridge_maximum, split
from mixbandit.errors import InvalidInput, NotMergeable
from mixbandit.features import FeatureMap
from mixbandit.forecasters import (
    Cost,
    Forecaster,
    Mixture,
    Prequential,
    Scaled,
    Standard,
    as_cost,
    log_det,
    mixture_from_state_dict,
    not_storable,
)
from mixbandit.statistics import Ridge


class MartingaleMixture(BallSequence):
    """Θ_t = {θ : ‖Φθ − r‖ ≤ R_t, ‖θ‖ ≤ B} holds θ* at all times t at once with probability ≥ 1−δ.

    Assumed: expected rewards φ(a)ᵀθ* with ‖θ*‖ ≤ `norm_bound`, and noise that is conditionally
    `sigma`-sub-Gaussian. Nothing is assumed about how the actions were chosen.

    `upper` and `lower` are exact (the paper's CMM); with `alpha` they are its closed form (AMM), valid at
    every α > 0. `mixture` decides how tight the set is, never whether it is valid.

    `reward_range` states that expected rewards lie in [low, high]; bounds are cut there. `misspecification`
    allows the expected reward to deviate from a linear function by up to that much at every action.

    An empty set has probability ≤ δ under the assumptions, so it refutes them. `on_empty` says what bounds
    then do: "raise" AssumptionsRefuted, or "inflate" the radius until the set has an inside again, with a
    warning and `Support.inflated` set, because no guarantee remains.
    """

    def __init__(
        self,
        features: FeatureMap | int,
        *,
        sigma: float,
        norm_bound: float,
        delta: float = 0.01,
        mixture: Mixture | Forecaster | None = None,
        reward_range: tuple[float, float] | None = None,
        misspecification: float = 0.0,
        on_empty: str = "raise",
    ) -> None:
        super().__init__(
            features,
            sigma=sigma,
            norm_bound=norm_bound,
            delta=delta,
            reward_range=reward_range,
            on_empty=on_empty,
        )
        self.misspecification = nonnegative(misspecification, "misspecification")
        self._mixture = Standard() if mixture is None else mixture
        self._cost = as_cost(self._mixture, self.features, self.sigma)
        self._closed_cache: tuple[Ridge, float | None] | None = None

    @property
    def mixture(self) -> Mixture | Forecaster:
        """The mixture; of a user's forecaster, the copy that is in use."""
        return self._cost.forecaster if isinstance(self._cost, Prequential) else self._mixture

    @property
    def alpha0(self) -> float:
        return self._cost.alpha0(self._statistics, self._spectrum)

    @property
    def radius(self) -> float:
        """R, the bound on ‖f* − r‖ for the expected rewards f* (label eq:confidence-set), linear or not."""
        return self._radius(self._cost)

    def analytic_radius(self, alpha: float | None = None) -> float:
        if not self._uses_ridge_form:
            return super().analytic_radius(alpha)
        at = self.alpha0 if alpha is None else multiplier(alpha, "alpha")
        if self._beyond_ridge(at):
            return super().analytic_radius(at - self.alpha0)
        self._open_ball()  # raises or warns if the set is empty
        return self._ridge_radius(self._cost, self.norm_bound)

    analytic_radius.__doc__ = BallSequence.analytic_radius.__doc__

    def audit(self) -> Audit:
        levels_given = self._statistics.weight2 != self.t
        return dataclasses.replace(super().audit(), misspecification=self.misspecification, levels_given=levels_given)

    audit.__doc__ = BallSequence.audit.__doc__

    def log_evalue(self, theta: ArrayLike) -> float:
        if self.misspecification:
            raise InvalidInput("an e-value against one θ needs misspecification=0: it tests a linear function")
        return super().log_evalue(theta)

    log_evalue.__doc__ = BallSequence.log_evalue.__doc__

    def copy(self) -> Self:
        new = super().copy()
        new._cost = self._cost.copy()
        return new

    def _learn(self, actions: Array, phi: Array, rewards: Array, weights: Array | None) -> None:
        if not self._cost.stepwise:
            super()._learn(actions, phi, rewards, weights)
            return
        saved = self._cost.snapshot(), self._statistics.copy()
        try:
            for i, reward in enumerate(rewards):
                row, weight = slice(i, i + 1), 1.0 if weights is None else float(weights[i])
                self._cost.update(actions[i], phi[i], float(reward), weight)
                super()._learn(actions[row], phi[row], rewards[row], None if weights is None else weights[row])
        except BaseException:  # a forecaster of the user's may raise anything, also an interrupt
            self._cost, self._statistics = saved
            raise

    def _ball_at(self, sigma: float, norm_bound: float) -> ResidualBall | None:
        cost = self._cost if sigma == self.sigma else self._cost.at_sigma(sigma)
        if cost is None:
            return None
        spectrum = self._spectrum()
        if self._uses_ridge_form:
            return ridge_ball(spectrum, self._ridge_alpha(cost), self._ridge_radius(cost, norm_bound), norm_bound)
        excess = cost.excess(self._statistics, spectrum, norm_bound) + self._delta_term(sigma)
        if self.misspecification:
            # ‖Φθ* − r‖ ≤ ‖f* − r‖ + ‖Φθ* − f*‖ ≤ R + ε√t, for any forecaster: excess + 2Rη + η².
            deviation = self._deviation
            excess += deviation * (2.0 * self._radius(cost) + deviation)
        return ResidualBall(spectrum, excess, norm_bound)

    @property
    def is_empty(self) -> bool:
        # Once the set itself is there, for exact bounds, it is the cheapest to ask.
        ridge = self._own_ridge() if self._ball_cache is None else None
        # With N(0, cΦΦᵀ) the ridge estimate at α₀ satisfies the residual constraint, whatever the rewards are.
        if ridge is not None and np.linalg.norm(ridge.theta) <= self.norm_bound:
            return False
        return super().is_empty

    def _own_ridge(self) -> Ridge | None:
        """Ridge regression at the mixture's own α₀, where the set and its closed form can be read off it."""
        if not isinstance(self.mixture, Scaled) or self.misspecification:
            return None
        ridge = self._ridge(self.alpha0)
        return ridge if ridge.is_accurate else None

    def _centre(self, alpha: float | None) -> Array | None:
        closed = None if alpha is None else self._closed_form(alpha)
        return None if closed is None else closed[0].theta

    def _closed_form(self, alpha: float) -> tuple[Ridge, float] | None:
        """The ellipsoid at α₀, as a ridge regression and its squared radius; None where it must be found otherwise."""
        ridge = self._own_ridge() if alpha == self.alpha0 else None
        if ridge is None:
            return None
        known = self._closed_cache
        if known is None or known[0] is not ridge:  # a ridge regression belongs to the data it was made from
            # Both quadratic terms of ρ(α₀) cancel (the paper's label eqn:special_radius).
            rho = self.sigma**2 * ridge.log_det + self._delta_term(self.sigma) + alpha * self.norm_bound**2
            known = self._closed_cache = (ridge, None if self.is_empty else rho)
        return None if known[1] is None else (ridge, known[1])

    def _maximum(self, phi: Array, alpha: float | None, *, with_theta: bool) -> Maximum:
        closed = None if alpha is None else self._closed_form(alpha)
        if closed is not None:
            quick = ridge_maximum(closed[0], phi, closed[1], with_theta=with_theta)
            if quick is not None:
                return quick
        if not self._uses_ridge_form:
            return super()._maximum(phi, alpha, with_theta=with_theta)
        ridge_alpha = self._ridge_alpha(self._cost)
        if alpha is None or self._beyond_ridge(alpha):  # the ridge is part of the set already
            extra = None if alpha is None else alpha - ridge_alpha
            maximum = super()._maximum(phi, extra, with_theta=with_theta)
            return dataclasses.replace(maximum, alpha=maximum.alpha + ridge_alpha)
        self._open_ball()  # raises or warns if the set is empty
        spectrum = self._spectrum()
        directions = split(phi, spectrum, with_outside=with_theta)
        radius = self._ridge_radius(self._cost, self.norm_bound)
        return ellipsoid_maximum(spectrum, directions, ridge_alpha, radius**2, with_theta=with_theta)

    def _checked_alpha(self, alpha: float | None) -> float | None:
        checked = super()._checked_alpha(alpha)
        if checked is not None and self._uses_ridge_form:
            self._beyond_ridge(checked)
        return checked

    def _reported(self, maximum: Array, sign: float) -> Reported:
        # What is bounded is the expected reward, which may differ from φᵀθ* by ε.
        return super()._reported(maximum + self.misspecification, sign)

    def _radius(self, cost: Cost) -> float:
        reach = self.norm_bound
        excess = cost.excess(self._statistics, self._spectrum(), reach) + self._delta_term(cost.sigma)
        return math.sqrt(max(excess + self._spectrum().residual(reach), 0.0))

    @property
    def _uses_ridge_form(self) -> bool:
        """Whether misspecification is met by the tighter of two forms, which N(0, cΦΦᵀ) allows.

        Had the rewards been linear, θ̂ would have moved by at most ε√t in the norm of V, and the closed form's
        radius at α₀, σ² ln det + 2σ² ln(1/δ) + α₀B², does not depend on rewards at all.
        """
        return self.misspecification > 0.0 and isinstance(self.mixture, Scaled)

    def _ridge_alpha(self, cost: Cost) -> float:
        return cost.alpha0(self._statistics, self._spectrum)

    def _ridge_radius(self, cost: Cost, norm_bound: float) -> float:
        alpha = self._ridge_alpha(cost)
        information = cost.sigma**2 * log_det(self._spectrum().singular, math.sqrt(alpha))
        return math.sqrt(information + self._delta_term(cost.sigma) + alpha * norm_bound**2) + self._deviation

    def _beyond_ridge(self, alpha: float) -> bool:
        """Whether α exceeds the multiplier of the ridge form, below which there is no closed form."""
        ridge_alpha = self._ridge_alpha(self._cost)
        if alpha < ridge_alpha:
            raise InvalidInput(
                f"with misspecification the closed form needs alpha ≥ alpha0 = {ridge_alpha:g}, got {alpha:g}"
            )
        return alpha > ridge_alpha

    @property
    def _deviation(self) -> float:
        return self.misspecification * math.sqrt(self._statistics.weight2)

    def _check_mergeable(self, other: Self) -> None:
        if self._cost.stepwise:
            raise NotMergeable(
                f"{self.mixture!r} learns from rewards in their order, which a merge does not know; "
                "fixed linear mixtures and grids of them can be merged"
            )
        super()._check_mergeable(other)

    def _stated(self) -> str:
        stated = super()._stated()
        return f"{stated}, misspecification={self.misspecification:g}" if self.misspecification else stated

    def _parameters(self) -> dict[str, Any]:
        if not isinstance(self.mixture, Mixture):
            raise not_storable(self.mixture)
        return {
            **super()._parameters(),
            "misspecification": self.misspecification,
            "mixture": self.mixture.state_dict(),
        }

    def _memory(self) -> dict[str, Any]:
        return {"cost": self._cost.state_dict()}

    def _recall(self, state: Mapping[str, Any]) -> None:
        self._cost.load_state_dict(state["cost"])

    @classmethod
    def _from_parameters(cls, features: FeatureMap, state: Mapping[str, Any]) -> Self:
        return cls(
            features,
            **cls._stored_options(state),
            mixture=mixture_from_state_dict(state["mixture"]),
            misspecification=state["misspecification"],
        )
