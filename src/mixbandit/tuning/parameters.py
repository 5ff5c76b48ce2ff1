"""Parameters: how the values of one parameter are encoded as coordinates of the unit box.

A `Float` or `Int` takes one coordinate, on a linear or logarithmic scale; a `Categorical` takes one per choice, one of
which is 1 and the others 0.
"""

from __future__ import annotations

import abc
import functools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from mixbandit._checks import Array, finite
from mixbandit._schema import flag, list_of, optional, real, record, scalar, tagged, text
from mixbandit.errors import InvalidInput, NotStorable

# With more values than this, they are not listed: the coordinate is treated as continuous, then rounded.
_MOST_LISTED = 10_000
# A value is on the grid if it is off by less than this share of a step.
_OFF_STEP = 1e-6


class Parameter(abc.ABC):
    """The interface of all parameters; `name` is only used in messages."""

    @property
    @abc.abstractmethod
    def width(self) -> int:
        """How many coordinates it takes."""

    @abc.abstractmethod
    def encode(self, value: Any, name: str) -> Array:
        """Its coordinates, (width,). A value that is not allowed is an error."""

    @abc.abstractmethod
    def decode(self, coordinates: Array) -> Any:
        """The nearest allowed value."""

    @functools.cached_property
    def levels(self) -> Array | None:
        """Coordinates of all values, (m, width), if they are finitely many and not too many."""
        return None

    def at(self, quantile: float) -> Array:
        """The coordinates (width,) of the value below which this share of the range, on its scale, lies."""
        return np.array([quantile]) if self.levels is None else self.levels[int(quantile * len(self.levels))]

    @abc.abstractmethod
    def state_dict(self) -> dict[str, Any]: ...


