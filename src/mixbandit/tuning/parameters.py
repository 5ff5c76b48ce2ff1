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
from fractions import Fraction
from typing import Any

import numpy as np

from mixbandit._checks import Array, as_number, as_vector, finite, flag, is_integer, shown
from mixbandit._schema import list_of, optional, real, record, scalar
from mixbandit.errors import InvalidInput, NotStorable
from mixbandit.storage import Family, Storable
from mixbandit.tuning.choices import Choices, are_equal

# With more values than this, they are not listed: the coordinate is treated as continuous, then rounded.
_MOST_LISTED = 10_000
# A value is on the grid if it is off by less than this share of a step.
_OFF_STEP = 1e-6
_EPS = float(np.finfo(np.float64).eps)
_MOST_CHOICES = 100_000
_MOST_COMPARED = 1_000  # choices that cannot be hashed are compared in pairs
_MOST_STEPS = 2**53  # of floats: more are finer than floats
# Larger integers are refused: their logarithms and ratios must be floats.
_LARGEST_INT = 10**300


def _whole(value: Any, where: str) -> int:
    # Without limits: the parameter itself knows which it can work with.
    if not is_integer(value):
        raise InvalidInput(f"{where} must be an integer, got {shown(value)}")
    return int(value)


class Parameter(Storable, abc.ABC):
    """The interface of all parameters; `name` is used only in messages."""

    family = Family("a parameter", "parameter")

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
        """Coordinates of all values of a number, (m, 1), if they are finitely many and not too many."""
        return None

    @abc.abstractmethod
    def at(self, quantile: float) -> Array:
        """The coordinates (width,) of the value below which this share of the range, on its scale, lies."""


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
            if not math.isfinite(as_number(value, f"{kind}: {name}")):
                raise InvalidInput(f"{kind}: {name} must be a finite number, got {shown(value)}")
            object.__setattr__(self, name, as_type(value))
        object.__setattr__(self, "log", flag(self.log, f"{kind}: log"))
        if not self.low < self.high:
            raise InvalidInput(f"{kind}: low must be less than high, got low={shown(low)}, high={shown(high)}")
        if self.log and self.low <= 0:
            raise InvalidInput(f"{kind}: a logarithmic scale needs low > 0, got low={self.low!r}")
        if self.step is None:
            return
        as_number(self.step, f"{kind}: step")
        if not 0 < as_type(self.step) <= self.high - self.low:  # an int as such: floats of its size may be far apart
            width = shown(self.high - self.low)
            raise InvalidInput(
                f"{kind}: step must be positive and at most high − low = {width}, got {shown(self.step)}"
            )
        object.__setattr__(self, "step", as_type(self.step))

    @property
    def width(self) -> int:
        return 1

    @property
    @abc.abstractmethod
    def last(self) -> float:
        """The largest value: steps may end before `high`."""

    @property
    @abc.abstractmethod
    def _steps(self) -> int | None:
        """How many steps there are from `low` to `last`; None if all numbers between them are values."""

    @abc.abstractmethod
    def _stepped(self, i: int) -> Any:
        """The value after i steps."""

    @abc.abstractmethod
    def _position(self, number: Any) -> float:
        """Where a number lies between the ends, on the scale of the parameter."""

    @functools.cached_property
    def levels(self) -> Array | None:
        if self._steps is None or self._steps >= _MOST_LISTED:
            return None
        return np.array([[self._position(self._stepped(i))] for i in range(self._steps + 1)])

    def at(self, quantile: float) -> Array:
        share = _share(quantile)
        # On a logarithmic scale large values are dense: many of them share little of it.
        if self.log:
            return self.encode(self.decode(np.array([share])), "")
        return np.array([share]) if self.levels is None else self.levels[_index(share, len(self.levels))]

    def _checked(self, value: Any, name: str) -> Any:
        """`value`, if it is a finite number: an int as such, because floats of its size may be far apart."""
        number = int(value) if is_integer(value) else as_number(value, name)
        if not isinstance(number, int) and not math.isfinite(number):
            raise self._outside(value, name)
        return number

    def _outside(self, value: Any, name: str) -> InvalidInput:
        return InvalidInput(f"{name} must lie between {self.low!r} and {self.last!r}, got {shown(value)}")


def _share(quantile: float) -> float:
    """A quantile in [0, 1]."""
    number = as_number(quantile, "quantile")
    if not 0.0 <= number <= 1.0:
        raise InvalidInput(f"quantile must lie in [0, 1], got {shown(quantile)}")
    return number


