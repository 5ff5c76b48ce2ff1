"""Running intersections: for fixed arms, the best bounds that have held at any time so far."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from mixbandit._checks import Array, instance_of
from mixbandit._locks import Lock, locked
from mixbandit.errors import InvalidInput
from mixbandit.sequences.base import ConfidenceSequence


class RunningIntersection:
    """Bounds at fixed `actions` that never widen: the least upper and the greatest lower bound since the start.

    All bounds of a sequence hold at once, so their intersection does too, at no extra δ. It is taken once per `update`.
    If bounds of different times, or those of the sequence itself, contradict each other, the assumptions are refuted
    for good (`is_empty`); `lower` and `upper` then keep their previous values. It raises AssumptionsRefuted after
    learning the data, or warns, according to the sequence's `on_empty`.
    """

    def __init__(self, sequence: ConfidenceSequence, actions: ArrayLike) -> None:
        instance_of(sequence, ConfidenceSequence, "sequence", "a confidence sequence such as MartingaleMixture")
        if sequence.guarantee != "anytime":
            raise InvalidInput(
                f"the bounds of {type(sequence).__name__} do not hold at all times at once and cannot be intersected"
            )
        if not sequence.moment.stationary:
            raise InvalidInput(f"{type(sequence).__name__} bounds what changes: its bounds cannot be intersected")
        self.sequence = sequence
        self.actions: Array = sequence.moment.model.checked(actions).copy()
        self.lower: Array = np.full(len(self.actions), -np.inf)
        self.upper: Array = np.full(len(self.actions), np.inf)
        self.is_empty = False
        self.lock = Lock()
        self._intersect()

    @locked
    def update(self, actions: ArrayLike, rewards: ArrayLike, sigma: ArrayLike | None = None) -> Self:
        """Update the sequence, then intersect the bounds."""
        self.sequence.update(actions, rewards, sigma=sigma)
        self._intersect()
        return self

    def _intersect(self) -> None:
        moment = self.sequence.moment
        directions = moment.directions(self.actions)
        now_lower, now_upper, contradicts = moment.interval(directions)
        lower, upper = np.maximum(self.lower, now_lower), np.minimum(self.upper, now_upper)
        crossed = bool((lower > upper + 1e-9 * np.maximum(np.abs(lower), np.abs(upper))).any())
        found = None
        if moment.is_empty:
            found = "the confidence set is empty"
        elif contradicts:
            found = "a bound on an expected reward lies outside reward_range"
        elif crossed and not self.is_empty:
            found = "bounds of different times contradict each other"
        self.is_empty |= found is not None or crossed
        if found is not None:
            self.sequence.refute(found)
        if not self.is_empty:
            self.lower, self.upper = lower, upper
