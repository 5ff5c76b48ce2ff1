"""Directions of arms that have a parameter each: the expected reward of arm k is φᵀθ_k."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixbandit._checks import Array
from mixbandit._lazy import lazy

ArmNumbers = NDArray[np.int64]


class ArmDirections:
    """For each of n actions the number of its arm, and a direction in the space of that arm's parameter.

    Less other ones, after a subtraction: differences of actions of one arm are directions of that arm.
    """

    __array_ufunc__ = None

    def __init__(
        self, arms: ArmNumbers, own: Any, less: ArmDirections | None = None, *, are_increasing: bool | None = None
    ) -> None:
        """`own` are n directions, or a single one that all actions share, as arms do in one context."""
        self.arms, self.own, self.less = arms, own, less
        if are_increasing is not None:
            self.are_increasing = are_increasing

    @property
    def is_shared(self) -> bool:
        """Whether all actions have the same direction, each for its own arm."""
        return len(self.own) == 1

    @lazy
    def are_increasing(self) -> bool:
        """Whether the numbers of arms increase."""
        return len(self.arms) == 1 or bool((self.arms[1:] > self.arms[:-1]).all())

    def __len__(self) -> int:
        return len(self.arms)

    def __getitem__(self, index: Any) -> ArmDirections:
        if isinstance(index, int | np.integer):
            index = slice(index, index + 1 or None)  # the last one is −1
        own = self.own if self.is_shared else self.own[index]
        return ArmDirections(self.arms[index], own, None if self.less is None else self.less[index])

    def __neg__(self) -> ArmDirections:
        return ArmDirections(self.arms, -self.own, None if self.less is None else -self.less)

    def __sub__(self, other: ArmDirections) -> ArmDirections:
        """Of actions, each less another one or all less a single one."""
        assert self.less is None
        assert other.less is None
        arms = np.broadcast_to(other.arms, self.arms.shape)
        return ArmDirections(self.arms, self.own, ArmDirections(arms, other.own))

    def at(self, places: ArmNumbers) -> Any:
        """The directions of some actions in the spaces of their arms, the other ones that they are less left out."""
        return self.own[np.zeros(len(places), dtype=np.int64)] if self.is_shared else self.own[places]

    def by_arm(self) -> list[tuple[int, ArmNumbers]]:
        """Each arm that occurs, and the places of its actions."""
        if len(self.arms) < 2:
            return [(arm, np.zeros(1, dtype=np.int64)) for arm in self.arms.tolist()]
        if not len(self.arms):
            return []
        order = np.argsort(self.arms, kind="stable")
        arms, first = np.unique(self.arms[order], return_index=True)
        return list(zip(arms.tolist(), np.split(order, first[1:]), strict=True))

    def apart(self) -> tuple[ArmNumbers, ArmNumbers]:
        """The places of differences between actions of one arm, and of those between two arms."""
        assert self.less is not None
        same = self.arms == self.less.arms
        return np.flatnonzero(same), np.flatnonzero(~same)


def flat(directions: ArmDirections) -> Array:
    """The directions as an array (n, d), for features."""
    own: Array = directions.own
    return np.broadcast_to(own, (len(directions), own.shape[1])) if directions.is_shared else own
