"""The best of several bounds in every direction: a bound on the intersection of sets that all contain the truth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mixbandit._checks import Array
from mixbandit.sets.base import ConfidenceSet, Maximum, Searched, SingleEnds, chosen
from mixbandit.sets.leaning import Leaning


class Tightest(Searched, SingleEnds):
    """For each direction the smallest of the members' maxima, as closed forms at several multipliers give."""

    screens_from = 64

    def __init__(self, members: Sequence[ConfidenceSet]) -> None:
        self._members = tuple(members)
        self.is_empty = any(member.is_empty for member in self._members)

    def maximum(self, directions: Any) -> Array:
        return np.asarray(np.minimum.reduce([member.maximum(directions) for member in self._members]))

    def interval(self, directions: Any) -> tuple[Array, Array]:
        ends = [member.interval(directions) for member in self._members]
        return np.maximum.reduce([low for low, _ in ends]), np.minimum.reduce([high for _, high in ends])

    def support(self, directions: Any) -> Maximum:
        found = [member.support(directions) for member in self._members]
        return chosen(found, np.argmin([each.value for each in found], axis=0))

    def ceiling(self, near: Any = None) -> ConfidenceSet:
        return self._members[0]

    def scaled(self, factor: float, estimate: ConfidenceSet) -> Any:
        return self if factor == 1.0 else Leaning(self, factor, estimate)

    def opened(self) -> Tightest:
        return Tightest([member.opened() for member in self._members])

    def contains(self, theta: Array, rtol: float) -> bool:
        return all(member.contains(theta, rtol) for member in self._members)
