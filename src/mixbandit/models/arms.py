"""Arms with a parameter each: the expected reward of an arm follows one model, with a parameter of its own."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from mixbandit._checks import LARGEST_ENTRY, Array, as_float_array, as_rows, check_finite, shown
from mixbandit.data import ArmDirections, ArmNumbers
from mixbandit.errors import InvalidInput
from mixbandit.models.base import Model


class PerArm(Model):
    """Rows (context, k), k = 0, 1, … the number of an arm."""

    def __init__(self, one: Model, arms: int) -> None:
        """`one` is the model of each of so far `arms` arms."""
        self.one, self.arms = one, arms
        # A policy's own arms, which are the same in all rounds, and whether their numbers increase.
        self._listed: tuple[Array, ArmNumbers, bool] | None = None

    @property
    def claim(self) -> str:
        return f"for every arm, {self.one.claim}, with a parameter of its own"

    @property
    def given(self) -> str:
        return f"for every arm {self.one.given}, with a parameter of its own"

    @property
    def dim_in(self) -> int | None:
        width = self.one.dim_in
        return None if width is None else width + 1

    @property
    def has_small_directions(self) -> bool:
        return self.one.has_small_directions

    def of_width(self, width: int) -> PerArm:
        return PerArm(self.one.of_width(width - 1), self.arms)

    def checked(self, actions: ArrayLike) -> Array:
        width = self.dim_in
        if width is not None:
            return as_rows(actions, width, "actions")
        rows = as_float_array(actions, "actions")
        if rows.ndim == 1:
            rows = rows[None]
        if rows.ndim != 2 or rows.shape[1] < 2:
            raise InvalidInput(f"actions must be rows (context, number of an arm), got shape {rows.shape}")
        check_finite(rows, "actions")
        return rows

    def directions(self, actions: Array, largest: float = LARGEST_ENTRY) -> ArmDirections:
        contexts, numbers = actions[:, :-1], _numbers(actions[:, -1])
        if len(actions) > 1 and (contexts == contexts[0]).all():
            contexts = contexts[:1]  # that is how arms are offered in a context
        if not self._are_arms(numbers, actions[:, -1]):
            raise InvalidInput(
                f"rows must end with the number of an arm, 0 … {self.arms - 1}, got {shown(actions[:, -1])}; "
                f"use Arms(range({self.arms}), labels=[…])"
            )
        return ArmDirections(numbers, self.one.directions(contexts, largest))

    def in_context(self, context: Array, arms: Array) -> ArmDirections | None:
        known = self._listed
        if known is None or known[0] is not arms:
            numbers = _numbers(arms[:, 0])
            if arms.shape[1] != 1 or len(context) + 1 != self.dim_in or not self._are_arms(numbers, arms[:, 0]):
                return None  # whoever sees the rows says what is wrong
            known = arms, numbers, bool((numbers[1:] > numbers[:-1]).all())
            if not arms.flags.writeable:
                self._listed = known
        own = self.one.directions(context[None], LARGEST_ENTRY)
        return ArmDirections(known[1], own, are_increasing=known[2])

    def _are_arms(self, numbers: ArmNumbers, given: Array) -> bool:
        if len(numbers) == 1:  # the usual case when one learns
            return bool(numbers[0] == given[0] and 0 <= numbers[0] < self.arms)
        within = not len(numbers) or bool(numbers.min() >= 0 and numbers.max() < self.arms)
        return within and bool((numbers == given).all())

    def check_learnable(self, directions: ArmDirections, weights: Array | None = None) -> None:
        self.one.check_learnable(directions.own, weights)


def _numbers(given: Array) -> ArmNumbers:
    with np.errstate(invalid="ignore"):  # numbers beyond all integers are refused with the others that are not arms
        return given.astype(np.int64)
