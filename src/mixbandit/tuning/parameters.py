"""Parameters: how the values of one parameter are encoded as coordinates of the unit box.

A `Float` or `Int` takes one coordinate, on a linear or logarithmic scale; a `Categorical` takes one per choice, one of
which is 1 and the others 0.
"""

from __future__ import annotations

import abc
import functools
import itertools
import math
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixbandit._checks import LARGEST_ENTRY, Array, as_number, flag, is_integer, shown
from mixbandit.errors import DamagedState, InvalidInput, NotStorable

# With more values than this, they are not listed: the coordinate is treated as continuous, then rounded.
_MOST_LISTED = 10_000
# A value is on the grid if it is off by less than this share of a step.
_OFF_STEP = 1e-6
_MOST_CHOICES, _MOST_STEPS = 100_000, 2**53  # beyond the latter, steps are finer than floats


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
        low, high = self.low, self.high
        for name, value in (("low", low), ("high", high)):
            try:
                usable = abs(as_number(value, name)) <= LARGEST_ENTRY
            except InvalidInput:
                usable = False
            if not usable:
                raise InvalidInput(f"{kind}: {name} must be a finite number, got {shown(value)}")
            object.__setattr__(self, name, as_type(value))
        object.__setattr__(self, "log", flag(self.log, f"{kind}: log"))
        if not self.low < self.high:
            raise InvalidInput(f"{kind}: low must be less than high, got low={shown(low)}, high={shown(high)}")
        if self.log and self.low <= 0:
            raise InvalidInput(f"{kind}: a logarithmic scale needs low > 0, got low={self.low!r}")
        if self.step is None:
            return
        step, width = as_number(self.step, f"{kind}: step"), self.high - self.low
        if not width / _MOST_STEPS <= step <= width or not step:
            raise InvalidInput(
                f"{kind}: step must be positive, not too small, and at most high − low = {width:g}, "
                f"got {shown(self.step)}"
            )
        object.__setattr__(self, "step", as_type(self.step))

    @property
    def width(self) -> int:
        return 1

    def encode(self, value: Any, name: str) -> Array:
        number = as_number(value, name)
        slack = 1e-9 * (self.high - self.low)
        if not self.low - slack <= number <= self.last + slack:
            raise InvalidInput(f"{name} must lie between {self.low!r} and {self.last!r}, got {shown(value)}")
        if self.step is not None:
            steps = (number - self.low) / self.step
            if abs(steps - round(steps)) > _OFF_STEP:
                raise InvalidInput(f"{name} must be {self.low!r} plus a multiple of {self.step!r}, got {shown(value)}")
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
            if not is_integer(value):
                raise InvalidInput(f"Int: {name} must be an integer, got {shown(value)}")
        self._check(int)


@dataclass(frozen=True)
class Categorical(Parameter):
    """One of several values without an order."""

    choices: tuple[Any, ...]

    def __init__(self, choices: Iterable[Any]) -> None:
        object.__setattr__(self, "choices", _listed(choices))
        if not self.choices:
            raise InvalidInput("Categorical: choices must not be empty")
        for choice in self.choices:
            if not (_equal(choice, choice) or isinstance(choice, float)):  # NaN is not equal to itself
                raise InvalidInput(f"Categorical: choices must be values that can be compared, got {shown(choice)}")
        seen: list[tuple[type, Any]] = [(type(choice), choice) for choice in self.choices]
        for i, choice in enumerate(seen):
            if choice in seen[:i]:
                raise InvalidInput(f"Categorical: choices must differ, {shown(choice[1])} occurs more than once")

    @property
    def width(self) -> int:
        return len(self.choices)

    def encode(self, value: Any, name: str) -> Array:
        for i, choice in enumerate(self.choices):
            # 1, 1.0 and True are equal for Python and may be different choices.
            if type(choice) is type(value) and _equal(choice, value):
                return self._one_hot(i)
        for i, choice in enumerate(self.choices):
            if _equal(choice, value) or (_is_nan(choice) and _is_nan(value)):
                return self._one_hot(i)
        raise InvalidInput(f"{name} must be one of {shown(list(self.choices))}, got {shown(value)}")

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
                raise NotStorable(f"the choice {shown(choice)} is a {kind}: only text and numbers are stored")
        return {"type": "Categorical", "choices": list(self.choices)}


def _listed(choices: Any) -> tuple[Any, ...]:
    """The choices in the order given, numpy's scalars as Python's."""
    try:
        if hasattr(type(choices), "__array__"):  # arrays, Series, tensors
            array = np.asarray(choices)
            if array.ndim != 1 or array.dtype.kind not in "biufUO" or np.ma.is_masked(choices):
                raise TypeError(f"an array of shape {array.shape} and dtype {array.dtype}")
            return tuple(array.tolist())
        if isinstance(choices, str | bytes | bytearray | Mapping | AbstractSet):  # letters, keys, or in no order
            raise TypeError(f"a {type(choices).__name__}")
        # Some iterables never end.
        found = tuple(
            c.item() if isinstance(c, np.generic) else c for c in itertools.islice(choices, _MOST_CHOICES + 1)
        )
    except Exception as error:  # the code of users and of other libraries
        raise InvalidInput(f"Categorical: choices must be a list of values, got {shown(choices)} ({error})") from error
    if len(found) > _MOST_CHOICES:
        raise InvalidInput(f"Categorical: there are more than {_MOST_CHOICES:,} choices")
    return found


def _equal(one: Any, other: Any) -> bool:
    """Whether two values are equal; those that cannot be compared, such as arrays, are not."""
    try:
        return bool(one == other)
    except Exception:
        return False


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def parameter_from_state_dict(state: Mapping[str, Any]) -> Parameter:
    kind = state["type"]
    if kind == "Categorical":
        return Categorical(state["choices"])
    if kind == "Float":
        return Float(state["low"], state["high"], bool(state["log"]), state["step"])
    if kind == "Int":
        return Int(int(state["low"]), int(state["high"]), bool(state["log"]), int(state["step"]))
    raise DamagedState(f"a parameter of unknown type {kind!r}")
