"""Rows and rewards in the singular basis of the rows, which is how exact sets see them.

| symbol | meaning | shape |
|---|---|---|
| A diag(√s) Uᵀ | singular value decomposition of the rows Φ | |
| z = Aᵀr | rewards in those coordinates | (rank,) |
| p, ν | a unit direction's coordinates in the range of Φᵀ, and the length of its part outside | (n, rank), (n,) |
"""

from __future__ import annotations

import abc
import math
from typing import Any, NamedTuple

import numpy as np

from mixbandit._checks import Array
from mixbandit.data.directions import split
from mixbandit.errors import InvalidInput

_EPS = float(np.finfo(np.float64).eps)
# Rounding errors below this share of a radius do not matter.
_NEGLIGIBLE = 1e-6


class Split(NamedTuple):
    """Directions in the coordinates of a spectrum."""

    size: Array  # ‖φ‖, (n,)
    inside: Array  # p, (n, rank)
    null: Array  # ν, (n,)
    rest: Any = None  # what `points` needs to know of the parts outside, if asked for


class Decomposed(abc.ABC):
    """What a decomposition of the rows is to sets: singular values, rewards, and how directions look in its basis."""

    __slots__ = ()

    singular: Array  # √s, (rank,), all > 0, decreasing
    z: Array  # coordinates of the rewards in the range of the rows, (rank,)
    outside: float  # squared norm of what no parameter explains
    lost_singular: Array  # singular values below the rounding error of the largest, (k,)
    lost_z: Array  # coordinates of the rewards along them, (k,)

    @abc.abstractmethod
    def split(self, directions: Any, *, attaining: bool) -> Split:
        """Directions as length, coordinates and rest; the rest only if points are to be made from them."""

    @abc.abstractmethod
    def points(self, inside: Array, along: Array, parts: Split) -> Any:
        """Points with coordinates `inside` (n, rank), plus `along` (n,) times the part outside of unit directions."""

    def range_basis(self) -> Array | None:
        """An orthonormal basis (d, rank) of the range of Φᵀ, where directions are feature vectors; None elsewhere."""
        return None

    def coordinates(self, theta: Array) -> tuple[Array, Array]:
        """A parameter (d,) in the range of the rows, (rank,), and its part outside, where there are features."""
        raise InvalidInput("kernel models have no parameter vector: ask for bounds at actions instead")

    @property
    @abc.abstractmethod
    def width(self) -> int:
        """The number of terms that rounding errors add up over."""

    @property
    def rank(self) -> int:
        return len(self.singular)

    @property
    def all_singular(self) -> Array:
        """All singular values, the lost ones as large as they may be."""
        return np.concatenate((self.singular, self.lost_singular))

    def lost_estimate(self, alpha: float) -> float:
        """How far from 0 the ridge estimate at α may be along lost directions, in the norm of ΦᵀΦ + αI."""
        # √(αs)/(s + α) per unit of z grows up to s = α.
        ratio = np.minimum(self.lost_singular / math.sqrt(alpha), 1.0)
        return float(np.linalg.norm(self.lost_z * (ratio / (1.0 + ratio**2))))

    def residual(self, reach: float) -> float:
        """The least squared residual that parameters of norm at most `reach` leave for certain, rounded down.

        Residuals that may be rounding errors of what is explained must not count as noise.
        """
        if not self.outside:
            return self.unexplained(reach)
        estimate = float(np.linalg.norm(self.z / self.singular))
        outside = math.sqrt(self.outside)
        rounding = self.rounding(min(reach, estimate)) + 4.0 * self.width * _EPS * outside
        return max(outside - rounding, 0.0) ** 2 + self.unexplained(reach)

    def unexplained(self, reach: float) -> float:
        """The part of the residual along lost directions.

        Along a lost direction a parameter explains at most singular value times reach, and rounding some more; along
        all of them together, at most the largest singular value times reach. Counting all of z would treat explained
        rewards as noise.
        """
        if not len(self.lost_z):
            return 0.0
        rounding = self.rounding(reach)
        each = np.maximum(np.abs(self.lost_z) - self.lost_singular * reach - rounding, 0.0)
        explained = float(self.lost_singular.max()) * reach + math.sqrt(len(self.lost_z)) * rounding
        together = max(float(np.linalg.norm(self.lost_z)) - explained, 0.0)
        return max(float(each @ each), together**2)

    def rounding(self, reach: float) -> float:
        """The rounding error of a residual at parameters of norm `reach`."""
        top = float(self.singular[0]) if self.rank else 0.0
        return 4.0 * self.width * _EPS * (top * reach + float(np.linalg.norm(self.z)))


class _Fields(NamedTuple):
    singular: Array
    basis: Array  # U, (d, rank), orthonormal columns
    z: Array
    outside: float
    lost_singular: Array
    lost_z: Array


class Spectrum(_Fields, Decomposed):
    """The decomposition of feature rows, ΦL and r − Φθ₀ for a root L and a shift θ₀ (I and 0 unless given)."""

    __slots__ = ()

    @property
    def width(self) -> int:
        return len(self.basis)

    def split(self, directions: Array, *, attaining: bool) -> Split:
        return Split(*split(directions, self.basis, with_outside=attaining))

    def points(self, inside: Array, along: Array, parts: Split) -> Array:
        points = inside @ self.basis.T
        if parts.rest is not None:
            points += along[:, None] * parts.rest
        return np.asarray(points)

    def range_basis(self) -> Array:
        return self.basis

    def coordinates(self, theta: Array) -> tuple[Array, Array]:
        inside = self.basis.T @ theta
        return inside, theta - self.basis @ inside


class Ridged(Decomposed):
    """The decomposition of the rows and √αI together: a ridge is one more row for every direction, with reward 0."""

    __slots__ = ("_base", "lost_singular", "lost_z", "outside", "singular", "z")

    def __init__(self, base: Decomposed, alpha: float) -> None:
        scale, root = np.hypot(base.singular, math.sqrt(alpha)), math.sqrt(alpha)
        self._base = base
        # Any one direction has only one coordinate outside the range: its own.
        self.singular: Array = np.append(scale, root)
        self.z: Array = np.append(base.singular / scale * base.z, 0.0)
        self.outside = 0.0
        self.lost_singular, self.lost_z = np.empty(0), np.empty(0)

    @property
    def width(self) -> int:
        return self._base.width

    def split(self, directions: Any, *, attaining: bool) -> Split:
        parts = self._base.split(directions, attaining=attaining)
        return Split(parts.size, np.column_stack((parts.inside, parts.null)), np.zeros(len(parts.size)), parts)

    def points(self, inside: Array, along: Array, parts: Split) -> Any:
        null = parts.rest.null
        return self._base.points(inside[:, :-1], inside[:, -1] / np.where(null > 0.0, null, 1.0), parts.rest)

    def coordinates(self, theta: Array) -> tuple[Array, Array]:
        """A parameter in these coordinates: the last one is the length of what lies outside the range."""
        inside, rest = self._base.coordinates(theta)
        return np.append(inside, float(np.linalg.norm(rest))), np.zeros(1)


def widened(radius: float, rounding: float) -> float:
    """A radius that covers the rounding errors of residuals as well, unless they are negligible next to it.

    `rounding` is pessimistic: what is negligible here is less than 1e-8 of the radius in truth.
    """
    return radius + rounding if rounding > _NEGLIGIBLE * radius else radius