def _index(share: float, count: int) -> int:
    """Which of `count` equal parts of [0, 1] the share lies in."""
    return min(int(share * count), count - 1)


def _position(coordinates: Array) -> float:
    """The coordinate of a number, moved into [0, 1]."""
    return min(max(float(as_vector(coordinates, 1, "coordinates")[0]), 0.0), 1.0)


@dataclass(frozen=True)
class Float(_Number):
    """A real number between `low` and `high`; use `log` for parameters such as learning rates, `step` for a grid."""

    kind = "Float"
    schema = record({"low": real(finite), "high": real(finite), "log": flag, "step": optional(real(finite))})

    low: float
    high: float
    log: bool = False
    step: float | None = None

    def __post_init__(self) -> None:
        self._check(float)
        if self.log and self.step is not None:
            raise InvalidInput(f"Float: a logarithmic scale has no steps, got log=True and step={self.step!r}")
        if self.step is not None and not (self.high - self.low) / self.step <= _MOST_STEPS:
            raise InvalidInput(f"Float: the range must have at most {_MOST_STEPS:g} steps, got {self!r}")

    def encode(self, value: Any, name: str) -> Array:
        number = as_number(value, name)
        slack = 1e-9 * self.high - 1e-9 * self.low  # the difference of the ends may overflow
        if not self.low - slack <= number <= self.last + slack:
            raise self._outside(value, name)
        if self.step is not None:
            steps = (number - self.low) / self.step
            rounding = 4.0 * _EPS * (abs(number) + abs(self.low)) / self.step
            if abs(steps - round(steps)) > _OFF_STEP + rounding:
                raise InvalidInput(f"{name} must be {self.low!r} plus a multiple of {self.step!r}, got {shown(value)}")
        return np.array([min(max(self._position(min(max(number, self.low), self.last)), 0.0), 1.0)])

    def decode(self, coordinates: Array) -> float:
        number = self._value(_position(coordinates))
        if self._steps is None:
            return min(max(number, self.low), self.high)
        assert self.step is not None
        return self._stepped(min(max(round((number - self.low) / self.step), 0), self._steps))

    @property
    def last(self) -> float:
        if self.step is None:
            return self.high
        count = (self.high - self.low) / self.step
        return self._stepped(math.floor(count + _OFF_STEP + 4.0 * _EPS * count))

    @property
    def _steps(self) -> int | None:
        return None if self.step is None else round((self.last - self.low) / self.step)

    def _stepped(self, i: int) -> float:
        assert self.step is not None
        return min(self.low + i * self.step, self.high)

    def _position(self, number: float) -> float:
        if self.log:
            return _log_ratio(number, self.low) / _log_ratio(self.last, self.low)
        width = self.last - self.low
        if math.isinf(width):
            return (0.5 * number - 0.5 * self.low) / (0.5 * self.last - 0.5 * self.low)
        return (number - self.low) / width

    def _value(self, position: float) -> float:
        if position in (0.0, 1.0):  # the ends exactly, not up to rounding
            return self.last if position else self.low
        if self.log:
            return self.low + _beyond(self.low, position * _log_ratio(self.last, self.low), self.last)
        width = self.last - self.low
        return (1.0 - position) * self.low + position * self.last if math.isinf(width) else self.low + position * width


