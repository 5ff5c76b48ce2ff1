"""The confidence ellipsoid of OFUL (Abbasi-Yadkori, Pál & Szepesvári 2011), the paper's main comparison.

With a kernel it is that of AY-GP-UCB (Abbasi-Yadkori 2012).
"""

from __future__ import annotations

import abc
import math

from mixbandit._checks import multiplier, one_of, positive, probability
from mixbandit._lazy import setting
from mixbandit._schema import real, record
from mixbandit.data import Data, spread_of, widened
from mixbandit.features import FeatureMap
from mixbandit.kernels import Kernel
from mixbandit.mixtures import log_det
from mixbandit.models import DataModel, single_model
from mixbandit.sequences.base import ON_EMPTY, ConfidenceSequence, shared
from mixbandit.sequences.refutation import NoiseTest, parts_of_tests, scales_of
from mixbandit.sequences.rules import FixedMultiplier, looks_quiet
from mixbandit.sets import Ellipsoid, RidgeEllipsoid, SpectralEllipsoid


class EllipsoidRule(FixedMultiplier):
    """{θ : ‖θ − θ̂_α‖_V ≤ radius}, V = ΦᵀΦ + αI, α fixed in advance; a subclass says which radius."""

    def __init__(self, model: DataModel, sigma: float, norm_bound: float, delta: float, alpha: float) -> None:
        super().__init__(model, delta)
        self.sigma: float = sigma
        self.norm_bound, self.alpha = norm_bound, alpha
        self.sums_up = model.dim is not None
        self.tests = parts_of_tests(delta)
        self._noise = NoiseTest(sigma, delta, norm_bound, scales_of(norm_bound, model.dim))

    @abc.abstractmethod
    def radius(self, volume: float, count: int) -> float:
        """The radius from ln det(ΦᵀΦ/α + I) and the number of rewards."""

    @property
    def reach(self) -> float:
        return self.norm_bound

    def alpha0(self, data: Data) -> float:
        return self.alpha

    def outer(self, data: Data, alpha: float) -> Ellipsoid:
        ridge, root_alpha = data.ridge(self.alpha), math.sqrt(self.alpha)
        volume = ridge.log_det if ridge.is_accurate else log_det(data.spectrum.all_singular, root_alpha)
        radius = self.radius(volume, data.count)
        if not ridge.is_accurate:
            radius += data.spectrum.lost_estimate(self.alpha)
        radius = widened(radius, data.rounding(self.norm_bound))

        def spectral() -> SpectralEllipsoid:
            return SpectralEllipsoid(data.spectrum, self.alpha, radius**2)

        spread = spread_of(data)
        return RidgeEllipsoid(ridge, radius**2, spectral, spread) if ridge.is_accurate else spectral()

    def noise_refuted(self, data: Data) -> bool:
        # Estimates at α itself may follow the noise, and be larger than the norm bound.
        larger = (1.0, 10.0, 100.0) if data.has_quick_ridges else (1.0,)
        if looks_quiet(data, self._noise, (each * self.alpha for each in larger)):
            return False
        return self._noise.refutes(data.spectrum, data.count)

    def stated(self) -> str:
        return f"sigma={self.sigma:g}, norm_bound={self.norm_bound:g}"


class OFULRule(EllipsoidRule):
    """{θ : ‖θ − θ̂_α‖_V ≤ σ√(ln det(ΦᵀΦ/α + I) + 2 ln(1/δ)) + √α B}, V = ΦᵀΦ + αI."""

    kind = "oful"
    theories = ("Thompson sampling", "information-directed sampling")

    def radius(self, volume: float, count: int) -> float:
        noise = self.sigma * math.sqrt(volume - 2.0 * math.log(self.delta))
        return noise + math.sqrt(self.alpha) * self.norm_bound


class EllipsoidSequence(ConfidenceSequence):
    """Base of sequences whose set is one ellipsoid around a ridge estimate.

    The set is never empty; `on_empty` says what a policy does when residuals are larger than σ allows, which is
    tested in any case (`noise_refuted`).
    """

    advice = "on_empty='inflate' continues without a guarantee"

    sigma: float = setting("moment.rule.sigma", "The stated noise level.")
    norm_bound: float = setting("moment.rule.norm_bound", "The stated bound B on ‖θ*‖.")
    alpha: float = setting("moment.rule.alpha", "The multiplier, fixed in advance.")
    ellipsoid_radius: float = setting("moment.exact.radius", "The bound on ‖θ* − θ̂_α‖_V.")


class OFULSequence(EllipsoidSequence):
    """{θ : ‖θ − θ̂_α‖_V ≤ σ√(ln det(ΦᵀΦ/α + I) + 2 ln(1/δ)) + √α B}, V = ΦᵀΦ + αI.

    With a kernel in place of features these are the bounds of AY-GP-UCB (Abbasi-Yadkori 2012). α is fixed in advance,
    at σ² by default, as in the paper. The set is never empty; `on_empty` says what a policy does when residuals are
    larger than σ allows, which is always tested (`noise_refuted`).
    """

    kind = "OFULSequence"
    schema = record({**shared("sigma", "delta", "norm_bound"), "alpha": real(multiplier), **shared("on_empty")})

    def __init__(
        self,
        features: FeatureMap | Kernel | int,
        *,
        sigma: float,
        norm_bound: float,
        delta: float = 0.01,
        alpha: float | None = None,
        on_empty: str = "raise",
    ) -> None:
        model, level = single_model(features), positive(sigma, "sigma")
        fixed = level**2 if alpha is None else multiplier(alpha, "alpha")
        rule = OFULRule(model, level, positive(norm_bound, "norm_bound"), probability(delta, "delta"), fixed)
        super().__init__(rule, on_empty=one_of(on_empty, ON_EMPTY, "on_empty"))
