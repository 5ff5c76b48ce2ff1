"""What happens to a contextual bandit, as values: its state is its settings with these applied in turn."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np

from mixbandit._checks import as_label, as_text, finite, shown
from mixbandit._schema import Since, count, list_of, one_of_these, optional, real, record
from mixbandit.bandits.choice import number_of
from mixbandit.bandits.contextual.control import CONTROL, TREATMENT, Control
from mixbandit.bandits.contextual.roster import Numbers, Roster, known, place_of
from mixbandit.bandits.contextual.state import State
from mixbandit.bandits.contextual.waiting import Waiting, find
from mixbandit.bandits.events import Event
from mixbandit.errors import DamagedState, InvalidInput
from mixbandit.features import Context, ContextFeatures
from mixbandit.predictors import Predictor
from mixbandit.search import SHARES, Shares

_TIME = real(finite)


class Settings(Protocol):
    """What of a contextual bandit never changes and events need."""

    reward_range: tuple[float, float]

    control: Control | None

    @property
    def origin(self) -> tuple[Roster, ContextFeatures, Predictor]: ...


def anything(value: Any, where: str) -> Any:
    """A context as it is stored; the features of the bandit check it."""
    return value


def label(value: Any, where: str) -> Hashable:
    """A label of an arm as it is stored."""
    try:
        return as_label(value)
    except InvalidInput as error:
        raise InvalidInput(f"{where}: {error}") from None


class ContextualEvent(Event):
    """Base of these events. What a context looks like, only the features of the bandit know."""

    def after(self, settings: Settings, state: State) -> State:  # type: ignore[override]
        """The state after it."""
        raise NotImplementedError

    def bound(self, settings: Settings, state: State) -> ContextualEvent:
        """The event as code uses it, also if it comes from storage, in the state that it follows."""
        return self


@dataclass(frozen=True, eq=False, init=False)
class DecidedInContext(ContextualEvent):
    """An arm was drawn from stated probabilities."""

    kind: ClassVar[str] = "decided in context"
    schema = record({
        "id": as_text, "time": _TIME, "context": anything, "arm": count, "label": label,
        "offered": optional(list_of(count)), "shares": SHARES, "as_of": count,
        "group": Since(optional(one_of_these(CONTROL, TREATMENT))),
    })  # fmt: skip

    id: str
    time: float
    context: Context
    arm: int  # its number
    label: Hashable  # of the arm
    offered: Numbers | None  # the numbers of the arms that were eligible; None: all that were there
    shares: Shares  # the probabilities of the eligible arms, in the order of their numbers
    as_of: int  # how many events were known
    group: str | None  # CONTROL or TREATMENT; None where there was no control
    encoder: ContextFeatures | None  # what describes the context for storage; None: it is as it was stored

    def __init__(
        self,
        id: str,  # noqa: A002 - the name of the field
        time: float,
        context: Context,
        arm: int,
        label: Hashable,
        offered: Numbers | None,
        shares: Shares,
        as_of: int,
        group: str | None = None,
        encoder: ContextFeatures | None = None,
    ) -> None:
        own = self.__dict__  # frozen to others
        own["id"], own["time"], own["context"], own["arm"], own["label"] = id, time, context, arm, label
        own["offered"], own["shares"], own["as_of"] = offered, shares, as_of
        own["group"], own["encoder"] = group, encoder

    def after(self, settings: Settings, state: State) -> State:  # type: ignore[override]
        if self.encoder is not settings.origin[1]:
            return self.bound(settings, state).after(settings, state)
        if number_of(self.id) != state.counts.decided:
            raise DamagedState(f"decision {self.id} is not the next one: {state.counts.decided} were made before it")
        self._check(settings, state)
        features = state.features.after(self.context)
        return state.seeing(features).deciding(features, (Waiting(self, None, features.version),))

    def settings(self) -> dict[str, Any]:
        return {
            "id": self.id, "time": self.time, "context": self._plain(), "arm": self.arm, "label": self.label,
            "offered": None if self.offered is None else self.offered.tolist(),
            "shares": self.shares.state_dict(), "as_of": self.as_of, "group": self.group,
        }  # fmt: skip

    @classmethod
    def keywords(cls, stored: Mapping[str, Any]) -> dict[str, Any]:
        given, shares = {name: stored[name] for name in cls.schema.fields}, Shares.from_state_dict(stored["shares"])
        offered = None if stored["offered"] is None else np.array(stored["offered"], dtype=np.int64)
        return {**given, "shares": shares, "offered": offered}

    def bound(self, settings: Settings, state: State) -> DecidedInContext:
        return replace(self, context=self.read_by(settings, state.features), encoder=settings.origin[1])

    def read_by(self, settings: Settings, features: ContextFeatures) -> Context:
        """The context, for features that have seen those of all decisions before it.

        It is read again if it was stored, or read by the features of another bandit.
        """
        return self.context if self.encoder is settings.origin[1] else features.unplain(self._plain())

    def _plain(self) -> Any:
        return self.context if self.encoder is None else self.encoder.plain(self.context)

    def _check(self, settings: Settings, state: State) -> None:
        """Refuse a decision that cannot have been made in this state."""
        everyone, offered = state.roster.everyone, self.offered
        fits = self.as_of <= state.seen
        if offered is not None:
            fits = fits and bool(np.isin(offered, everyone).all() and (np.diff(offered) > 0).all())
        numbers = everyone if offered is None else offered
        place = place_of(self.arm, numbers)
        fits = fits and len(numbers) == self.shares.size
        fits = fits and known(state.roster.numbers, self.label) == self.arm
        control = None if settings.control is None else known(state.roster.numbers, settings.control.arm)
        if (self.group is not None) != (control is not None and control in numbers):
            raise DamagedState(f"decision {self.id} was made with another control")
        fits = fits and (self.group != CONTROL or self.arm == control)
        if not fits or place is None or not self.shares.of_arm(place) > 0.0:
            raise DamagedState(f"decision {self.id} was made among other arms than there were, or in another order")


@dataclass(frozen=True, eq=False, init=False)
class RewardTold(ContextualEvent):
    """The reward of a decision came."""

    kind: ClassVar[str] = "reward"
    schema = record({"id": as_text, "time": _TIME, "value": real(finite)})

    id: str
    time: float
    value: float

    def __init__(self, id: str, time: float, value: float) -> None:  # noqa: A002 - the name of the field
        own = self.__dict__  # frozen to others
        own["id"], own["time"], own["value"] = id, time, value

    def after(self, settings: Settings, state: State) -> State:  # type: ignore[override]
        reward = _in_unit(settings, self.value)
        return state.rewarded(*_opened(state, self.id), reward)


@dataclass(frozen=True, eq=False)
class DecisionCancelled(ContextualEvent):
    """The reward of a decision will never come."""

    kind: ClassVar[str] = "decision cancelled"
    schema = record({"id": as_text, "time": _TIME})

    id: str
    time: float

    def after(self, settings: Settings, state: State) -> State:  # type: ignore[override]
        return state.giving_up(_opened(state, self.id)[0])


@dataclass(frozen=True, eq=False)
class ArmAdded(ContextualEvent):
    """An arm came, or came back."""

    kind: ClassVar[str] = "arm added"
    schema = record({"time": _TIME, "label": label, "features": anything})

    time: float
    label: Hashable
    features: Any = None  # in the form in which they are stored

    def after(self, settings: Settings, state: State) -> State:  # type: ignore[override]
        return state.with_roster(state.roster.added(self.label, self.features))


@dataclass(frozen=True, eq=False)
class ArmRemoved(ContextualEvent):
    """An arm went: it is not chosen any more, and rewards that are still due are learnt."""

    kind: ClassVar[str] = "arm removed"
    schema = record({"time": _TIME, "label": label})

    time: float
    label: Hashable

    def after(self, settings: Settings, state: State) -> State:  # type: ignore[override]
        return state.with_roster(state.roster.removed(self.label))


def rewarded(settings: Settings, state: State, rewards: Sequence[RewardTold]) -> State:
    """The state after some rewards came, one after the other: the same as one event at a time, and faster."""
    learnt = [_in_unit(settings, each.value) for each in rewards]
    found = [(*_opened(state, each.id), reward) for each, reward in zip(rewards, learnt, strict=True)]
    if len({number for number, _, _ in found}) < len(found):
        raise InvalidInput("a decision occurs twice among the rewards")
    return state.rewarded_many(found)


def folded(settings: Settings, state: State, events: Iterable[Any]) -> State:
    """The state after some events; DamagedState if they do not fit."""
    for is_reward, run in itertools.groupby(events, lambda event: type(event) is RewardTold):
        try:
            if is_reward:
                state = rewarded(settings, state, list(run))
            for event in () if is_reward else run:
                if not isinstance(event, ContextualEvent):
                    raise DamagedState(f"event {state.seen} of the journal is {shown(event)}")
                state = event.after(settings, state)
        except InvalidInput as error:
            raise DamagedState(f"event {state.seen} of the journal does not fit this bandit: {error}") from error
    return state


def decision(events: Iterable[Any], name: str) -> DecidedInContext:
    """The decision with this id; InvalidInput if there is none."""
    for event in events:
        if isinstance(event, DecidedInContext) and event.id == name:
            return event
    raise InvalidInput(f"decision {shown(name)} is unknown: made by another bandit, or lost")


def _in_unit(settings: Settings, reward: float) -> float:
    """A reward as predictors learn it: in [0, 1], whatever the range."""
    low, high = settings.reward_range
    if not low <= reward <= high:
        raise InvalidInput(f"rewards must lie in reward_range=({low:g}, {high:g}), got {reward:g}")
    return (reward - low) / (high - low)


def _opened(state: State, name: str) -> tuple[int, Waiting]:
    """The number of the open decision with this id, and the decision; InvalidInput if there is none."""
    number = number_of(name)
    found = find(state.open, number, name)
    if found is None or number is None:
        problem = "is unknown: made by another bandit, or lost, being made after the state that was loaded"
        if number is not None and number < state.counts.decided:
            problem = f"has already been told or cancelled, or {problem}"
        raise InvalidInput(f"decision {shown(name)} {problem}")
    return number, found
