"""Bayesian credible intervals (App. "The effect of the mixture distributions"), for comparison."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from mixbandit._validation import Array, positive
from mixbandit.confidence.base import FixedMultiplier
from mixbandit.confidence.support import Maximum, ellipsoid_contains, ellipsoid_maximum, split
from mixbandit.errors import DamagedState, InvalidInput
from mixbandit.features import FeatureMap
from mixbandit.forecasters import LinearMixture, Standard, mixture_from_state_dict
from mixbandit.statistics import Spectrum


class BayesCredible(FixedMultiplier):
    """φᵀμ_t ± √(Q_t φᵀΣ_tφ) under the prior θ* ~ N(θ₀, Σ₀) and Gaussian noise.

    Q_t is the χ²(d) quantile at 1 − 6δ/((t+1)²π²), so that the levels of all t sum to δ. The prior is given
    as the linear `mixture` with the same θ₀ and Σ₀. The interval is right on average over the prior; for one
    θ* that the prior makes unlikely it can be wrong at every time, which is why it has no "anytime"
    guarantee. `norm_bound` is accepted so that sequences can be swapped, and plays no part.
    """

    guarantee = "bayesian"

    def __init__(
        self,
        features: FeatureMap | int,
        *,
        sigma: float,
        norm_bound: float | None = None,
        delta: float = 0.01,
        mixture: LinearMixture | None = None,
    ) -> None:
        super().__init__(features, sigma=sigma, delta=delta)
        self.norm_bound = None if norm_bound is None else positive(norm_bound, "norm_bound")
        self.mixture = Standard() if mixture is None else mixture
        if not isinstance(self.mixture, LinearMixture):
            raise InvalidInput(f"the prior must be Standard, Scaled or Linear, got {mixture!r}")
        self._shift, self._root = self.mixture.dense_prior(self.features.dim)
        self._cost = self.mixture.cost(self.features, self.sigma)
        self._whitened_cache: Spectrum | None = None

    @property
    def alpha0(self) -> float:
        return self.mixture.alpha0(self.features.dim, self.sigma)

    def contains(self, theta: ArrayLike, *, rtol: float = 1e-9) -> bool:
        eta = np.asarray(np.linalg.solve(self._root, self._theta(theta) - self._shift), dtype=np.float64)
        return ellipsoid_contains(self._whitened(), eta, self.sigma**2, math.sqrt(self._radius2), rtol)

    @property
    def _radius2(self) -> float:
        """σ² Q_t: the squared radius of the credible set in the whitened coordinates."""
        from scipy.special import chdtri  # kept out of the import of the package, which it would double

        # The quantile from its upper tail: 1 − 6δ/((t+1)²π²) itself rounds to 1 for large t.
        return self.sigma**2 * float(chdtri(self.features.dim, 6.0 * self.delta / ((self.t + 1) * math.pi) ** 2))

    def _maximum(self, phi: Array, alpha: float | None, *, with_theta: bool) -> Maximum:
        # With θ = θ₀ + Lη the prior is η ~ N(0, I) and the posterior a ridge ellipsoid at α = σ².
        whitened = self._whitened()
        directions = split(phi @ self._root, whitened, with_outside=with_theta)
        m = ellipsoid_maximum(whitened, directions, self.sigma**2, self._radius2, with_theta=with_theta)
        value = m.value + phi @ self._shift
        theta = None if m.theta is None else m.theta @ self._root.T + self._shift
        return Maximum(value, np.full(len(value), self.alpha0), m.case, theta)

    def _whitened(self) -> Spectrum:
        if self._whitened_cache is None:
            self._whitened_cache = self._cost.whitened(self._statistics, self._spectrum())
        return self._whitened_cache

    def _forget(self) -> None:
        super()._forget()
        self._whitened_cache = None

    def _parameters(self) -> dict[str, Any]:
        return {"norm_bound": self.norm_bound, "mixture": self.mixture.state_dict()}

    @classmethod
    def _from_parameters(cls, features: FeatureMap, state: Mapping[str, Any]) -> Self:
        mixture = mixture_from_state_dict(state["mixture"])
        if not isinstance(mixture, LinearMixture):
            raise DamagedState(f"the stored prior {mixture!r} is not linear")
        return cls(
            features,
            sigma=state["sigma"],
            norm_bound=state["norm_bound"],
            delta=state["delta"],
            mixture=mixture,
        )
