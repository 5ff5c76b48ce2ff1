"""Named parameters, and the unit box they are encoded in.

A `Float` or `Int` takes one coordinate, on a linear or logarithmic scale; a `Categorical` takes one per choice, one of
which is 1 and the others 0. So a confidence sequence sees rows of numbers, and users see dicts.
"""

from __future__ import annotations

import abc
import functools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from mixbandit._validation import Array, positive_int
from mixbandit.actions import Box, Levels, MixedBox, Pin
from mixbandit.errors import DamagedState, InvalidInput, NotStorable, reading

# Values that are more than this are not listed: the coordinate is taken as continuous and rounded.
_MOST_LISTED = 10_000
# A value is one of the steps if it is off by less than this share of one.
_OFF_STEP = 1e-6
# Encoding and decoding loses no more than this of a coordinate.
_ROUNDING = 1e-12


class Parameter(abc.ABC):
    """What all kinds of parameters can do; `name` is only for messages."""

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
        """Coordinates of all values, (m, width), where they are finitely many and not too many."""
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
        """Refuse what makes no sense; numbers become Python's own, whatever library they came from."""
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
        # On a logarithmic scale large values are many, and take little of it.
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
    """A real number between `low` and `high`; `log` for scales such as learning rates; `step` for a grid."""

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


