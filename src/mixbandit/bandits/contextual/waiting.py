"""Decisions that wait for their rewards, by number: values, as everything in a state.

Up to a few of them are a dict, which is copied; more are a persistent map, whose steps take longer, and the same
however many there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from mixbandit._checks import Array
from mixbandit.bandits import persistent

_FEW = 32

Open = dict[int, Any] | persistent.Map
NONE: Open = {}


class Waiting(NamedTuple):
    """A decision that waits for its reward."""

    decision: Any  # the event
    row: Array | None  # its context as features of this version, if they were made
    version: int


def put(known: Open, number: int, waiting: Waiting) -> Open:
    """With a decision whose number is larger than all others."""
    if type(known) is dict:
        if len(known) < _FEW:
            return {**known, number: waiting}
        tree = persistent.EMPTY
        for each, value in known.items():
            tree = persistent.put(tree, each, value)
        known = tree
    return persistent.put(known, number, waiting)  # type: ignore[arg-type]


def drop(known: Open, number: int) -> Open:
    """Without a decision."""
    if type(known) is dict:
        left = known.copy()
        del left[number]
        return left
    return persistent.drop(known, number)  # type: ignore[arg-type]


def find(known: Open, number: int | None, name: str) -> Waiting | None:
    """The decision with this number and id, or None."""
    if number is None:
        return None
    found: Waiting | None = known.get(number) if type(known) is dict else persistent.get(known, number)  # type: ignore[arg-type]
    return found if found is not None and found.decision.id == name else None


def values(known: Open) -> Iterator[Waiting]:
    """All of them, in the order of their numbers."""
    return iter(known.values()) if type(known) is dict else persistent.values(known)  # type: ignore[arg-type]


def overtakes(known: Open, number: int) -> bool:
    """Whether an earlier decision than this one waits."""
    numbers = iter(known) if type(known) is dict else (each for each, _ in persistent.items(known))  # type: ignore[arg-type]
    return next(numbers, number) < number
