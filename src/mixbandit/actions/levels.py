"""Discrete coordinates of a box: which values they take, which is nearest, which coordinates depend on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixbandit._checks import Array, flag
from mixbandit._schema import Fields, array, count, list_of, record, require

IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Levels:
    """Coordinates of a box that together take one of finitely many listed values, such as those of an integer."""

    columns: tuple[int, ...]
    values: Array  # (m, len(columns))
    ordered: bool  # whether adjacent values are similar, as for integers but not categories

    def __len__(self) -> int:
        return len(self.values)

    def nearest(self, rows: Array) -> IntArray:
        """Index of the nearest value for each row (n, len(columns))."""
        if len(self.columns) == 1:
            middles = 0.5 * (self.values[1:, 0] + self.values[:-1, 0])
            return np.searchsorted(middles, rows[:, 0], side="left").astype(np.int64)
        return np.asarray(np.argmin(((rows[:, None, :] - self.values) ** 2).sum(axis=2), axis=1))

    def at(self, indices: IntArray) -> Array:
        """The values with these indices, (n, len(columns))."""
        return np.asarray(self.values[indices])

    def fit(self, low: Array, high: Array) -> bool:
        """Whether there are values, all between two corners, (len(columns),) each, and single ones increase."""
        if self.values.shape != (len(self), len(self.columns)) or not len(self):
            return False
        inside = bool(((self.values >= low) & (self.values <= high)).all())
        return inside and (len(self.columns) > 1 or bool((np.diff(self.values[:, 0]) > 0.0).all()))

    def moved_to(self, place: Sequence[int] | Mapping[int, int]) -> Levels:
        """The same for other coordinates."""
        return Levels(tuple(place[c] for c in self.columns), self.values, self.ordered)

    def state_dict(self) -> dict[str, Any]:
        return {"columns": list(self.columns), "values": self.values.copy(), "ordered": self.ordered}


@dataclass(frozen=True, eq=False)
class OneHot:
    """Coordinates of which one is 1 and the others are 0: a category. The matrix of its values is never made."""

    columns: tuple[int, ...]
    choices: IntArray  # which of the coordinates may be 1, as indices into `columns`

    ordered = False

    @classmethod
    def of(cls, columns: tuple[int, ...]) -> OneHot:
        """Any of the coordinates may be 1."""
        return cls(columns, np.arange(len(columns)))

    def __len__(self) -> int:
        return len(self.choices)

    def nearest(self, rows: Array) -> IntArray:
        """Index of the nearest value for each row (n, len(columns)): ‖a − e_i‖² falls as a_i rises."""
        return np.asarray(np.argmax(rows if len(self) == len(self.columns) else rows[:, self.choices], axis=1))

    def at(self, indices: IntArray) -> Array:
        """The values with these indices, (n, len(columns))."""
        rows = np.zeros((len(indices), len(self.columns)))
        rows[np.arange(len(indices)), self.choices[indices]] = 1.0
        return rows

    def fit(self, low: Array, high: Array) -> bool:
        """Whether there are choices, all different, and 0 and 1 lie in the box, whose corners are (len(columns),)."""
        known = bool(len(self)) and bool(((self.choices >= 0) & (self.choices < len(self.columns))).all())
        inside = bool((low <= 0.0).all() and (high[self.choices] >= 1.0).all()) if known else False
        return inside and len(np.unique(self.choices)) == len(self)

    def moved_to(self, place: Sequence[int] | Mapping[int, int]) -> OneHot:
        """The same for other coordinates."""
        return OneHot(tuple(place[c] for c in self.columns), self.choices)

    def state_dict(self) -> dict[str, Any]:
        return {"columns": list(self.columns), "one_hot": self.choices.tolist()}


def with_one_hot(part: Levels | OneHot) -> Levels | OneHot:
    """The same values, without their matrix where they are all the choices of a category."""
    if isinstance(part, OneHot) or part.ordered or len(part.columns) < 2:
        return part
    m, values = len(part.columns), part.values
    listed = values.shape == (m, m) and np.count_nonzero(values) == m and (values.diagonal() == 1.0).all()
    return OneHot.of(part.columns) if listed else part


def levels_from_state_dict(state: Mapping[str, Any]) -> Levels | OneHot:
    """The part of a `state_dict`; version 0.1.0 listed the values of categories, too."""
    columns = tuple(map(int, state["columns"]))
    if "one_hot" in state:
        return OneHot(columns, np.array([int(i) for i in state["one_hot"]], dtype=np.int64))
    return Levels(columns, np.asarray(state["values"], dtype=np.float64), bool(state["ordered"]))


@dataclass(frozen=True, eq=False)
class Pin:
    """Coordinates that matter only if a category has certain values, and are fixed otherwise."""

    columns: tuple[int, ...]
    where: tuple[int, ...]  # coordinates of the category's values for which they matter
    value: Array  # (len(columns),), otherwise

    def inactive(self, rows: Array) -> NDArray[np.bool_]:
        return np.asarray(rows[:, list(self.where)].sum(axis=1) < 0.5)

    def moved_to(self, place: Sequence[int] | Mapping[int, int]) -> Pin:
        """The same for other coordinates."""
        return Pin(tuple(place[c] for c in self.columns), tuple(place[c] for c in self.where), self.value)

    def state_dict(self) -> dict[str, Any]:
        return {"columns": list(self.columns), "where": list(self.where), "value": self.value.copy()}


_COLUMNS = list_of(count, least=1)


def _check_one_hot(stored: Fields, where: str) -> None:
    known = all(i < len(stored["columns"]) for i in stored["one_hot"])
    require(known, f"{where}.one_hot", f"must be indices below {len(stored['columns'])}")
    require(len(set(stored["one_hot"])) == len(stored["one_hot"]), f"{where}.one_hot", "must differ")


_VALUES = record({"columns": _COLUMNS, "values": array(None, None), "ordered": flag})
_ONE_HOT = record({"columns": _COLUMNS, "one_hot": _COLUMNS}, _check_one_hot)


def LEVELS(value: Any, where: str) -> Fields:
    """The schema of `Levels` and `OneHot`."""
    found: Fields = (_ONE_HOT if isinstance(value, Mapping) and "one_hot" in value else _VALUES)(value, where)
    return found


PIN = record({"columns": _COLUMNS, "where": _COLUMNS, "value": array(None)})
"""The schema of a `Pin`."""


class Exchanges(NamedTuple):
    """Rows that equal `base` except in one coordinate each."""

    base: Array  # (dim,)
    columns: IntArray  # (n,), the coordinate that is different
    values: Array  # (n,), its value

    def rows(self, which: IntArray) -> Array:
        """Some of the rows, (len(which), dim)."""
        rows = np.tile(self.base, (len(which), 1))
        rows[np.arange(len(which)), self.columns[which]] = self.values[which]
        return rows
