"""Distinct rows of a matrix.

Not by `np.unique(axis=0)`: its sort compares rows in Python's object machinery, where an interrupt ends as a TypeError.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixbandit._checks import Array

# Rows are sorted by one column, then by this many times as many, until that orders them.
_MORE = 4


class Distinct(NamedTuple):
    """The distinct rows of a matrix (n, k), in lexicographic order, and where they occur."""

    rows: Array  # (m, k)
    first: NDArray[np.int64]  # (m,): the place of the first of each
    place: NDArray[np.int64]  # (n,): which of them each row is
    counts: NDArray[np.int64]  # (m,)


def distinct_rows(rows: Array) -> Distinct:
    """Like `np.unique(rows, axis=0, …)`; −0 equals 0."""
    order, is_new = _sorted(rows)
    place = np.empty(len(rows), dtype=np.int64)
    place[order] = np.cumsum(is_new) - 1
    first = order[is_new]
    return Distinct(rows[first], first, place, np.bincount(place, minlength=len(first)))


def _sorted(rows: Array) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Rows in lexicographic order, those that are equal in the order given; and which differ from the one before."""
    width, is_new = 1, np.ones(len(rows), dtype=np.bool_)
    while True:
        # A few columns are enough if rows that agree in them agree in all.
        order = np.lexsort(rows[:, :width].T[::-1]) if rows.shape[1] else np.arange(len(rows))
        ordered = rows[order]
        same = ordered[1:] == ordered[:-1]
        is_new[1:] = ~same.all(axis=1)
        if width >= rows.shape[1] or not (is_new[1:] & same[:, :width].all(axis=1)).any():
            return order, is_new
        width *= _MORE
