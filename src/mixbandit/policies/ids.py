"""Information-directed sampling, deterministic and frequentist (Kirschner & Krause 2018).

| symbol | meaning |
|---|---|
| Δ(a) = max_{a'} UCB(a') − LCB(a) | a bound on the regret of a |
| w = φᵀV_α⁻¹φ, I(a) = ln(1 + w) | what there is to learn from a |

Play argmin Δ²/I: little regret for much information.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mixbandit._validation import Array
from mixbandit.acquisition import Field, Found, Optimism, Score
from mixbandit.actions import Region
from mixbandit.confidence import ConfidenceSequence, OFULSequence
from mixbandit.errors import InvalidInput
from mixbandit.policies.base import Policy, Selection

# Divisors are at least this.
_LEAST = 1e-300


class InformationDirected(Policy):
    """Play the action with the least squared regret bound per information, with OFUL's bounds.

    On a box in two searches: the largest upper bound, then 2 ln Δ − ln I.
    """

    def __init__(self, sequence: OFULSequence, actions: Region | ArrayLike | None = None, **options: Any) -> None:
        if not isinstance(sequence, OFULSequence):
            raise InvalidInput(f"information-directed sampling acts on an OFULSequence, got {sequence!r}")
        super().__init__(sequence, actions, **options)

    def _select(self, acting: ConfidenceSequence, field: Field, round_: int) -> Selection:
        assert isinstance(acting, OFULSequence)
        optimum = field.maximise(Optimism(acting, None)).value
        found: Found = field.maximise(InformationPerRegret(acting, optimum))
        return Selection(found, optimum)

    def _worst_case(self) -> str:
        return "No regret bound known in advance is computed for information-directed sampling."


class InformationPerRegret(Score):
    """ln I − 2 ln Δ, to be maximised. Infinite where nothing is lost (Δ = 0), −infinite where nothing is learnt."""

    def __init__(self, sequence: OFULSequence, optimum: float) -> None:
        self._sequence, self._optimum = sequence, optimum
        self._radius = sequence.ellipsoid_radius

    def values(self, phi: Array) -> Array:
        high, low = (self._sequence._maximum(part, None, with_theta=False).value for part in (phi, -phi))
        return self._combined(0.5 * (high + low), self._optimum + low)

    def slopes(self, phi: Array) -> tuple[Array, Array]:
        upper, lower = (self._sequence._maximum(part, None, with_theta=True) for part in (phi, -phi))
        assert upper.theta is not None
        assert lower.theta is not None
        half, regret = 0.5 * (upper.value + lower.value), self._optimum + lower.value
        value = self._combined(half, regret)
        # With half = radius·√w: d ln I = (2/radius²)·half·d half/((1 + w) I), and d ln Δ = −θ_lower/Δ.
        w = (half / self._radius) ** 2
        rate = 2.0 * half / (self._radius**2 * (1.0 + w) * np.maximum(np.log1p(w), _LEAST))
        half_slope = 0.5 * (upper.theta - lower.theta)
        slope = rate[:, None] * half_slope + 2.0 * lower.theta / np.maximum(regret, _LEAST)[:, None]
        return value, np.where(np.isfinite(value)[:, None], slope, 0.0)

    def _combined(self, half: Array, regret: Array) -> Array:
        information = np.log1p((half / self._radius) ** 2)
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.log(information) - 2.0 * np.log(np.maximum(regret, 0.0))
        return np.where(regret <= 0.0, np.inf, value)
