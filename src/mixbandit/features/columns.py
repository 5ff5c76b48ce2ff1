"""The columns of a row of named features: which there are, and which a context sets."""

from __future__ import annotations

import functools
import hashlib
import json
from collections import Counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixbandit._lazy import lazy
from mixbandit.features.contexts import Category, Name, Values, is_missing, positions

INTERCEPT, NUMBER, MISSING, CATEGORY, OTHER, HASHED, UNUSED = (
    "intercept", "number", "missing", "category", "other", "hashed", "unused",
)  # fmt: skip
"""What a column is for."""
ROLES = (INTERCEPT, NUMBER, MISSING, CATEGORY, OTHER, HASHED, UNUSED)


class Column(NamedTuple):
    """One column."""

    role: str
    of: int = 0  # the place of the name; of a hashed column its number
    category: Category | None = None


class Limits(NamedTuple):
    """How many columns categories may have."""

    own: int  # of their own, all names together
    hashed: int  # shared by those that came too late for a column of their own


@functools.lru_cache(maxsize=65536, typed=True)
def digest(name: Name, category: Category) -> int:
    """A hash of a category of a name: the same in every process."""
    text = json.dumps([name, category])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=7).digest(), "little")


def as_category(number: float) -> str:
    """A number among categories, as text: 3 and 3.0 are "3"."""
    return str(int(number)) if number.is_integer() and abs(number) < 2**53 else repr(number)


class Collisions(NamedTuple):
    """How often categories shared a column with others."""

    owners: dict[int, int] = {}  # by hashed column, the category that was its first; never modified  # noqa: RUF012
    times: int = 0

    def after(self, layout: Layout, categories: list[tuple[int, Category]]) -> Collisions:
        """With the categories of one more context, given as places and categories."""
        owners, times = self.owners, self.times
        for place, category in categories:
            if layout.is_hashed(place, category):
                bucket, own = layout.bucket(place, category), digest(layout.names[place], category)
                if bucket not in owners:
                    owners = {**owners, bucket: own}
                times += owners[bucket] != own
        return self if owners is self.owners and times == self.times else Collisions(owners, times)


