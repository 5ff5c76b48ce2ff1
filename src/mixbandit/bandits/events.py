"""What happens to a policy, as values. Its state is its settings with these applied, one after the other.

So undo, copies, late rewards, another process and replay need no code of their own: they are other ways to apply the
same events. A choice holds more than its event, such as bounds, which follow from the state it was made in.
"""

from __future__ import annotations

import abc
import time
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from mixbandit._checks import Array, as_text, finite, flag, positive
from mixbandit._schema import array, count, optional, real, record, scalar
from mixbandit.actions import REGIONS, Region, offered, storable_label
from mixbandit.bandits import choosing
from mixbandit.bandits.choice import Choice, fixed
from mixbandit.bandits.choosing import Picked, Turn
from mixbandit.bandits.rules import ActingRule
from mixbandit.bandits.state import State, parse_told
from mixbandit.errors import DamagedState
from mixbandit.search import SHARES, Shares
from mixbandit.sequences import Rewards, checked_again
from mixbandit.storage import Family, Storable

_TIME = real(finite)


class Settings(Protocol):
    """What of a policy never changes."""

    rule: ActingRule
    strict: bool
    keep_history: bool

    @property
    def actions(self) -> Region | None: ...


class Event(Storable, abc.ABC):
    """Something that happened at a `time`, in seconds since 1970 (UTC)."""

    family = Family("an event", "event")

    @abc.abstractmethod
    def after(self, settings: Settings, state: State) -> State:
        """The state after it."""


@dataclass(frozen=True, eq=False)
class Decided(Event):
    """A choice was made among what was `offered` in a `context`: an arm, or an action of a box."""

    kind = "decided"
    schema = record(
        {
            "id": as_text,
            "time": _TIME,
            "row": array(None),
            "arm": optional(count),
            "label": scalar,
            "context": optional(array(None)),
            "offered": optional(REGIONS),
            "probabilities": optional(SHARES),
            "optimum": optional(real(finite)),
            "ends": optional(array(None, None)),
            "as_of": count,
        }
    )

    id: str
    time: float
    row: Array  # context and action
    arm: int | None = None
    label: Hashable = None
    context: Array | None = None
    offered: Region | None = None  # the actions that could be chosen, without the context; None: the policy's own
    probabilities: Shares | None = None  # of all arms that could be chosen; None where nobody knows them
    optimum: float | None = None  # the largest upper bound on φᵀθ of what could be chosen, where regret is tracked
    ends: Array | None = None  # on a box: where the searches ended, which the next one may start from
    as_of: int = 0  # how many events were known

    @classmethod
    def of(cls, choice: Choice, offered: Region | None, as_of: int, ends: Array | None = None) -> Decided:
        """The event of a choice."""
        assert choice.time is not None
        name, row, context = str(choice.id), choice.row, choice.context
        shares, optimum = choice.shares, choice.optimum
        return cls(name, choice.time, row, choice.index, choice.label, context, offered, shares, optimum, ends, as_of)

    def after(self, settings: Settings, state: State) -> State:
        run, _, number = self.id.rpartition("-")
        if number != str(state.rounds):
            raise DamagedState(f"decision {self.id} is not the next one: {state.rounds} were made before it")
        width = state.moment.model.dim_in or len(self.row)
        region, vector = offered(settings.actions, self.offered, self.context, width, "offered")
        self._check(region)
        turn = Turn(region, vector, None, settings.keep_history, region is settings.actions)
        picked = Picked(self.row, self.arm, self.probabilities)
        choice = choosing.made(state, turn, state.rounds, picked, settings.rule, self.optimum, run, self.time)
        warm = state.warm if self.ends is None else self.ends
        return choosing.with_choices(state, turn, [choice], state.anticipated, warm)

    def _check(self, region: Region) -> None:
        """Refuse a decision among other actions than these."""
        fits, arm, shares = (self.arm is None) == (region.rows is None), self.arm, self.probabilities
        if fits and region.rows is not None and arm is not None:
            fits = arm < len(region.rows) and np.array_equal(region.rows[arm], self.row)
            fits = fits and self.label == (None if region.labels is None else region.labels[arm])
            fits = fits and (shares is None or (shares.size == len(region.rows) and shares.of_arm(arm) > 0.0))
        if not fits:
            raise DamagedState(f"decision {self.id} was made among other actions than {region!r}")
        region.index_of(self.row)

    def settings(self) -> dict[str, Any]:
        shares, label = self.probabilities, storable_label(self.label)
        return {**super().settings(), "label": label, "probabilities": None if shares is None else shares.state_dict()}

    @classmethod
    def keywords(cls, stored: Mapping[str, Any]) -> dict[str, Any]:
        known, shares = super().keywords(stored), stored["probabilities"]
        shares = None if shares is None else Shares.from_state_dict(shares)
        return {**known, "row": fixed(known["row"]), "probabilities": shares}


