"""What a contextual bandit chose, and with what probability."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Any

from mixbandit._checks import Array
from mixbandit._lazy import setting
from mixbandit.bandits.contextual.events import DecidedInContext
from mixbandit.bandits.contextual.roster import Numbers, Roster, place_of
from mixbandit.search import Shares


class Probabilities(Mapping[Hashable, float]):
    """The probability of every arm that was eligible, by label; as an array, in the order in which the arms came."""

    __slots__ = ("_numbers", "_roster", "_shares")

    def __init__(self, roster: Roster, numbers: Numbers, shares: Shares) -> None:
        self._roster, self._numbers, self._shares = roster, numbers, shares

    def __getitem__(self, label: Hashable) -> float:
        place = place_of(self._roster.numbers[label], self._numbers)
        if place is None:
            raise KeyError(label)
        return self._shares.of_arm(place)

    def __iter__(self) -> Iterator[Hashable]:
        return (self._roster.labels[number] for number in self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        found: Array = self._shares.array()
        return found if dtype is None else found.astype(dtype)

    def __repr__(self) -> str:
        return f"Probabilities({dict(self)})"


class ContextualChoice:
    """A decision: play `arm`, then tell its reward by `id`."""

    __slots__ = ("_event", "_numbers", "_place", "_roster")

    def __init__(self, event: DecidedInContext, place: int, roster: Roster, numbers: Numbers) -> None:
        self._event, self._place, self._roster, self._numbers = event, place, roster, numbers

    id: str = setting("_event.id", "A name that is never given to another decision.")
    time: float = setting("_event.time", "When it was decided, in seconds since 1970 (UTC).")
    as_of: int = setting("_event.as_of", "How many events were known when it was made.")
    group: str | None = setting("_event.group", '"control" or "treatment"; None where there was no control.')

    @property
    def arm(self) -> Hashable:
        """The label of the arm to play."""
        return self._roster.labels[self._event.arm]

    @property
    def probability(self) -> float:
        """The probability with which this arm was chosen, given the context and everything before."""
        return self._event.shares.of_arm(self._place)

    @property
    def probabilities(self) -> Probabilities:
        """The probabilities of all arms that were eligible, by label."""
        return Probabilities(self._roster, self._numbers, self._event.shares)

    def __repr__(self) -> str:
        return f"ContextualChoice(id={self.id!r}, arm={self.arm!r}, probability={self.probability:.4g})"
