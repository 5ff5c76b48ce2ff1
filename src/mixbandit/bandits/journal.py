"""Journals keep the events of a policy, so that another process, or the same one after a crash, can follow."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, cast, runtime_checkable

from mixbandit._checks import instance_of, shown
from mixbandit._locks import Lock, Method, locked
from mixbandit.bandits.events import Event, Refuted, Settings
from mixbandit.bandits.state import State
from mixbandit.errors import DamagedState, InvalidInput


@runtime_checkable
class Journal(Protocol):
    """Events in the order in which they happened, numbered from 0 without gaps."""

    def append(self, events: Sequence[Event], number: int) -> bool:
        """Keep these events, numbered from `number`, all or none. Return False, keeping none, if that number is taken.

        Of several processes that append at once, one succeeds; the others learn what it appended and decide again.
        """
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

    def append(self, events: Sequence[Event], number: int) -> bool:
        with self.lock:
            if number != len(self._events):
                return False
            self._events.extend(events)
            return True

    @locked
    def since(self, number: int) -> list[Event]:
        return self._events[number:]


class Overtaken(Exception):
    """Others have appended to the journal what this policy does not know."""


class Recorded:
    """The state of a policy, with the journal that has the events behind it, if it has one."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.journal: Journal | None = None
        self.busy = False  # within a call that begins again if it is overtaken

    def put(self, state: State) -> None:
        """Another state, which no event leads to; InvalidInput where there is a journal."""
        if self.journal is not None:
            raise InvalidInput(
                "a policy with a journal cannot be put into another state, which its events would not lead to: use "
                "policy.at(state) for copies and what-ifs"
            )
        self.state = state

    def commit(self, state: State, events: Callable[..., list[Event]], *arguments: Any) -> None:
        """The state after some events, which `events` makes of its arguments if there is a journal to keep them.

        Overtaken, with nothing changed, if the journal has others.
        """
        if self.journal is not None:
            happened = events(*arguments)
            if state.refuted and not self.state.refuted and not any(isinstance(e, Refuted) for e in happened):
                happened.append(Refuted(time.time()))
            if not self.journal.append(happened, self.state.seen):
                raise Overtaken
            state = state._replace(seen=self.state.seen + len(happened))
        self.state = state

    def follow(self, journal: Journal, settings: Settings) -> None:
        """Apply the events of a journal that are not in the state yet, and keep further ones in it."""
        expected = "a journal such as MemoryJournal(), with append and since"
        if isinstance(instance_of(journal, Journal, "journal", expected), type):
            raise InvalidInput(f"journal must be {expected}, got the class {shown(journal)}")
        state = self.state
        if state.rounds and not state.seen:
            raise InvalidInput("this policy has decided without a journal, whose events would not lead to its state")
        for event in journal.since(state.seen):
            if not isinstance(event, Event):
                raise DamagedState(f"event {state.seen} of the journal is {shown(event)}")
            try:
                state = event.after(settings, state)._replace(seen=state.seen + 1)
            except InvalidInput as error:
                raise DamagedState(f"event {state.seen} of the journal does not fit this policy: {error}") from error
        self.state, self.journal = state, journal


def recorded(method: Method) -> Method:
    """A method of a policy that one thread at a time can be in.

    With a journal it first learns what others appended, and begins again if they append meanwhile.
    """

    @functools.wraps(method)
    def alone(self: Any, *args: Any, **options: Any) -> Any:
        with self.lock:
            kept: Recorded = self._recorded
            if kept.journal is None or kept.busy:
                return method(self, *args, **options)
            kept.busy = True
            try:
                return _keeping_up(kept, self, lambda: method(self, *args, **options))
            finally:
                kept.busy = False

    return cast(Method, alone)


def _keeping_up(kept: Recorded, settings: Settings, call: Callable[[], Any]) -> Any:
    """What the call returns, once it is not overtaken."""
    assert kept.journal is not None
    kept.follow(kept.journal, settings)
    while True:
        known = kept.state.seen
        with contextlib.suppress(Overtaken):
            return call()
        kept.follow(kept.journal, settings)
        if kept.state.seen == known:
            others = f"the {known} events that this policy knows: it has others"
            raise DamagedState(f"the journal takes nothing after {others}")
