"""Bayesian credible intervals (App. "The effect of the mixture distributions"), for comparison."""

from __future__ import annotations

from mixbandit._checks import instance_of, positive, probability
from mixbandit._lazy import setting
from mixbandit._schema import record
from mixbandit.data import Data
from mixbandit.features import FeatureMap
from mixbandit.mixtures import LinearMixture, Standard
from mixbandit.models import FeatureModel, feature_model
from mixbandit.sequences.base import ConfidenceSequence, shared
from mixbandit.sequences.refutation import NoiseTest, parts_of_tests, scales_of
from mixbandit.sequences.rules import FixedMultiplier
from mixbandit.sets import AffineImage, Ellipsoid, SpectralEllipsoid
from mixbandit.spending import Spending


class BayesRule(FixedMultiplier):
    """The credible ellipsoid of θ* ~ N(θ₀, Σ₀) under Gaussian noise."""

    kind = "bayes"
    guarantee = "bayesian"

    def __init__(
        self, model: FeatureModel, sigma: float, norm_bound: float | None, delta: float, mixture: LinearMixture
    ) -> None:
        super().__init__(model, delta)
        self.sigma: float = sigma
        self.norm_bound, self.mixture = norm_bound, mixture
        self._shift, self._root = mixture.dense_prior(model.dim)
        self._cost = mixture.cost(model, sigma)
        self.tests, self._levels = parts_of_tests(delta), Spending(delta)
        self._noise = NoiseTest(sigma, delta, norm_bound, scales_of(norm_bound or 1.0, model.dim))

    def alpha0(self, data: Data) -> float:
        return self.mixture.alpha0(self.dim, self.sigma)

    def quantile(self, t: int) -> float:
        """Q_t, the χ²(d) quantile at 1 − 6δ/((t+1)²π²)."""
        from scipy.special import chdtri  # not with the package: it would double the import time

        # From its upper tail: 1 − 6δ/((t+1)²π²) itself rounds to 1 for large t.
        return float(chdtri(self.dim, self._levels.nth_square(t + 1).delta))

    def outer(self, data: Data, alpha: float) -> Ellipsoid:
        # With θ = θ₀ + Lη the prior is η ~ N(0, I) and the posterior a ridge ellipsoid at α = σ².
        radius2 = self.sigma**2 * self.quantile(data.count)
        base = SpectralEllipsoid(self._cost.whitened(data), self.sigma**2, radius2)
        return AffineImage(base, self._shift, self._root, self.alpha0(data))

    def noise_refuted(self, data: Data) -> bool:
        near = data.near_residual(self.alpha0(data), self.norm_bound)
        may = self._noise.may_refute(near, data.residual, data.count)
        return may and self._noise.refutes(data.spectrum, data.count)

    def stated(self) -> str:
        return f"sigma={self.sigma:g}"


class BayesCredible(ConfidenceSequence):
    """φᵀμ_t ± √(Q_t φᵀΣ_tφ) under the prior θ* ~ N(θ₀, Σ₀) and Gaussian noise.

    Q_t is the χ²(d) quantile at 1 − 6δ/((t+1)²π²), so that the levels of all t sum to δ. The prior is given as the
    linear `mixture` with the same θ₀ and Σ₀. The interval is right on average over the prior. For a θ* that the prior
    makes unlikely it can be wrong at every time, so it has no "anytime" guarantee. `norm_bound` has no effect on
    intervals; if given, the noise is tested over parameters of at most that norm.
    """

    kind = "BayesCredible"
    schema = record(shared("sigma", "delta", "norm_bound", "mixture"))
    advice = "state a larger sigma, or use other features"

    sigma: float = setting("moment.rule.sigma", "The stated noise level.")
    norm_bound: float | None = setting("moment.rule.norm_bound", "A bound on ‖θ*‖, for the test of the noise.")
    mixture: LinearMixture = setting("moment.rule.mixture", "The prior.")

    def __init__(
        self,
        features: FeatureMap | int,
        *,
        sigma: float,
        norm_bound: float | None = None,
        delta: float = 0.01,
        mixture: LinearMixture | None = None,
    ) -> None:
        prior = Standard() if mixture is None else mixture
        instance_of(prior, LinearMixture, "the prior", "Standard, Scaled or Linear")
        bound = None if norm_bound is None else positive(norm_bound, "norm_bound")
        model, level = feature_model(features, "BayesCredible"), positive(sigma, "sigma")
        super().__init__(BayesRule(model, level, bound, probability(delta, "delta"), prior))
