"""Rows that are known through ridge regression at one α only, as a triangular factor that is made when it is needed.

With W = A S Bᵀ, WWᵀ = V⁻¹, the rows have V − αI = A (S⁻² − α) Aᵀ, and the rewards Aᵀ Φᵀr = S⁻¹ Bᵀ q. The loss at α,
which is a sum of squares, leaves RSS = loss − Σ α z²/(s + α) without a difference of larger numbers.
"""

from __future__ import annotations

import math

import numpy as np

from mixbandit._checks import Array
from mixbandit._lazy import blas, lazy
from mixbandit.data.factor import Factor, Folded
from mixbandit.data.ridge import Ridge
from mixbandit.data.triangular import folded_in, svd

_EPS = float(np.finfo(np.float64).eps)
# See `Folded.known_eigenvalue`.
_LITTLE, _LENGTH_ROUNDING = 0.01, 1e-6
# Eigenvalues of ΦᵀΦ below this many rounding errors of α, for each dimension, may be nothing.
_UNRESOLVED = 64.0


class Recovered(Folded):
    """What ridge regression at α knows of all rows; for closed forms at α, and most exact bounds, that is enough."""

    is_at_hand = False

    def __init__(self, ridge: Ridge, count: int, size2: float, error: float) -> None:
        """`size2` is the sum of squared lengths of all rows, and `error` at least the relative error of W."""
        self.count, self.error = count, error
        self.ridges, self.derived = {ridge.alpha: ridge}, {}
        self._ridge, self._size2 = ridge, size2

    @property
    def data(self) -> Factor:
        """The data that have been folded in, and no others."""
        return Factor(len(self._ridge.theta), self.count, float(self.count), self)

    @lazy
    def sizes2(self) -> tuple[float, float]:
        ridge = self._ridge
        return self._size2 + ridge.alpha, ridge.loss + float(blas().ddot(ridge.white, ridge.white))

    @lazy
    def matrix(self) -> Array:
        """The factor, (d+1, d+1)."""
        return recovered(self._ridge)

    def known_eigenvalue(self, alpha: float) -> float:
        root = self._ridge.root
        entries = root.ravel(order="K")
        # ‖W‖² is the sum of the eigenvalues of V⁻¹, and so at least the largest.
        found = (1.0 - _LENGTH_ROUNDING) / float(blas().ddot(entries, entries)) - self._ridge.alpha
        return found if found > _LITTLE * alpha else 0.0


def recovered(ridge: Ridge) -> Array:
    """The triangular factor of [Φ r], (d+1, d+1), that ridge regression at α came from."""
    d, alpha = len(ridge.theta), ridge.alpha
    vectors, scale, right = svd(ridge.root)
    s = scale**-2.0 - alpha
    # What is left of directions that no row has. W is largest there, and so known to all digits next to 1/√α, however
    # large other rows are; without rows that are small next to them, and their rewards, sets would be too small.
    s[s <= _UNRESOLVED * d * _EPS * alpha] = 0.0
    root_s = np.sqrt(s)
    moments = (right @ ridge.white) / scale
    z = np.divide(moments, root_s, out=np.zeros(d), where=root_s > 0.0)
    rest = ridge.loss - float(np.sum(alpha / (s + alpha) * z * z))
    rows = np.zeros((d + 1, d + 1))
    rows[:d, :d], rows[:d, d], rows[d, d] = root_s[:, None] * vectors.T, z, math.sqrt(max(rest, 0.0))
    return folded_in(np.zeros((d + 1, d + 1), order="F"), rows)
