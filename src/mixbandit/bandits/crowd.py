"""The feature rows of many pending choices, as a value that sums them up.

A choice that is pending counts as if it had returned its expected reward φᵀθ̂. Then only the Gram matrix of the pending
rows matters, and so its triangular factor R is as good as the rows: R with rewards Rθ̂. Rows sit in the leaves of a
binary tree by their ids, each node with the factor of what is below it, made when it is first asked for. Adding or
removing a row makes one new path from the root, so that it takes no longer with 5,000 choices than with 100.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from mixbandit._checks import Array
from mixbandit._lazy import lazy
from mixbandit.data import triangle

_LEAF_BITS = 5  # ids per leaf: 32


class _Node:
    """Rows of ids that share their leading bits: a leaf with rows by id, or two halves."""

    def __init__(self, parts: dict[int, Any], *, is_leaf: bool) -> None:
        self.parts, self.is_leaf = parts, is_leaf

    @lazy
    def factor(self) -> Array:
        """The upper triangular factor of all rows below, (d, d)."""
        below = list(self.parts.values())
        if not self.is_leaf and len(below) == 1:
            return below[0].factor  # type: ignore[no-any-return]
        return triangle(np.array(below) if self.is_leaf else np.concatenate([node.factor for node in below]))


class Crowd:
    """Rows by id; `with_row` and `without` make new ones."""

    def __init__(self, height: int, root: _Node, count: int) -> None:
        self._height, self._root, self.count = height, root, count

    @classmethod
    def of(cls, rows: Iterable[tuple[int, Array]]) -> Crowd:
        """Of ids and rows (d,)."""
        crowd = cls(0, _Node({}, is_leaf=True), 0)
        for number, row in rows:
            crowd = crowd.with_row(number, row)
        return crowd

    @property
    def factor(self) -> Array:
        """The upper triangular factor of all rows, (d, d); there must be one."""
        return self._root.factor

    def with_row(self, number: int, row: Array) -> Crowd:
        height, root = self._height, self._root
        while number >> (_LEAF_BITS + height):
            height, root = height + 1, _Node({0: root} if root.parts else {}, is_leaf=False)
        return Crowd(height, _with(root, number, row, height), self.count + 1)

    def without(self, number: int) -> Crowd:
        """Without a row, which may be missing."""
        if number >> (_LEAF_BITS + self._height):
            return self
        root = _without(self._root, number, self._height)
        return self if root is self._root else Crowd(self._height, root, self.count - 1)


def _slot(number: int, height: int) -> int:
    return number & ((1 << _LEAF_BITS) - 1) if not height else (number >> (_LEAF_BITS + height - 1)) & 1


def _with(node: _Node, number: int, row: Array, height: int) -> _Node:
    slot = _slot(number, height)
    if not height:
        return _Node({**node.parts, slot: row}, is_leaf=True)
    below = node.parts.get(slot) or _Node({}, is_leaf=height == 1)
    return _Node({**node.parts, slot: _with(below, number, row, height - 1)}, is_leaf=False)


def _without(node: _Node, number: int, height: int) -> _Node:
    slot = _slot(number, height)
    below = node.parts.get(slot)
    if below is None:
        return node
    parts = dict(node.parts)
    if height:
        rest = _without(below, number, height - 1)
        if rest is below:
            return node
        if rest.parts:
            parts[slot] = rest
            return _Node(parts, is_leaf=False)
    del parts[slot]
    return _Node(parts, is_leaf=not height)
