"""What may be chosen: finitely many arms, which may change every round, or a box."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixbandit._statefile import digest
from mixbandit._validation import Array, as_float_array, as_vector, check_finite
from mixbandit.errors import DamagedState, InvalidInput, NotStorable, reading


class Arms:
    """Finitely many actions, a row each, with labels if you like.

    `actions` is (n, dim), or (n,) for actions that are single numbers; the index of a DataFrame becomes the labels
    unless it only counts rows. Labels must differ; they come back in `Choice.label`.
    """

    def __init__(self, actions: ArrayLike, labels: Iterable[Hashable] | None = None) -> None:
        rows = as_float_array(actions if not isinstance(actions, range) else list(actions), "actions")
        if rows.ndim == 1:
            rows = rows.reshape(-1, 1)
        if rows.ndim != 2 or not rows.size:
            raise InvalidInput(f"actions must have shape (n, dim) with n ≥ 1 and dim ≥ 1, got {np.shape(actions)}")
        check_finite(rows, "actions")
        self.actions: Array = rows.copy()
        self.actions.setflags(write=False)
        self.labels: tuple[Hashable, ...] | None = _labels(_index_of(actions) if labels is None else labels, len(rows))

    def __len__(self) -> int:
        return len(self.actions)

    def __repr__(self) -> str:
        return f"Arms({len(self)} of dimension {self.dim}{'' if self.labels is None else ', labelled'})"

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, Arms) and np.array_equal(self.actions, other.actions)
        return bool(same and isinstance(other, Arms) and self.labels == other.labels)

    __hash__ = None  # type: ignore[assignment]

    @property
    def dim(self) -> int:
        return int(self.actions.shape[1])

    def given(self, context: Array) -> Arms:
        """The same arms as rows (context, action)."""
        new = Arms.__new__(Arms)
        new.actions = np.hstack((np.broadcast_to(context, (len(self), len(context))), self.actions))
        new.actions.setflags(write=False)
        new.labels = self.labels
        return new

    def state_dict(self) -> dict[str, Any]:
        labels = None if self.labels is None else [storable_label(label) for label in self.labels]
        return {"type": "Arms", "actions": self.actions.copy(), "labels": labels}


class Box:
    """All actions between `low` and `high`, coordinate by coordinate; equal ends hold a coordinate fixed."""

    def __init__(self, low: ArrayLike, high: ArrayLike) -> None:
        ends = [np.atleast_1d(as_float_array(end, name)) for end, name in ((low, "low"), (high, "high"))]
        if ends[0].ndim != 1 or ends[0].shape != ends[1].shape or not ends[0].size:
            raise InvalidInput(f"low and high must be vectors of one length ≥ 1, got {np.shape(low)}, {np.shape(high)}")
        for end, name in zip(ends, ("low", "high"), strict=True):
            check_finite(end, name)
        wrong = np.flatnonzero(ends[0] > ends[1])
        if len(wrong):
            i = int(wrong[0])
            raise InvalidInput(f"low must not exceed high, got low[{i}]={ends[0][i]:g}, high[{i}]={ends[1][i]:g}")
        self.low, self.high = (end.copy() for end in ends)
        for end in (self.low, self.high):
            end.setflags(write=False)

    def __repr__(self) -> str:
        return f"Box({self.low.tolist()}, {self.high.tolist()})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Box) and np.array_equal((self.low, self.high), (other.low, other.high))

    __hash__ = None  # type: ignore[assignment]

    @property
    def dim(self) -> int:
        return len(self.low)

    @property
    def width(self) -> Array:
        return self.high - self.low

    @property
    def continuous(self) -> NDArray[np.bool_]:
        """Coordinates that may take any value between their ends."""
        return np.asarray(self.width > 0.0)

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Uniform actions, (n, dim)."""
        return self.at(rng.uniform(size=(n, self.dim)))

    def at(self, unit: Array) -> Array:
        """Actions from coordinates in the unit box; its corners give the corners exactly."""
        # low + (high − low) may round to less than high.
        return np.where(unit >= 1.0, self.high, np.clip(self.low + self.width * unit, self.low, self.high))

    def unit(self, actions: Array) -> Array:
        """Coordinates in the unit box; 0 where the box has no width."""
        free = self.width > 0.0
        return np.where(free, np.clip((actions - self.low) / np.where(free, self.width, 1.0), 0.0, 1.0), 0.0)

    def cells(self, most: int) -> list[Box]:
        """At most so many boxes that cover all that may be chosen."""
        return [self]

    def given(self, context: Array) -> Box:
        """The box of rows (context, action), in which the context is fixed."""
        return Box(np.concatenate((context, self.low)), np.concatenate((context, self.high)))

    def state_dict(self) -> dict[str, Any]:
        return {"type": "Box", "low": self.low.copy(), "high": self.high.copy()}


