"""Finitely many arms, which may change every round."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from mixbandit._checks import Array, as_float_array, as_vector, check_finite, shown
from mixbandit._lazy import lazy, setting
from mixbandit._schema import array, list_of, optional, record, scalar
from mixbandit.errors import InvalidInput, NotStorable
from mixbandit.storage import Family, Storable

REGIONS = Family("actions", "actions")
"""What can be chosen from."""


class Arms(Storable):
    """Finitely many actions, one per row, with optional labels.

    `actions` is (n, dim), or (n,) for actions that are single numbers; the index of a DataFrame becomes the labels
    unless it only numbers the rows. Labels must differ; they are returned as `Choice.label`.
    """

    family, kind = REGIONS, "Arms"
    is_box: Literal[False] = False
    schema = record({"actions": array(None, None), "labels": optional(list_of(scalar))})

    _given: tuple[Array, Array] | None = None  # a context, and the arms that rows (context, arm) are made of

    def __init__(self, actions: ArrayLike, labels: Iterable[Hashable] | None = None) -> None:
        rows = _rows(actions)
        self.actions = rows.copy()
        self.actions.setflags(write=False)
        self.labels: tuple[Hashable, ...] | None = _labels(_index_of(actions) if labels is None else labels, len(rows))

    @lazy
    def actions(self) -> Array:
        """The actions one by one, (n, dim), read-only."""
        assert self._given is not None  # others have their actions from the start
        context, arms = self._given
        rows = np.empty((len(arms), len(context) + arms.shape[1]))
        rows[:, : len(context)], rows[:, len(context) :] = context, arms
        rows.setflags(write=False)
        return rows

    def __len__(self) -> int:
        return len(self.bare)

    def __repr__(self) -> str:
        return f"Arms({len(self)} of dimension {self.dim}{'' if self.labels is None else ', labelled'})"

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, Arms) and np.array_equal(self.actions, other.actions)
        return bool(same and isinstance(other, Arms) and self.labels == other.labels)

    __hash__ = None  # type: ignore[assignment]

    rows: Array = setting("actions", "The actions one by one, (n, dim).")

    @property
    def dim(self) -> int:
        if self._given is not None:
            return len(self._given[0]) + int(self._given[1].shape[1])
        return int(self.actions.shape[1])

    @property
    def bare(self) -> Array:
        """The rows without the context that they were given, if any."""
        return self.actions if self._given is None else self._given[1]

    def row(self, index: int) -> Array:
        """One of the actions, (dim,)."""
        if self._given is None:
            return np.asarray(self.actions[index])
        return np.concatenate((self._given[0], self._given[1][index]))

    def index_of(self, row: Array) -> int:
        """The index of the arm; InvalidInput if there is none."""
        row = as_vector(row, self.dim, "action")
        found = np.flatnonzero((self.actions == row).all(axis=1))
        if not len(found):
            raise InvalidInput(f"action {row} is not one of the {len(self)} arms")
        return int(found[0])

    def given(self, context: Array) -> Arms:
        """The same arms as rows (context, action)."""
        context = as_vector(context, None, "context")
        new = Arms.__new__(Arms)
        new._given, new.labels = (context, self.actions), self.labels
        return new

    def settings(self) -> dict[str, Any]:
        labels = None if self.labels is None else [storable_label(label) for label in self.labels]
        return {"actions": self.actions, "labels": labels}


def borrowed(actions: ArrayLike) -> Arms:
    """Arms for the length of one call, without a copy of the rows."""
    if type(actions) is not np.ndarray:
        return Arms(actions)
    new = Arms.__new__(Arms)
    new.actions, new.labels = _rows(actions), None
    return new


def _rows(actions: ArrayLike) -> Array:
    given = rows = as_float_array(actions, "actions")
    if rows.ndim == 1:
        rows = rows.reshape(-1, 1)
    if rows.ndim != 2 or not rows.size:
        raise InvalidInput(f"actions must have shape (n, dim) with n ≥ 1 and dim ≥ 1, got {given.shape}")
    check_finite(rows, "actions")
    return rows


def storable_label(label: Hashable) -> Hashable:
    """The label, if a file can restore it unchanged."""
    if not isinstance(label, str | int | float | None):
        raise NotStorable(f"the label {shown(label)} is a {type(label).__name__}: only text and numbers are stored")
    return label


def _labels(labels: Iterable[Hashable] | None, n: int) -> tuple[Hashable, ...] | None:
    if labels is None:
        return None
    try:
        if isinstance(labels, bytes | bytearray | Mapping | AbstractSet):  # numbers, keys, or in no order
            raise TypeError(f"a {type(labels).__name__}")
        if hasattr(type(labels), "__array__"):  # arrays, Series, tensors; not tables
            array = np.asarray(labels)
            if array.ndim != 1 or np.ma.is_masked(labels):
                raise TypeError(f"an array of shape {array.shape}")
            labels = list(array)
        # numpy's scalars become Python's, which can be stored and compare the same. No more than can be used: some
        # iterables never end.
        given = itertools.islice(labels, n + 1)
        found = tuple(label.item() if isinstance(label, np.generic) else label for label in given)
        counts = Counter(found)
    except Exception as error:  # iterating and hashing run the code of users
        raise InvalidInput(f"labels must be a list of hashable values, got {shown(labels)} ({error})") from error
    if len(found) != n:
        many = len(found) if len(found) < n else "more"
        raise InvalidInput(f"there must be one label per action, got {many} for {n}")
    if len(counts) != n:
        twice = next(label for label in found if counts[label] > 1)
        raise InvalidInput(f"labels must differ, but {shown(twice)} occurs more than once")
    return found


def _index_of(actions: Any) -> Iterable[Hashable] | None:
    """The index of a DataFrame or Series, unless it is the default 0, 1, 2, …"""
    index = getattr(actions, "index", None)
    if index is None or callable(index) or list(index) == list(range(len(index))):
        return None
    return list(index)