class Space(Mapping[str, Parameter]):
    """Named parameters, in the order given.

    `conditions` says which of them matter only where a categorical one has certain values:
    `{"degree": ("kernel", ["poly"])}`. Elsewhere they need not be given, and are not part of what is decoded.
    """

    def __init__(
        self, parameters: Mapping[str, Parameter], conditions: Mapping[str, tuple[str, Iterable[Any]]] | None = None
    ) -> None:
        if not isinstance(parameters, Mapping) or not parameters:
            raise InvalidInput(f"a Space is made from a dict of at least one named parameter, got {parameters!r}")
        for name, parameter in parameters.items():
            if not isinstance(name, str) or not name:
                raise InvalidInput(f"parameters are named by text, got {name!r}")
            if not isinstance(parameter, Parameter):
                raise InvalidInput(f"{name} must be a Float, Int or Categorical, got {parameter!r}")
        self._parameters = dict(parameters)
        ends = np.cumsum([0, *(parameter.width for parameter in self._parameters.values())])
        self._columns = {
            name: range(int(a), int(b)) for name, a, b in zip(self._parameters, ends[:-1], ends[1:], strict=True)
        }
        self.dim = int(ends[-1])
        self.conditions = self._checked({} if conditions is None else conditions)

    def _checked(self, conditions: Mapping[str, tuple[str, Iterable[Any]]]) -> dict[str, tuple[str, tuple[Any, ...]]]:
        """The conditions, parents before their children."""
        if not isinstance(conditions, Mapping):
            raise InvalidInput(f"conditions must be a dict, as {{'degree': ('kernel', ['poly'])}}; got {conditions!r}")
        known: dict[str, tuple[str, tuple[Any, ...]]] = {}
        for child, condition in conditions.items():
            if not isinstance(condition, tuple | list) or len(condition) != 2:
                raise InvalidInput(f"the condition of {child!r} must be (name, values), got {condition!r}")
            parent = condition[0]
            values = tuple(condition[1]) if isinstance(condition[1], tuple | list) else ()
            for name in (child, parent):
                self.columns(name)
            on = self[parent]
            if not isinstance(on, Categorical) or not values:
                raise InvalidInput(f"{child} must depend on a list of values of a Categorical, got {condition!r}")
            for value in values:
                on.encode(value, f"the condition of {child}: {parent}")
            known[child] = (parent, values)
        ordered: dict[str, tuple[str, tuple[Any, ...]]] = {}
        while len(ordered) < len(known):
            waiting = {child: parent for child, (parent, _) in known.items() if child not in ordered}
            ready = [child for child, parent in waiting.items() if parent not in waiting]
            if not ready:
                raise InvalidInput(f"conditions must not go round in circles, got {dict(conditions)!r}")
            ordered |= {child: known[child] for child in ready}
        return ordered

    def is_active(self, name: str, parameters: Mapping[str, Any]) -> bool:
        """Whether a parameter matters, given the values of those it depends on."""
        if name not in self.conditions:
            return True
        parent, values = self.conditions[name]
        on = self[parent]
        if not self.is_active(parent, parameters) or parent not in parameters:
            return False
        given = on.encode(parameters[parent], parent)
        return any(np.array_equal(given, on.encode(value, parent)) for value in values)

    def __getitem__(self, name: str) -> Parameter:
        return self._parameters[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parameters)

    def __len__(self) -> int:
        return len(self._parameters)

    def __repr__(self) -> str:
        return f"Space({self._parameters!r}{f', {self.conditions!r}' if self.conditions else ''})"

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, Space) and list(self.items()) == list(other.items())
        return bool(same and isinstance(other, Space) and self.conditions == other.conditions)

    __hash__ = None  # type: ignore[assignment]

    @functools.cached_property
    def region(self) -> Box:
        """The unit box that rows lie in, with its discrete coordinates."""
        parts = [
            Levels(tuple(columns), levels, ordered=not isinstance(self[name], Categorical))
            for name, columns in self._columns.items()
            if (levels := self[name].levels) is not None
        ]
        low, high = np.zeros(self.dim), np.ones(self.dim)
        return MixedBox(low, high, parts, self._pins()) if parts else Box(low, high)

    def _pins(self) -> list[Pin]:
        pins = []
        for child, (parent, values) in self.conditions.items():
            first = self._columns[parent].start
            where = tuple(first + int(self[parent].encode(value, parent).argmax()) for value in values)
            pins.append(Pin(tuple(self._columns[child]), where, self._absent(child)))
        return pins

    def _absent(self, name: str) -> Array:
        """Coordinates that stand for a parameter that does not matter: the middle, or none of the choices."""
        return np.zeros(self[name].width) if isinstance(self[name], Categorical) else np.full(1, 0.5)

    def columns(self, name: str) -> range:
        """Where a parameter is found in a row."""
        if name not in self._columns:
            raise InvalidInput(f"there is no parameter {name!r}; there are {', '.join(self)}")
        return self._columns[name]

    def encode(self, parameters: Mapping[str, Any]) -> Array:
        """A row (dim,) from a dict that gives every parameter a value."""
        if not isinstance(parameters, Mapping):
            raise InvalidInput(f"parameters must be a dict, got {parameters!r}")
        active = {name: self.is_active(name, parameters) for name in self}
        missing = [name for name in self if name not in parameters and active[name]]
        unknown = [name for name in parameters if name not in self]
        if missing or unknown:
            problems = [f"{', '.join(map(repr, missing))} missing"] if missing else []
            problems += [f"{', '.join(map(repr, unknown))} unknown"] if unknown else []
            raise InvalidInput(f"parameters must be {', '.join(map(repr, self))}: {'; '.join(problems)}")
        return np.concatenate(
            [self[name].encode(parameters[name], name) if active[name] else self._absent(name) for name in self]
        )

    def encode_all(self, configurations: Sequence[Mapping[str, Any]]) -> Array:
        """Rows (n, dim)."""
        return np.array([self.encode(parameters) for parameters in configurations]).reshape(-1, self.dim)

    def snapped(self, row: Array) -> Array:
        """The row of the nearest configuration; the same one if it stands for a configuration already."""
        nearest = self.encode(self.decode(row))
        return row if np.abs(nearest - row).max() <= _ROUNDING else nearest

    def same(self, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
        """Whether two configurations are equal in what matters, up to rounding."""
        if one == other and all(type(one[name]) is type(other[name]) for name in one):  # 1 and True may be two choices
            return True
        return bool(np.abs(self.encode(one) - self.encode(other)).max() <= _ROUNDING)

    def decode(self, row: Array) -> dict[str, Any]:
        """The nearest allowed parameters, those that matter."""
        values = {n: self[n].decode(row[columns.start : columns.stop]) for n, columns in self._columns.items()}
        return {name: value for name, value in values.items() if self.is_active(name, values)}

    def sample(self, n: int, *, rng: int | np.random.Generator | None = None) -> list[dict[str, Any]]:
        """Independent uniform configurations, on the scales of the parameters."""
        rows = self.region.sample(n, np.random.default_rng(rng))
        return [self.decode(row) for row in rows]

    def spread(self, n: int, *, rng: int | np.random.Generator | None = None) -> list[dict[str, Any]]:
        """Configurations that cover the space more evenly than independent ones, however many of them are used."""
        from scipy.stats.qmc import Sobol  # takes as long to import as all the rest

        # A power of two at a time, as the sequence likes it; its beginning does not depend on how many follow.
        quantiles = Sobol(len(self), seed=np.random.default_rng(rng)).random_base2(
            max(positive_int(n, "n") - 1, 1).bit_length()
        )
        return [self._at(row) for row in quantiles[:n]]

    def _at(self, quantiles: Array) -> dict[str, Any]:
        """A configuration by one number in [0, 1) per parameter."""
        row = np.empty(self.dim)
        for (name, columns), q in zip(self._columns.items(), quantiles, strict=True):
            row[columns.start : columns.stop] = self[name].at(float(q))
        return self.decode(row)

    def state_dict(self) -> dict[str, Any]:
        # A list, because the order matters and mappings in files need not keep it.
        conditions = [
            {"name": child, "on": parent, "values": list(values)} for child, (parent, values) in self.conditions.items()
        ]
        parameters = [{"name": name, **self[name].state_dict()} for name in self]
        return {"parameters": parameters, "conditions": conditions}

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any]) -> Space:
        with reading("the space"):
            parameters = {str(part["name"]): _parameter(part) for part in state["parameters"]}
            return cls(parameters, {part["name"]: (part["on"], part["values"]) for part in state["conditions"]})


def _parameter(state: Mapping[str, Any]) -> Parameter:
    kind = state["type"]
    if kind == "Categorical":
        return Categorical(state["choices"])
    if kind == "Float":
        return Float(state["low"], state["high"], bool(state["log"]), state["step"])
    if kind == "Int":
        return Int(int(state["low"]), int(state["high"]), bool(state["log"]), int(state["step"]))
    raise DamagedState(f"a parameter of unknown type {kind!r}")
