"""What a mixture is to the rest of the package: a cost that grows with every reward.

| symbol | meaning |
|---|---|
| m_j, s_j² | forecast of reward j, made before it is seen: mean, and variance of the expected reward |
| e_j = r_j − m_j, v_j = 1 + s_j²/σ² | its error, and the expected spread of that error |
| cost | Σ_j (e_j²/v_j + σ² ln v_j) |

R² = cost + 2σ² ln(1/δ) is the squared radius of the paper's confidence set (label eq:confidence-set). Any
predictable forecaster gives a valid set, because `predict` comes before `update`, if rewards come in an order that does
not depend on their values; a better one gives a smaller set.

A `Cost` returns the cost minus the least-squares residual of the data: the excess G of `sets.dual` up to its
δ term. Fixed linear mixtures compute it without any subtraction.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np

from mixbandit._checks import Array, as_float_array, finite, is_integer, nonnegative
from mixbandit._schema import Schema, Since, array, count, deferred, list_of, real, record, require
from mixbandit.data import Data
from mixbandit.models import Model
from mixbandit.storage import Family, Storable

# Forecasts beyond this, in units of σ, are rounding errors that grew, and are not used. Their squares are floats.
LARGEST = 1e130


@runtime_checkable
class Forecaster(Protocol):
    """Anything that predicts a reward before it learns from it."""

    def predict(self, x: Array) -> tuple[float, float]:
        """Mean and variance (≥ 0) of the expected reward of the action row x, as given by the user."""
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

    def total(self, data: Data) -> float | None:
        """The cost itself, where that takes much less work than a decomposition of the data; else None."""
        return None

    def alpha0(self, data: Data) -> float:
        """The multiplier at which the closed-form bound suits this mixture best."""
        return self.sigma**2

    def start(self, data: Data) -> float:
        """About the same, where the data are decomposed anyway."""
        return self.alpha0(data)

    def at_sigma(self, sigma: float) -> Cost | None:
        """The cost if another noise level had been stated; None if that cannot be computed."""
        return None

    def state_dict(self) -> dict[str, Any]:
        """What the cost remembers beyond the data."""
        return {}

    def recall(self, state: Mapping[str, Any], data: Data) -> Cost:
        """The same cost, still without data, continued from a `state_dict` of the form `COST`, after these data."""
        return self


# Rounding may garble forecasts where σ is tiny; costs themselves say what is too large for well-conditioned numbers.
_LARGEST_COST = 1e300


def _cost(value: float, where: str) -> float:
    return nonnegative(value, where, _LARGEST_COST)


def _remembered(value: Any, where: str) -> Any:
    """A number, or an array of any shape."""
    if isinstance(value, list | np.ndarray):
        return array(*(None,) * as_float_array(value, where).ndim, largest=_LARGEST_COST)(value, where)
    return value if is_integer(value) else real(finite)(value, where)


COST: Schema = record(
    {
        "cost": Since(real(_cost)),
        "steps": Since(count),
        "level": Since(count),
        **{
            name: Since(array(None, None, largest=_LARGEST_COST))
            for name in ("gram", "P", "W", "actions", "factor", "posterior")
        },
        **{
            name: Since(array(None, largest=_LARGEST_COST))
            for name in ("moment", "zeta", "weights", "y", "white", "scatter")
        },
        "members": Since(list_of(deferred(lambda: COST))),
    },
    others=_remembered,
)
"""What costs remember: these, and numbers and arrays of other names. Which of them a cost needs, and of what shape, it
says itself (`stored_array`).
"""


class RunningCost(Cost):
    """A cost that is summed reward by reward."""

    def __init__(self, sigma: float) -> None:
        super().__init__(sigma)
        self._cost = 0.0

    def learn(self, actions: Array, phi: Array, rewards: Array, weights: Array | None) -> Self:
        new = self._fork()
        for i, reward in enumerate(rewards):
            new.see(actions[i], phi[i], float(reward), 1.0 if weights is None else float(weights[i]))
        return new

    def _fork(self) -> Self:
        """A cost in the same state; `see` on it must not change the original."""
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__)
        return new

    @abc.abstractmethod
    def see(self, action: Array, phi: Array, reward: float, weight: float) -> None:
        """Add one reward to a cost that has no other owner yet."""

    def excess(self, data: Data, reach: float) -> float:
        return self._cost - data.spectrum.residual(reach)

    def total(self, data: Data) -> float:
        return self._cost

    def add(self, scaled_error2: float, spread: float) -> None:
        """Add e²/v + ln v, in units of σ², for a forecast that erred by e; v is its variance and that of the noise."""
        self._cost += self.sigma**2 * (scaled_error2 + math.log(spread))

    def state_dict(self) -> dict[str, Any]:
        return {"cost": self._cost}

    def recall(self, state: Mapping[str, Any], data: Data) -> Self:
        new = self._fork()
        new._load(state, data)
        return new

    def _load(self, state: Mapping[str, Any], data: Data) -> None:
        require(state["cost"] is not None, "cost", "lacks 'cost'")
        self._cost = state["cost"]


class SteppedCost(RunningCost):
    """A cost that keeps arrays of fixed shapes, which its constructor makes, and counts rewards in `steps`.

    Give `see`: forecast the reward, `add` what the forecast cost, then learn it. Replace arrays, never change them.
    """

    arrays: ClassVar[tuple[str, ...]]  # the names of its attributes that are arrays

    def __init__(self, sigma: float) -> None:
        super().__init__(sigma)
        self.steps = 0

    def state_dict(self) -> dict[str, Any]:
        kept = {name.strip("_"): getattr(self, name).copy() for name in self.arrays}
        return {**super().state_dict(), "steps": self.steps, **kept}

    def _load(self, state: Mapping[str, Any], data: Data) -> None:
        super()._load(state, data)
        require(state["steps"] == data.count, "cost.steps", f"must be {data.count}, got {state['steps']}")
        self.steps = data.count
        for name in self.arrays:
            setattr(self, name, stored_array(state, name.strip("_"), getattr(self, name).shape))


class Mixture(Storable, abc.ABC):
    """The settings of a mixture; `cost` starts it for one sequence."""

    family = Family("a mixture", "mixture")

    @abc.abstractmethod
    def cost(self, model: Model, sigma: float) -> Cost: ...


def stored_array(state: Mapping[str, Any], name: str, shape: tuple[int, ...]) -> Array:
    """A stored array, which must have this shape."""
    found = state.get(name)
    require(found is not None, "cost", f"lacks {name!r}")
    assert found is not None
    if found.size == 0 == math.prod(shape):
        found = found.reshape(shape)
    require(found.shape == shape, f"cost.{name}", f"must have shape {shape}, got {found.shape}")
    return np.asarray(found)
