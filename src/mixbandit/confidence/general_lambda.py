"""Martingale mixtures with general weights λ_t (App. "General λ_t"), for linear mixtures θ' ~ N(θ₀, Σ₀).

| symbol | meaning |
|---|---|
| Λ = diag(λ_k), M = diag(σ_k²λ_k²), D = Λ − M | weights; λ_k is fixed before reward k is seen |
| K = ΦᵀΛΦ, b = ΦᵀΛr, A = ΦᵀMΦ, E = ΦᵀDΦ | what is remembered, all d×d |
| S = Σ₀⁻¹ = (LLᵀ)⁻¹, V = A + S | |

The integral over θ' is Gaussian, and the set is the quadratic constraint θᵀPθ − 2qᵀθ + s ≤ 0 with

    P = Φᵀ(2Λ − M)Φ + EV⁻¹E,   q = b + EV⁻¹(b + Sθ₀),
    s = (b + Sθ₀)ᵀV⁻¹(b + Sθ₀) − θ₀ᵀSθ₀ − ln det(I + Σ₀A) − 2 ln(1/δ),

which equals the paper's t×t form. P is positive semi-definite for λ_k ≤ 2/σ_k². Seen from the posterior mean
θ̄ = (K + S)⁻¹(b + Sθ₀), in whose coordinates b + Sθ₀ vanishes, nothing cancels: with η = L⁻¹(θ̄ − θ₀)

    q̄ = L⁻ᵀη,   excess q̄ᵀP⁺q̄ − s̄ = q̄ᵀP⁺q̄ + ‖η‖² + ln det(I + Σ₀A) + 2 ln(1/δ).

Everything is multiplied by σ², which makes α and the radius comparable with those of `MartingaleMixture`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np

from mixbandit._validation import LARGEST_MULTIPLIER, Array, as_number, nonnegative
from mixbandit.confidence.ball import BallSequence
from mixbandit.confidence.support import ResidualBall
from mixbandit.errors import DamagedState, InvalidInput
from mixbandit.features import FeatureMap
from mixbandit.forecasters import LinearMixture, Standard, log_det, mixture_from_state_dict, not_storable
from mixbandit.statistics import Spectrum, Statistics, numerical_rank

# What the rows are multiplied by: the roots of M, 2Λ − M, and of the positive and the negative part of Λ − M.
_WEIGHTS = ("squared", "convex", "surplus", "deficit")
_ROUNDING = 1e-14

LambdaFunction = Callable[[int, Array], float]


class GeneralLambda(BallSequence):
    """The confidence sequence for predictable weights λ_t, by default 1/σ_t², where it is `MartingaleMixture`.

    `lam` is a number, or a function of the number of rewards seen so far and the action row that returns λ for
    its reward, before that is known. The set is convex for 0 ≤ λ < 2/σ_t² only; other values are refused. Its
    ellipsoid is not a ball of residuals, so that it has no `radius`.
    """

    def __init__(
        self,
        features: FeatureMap | int,
        *,
        sigma: float,
        norm_bound: float,
        delta: float = 0.01,
        lam: float | LambdaFunction | None = None,
        mixture: LinearMixture | None = None,
        reward_range: tuple[float, float] | None = None,
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
        self.lam = lam if lam is None or callable(lam) else nonnegative(lam, "lam", LARGEST_MULTIPLIER)
        if isinstance(self.lam, float):
            self._checked_lambda(self.lam, self.sigma)
        self.mixture = Standard() if mixture is None else mixture
        if not isinstance(self.mixture, LinearMixture):
            raise InvalidInput(f"GeneralLambda takes Standard, Scaled or Linear mixtures, got {mixture!r}")
        self._theta0, self._root = self.mixture.dense_prior(self.features.dim)
        # The rows times √λ are in `_statistics`; here they are times other weights.
        self._weighted = {name: Statistics(self.features.dim) for name in _WEIGHTS}

    @property
    def alpha0(self) -> float:
        return self.mixture.alpha0(self.features.dim, self.sigma)

    def constraint(self) -> tuple[Array, Array, float]:
        """P (d, d), q (d,) and s of the set θᵀPθ − 2qᵀθ + s ≤ 0, in the paper's units."""
        factor, centre, q, squares = self._pieces()
        P = factor.T @ factor
        s = -squares - 2.0 * np.log(1.0 / self.delta)
        return P, P @ centre + q, float(centre @ P @ centre + 2.0 * q @ centre + s)

    def copy(self) -> Self:
        new = super().copy()
        new._weighted = {name: statistics.copy() for name, statistics in self._weighted.items()}
        return new

    def _learn(self, actions: Array, phi: Array, rewards: Array, weights: Array | None) -> None:
        levels = np.full(len(phi), self.sigma) if weights is None else self.sigma / weights
        lambdas = np.empty(len(phi))
        for i, (action, level) in enumerate(zip(actions, levels, strict=True)):
            given = self.lam(self.t + i, action) if callable(self.lam) else self.lam
            lambdas[i] = 1.0 / level**2 if given is None else self._checked_lambda(given, float(level))
        zeros, share = np.zeros(len(phi)), levels**2 * lambdas
        # At λ = 1/σ² the difference Λ − M is 0, and its rounding is nothing to learn from.
        difference = np.where(np.abs(1.0 - share) < _ROUNDING, 0.0, lambdas * (1.0 - share))
        squares = {
            "squared": lambdas * share,
            "convex": lambdas * (2.0 - share),
            "surplus": np.maximum(difference, 0.0),
            "deficit": np.maximum(-difference, 0.0),
        }
        for name, statistics in self._weighted.items():
            statistics.update(phi, zeros, np.sqrt(squares[name]))
        self._statistics.update(phi, rewards, np.sqrt(lambdas))

    @staticmethod
    def _checked_lambda(lam: float, level: float) -> float:
        lam = as_number(lam, "lambda")
        if not 0.0 <= lam < 2.0 / level**2:
            raise InvalidInput(
                f"lambda must be at least 0 and below 2/sigma² = {2.0 / level**2:g} for a convex set, got {lam:g}"
            )
        return lam

    def _ball_at(self, sigma: float, norm_bound: float) -> ResidualBall | None:
        if sigma != self.sigma:
            return None  # λ was chosen for the stated σ
        factor, centre, q, squares = self._pieces()
        _, singular, right = np.linalg.svd(factor, full_matrices=False)
        rank = numerical_rank(singular, len(centre))
        singular, basis = singular[:rank], right[:rank].T
        offset = basis.T @ q / singular
        z = singular * (basis.T @ centre) + offset
        excess = float(offset @ offset) + squares
        # The residual that z leaves is not that of the rewards; nothing here needs it.
        nothing = np.empty(0)
        spectrum = Spectrum(self.sigma * singular, basis, self.sigma * z, 0.0, nothing, nothing)
        return ResidualBall(spectrum, self.sigma**2 * excess + self._delta_term(sigma), norm_bound)

    def _tests_noise(self) -> bool:
        """Rows are weighted by λ here, and their residuals are not in units of σ."""
        return False

    def _residual_spread(self) -> None:
        """Residuals weighted by λ are not in units of σ."""

    def _pieces(self) -> tuple[Array, Array, Array, float]:
        """A factor of P, θ̄, q̄, and the excess without q̄ᵀP⁺q̄ and its δ term."""
        posterior = self._statistics.spectrum(self._theta0, self._root)
        eta = np.asarray(posterior.basis @ (posterior.singular * posterior.z / (posterior.singular**2 + 1.0)))
        squared, convex, surplus, deficit = (self._weighted[name].factor()[:, :-1] for name in _WEIGHTS)
        # With M^½ΦL = A diag(x) Bᵀ, V⁻¹ = LB diag(1/(1+x²)) BᵀLᵀ; its half times E is a factor of EV⁻¹E. E is the
        # difference of two Gram matrices, each multiplied out from the left: what has not been measured stays so.
        _, x, right = np.linalg.svd(squared @ self._root, full_matrices=False)
        half_inverse = (right @ self._root.T) / np.hypot(x, 1.0)[:, None]
        half = (half_inverse @ surplus.T) @ surplus - (half_inverse @ deficit.T) @ deficit
        factor = np.vstack((convex, half))
        centre = self._theta0 + self._root @ eta
        q = np.asarray(np.linalg.solve(self._root.T, eta))
        return factor, centre, q, float(eta @ eta) + log_det(x, 1.0)

    def merge(self, other: Self) -> Self:
        new = super().merge(other)
        new._weighted = {name: mine.merged(other._weighted[name]) for name, mine in self._weighted.items()}
        new._forget()
        return new

    merge.__doc__ = BallSequence.merge.__doc__

    def _parameters(self) -> dict[str, Any]:
        return {**super()._parameters(), "lam": self.lam, "mixture": self.mixture.state_dict()}

    def state_dict(self) -> dict[str, Any]:
        if callable(self.lam):
            raise not_storable(self.lam)
        return super().state_dict()

    def _memory(self) -> dict[str, Any]:
        return {"weighted": {name: statistics.state_dict() for name, statistics in self._weighted.items()}}

    def _recall(self, state: Mapping[str, Any]) -> None:
        self._weighted = {name: Statistics.from_state_dict(state["weighted"][name]) for name in _WEIGHTS}
        expected = state["statistics"]["dim"], state["statistics"]["count"]
        for name, statistics in self._weighted.items():
            if (statistics.dim, statistics.count) != expected:
                raise DamagedState(f"the {name} statistics do not belong to the others")

    @classmethod
    def _from_parameters(cls, features: FeatureMap, state: Mapping[str, Any]) -> Self:
        mixture = mixture_from_state_dict(state["mixture"])
        if not isinstance(mixture, LinearMixture):
            raise DamagedState(f"the stored mixture {mixture!r} is not linear")
        return cls(features, **cls._stored_options(state), lam=state["lam"], mixture=mixture)
