"""Running intersections: for fixed arms, the best bounds that have held at any time so far."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from mixbandit._validation import Array, as_rows
from mixbandit.confidence.base import ConfidenceSequence
from mixbandit.errors import AssumptionsRefuted, InvalidInput


class RunningIntersection:
    """Bounds at fixed `actions` that never widen: the least upper and the greatest lower bound since the start.

    All bounds of a sequence hold at once, so that their intersection does, at no extra δ. It is taken once per
    `update`. Where the intersection is empty the assumptions are refuted. Bounds of an inflated set carry no
    guarantee and are left out.
    """

    def __init__(self, sequence: ConfidenceSequence, actions: ArrayLike) -> None:
        if sequence.guarantee != "anytime":
            raise InvalidInput(
                f"{type(sequence).__name__} does not hold at all times at once: its bounds cannot be intersected"
            )
        self.sequence = sequence
        self.actions: Array = as_rows(actions, sequence.features.dim_in, "actions").copy()
        self.lower: Array = np.full(len(self.actions), -np.inf)
        self.upper: Array = np.full(len(self.actions), np.inf)
        self._intersect()

    def update(self, actions: ArrayLike, rewards: ArrayLike, sigma: ArrayLike | None = None) -> Self:
        """Update the sequence, then cut the bounds."""
        self.sequence.update(actions, rewards, sigma)
        self._intersect()
        return self

    @property
    def is_empty(self) -> bool:
        """Whether bounds of different times contradict each other, or the set itself is empty."""
        scale = np.maximum(np.abs(self.lower), np.abs(self.upper))
        return bool((self.lower > self.upper + 1e-9 * scale).any()) or getattr(self.sequence, "is_empty", False)

    def _intersect(self) -> None:
        if getattr(self.sequence, "is_empty", False):
            if getattr(self.sequence, "on_empty", "raise") == "raise":
                self.sequence.upper(self.actions)  # says what is refuted
            return
        self.lower = np.maximum(self.lower, self.sequence.lower(self.actions))
        self.upper = np.minimum(self.upper, self.sequence.upper(self.actions))
        if self.is_empty and getattr(self.sequence, "on_empty", "raise") == "raise":
            raise AssumptionsRefuted(
                f"after {self.sequence.t} rewards bounds of different times contradict each other: at level "
                f"delta={self.sequence.delta:g} the data refute the assumptions of {self.sequence!r}"
            )
