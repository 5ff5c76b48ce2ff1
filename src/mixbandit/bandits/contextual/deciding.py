"""Decisions in context: from a state and contexts to choices, events and the next state."""

from __future__ import annotations

import functools
import hashlib
from typing import Any, NamedTuple

from mixbandit.bandits.contextual.choice import ContextualChoice
from mixbandit.bandits.contextual.control import Mixing
from mixbandit.bandits.contextual.events import DecidedInContext
from mixbandit.bandits.contextual.roster import Numbers, Roster
from mixbandit.bandits.contextual.state import State
from mixbandit.bandits.contextual.waiting import Waiting
from mixbandit.bandits.rules import NO_BELIEF, ActingRule, View, as_shares
from mixbandit.errors import InvalidInput
from mixbandit.features import Context, ContextFeatures
from mixbandit.search import Selection, Stream

# Decisions of a batch are scored together up to this many arms in all.
_MOST_SCORES = 2**20


class Draws:
    """The random numbers of decisions: those of each are a function of the seed and of what names the decision.

    In a journal of its own that is its number, so that a seed gives the same decisions again; in one that is passed in
    it is its id, so that no two processes share random numbers.
    """

    def __init__(self, seed: int, *, by_id: bool) -> None:
        self.seed, self.by_id = seed, by_id
        self._hash = hashlib.blake2b(key=seed.to_bytes(8, "little"), digest_size=8)

    def __reduce__(self) -> Any:
        return functools.partial(Draws, by_id=self.by_id), (self.seed,)

    def uniform(self, name: str, number: int) -> float:
        """A number in [0, 1), to draw the arm with. A hash takes a tenth of the time of a new generator."""
        drawn = self._hash.copy()
        drawn.update(name.encode() if self.by_id else b"%d" % number)
        return (int.from_bytes(drawn.digest(), "little") >> 11) * 2.0**-53

    def stream(self, name: str, number: int) -> Stream:
        """The random numbers of the rule."""
        return Stream((self.seed, *name.encode()) if self.by_id else (self.seed, number))


class Terms(NamedTuple):
    """How decisions of one call are made."""

    numbers: Numbers  # of the eligible arms
    rule: ActingRule
    mixing: Mixing
    draws: Draws
    token: str  # the first part of ids
    now: float
    encoder: ContextFeatures  # what describes contexts for storage


class _Part(NamedTuple):
    """Contexts in a row that have the same scale."""

    features: ContextFeatures  # having seen all of them
    contexts: list[Context]


def decide(state: State, context: Any, terms: Terms) -> tuple[ContextualChoice, DecidedInContext, State]:
    """Choose an arm in a context."""
    read, number = state.features.read(context), state.counts.decided
    features = state.features.after(read)
    state = state.seeing(features)
    row, name = features.row(read), f"{terms.token}-{number}"
    offer = state.offer(row, terms.numbers, state.roster.names(terms.numbers))
    view = View(NO_BELIEF, number + 1, state.predictor)
    found = terms.rule.select(view, offer, terms.draws.stream(name, number))
    choice, event = _drawn(found, read, name, number, state.seen, state.roster, terms)
    return choice, event, state.deciding(features, (Waiting(event, row, features.version),))


def decide_many(
    state: State, contexts: list[Any], terms: Terms
) -> tuple[list[ContextualChoice], list[DecidedInContext], State]:
    """`decide` in several contexts, one after the other: the same, bit for bit."""
    choices: list[ContextualChoice] = []
    events: list[DecidedInContext] = []
    numbers, labels = terms.numbers, state.roster.names(terms.numbers)
    for part in _parts(state.features, contexts, max(_MOST_SCORES // len(numbers), 1)):
        state = state.seeing(part.features)
        rows = part.features.rows(part.contexts)
        offers = [state.offer(row, numbers, labels) for row in rows]
        first, version, waiting = state.counts.decided, part.features.version, []
        names = [f"{terms.token}-{number}" for number in range(first, first + len(rows))]
        streams = [terms.draws.stream(name, number) for number, name in enumerate(names, first)]
        selected = terms.rule.select_each(View(NO_BELIEF, first + 1, state.predictor), offers, streams)
        for i, (name, read, row, found) in enumerate(zip(names, part.contexts, rows, selected, strict=True)):
            choice, event = _drawn(found, read, name, first + i, state.seen + i, state.roster, terms)
            choices.append(choice)
            events.append(event)
            waiting.append(Waiting(event, row, version))
        state = state.deciding(part.features, waiting)
    return choices, events, state


def _drawn(
    found: Selection, context: Context, name: str, number: int, as_of: int, roster: Roster, terms: Terms
) -> tuple[ContextualChoice, DecidedInContext]:
    """An arm, drawn from what the rule selected."""
    numbers = terms.numbers
    shares = as_shares(found, len(numbers))
    if not found.marginal:
        raise InvalidInput(f"{terms.rule.name} does not say how probable its choices are")
    shares, place, group = terms.mixing.drawn(shares, terms.draws.uniform(name, number))
    offered = None if numbers is roster.everyone else numbers
    arm = numbers.item(place)
    label = roster.labels[arm]
    event = DecidedInContext(name, terms.now, context, arm, label, offered, shares, as_of, group, terms.encoder)
    return ContextualChoice(event, place, roster, numbers), event


def _parts(features: ContextFeatures, contexts: list[Any], most: int) -> list[_Part]:
    """The contexts, read one after the other as `features` see them, up to `most` in a part."""
    parts: list[_Part] = []
    for context in contexts:
        found = features.read(context)
        seen = features.after(found)
        if parts and seen.version == features.version and len(parts[-1].contexts) < most:
            parts[-1].contexts.append(found)
            parts[-1] = _Part(seen, parts[-1].contexts)
        else:
            parts.append(_Part(seen, [found]))
        features = seen
    return parts
