"""Stationary kernels: functions of the distance r = ‖(a − b)/ℓ‖.

| symbol | meaning |
|---|---|
| ℓ | length-scales, one for all columns or one for each |
| f(r) | the profile: k = variance·f(r), f(0) = 1 |
| g(r) = −f'(r)/r | its slope: ∂k/∂a = −variance·g(r)·(a − b)/ℓ² |
"""

from __future__ import annotations

import abc
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mixbandit._checks import Array, as_number, finite, positive, positive_array, shown
from mixbandit._schema import array, real, record
from mixbandit.errors import InvalidInput
from mixbandit.kernels.base import VARIANCE, Kernel
from mixbandit.kernels.rows import IntArray, in_blocks, squared_distances, squares

# Distances beyond this, in units of the length-scale, count as this: the kernel is 0 there.
_FAR = 1e100
# Below this, 1 − f is computed from its series: the difference would keep too few digits.
_NEAR = 1e-3
_ROUNDING = 4.0 * float(np.finfo(np.float64).eps)


def _lengthscale(value: Any, where: str) -> Array:
    return array(None)(value, where) if np.ndim(value) else array()(np.asarray(value), where)


class Stationary(Kernel):
    """`variance` times a profile of the distance in units of `lengthscale`."""

    schema = record({"lengthscale": _lengthscale, **VARIANCE})
    constant_diagonal = True

    def __init__(self, lengthscale: ArrayLike = 1.0, variance: float = 1.0) -> None:
        scales = positive_array(lengthscale, "lengthscale")
        if scales.ndim > 1 or scales.size == 0:
            raise InvalidInput(f"lengthscale must be one number or one per input, got shape {scales.shape}")
        self.lengthscale, self.variance = scales.copy(), positive(variance, "variance")
        self.lengthscale.flags.writeable = False
        self.dim_in = scales.size if scales.size > 1 else None

    @abc.abstractmethod
    def _profile(self, distance2: Array) -> Array:
        """f(r) from r², which may be overwritten."""

    @abc.abstractmethod
    def _slope(self, distance2: Array) -> Array:
        """g(r) from r², which may be overwritten."""

    @abc.abstractmethod
    def _drop(self, distance2: Array) -> Array:
        """1 − f(r) from r², never rounded down."""

    def matrix(self, A: Array, B: Array) -> Array:
        return in_blocks(lambda a, b: self._values(self._squared_distances(a, b)), A, B)

    def diagonal(self, A: Array) -> Array:
        return np.full(len(A), self.variance)

    def pullback(self, A: Array, B: Array, weights: Array) -> Array:
        if not len(B):
            return np.zeros(A.shape)
        c = in_blocks(lambda a, b: self._slope(self._squared_distances(a, b)), A, B)
        c *= weights
        # Σ_j c_ij(b_j − a_i), about the middle of B: far from 0 the two sums would cancel.
        middle = B.mean(axis=0)
        a, b = (A - middle) / self.lengthscale, (B - middle) / self.lengthscale
        return np.asarray(self.variance * (c @ b - c.sum(axis=1, keepdims=True) * a) / self.lengthscale)

    def diagonal_pullback(self, A: Array) -> Array:
        return np.zeros(A.shape)

    def stray(self, centres: Array, half_widths: Array) -> Array:
        """√(2·variance·(1 − f)) at a corner of the cell, where it is largest."""
        with np.errstate(over="ignore"):
            corner = np.minimum(squares(half_widths / self.lengthscale), _FAR**2)
        return np.sqrt(2.0 * self.variance * self._drop(corner))

    def largest(self, centres: Array, half_widths: Array) -> Array:
        return np.full(len(centres), math.sqrt(self.variance))

    def exchanged(self, base: Array, columns: IntArray, values: Array, B: Array) -> Array:
        start, others = base / self.lengthscale, B / self.lengthscale
        with np.errstate(over="ignore"):
            apart = (others - start) ** 2
            # All columns but one, as a sum of those before and those after: nothing is subtracted.
            rest = np.zeros(apart.shape)
            rest[:, 1:] += np.cumsum(apart[:, :-1], axis=1)
            rest[:, :-1] += np.cumsum(apart[:, :0:-1], axis=1)[:, ::-1]
            new = values / np.broadcast_to(self.lengthscale, base.shape)[columns]
            distance2 = new[:, None] - others.T[columns]
            distance2 *= distance2
            distance2 += rest.T[columns]
        return self._values(np.minimum(distance2, _FAR**2, out=distance2))

    def _values(self, distance2: Array) -> Array:
        values = self._profile(distance2)
        values *= self.variance
        return values

    def _squared_distances(self, A: Array, B: Array) -> Array:
        distance2 = squared_distances(A / self.lengthscale, B / self.lengthscale)
        return np.minimum(distance2, _FAR**2, out=distance2)


