"""`NamedContexts`: numbers by what was seen of them, texts and truth values as categories, an intercept in front."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Self

import numpy as np

from mixbandit._checks import LARGEST_DATUM, Array, as_text, finite, flag, one_of, positive, positive_int, shown
from mixbandit._lazy import setting
from mixbandit._schema import array, count, integer, list_of, one_of_these, optional, real, record
from mixbandit.errors import InvalidInput
from mixbandit.features.columns import (
    CATEGORY,
    HASHED,
    INTERCEPT,
    NUMBER,
    OTHER,
    Collisions,
    Column,
    Layout,
    Limits,
)
from mixbandit.features.contexts import (
    NO_NUMBER,
    Category,
    ContextFeatures,
    Name,
    Parts,
    Reader,
    Values,
    frozen,
    of_cells,
    plain_cell,
    plain_reader,
    plain_values,
    positions,
    read_cell,
    read_names,
    split,
    unplain_parts,
)
from mixbandit.features.named_schema import COLUMN, LISTED, NAME, as_categories, as_list, check_learnt
from mixbandit.features.scales import Moments, Scale
from mixbandit.storage import Stored

# Numbers are folded into the moments in lots, which end at multiples of this count and at powers of two.
_TOGETHER = 128
_FLOAT64 = np.dtype(np.float64)
_NUMBERS = frozenset((float, int, np.float64))
_LARGEST_SQUARE = LARGEST_DATUM**2
_NOTHING = Parts((), ())


class NamedContexts(ContextFeatures):
    """Rows of features from contexts with names, standardised by what was seen.

    The first column is 1. The first context that has any names settles them, next to those that are stated here; one
    that is absent later is missing. Unknown names later are ignored and counted, or refused (`unknown`).

    - A number has a column, (x − m)/s, with the mean and the spread of those seen when the count of contexts last was a
      power of two. Far outside of all before it, it is taken as the limit (see `scales`); `limited` counts the contexts
      with such numbers.
    - A text, True and False are categories. Each has a column of its own, as long as there are `own_columns`, shared
      evenly by the names; later ones share `hashed_columns`, and `collisions` counts the values in a column that was
      another's first. With `categories={"topic": ["code", "chat"]}`, these have columns, and all others share one.
    - A missing value has a column "tokens missing", and 0 for the number.
    - The first value of a name that is not missing decides whether it has numbers or categories. A number among
      categories is one of them, as text; a category among numbers has its column, and counts as a missing number.
    """

    kind = "NamedContexts"
    schema = record({
        "numbers": list_of(NAME), "categories": list_of(LISTED), "unknown": as_text, "reach": optional(real(positive)),
        "own_columns": integer(1), "hashed_columns": integer(1),
    })  # fmt: skip
    memory = record({
        "names": list_of(NAME), "kinds": list_of(optional(one_of_these(NUMBER, CATEGORY))),
        "columns": list_of(COLUMN), "is_open": flag, "moments": array(5, None), "scale": array(4, None),
        "pending": list_of(list_of(optional(real(finite)))), "owners": list_of(list_of(count)),
        "count": count, "version": count, "ignored": count, "collisions": count, "limited": count,
    }, check_learnt)  # fmt: skip

    def __init__(
        self,
        *,
        numbers: Iterable[Name] = (),
        categories: Mapping[Name, Iterable[Any]] | None = None,
        unknown: str = "ignore",
        reach: float | None = 8.0,
        own_columns: int = 64,
        hashed_columns: int = 16,
    ) -> None:
        self.numbers = read_names(as_list(numbers, "numbers"), "numbers")
        self.categories = as_categories({} if categories is None else categories)
        self.unknown = one_of(unknown, ("ignore", "raise"), "unknown")
        self.reach = None if reach is None else positive(reach, "reach")
        self.own_columns = positive_int(own_columns, "own_columns", 10_000)
        self.hashed_columns = positive_int(hashed_columns, "hashed_columns", 10_000)
        names = read_names((*self.numbers, *self.categories), "numbers and categories together")
        columns = [Column(INTERCEPT), *(Column(NUMBER, i) for i in range(len(self.numbers)))]
        for i, listed in enumerate(self.categories.values(), len(self.numbers)):
            columns += [*(Column(CATEGORY, i, category) for category in listed), Column(OTHER, i)]
        kinds = (NUMBER,) * len(self.numbers) + (CATEGORY,) * len(self.categories)
        limits = Limits(self.own_columns, self.hashed_columns)
        self._layout = Layout(names, kinds, tuple(columns), limits, is_open=True)
        self._moments, self._scale = Moments.unknown(len(names)), Scale.unknown(self.reach or math.inf, len(names))
        self._pending: Any = None  # numbers that are not in the moments yet: (the last, (the one before, …))
        self._collisions = Collisions()
        self._latest: Any = (None, None, None, None)  # the context read last, its layout, scale and row
        self.count, self.version, self.dim = 0, 0, self._layout.dim
        self.ignored, self.limited = 0, 0

    collisions: int = setting("_collisions.times", "How often a category shared a column with another one.")

    @property
    def names(self) -> tuple[Name, ...]:
        """The known names."""
        return self._layout.names

    def name(self, column: int) -> str:
        return self._layout.name(self.check_column(column))

    def read(self, context: Any) -> Values:
        layout, numbers = self._layout, None
        if type(context) is np.ndarray:
            if context.dtype is _FLOAT64 and context.shape == layout.vector:
                numbers = context.copy()
        elif type(context) is dict and tuple(context) == layout.names:
            cells = list(context.values())
            if layout.only_numbers and _NUMBERS.issuperset(map(type, cells)):
                numbers = _as_array(cells)
            if numbers is None:
                return self._read(Parts(layout.names, cells), read_cell)
        if numbers is not None:
            found = self._quickly(numbers)
            if found is not None:
                return found
        return self._read(_NOTHING if context is None else split(context), read_cell)

    def _quickly(self, numbers: Array) -> Values | None:
        """A context that has only numbers, all of them; None if one is missing or outside of its limits."""
        scale = self._scale
        # Sums of squares decide the usual case: NaN and infinity fail every comparison, and np.vdot never warns.
        if not np.vdot(numbers, numbers) <= _LARGEST_SQUARE:
            return None
        row = np.zeros(self.dim)
        row[0] = 1.0
        z = scale.standardised(numbers, row[1 : 1 + len(numbers)])
        reach = scale.reach
        if np.vdot(z, z) > reach * reach and np.abs(z).max() > reach and scale.limited(numbers) is not numbers:
            return None
        numbers.setflags(write=False)
        row.setflags(write=False)
        layout = self._layout
        context = Values(layout.names, numbers)
        self._latest = (context, layout, scale, row)
        return context

    def _read(self, parts: Parts, reader: Reader) -> Values:
        layout, (names, cells) = self._layout, parts
        if names is None:
            names = positions(len(cells))
            if layout.names and names != layout.names:
                raise InvalidInput(f"the context must have {_described(layout.names)}, got a vector of {len(cells)}")
        others: tuple[tuple[Name, float | Category], ...] = ()
        if names != layout.names:
            given = dict(zip(names, cells, strict=True))
            new = tuple(name for name in names if name not in layout.place_of)
            names = layout.names
            if layout.is_open:
                names += new
            elif new and self.unknown == "raise":
                raise InvalidInput(f"the context has the unknown name {shown(new[0])}; known are {_described(names)}")
            else:
                others = tuple((name, reader(given[name], name)) for name in new)
            cells = [given.get(name) for name in names]
        values = of_cells(names, [reader(cell, name) for cell, name in zip(cells, names, strict=True)])
        used = self._scale.extended(len(names)).limited(values.numbers)
        if used is not values.numbers:
            values = values._replace(numbers=frozen(used), given=values.numbers)
        return values._replace(others=others) if others else values

    def row(self, context: Values) -> Array:
        latest, layout, scale = self._latest, self._layout, self._scale
        if latest[0] is context and latest[1] is layout and latest[2] is scale:
            found: Array = latest[3]
            return found
        row = np.zeros(self.dim)
        row[0] = 1.0
        if context.names is not layout.names:
            context = self._aligned(context)
        if layout.only_numbers and not (context.gaps or context.categories):
            scale.standardised(context.numbers, row[1 : 1 + len(context.numbers)])
        else:
            row[layout.number_columns] = self._z(context.numbers)
            for column in layout.ones(context):
                row[column] += 1.0
        row.setflags(write=False)
        return row

    def rows(self, contexts: Iterable[Values]) -> Array:
        given = [self._aligned(context) for context in contexts]
        rows = np.zeros((len(given), self.dim))
        rows[:, 0] = 1.0
        if given:
            rows[:, self._layout.number_columns] = self._z(np.array([context.numbers for context in given]))
        for row, context in zip(rows, given, strict=True):
            if context.gaps or context.categories or self._layout.labelled:
                for column in self._layout.ones(context):
                    row[column] += 1.0
        return rows

    def _z(self, numbers: Array) -> Array:
        """The standardised numbers of (n,) or (m, n) in the order of their columns; 0 where there is none."""
        z = self._scale.standardised(numbers, np.empty(numbers.shape))[..., self._layout.numbers]
        z[np.isnan(z)] = 0.0
        return z

    def _aligned(self, context: Values) -> Values:
        """The context with the names that are known here."""
        names = self._layout.names
        if context.names == names:
            return context
        cells = context._replace(given=None, others=()).items()
        return of_cells(names, [cells.get(name, NO_NUMBER) for name in names])

    def after(self, context: Values) -> Self:
        new = self._copy()
        new.count = total = self.count + 1
        numbers = context.numbers
        # What was read quickly has numbers only, and those that layout and scale know.
        if context is not self._latest[0] or self._scale.fixed.size:
            numbers = new._meet(context)
        new._pending = (numbers, new._pending)
        is_power = not total & (total - 1)
        if is_power or not total % _TOGETHER:
            new._fold()
            if is_power:
                new._rescale()
        return new

    def settled(self) -> Self:
        """The same with the scale of all that was seen, whatever their count."""
        new = self._copy()
        new._fold()
        new._rescale()
        return new

    def _copy(self) -> Self:
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__)
        return new

    # The three that follow complete a value that nobody has seen yet.

    def _meet(self, context: Values) -> Array:
        """Make columns for what is new in a context; its numbers for the moments."""
        layout = self._layout
        if layout.is_open and (len(context.names) > len(layout.names) or len(context.gaps) < len(context.names)):
            self._fold()
            n = len(context.names)
            self._layout = layout.learnt(context.names, came_late=self.count > 1)
            self._moments, self._scale = self._moments.extended(n), self._scale.extended(n)
        context = self._aligned(context)
        categories = self._layout.categories(context)
        self._layout = layout = self._layout.grown(context, categories)
        if layout.dim != self.dim:
            self.dim, self.version = layout.dim, self.version + 1
        self.ignored += len(context.others)
        self._collisions = self._collisions.after(layout, categories)
        numbers = context.numbers
        if len(categories) > len(context.categories):  # there are numbers among categories
            numbers = numbers.copy()
            numbers[list(layout.labelled)] = NO_NUMBER
        if context.given is not None:
            self._scale, self.limited = self._scale.moved(context.given), self.limited + 1
        if self._scale.fixed.size > len(layout.labelled):
            self._scale = self._scale.met(numbers)
        return numbers

    def _fold(self) -> None:
        """Take the numbers that wait into the moments."""
        numbers, pending = [], self._pending
        while pending is not None:
            last, pending = pending
            numbers.append(last)
        if numbers:
            self._moments, self._pending = self._moments.after(np.array(numbers[::-1])), None

    def _rescale(self) -> None:
        """Set the scale by the moments."""
        old, places = self._scale, self._layout.numbers
        scale = old.set_by(self._moments)
        differs = (scale.mean != old.mean) | (scale.weight != old.weight)
        self._scale = scale
        if differs[places].any():
            self.version += 1

    def change(self, earlier: Self) -> Array | None:
        if self.version == earlier.version:
            return None
        change = np.eye(self.dim, earlier.dim)
        old, new, before = earlier._scale, self._scale, earlier._layout
        for i, j in zip(before.numbers.tolist(), before.number_columns.tolist(), strict=True):
            weight = float(new.weight[i])
            # Numbers that had not varied were all equal to their mean.
            change[j, j] = weight / float(old.weight[i]) if old.weight[i] else 0.0
            change[j, 0] = (float(old.mean[i]) - float(new.mean[i])) * weight
            missing = before.missing_column(i)
            if missing is not None:
                change[j, missing] = -change[j, 0]
        if earlier.count:
            # Names that nobody knew were missing in every context.
            for i in range(len(before.names), len(self._layout.names)):
                missing = self._layout.missing_column(i)
                assert missing is not None
                change[missing, 0] = 1.0
        return change

    def provisos(self, earlier: Self) -> list[str]:
        found = []
        if self.collisions > earlier.collisions:
            found.append("categories that share a column have the same effect")
        if self.limited > earlier.limited:
            found.append("a number far outside of those before it has the effect of the limit to which it was clipped")
        return found

    def settings(self) -> dict[str, Any]:
        listed = [[name, list(listed)] for name, listed in self.categories.items()]
        return {**super().settings(), "categories": listed}

    @classmethod
    def keywords(cls, stored: Mapping[str, Any]) -> dict[str, Any]:
        return {**super().keywords(stored), "categories": dict(stored["categories"])}

    def learnt(self) -> dict[str, Any]:
        layout, pending, left = self._layout, [], self._pending
        while left is not None:
            numbers, left = left
            pending.append([plain_cell(number) for number in numbers.tolist()])
        return {
            "names": list(layout.names), "kinds": list(layout.kinds),
            "columns": [list(column) for column in layout.columns], "is_open": layout.is_open,
            "moments": np.array(self._moments), "scale": np.array(self._scale[1:5]), "pending": pending[::-1],
            "owners": [[bucket, owner] for bucket, owner in self._collisions.owners.items()],
            "count": self.count, "version": self.version, "ignored": self.ignored, "collisions": self.collisions,
            "limited": self.limited,
        }  # fmt: skip

    def recalled(self, memory: Mapping[str, Any]) -> Self:
        new, limits = self._copy(), self._layout.limits
        names, columns = tuple(memory["names"]), tuple(memory["columns"])
        hashed = [column.of for column in columns if column.role == HASHED]
        if hashed and hashed != list(range(limits.hashed)):
            raise InvalidInput(f"there must be {limits.hashed} hashed columns, got {len(hashed)}")
        new._layout = Layout(names, tuple(memory["kinds"]), columns, limits, is_open=memory["is_open"])
        new._moments, new.dim = Moments(*memory["moments"]), len(columns)
        known = new._moments.seen > 0.0
        for row in memory["pending"]:
            numbers = frozen([NO_NUMBER if x is None else x for x in row])
            known[: len(row)] |= ~np.isnan(numbers)
            new._pending = (numbers, new._pending)
        mean, weight, low, high = memory["scale"]
        new._scale = Scale.of(self._scale.reach, mean, weight, low, high, known)
        new._collisions = Collisions(dict(memory["owners"]), memory["collisions"])
        for name in ("count", "version", "ignored", "limited"):
            setattr(new, name, memory[name])
        return new

    @classmethod
    def restored(cls, stored: Stored, features: Any = None) -> Self:
        if features is not None and not isinstance(features, cls):
            raise InvalidInput(f"the stored features are NamedContexts, and need no others, got {shown(features)}")
        return super().restored(stored)

    def plain(self, context: Values) -> Any:
        return plain_values(context)

    def unplain(self, value: Any) -> Values:
        return self._read(unplain_parts(value), plain_reader)


def _as_array(cells: list[Any]) -> Array | None:
    try:
        return np.array(cells, dtype=np.float64)
    except OverflowError:  # an integer of hundreds of digits
        return None


def _described(names: tuple[Name, ...]) -> str:
    if names and names == positions(len(names)):
        return f"{len(names)} numbers, as a vector"
    return "the names " + ", ".join(map(shown, names[:10])) + (", …" if len(names) > 10 else "")
