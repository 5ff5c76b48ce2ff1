"""Forecasts that learn under the noise that rewards show, not the one that is stated (after Jun & Kim 2024).

In units of σ, rows and rewards multiplied by their weights:

| symbol | meaning | shape |
|---|---|---|
| c·K | prior covariance of the expected rewards | (t, t) |
| ν ∈ {1, 1/2, …, 1/64} | noise variance of the process: an estimate ν̂ from past errors, rounded | |
| m_j, s_j² | posterior mean and variance of expected reward j, given the rewards before it, at noise ν | |
| e_j = r_j − m_j, v_j = max(1, s_j² + ν) | its error, and the spread that it is expected to have | |
| ν̂ = (n₀ + Σ_i w_i²e_i²)/(n₀ + Σ_i w_i) | the estimate, w_i = ν/(s_i² + ν) with the ν of forecast i | |
| Λ | lower-triangular factor of cK + νI, with a kernel | (t, t) |
| P = β(ΦᵀΦ + βI)⁻¹, β = ν/c | the posterior covariance of θ over c, with features | (d, d) |

The stated σ enters the cost Σ_j σ²(e_j²/v_j + ln v_j), which is valid for any forecasts, and nothing else. If rewards
scatter less than σ says, forecasts trust them more, and their errors are smaller than σ.

One factor is kept, for the present ν. Another ν takes a new one, O(t³) or O(d³). That is rare: the estimate is a mean,
so halving it takes about as many rewards again, and ν changes only after it has moved by more than the rounding.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from mixbandit._checks import Array, positive
from mixbandit._schema import optional, real, record, require
from mixbandit.data import Data, GrowingCholesky, as_factor, check_factor, is_well_conditioned
from mixbandit.kernels import Kernel
from mixbandit.mixtures.adaptive import REFRESH_EVERY, check_moments, is_covariance, posterior_covariance
from mixbandit.mixtures.base import LARGEST, Cost, Mixture, RunningCost, SteppedCost, stored_array
from mixbandit.mixtures.gaussian import KernelFunction, KernelRows, check_inputs, checked_kernel
from mixbandit.models import Model

# ν is 2 to the power of minus 0 to this.
_LOWEST = 6
# The estimate starts with this many rewards that scatter as stated.
_START = 2.0
# In powers of 2; rounding alone would be 0.5, and estimates near the boundary would go back and forth.
_HYSTERESIS = 0.75
# Stored numbers that follow from others may differ from them by this much, relatively.
_ROUNDING = 1e-6


@dataclasses.dataclass(frozen=True)
class _Scatter:
    """The estimate of the noise, from the errors of past forecasts, and its rounded value ν = 2^−level."""

    level: int = 0
    errors: float = 0.0
    weight: float = 0.0

    @property
    def noise(self) -> float:
        return 0.5**self.level

    def after(self, error: float, variance: float) -> _Scatter:
        """With one more error e of a forecast of this variance s².

        On average e² is s² + ν: the share w = ν/(s² + ν) of it is noise, and w is also how much it says about ν.
        """
        share = self.noise / (variance + self.noise)
        return dataclasses.replace(self, errors=self.errors + (share * error) ** 2, weight=self.weight + share)

    @property
    def wanted(self) -> int:
        """The level that suits the estimate."""
        place = -math.log2((_START + self.errors) / (_START + self.weight))
        if abs(place - self.level) <= _HYSTERESIS:
            return self.level
        return round(min(max(place, 0.0), float(_LOWEST)))

    def state_dict(self) -> dict[str, Any]:
        return {"level": self.level, "scatter": np.array([self.errors, self.weight])}

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any]) -> _Scatter:
        level, sums = state["level"], stored_array(state, "scatter", (2,))
        require(level is not None, "cost", "lacks 'level'")
        require(level <= _LOWEST, "cost.level", f"must be at most {_LOWEST}, got {level}")
        require((sums >= 0.0).all(), "cost.scatter", "must not be negative")
        return cls(level, *sums.tolist())


class SemiAdaptive(Mixture):
    """Forecasts of a Gaussian process with covariance c·k, with its noise estimated from past errors, from σ²/64 to σ².

    Where rewards scatter less than `sigma` says, as accuracies near 1 do, it learns faster and the set is smaller. Use
    several scales: `Grid([SemiAdaptive(c) for c in (0.01, 0.1, 1)])`. Bounds stay valid for any valid `sigma`, if
    rewards come in an order that does not depend on their values.

    Without `kernel` the process is that of the sequence: with features, the linear one, θ ~ N(0, cI), at O(d²) per
    reward; with a kernel, O(t²).
    """

    kind = "SemiAdaptive"
    schema = record({"c": real(positive), "kernel": optional(Kernel.family)})

    def __init__(self, c: float, kernel: KernelFunction | None = None) -> None:
        self.c = positive(c, "c")
        self.kernel = None if kernel is None else checked_kernel(kernel)

    def __repr__(self) -> str:
        return f"SemiAdaptive({self.c!r})" if self.kernel is None else f"SemiAdaptive({self.c!r}, {self.kernel!r})"

    def cost(self, model: Model, sigma: float) -> Cost:
        kernel = model.kernel if self.kernel is None else self.kernel
        if kernel is None:
            assert model.dim is not None
            return _SemiAdaptiveLinearCost(self.c, model.dim, sigma)
        check_inputs(kernel, model.dim_in)
        return _SemiAdaptiveKernelCost(self.c, kernel, model.dim_in, sigma)


class _SemiAdaptiveCost(RunningCost):
    """What both have in common: the cost of a forecast, and the estimate of the noise."""

    _c: float
    _scatter: _Scatter

    def alpha0(self, data: Data) -> float:
        return self.sigma**2 / self._c

    def _count(self, error: float, variance: float) -> None:
        """Add the cost of a forecast and learn from its error; both in units of σ."""
        spread = max(variance + self._scatter.noise, 1.0)
        self.add(error**2 / spread, spread)
        self._scatter = self._scatter.after(error, variance)

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), **self._scatter.state_dict()}

    def _load(self, state: Mapping[str, Any], data: Data) -> None:
        super()._load(state, data)
        self._scatter = _Scatter.from_state_dict(state)

    def _check_cost(self, rewards2: float, trace: float) -> None:
        """Refuse a cost that no rewards of this square sum could have led to, where cK has this trace."""
        # Forecasts are at most ‖r‖ times the root of cK_jj/ν, and the logarithm of a spread is at most cK_jj.
        most = 2.0 * rewards2 * (1.0 + 2.0**_LOWEST * trace) + trace
        require(self._cost <= 1e3 * self.sigma**2 * most, "cost.cost", "must fit the rewards")


class _SemiAdaptiveLinearCost(_SemiAdaptiveCost, SteppedCost):
    arrays = ("_gram", "_moment", "_P")

    def __init__(self, c: float, dim: int, sigma: float) -> None:
        super().__init__(sigma)
        self._c, self._scatter = c, _Scatter()
        self._gram, self._P, self._moment = np.zeros((dim, dim)), np.eye(dim), np.zeros(dim)

    @property
    def _beta(self) -> float:
        return self._scatter.noise / self._c

    def see(self, action: Array, phi: Array, reward: float, weight: float) -> None:
        phi, reward = phi * (weight / self.sigma), reward * (weight / self.sigma)
        q, beta = self._P @ phi, self._beta
        with np.errstate(over="ignore", invalid="ignore"):
            mean, variance = float(q @ self._moment) / beta, max(self._c * float(q @ phi), 0.0)
        if not (abs(mean) <= LARGEST and variance <= LARGEST):
            mean, variance = 0.0, 0.0
        self._count(reward - mean, variance)
        # New arrays, because the cost before this reward still uses the old ones.
        self._gram = self._gram + np.outer(phi, phi)
        self._moment = self._moment + phi * reward
        self.steps += 1
        if (level := self._scatter.wanted) != self._scatter.level or self.steps % REFRESH_EVERY == 0:
            self._scatter = dataclasses.replace(self._scatter, level=level)
            self._P = posterior_covariance(self._gram, self._beta)
        else:
            self._P = self._P - np.outer(q, q) / (beta + float(phi @ q))

    def _load(self, state: Mapping[str, Any], data: Data) -> None:
        super()._load(state, data)
        size, length = check_moments(self._gram, self._moment, as_factor(data), self.sigma)
        # Beside the ridge and the noise: what large numbers leave of P is rounding.
        if not is_well_conditioned(np.array([self._beta + size**2]), min(math.sqrt(self._beta), 1.0)):
            return
        require(is_covariance(self._P, 1.0), "cost.P", "must be a covariance between 0 and I")
        v = np.random.default_rng(0).normal(size=len(self._P))
        off = np.abs(self._P @ (self._gram @ v + self._beta * v) - self._beta * v).max()
        require(off <= _ROUNDING * (size**2 + self._beta) * float(np.abs(v).sum()), "cost.P", "must fit the statistics")
        self._check_cost(length**2, self._c * size**2)


class _SemiAdaptiveKernelCost(_SemiAdaptiveCost, KernelRows):
    def __init__(self, c: float, kernel: KernelFunction, dim_in: int | None, sigma: float) -> None:
        super().__init__(kernel, dim_in, sigma)
        self._c, self._scatter = c, _Scatter()
        self._posterior = GrowingCholesky()
        self._white: Array = np.empty(0)  # Λ⁻¹r

    def see(self, action: Array, phi: Array, reward: float, weight: float) -> None:
        column, diagonal = self._columns(action, weight)
        diagonal, reward = max(self._c * diagonal, 0.0), reward * (weight / self.sigma)
        with np.errstate(over="ignore", invalid="ignore"):
            row = self._posterior.solve(self._c * column)
            mean, variance = float(row @ self._white), max(diagonal - float(row @ row), 0.0)
        if not (abs(mean) <= LARGEST and np.abs(row).max(initial=0.0) <= LARGEST):
            row, mean, variance = np.zeros(len(row)), 0.0, diagonal  # as if nothing had been seen
        pivot = math.sqrt(variance + self._scatter.noise)
        self._posterior = self._posterior.appended(row, pivot)
        self._white = np.append(self._white, (reward - mean) / pivot)
        self._remember(action, weight)
        self._count(reward - mean, variance)
        if (level := self._scatter.wanted) != self._scatter.level:
            self._move_to(level)

    def _move_to(self, level: int) -> None:
        """Use the posterior at another noise, unless rounding or the kernel leave no factor of its matrix."""
        moved = dataclasses.replace(self._scatter, level=level)
        rewards = self._posterior.factor @ self._white
        try:
            posterior = GrowingCholesky.of(self._c * self._matrix() + moved.noise * np.eye(len(rewards)))
        except np.linalg.LinAlgError:
            return
        white = posterior.solve(rewards)
        if np.abs(white).max() <= LARGEST:
            self._scatter, self._posterior, self._white = moved, posterior, white

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "posterior": self._posterior.factor.copy(), "white": self._white.copy()}

    def _load(self, state: Mapping[str, Any], data: Data) -> None:
        super()._load(state, data)
        t, noise = data.count, self._scatter.noise
        self._white = stored_array(state, "white", (t,))
        factor, matrix = stored_array(state, "posterior", (t, t)), noise * np.eye(t) + self._c * self._matrix()
        least = math.sqrt(noise)
        self._posterior = GrowingCholesky.from_factor(factor, "cost.posterior", least, matrix.diagonal())
        check_factor(factor, matrix, least, "cost.posterior")
        if is_well_conditioned(matrix.diagonal(), least):
            rewards = factor @ self._white
            self._check_cost(float(rewards @ rewards), float(np.trace(matrix)))
