"""Thompson sampling with a frequentist guarantee (Agrawal & Goyal 2013)."""

from __future__ import annotations

import math

import numpy as np

from mixbandit._validation import Array
from mixbandit.acquisition import Field, Linear
from mixbandit.confidence import ConfidenceSequence
from mixbandit.policies.base import Policy, Selection


class ThompsonSampling(Policy):
    """Draw θ̃ ~ N(θ̂_α, v²V_α⁻¹), v = σ√(9 d ln(t/δ)), and play argmax φᵀθ̃, in round t, at α = `sequence.alpha0`."""

    def _select(self, acting: ConfidenceSequence, field: Field, round_: int) -> Selection:
        return Selection(field.maximise(Linear(self._draw(acting, field.rng, round_))))

    @staticmethod
    def _draw(acting: ConfidenceSequence, rng: np.random.Generator, round_: int) -> Array:
        d = acting.features.dim
        spread = acting.sigma * math.sqrt(9.0 * d * math.log(round_ / acting.delta))
        spectrum, root_alpha = acting._spectrum(), math.sqrt(acting.alpha0)
        scale = np.hypot(spectrum.singular, root_alpha)
        noise = rng.normal(size=d)
        # V^{-½} times noise: 1/√(s+α) along the directions seen, 1/√α along the others.
        along = spectrum.basis.T @ noise
        centre = spectrum.singular / scale * (spectrum.z / scale)
        inside = centre + spread * along * (1.0 / scale - 1.0 / root_alpha)
        return np.asarray(spectrum.basis @ inside + spread / root_alpha * noise)

    def _worst_case(self) -> str:
        return "Its regret is O(d^{3/2}√T) up to logarithms (Agrawal & Goyal 2013); the constant is not computed."
