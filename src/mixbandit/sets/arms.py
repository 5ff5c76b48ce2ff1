"""Sets of arms that have a parameter each: (θ_1, …, θ_K), each θ_k in the set of its own arm.

Arms have nothing in common, so the maximum of a difference of two arms is the sum of two maxima; that of a difference
within one arm is one maximum, over one parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mixbandit._checks import Array
from mixbandit.data import SAFE_SIZE, ArmDirections, Ridges, are_safe, flat, squares
from mixbandit.errors import InvalidInput
from mixbandit.sets.base import ConfidenceSet, Maximum, Searched, SingleEnds
from mixbandit.sets.ellipsoid import Ellipsoid
from mixbandit.sets.leaning import Leaning

# Squared lengths beyond this or its inverse are left to sets that rescale directions.
_SAFE2 = SAFE_SIZE
Bounded = Callable[[ConfidenceSet, Any], Array]


class Product(Searched):
    """The sets of all arms, each made when a direction of its arm is bounded."""

    screens_from, evaluates = 2, 1

    def __init__(self, member: Callable[[int], ConfidenceSet], arms: int, outer: RidgeEllipsoids | None = None) -> None:
        """`member` gives the set of an arm, by its number; `outer` is a larger set that takes less work."""
        self._member, self._arms, self._outer = member, arms, outer

    @property
    def is_empty(self) -> bool:
        return any(self._member(arm).is_empty for arm in range(self._arms))

    def maximum(self, directions: ArmDirections) -> Array:
        return self._summed(directions, lambda member, own: member.maximum(own))

    def interval(self, directions: ArmDirections) -> tuple[Array, Array]:
        if directions.less is not None:
            return -self.maximum(-directions), self.maximum(directions)
        low, high = np.empty(len(directions)), np.empty(len(directions))
        for arm, places in directions.by_arm():
            low[places], high[places] = self._member(arm).interval(directions.at(places))
        return low, high

    def ends(self, direction: ArmDirections) -> tuple[float, float]:
        if direction.less is None:
            return self._member(int(direction.arms[0])).ends(direction.own)
        low, high = self.interval(direction)
        return float(low[0]), float(high[0])

    def support(self, directions: ArmDirections) -> Maximum:
        raise InvalidInput("arms with a parameter each have bounds, but no gradients: ask for upper and lower")

    def ceiling(self, near: Any = None) -> RidgeEllipsoids | None:
        return self._outer if near is None else None

    def scaled(self, factor: float, estimate: ConfidenceSet) -> Product | Leaning:
        """Estimate + factor·(upper bound − estimate), as a score."""
        return self if factor == 1.0 else Leaning(self, factor, estimate)

    def opened(self) -> Product:
        return Product(lambda arm: self._member(arm).opened(), self._arms, self._outer)

    def contains(self, theta: Any, rtol: float) -> bool:
        """Whether the set contains the parameters of all arms, in the order of their numbers."""
        if len(theta) != self._arms:
            raise InvalidInput(f"theta must have a row for each of {self._arms} arms, got {len(theta)}")
        return all(self._member(arm).contains(own, rtol) for arm, own in enumerate(theta))

    def _summed(self, directions: ArmDirections, bounded: Bounded) -> Array:
        """The maxima, (n,), as sums over arms."""
        if directions.less is None:
            return self._each(directions, bounded)
        same, apart = directions.apart()
        found, less = np.empty(len(directions)), directions.less
        for arm, places in directions[same].by_arm():
            within = same[places]
            found[within] = bounded(self._member(arm), directions.at(within) - less.at(within))
        alone = ArmDirections(directions.arms, directions.own)[apart]
        found[apart] = self._each(alone, bounded) + self._each(-less[apart], bounded)
        return found

    def _each(self, directions: ArmDirections, bounded: Bounded) -> Array:
        found = np.empty(len(directions))
        for arm, places in directions.by_arm():
            if directions.is_shared:
                found[places] = bounded(self._member(arm), directions.own)
            else:
                found[places] = bounded(self._member(arm), directions.at(places))
        return found


class RidgeEllipsoids(Searched, SingleEnds):
    """The closed forms of all arms around their ridge estimates: {θ : ‖θ_k − θ̂_k‖_{V_k} ≤ radius_k for every k}.

    Arms in `others` have ellipsoids that are not made of the ridges.
    """

    is_empty = False
    screens_from = 1 << 60  # nothing takes less work

    def __init__(
        self, ridges: Ridges, radii: Array, others: Mapping[int, Ellipsoid], member: Callable[[int], ConfidenceSet]
    ) -> None:
        """`member` gives the ellipsoid of any arm, for differences and for directions beyond all floats."""
        self._ridges, self._radii, self._others, self._member = ridges, radii, others, member
        self._best: tuple[int, Array, tuple[float, float]] | None = None  # the best arm found, and its interval
        self._last: tuple[ArmDirections, Array] | None = None  # what was measured last without a single best arm

    @property
    def _whole(self) -> Product:
        """The same set, from those of single arms."""
        return Product(self._member, len(self._radii))

    def maximum(self, directions: ArmDirections) -> Array:
        if self._last is not None and self._last[0] is directions:
            return self._last[1]
        found = self._measured(directions)
        return self._whole.maximum(directions) if found is None else found[0] + found[1]

    def interval(self, directions: ArmDirections) -> tuple[Array, Array]:
        found = self._measured(directions)
        if found is None:
            return self._whole.interval(directions)
        return found[0] - found[1], found[0] + found[1]

    def ends(self, direction: ArmDirections) -> tuple[float, float]:
        known = self._best
        if known is not None and known[1] is direction.own and known[0] == direction.arms[0] and direction.less is None:
            return known[2]
        return super().ends(direction)

    def best(self, directions: ArmDirections, tie: float) -> tuple[int, float] | None:
        found = self._measured(directions) if directions.is_shared else None
        if found is None:
            return None
        middle, half = found
        values = middle + half
        place = int(values.argmax())
        value: float = values.item(place)
        if np.count_nonzero(values >= value - tie * abs(value)) != 1:
            self._last = directions, values
            return None
        self._best = int(directions.arms[place]), directions.own, (middle.item(place) - half.item(place), value)
        return place, value

    def support(self, directions: ArmDirections) -> Maximum:
        return self._whole.support(directions)

    def scaled(self, factor: float, estimate: ConfidenceSet | None = None) -> RidgeEllipsoids:
        """The ellipsoids with `factor` times their radii."""
        others = {arm: each.scaled(factor) for arm, each in self._others.items()}
        member: Any = self._member
        return RidgeEllipsoids(self._ridges, factor * self._radii, others, lambda arm: member(arm).scaled(factor))

    def opened(self) -> RidgeEllipsoids:
        return self

    def contains(self, theta: Any, rtol: float) -> bool:
        return self._whole.contains(theta, rtol)

    def _measured(self, directions: ArmDirections) -> tuple[Array, Array] | None:
        """Centres and half-widths, (n,) each; None where the whole set is needed."""
        if directions.less is not None:
            return None
        arms, ridges = directions.arms, self._ridges
        if directions.is_shared and directions.are_increasing:
            row = directions.own[0]
            if not _SAFE2 < float(np.vdot(row, row)) < 1.0 / _SAFE2:
                return None
            everyone = len(arms) == len(ridges)
            middle, w = ridges.measured(row, None if everyone else arms)
            radii = self._radii if everyone else self._radii[arms]
        else:
            rows = flat(directions)
            if not are_safe(squares(rows), _SAFE2):
                return None
            middle, w = ridges.measured_each(rows, arms)
            radii = self._radii[arms]
        half = radii * np.sqrt(w)
        for arm, each in self._others.items():
            for place in np.flatnonzero(arms == arm):
                low, high = each.ends(directions[place].own)
                middle[place], half[place] = 0.5 * (low + high), 0.5 * (high - low)
        return middle, half