class _Number(Parameter):
    """Numbers between two ends, on a linear or logarithmic scale, all of them or in steps."""

    low: float
    high: float
    log: bool
    step: float | None

    def _check(self, as_type: type) -> None:
        """Reject invalid settings; convert numbers of any library to Python's own."""
        kind = type(self).__name__
        for name in ("low", "high"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
                raise InvalidInput(f"{kind}: {name} must be a finite number, got {value!r}")
        if not self.low < self.high:
            raise InvalidInput(f"{kind}: low must be less than high, got low={self.low!r}, high={self.high!r}")
        if self.log and self.low <= 0:
            raise InvalidInput(f"{kind}: a logarithmic scale needs low > 0, got low={self.low!r}")
        step: Any = self.step
        if step is not None and not (isinstance(step, Real) and 0 < float(step) <= self.high - self.low):
            raise InvalidInput(
                f"{kind}: step must be positive and at most high − low = {self.high - self.low:g}, got {self.step!r}"
            )
        for name in ("low", "high", "step"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, as_type(getattr(self, name)))

    @property
    def width(self) -> int:
        return 1

    def encode(self, value: Any, name: str) -> Array:
        if isinstance(value, bool | np.bool_) or not isinstance(value, Real | np.number):
            raise InvalidInput(f"{name} must be a number between {self.low!r} and {self.high!r}, got {value!r}")
        number = float(value)
        slack = 1e-9 * (self.high - self.low)
        if not self.low - slack <= number <= self.last + slack:
            raise InvalidInput(f"{name} must lie between {self.low!r} and {self.last!r}, got {value!r}")
        if self.step is not None:
            steps = (number - self.low) / self.step
            if abs(steps - round(steps)) > _OFF_STEP:
                raise InvalidInput(f"{name} must be {self.low!r} plus a multiple of {self.step!r}, got {value!r}")
        return np.array([min(max(self._position(number), 0.0), 1.0)])

    def decode(self, coordinates: Array) -> Any:
        number = self._value(min(max(float(coordinates[0]), 0.0), 1.0))
        if self.step is None:
            return min(max(number, float(self.low)), float(self.high))
        count = round((self.last - self.low) / self.step)
        return self._stepped(min(max(round((number - self.low) / self.step), 0), count))

    @functools.cached_property
    def levels(self) -> Array | None:
        if self.step is None or (self.last - self.low) / self.step >= _MOST_LISTED:
            return None
        count = round((self.last - self.low) / self.step) + 1
        return np.array([[self._position(float(self._stepped(i)))] for i in range(count)])

    def at(self, quantile: float) -> Array:
        # On a logarithmic scale large values are dense: many of them share little of it.
        return self.encode(self.decode(np.array([quantile])), "") if self.log else super().at(quantile)

    @property
    def last(self) -> float:
        """The largest value: steps may end before `high`."""
        if self.step is None:
            return self.high
        return float(self._stepped(math.floor((self.high - self.low) / self.step + _OFF_STEP)))

    def _stepped(self, i: int) -> Any:
        assert self.step is not None
        return min(self.low + i * self.step, self.high)

    def _position(self, number: float) -> float:
        if self.log:
            return (math.log(number) - math.log(self.low)) / (math.log(self.last) - math.log(self.low))
        return (number - self.low) / (self.last - self.low)

    def _value(self, position: float) -> float:
        if position in (0.0, 1.0):  # the ends exactly, not up to rounding
            return float(self.last if position else self.low)
        if self.log:
            return math.exp(math.log(self.low) + position * (math.log(self.last) - math.log(self.low)))
        return self.low + position * (self.last - self.low)

    def state_dict(self) -> dict[str, Any]:
        kind = {"type": type(self).__name__, "low": self.low, "high": self.high}
        return {**kind, "log": self.log, "step": self.step}


@dataclass(frozen=True)
class Float(_Number):
    """A real number between `low` and `high`; `log` for parameters such as learning rates; `step` for a grid."""

    low: float
    high: float
    log: bool = False
    step: float | None = None

    def __post_init__(self) -> None:
        self._check(float)
        if self.log and self.step is not None:
            raise InvalidInput(f"Float: a logarithmic scale has no steps, got log=True and step={self.step!r}")


@dataclass(frozen=True)
class Int(_Number):
    """An integer between `low` and `high`, both included; `step` counts from `low`."""

    low: int
    high: int
    log: bool = False
    step: int = 1

    def __post_init__(self) -> None:
        for name in ("low", "high", "step"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Integral):
                raise InvalidInput(f"Int: {name} must be an integer, got {value!r}")
        self._check(int)


@dataclass(frozen=True)
class Categorical(Parameter):
    """One of several values without an order."""

    choices: tuple[Any, ...]

    def __init__(self, choices: Iterable[Any]) -> None:
        if isinstance(choices, str | bytes) or not isinstance(choices, Iterable):
            raise InvalidInput(f"Categorical: choices must be a list of values, got {choices!r}")
        object.__setattr__(self, "choices", tuple(choices))
        if not self.choices:
            raise InvalidInput("Categorical: choices must not be empty")
        seen: list[tuple[type, Any]] = [(type(choice), choice) for choice in self.choices]
        for i, choice in enumerate(seen):
            if choice in seen[:i]:
                raise InvalidInput(f"Categorical: choices must differ, {choice[1]!r} occurs more than once")

    @property
    def width(self) -> int:
        return len(self.choices)

    def encode(self, value: Any, name: str) -> Array:
        for i, choice in enumerate(self.choices):
            # 1, 1.0 and True are equal for Python and may be different choices.
            if type(choice) is type(value) and choice == value:
                return self._one_hot(i)
        for i, choice in enumerate(self.choices):
            if choice == value or (choice != choice and value != value):  # NaN is not equal to itself  # noqa: PLR0124
                return self._one_hot(i)
        raise InvalidInput(f"{name} must be one of {list(self.choices)!r}, got {value!r}")

    def _one_hot(self, i: int) -> Array:
        row = np.zeros(self.width)
        row[i] = 1.0
        return row

    def decode(self, coordinates: Array) -> Any:
        return self.choices[int(np.argmax(coordinates))]

    @functools.cached_property
    def levels(self) -> Array:
        return np.eye(self.width, dtype=np.float64)

    def state_dict(self) -> dict[str, Any]:
        for choice in self.choices:
            if not isinstance(choice, str | int | float | bool | None):
                kind = type(choice).__name__
                raise NotStorable(f"the choice {choice!r} is a {kind}: only text and numbers are stored")
        return {"type": "Categorical", "choices": list(self.choices)}


def _whole(value: Any, where: str) -> int:
    # Without limits: the parameter itself knows which it can work with.
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise InvalidInput(f"{where} must be an integer, got {value!r:.80}")
    return int(value)


_NUMBER = real(finite)
PARAMETER = tagged(
    {
        "Categorical": record({"name": text, "choices": list_of(scalar, least=1)}),
        "Float": record({"name": text, "low": _NUMBER, "high": _NUMBER, "log": flag, "step": optional(_NUMBER)}),
        "Int": record({"name": text, "low": _whole, "high": _whole, "log": flag, "step": _whole}),
    },
    "a parameter",
)
"""The state of a parameter, with its name in the space."""


def parameter_from_state_dict(state: Mapping[str, Any]) -> Parameter:
    """The parameter of a state in the form of `PARAMETER`."""
    kinds: dict[str, type[Parameter]] = {"Categorical": Categorical, "Float": Float, "Int": Int}
    return kinds[state["type"]](**{key: value for key, value in state.items() if key not in ("type", "name")})
