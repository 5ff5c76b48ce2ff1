"""The paper's adaptive mixture (App. "Benefits of adaptive mixture distributions").

μ_j = m_{j−1}(a_j) and T_ij = k_{j−1}(a_i, a_j) for i ≤ j, with m_t and k_t the posterior mean and covariance of
a Gaussian process after t rewards, at noise variance β (the paper: 4σ²). For the linear kernel, in units of
σ:

| symbol | meaning | shape |
|---|---|---|
| P | β(ΦᵀΦ + βI)⁻¹, the posterior covariance of θ | (d, d) |
| q = Pφ_j | so that the new column of T is Φq | (d,) |
| W, ζ | Φᵀ(I+T)⁻¹Φ and Φᵀ(I+T)⁻¹(μ − r) | (d, d), (d,) |

and a reward costs O(d²). Rounding may make it a slightly different forecaster, but never an invalid one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from mixbandit._checks import Array, positive
from mixbandit._schema import optional, real, record, require
from mixbandit.data import Data, Factor, GrowingCholesky, as_factor, check_factor, is_well_conditioned
from mixbandit.kernels import Kernel
from mixbandit.mixtures.base import LARGEST, Cost, Mixture, SteppedCost, stored_array
from mixbandit.mixtures.gaussian import (
    Chain,
    KernelFunction,
    check_inputs,
    checked_kernel,
)
from mixbandit.models import Model

# P is updated by rank-one steps, and recomputed every this many rewards.
REFRESH_EVERY = 256
# Stored numbers that follow from others may differ from them by this much, relatively.
_ROUNDING = 1e-6


class Adaptive(Mixture):
    """Forecasts that learn: the posterior of a Gaussian process with noise variance `beta` (default 4σ²).

    Without `kernel` the process is that of the sequence: with features, the linear one, θ ~ N(0, I), at O(d²) per
    reward; with a kernel, O(t²).
    """

    kind = "Adaptive"
    schema = record({"beta": optional(real(positive)), "kernel": optional(Kernel.family)})

    def __init__(self, beta: float | None = None, kernel: KernelFunction | None = None) -> None:
        self.beta = None if beta is None else positive(beta, "beta")
        self.kernel = None if kernel is None else checked_kernel(kernel)

    def __repr__(self) -> str:
        return f"Adaptive(beta={self.beta!r})" if self.kernel is None else f"Adaptive({self.beta!r}, {self.kernel!r})"

    def cost(self, model: Model, sigma: float) -> Cost:
        beta = 4.0 if self.beta is None else self.beta / sigma**2
        kernel = model.kernel if self.kernel is None else self.kernel
        if kernel is None:
            assert model.dim is not None
            return _AdaptiveLinearCost(beta, model.dim, sigma)
        check_inputs(kernel, model.dim_in)
        return _AdaptiveKernelCost(beta, kernel, model.dim_in, sigma)


class _AdaptiveLinearCost(SteppedCost):
    arrays = ("_gram", "_moment", "_P", "_W", "_zeta")

    def __init__(self, beta: float, dim: int, sigma: float) -> None:
        super().__init__(sigma)
        self._beta = beta  # in units of σ²
        self._gram, self._P, self._W = np.zeros((dim, dim)), np.eye(dim), np.zeros((dim, dim))
        self._moment, self._zeta = np.zeros(dim), np.zeros(dim)

    def see(self, action: Array, phi: Array, reward: float, weight: float) -> None:
        phi, reward = phi * (weight / self.sigma), reward * (weight / self.sigma)
        q = self._P @ phi
        with np.errstate(over="ignore", invalid="ignore"):
            mean = float(q @ self._moment) / self._beta - float(q @ self._zeta)
            spread, row = 1.0 + float(q @ phi) - float(q @ self._W @ q), phi - self._W @ q
        if not (abs(mean) <= LARGEST and abs(spread) <= LARGEST and np.abs(row).max() <= LARGEST):
            mean, spread, row = 0.0, 1.0, np.zeros(len(phi))
        spread = max(spread, 1.0)
        y, row = (mean - reward) / math.sqrt(spread), row / math.sqrt(spread)
        self.add(y**2, spread)
        # New arrays, because the cost before this reward still uses the old ones.
        self._W = self._W + np.outer(row, row)
        self._zeta = self._zeta + row * y
        self._gram = self._gram + np.outer(phi, phi)
        self._moment = self._moment + phi * reward
        self.steps += 1
        if self.steps % REFRESH_EVERY:
            self._P = self._P - np.outer(q, q) / (self._beta + float(phi @ q))
        else:
            self._P = posterior_covariance(self._gram, self._beta)

    def _load(self, state: Mapping[str, Any], data: Data) -> None:
        super()._load(state, data)
        self._check_fit(data)

    def _check_fit(self, data: Data) -> None:
        """Refuse arrays that no data could have led to."""
        size, length = check_moments(self._gram, self._moment, as_factor(data), self.sigma)
        # Beside the ridge and beside the noise, whose variance is 1: what large numbers left of P and W is rounding.
        if not is_well_conditioned(np.array([self._beta + size**2]), min(math.sqrt(self._beta), 1.0)):
            return
        require(is_covariance(self._P, 1.0), "cost.P", "must be a covariance between 0 and I")
        require(is_covariance(self._W, size**2), "cost.W", "must be a covariance that fits the statistics")
        # Forecasts are at most θ̂ can be, and the logarithm of a spread at most the spread.
        most = (1.0 + size**2 / self._beta) ** 2 * (length**2 + self.steps * (1.0 + size**2))
        require(self._cost <= 1e3 * self.sigma**2 * most, "cost.cost", "must fit the statistics")
        most = size * math.sqrt(self._cost) / self.sigma
        require(np.abs(self._zeta).max() <= most * (1.0 + _ROUNDING), "cost.zeta", "must fit the others")


class _AdaptiveKernelCost(Chain):
    """The same for any kernel: a second Cholesky factor, of K + βI, gives the posterior."""

    def __init__(self, beta: float, kernel: KernelFunction, dim_in: int | None, sigma: float) -> None:
        super().__init__(kernel, dim_in, sigma)
        self._beta = beta  # in units of σ²
        self._smallest_pivot = min(1.0, math.sqrt(beta))
        self._posterior = GrowingCholesky()
        self._white: Array = np.empty(0)  # the factor's inverse applied to the rewards

    def see(self, action: Array, phi: Array, reward: float, weight: float) -> None:
        column, diagonal = self._columns(action, weight)
        scaled = reward * (weight / self.sigma)
        with np.errstate(over="ignore", invalid="ignore"):
            row = self._posterior.solve(column)
            mean, variance = float(row @ self._white), max(diagonal - float(row @ row), 0.0)
        if not (abs(mean) <= LARGEST and np.abs(row).max(initial=0.0) <= LARGEST):
            row, mean, variance = np.zeros(len(row)), 0.0, max(diagonal, 0.0)  # as if nothing had been seen
        # k_{j−1}(a_i, a_j) for i < j is β(K + βI)⁻¹k_j.
        self._extend(action, weight, self._beta * self._posterior.solve(row, transposed=True), variance, mean - scaled)
        pivot = math.sqrt(variance + self._beta)
        self._posterior = self._posterior.appended(row, pivot)
        self._white = np.append(self._white, (scaled - mean) / pivot)

    def state_dict(self) -> dict[str, Any]:
        return {
            **super().state_dict(),
            "posterior": self._posterior.factor.copy(),
            "white": self._white.copy(),
        }

    def _load(self, state: Mapping[str, Any], data: Data) -> None:
        super()._load(state, data)
        t = data.count
        self._white = stored_array(state, "white", (t,))
        factor, matrix = stored_array(state, "posterior", (t, t)), self._beta * np.eye(t) + self._matrix()
        least = math.sqrt(self._beta)
        self._posterior = GrowingCholesky.from_factor(factor, "cost.posterior", least, matrix.diagonal())
        check_factor(factor, matrix, least, "cost.posterior")


def posterior_covariance(gram: Array, beta: float) -> Array:
    """P = β(ΦᵀΦ + βI)⁻¹."""
    # By eigenvalues: next to large ones the ridge vanishes, and the sum of both cannot be inverted.
    values, vectors = np.linalg.eigh(gram)
    return np.asarray((vectors * (beta / (np.maximum(values, 0.0) + beta))) @ vectors.T)


def check_moments(gram: Array, moment: Array, data: Factor, sigma: float) -> tuple[float, float]:
    """Refuse ΦᵀΦ and Φᵀr, in units of σ, that are not those of the data; returns the norms of Φ and r."""
    rows, rewards = data.factor[:, :-1] / sigma, data.factor[:, -1] / sigma
    size, length = float(np.linalg.norm(rows)), float(np.linalg.norm(rewards))
    off = np.abs(gram - rows.T @ rows).max()
    require(off <= _ROUNDING * size**2, "cost.gram", "must fit the statistics")
    off = np.abs(moment - rows.T @ rewards).max()
    require(off <= _ROUNDING * size * length, "cost.moment", "must fit the statistics")
    return size, length


def is_covariance(matrix: Array, most: float) -> bool:
    """Whether a matrix is symmetric with eigenvalues from 0 to `most`, up to what rounding may have added up to."""
    eigenvalues = np.linalg.eigvalsh(matrix)
    slack = 0.01 * min(most, float(np.abs(eigenvalues).max()))
    symmetric = np.abs(matrix - matrix.T).max() <= slack
    return bool(symmetric and eigenvalues[0] >= -slack and eigenvalues[-1] <= most + slack)
