"""The set of the paper as ridge regression knows it: directions are bounded without decomposing the rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mixbandit._checks import Array
from mixbandit._lazy import lazy
from mixbandit.data import SAFE_SIZE
from mixbandit.sets import krylov
from mixbandit.sets.base import ELLIPSOID, INTERIOR, ConfidenceSet, Form, Maximum, Searched
from mixbandit.sets.eigen import Eigenbasis, eigenbasis
from mixbandit.sets.ellipsoid import RidgeEllipsoid
from mixbandit.sets.leaning import Leaning
from mixbandit.sets.projected import Near
from mixbandit.sets.residual_ball import ResidualBall

# More directions than this at once are worth an eigenbasis.
_FEW = 3
# Among more than this, most are excluded before products with W are formed.
_SOME = 64


class KrylovBall(Searched):
    """The same set as `whole`, which must not be empty; that one is only made when it is needed.

    `views` are the set seen from ridge regression at one multiplier or two; the first one that can bound a direction
    does. `outer` is the closed form at the multiplier of the first. `scarce`: there are fewer rows than dimensions, and
    decomposing them takes less work than an eigenbasis.
    """

    is_empty = False
    screens_from, evaluates = 2, 1

    def __init__(
        self, views: Sequence[Near], outer: RidgeEllipsoid, whole: Callable[[], ResidualBall], *, scarce: bool
    ) -> None:
        self._views, self._outer, self._whole, self._scarce = views, outer, whole, scarce
        self._known: dict[bytes, tuple[float, float]] = {}

    def maximum(self, directions: Array) -> Array:
        if len(directions) <= _FEW:
            return np.array([self._ends(row)[1] for row in directions])
        found = self._in_eigenbasis(directions)
        if found is None:
            return self._whole().maximum(directions)
        basis, size, inside = found
        value = size * basis.solve(inside, attaining=False).value
        left = np.isnan(value)
        if left.any():
            value[left] = self._whole().maximum(directions[left])
        return value

    def interval(self, directions: Array) -> tuple[Array, Array]:
        n = len(directions)
        if n <= _FEW:
            both = np.array([self._ends(row) for row in directions]).reshape(-1, 2)
            return both[:, 0], both[:, 1]
        found = self._in_eigenbasis(directions)
        if found is None:
            return self._whole().interval(directions)
        basis, size, inside = found
        ends = basis.solve(np.concatenate((inside, -inside)), attaining=False).value.reshape(2, n)
        low, high = -size * ends[1], size * ends[0]
        left = np.isnan(ends).any(axis=0)
        if left.any():
            low[left], high[left] = self._whole().interval(directions[left])
        return low, high

    @lazy
    def _eigenbasis(self) -> Eigenbasis | None:
        """The first view in an eigenbasis; None where singular values do as well."""
        return None if self._scarce else eigenbasis(self._views[0])

    def _in_eigenbasis(self, directions: Array) -> tuple[Eigenbasis, Array, Array] | None:
        """The eigenbasis, lengths of directions, and unit directions in it; None where the whole set is needed."""
        basis = self._eigenbasis
        measured = None if basis is None else basis.coordinates(directions)
        return None if basis is None or measured is None else (basis, *measured)

    def ends(self, direction: Array) -> tuple[float, float]:
        return self._ends(direction[0])

    def best(self, directions: Array, tie: float) -> tuple[int, float] | None:
        if len(directions) > _SOME:
            return None
        found = krylov.best(self._views[0], directions, self._outer.centre, self._outer.radius, tie)
        if found is None:
            return None
        index, low, high = found
        self._known[directions[index].tobytes()] = low, high
        return index, high

    def _ends(self, row: Array) -> tuple[float, float]:
        key = row.tobytes()
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._solved(row)
        return found

    def _solved(self, row: Array) -> tuple[float, float]:
        size = math.sqrt(np.vdot(row, row))  # unlike @, it says nothing where squares overflow
        if SAFE_SIZE < size < 1.0 / SAFE_SIZE:
            for view in self._views:
                found = krylov.interval(view, (row @ view.root) / size)
                if found is not None:
                    return size * found[0], size * found[1]
        low, high = self._whole().interval(row[None])
        return float(low[0]), float(high[0])

    def support(self, directions: Array) -> Maximum:
        found = self._in_eigenbasis(directions)
        if found is None:
            return self._whole().support(directions)
        basis, size, inside = found
        value, alpha, points = basis.solve(inside, attaining=True)
        left = np.isnan(value)
        case = np.where(alpha > 0.0, INTERIOR, ELLIPSOID)
        if left.any():
            rest = self._whole().support(directions[left])
            value[left], points[left], alpha[left], case[left] = rest.value / size[left], *rest[1:]
        return Maximum(size * value, points, alpha, case)

    def form(self) -> Form | None:
        return self._whole().form()

    def ceiling(self, near: Any = None) -> RidgeEllipsoid | None:
        return self._outer if near is None else None

    def scaled(self, factor: float, estimate: ConfidenceSet) -> KrylovBall | Leaning:
        """Estimate + factor·(upper bound − estimate), as a score."""
        return self if factor == 1.0 else Leaning(self, factor, estimate)

    def opened(self) -> KrylovBall:
        return self

    def contains(self, theta: Array, rtol: float) -> bool:
        return self._whole().contains(theta, rtol)
