"""Upper bounds of a set with their distance from an estimate scaled, as a score: for sets without a linear centre."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mixbandit._checks import Array
from mixbandit.sets.base import Maximum, Searched

if TYPE_CHECKING:
    from mixbandit.sets.base import ConfidenceSet


class Leaning(Searched):
    """Estimate + factor·(upper bound − estimate) in every direction; the upper bound at factor 1.

    The estimate is that of ridge regression and not the middle of the interval: where the norm bound binds, the middle
    lies elsewhere, and a tighter norm bound would move it away from what the rewards say.
    """

    def __init__(self, set_: ConfidenceSet, factor: float, estimate: ConfidenceSet) -> None:
        self._set, self._factor, self._estimate = set_, factor, estimate

    def maximum(self, directions: Any) -> Array:
        expected = self._estimate.maximum(directions)
        return np.asarray(expected + self._factor * (self._set.maximum(directions) - expected))

    def support(self, directions: Any) -> Maximum:
        upper, expected = self._set.support(directions), self._estimate.support(directions)
        return upper._replace(
            value=expected.value + self._factor * (upper.value - expected.value),
            points=(1.0 - self._factor) * expected.points + self._factor * upper.points,
        )
