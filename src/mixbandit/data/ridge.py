"""Ridge regression at one α, from features: everything that a closed-form bound needs, one reward after the other.

| symbol | meaning | shape |
|---|---|---|
| V = ΦᵀΦ + αI | Gram matrix of the ridge | (d, d) |
| W | a root of its inverse: WWᵀ = V⁻¹ | (d, d) |
| u = Wᵀφ | a direction in the coordinates of W, so that ‖φ‖²_{V⁻¹} = ‖u‖² | (d,) |
| q = WᵀΦᵀr | the rewards in these coordinates, so that θ̂_α = Wq | (d,) |

A reward changes V by φφᵀ, and W by a product of rank one (Potter's form, known from Kalman filters): roots keep V⁻¹
positive definite and lose half as many digits as V⁻¹ itself would. Rounding errors add up over such steps, so that
`Factor` starts again from a QR factor every few rewards.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from mixbandit._checks import Array
from mixbandit._compiling import Kernel, kernel
from mixbandit._lazy import blas
from mixbandit.data.directions import SAFE_SIZE, are_safe, squares
from mixbandit.data.products import ridge_step

# Bounds come from the ridge alone up to this ratio of the largest entry of V's triangular factor to √α.
_WELL_CONDITIONED = 1e5


class Ridge(NamedTuple):
    """Ridge regression at α."""

    alpha: float
    root: Array  # W, (d, d), in Fortran's order
    theta: Array  # θ̂_α, (d,)
    white: Array  # q, (d,); forming it from Φᵀr would lose digits in directions of which little is known
    log_det: float  # ln det(ΦᵀΦ/α + I)
    loss: float  # min_θ ‖Φθ − r‖² + α‖θ‖²
    peak2: float  # at least the square of the largest entry of the triangular factor of V
    norm2: float  # ‖θ̂_α‖²

    def after(self, row: Array, reward: float, size2: float) -> Ridge:
        """With one more row (d,) of squared length `size2`, and its reward."""
        step = kernel("mixbandit.data._compiled_ridge.step", _check_step) or ridge_step
        columns, theta, white, w, error, norm2 = step(self.root, self.theta, self.white, row, reward)
        return Ridge(
            self.alpha,
            columns.T,
            theta,
            white,
            self.log_det + math.log1p(w),
            self.loss + error * error / (1.0 + w),
            self.peak2 + size2,
            norm2,
        )

    @property
    def is_accurate(self) -> bool:
        """Whether rounding, which is relative to the largest entry of V's factor, leaves ten digits of √α."""
        return self.peak2 <= _WELL_CONDITIONED**2 * self.alpha

    def towards(self, reach: float | None) -> float:
        """‖Φθ − r‖² minus the loss, for θ the estimate or, if that is longer than `reach`, as much of it as is allowed.

        At sθ̂ it is −α(2s − 1)‖θ̂‖² + (1−s)²‖Φθ̂‖², because Φᵀ(r − Φθ̂) = αθ̂: small numbers are not differences of
        large ones.
        """
        norm2 = self.norm2
        if reach is None or norm2 <= reach**2:
            return -self.alpha * norm2
        share = reach / math.sqrt(norm2)
        explained = max(float(blas().ddot(self.white, self.white)) - self.alpha * norm2, 0.0)
        return -self.alpha * (2.0 * share - 1.0) * norm2 + (1.0 - share) ** 2 * explained

    @staticmethod
    def is_safe(directions: Array) -> bool:
        """Whether squares of the directions stay in the range of floats."""
        return are_safe(squares(directions), SAFE_SIZE**2)

    def measured(self, directions: Array) -> tuple[Array, Array] | None:
        """φᵀθ̂_α and √w = ‖φ‖_{V⁻¹}, (n,) each; None where squares leave the range of floats."""
        half = directions @ self.root
        w = np.einsum("nd,nd->n", half, half)
        return (directions @ self.theta, np.sqrt(w)) if are_safe(w, SAFE_SIZE**2) else None

    def measured_one(self, direction: Array) -> tuple[float, float] | None:
        """The same of one direction (1, d)."""
        fast, row = blas(), direction[0]
        half = fast.dgemv(1.0, self.root, row, trans=1)
        w = fast.ddot(half, half)
        return (fast.ddot(row, self.theta), math.sqrt(w)) if SAFE_SIZE**2 < w < SAFE_SIZE**-2 else None

    def estimates(self, directions: Array) -> Array:
        """φᵀθ̂_α, (n,)."""
        return np.asarray(directions @ self.theta)

    def widths(self, directions: Array) -> Array:
        """√w = ‖φ‖_{V⁻¹}, (n,)."""
        return np.sqrt(squares(directions @ self.root))

    def maximisers(self, directions: Array, radius: float) -> tuple[Array, Array]:
        """√w, and the points θ̂_α + radius·V⁻¹φ/√w."""
        half = directions @ self.root
        root_w = np.sqrt(squares(half))
        return root_w, self.theta + (radius / root_w)[:, None] * (half @ self.root.T)

    def sample(self, rng: np.random.Generator, spread: float) -> Array:
        """θ ~ N(θ̂_α, spread²V⁻¹), (d,)."""
        return np.asarray(self.theta + spread * (self.root @ rng.normal(size=len(self.theta))))


def _check_step(compiled: Kernel) -> None:
    """Raise RuntimeError unless compiled code steps as BLAS does; the first call compiles it."""
    root = np.asfortranarray(np.eye(5) + 0.1 * np.cos(np.arange(25.0)).reshape(5, 5))
    theta, white, row = np.sin(np.arange(15.0)).reshape(3, 5)
    for one, other in zip(
        compiled(root, theta, white, row, 0.7), ridge_step(root, theta, white, row, 0.7), strict=True
    ):
        if not np.allclose(one, other, rtol=1e-12, atol=1e-14):
            raise RuntimeError(f"compiled code gives {one}, BLAS {other}")
