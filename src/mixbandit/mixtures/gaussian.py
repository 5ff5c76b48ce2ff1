"""Gaussian mixtures N(μ, T) with a mean function and a kernel, by a growing Cholesky factor: O(t²) a reward.

| symbol | meaning | shape |
|---|---|---|
| Λ | lower-triangular factor of I + T/σ² | (t, t) |
| y | Λ⁻¹(μ − r)/σ, so that the quadratic term is σ²‖y‖² | (t,) |

A new reward appends a row to Λ and an entry to y: the entry squared and the logarithm of the new diagonal are
its cost. With weights σ/σ_k, rows and columns of T, μ and r are multiplied by them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mixbandit._checks import (
    LARGEST_DATUM,
    LARGEST_SETTING,
    SMALLEST_SETTING,
    Array,
    as_float_array,
    check_finite,
    shown,
)
from mixbandit._schema import require
from mixbandit.data import Data
from mixbandit.errors import InvalidInput
from mixbandit.features import FeatureMap
from mixbandit.kernels import Kernel
from mixbandit.mixtures.base import LARGEST, Mixture, RunningCost, not_storable, stored_array

# Stored numbers that follow from others may differ from them by this much, relatively.
_ROUNDING = 1e-6
# Pivots that differ by more than this garble forecasts, by rounding. They stay valid, but nothing can be checked.
_WELL_CONDITIONED = 1e8
_LARGEST_WEIGHT = 2.0 * LARGEST_SETTING / SMALLEST_SETTING

KernelFunction = Callable[[Array, Array], ArrayLike]
MeanFunction = Callable[[Array], ArrayLike]


class _Storage:
    """Storage for the rows of a factor, shared by the factors that appended them one after the other."""

    def __init__(self, capacity: int) -> None:
        self.rows: Array = np.zeros((capacity, capacity))
        self.used = 0


class GrowingCholesky:
    """The lower-triangular factor of a matrix that grows by one row and column at a time: immutable."""

    def __init__(self, size: int = 0, storage: _Storage | None = None) -> None:
        self.size = size
        self._storage = _Storage(16) if storage is None else storage

    @property
    def factor(self) -> Array:
        return self._storage.rows[: self.size, : self.size]

    def solve(self, b: Array, *, transposed: bool = False) -> Array:
        """Λ⁻¹b, or Λ⁻ᵀb."""
        from scipy.linalg import solve_triangular

        if self.size == 0:
            return b
        return np.asarray(solve_triangular(self.factor, b, lower=True, trans=int(transposed), check_finite=False))

    def appended(self, row: Array, diagonal: float) -> GrowingCholesky:
        """The factor with one more row, from `solve` applied to the new column, and its diagonal entry."""
        storage, size = self._storage, self.size
        if storage.used != size or size == len(storage.rows):  # another factor was appended here, or it is full
            storage = _Storage(max(16, 2 * size))
            storage.rows[:size, :size] = self.factor
        storage.rows[size, :size] = row
        storage.rows[size, size] = diagonal
        storage.used = size + 1
        return GrowingCholesky(size + 1, storage)

    @classmethod
    def from_factor(
        cls, factor: Array, where: str, least: float, squares: Array, pivot: float | None = None
    ) -> GrowingCholesky:
        """A stored factor: diagonal entries are at least `least`, and rows have about these squared norms or less.

        The latter only if digits are left to check, after divisions by pivots as small as `pivot`.
        """
        require(not np.triu(factor, 1).any(), where, "must be lower triangular")
        require((factor.diagonal() >= least * (1.0 - _ROUNDING)).all(), where, f"must have {least:g} on its diagonal")
        if is_well_conditioned(squares, least if pivot is None else pivot):
            largest = np.abs(factor).max(axis=1, initial=0.0)
            require((largest <= 2.0 * np.sqrt(squares)).all(), where, "must fit the kernel")
        storage = _Storage(max(16, 2 * len(factor)))
        storage.rows[: len(factor), : len(factor)] = factor
        storage.used = len(factor)
        return cls(len(factor), storage)


class Chain(RunningCost):
    """The cost of N(μ, T), given the columns of T one after the other; also the base of similar costs."""

    _smallest_pivot = 1.0

    def __init__(self, kernel: KernelFunction, dim_in: int, sigma: float) -> None:
        super().__init__(sigma)
        self._kernel = kernel
        self._actions: Array = np.empty((0, dim_in))
        self._weights: Array = np.empty(0)
        self._factor = GrowingCholesky()
        self._y: Array = np.empty(0)

    def _columns(self, action: Array, weight: float) -> tuple[Array, float]:
        """Column and diagonal entry that the new action adds to the weighted kernel matrix over σ²."""
        scale = weight / self.sigma**2
        rows = np.vstack((self._actions, action))
        column = as_float_array(self._kernel(rows, action[None]), "the kernel's values")
        if column.shape != (len(rows), 1):
            raise InvalidInput(f"the kernel must return shape {(len(rows), 1)}, got {column.shape}")
        check_finite(column, "the kernel's values", LARGEST_DATUM**2)
        return scale * self._weights * column[:-1, 0], scale * weight * float(column[-1, 0])

    def _extend(self, action: Array, weight: float, column: Array, diagonal: float, error: float) -> None:
        """Add the action, with its column of T/σ² and the error (μ_j − r_j)/σ of its forecast."""
        with np.errstate(over="ignore", invalid="ignore"):
            row = self._factor.solve(column)
            # T is positive semi-definite, so this is at least 1 up to rounding.
            spread, moved = 1.0 + diagonal - float(row @ row), float(row @ self._y)
        if not (abs(spread) <= LARGEST and abs(moved) <= LARGEST):
            # T is not positive semi-definite, or rounding made it so: forecast without regard to the past.
            row, spread, moved = np.zeros(len(row)), 1.0, 0.0
        spread = max(spread, 1.0)
        y = (error - moved) / math.sqrt(spread)
        self._factor = self._factor.appended(row, math.sqrt(spread))
        self._y = np.append(self._y, y)
        self._actions = np.vstack((self._actions, action))
        self._weights = np.append(self._weights, weight)
        self._add(y**2, spread)

    def state_dict(self) -> dict[str, Any]:
        return {
            **super().state_dict(),
            "actions": self._actions.copy(),
            "weights": self._weights.copy(),
            "factor": self._factor.factor.copy(),
            "y": self._y.copy(),
        }

    def _load(self, state: Mapping[str, Any], data: Data) -> None:
        super()._load(state, data)
        t = data.count
        self._actions = stored_array(state, "actions", (t, self._actions.shape[1]))
        self._weights, self._y = stored_array(state, "weights", (t,)), stored_array(state, "y", (t,))
        usable = ((self._weights > 0.0) & (self._weights <= _LARGEST_WEIGHT)).all()
        squares = float(self._weights @ self._weights) if usable else -1.0
        fits = abs(squares - data.weight2) <= _ROUNDING * data.weight2
        require(fits, "cost.weights", "must be positive and fit the statistics")
        factor = stored_array(state, "factor", (t, t))
        squared_norms = 1.0 + self._matrix().diagonal()
        self._factor = GrowingCholesky.from_factor(factor, "cost.factor", 1.0, squared_norms, self._smallest_pivot)
        with np.errstate(over="ignore"):
            expected = self.sigma**2 * float(self._y @ self._y + 2.0 * np.log(factor.diagonal()).sum())
        slack = _ROUNDING * (expected + t * self.sigma**2)
        require(
            math.isfinite(expected) and abs(self._cost - expected) <= slack, "cost.cost", "must fit the factor and y"
        )

    def _matrix(self) -> Array:
        """The weighted kernel matrix over σ²."""
        scale = self._weights / self.sigma
        return np.asarray(np.asarray(self._kernel(self._actions, self._actions)) * np.outer(scale, scale))


def is_well_conditioned(squares: Array, least: float) -> bool:
    """Whether a factor with rows of these squared norms, and pivots of at least `least`, has digits left to check."""
    return bool(squares.max(initial=0.0) <= _WELL_CONDITIONED * least**2)


def check_factor(factor: Array, matrix: Array, least: float, where: str) -> None:
    """Refuse a factor that is not one of this matrix, by their products with a vector: O(t²), and no chance to hide."""
    squares = matrix.diagonal()
    if not is_well_conditioned(squares, least):
        return
    scale = np.sqrt(squares)
    require((np.linalg.norm(factor, axis=1) >= (1.0 - _ROUNDING) * scale).all(), where, "must fit the kernel")
    v = np.random.default_rng(0).normal(size=len(factor))
    error = np.abs(factor @ (factor.T @ v) - matrix @ v)
    require((error <= _ROUNDING * scale * float(scale @ np.abs(v))).all(), where, "must fit the actions")


class _GaussianCost(Chain):
    """T_ij = k(a_i, a_j), μ_i = m(a_i)."""

    def _load(self, state: Mapping[str, Any], data: Data) -> None:
        super()._load(state, data)
        check_factor(self._factor.factor, np.eye(data.count) + self._matrix(), 1.0, "cost.factor")

    def __init__(self, mean: MeanFunction | float, kernel: KernelFunction, dim_in: int, sigma: float) -> None:
        super().__init__(kernel, dim_in, sigma)
        self._mean = mean

    def _see(self, action: Array, phi: Array, reward: float, weight: float) -> None:
        column, diagonal = self._columns(action, weight)
        mean = self._mean if isinstance(self._mean, float) else _value(self._mean, action)
        self._extend(action, weight, column, diagonal, weight * (mean - reward) / self.sigma)


class Gaussian(Mixture):
    """A Gaussian process as a mixture: mean function m(a) and kernel k(a, a').

    `mean` is a number or a function of rows (n, dim_in); `kernel` a function of two such arrays that returns
    the matrix of its values, as `mixbandit.RBF` and `mixbandit.Matern` do. Memory and time grow with t.
    """

    def __init__(self, mean: MeanFunction | float, kernel: KernelFunction) -> None:
        self.mean: MeanFunction | float
        if callable(mean):
            self.mean = mean
        else:
            number = as_float_array(mean, "mean")
            check_finite(number, "mean", LARGEST_DATUM)
            if number.ndim:
                raise InvalidInput(f"mean must be a number or a function, got shape {number.shape}")
            self.mean = float(number)
        self.kernel = checked_kernel(kernel)

    def cost(self, features: FeatureMap, sigma: float) -> _GaussianCost:
        check_inputs(self.kernel, features.dim_in)
        return _GaussianCost(self.mean, self.kernel, features.dim_in, sigma)

    def _parameters(self) -> dict[str, Any]:
        if not isinstance(self.mean, float):
            raise not_storable(self.mean)
        if not isinstance(self.kernel, Kernel):
            raise not_storable(self.kernel)
        return {"mean": self.mean, "kernel": self.kernel.state_dict()}


def checked_kernel(kernel: KernelFunction) -> KernelFunction:
    if not callable(kernel):
        raise InvalidInput(f"kernel must be a function of two arrays of actions, got {shown(kernel)}")
    return kernel


def check_inputs(kernel: KernelFunction, dim_in: int) -> None:
    """Refuse a kernel of ours that is made for actions of another length."""
    if isinstance(kernel, Kernel) and kernel.lengthscale.size not in (1, dim_in):
        raise InvalidInput(f"the kernel has {kernel.lengthscale.size} length-scales, but actions have {dim_in} entries")


def _value(function: MeanFunction, action: Array) -> float:
    value = as_float_array(function(action[None]), "the mean function's value")
    if value.size != 1:
        raise InvalidInput(f"the mean function must return one value per row, got shape {value.shape}")
    check_finite(value, "the mean function's value", LARGEST_DATUM)
    return float(value.reshape(()))
