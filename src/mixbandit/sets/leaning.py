"""Intervals of a set with their half-widths scaled, as a score: for sets whose intervals have no linear centre."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mixbandit._checks import Array
from mixbandit.sets.base import Maximum, Searched

if TYPE_CHECKING:
    from mixbandit.sets.base import ConfidenceSet


class Leaning(Searched):
    """Centre + factor·half-width of the interval of a set in every direction; the upper bound at factor 1."""

    def __init__(self, set_: ConfidenceSet, factor: float) -> None:
        self._set = set_
        self._on_upper, self._on_lower = 0.5 * (1.0 + factor), 0.5 * (1.0 - factor)

    def maximum(self, directions: Any) -> Array:
        upper, lower = self._set.maximum(directions), self._set.maximum(-directions)
        return np.asarray(self._on_upper * upper - self._on_lower * lower)

    def support(self, directions: Any) -> Maximum:
        upper, lower = self._set.support(directions), self._set.support(-directions)
        return upper._replace(
            value=self._on_upper * upper.value - self._on_lower * lower.value,
            points=self._on_upper * upper.points + self._on_lower * lower.points,
        )