class Layout:
    """The names of contexts, what kind of values they have, and the columns. An immutable value that grows.

    A column that comes later was 0 in all rows before it. Columns come in lots, each as large as all before it
    together, so that there are few changes: spare ones stay 0 until they are needed.
    """

    def __init__(
        self,
        names: tuple[Name, ...],
        kinds: tuple[str | None, ...],
        columns: tuple[Column, ...],
        limits: Limits,
        *,
        is_open: bool,
    ) -> None:
        self.names, self.columns, self.limits = names, columns, limits
        self.kinds = kinds  # NUMBER or CATEGORY, by the first value that was not missing; None before it
        self.is_open = is_open  # whether the names of the next context become known
        self.dim = len(columns)

    @lazy
    def numbers(self) -> NDArray[np.int64]:
        """The places of names with numbers, in the order of their columns."""
        return np.array([column.of for column in self.columns if column.role == NUMBER], dtype=np.int64)

    @lazy
    def number_columns(self) -> NDArray[np.int64]:
        """The columns of numbers, in increasing order."""
        return np.array([j for j, column in enumerate(self.columns) if column.role == NUMBER], dtype=np.int64)

    @lazy
    def only_numbers(self) -> bool:
        """Whether numbers are all there is, in the first columns, in the order of the names."""
        n = len(self.names)
        places = np.arange(n)
        return bool(np.array_equal(self.numbers, places) and np.array_equal(self.number_columns, places + 1))

    @lazy
    def vector(self) -> tuple[int] | None:
        """The shape of contexts that are vectors of numbers."""
        n = len(self.names)
        return (n,) if n and self.only_numbers and self.names == positions(n) else None

    @lazy
    def labelled(self) -> tuple[int, ...]:
        """The places of names with categories."""
        return tuple(i for i, kind in enumerate(self.kinds) if kind == CATEGORY)

    @lazy
    def place_of(self) -> dict[Name, int]:
        """The place of each name."""
        return {name: i for i, name in enumerate(self.names)}

    @lazy
    def _missing(self) -> dict[int, int]:
        return {column.of: j for j, column in enumerate(self.columns) if column.role == MISSING}

    @lazy
    def _own(self) -> dict[tuple[int, Category | None], int]:
        return {(column.of, column.category): j for j, column in enumerate(self.columns) if column.role == CATEGORY}

    @lazy
    def _other(self) -> dict[int, int]:
        return {column.of: j for j, column in enumerate(self.columns) if column.role == OTHER}

    @lazy
    def _hashed(self) -> int | None:
        """The first column of those that are shared."""
        return next((j for j, column in enumerate(self.columns) if column.role == HASHED), None)

    def missing_column(self, place: int) -> int | None:
        """The column that says that a name has no number, if there is one."""
        return self._missing.get(place)

    def ones(self, values: Values) -> list[int]:
        """The columns to which a context adds 1, the intercept aside."""
        found = [self._missing.get(i) for i in values.gaps]
        for i, category in self.categories(values):
            found.append(self.column_of(i, category))
            if self.kinds[i] == NUMBER:
                found.append(self._missing.get(i))
        return [column for column in found if column is not None]

    def categories(self, values: Values) -> list[tuple[int, Category]]:
        """The places and categories of a context; numbers where others had categories are categories, too."""
        found = list(values.categories)
        for i in self.labelled:
            number = float(values.numbers[i])
            if not is_missing(number):
                found.append((i, as_category(number)))
        return found

    def column_of(self, place: int, category: Category) -> int | None:
        """The column of a category; None if there is none yet."""
        own = self._own.get((place, category))
        if own is not None:
            return own
        if place in self._other:
            return self._other[place]
        return None if self._hashed is None else self._hashed + self.bucket(place, category)

    def is_hashed(self, place: int, category: Category) -> bool:
        """Whether a category shares a column."""
        return (place, category) not in self._own and place not in self._other and self._hashed is not None

    def bucket(self, place: int, category: Category) -> int:
        """Which of the shared columns a category has."""
        return digest(self.names[place], category) % self.limits.hashed

    def learnt(self, names: tuple[Name, ...], *, came_late: bool) -> Layout:
        """With the names of the first context, which begin with those that were stated.

        If contexts without any names `came_late` is true of were seen, the new names were missing in all of them.
        """
        new = range(len(self.names), len(names))
        columns = self.columns + tuple(Column(MISSING, i) for i in new if came_late)
        return Layout(names, self.kinds + (None,) * len(new), columns, self.limits, is_open=False)

    def grown(self, values: Values, categories: list[tuple[int, Category]]) -> Layout:
        """With columns for all that a context has; the same object if they are there."""
        layout = self._with_kinds(values) if None in self.kinds else self
        without = [*values.gaps, *(i for i, _ in values.categories if layout.kinds[i] == NUMBER)]
        wanted = [Column(MISSING, i) for i in without if i not in layout._missing]
        new = [(i, c) for i, c in categories if (i, c) not in layout._own and i not in layout._other]
        hashed = False
        if new:
            counts = layout._own_counts
            # The names with categories have equal shares.
            share = max(self.limits.own // len(counts.keys() | {i for i, _ in categories if i not in layout._other}), 1)
            free = self.limits.own - sum(counts.values())
            for i, category in new:
                if counts.get(i, 0) < share and free > 0:
                    wanted.append(Column(CATEGORY, i, category))
                    free -= 1
                else:
                    hashed = layout._hashed is None
        return layout._with(wanted, hashed=hashed) if wanted or hashed else layout

    @lazy
    def _own_counts(self) -> dict[int, int]:
        """How many categories of each name have a column of their own, without names whose categories were listed."""
        return dict(Counter(place for place, _ in self._own if place not in self._other))

    def _with_kinds(self, values: Values) -> Layout:
        """With the kinds of names that have their first value; numbers get their columns at the end."""
        kinds, columns = list(self.kinds), list(self.columns)
        for i, _ in values.categories:
            kinds[i] = kinds[i] or CATEGORY
        for i, number in enumerate(values.numbers.tolist()):
            if kinds[i] is None and not is_missing(number):
                kinds[i] = NUMBER
                columns.append(Column(NUMBER, i))
        if kinds == list(self.kinds):
            return self
        return Layout(self.names, tuple(kinds), tuple(columns), self.limits, is_open=self.is_open)

    def _with(self, wanted: list[Column], *, hashed: bool) -> Layout:
        """With these columns in place of spare ones."""
        columns = list(self.columns)
        spare = [j for j, column in enumerate(columns) if column.role == UNUSED]
        if len(wanted) > len(spare):
            taken = sum(column.role in (MISSING, CATEGORY) for column in columns)
            room = self.limits.own - sum(self._own_counts.values()) + len(self.names) - len(self._missing) - len(spare)
            more = max(min(taken, room), len(wanted) - len(spare))
            spare += range(len(columns), len(columns) + more)
            columns += [Column(UNUSED)] * more
        for j, column in zip(spare, wanted, strict=False):
            columns[j] = column
        if hashed:
            columns += [Column(HASHED, b) for b in range(self.limits.hashed)]
        return Layout(self.names, self.kinds, tuple(columns), self.limits, is_open=self.is_open)

    def name(self, column: int) -> str:
        """What a column means."""
        role, of, category = self.columns[column]
        if role in (INTERCEPT, UNUSED):
            return role
        if role == HASHED:
            return f"hashed {of}"
        name = str(self.names[of])
        return {NUMBER: name, MISSING: f"{name} missing", OTHER: f"{name} other"}.get(role, f"{name}={category}")
