"""Kernels for categories, which are blocks of one-hot columns, and for what only some of them have.

They are polynomials in the block, and so positive semi-definite and smooth for all real rows: searches relax blocks to
values between 0 and 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mixbandit._checks import Array, as_number, instance_of, nonnegative, positive, shown
from mixbandit._schema import real, record
from mixbandit.errors import InvalidInput
from mixbandit.kernels.base import COLUMNS, VARIANCE, ConstantKernel, Kernel, ProductKernel, SumKernel
from mixbandit.kernels.polynomial import LinearKernel
from mixbandit.kernels.rows import IntArray, as_columns


class _Derived(Kernel):
    """A kernel that is computed as another, its `formula`."""

    def __init__(self, formula: Kernel) -> None:
        self.formula = formula
        self.dim_in, self.least_dim_in = formula.dim_in, formula.least_dim_in
        self.differentiable, self.constant_diagonal = formula.differentiable, formula.constant_diagonal

    def matrix(self, A: Array, B: Array) -> Array:
        return self.formula.matrix(A, B)

    def diagonal(self, A: Array) -> Array:
        return self.formula.diagonal(A)

    def pullback(self, A: Array, B: Array, weights: Array) -> Array:
        return self.formula.pullback(A, B, weights)

    def diagonal_pullback(self, A: Array) -> Array:
        return self.formula.diagonal_pullback(A)

    def stray(self, centres: Array, half_widths: Array) -> Array | None:
        return self.formula.stray(centres, half_widths)

    def largest(self, centres: Array, half_widths: Array) -> Array | None:
        return self.formula.largest(centres, half_widths)

    def exchanged(self, base: Array, columns: IntArray, values: Array, B: Array) -> Array:
        return self.formula.exchanged(base, columns, values, B)


class OverlapKernel(_Derived):
    """variance·(similarity + (1 − similarity)·⟨a_columns, b_columns⟩), for one category in one-hot `columns`.

    Equal categories have covariance `variance`, different ones similarity·variance, 0 ≤ similarity < 1. The product of
    such kernels, one per category, falls exponentially with the number of categories that differ.
    """

    kind = "OverlapKernel"
    schema = record({"columns": COLUMNS, "similarity": real(nonnegative), **VARIANCE})

    def __init__(self, columns: Sequence[int], similarity: float = 0.5, variance: float = 1.0) -> None:
        self.columns, self.variance = as_columns(columns, "columns"), positive(variance, "variance")
        self.similarity = as_number(similarity, "similarity")
        if not 0.0 <= self.similarity < 1.0:
            raise InvalidInput(f"similarity must lie in [0, 1), got {shown(similarity)}")
        overlap: Kernel = LinearKernel(1.0 - self.similarity).on(self.columns)
        if self.similarity:
            overlap = ConstantKernel(positive(self.similarity, "similarity")) + overlap
        super().__init__(overlap * ConstantKernel(self.variance))


class ConditionalKernel(_Derived):
    """g(a)g(b)·kernel(a, b) + (1 − g(a))(1 − g(b)), where g is the sum of the columns `active`.

    For a parameter that exists only for some categories of a parent: `active` are the one-hot columns of these
    categories, so g is 1 or 0. Two rows that have the parameter are compared by `kernel`, two that do not are equal,
    and mixed pairs have covariance 0.
    """

    kind = "ConditionalKernel"
    schema = record({"kernel": Kernel.family, "active": COLUMNS})

    def __init__(self, kernel: Kernel, active: Sequence[int]) -> None:
        self.kernel = instance_of(kernel, Kernel, "kernel", "a mixbandit kernel")
        self.active = as_columns(active, "active")
        inside = ProductKernel([_Gate(0.0, 1.0).on(self.active), kernel])
        super().__init__(SumKernel([inside, _Gate(1.0, -1.0).on(self.active)]))


class _Gate(Kernel):
    """g(a)g(b) with g(a) = offset + slope·Σ_i a_i: one feature, g."""

    def __init__(self, offset: float, slope: float) -> None:
        self._offset, self._slope = offset, slope

    def matrix(self, A: Array, B: Array) -> Array:
        return np.multiply.outer(self._feature(A), self._feature(B))

    def diagonal(self, A: Array) -> Array:
        return self._feature(A) ** 2

    def pullback(self, A: Array, B: Array, weights: Array) -> Array:
        return self._spread(weights @ self._feature(B), A)

    def diagonal_pullback(self, A: Array) -> Array:
        return self._spread(self._feature(A), A)

    def stray(self, centres: Array, half_widths: Array) -> Array:
        return np.asarray(abs(self._slope) * half_widths.sum(axis=1))

    def exchanged(self, base: Array, columns: IntArray, values: Array, B: Array) -> Array:
        features = self._feature(base[None]) + self._slope * (values - base[columns])
        return np.multiply.outer(features, self._feature(B))

    def _feature(self, A: Array) -> Array:
        return np.asarray(self._offset + self._slope * A.sum(axis=1))

    def _spread(self, factors: Array, A: Array) -> Array:
        return np.repeat(self._slope * factors[:, None], A.shape[1], axis=1)
