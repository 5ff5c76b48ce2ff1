"""The confidence bounds of IGP-UCB (Chowdhury & Gopalan 2017, "On Kernelized Multi-armed Bandits"), for comparison.

| symbol | meaning |
|---|---|
| K | kernel matrix of the actions, or ΦΦᵀ; ε the noise of their rewards |
| λ = 1 + η | the regulariser, in absolute units: it does not scale with σ² |
| σ_t²(x) = k(x,x) − k_t(x)ᵀ(K + λI)⁻¹k_t(x) | λw, w = φᵀV_λ⁻¹φ being ours |

Their Theorem 1 bounds ‖ε‖² in the norm of ((K + ηI)⁻¹ + I)⁻¹ by 2σ² ln(√det(λI + K)/δ), for all t together. The error
of the ridge estimate at x is at most σ_t(x)B plus φᵀV⁻¹Φᵀε ≤ √w·√(εᵀK(K + λI)⁻¹ε), and K(K + λI)⁻¹ is at most
(K + ηI)(K + λI)⁻¹ = ((K + ηI)⁻¹ + I)⁻¹. With √w = σ_t(x)/√λ ≤ σ_t(x), as in the paper,
|f*(x) − μ_t(x)| ≤ σ_t(x)·(B + σ√(ln det(λI + K) + 2 ln(1/δ))). Their Theorem 2 goes on to replace the determinant by
the largest that any t actions could have.
"""

from __future__ import annotations

import math

from mixbandit._checks import one_of, positive, positive_int, probability
from mixbandit._lazy import setting
from mixbandit.errors import InvalidInput
from mixbandit.features import FeatureMap
from mixbandit.kernels import Kernel
from mixbandit.models import DataModel, single_model
from mixbandit.sequences.base import ON_EMPTY
from mixbandit.sequences.oful import EllipsoidRule, EllipsoidSequence

# The paper's 2/T for T = 1,000 rounds, where nothing is said about them.
_ETA = 0.002


class IGPRule(EllipsoidRule):
    """{f : ‖f − μ_t‖_V ≤ √λ (B + σ√(ln det(λI + K) + 2 ln(1/δ)))}, V = ΦᵀΦ + λI, λ = 1 + η."""

    kind = "igp"

    def __init__(self, model: DataModel, sigma: float, norm_bound: float, delta: float, eta: float) -> None:
        super().__init__(model, sigma, norm_bound, delta, 1.0 + eta)
        self.eta = eta

    def radius(self, volume: float, count: int) -> float:
        log_det = volume + count * math.log1p(self.eta)  # ln det(λI + K), K with a row per reward
        noise = self.sigma * math.sqrt(log_det - 2.0 * math.log(self.delta))
        return math.sqrt(self.alpha) * (self.norm_bound + noise)


class IGPSequence(EllipsoidSequence):
    """|f*(x) − μ_t(x)| ≤ σ_t(x)·(B + σ√(ln det((1+η)I + K) + 2 ln(1/δ))), the bounds of IGP-UCB.

    μ_t and σ_t are the mean and standard deviation of a Gaussian process whose noise has variance 1 + η, whatever σ is
    (Chowdhury & Gopalan 2017, Theorem 2 with the determinant of the data, as in their Theorem 1). η > 0 must be fixed
    in advance: state `eta`, or `horizon`, the number of rounds T, for the paper's 2/T; with neither it is 0.002.

    It is always wider than `OFULSequence` at alpha = 1 + η: use it for comparisons. Its set is never empty; `on_empty`
    says what a policy does when residuals are larger than σ allows, which is always tested (`noise_refuted`).
    """

    keywords = ("sigma", "delta", "norm_bound", "eta", "on_empty")

    eta: float = setting("moment.rule.eta", "η, fixed in advance; the multiplier `alpha` is 1 + η.")

    def __init__(
        self,
        features: FeatureMap | Kernel | int,
        *,
        sigma: float,
        norm_bound: float,
        delta: float = 0.01,
        horizon: int | None = None,
        eta: float | None = None,
        on_empty: str = "raise",
    ) -> None:
        model, level = single_model(features), positive(sigma, "sigma")
        if horizon is not None and eta is not None:
            raise InvalidInput(f"state horizon or eta, not both; got horizon={horizon!r} and eta={eta!r}")
        if horizon is not None:
            eta = 2.0 / positive_int(horizon, "horizon")
        fixed = _ETA if eta is None else positive(eta, "eta")
        rule = IGPRule(model, level, positive(norm_bound, "norm_bound"), probability(delta, "delta"), fixed)
        super().__init__(rule, on_empty=one_of(on_empty, ON_EMPTY, "on_empty"))
