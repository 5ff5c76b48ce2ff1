"""What a mixture is to the rest of the package: a cost that grows with every reward.

| symbol | meaning |
|---|---|
| m_j, s_j² | forecast of reward j, made before it is seen: mean, and variance of the expected reward |
| e_j = r_j − m_j, v_j = 1 + s_j²/σ² | its error, and the expected spread of that error |
| cost | Σ_j (e_j²/v_j + σ² ln v_j) |

R² = cost + 2σ² ln(1/δ) is the squared radius of the paper's confidence set (label eq:confidence-set). Any
predictable forecaster gives a valid set, because `predict` comes before `update`; a better one gives a
smaller set.

A `Cost` returns the cost minus the least-squares residual of the data: the excess G of `sets.dual` up to its
δ term. Fixed linear mixtures compute it without any subtraction.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Mapping
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np

from mixbandit._checks import Array
from mixbandit.data import Data
from mixbandit.errors import DamagedState, NotStorable
from mixbandit.features import FeatureMap

# Forecasts beyond this, in units of σ, are rounding errors that grew, and are not used. Their squares are floats.
LARGEST = 1e130


@runtime_checkable
class Forecaster(Protocol):
    """Anything that predicts a reward before it learns from it."""

    def predict(self, x: Array) -> tuple[float, float]:
        """Mean and variance (≥ 0) of the expected reward of the action row x, as the user gave it."""
        ...

    def update(self, x: Array, r: float) -> None:
        """Learn that action x had reward r."""
        ...


class Cost(abc.ABC):
    """The running cost of a mixture on the rewards of a sequence, at noise level `sigma`: immutable.

    Learning returns a new cost; the old one does not change.
    """

    def __init__(self, sigma: float) -> None:
        self.sigma = sigma

    @property
    def stepwise(self) -> bool:
        """Whether the order of rewards matters; False if the factor of the data contains everything."""
        return True

    @property
    def ridge_alpha(self) -> float | None:
        """The α₀ of a mixture N(0, cΦΦᵀ), at which its closed form is that of ridge regression; None for others."""
        return None

    def learn(self, actions: Array, phi: Array, rewards: Array, weights: Array | None) -> Cost:
        """The cost after action rows, their features and rewards; weights σ/σ_k state individual noise levels."""
        return self

    @abc.abstractmethod
    def excess(self, data: Data, reach: float) -> float:
        """Cost minus the least residual of the data for parameters of norm at most `reach`."""

    def alpha0(self, data: Data) -> float:
        """The multiplier at which the closed-form bound suits this mixture best."""
        return self.sigma**2

    def at_sigma(self, sigma: float) -> Cost | None:
        """The cost if another noise level had been stated; None if that cannot be computed."""
        return None

    def state_dict(self) -> dict[str, Any]:
        """What the cost remembers beyond the data."""
        return {}

    def recall(self, state: Mapping[str, Any]) -> Cost:
        """The same cost, still without data, continued from a `state_dict`."""
        return self


class RunningCost(Cost):
    """A cost that is summed reward by reward."""

    def __init__(self, sigma: float) -> None:
        super().__init__(sigma)
        self._cost = 0.0

    def learn(self, actions: Array, phi: Array, rewards: Array, weights: Array | None) -> Self:
        new = self._fork()
        for i, reward in enumerate(rewards):
            new._see(actions[i], phi[i], float(reward), 1.0 if weights is None else float(weights[i]))
        return new

    def _fork(self) -> Self:
        """A cost in the same state; `_see` on it must not change the original."""
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__)
        return new

    @abc.abstractmethod
    def _see(self, action: Array, phi: Array, reward: float, weight: float) -> None:
        """Add one reward to a cost that has no other owner yet."""

    def excess(self, data: Data, reach: float) -> float:
        return self._cost - data.spectrum.residual(reach)

    def _add(self, scaled_error2: float, spread: float) -> None:
        """Add e²/v, in units of σ², and ln v."""
        self._cost += self.sigma**2 * (scaled_error2 + math.log(spread))

    def state_dict(self) -> dict[str, Any]:
        return {"cost": self._cost}

    def recall(self, state: Mapping[str, Any]) -> Self:
        new = self._fork()
        new._load(state)
        return new

    def _load(self, state: Mapping[str, Any]) -> None:
        self._cost = float(stored_array(state, "cost", ()))


class Mixture(abc.ABC):
    """Settings of a mixture; `cost` starts it for one sequence."""

    @abc.abstractmethod
    def cost(self, features: FeatureMap, sigma: float) -> Cost: ...

    def state_dict(self) -> dict[str, Any]:
        return {"type": type(self).__name__, **self._parameters()}

    @abc.abstractmethod
    def _parameters(self) -> dict[str, Any]: ...


def stored_array(state: Mapping[str, Any], name: str, shape: tuple[int, ...]) -> Array:
    """A copy of a stored array, which must be finite and have this shape."""
    array = np.array(state[name], dtype=np.float64)
    if array.size == 0 == math.prod(shape):
        array = array.reshape(shape)
    if array.shape != shape or not np.isfinite(array).all():
        raise DamagedState(f"{name} must be finite and of shape {shape}, got shape {array.shape}")
    return array


def not_storable(what: object) -> NotStorable:
    """The error for code that a state cannot hold."""
    name = getattr(what, "__qualname__", type(what).__name__)
    return NotStorable(f"{name} is code and cannot be stored by mixbandit")
