"""Ridge regression at one α, from features: everything that a closed-form bound needs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mixbandit._checks import Array
from mixbandit.data.directions import SAFE_SIZE, are_safe, squares


class Ridge(NamedTuple):
    """Ridge regression from the triangular factor of V = ΦᵀΦ + αI."""

    alpha: float
    inverse: Array  # R⁻¹, upper triangular, of the R with RᵀR = V, (d, d)
    theta: Array  # θ̂_α, (d,)
    log_det: float  # ln det(ΦᵀΦ/α + I)
    is_accurate: bool  # whether rounding, which is relative to R's largest entry, leaves ten digits of √α

    @property
    def norm2(self) -> float:
        """‖θ̂_α‖²."""
        return float(self.theta @ self.theta)

    @staticmethod
    def is_safe(directions: Array) -> bool:
        """Whether squares of the directions stay in the range of floats."""
        return are_safe(squares(directions), SAFE_SIZE**2)

    def estimates(self, directions: Array) -> Array:
        """φᵀθ̂_α, (n,)."""
        return np.asarray(directions @ self.theta)

    def widths(self, directions: Array) -> Array:
        """√w = ‖φ‖_{V⁻¹}, (n,)."""
        return np.sqrt(squares(directions @ self.inverse))

    def maximisers(self, directions: Array, radius: float) -> tuple[Array, Array]:
        """√w, and the points θ̂_α + radius·V⁻¹φ/√w."""
        half = directions @ self.inverse
        root_w = np.sqrt(squares(half))
        return root_w, self.theta + (radius / root_w)[:, None] * (half @ self.inverse.T)

    def sample(self, rng: np.random.Generator, spread: float) -> Array:
        """θ ~ N(θ̂_α, spread²V⁻¹), (d,)."""
        # R⁻¹ is a root of V⁻¹.
        return np.asarray(self.theta + spread * (self.inverse @ rng.normal(size=len(self.theta))))
