"""The confidence ellipsoid of OFUL (Abbasi-Yadkori, Pál & Szepesvári 2011), the paper's main comparison."""

from __future__ import annotations

import math

from mixbandit._checks import multiplier, one_of, positive, probability
from mixbandit.data import Data, widened
from mixbandit.features import FeatureMap, as_feature_map
from mixbandit.mixtures import log_det
from mixbandit.sequences.base import ON_EMPTY, ConfidenceSequence, setting
from mixbandit.sequences.refutation import noise_refuted
from mixbandit.sequences.rules import FixedMultiplier
from mixbandit.sets import Ellipsoid, RidgeEllipsoid, SpectralEllipsoid


class OFULRule(FixedMultiplier):
    """{θ : ‖θ − θ̂_α‖_V ≤ σ√(ln det(ΦᵀΦ/α + I) + 2 ln(1/δ)) + √α B}, V = ΦᵀΦ + αI."""

    kind = "oful"

    def __init__(self, dim: int, sigma: float, norm_bound: float, delta: float, alpha: float) -> None:
        super().__init__(dim, delta)
        self.sigma: float = sigma
        self.norm_bound, self.alpha = norm_bound, alpha

    @property
    def reach(self) -> float:
        return self.norm_bound

    def alpha0(self, data: Data) -> float:
        return self.alpha

    def outer(self, data: Data, alpha: float) -> Ellipsoid:
        ridge, root_alpha = data.ridge(self.alpha), math.sqrt(self.alpha)
        volume = ridge.log_det if ridge.is_accurate else log_det(data.spectrum.singular, root_alpha)
        radius = self.sigma * math.sqrt(volume - 2.0 * math.log(self.delta)) + root_alpha * self.norm_bound
        radius = widened(radius, data.rounding(self.norm_bound))

        def spectral() -> SpectralEllipsoid:
            return SpectralEllipsoid(data.spectrum, self.alpha, radius**2)

        return RidgeEllipsoid(ridge, radius**2, spectral) if ridge.is_accurate else spectral()

    def noise_refuted(self, data: Data) -> bool:
        return noise_refuted(data, sigma=self.sigma, delta=self.delta, norm=self.norm_bound)

    def stated(self) -> str:
        return f"sigma={self.sigma:g}, norm_bound={self.norm_bound:g}"


class OFULSequence(ConfidenceSequence):
    """{θ : ‖θ − θ̂_α‖_V ≤ σ√(ln det(ΦᵀΦ/α + I) + 2 ln(1/δ)) + √α B}, V = ΦᵀΦ + αI.

    α is fixed in advance, at σ² unless given, as in the paper. The set is never empty; `on_empty` says what a
    policy does when residuals are larger than σ allows, which is tested in any case (`noise_refuted`).
    """

    keywords = ("sigma", "delta", "norm_bound", "alpha", "on_empty")
    advice = "on_empty='inflate' continues without a guarantee"

    sigma: float = setting("moment.rule.sigma", "The stated noise level.")
    norm_bound: float = setting("moment.rule.norm_bound", "The stated bound B on ‖θ*‖.")
    alpha: float = setting("moment.rule.alpha", "The multiplier, fixed in advance.")
    ellipsoid_radius: float = setting("moment.exact.radius", "The bound on ‖θ* − θ̂_α‖_V.")

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
        phi, level = as_feature_map(features), positive(sigma, "sigma")
        fixed = level**2 if alpha is None else multiplier(alpha, "alpha")
        rule = OFULRule(phi.dim, level, positive(norm_bound, "norm_bound"), probability(delta, "delta"), fixed)
        super().__init__(phi, rule, on_empty=one_of(on_empty, ON_EMPTY, "on_empty"))