@dataclass(frozen=True, eq=False)
class Levels:
    """Coordinates of a box that together take one of finitely many values: an integer, or a one-hot category."""

    columns: tuple[int, ...]
    values: Array  # (m, len(columns))
    ordered: bool  # whether neighbours in the table are alike, as integers are and categories are not

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


class MixedBox(Box):
    """A box in which some coordinates take only certain values, alone or as a group."""

    # Ordered values of at most so many are tried one by one; more are treated as a continuum first.
    _FEW = 8

    def __init__(self, low: ArrayLike, high: ArrayLike, levels: Iterable[Levels]) -> None:
        super().__init__(low, high)
        self.levels = tuple(levels)
        columns = [column for part in self.levels for column in part.columns]
        if len(set(columns)) != len(columns) or not set(columns) <= set(range(self.dim)):
            raise InvalidInput(f"levels must name different coordinates of 0, …, {self.dim - 1}, got {columns}")
        for part in self.levels:
            at = list(part.columns)
            shape = part.values.shape == (len(part), len(at)) and len(part) > 0
            inside = shape and bool(((part.values >= self.low[at]) & (part.values <= self.high[at])).all())
            if not inside or (len(at) == 1 and (np.diff(part.values[:, 0]) <= 0.0).any()):
                raise InvalidInput(f"levels of coordinates {at} must be values inside the box, single ones increasing")

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

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        return self.snapped(super().sample(n, rng))

    def snapped(self, rows: Array) -> Array:
        """The rows with the nearest allowed values."""
        new = rows.copy()
        for part in self.levels:
            columns = list(part.columns)
            new[:, columns] = part.values[part.nearest(rows[:, columns])]
        return new

    def combinations(self, most: int) -> Array | None:
        """All combinations of `tried` parts, a row each, in `tried_columns`; None if there are more than `most`."""
        if math.prod(len(part) for part in self.tried) > most:
            return None
        indices = itertools.product(*(range(len(part)) for part in self.tried))
        rows = [np.concatenate([part.values[i] for part, i in zip(self.tried, row, strict=True)]) for row in indices]
        return np.array(rows).reshape(len(rows), -1)

    @property
    def tried_columns(self) -> list[int]:
        return [column for part in self.tried for column in part.columns]

    def cells(self, most: int) -> list[Box]:
        """A box per combination, which is fixed in it; if that makes too many, one around everything."""
        combinations = self.combinations(most)
        if combinations is None:
            return [Box(self.low, self.high)]
        boxes = []
        for row in combinations:
            low, high = self.low.copy(), self.high.copy()
            low[self.tried_columns] = high[self.tried_columns] = row
            boxes.append(Box(low, high))
        return boxes

    def neighbours(self, row: Array) -> Array:
        """The allowed rows that differ in one part: by a step or two where it is ordered, by anything elsewhere."""
        rows = []
        for part in self.levels:
            columns = list(part.columns)
            at = int(part.nearest(row[None, columns])[0])
            others = [at + step for step in (-2, -1, 1, 2)] if part.ordered else range(len(part))
            for i in others:
                if i != at and 0 <= i < len(part):
                    rows.append(row.copy())
                    rows[-1][columns] = part.values[i]
        return np.array(rows).reshape(len(rows), self.dim)

    def given(self, context: Array) -> MixedBox:
        whole = super().given(context)
        return MixedBox(whole.low, whole.high, [part.moved(len(context)) for part in self.levels])

    def state_dict(self) -> dict[str, Any]:
        levels = [
            {"columns": list(part.columns), "values": part.values.copy(), "ordered": part.ordered}
            for part in self.levels
        ]
        return {**super().state_dict(), "type": "MixedBox", "levels": levels}


