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
    finite,
    shown,
)
from mixbandit._schema import real, record, require
from mixbandit.data import Data, GrowingCholesky, check_factor
from mixbandit.errors import InvalidInput
from mixbandit.kernels import Kernel
from mixbandit.mixtures.base import LARGEST, Mixture, RunningCost, stored_array
from mixbandit.models import Model

# Stored numbers that follow from others may differ from them by this much, relatively.
_ROUNDING = 1e-6
_LARGEST_WEIGHT = 2.0 * LARGEST_SETTING / SMALLEST_SETTING

KernelFunction = Callable[[Array, Array], ArrayLike]
MeanFunction = Callable[[Array], ArrayLike]


class KernelRows(RunningCost):
    """A cost that remembers actions and weights, and computes the kernel matrix from them."""

    def __init__(self, kernel: KernelFunction, dim_in: int | None, sigma: float) -> None:
        super().__init__(sigma)
        self._kernel = kernel
        self._actions: Array = np.empty((0, dim_in or 0))
        self._weights: Array = np.empty(0)

    def _columns(self, action: Array, weight: float) -> tuple[Array, float]:
        """Column and diagonal entry that the new action adds to the weighted kernel matrix over σ²."""
        scale = weight / self.sigma**2
        rows = self._with(action)
        column = as_float_array(self._kernel(rows, action[None]), "the kernel's values")
        if column.shape != (len(rows), 1):
            raise InvalidInput(f"the kernel must return shape {(len(rows), 1)}, got {column.shape}")
        check_finite(column, "the kernel's values", LARGEST_DATUM**2)
        return scale * self._weights * column[:-1, 0], scale * weight * float(column[-1, 0])

    def _with(self, action: Array) -> Array:
        """The actions and one more; their length may not be known before the first."""
        return np.vstack((self._actions, action)) if len(self._actions) else action[None].copy()

    def _remember(self, action: Array, weight: float) -> None:
        self._actions = self._with(action)
        self._weights = np.append(self._weights, weight)

    def _matrix(self) -> Array:
        """The weighted kernel matrix over σ²."""
        scale = self._weights / self.sigma
        return np.asarray(np.asarray(self._kernel(self._actions, self._actions)) * np.outer(scale, scale))

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "actions": self._actions.copy(), "weights": self._weights.copy()}

    def _load(self, state: Mapping[str, Any], data: Data) -> None:
        super()._load(state, data)
        self._actions = stored_array(state, "actions", (data.count, self._actions.shape[1]))
        self._weights = stored_array(state, "weights", (data.count,))
        usable = ((self._weights > 0.0) & (self._weights <= _LARGEST_WEIGHT)).all()
        squares = float(self._weights @ self._weights) if usable else -1.0
        fits = abs(squares - data.weight2) <= _ROUNDING * data.weight2
        require(fits, "cost.weights", "must be positive and fit the statistics")


class Chain(KernelRows):
    """The cost of N(μ, T), given the columns of T one after the other; also the base of similar costs."""

    _smallest_pivot = 1.0

    def __init__(self, kernel: KernelFunction, dim_in: int | None, sigma: float) -> None:
        super().__init__(kernel, dim_in, sigma)
        self._factor = GrowingCholesky()
        self._y: Array = np.empty(0)

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
        self._remember(action, weight)
        self.add(y**2, spread)

    def state_dict(self) -> dict[str, Any]:
        return {
            **super().state_dict(),
            "factor": self._factor.factor.copy(),
            "y": self._y.copy(),
        }

    def _load(self, state: Mapping[str, Any], data: Data) -> None:
        super()._load(state, data)
        t = data.count
        self._y = stored_array(state, "y", (t,))
        factor = stored_array(state, "factor", (t, t))
        squared_norms = 1.0 + self._matrix().diagonal()
        self._factor = GrowingCholesky.from_factor(factor, "cost.factor", 1.0, squared_norms, self._smallest_pivot)
        with np.errstate(over="ignore"):
            expected = self.sigma**2 * float(self._y @ self._y + 2.0 * np.log(factor.diagonal()).sum())
        slack = _ROUNDING * (expected + t * self.sigma**2)
        require(
            math.isfinite(expected) and abs(self._cost - expected) <= slack, "cost.cost", "must fit the factor and y"
        )


class _GaussianCost(Chain):
    """T_ij = k(a_i, a_j), μ_i = m(a_i)."""

    def _load(self, state: Mapping[str, Any], data: Data) -> None:
        super()._load(state, data)
        check_factor(self._factor.factor, np.eye(data.count) + self._matrix(), 1.0, "cost.factor")

    def __init__(self, mean: MeanFunction | float, kernel: KernelFunction, dim_in: int | None, sigma: float) -> None:
        super().__init__(kernel, dim_in, sigma)
        self._mean = mean

    def see(self, action: Array, phi: Array, reward: float, weight: float) -> None:
        column, diagonal = self._columns(action, weight)
        mean = self._mean if isinstance(self._mean, float) else _value(self._mean, action)
        self._extend(action, weight, column, diagonal, weight * (mean - reward) / self.sigma)


class Gaussian(Mixture):
    """A Gaussian process as a mixture, with mean function m(a) and kernel k(a, a').

    `mean` is a number or a function of rows (n, dim_in); `kernel` a function of two such arrays that returns
    the matrix of its values, as `mixbandit.RBF` and `mixbandit.Matern` do. Memory and time grow with t.
    """

    kind = "Gaussian"
    schema = record({"mean": real(finite), "kernel": Kernel.family})

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

    def cost(self, model: Model, sigma: float) -> _GaussianCost:
        check_inputs(self.kernel, model.dim_in)
        return _GaussianCost(self.mean, self.kernel, model.dim_in, sigma)


def checked_kernel(kernel: KernelFunction) -> KernelFunction:
    if not callable(kernel):
        raise InvalidInput(f"kernel must be a function of two arrays of actions, got {shown(kernel)}")
    return kernel


def check_inputs(kernel: KernelFunction, dim_in: int | None) -> None:
    """Refuse a kernel of ours that is made for actions of another length."""
    if isinstance(kernel, Kernel) and dim_in is not None:
        kernel.check_dim_in(dim_in)


def _value(function: MeanFunction, action: Array) -> float:
    value = as_float_array(function(action[None]), "the mean function's value")
    if value.size != 1:
        raise InvalidInput(f"the mean function must return one value per row, got shape {value.shape}")
    check_finite(value, "the mean function's value", LARGEST_DATUM)
    return float(value.reshape(()))
