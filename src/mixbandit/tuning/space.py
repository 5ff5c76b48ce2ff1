"""Named parameters together: users see dicts, a confidence sequence sees rows of numbers in the unit box."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from mixbandit._checks import LARGEST_BATCH, Array, as_generator, as_text, as_vector, instance_of, positive_int, shown
from mixbandit._rows import distinct_rows
from mixbandit._schema import Fields, checked, list_of, record, require, scalar
from mixbandit.actions import Box, Levels, MixedBox, OneHot, Pin
from mixbandit.errors import InvalidInput, reading
from mixbandit.tuning.conditions import Conditions
from mixbandit.tuning.parameters import Categorical, Parameter
from mixbandit.tuning.toml_spaces import read_toml

# The largest error of a coordinate after encoding and decoding.
_ROUNDING = 1e-12
# Rows that agree in this many digits encode the same configuration.
_DIGITS = 9


class Space(Mapping[str, Parameter]):
    """Named parameters, in the order given.

    `conditions` lists parameters that matter only for certain values of a categorical one: `{"degree": ("kernel",
    ["poly"])}`. Where they do not matter, they need not be given, and decoding leaves them out.
    """

    def __init__(
        self, parameters: Mapping[str, Parameter], conditions: Mapping[str, tuple[str, Iterable[Any]]] | None = None
    ) -> None:
        if not isinstance(parameters, Mapping) or not parameters:
            raise InvalidInput(f"a Space needs a dict with at least one named parameter, got {shown(parameters)}")
        for name, parameter in parameters.items():
            if not isinstance(name, str) or not name:
                raise InvalidInput(f"parameter names must be non-empty text, got {shown(name)}")
            if not isinstance(parameter, Parameter):
                raise InvalidInput(f"{name} must be a Float, Int or Categorical, got {shown(parameter)}")
        self._parameters = dict(parameters)
        ends = np.cumsum([0, *(parameter.width for parameter in self._parameters.values())])
        self._columns = {
            name: range(int(a), int(b)) for name, a, b in zip(self._parameters, ends[:-1], ends[1:], strict=True)
        }
        self.dim = int(ends[-1])
        self._conditional = Conditions(self._parameters, {} if conditions is None else conditions)
        self.conditions = self._conditional.stated

    @classmethod
    def from_toml(cls, path: str | os.PathLike[str]) -> Space:
        """The space that a TOML file describes, with a table for each parameter.

        ```toml
        C = { type = "float", low = 0.01, high = 100, log = true }
        kernel = { choices = ["rbf", "poly"] }
        degree = { type = "int", low = 2, high = 5, when = { kernel = ["poly"] } }
        ```
        """
        found = read_toml(path)
        try:
            return cls(found.parameters, found.conditions)
        except InvalidInput as error:
            raise InvalidInput(f"{found.source}: {error}") from None

    def is_active(self, name: str, parameters: Mapping[str, Any]) -> bool:
        """Whether a parameter matters, given the values of those it depends on."""
        name = as_text(name, "name")
        self.columns(name)
        if not isinstance(parameters, Mapping):
            raise InvalidInput(f"parameters must be a dict, got {shown(parameters)}")
        return self._conditional.is_active(name, parameters)

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
        """The unit box that contains the rows, with its discrete coordinates."""
        parts: list[Levels | OneHot] = []
        for name, columns in self._columns.items():
            if isinstance(self[name], Categorical):
                parts.append(OneHot.of(tuple(columns)))
            elif (levels := self[name].levels) is not None:
                parts.append(Levels(tuple(columns), levels, ordered=True))
        low, high = np.zeros(self.dim), np.ones(self.dim)
        return MixedBox(low, high, parts, self._pins()) if parts else Box(low, high)

    def _pins(self) -> list[Pin]:
        pins = []
        for child, (parent, _) in self.conditions.items():
            first = self._columns[parent].start
            where = tuple(first + i for i in self._conditional.openers(child))
            pins.append(Pin(tuple(self._columns[child]), where, _absent(self[child])))
        return pins

    def columns(self, name: str) -> range:
        """The columns of a parameter."""
        known = as_text(name, "the name of a parameter")
        if known not in self._columns:
            raise InvalidInput(f"there is no parameter {shown(known)}; the parameters are {', '.join(self)}")
        return self._columns[known]

    def encode(self, parameters: Mapping[str, Any]) -> Array:
        """A row (dim,) from a dict that gives every parameter a value."""
        if not isinstance(parameters, Mapping):
            raise InvalidInput(f"parameters must be a dict, got {shown(parameters)}")
        active = self._conditional.active(parameters)
        missing = [name for name in self if name not in parameters and name in active]
        unknown = [name for name in parameters if name not in self._columns]
        if missing or unknown:
            problems = [f"{', '.join(map(repr, missing))} missing"] if missing else []
            problems += [f"{', '.join(map(shown, unknown[:5]))} unknown"] if unknown else []
            raise InvalidInput(f"parameters must be exactly {', '.join(map(repr, self))}: {'; '.join(problems)}")
        return np.concatenate(
            [self[name].encode(parameters[name], name) if name in active else _absent(self[name]) for name in self]
        )

    def encode_all(self, configurations: Sequence[Mapping[str, Any]]) -> Array:
        """Rows (n, dim)."""
        instance_of(configurations, (list, tuple), "configurations", "a list of dicts")
        return np.array([self.encode(parameters) for parameters in configurations]).reshape(-1, self.dim)

    def snapped(self, row: Array) -> Array:
        """The row of the nearest configuration; the row itself if it already encodes one."""
        nearest = self.encode(self.decode(row))
        return row if np.abs(nearest - row).max() <= _ROUNDING else nearest

    def same(self, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
        """Whether two configurations are equal in what matters, up to rounding."""
        with contextlib.suppress(Exception):  # values that cannot be compared, such as arrays: `encode` says so
            if one == other and all(type(one[name]) is type(other[name]) for name in one):  # 1 and True may differ
                return True
        return same_row(self.encode(one), self.encode(other))

    def decode(self, row: Array) -> dict[str, Any]:
        """The nearest allowed values of the parameters that matter."""
        row = as_vector(row, self.dim, "row")
        values = {n: self[n].decode(row[columns.start : columns.stop]) for n, columns in self._columns.items()}
        active = self._conditional.active(values)
        return {name: value for name, value in values.items() if name in active}

    def sample(self, n: int, *, rng: int | np.random.Generator | None = None) -> list[dict[str, Any]]:
        """Independent uniform configurations, on the scales of the parameters."""
        rows = self.region.sample(positive_int(n, "n", LARGEST_BATCH), as_generator(rng))
        return [self.decode(row) for row in rows]

    def spread(self, n: int, *, rng: int | np.random.Generator | None = None) -> list[dict[str, Any]]:
        """Configurations that cover the space more evenly than independent ones would, for any n."""
        from scipy.stats.qmc import Sobol  # as slow to import as everything else together

        # A power of two at a time, which suits Sobol sequences; the first points do not depend on how many follow.
        count = positive_int(n, "n", LARGEST_BATCH)
        quantiles = Sobol(len(self), seed=as_generator(rng)).random_base2(max(count - 1, 1).bit_length())
        return [
            self.decode(np.concatenate([self[name].at(float(q)) for name, q in zip(self, row, strict=True)]))
            for row in quantiles[:count]
        ]

    def state_dict(self) -> dict[str, Any]:
        # A list, because the order matters and mappings in files need not keep it.
        conditions = [
            {"name": child, "on": parent, "values": list(values)} for child, (parent, values) in self.conditions.items()
        ]
        parameters = [{"name": name, **self[name].state_dict()} for name in self]
        return {"parameters": parameters, "conditions": conditions}

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any]) -> Space:
        return cls.restored(checked(SPACE, state, "space"))

    @classmethod
    def restored(cls, stored: Mapping[str, Any]) -> Space:
        """The space of a checked state."""
        with reading("the space"):
            parameters = {part["name"]: part["parameter"].build() for part in stored["parameters"]}
            return cls(parameters, {part["name"]: (part["on"], part["values"]) for part in stored["conditions"]})


def _absent(parameter: Parameter) -> Array:
    """Coordinates for a parameter that does not matter: the middle, or none of the choices."""
    return np.zeros(parameter.width) if isinstance(parameter, Categorical) else np.full(1, 0.5)


def _check_names(stored: Fields, where: str) -> None:
    for field in ("parameters", "conditions"):
        names = [part["name"] for part in stored[field]]
        require(len(set(names)) == len(names), f"{where}.{field}", "must have different names")


def _parameter(value: Any, where: str) -> Fields:
    return {"parameter": Parameter.family(value, where), **record({"name": as_text})(value, where)}


SPACE = record(
    {
        "parameters": list_of(_parameter, least=1),
        "conditions": list_of(record({"name": as_text, "on": as_text, "values": list_of(scalar, least=1)})),
    },
    _check_names,
)
"""The state of a space."""


def centre(space: Space) -> Array:
    """The row in the middle of all ranges, with the first of all choices."""
    return space.encode(space.decode(np.full(space.dim, 0.5)))


def same_row(one: Array, other: Array) -> bool:
    """Whether two rows encode the same configuration, up to rounding."""
    return bool(np.abs(one - other).max() <= _ROUNDING)


def rounded(rows: Array) -> Array:
    """Rows that encode the same configuration become equal; −0 becomes 0."""
    return np.asarray(np.round(rows, _DIGITS) + 0.0)


def row_key(row: Array) -> bytes:
    """What tells the configurations of rows apart."""
    return rounded(row).tobytes()


def size_of(space: Space) -> int | None:
    """The number of configurations, or more if there are conditions; None if there are infinitely many."""
    count = 1
    for parameter in space.values():
        is_category = isinstance(parameter, Categorical)
        count *= parameter.width if is_category else 0 if parameter.levels is None else len(parameter.levels)
    return count or None


def enumerated(space: Space, most: int) -> Array | None:
    """All configurations as rows, in order; None if they are more than `most`, or infinitely many."""
    count, parts = size_of(space), list[Array]()
    if count is None or count > most:
        return None
    for parameter in space.values():
        levels = np.eye(parameter.width) if isinstance(parameter, Categorical) else parameter.levels
        assert levels is not None
        parts.append(levels)
    places = np.indices([len(levels) for levels in parts]).reshape(len(parts), count)
    rows = np.hstack([levels[place] for levels, place in zip(parts, places, strict=True)])
    if space.conditions:
        rows = distinct_rows(space.region.pinned(rows)).rows
    return rows