Region: TypeAlias = Arms | Box


def as_region(actions: Region | ArrayLike, name: str = "actions") -> Region:
    """Arms or a Box as they are; anything else becomes Arms."""
    if isinstance(actions, Arms | Box):
        return actions
    try:
        return Arms(actions)
    except InvalidInput as error:
        raise InvalidInput(f"{name} must be Arms, a Box or rows of numbers: {error}") from error


def as_context(context: ArrayLike, length: int) -> Array:
    """A context as a vector of this length."""
    flat = np.ravel(np.asarray(context)) if np.ndim(context) == 2 and len(np.atleast_2d(context)) == 1 else context
    return as_vector(flat, length, "context").copy()


def offered(
    own: Region | None, given: Region | ArrayLike | None, context: ArrayLike | None, dim_in: int, name: str
) -> tuple[Region, Array | None]:
    """What may be chosen, as rows (context, action) of length `dim_in`, and the context; `given` goes before `own`."""
    region = own if given is None else as_region(given, name)
    if region is None:
        raise InvalidInput(f"this policy has no actions of its own: pass them as `{name}`")
    missing = dim_in - region.dim
    if context is None:
        if missing:
            advice = "" if missing < 0 else ": pass a context"
            if isinstance(region, Arms) and region.dim == 1 and len(region) == dim_in:
                advice += ", or, for a single arm, a list of one row"
            raise InvalidInput(f"{name}: actions of dimension {region.dim}, where the features take {dim_in}{advice}")
        return region, None
    if missing <= 0:
        raise InvalidInput(f"the features take rows of {region.dim}, which leaves no place for a context")
    vector = as_context(context, missing)
    return region.given(vector), vector


def region_from_state_dict(state: Mapping[str, Any]) -> Region:
    """What `state_dict` described."""
    with reading("the actions"):
        if state.get("type") == "Arms":
            return Arms(np.asarray(state["actions"], dtype=np.float64), state["labels"])
        if state.get("type") == "Box":
            return Box(state["low"], state["high"])
        if state.get("type") == "MixedBox":
            parts = [
                Levels(tuple(map(int, p["columns"])), np.asarray(p["values"], dtype=np.float64), bool(p["ordered"]))
                for p in state["levels"]
            ]
            return MixedBox(state["low"], state["high"], parts)
    raise DamagedState(f"actions of unknown type {state.get('type')!r}")


def storable_label(label: Hashable) -> Hashable:
    """The label, if it comes back from a file as it was."""
    if not isinstance(label, str | int | float | None):
        raise NotStorable(f"the label {label!r} is a {type(label).__name__}: only text and numbers are stored")
    return label


def _labels(labels: Iterable[Hashable] | None, n: int) -> tuple[Hashable, ...] | None:
    if labels is None:
        return None
    try:
        # numpy's scalars become Python's, which can be stored and compare the same.
        found = tuple(label.item() if isinstance(label, np.generic) else label for label in labels)
        distinct = len(set(found))
    except TypeError as error:
        raise InvalidInput(f"labels must be a list of hashable values: {error}") from error
    if len(found) != n:
        raise InvalidInput(f"labels must be as many as actions, got {len(found)} for {n}")
    if distinct != n:
        twice = next(label for label in found if found.count(label) > 1)
        raise InvalidInput(f"labels must differ, {twice!r} occurs more than once")
    return found


def _index_of(actions: Any) -> Iterable[Hashable] | None:
    """The index of a DataFrame or Series, unless it is the default 0, 1, 2, …"""
    index = getattr(actions, "index", None)
    if index is None or callable(index) or list(index) == list(range(len(index))):
        return None
    return list(index)
