"""The feature rows of many pending choices, as a value that sums them up.

A choice that is pending counts as if it had returned its expected reward φᵀθ̂. Then only the Gram matrix of the pending
rows matters, and so any root R of it is as good as the rows: R with rewards Rθ̂. Rows sit in the leaves of a binary tree
by their ids, each node with the Gram matrix of what is below it, made when it is first asked for. Adding or removing a
row makes one new path from the root, of sums of matrices: with 5,000 choices some eight, after which a root is made
once. (A Gram matrix has half the digits of a factor. Actions are chosen by it, and no bound is made from it.)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from mixbandit._checks import Array
from mixbandit._lazy import lapack, lazy

_LEAF_BITS = 5  # ids per leaf: 32


class _Node:
    """Rows of ids that share their leading bits: a leaf with rows by id, or two halves."""

    def __init__(self, parts: dict[int, Any], *, is_leaf: bool) -> None:
        self.parts, self.is_leaf = parts, is_leaf

    @lazy
    def gram(self) -> Array:
        """The Gram matrix of all rows below, (d, d)."""
        below = [self.parts[slot] for slot in sorted(self.parts)]  # in the same order, however they came here
        if self.is_leaf:
            rows = np.array(below)
            return np.asarray(rows.T @ rows)
        return below[0].gram if len(below) == 1 else below[0].gram + below[1].gram  # type: ignore[no-any-return]


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

    @lazy
    def factor(self) -> Array:
        """R (rank, d) with RᵀR the Gram matrix of all rows, of which there must be one."""
        packed, order, rank, info = lapack().dpstrf(self._root.gram)
        if info < 0:
            raise RuntimeError(f"LAPACK's dpstrf refused argument {-info}")
        factor = np.empty((rank, len(packed)))
        factor[:, order - 1] = np.triu(packed[:rank])  # columns were exchanged
        return factor

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
