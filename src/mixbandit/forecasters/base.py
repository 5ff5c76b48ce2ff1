"""What a mixture is to the rest of the package: a cost that grows with every reward.

| symbol | meaning |
|---|---|
| m_j, s_j² | forecast of reward j, made before it is seen: mean, and variance of the expected reward |
| e_j = r_j − m_j, v_j = 1 + s_j²/σ² | its error, and the spread that was expected of it |
| cost | Σ_j (e_j²/v_j + σ² ln v_j) |

R² = cost + 2σ² ln(1/δ) is the squared radius of the paper's confidence set (label eq:confidence-set). Any
predictable forecaster gives a valid set, because `predict` comes before `update`; a better one gives a
smaller set.

What a `Cost` hands out is the cost minus the least-squares residual of the data: the excess G of
`confidence.dual` up to its δ term. Fixed linear mixtures form it without subtracting anything.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Mapping
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np

from mixbandit._validation import Array
from mixbandit.errors import DamagedState, NotStorable
from mixbandit.features import FeatureMap
from mixbandit.statistics import Spectrum, Statistics


@runtime_checkable
class Forecaster(Protocol):
    """Anything that predicts a reward before it learns from it."""

    def predict(self, x: Array) -> tuple[float, float]:
        """Mean and variance (≥ 0) of the expected reward of the action row x, as the user gave it."""
        ...

    def update(self, x: Array, r: float) -> None:
        """Learn that action x brought reward r."""
        ...


class Cost(abc.ABC):
    """The running cost of a mixture on the rewards that a sequence sees, at noise level `sigma`."""

    def __init__(self, sigma: float) -> None:
        self.sigma = sigma

    @property
    def stepwise(self) -> bool:
        """Whether rewards must be seen one at a time; False if the statistics hold everything."""
        return True

    def update(self, action: Array, phi: Array, reward: float, weight: float) -> None:
        """See one action row, its features and its reward; weight σ/σ_k states its own noise level."""

    @abc.abstractmethod
    def excess(self, statistics: Statistics, spectrum: Spectrum, reach: float) -> float:
        """Cost minus the least residual of the data for parameters of norm at most `reach`."""

    def alpha0(self, statistics: Statistics, spectrum: Callable[[], Spectrum]) -> float:
        """The multiplier at which the closed-form bound goes best with this mixture."""
        return self.sigma**2

    def at_sigma(self, sigma: float) -> Cost | None:
        """The same cost had the noise level been stated otherwise; None where that cannot be told."""
        return None

    @abc.abstractmethod
    def copy(self) -> Self:
        """An independent cost in the same state."""

    def snapshot(self) -> Self:
        """The cost as it is now, to go back to if an update fails; used before any other update, or never."""
        return self.copy()

    def state_dict(self) -> dict[str, Any]:
        """What the cost remembers beyond the statistics."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` gave."""


class RunningCost(Cost):
    """A cost that is summed up reward by reward."""

    def __init__(self, sigma: float) -> None:
        super().__init__(sigma)
        self._cost = 0.0

    def excess(self, statistics: Statistics, spectrum: Spectrum, reach: float) -> float:
        return self._cost - spectrum.residual(reach)

    def _add(self, scaled_error2: float, spread: float) -> None:
        """Add e²/v, given in units of σ², and ln v."""
        self._cost += self.sigma**2 * (scaled_error2 + math.log(spread))

    def state_dict(self) -> dict[str, Any]:
        return {"cost": self._cost}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
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
    """A copy of an array of a state, which must be finite and have this shape."""
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
