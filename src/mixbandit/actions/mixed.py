"""Boxes in which some coordinates are discrete, and some matter only if others have certain values."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixbandit._checks import Array
from mixbandit._files import digest
from mixbandit._rows import distinct_rows
from mixbandit._schema import list_of, record
from mixbandit.actions.box import Box
from mixbandit.actions.levels import LEVELS, PIN, Exchanges, Levels, OneHot, Pin, levels_from_state_dict, with_one_hot
from mixbandit.errors import InvalidInput
from mixbandit.storage import Stored

# Values that differ by no more than this are the same.
_ROUNDING = 1e-9


class MixedBox(Box):
    """A box in which some coordinates take only certain values, alone or as a group (`levels`), and some are fixed
    unless a category has certain values (`pins`, in an order in which later ones may depend on earlier ones).
    """

    kind = "MixedBox"
    schema = record({**Box.schema.fields, "levels": list_of(LEVELS), "pins": list_of(PIN)})

    # Up to this many ordered values are tried one by one; more are first treated as continuous.
    _FEW = 8

    def __init__(
        self, low: ArrayLike, high: ArrayLike, levels: Iterable[Levels | OneHot], pins: Iterable[Pin] = ()
    ) -> None:
        super().__init__(low, high)
        self.levels, self.pins = tuple(with_one_hot(part) for part in levels), tuple(pins)
        columns = [column for part in self.levels for column in part.columns]
        if len(set(columns)) != len(columns) or not set(columns) <= set(range(self.dim)):
            raise InvalidInput(f"levels must name different coordinates of 0, …, {self.dim - 1}, got {columns}")
        for part in self.levels:
            at = list(part.columns)
            if not part.fit(self.low[at], self.high[at]):
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
    def tried(self) -> tuple[Levels | OneHot, ...]:
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
            new[:, columns] = part.at(part.nearest(rows[:, columns]))
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

    def nudged(self, row: Array, taken: list[Array], rng: np.random.Generator) -> Array:
        moved = super().nudged(row, taken, rng)
        return row if moved is row else self.pinned(moved[None])[0]

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
            rows[:, list(part.columns)] = part.at(indices[:, k])
        return distinct_rows(self.pinned(rows)).rows if self.pins else rows

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

    def neighbours(self, row: Array) -> Iterator[Exchanges]:
        """The allowed rows that differ in one part: by a step or two if it is ordered, in any way otherwise."""
        row = self.snapped(row[None])[0]
        matters = self.active(row[None])[0]
        for part in self.levels:
            columns = np.array(part.columns)
            if not matters[columns[0]]:
                continue
            at = int(part.nearest(row[None, columns])[0])
            if isinstance(part, OneHot):
                yield from self._other_choices(row, part, at)
                continue
            steps = [at + step for step in (-2, -1, 1, 2)] if part.ordered else range(len(part))
            others = np.array([i for i in steps if i != at and 0 <= i < len(part)], dtype=np.int64)
            if len(columns) == 1:
                yield Exchanges(row, np.repeat(columns, len(others)), part.at(others)[:, 0])
                continue
            for value in part.at(others):
                base = row.copy()
                base[columns] = value
                base = self.snapped(base[None])[0]
                yield Exchanges(base, columns[:1], base[columns[:1]])

    def _other_choices(self, row: Array, part: OneHot, at: int) -> Iterator[Exchanges]:
        """The rows with another choice of a category."""
        columns = np.array(part.columns)
        for group in self.alike(part):
            base = row.copy()
            base[columns], base[columns[part.choices[group[0]]]] = 0.0, 1.0
            # Coordinates that start to matter need an allowed value, those that cease to matter their fixed one.
            base = self.snapped(base[None])[0]
            base[columns] = 0.0
            others = columns[part.choices[group[group != at]]]
            yield Exchanges(base, others, np.ones(len(others)))

    def alike(self, part: OneHot) -> list[NDArray[np.int64]]:
        """The indices of a category's choices, together where the same other coordinates matter."""
        opened: dict[int, list[int]] = {}  # the pins that a coordinate opens
        for k, pin in enumerate(self.pins):
            for column in pin.where:
                opened.setdefault(column, []).append(k)
        groups: dict[tuple[int, ...], list[int]] = {}
        for i, choice in enumerate(part.choices.tolist()):
            groups.setdefault(tuple(opened.get(part.columns[choice], ())), []).append(i)
        return [np.array(group) for group in groups.values()]

    def reduced(self) -> tuple[Box | None, Array, NDArray[np.int64]]:
        """The box of the coordinates that vary, None if none does; a row with the values of the others; and which vary.

        Coordinates vary if they have a width, and more than one value, or matter only sometimes.
        """
        row, fixed = 0.5 * (self.low + self.high), self.width == 0.0
        one_of: dict[int, set[int]] = {}  # the coordinates that may be 1, for each coordinate of a category
        for part in self.levels:
            columns = list(part.columns)
            if len(part) == 1:
                row[columns], fixed[columns] = part.at(np.zeros(1, dtype=np.int64))[0], True
            if isinstance(part, OneHot):
                possible = {part.columns[choice] for choice in part.choices.tolist()}
                one_of |= dict.fromkeys(columns, possible)
        kept: list[Pin] = []
        for pin in self.pins:  # those of a category come before those that depend on it
            columns, where = list(pin.columns), list(pin.where)
            if fixed[where].all() and not pin.inactive(row[None])[0]:
                continue
            if fixed[where].all():
                row[columns], fixed[columns] = pin.value, True
            elif not one_of.get(where[0], {-1}) <= set(where):
                kept.append(pin)
                fixed[columns] = False
                for column in columns:
                    one_of.pop(column, None)  # it may be none of its choices
        free = np.flatnonzero(~fixed)
        if not len(free):
            return None, row, free
        place = dict(zip(free.tolist(), range(len(free)), strict=True))
        levels = [part.moved_to(place) for part in self.levels if part.columns[0] in place]
        pins = [pin.moved_to(place) for pin in kept]
        return MixedBox(self.low[free], self.high[free], levels, pins), row, free

    def given(self, context: Array) -> MixedBox:
        whole, place = super().given(context), range(len(context), len(context) + self.dim)
        levels = [part.moved_to(place) for part in self.levels]
        return MixedBox(whole.low, whole.high, levels, [pin.moved_to(place) for pin in self.pins])

    def settings(self) -> dict[str, Any]:
        parts = {"levels": [p.state_dict() for p in self.levels], "pins": [p.state_dict() for p in self.pins]}
        return {"low": self.low, "high": self.high, **parts}

    @classmethod
    def restored(cls, stored: Stored, features: Any = None) -> Self:
        levels = [levels_from_state_dict(part) for part in stored["levels"]]
        pins = [Pin(tuple(p["columns"]), tuple(p["where"]), p["value"]) for p in stored["pins"]]
        return cls(stored["low"], stored["high"], levels, pins)


def mixed(box: Box) -> MixedBox | None:
    """The box, if some coordinates are discrete or matter only sometimes."""
    return box if isinstance(box, MixedBox) else None