@dataclass(frozen=True)
class Int(_Number):
    """An integer between `low` and `high`, both included; `step` counts from `low`.

    Encoding and decoding return every value unchanged if the range has at most 2⁵² values (2⁴⁰ on a logarithmic scale),
    wherever it lies. In a larger range, neighbours share a coordinate, which decodes to one of them.
    """

    kind = "Int"
    schema = record({"low": _whole, "high": _whole, "log": flag, "step": _whole})

    low: int
    high: int
    log: bool = False
    step: int = 1

    def __post_init__(self) -> None:
        for name in ("low", "high", "step"):
            value = getattr(self, name)
            if not is_integer(value):
                raise InvalidInput(f"Int: {name} must be an integer, got {shown(value)}")
            if abs(int(value)) > _LARGEST_INT:
                raise InvalidInput(f"Int: {name} must be at most 1e300 in size, got {shown(value)}")
        self._check(int)

    def encode(self, value: Any, name: str) -> Array:
        number = self._checked(value, name)
        # Exactly: next to 2**60 floats are hundreds apart.
        steps = (Fraction(number) - self.low) / self.step
        if not -_OFF_STEP <= steps <= self._steps + _OFF_STEP:
            raise self._outside(value, name)
        nearest = round(steps)
        if abs(steps - nearest) > _OFF_STEP:
            raise InvalidInput(f"{name} must be {self.low!r} plus a multiple of {self.step!r}, got {shown(value)}")
        return np.array([self._position(self._stepped(nearest))])

    def decode(self, coordinates: Array) -> int:
        position = _position(coordinates)
        nearest = round(Fraction(position) * self._steps)
        if self.log and position not in (0.0, 1.0):
            nearest = round(_beyond(self.low, position * _log_ratio(self.last, self.low), self.last) / self.step)
        return self._stepped(min(max(nearest, 0), self._steps))

    @property
    def last(self) -> int:
        return self.low + self._steps * self.step

    @property
    def _steps(self) -> int:
        return (self.high - self.low) // self.step

    def _stepped(self, i: int) -> int:
        return self.low + i * self.step

    def _position(self, number: int) -> float:
        if self.log:
            return _log_ratio(number, self.low) / _log_ratio(self.last, self.low)
        return (number - self.low) / (self.last - self.low)


@dataclass(frozen=True)
class Categorical(Parameter):
    """One of several unordered values."""

    kind = "Categorical"
    schema = record({"choices": list_of(scalar, least=1)})

    choices: tuple[Any, ...]

    def __init__(self, choices: Iterable[Any]) -> None:
        object.__setattr__(self, "choices", _listed(choices))
        if not self.choices:
            raise InvalidInput("Categorical: choices must not be empty")
        for choice in self.choices:
            if not (are_equal(choice, choice) or isinstance(choice, float)):  # NaN is not equal to itself
                raise InvalidInput(f"Categorical: choices must be comparable values, got {shown(choice)}")
        if len(self.choices) > _MOST_COMPARED and not _are_hashable(self.choices):
            raise InvalidInput(
                f"Categorical: more than {_MOST_COMPARED:,} choices must be hashable, as text and numbers are"
            )
        repeated = self._by_value.repeated
        if repeated is not None:
            raise InvalidInput(
                f"Categorical: choices must differ, but {shown(self.choices[repeated])} occurs more than once"
            )

    @property
    def width(self) -> int:
        return len(self.choices)

    @functools.cached_property
    def _by_value(self) -> Choices:
        return Choices(self.choices)

    def index(self, value: Any, name: str) -> int:
        """The index of a choice; InvalidInput if it is none."""
        found = self._by_value.find(value)
        if found is None:
            raise InvalidInput(f"{name} must be one of {shown(list(self.choices))}, got {shown(value)}")
        return found

    def encode(self, value: Any, name: str) -> Array:
        return self._one_hot(self.index(value, name))

    def _one_hot(self, i: int) -> Array:
        row = np.zeros(self.width)
        row[i] = 1.0
        return row

    def decode(self, coordinates: Array) -> Any:
        return self.choices[int(np.argmax(as_vector(coordinates, self.width, "coordinates")))]

    def at(self, quantile: float) -> Array:
        return self._one_hot(_index(_share(quantile), self.width))

    def settings(self) -> dict[str, Any]:
        for choice in self.choices:
            if not isinstance(choice, str | int | float | bool | None):
                kind = type(choice).__name__
                raise NotStorable(f"the choice {shown(choice)} is a {kind}: only text and numbers are stored")
        return super().settings()


def _are_hashable(choices: tuple[Any, ...]) -> bool:
    try:
        hash(choices)
    except Exception:  # hashing runs the code of users
        return False
    return True


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
        raise InvalidInput(f"Categorical: there must be at most {_MOST_CHOICES:,} choices")
    return found


def _log_ratio(number: float, low: float) -> float:
    """ln(number/low), accurate also where they are nearly equal; both positive, and possibly integers of any size."""
    excess = (number - low) / low
    return math.log1p(excess) if excess < 1.0 else math.log(number) - math.log(low)


def _beyond(low: float, log_ratio: float, last: float) -> float:
    """The inverse: low·(exp(log_ratio) − 1), without overflow for numbers up to `last`."""
    if log_ratio < math.log(2.0):
        return low * math.expm1(log_ratio)
    return math.exp(min(math.log(low) + log_ratio, math.log(last))) - low
