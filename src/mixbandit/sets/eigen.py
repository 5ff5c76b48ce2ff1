"""The exact bounds of many directions from ridge regression, in the eigenbasis of M = WᵀW (notation of `krylov`).

An eigenbasis of a symmetric matrix takes half the work of the singular values of the rows, and no digits are lost to
it: 1 + hμ is close to 1 for directions of which much is known, and ridge regression itself keeps the others.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from mixbandit._checks import Array
from mixbandit._compiling import Kernel, kernel
from mixbandit.data import SAFE_SIZE, are_safe, squares
from mixbandit.sets.krylov import example, interval_by_numpy
from mixbandit.sets.projected import CANCELLED, MOST, STEPS, Near, eigen, least_multiplier

# The last Newton step in ln α leaves an error of about its square. Bounds are at a minimum, which squares that error
# once more; maximisers feel it directly.
_VALUE_TOLERANCE, _POINT_TOLERANCE = 1e-4, 1e-5


class Solved(NamedTuple):
    """Maxima of directions, one row each."""

    value: Array  # (n,), NaN where they must be found in another way
    alpha: Array  # (n,), multipliers of the norm bound, 0 where it does not bind
    points: Array  # maximisers, (n, d); empty unless asked for


class Eigenbasis:
    """A view of the set in the eigenbasis of M, with a compiled solver."""

    def __init__(self, near: Near, compiled: Kernel) -> None:
        self._near, self._compiled = near, compiled
        self._mu, basis = eigen(near.root.T @ near.root)
        self._root, self._rewards = near.root @ basis, near.rewards @ basis
        self._floor = least_multiplier(near)

    def coordinates(self, directions: Array) -> tuple[Array, Array] | None:
        """Lengths (n,), and unit directions in this basis, (n, d); None where squares leave the range of floats."""
        size = np.sqrt(squares(directions))
        if not are_safe(size, SAFE_SIZE):
            return None
        inside = directions @ self._root
        inside *= (1.0 / size)[:, None]
        return size, inside

    def solve(self, inside: Array, *, attaining: bool) -> Solved:
        """The maxima of unit directions, given by their coordinates."""
        near, n = self._near, len(inside)
        # Rows that are left to another way are not filled: with what memory held before, a product can warn.
        value, alpha, points = np.empty(n), np.zeros(n), np.zeros(inside.shape if attaining else (0, 0))
        self._compiled(
            inside, self._mu, self._rewards, near.alpha, near.rho, near.norm_bound, near.start, self._floor,
            near.least * near.alpha, MOST, _POINT_TOLERANCE if attaining else _VALUE_TOLERANCE, STEPS, CANCELLED,
            value, alpha, points,
        )  # fmt: skip
        return Solved(value, alpha, points @ self._root.T if attaining else points)


def eigenbasis(near: Near) -> Eigenbasis | None:
    """A view in the eigenbasis of M; None without compiled code, because singular values then take no longer."""
    compiled = kernel("mixbandit.sets._compiled_eigen.solve_rows", _check_agreement)
    return None if compiled is None else Eigenbasis(near, compiled)


def _check_agreement(compiled: Kernel) -> None:
    """Raise RuntimeError unless compiled code solves a small problem as numpy does; the first call compiles it."""
    near, directions = example()
    basis = Eigenbasis(near, compiled)
    measured = basis.coordinates(directions)
    assert measured is not None
    found = basis.solve(measured[1], attaining=True).value
    for row, value in zip(directions, found, strict=True):
        expected = interval_by_numpy(near, row @ near.root / np.linalg.norm(row))
        if expected is None or not math.isclose(value, expected[1], rel_tol=1e-9):
            raise RuntimeError(f"compiled code gives {value}, numpy {expected}")
