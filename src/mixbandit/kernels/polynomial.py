"""Kernels of the product aᵀb. They depend on where 0 is: scale and centre actions accordingly."""

from __future__ import annotations

import math

import numpy as np

from mixbandit._checks import Array, nonnegative, positive, positive_int
from mixbandit._schema import integer, real, record
from mixbandit.kernels.base import VARIANCE, Kernel
from mixbandit.kernels.rows import IntArray, dots, farthest, in_blocks, power, squares

_LARGEST_DEGREE = 100


class PolynomialKernel(Kernel):
    """variance·(aᵀb + constant)^degree."""

    kind = "PolynomialKernel"
    schema = record({"degree": integer(1), "constant": real(nonnegative), **VARIANCE})

    def __init__(self, degree: int, constant: float = 1.0, variance: float = 1.0) -> None:
        self.degree = positive_int(degree, "degree", _LARGEST_DEGREE)
        self.constant, self.variance = nonnegative(constant, "constant"), positive(variance, "variance")

    def matrix(self, A: Array, B: Array) -> Array:
        return in_blocks(lambda a, b: self._values(dots(a, b)), A, B)

    def diagonal(self, A: Array) -> Array:
        return self._values(squares(A))

    def pullback(self, A: Array, B: Array, weights: Array) -> Array:
        if self.degree == 1:
            return np.asarray(self.variance * (weights @ B))
        return in_blocks(lambda a, b, w: (w * self._slopes(dots(a, b))) @ b, A, B, weights)

    def diagonal_pullback(self, A: Array) -> Array:
        return np.asarray(self._slopes(squares(A))[:, None] * A)

    def stray(self, centres: Array, half_widths: Array) -> Array:
        """‖u^⊗d − w^⊗d‖ ≤ ‖u − w‖ Σ_i ‖u‖^i ‖w‖^(d−1−i), for the rows u and w extended by √constant."""
        u = np.sqrt(farthest(centres, half_widths) + self.constant)
        w = np.sqrt(squares(centres) + self.constant)
        total = np.ones(len(u))
        for i in range(1, self.degree):
            total = total * u + power(w, i)
        return math.sqrt(self.variance) * np.sqrt(squares(half_widths)) * total

    def largest(self, centres: Array, half_widths: Array) -> Array:
        return np.sqrt(self._values(farthest(centres, half_widths)))

    def exchanged(self, base: Array, columns: IntArray, values: Array, B: Array) -> Array:
        products = B.T[columns]
        products *= (values - base[columns])[:, None]
        products += dots(base[None], B)
        return self._values(products)

    def _values(self, products: Array) -> Array:
        """The kernel from aᵀb, which may be overwritten."""
        return self._scaled_power(products, self.degree, self.variance)

    def _slopes(self, products: Array) -> Array:
        """The derivative in aᵀb, which may be overwritten."""
        return self._scaled_power(products, self.degree - 1, self.degree * self.variance)

    def _scaled_power(self, products: Array, degree: int, factor: float) -> Array:
        products += self.constant
        values = power(products, degree)
        values *= factor
        return values


class LinearKernel(PolynomialKernel):
    """variance·aᵀb."""

    kind = "LinearKernel"
    schema = record(VARIANCE)

    def __init__(self, variance: float = 1.0) -> None:
        super().__init__(1, 0.0, variance)