class RBF(Stationary):
    """variance·exp(−r²/2), r = ‖(a − b)/lengthscale‖: the Gaussian kernel."""

    kind = "RBF"

    def _profile(self, distance2: Array) -> Array:
        distance2 *= -0.5
        return np.exp(distance2, out=distance2)

    def _slope(self, distance2: Array) -> Array:
        return self._profile(distance2)

    def _drop(self, distance2: Array) -> Array:
        return np.asarray(-np.expm1(-0.5 * distance2) * (1.0 + _ROUNDING))


class Matern(Stationary):
    """The Matérn kernel of smoothness ν = 1/2, 3/2 or 5/2, with s = √(2ν)·r, r = ‖(a − b)/lengthscale‖.

    variance·e⁻ˢ, variance·(1 + s)e⁻ˢ or variance·(1 + s + s²/3)e⁻ˢ. The first has no derivative where a = b.
    """

    kind = "Matern"
    schema = record({"nu": real(finite), **Stationary.schema.fields})

    def __init__(self, nu: float = 2.5, lengthscale: ArrayLike = 1.0, variance: float = 1.0) -> None:
        super().__init__(lengthscale, variance)
        self.nu = as_number(nu, "nu")
        if self.nu not in (0.5, 1.5, 2.5):
            raise InvalidInput(f"nu must be 0.5, 1.5 or 2.5, got {shown(nu)}")
        self.differentiable = self.nu > 0.5

    def _profile(self, distance2: Array) -> Array:
        s, values = self._scaled(distance2)
        if self.nu == 1.5:
            s += 1.0
            values *= s
        elif self.nu == 2.5:
            quadratic = s / 3.0
            quadratic += 1.0
            quadratic *= s
            quadratic += 1.0
            values *= quadratic
        return values

    def _slope(self, distance2: Array) -> Array:
        s, values = self._scaled(distance2)
        if self.nu == 0.5:
            return np.divide(values, s, out=np.zeros(s.shape), where=s > 0.0)
        if self.nu == 1.5:
            values *= 3.0
        else:
            s += 1.0
            s *= 5.0 / 3.0
            values *= s
        return values

    def _drop(self, distance2: Array) -> Array:
        s, _ = self._scaled(distance2.copy())
        if self.nu == 0.5:
            return np.asarray(-np.expm1(-s) * (1.0 + _ROUNDING))
        near = np.minimum(s, _NEAR)
        # Upper bounds: f' is −s e⁻ˢ or −(s + s²)e⁻ˢ/3, and e⁻ˢ ≤ 1 − s + s²/2.
        series = near**2 * (0.5 - near / 3.0 + near**2 / 8.0) if self.nu == 1.5 else near**2 / 6.0
        drop = 1.0 - self._profile(distance2.copy()) + _ROUNDING
        return np.where(s < _NEAR, series * (1.0 + _ROUNDING), drop)

    def _scaled(self, distance2: Array) -> tuple[Array, Array]:
        """The values of s and e⁻ˢ, from r², which is overwritten."""
        s = np.sqrt(distance2, out=distance2)
        s *= math.sqrt(2.0 * self.nu)
        values = np.negative(s)
        return s, np.exp(values, out=values)
