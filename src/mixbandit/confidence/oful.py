"""The confidence ellipsoid of OFUL (Abbasi-Yadkori, Pál & Szepesvári 2011), the paper's main comparison."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Self

from numpy.typing import ArrayLike

from mixbandit._validation import Array, one_of, positive
from mixbandit.confidence.base import FixedMultiplier
from mixbandit.confidence.support import Maximum, ellipsoid_contains, ellipsoid_maximum, ridge_maximum, split
from mixbandit.features import FeatureMap
from mixbandit.forecasters import log_det


class OFULSequence(FixedMultiplier):
    """{θ : ‖θ − θ̂_α‖_V ≤ σ√(ln det(ΦᵀΦ/α + I) + 2 ln(1/δ)) + √α B}, V = ΦᵀΦ + αI.

    α is fixed in advance, at σ² unless given, as the paper does. The set is never empty; `on_empty` says what a
    policy does when rewards scatter more than σ allows, which is tested in any case (`noise_refuted`).
    """

    guarantee = "anytime"

    def __init__(
        self,
        features: FeatureMap | int,
        *,
        sigma: float,
        norm_bound: float,
        delta: float = 0.01,
        alpha: float | None = None,
        on_empty: str = "raise",
    ) -> None:
        super().__init__(features, sigma=sigma, delta=delta)
        self.on_empty = one_of(on_empty, ("raise", "inflate"), "on_empty")
        self.norm_bound = positive(norm_bound, "norm_bound")
        self.alpha = self.sigma**2 if alpha is None else positive(alpha, "alpha")

    @property
    def alpha0(self) -> float:
        return self.alpha

    @property
    def ellipsoid_radius(self) -> float:
        """The bound on ‖θ* − θ̂_α‖_V."""
        ridge, root_alpha = self._ridge(self.alpha), math.sqrt(self.alpha)
        volume = ridge.log_det if ridge.is_accurate else log_det(self._spectrum().singular, root_alpha)
        return self.sigma * math.sqrt(volume - 2.0 * math.log(self.delta)) + root_alpha * self.norm_bound

    def contains(self, theta: ArrayLike, *, rtol: float = 1e-9) -> bool:
        return ellipsoid_contains(self._spectrum(), self._theta(theta), self.alpha, self.ellipsoid_radius, rtol)

    def _stated(self) -> str:
        return f"{super()._stated()}, norm_bound={self.norm_bound:g}"

    def _maximum(self, phi: Array, alpha: float | None, *, with_theta: bool) -> Maximum:
        radius2 = self.ellipsoid_radius**2
        quick = ridge_maximum(self._ridge(self.alpha), phi, radius2, with_theta=with_theta)
        if quick is not None:
            return quick
        spectrum = self._spectrum()
        directions = split(phi, spectrum, with_outside=with_theta)
        return ellipsoid_maximum(spectrum, directions, self.alpha, radius2, with_theta=with_theta)

    def _parameters(self) -> dict[str, Any]:
        return {"norm_bound": self.norm_bound, "alpha": self.alpha, "on_empty": self.on_empty}

    @classmethod
    def _from_parameters(cls, features: FeatureMap, state: Mapping[str, Any]) -> Self:
        return cls(
            features,
            sigma=state["sigma"],
            norm_bound=state["norm_bound"],
            delta=state["delta"],
            alpha=state["alpha"],
            on_empty=state["on_empty"],
        )