@dataclass(frozen=True, eq=False)
class Told(Event):
    """The reward of a choice came."""

    kind = "told"
    schema = record({"id": as_text, "time": _TIME, "value": real(finite), "sigma": optional(real(positive))})

    id: str
    time: float
    value: float
    sigma: float | None = None  # a noise level of its own

    def after(self, settings: Settings, state: State) -> State:
        told = parse_told(state, self.id, self.value, self.sigma)
        return state.holding(*told) if settings.strict else state.told(*told)


@dataclass(frozen=True, eq=False)
class Cancelled(Event):
    """The reward of a choice will never come; `played` says whether it was played all the same."""

    kind = "cancelled"
    schema = record({"id": as_text, "time": _TIME, "played": flag})

    id: str
    time: float
    played: bool = False

    def after(self, settings: Settings, state: State) -> State:
        return state.giving_up(state.awaited(self.id, held=True), played=self.played)


@dataclass(frozen=True, eq=False)
class Learnt(Event):
    """Rewards came that belong to no choice: a log, another bandit."""

    kind = "learnt"
    schema = record({"time": _TIME, "rows": array(None, None), "values": array(None), "weights": optional(array(None))})

    time: float
    rows: Array
    values: Array
    weights: Array | None = None  # σ/σ_k

    def after(self, settings: Settings, state: State) -> State:
        return state.absorbed(checked_again(state.moment, Rewards(self.rows, self.values, self.weights)))


@dataclass(frozen=True, eq=False)
class Refuted(Event):
    """The data were seen to refute the assumptions, which stands for good."""

    kind = "refuted"
    schema = record({"time": _TIME})

    time: float

    def after(self, settings: Settings, state: State) -> State:
        return state._replace(refuted=True)


def decisions(
    choices: list[Choice], offered: Iterable[Region | None], before: State, ends: Array | None = None
) -> list[Event]:
    """The events of choices made in the state `before`; `ends`: where the last search ended."""
    found: list[Event] = []
    for choice, region in zip(choices, offered, strict=False):
        found.append(Decided.of(choice, region, before.seen))
    if choices and choices[0].index is None and ends is not before.warm:
        found[-1] = Decided.of(choices[-1], found[-1].offered, before.seen, ends)  # type: ignore[attr-defined]
    return found


def rewards_of(choices: list[Choice], rewards: Array, levels: list[float | None]) -> list[Event]:
    """The events of rewards that are told now."""
    now = time.time()
    told = zip(choices, rewards.tolist(), levels, strict=True)
    return [Told(str(choice.id), now, reward, level) for choice, reward, level in told]


def cancelled(choice: Choice, played: bool) -> list[Event]:
    """The event of a choice that is given up now."""
    return [Cancelled(str(choice.id), time.time(), played)]


def learnt(rewards: Rewards) -> list[Event]:
    """The event of rewards that are learnt now and belong to no choice."""
    return [Learnt(time.time(), *rewards)]
