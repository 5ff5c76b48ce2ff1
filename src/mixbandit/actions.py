"""What may be chosen: finitely many arms, which may change every round, or a box."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

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

    def given(self, context: Array) -> Box:
        """The box of rows (context, action), in which the context is fixed."""
        return Box(np.concatenate((context, self.low)), np.concatenate((context, self.high)))

    def state_dict(self) -> dict[str, Any]:
        return {"type": "Box", "low": self.low.copy(), "high": self.high.copy()}


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
