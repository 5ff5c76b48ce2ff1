"""Boxes in which some coordinates are discrete, and some matter only if others have certain values."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixbandit._checks import Array
from mixbandit._files import digest
from mixbandit.actions.box import Box
from mixbandit.errors import InvalidInput

# Values that differ by no more than this are the same.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Levels:
    """Coordinates of a box that together take one of finitely many values: an integer, or a one-hot category."""

    columns: tuple[int, ...]
    values: Array  # (m, len(columns))
    ordered: bool  # whether adjacent values are similar, as for integers but not categories

    def __len__(self) -> int:
        return len(self.values)

    def nearest(self, rows: Array) -> NDArray[np.int64]:
        """Index of the nearest value for each row (n, len(columns))."""
        if len(self.columns) == 1:
            middles = 0.5 * (self.values[1:, 0] + self.values[:-1, 0])
            return np.searchsorted(middles, rows[:, 0], side="left").astype(np.int64)
        return np.asarray(np.argmin(((rows[:, None, :] - self.values) ** 2).sum(axis=2), axis=1))

    def moved(self, by: int) -> Levels:
        return Levels(tuple(c + by for c in self.columns), self.values, self.ordered)

    def state_dict(self) -> dict[str, Any]:
        return {"columns": list(self.columns), "values": self.values.copy(), "ordered": self.ordered}


@dataclass(frozen=True, eq=False)
class Pin:
    """Coordinates that matter only if a category has certain values, and are fixed otherwise."""

    columns: tuple[int, ...]
    where: tuple[int, ...]  # coordinates of the category's values for which they matter
    value: Array  # (len(columns),), otherwise

    def inactive(self, rows: Array) -> NDArray[np.bool_]:
        return np.asarray(rows[:, list(self.where)].sum(axis=1) < 0.5)

    def moved(self, by: int) -> Pin:
        return Pin(tuple(c + by for c in self.columns), tuple(c + by for c in self.where), self.value)

    def state_dict(self) -> dict[str, Any]:
        return {"columns": list(self.columns), "where": list(self.where), "value": self.value.copy()}


class MixedBox(Box):
    """A box in which some coordinates take only certain values, alone or as a group (`levels`), and some are fixed
    unless a category has certain values (`pins`, in an order in which later ones may depend on earlier ones).
    """

    # Up to this many ordered values are tried one by one; more are first treated as continuous.
    _FEW = 8

    def __init__(self, low: ArrayLike, high: ArrayLike, levels: Iterable[Levels], pins: Iterable[Pin] = ()) -> None:
        super().__init__(low, high)
        self.levels, self.pins = tuple(levels), tuple(pins)
        columns = [column for part in self.levels for column in part.columns]
        if len(set(columns)) != len(columns) or not set(columns) <= set(range(self.dim)):
            raise InvalidInput(f"levels must name different coordinates of 0, …, {self.dim - 1}, got {columns}")
        for part in self.levels:
            at = list(part.columns)
            shape = part.values.shape == (len(part), len(at)) and len(part) > 0
            inside = shape and bool(((part.values >= self.low[at]) & (part.values <= self.high[at])).all())
            if not inside or (len(at) == 1 and (np.diff(part.values[:, 0]) <= 0.0).any()):
                raise InvalidInput(f"levels of coordinates {at} must be values inside the box, single ones increasing")
        for pin in self.pins:
            if pin.value.shape != (len(pin.columns),) or not {*pin.columns, *pin.where} <= set(range(self.dim)):
                raise InvalidInput(f"a pin must have a value for each of its coordinates {pin.columns}")

    def __repr__(self) -> str:
        counts = ", ".join(f"{len(part)} for {list(part.columns)}" for part in self.levels)
        return f"MixedBox({self.low.tolist()}, {self.high.tolist()}, levels: {counts})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MixedBox) and digest(self.state_dict()) == digest(other.state_dict())

    __hash__ = None

    @property
    def continuous(self) -> NDArray[np.bool_]:
        mask = super().continuous
        mask[[column for part in self.levels for column in part.columns]] = False
        return mask

    @property
    def tried(self) -> tuple[Levels, ...]:
        """The parts whose values are tried one by one; the others are ordered, and many."""
        return tuple(part for part in self.levels if not part.ordered or len(part) <= self._FEW)

    @property
    def tried_columns(self) -> list[int]:
        return [column for part in self.tried for column in part.columns]

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        return self.snapped(super().sample(n, rng))

    def snapped(self, rows: Array) -> Array:
        """The rows with the nearest allowed values."""
        new = rows.copy()
        for part in self.levels:
            columns = list(part.columns)
            new[:, columns] = part.values[part.nearest(rows[:, columns])]
        return self.pinned(new)

    def index_of(self, row: Array) -> None:
        super().index_of(row)
        allowed = self.snapped(row[None])[0]
        if np.abs(allowed - row).max() > _ROUNDING:
            raise InvalidInput(f"action {row} has values that are not allowed; the nearest allowed ones: {allowed}")

    def pinned(self, rows: Array) -> Array:
        """The rows with coordinates that do not matter set to their fixed values."""
        if not self.pins:
            return rows
        new = rows.copy()
        for pin in self.pins:
            new[np.ix_(np.flatnonzero(pin.inactive(new)), np.array(pin.columns))] = pin.value
        return new

    def active(self, rows: Array) -> NDArray[np.bool_]:
        """Which coordinates of pinned rows matter, (n, dim)."""
        mask = np.ones(rows.shape, dtype=np.bool_)
        for pin in self.pins:
            mask[np.ix_(np.flatnonzero(pin.inactive(rows)), np.array(pin.columns))] = False
        return mask

    def combinations(self, most: int) -> Array | None:
        """All different combinations of `tried` parts, as whole rows; None if there are more than `most`.

        The other coordinates are in the middle of the box.
        """
        if math.prod(len(part) for part in self.tried) > most:
            return None
        indices = np.array(list(itertools.product(*(range(len(part)) for part in self.tried))), dtype=np.int64)
        rows = np.tile(0.5 * (self.low + self.high), (len(indices), 1))
        for k, part in enumerate(self.tried):
            rows[:, list(part.columns)] = part.values[indices[:, k]]
        return np.unique(self.pinned(rows), axis=0) if self.pins else rows

    def cells(self, most: int) -> list[Box]:
        """A box per combination, with that combination fixed; if there are too many, one box around everything."""
        combinations = self.combinations(most)
        if combinations is None:
            return [Box(self.low, self.high)]
        fixed = ~self.active(combinations)
        fixed[:, self.tried_columns] = True
        return [
            Box(np.where(f, row, self.low), np.where(f, row, self.high))
            for row, f in zip(combinations, fixed, strict=True)
        ]

    def neighbours(self, row: Array) -> Array:
        """The allowed rows that differ in one part: by a step or two if it is ordered, in any way otherwise."""
        rows = []
        for part in self.levels:
            columns = list(part.columns)
            at = int(part.nearest(row[None, columns])[0])
            others = [at + step for step in (-2, -1, 1, 2)] if part.ordered else range(len(part))
            for i in others:
                if i != at and 0 <= i < len(part):
                    rows.append(row.copy())
                    rows[-1][columns] = part.values[i]
        # Coordinates that start to matter need an allowed value, those that cease to matter their fixed one.
        found = self.snapped(np.array(rows).reshape(len(rows), self.dim))
        return np.asarray(found[(found != row).any(axis=1)])

    def given(self, context: Array) -> MixedBox:
        whole, by = super().given(context), len(context)
        return MixedBox(
            whole.low, whole.high, [part.moved(by) for part in self.levels], [pin.moved(by) for pin in self.pins]
        )

    def state_dict(self) -> dict[str, Any]:
        parts = {"levels": [p.state_dict() for p in self.levels], "pins": [p.state_dict() for p in self.pins]}
        return {**super().state_dict(), "type": "MixedBox", **parts}

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any]) -> MixedBox:
        """The box of a `state_dict`, checked."""
        levels = [Levels(tuple(p["columns"]), p["values"], p["ordered"]) for p in state["levels"]]
        pins = [Pin(tuple(p["columns"]), tuple(p["where"]), p["value"]) for p in state["pins"]]
        return cls(state["low"], state["high"], levels, pins)
