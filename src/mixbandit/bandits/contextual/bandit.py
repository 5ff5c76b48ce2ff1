"""The front: decide in context, learn from rewards, and say with what probability everything was decided.

State is a fold of events: `ask` and `tell` append to the journal, and then apply what they appended. A decision is made
from the state that the events so far lead to, by random numbers of its own.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from mixbandit._checks import (
    as_generator,
    as_items,
    as_label,
    as_path,
    as_range,
    as_reward,
    as_text,
    as_vector,
    instance_of,
    nonnegative,
    positive,
    probability,
    shown,
)
from mixbandit._files import write_state
from mixbandit._lazy import setting
from mixbandit._locks import Lock, Runs, locked
from mixbandit.bandits.contextual import stored, waiting
from mixbandit.bandits.contextual.choice import ContextualChoice
from mixbandit.bandits.contextual.control import Control, Mixing, check_control
from mixbandit.bandits.contextual.deciding import Draws, Terms, decide, decide_many
from mixbandit.bandits.contextual.events import (
    ArmAdded,
    ArmRemoved,
    ContextualEvent,
    DecisionCancelled,
    RewardTold,
    decision,
    folded,
    rewarded,
)
from mixbandit.bandits.contextual.explanation import Explanation, explained
from mixbandit.bandits.contextual.intervals import Intervals, ModelBased
from mixbandit.bandits.contextual.roster import Roster, as_labels, as_roster
from mixbandit.bandits.contextual.state import State
from mixbandit.bandits.journal import Journal, MemoryJournal
from mixbandit.bandits.rules import NO_BELIEF, ActingRule, Optimistic
from mixbandit.errors import DamagedState, InvalidInput, reading
from mixbandit.features import ContextFeatures, as_context_features, contexts_of
from mixbandit.predictors import Predictor, RidgePerArm, SharedRidge
from mixbandit.storage import FILES, Family, Storable, Stored

# Defaults that earned more than others on the development tables of benchmarks/contextual.
_RIDGE, _SCALE = 1.0, 0.5
# Models of `interval` that are kept, each with what it has learnt.
_MOST_MODELS = 4


class ContextualBandit(Storable):
    """Choose among labelled arms in a context, and learn from the rewards.

    `arms` are labels, or a mapping from labels to features of arms. A context is a dict, a Series, a row of a
    DataFrame or a vector; numbers are scaled by what was seen, texts, booleans and missing values are categories
    (`features=None`); or pass a `NamedContexts`, a fitted scikit-learn transformer, or a feature map. Every single
    reward lies in `reward_range`; others are refused.

    It acts on a `predictor` by a `rule`; by default a ridge regression per arm (for all arms together, if they have
    features), with optimism. `floor` is spread evenly over the eligible arms, so that each is chosen with probability
    floor/K at least and the log can be evaluated later; 0 allows certainty. A `control`, such as `Control("large",
    share=0.05)`, is the arm that a random share of the decisions plays, whatever the rule says. Nothing that it acts on
    is proven; what `interval` says is, under the assumptions that it states, with probability 1 − `delta`.

    Choices are reproducible with `rng` (a seed); ids are never issued twice, whatever the seed.
    """

    family, kind, schema = Family("a contextual bandit", "bandit", within=FILES), "ContextualBandit", stored.BANDIT

    def __init__(
        self,
        arms: Iterable[Hashable] | Mapping[Hashable, Any] | int,
        reward_range: tuple[float, float] = (0.0, 1.0),
        *,
        features: Any = None,
        predictor: Predictor | None = None,
        rule: ActingRule | None = None,
        floor: float = 0.01,
        control: Control | None = None,
        delta: float = 0.05,
        journal: Journal | None = None,
        rng: int | np.random.Generator | None = None,
    ) -> None:
        roster = as_roster(arms)
        self.reward_range = as_range(reward_range, "reward_range")
        encoder = as_context_features(features)
        if predictor is None:
            predictor = RidgePerArm(_RIDGE) if roster.features is None else SharedRidge()
        instance_of(predictor, Predictor, "predictor", "a Predictor such as mixbandit.predictors.RidgePerArm()")
        self.rule = Optimistic(_SCALE) if rule is None else rule
        instance_of(self.rule, ActingRule, "rule", "an acting rule such as mixbandit.bandits.Optimistic()")
        self.rule.check(NO_BELIEF)
        self.floor, self.control = nonnegative(floor, "floor", 1.0), control
        if control is not None:
            expected = "None, or a mixbandit.Control such as Control(arm, share=0.05)"
            check_control(instance_of(control, Control, "control", expected), roster, self.floor)
        self.delta = probability(delta, "delta")
        self.seed = int(as_generator(rng).integers(2**63))
        self.origin = roster, encoder, predictor
        self._begin(State.start(*self.origin), MemoryJournal())
        if journal is not None:
            self._join(journal)

    def _begin(self, state: State, journal: Journal, *, by_id: bool = False) -> None:
        self._state, self._journal, self._draws = state, journal, Draws(self.seed, by_id=by_id)
        self._runs, self.lock, self._mixing = Runs(), Lock(), Mixing(self.floor, self.control)
        self._models: dict[tuple[float, float | None], ModelBased] = {}
        self._before = state  # the state in which a decision was made, most often the last one

    def _join(self, journal: Journal) -> None:
        expected = "a journal such as MemoryJournal(), with append and since"
        if isinstance(journal, type) or not isinstance(journal, Journal):
            raise InvalidInput(f"journal must be None or {expected}, got {shown(journal)}")
        self._journal, self._draws = journal, Draws(self.seed, by_id=True)
        self._catch_up()

    def __repr__(self) -> str:
        counts, roster = self._state.counts, self._state.roster
        waiting = counts.decided - counts.told - counts.cancelled
        control = "" if self.control is None else f", {100.0 * self.control.share:g} % control on {self.control.arm!r}"
        return (
            f"ContextualBandit({len(roster.active):,} arms, {counts.decided:,} decisions, {counts.told:,} rewards, "
            f"{waiting:,} open; {type(self._state.predictor).__name__}, {type(self.rule).__name__}, "
            f"floor={self.floor:g}{control})"
        )

    def __copy__(self) -> Self:
        """Another bandit in the same state, which goes on by itself.

        It draws the same random numbers as this one, unless a journal was passed to this one.
        """
        new = object.__new__(type(self))
        vars(new).update(vars(self))
        with self.lock:
            events = itertools.islice(self._journal.since(0), self._state.seen)
            new._begin(self._state, MemoryJournal(events), by_id=self._draws.by_id)
        return new

    origin: tuple[Roster, ContextFeatures, Predictor]
    """What it began with."""
    state: State = setting("_state", "All that changes, as one value.")
    journal: Journal = setting("_journal", "What keeps the events.")

    @property
    def draws_by_id(self) -> bool:
        """Whether its random numbers follow from ids, which nothing else has: so if a journal was passed in."""
        return self._draws.by_id

    @property
    @locked
    def arms(self) -> list[Hashable]:
        """The labels of the arms that can be chosen now, in the order in which they came."""
        roster = self._latest().roster
        return [roster.labels[number] for number in roster.active]

    @property
    @locked
    def open(self) -> list[str]:
        """The ids of decisions that wait for their rewards."""
        return [each.decision.id for each in waiting.values(self._latest().open)]

    def ask(self, context: Any = None, arms: Iterable[Hashable] | None = None) -> ContextualChoice:
        """Choose an arm in a context, among `arms` (labels) if not all are eligible now. On an error nothing changes.

        The choice is recorded when this returns. Choices do not wait for the rewards of earlier ones.
        """
        now, wanted = time.time(), None if arms is None else as_labels(arms)
        with self.lock:
            while True:
                state = self._latest()
                choice, event, after = decide(state, context, self._terms(state, wanted, 1, now))
                if self._kept((event,), after):
                    self._before = state
                    return choice

    @locked
    def ask_many(self, contexts: Any, arms: Iterable[Hashable] | None = None) -> list[ContextualChoice]:
        """Choose an arm in each of several contexts: a DataFrame, an array (n, d), or a list.

        The same as asking one by one. Either all choices are recorded or, on an error, none.
        """
        several, now, wanted = contexts_of(contexts), time.time(), None if arms is None else as_labels(arms)
        while several:
            state = self._latest()
            choices, events, after = decide_many(state, several, self._terms(state, wanted, len(several), now))
            if self._kept(events, after):
                return choices
        return []

    def tell(self, choice: ContextualChoice | str, reward: float) -> Self:
        """Learn the reward of a choice, given by its id or as it is, at any time and in any order, once."""
        told = RewardTold(_id_of(choice), time.time(), as_reward(reward, "reward"))
        with self.lock:
            return self._happened(told)

    @locked
    def tell_many(self, choices: Iterable[ContextualChoice | str], rewards: ArrayLike) -> Self:
        """Learn several rewards (n,): all or, on an error, none."""
        names = [_id_of(choice) for choice in as_items(choices, "choices", "a list of choices or ids")]
        values, now = as_vector(rewards, len(names), "rewards").tolist(), time.time()
        told = [RewardTold(name, now, value) for name, value in zip(names, values, strict=True)]
        while told and not self._kept(told, rewarded(self, self._latest(), told)):
            pass
        return self

    @locked
    def cancel(self, choice: ContextualChoice | str) -> Self:
        """Give up on a choice whose reward will never come. It is not learnt from, and cannot be told any more."""
        return self._happened(DecisionCancelled(_id_of(choice), time.time()))

    @locked
    def add_arm(self, label: Hashable, features: Any = None) -> Self:
        """Offer one more arm from now on; one that was removed comes back with what was learnt about it."""
        return self._happened(ArmAdded(time.time(), *self._latest().roster.checked_new(label, features)))

    @locked
    def remove_arm(self, label: Hashable) -> Self:
        """Do not choose an arm any more. Rewards of earlier choices may still be told."""
        return self._happened(ArmRemoved(time.time(), as_label(label)))

    @locked
    def interval(
        self,
        context: Any = None,
        arm: Hashable | None = None,
        *,
        norm_bound: float,
        sigma: float | None = None,
        arms: Iterable[Hashable] | None = None,
    ) -> Intervals:
        """Error bars for the expected reward of an arm, or of all eligible ones, in a context; print it to read it.

        They hold for all arms, contexts and times at once with probability 1 − `delta` if expected rewards are linear
        in the features, with ‖θ‖ ≤ `norm_bound` for each arm, and rewards are `sigma`-sub-Gaussian; by default that
        follows from `reward_range`. All norm bounds share one event, of probability 1 − `delta`; every `sigma` has its
        own. The rewards are folded in when this is asked, so that decisions do not wait for it.
        """
        self._catch_up()
        state = self._state
        if arm is not None and arms is not None:
            raise InvalidInput("pass arm, or arms for several, not both")
        wanted = None if arms is None else as_labels(arms)
        numbers = state.roster.eligible(wanted if arm is None else [arm])
        key = (positive(norm_bound, "norm_bound"), None if sigma is None else positive(sigma, "sigma"))
        model = self._models.pop(key, None) or ModelBased(self, *key)
        found = model.intervals(state, context, numbers, single=arm is not None)
        self._models = dict([*self._models.items(), (key, model)][-_MOST_MODELS:])
        return found

    @locked
    def explain(self, choice: ContextualChoice | str) -> Explanation:
        """Why a choice, given as it is or by its id, was made: print it to read it, `plot()` it to see it.

        The estimates are those of the moment of the choice. For other choices than the last one the events before it
        are gone through again, which takes as long as loading.
        """
        self._catch_up()
        event = decision(self._journal.since(0), as_text(_id_of(choice), "choice"))
        state = self._before
        if state.seen != event.as_of:
            state = folded(self, State.start(*self.origin), itertools.islice(self._journal.since(0), event.as_of))
        return explained(state, event, event.read_by(self, state.features), self.reward_range)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything, events included, to one file, atomically: `mixbandit.load` goes on from it."""
        write_state(as_path(path), self.state_dict())

    @locked
    def state_dict(self) -> dict[str, Any]:
        """Everything needed to resume, as numbers, strings, arrays, and lists and dicts of these."""
        self._catch_up()
        return stored.state_dict(self)

    @classmethod
    def restored(cls, fields: Stored, features: Any = None) -> Self:
        new = object.__new__(cls)
        for name in ("reward_range", "floor", "control", "delta", "seed"):
            setattr(new, name, fields[name])
        new.rule = fields["rule"].build()
        with reading(cls.__name__):
            new.origin = stored.beginning(fields, features)
            events, state = stored.replayed(fields["events"], new, State.start(*new.origin))
        new._begin(state, MemoryJournal(events), by_id=fields["draws_by_id"])
        return new

    def _terms(self, state: State, arms: list[Hashable] | None, count: int, now: float) -> Terms:
        """How `count` decisions are made in a state."""
        token = self._runs.token(state.counts.decided, count)
        numbers = state.roster.eligible(arms)
        mixing = self._mixing if self.control is None else self._mixing.among(state.roster, numbers)
        return Terms(numbers, self.rule, mixing, self._draws, token, now, self.origin[1])

    def _latest(self) -> State:
        """The state that the journal leads to."""
        if self._draws.by_id:  # others may have added to it
            self._catch_up()
        return self._state

    def _happened(self, event: ContextualEvent) -> Self:
        """Record an event that does not depend on the state."""
        while not self._kept((event,), event.after(self, self._latest())):
            pass
        return self

    def _kept(self, events: Sequence[ContextualEvent], after: State) -> bool:
        """Whether the journal took these events; the state after them is then the state.

        It does not if others have added to it meanwhile, or if an interrupt came after it took the last events.
        """
        known = self._state.seen
        if self._journal.append(events, known):
            self._state = after
            return True
        self._catch_up()
        if self._state.seen == known:
            raise DamagedState(f"the journal takes nothing after the {known} events that this bandit knows")
        return False

    def _catch_up(self) -> None:
        """Apply the events of the journal that are not in the state yet."""
        self._state = folded(self, self._state, self._journal.since(self._state.seen))


def _id_of(choice: Any) -> str:
    """The id of a choice, given as it is or by its id."""
    found = getattr(choice, "id", choice)
    if not isinstance(found, str):
        raise InvalidInput(f"a choice, or the id of one, is needed, got {shown(choice)}")
    return found
