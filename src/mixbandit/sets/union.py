"""The union of sets in several spaces, one of which contains the truth: bounds are the loosest of the members'."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mixbandit._checks import Array
from mixbandit.data import AlternativeFunctions
from mixbandit.sets.base import ConfidenceSet, Maximum, Searched, SingleEnds, chosen
from mixbandit.sets.leaning import Leaning


class Union(Searched, SingleEnds):
    """One set per space, in the order of the parts of directions. Empty members drop out: only those `left` count."""

    screens_from = 64

    def __init__(self, members: Sequence[ConfidenceSet], left: Sequence[int] | None = None) -> None:
        self.members = tuple(members)
        occupied = [i for i, member in enumerate(members) if not member.is_empty]
        self.left = tuple(occupied if left is None else left)
        self.is_empty = not self.left

    def maximum(self, directions: Any) -> Array:
        return np.asarray(np.maximum.reduce([self.members[i].maximum(directions.parts[i]) for i in self.left]))

    def interval(self, directions: Any) -> tuple[Array, Array]:
        ends = [self.members[i].interval(directions.parts[i]) for i in self.left]
        return np.minimum.reduce([low for low, _ in ends]), np.maximum.reduce([high for _, high in ends])

    def support(self, directions: Any) -> Maximum:
        found = []
        for i in self.left:
            one = self.members[i].support(directions.parts[i])
            found.append(one._replace(points=AlternativeFunctions.only(i, len(self.members), one.points)))
        return chosen(found, np.argmax([each.value for each in found], axis=0))

    def ceiling(self, near: Any = None) -> Union | None:
        """The members' cheaper sets; they have none near single directions, because members differ in multipliers."""
        cheaper = [member.ceiling() for member in self.members]
        if near is not None or all(each is None for each in cheaper):
            return None
        return Union([each or member for each, member in zip(cheaper, self.members, strict=True)], self.left)

    def scaled(self, factor: float, estimate: ConfidenceSet | None = None) -> Union | Leaning:
        """Estimate + factor·(upper bound − estimate), as a score; without an estimate, around those of the members."""
        if factor == 1.0:
            return self
        if estimate is None:
            ellipsoids: Any = self.members  # of a closed form, whose members have estimates of their own
            return Union([member.scaled(factor) for member in ellipsoids], self.left)
        return Leaning(self, factor, estimate)

    def opened(self) -> Union:
        """The members that are left with an interior each; all of them if none is left."""
        return Union([member.opened() for member in self.members], self.left or range(len(self.members)))

    def contains(self, theta: Array, rtol: float) -> bool:
        return any(self.members[i].contains(theta, rtol) for i in self.left)
