"""Journals keep the events of a policy, so that another process, or the same one after a crash, can follow."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, runtime_checkable

from mixbandit._checks import instance_of, shown
from mixbandit._locks import Lock, locked
from mixbandit.bandits.events import Event, Refuted, Settings
from mixbandit.bandits.state import State
from mixbandit.errors import DamagedState, InvalidInput


@runtime_checkable
class Journal(Protocol):
    """Events in the order in which they happened, numbered from 0 without gaps."""

    def append(self, events: Sequence[Event]) -> None:
        """Keep these events, all or none."""
        ...

    def since(self, number: int) -> Iterable[Event]:
        """The events from a number on."""
        ...


class MemoryJournal:
    """A journal in memory."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self._events, self.lock = list(events), Lock()

    def __len__(self) -> int:
        return len(self._events)

    def __repr__(self) -> str:
        return f"MemoryJournal({len(self)} events)"

    @locked
    def append(self, events: Sequence[Event]) -> None:
        self._events.extend(events)

    @locked
    def since(self, number: int) -> list[Event]:
        return self._events[number:]


class Recorded:
    """The state of a policy, with the journal that has the events behind it, if it has one."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.journal: Journal | None = None

    def put(self, state: State) -> None:
        """Another state, which no event leads to; InvalidInput where there is a journal."""
        if self.journal is not None:
            raise InvalidInput(
                "a policy with a journal cannot be put into another state, which its events would not lead to: use "
                "policy.at(state) for copies and what-ifs"
            )
        self.state = state

    def commit(self, state: State, events: Callable[..., list[Event]], *arguments: Any) -> None:
        """The state after some events, which `events` makes of its arguments if there is a journal to keep them."""
        if self.journal is not None:
            happened = events(*arguments)
            if state.refuted and not self.state.refuted and not any(isinstance(e, Refuted) for e in happened):
                happened.append(Refuted(time.time()))
            self.journal.append(happened)
            state = state._replace(seen=self.state.seen + len(happened))
        self.state = state

    def follow(self, journal: Journal, settings: Settings) -> None:
        """Apply the events of a journal that are not in the state yet, and keep further ones in it."""
        instance_of(journal, Journal, "journal", "a journal such as MemoryJournal(), with append and since")
        state = self.state
        for event in journal.since(state.seen):
            if not isinstance(event, Event):
                raise DamagedState(f"event {state.seen} of the journal is {shown(event)}")
            state = event.after(settings, state)._replace(seen=state.seen + 1)
        self.state, self.journal = state, journal
