"""Martingale mixtures with general weights λ_t (App. "General λ_t"), for linear mixtures θ' ~ N(θ₀, Σ₀).

| symbol | meaning |
|---|---|
| Λ = diag(λ_k), M = diag(σ_k²λ_k²), D = Λ − M | weights; λ_k is fixed before reward k is seen |
| K = ΦᵀΛΦ, b = ΦᵀΛr, A = ΦᵀMΦ, E = ΦᵀDΦ | the stored statistics, d×d, and b of length d |
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

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mixbandit._checks import (
    LARGEST_MULTIPLIER,
    Array,
    as_number,
    as_range,
    finite,
    nonnegative,
    positive,
    probability,
    shown,
)
from mixbandit._lazy import setting
from mixbandit._schema import Since, mapping_of, optional, real, record, require
from mixbandit.data import STATISTICS, Data, Factor, Spectrum, as_factor, length, numerical_rank
from mixbandit.errors import InvalidInput
from mixbandit.features import FeatureMap
from mixbandit.mixtures import LinearMixture, Standard, log_det
from mixbandit.models import FeatureModel, feature_model
from mixbandit.sequences import Audit
from mixbandit.sequences.base import ResidualBallSequence, shared
from mixbandit.sequences.refutation import NoiseTest, parts_of_tests, scales_of
from mixbandit.sequences.response import Affine, Response
from mixbandit.sequences.rules import BallRule
from mixbandit.sets import ResidualBall

# The weights of the rows: the roots of M, 2Λ − M, and of the positive and the negative part of Λ − M.
_WEIGHTS = ("squared", "convex", "surplus", "deficit")
# Rows and rewards in units of σ/σ_k, to test the noise. States of before this existed lack it.
_STANDARDISED = "standardised"
_ROUNDING = 1e-14
_EPS = float(np.finfo(np.float64).eps)

LambdaFunction = Callable[[int, Array], float]


class GeneralLambdaRule(BallRule):
    """The set of predictable weights λ_t, θᵀPθ − 2qᵀθ + s ≤ 0, cut by the norm ball.

    The data hold the rows times √λ, and their memory the rows times other weights.
    """

    kind = "general lambda"
    theories = ("Thompson sampling",)

    def __init__(
        self,
        model: FeatureModel,
        sigma: float,
        norm_bound: float,
        delta: float,
        lam: float | LambdaFunction | None,
        mixture: LinearMixture,
    ) -> None:
        super().__init__(model, delta, norm_bound)
        self.sigma: float = sigma
        self.lam, self.mixture = lam, mixture
        self.tests = parts_of_tests(delta)
        self._noise = NoiseTest(sigma, delta, norm_bound, scales_of(norm_bound, model.dim))
        self._theta0, self._root = mixture.dense_prior(model.dim)
        sizes = np.linalg.svd(self._root, compute_uv=False)
        self._root_size, self._inverse_root_size = float(sizes[0]), 1.0 / float(sizes[-1])

    def start(self) -> Data:
        return self.model.start({name: self.model.start() for name in (*_WEIGHTS, _STANDARDISED)})

    def alpha0(self, data: Data) -> float:
        return self.mixture.alpha0(self.dim, self.sigma)

    def learn(self, data: Data, actions: Array, phi: Array, rewards: Array, weights: Array | None) -> Data:
        levels = np.full(len(phi), self.sigma) if weights is None else self.sigma / weights
        lambdas = np.empty(len(phi))
        for i, (action, level) in enumerate(zip(actions, levels, strict=True)):
            given = self.lam(data.count + i, action) if callable(self.lam) else self.lam
            lambdas[i] = 1.0 / level**2 if given is None else checked_lambda(given, float(level))
        zeros, share = np.zeros(len(phi)), levels**2 * lambdas
        # At λ = 1/σ² the difference Λ − M is 0, and its rounding errors must not be learnt.
        difference = np.where(np.abs(1.0 - share) < _ROUNDING, 0.0, lambdas * (1.0 - share))
        squares = {
            "squared": lambdas * share,
            "convex": lambdas * (2.0 - share),
            "surplus": np.maximum(difference, 0.0),
            "deficit": np.maximum(-difference, 0.0),
        }
        memory: dict[str, Data] = data.memory
        others = {name: memory[name].learn(phi, zeros, np.sqrt(squares[name])) for name in _WEIGHTS}
        if _STANDARDISED in memory:
            others[_STANDARDISED] = memory[_STANDARDISED].learn(phi, rewards, weights)
        return data.learn(phi, rewards, np.sqrt(lambdas), others)

    def merge(self, one: Data, other: Data) -> Data:
        shared = [name for name in one.memory if name in other.memory]
        return one.merge(other, {name: one.memory[name].merge(other.memory[name]) for name in shared})

    def ball_if(self, data: Data, sigma: float | None, norm_bound: float) -> ResidualBall | None:
        if sigma != self.sigma:
            return None  # λ was chosen for the stated σ
        factor, centre, q, squares, lost_eta = self.pieces(data)
        _, singular, right = np.linalg.svd(factor, full_matrices=False)
        rank = numerical_rank(singular, len(centre))
        singular, basis = singular[:rank], right[:rank].T
        offset = basis.T @ q / singular
        z = singular * (basis.T @ centre) + offset
        excess = float(offset @ offset) + squares
        # The residual that z leaves is not that of the rewards; nothing here needs it.
        nothing = np.empty(0)
        spectrum = Spectrum(self.sigma * singular, basis, self.sigma * z, 0.0, nothing, nothing)
        margin = -2.0 * self.sigma**2 * math.log(self.delta)
        excess = self.sigma**2 * excess + margin
        # θ̄ may be much smaller than the terms it sums, θ₀ and Lη, and has their rounding errors.
        condition = self._root_size * self._inverse_root_size
        terms = float(np.linalg.norm(self._theta0)) + condition * float(np.linalg.norm(centre - self._theta0))
        lost = float(singular.max(initial=0.0)) * terms + float(np.linalg.norm(offset))
        lost *= 32.0 * len(centre) * _EPS
        if lost_eta and rank:
            lost += lost_eta * float(singular[0]) * self._root_size
            lost += lost_eta * self._inverse_root_size / float(singular[-1])
        rounding = self.sigma * (data.rounding(norm_bound) + lost)
        return ResidualBall(spectrum, excess, norm_bound, start=self.alpha0(data), margin=margin, rounding=rounding)

    def noise_refuted(self, data: Data) -> bool:
        known = data.memory.get(_STANDARDISED)
        return known is not None and self._noise.refutes(known.spectrum, known.count)

    def residual_spread(self, data: Data) -> float | None:
        known = data.memory.get(_STANDARDISED)
        return None if known is None else super().residual_spread(known)

    def audit(self, data: Data, response: Response) -> Audit:
        return dataclasses.replace(super().audit(data, response), noise_tested=_STANDARDISED in data.memory)

    def pieces(self, data: Data) -> tuple[Array, Array, Array, float, float]:
        """A factor of P, θ̄, q̄, the excess without q̄ᵀP⁺q̄ and its δ term, and the length of what η lacks."""
        posterior = as_factor(data).seen_from(self._theta0, self._root)
        eta = np.asarray(posterior.basis @ (posterior.singular * posterior.z / (posterior.singular**2 + 1.0)))
        squared, convex, surplus, deficit = (data.memory[name].factor[:, :-1] for name in _WEIGHTS)
        # With M^½ΦL = A diag(x) Bᵀ, V⁻¹ = LB diag(1/(1+x²)) BᵀLᵀ; its half times E is a factor of EV⁻¹E. E is the
        # difference of two Gram matrices, each multiplied out from the left: unmeasured directions stay unmeasured.
        _, x, right = np.linalg.svd(squared @ self._root, full_matrices=False)
        half_inverse = (right @ self._root.T) / np.hypot(x, 1.0)[:, None]
        half = (half_inverse @ surplus.T) @ surplus - (half_inverse @ deficit.T) @ deficit
        factor = np.vstack((convex, half))
        centre = self._theta0 + self._root @ eta
        q = np.asarray(np.linalg.solve(self._root.T, eta))
        # sz/(s² + 1), of singular values that are known only up to the rounding error of the largest.
        rounding = len(eta) * _EPS * float(posterior.singular.max(initial=0.0))
        lost_eta = length(np.minimum(posterior.lost_singular + rounding, 0.5) * posterior.lost_z)
        return factor, centre, q, float(eta @ eta) + log_det(x, 1.0), lost_eta

    def memory(self, data: Data) -> dict[str, Any]:
        return {"weighted": {name: part.state_dict() for name, part in data.memory.items()}}

    def recall(self, state: Mapping[str, Any], data: Data) -> dict[str, Data]:
        stored = state["weighted"] or {}
        require(stored.keys() >= set(_WEIGHTS), "sequence.weighted", f"must have {', '.join(_WEIGHTS)}")
        names = [name for name in (*_WEIGHTS, _STANDARDISED) if name in stored]
        found: dict[str, Data] = {name: Factor.from_state_dict(stored[name]) for name in names}
        for name, part in found.items():
            fits = (part.dim, part.count) == (data.dim, data.count)
            require(fits, f"sequence.weighted.{name}", "must be of as many rows as the other statistics")
        return found


class GeneralLambda(ResidualBallSequence):
    """The confidence sequence for predictable weights λ_t, by default 1/σ_t², which gives `MartingaleMixture`.

    `lam` is a number, or a function of the number of rewards seen so far and the action row that returns λ for
    its reward before the reward is known. The set is convex only for 0 ≤ λ < 2/σ_t²; other values are refused. Its
    ellipsoid is not a ball of residuals, so it has no `radius`. The noise is tested as elsewhere, except after a state
    of version 0.1.0, which lacks what that needs; `audit` says so.
    """

    kind = "GeneralLambda"
    schema = record(
        {
            **shared("sigma", "delta", "norm_bound", "reward_range", "on_empty"),
            "lam": optional(real(finite)),
            **shared("mixture"),
        }
    )
    memory = record({"weighted": Since(mapping_of(STATISTICS))})

    sigma: float = setting("moment.rule.sigma", "The stated noise level.")
    lam: float | LambdaFunction | None = setting("moment.rule.lam", "The weights λ, or the function that gives them.")
    mixture: LinearMixture = setting("moment.rule.mixture", "The mixture.")

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
        level = positive(sigma, "sigma")
        weight = lam if lam is None or callable(lam) else nonnegative(lam, "lam", LARGEST_MULTIPLIER)
        if isinstance(weight, float):
            checked_lambda(weight, level)
        prior = Standard() if mixture is None else mixture
        if not isinstance(prior, LinearMixture):
            raise InvalidInput(f"GeneralLambda takes Standard, Scaled or Linear mixtures, got {shown(mixture)}")
        model, bound = feature_model(features, "GeneralLambda"), positive(norm_bound, "norm_bound")
        self._rule = GeneralLambdaRule(model, level, bound, probability(delta, "delta"), weight, prior)
        ends = None if reward_range is None else as_range(reward_range, "reward_range")
        super().__init__(self._rule, Affine(range=ends), on_empty)

    def constraint(self) -> tuple[Array, Array, float]:
        """P (d, d), q (d,) and s of the set θᵀPθ − 2qᵀθ + s ≤ 0, in the paper's units."""
        factor, centre, q, squares, _ = self._rule.pieces(self.moment.data)
        P = factor.T @ factor
        s = -squares - 2.0 * np.log(1.0 / self.delta)
        return P, P @ centre + q, float(centre @ P @ centre + 2.0 * q @ centre + s)


def checked_lambda(lam: float, level: float) -> float:
    """A weight for which the set is convex."""
    lam = as_number(lam, "lambda")
    if not 0.0 <= lam < 2.0 / level**2:
        raise InvalidInput(
            f"lambda must be at least 0 and below 2/sigma² = {2.0 / level**2:g} for a convex set, got {lam:g}"
        )
    return lam
