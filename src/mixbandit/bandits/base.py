"""What every policy shares: ask, tell, late and missing rewards, certificates, regret bounds, state.

A policy keeps acting and reporting apart. It *acts* on whatever it likes, pending choices included; its rule says how.
It *reports* bounds from told rewards only, and those hold whatever it does. All that changes is one frozen state.
"""

from __future__ import annotations

import dataclasses
import itertools
import operator
import os
import time
from collections.abc import Sequence
from typing import Any, Self, overload

import numpy as np
from numpy.typing import ArrayLike

from mixbandit._checks import LARGEST_BATCH, Array, as_generator, as_path, as_vector, flag, instance_of, positive_int
from mixbandit._files import write_state
from mixbandit._lazy import setting
from mixbandit._locks import Lock, Runs, locked
from mixbandit._words import confidence
from mixbandit.actions import Arms, Region, as_region, is_region, offered
from mixbandit.bandits import choosing, many, persistent, stored
from mixbandit.bandits.choice import Choice
from mixbandit.bandits.choosing import READING_SEED, Turn
from mixbandit.bandits.events import Event, cancelled, decisions, learnt, rewards_of
from mixbandit.bandits.history import regret_in_hindsight
from mixbandit.bandits.journal import Journal, Recorded, recorded
from mixbandit.bandits.many import Decisions
from mixbandit.bandits.rules import ActingRule
from mixbandit.bandits.state import State, one_by_one, parse_told
from mixbandit.certificates import Certificate, certificate
from mixbandit.errors import InvalidInput, reading
from mixbandit.features import FeatureMap
from mixbandit.models import box_model
from mixbandit.predictors import Predictor
from mixbandit.regret import RegretBound
from mixbandit.search import QUICK, THOROUGH, Shares
from mixbandit.sequences import MERGED, Audit, ConfidenceSequence, Rewards, as_moment, checked_rewards
from mixbandit.storage import FILES, Family, Storable, Stored, is_kind, not_storable

# Rewards that were learnt out of order must not have chosen their places themselves.
_IN_TIME = ", and that when a reward arrives does not depend on its value (strict=True does without this)"
# Nor may they have chosen whether to come at all.
_LOST = ", and that no value of a reward decided that it is lost ({})"
_OUTSIDE = "a bound on an expected reward lies outside reward_range"


class Policy(Storable):
    """Choose actions, learn from their rewards, and say what is guaranteed.

    `rule` says how to act on `sequence`, which from then on shares the policy's state: what one learns, the other
    knows. `strict`: rewards count in order of play. `keep_history` remembers every choice and the actions it was chosen
    from, for the regret bound in hindsight. `track_regret=False` skips the extra search that data-dependent regret
    bounds may need on a box. `quick` searches a box for the next action with less effort; searches for reports are
    unaffected.
    """

    family, kind, schema = Family("a policy", "policy", within=FILES), "Policy", stored.POLICY

    def __init__(
        self,
        sequence: ConfidenceSequence,
        actions: Region | ArrayLike | None = None,
        *,
        rule: ActingRule,
        rng: int | np.random.Generator | None = None,
        strict: bool = False,
        keep_history: bool = False,
        track_regret: bool = True,
        quick: bool = False,
        predictor: Predictor | None = None,
        journal: Journal | None = None,
    ) -> None:
        instance_of(sequence, ConfidenceSequence, "sequence", "a confidence sequence such as MartingaleMixture")
        instance_of(rule, ActingRule, "rule", "an acting rule such as mixbandit.bandits.Optimism()")
        if predictor is not None:
            instance_of(predictor, Predictor, "predictor", "a Predictor")
        rule.check(sequence.moment)
        self.rule = rule
        self._actions = None if actions is None else as_region(actions)
        width = sequence.dim_in
        if width is None and self._actions is None:
            raise InvalidInput(
                "the kernel takes actions of any length: state dim_in, the length of a context and an action together"
            )
        if self._actions is not None and width is not None and self._actions.dim > width:
            raise InvalidInput(f"actions have dimension {self._actions.dim}, more than the model takes ({width})")
        self.strict, self.keep_history = flag(strict, "strict"), flag(keep_history, "keep_history")
        self.track_regret, self.quick = flag(track_regret, "track_regret"), flag(quick, "quick")
        self._own_directions: Any = None  # of its own arms, computed once
        moment = sequence.moment if self._actions is None else sequence.moment.of_width(self._actions.dim)
        self._runs, self.lock = Runs(), Lock()
        if self._actions is not None and self._actions.rows is None:
            _ = box_model(as_moment(moment).model)  # or an error: a box needs a model with gradients
        self._recorded = Recorded(State(moment, int(as_generator(rng).integers(2**63)), predictor=predictor))
        self._sequence = sequence.live_in(self)
        if journal is not None:
            self.follow(journal)

    def __repr__(self) -> str:
        counts = f"rounds={self.rounds}, pending={len(self.pending)}"
        return f"{type(self).__name__}({self.sequence!r}, {self.actions!r}, {counts})"

    def at(self, state: State) -> Self:
        """A policy with the same settings in another state, for copies and what-ifs.

        It draws the same random numbers in the same rounds, and has no journal.
        """
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__)
        new._recorded, new._runs, new.lock = Recorded(state), Runs(), Lock()
        new._sequence = self.sequence.copy().live_in(new)
        return new

    def __copy__(self) -> Self:
        return self.at(self.state)

    @locked
    def follow(self, journal: Journal) -> Self:
        """Apply the events of a journal that this policy has not seen, and keep further ones in it.

        The journal must be of a policy with the same settings. A policy that was loaded goes on from the state that was
        saved.
        """
        self._recorded.follow(journal, self)
        return self

    moment: Any = property(
        operator.attrgetter("state.moment"),
        lambda self, moment: setattr(self, "state", self.state.learnt(moment)),
        doc="What the rewards told so far leave possible, as a `Belief`.",
    )

    sequence: ConfidenceSequence = setting("_sequence", "The confidence sequence, which has the policy's data.")
    actions: Region | None = setting("_actions", "The actions to choose from, unless `ask` is given others.")
    rounds: int = setting("state.rounds", "How many choices have been made, pending and cancelled ones included.")

    @property
    def pending(self) -> tuple[Choice, ...]:
        """The choices still waiting for their rewards."""
        held = self.state.held
        return tuple(c for c in persistent.values(self.state.pending) if persistent.get(held, c.number) is None)

    state: State = property(  # type: ignore[assignment]
        operator.attrgetter("_recorded.state"),
        lambda self, state: self._recorded.put(state),
        doc="All that changes, as one value. Assigning an earlier one undoes what happened since.",
    )
    journal: Journal | None = setting("_recorded.journal", "What keeps the events of this policy; None: nothing does.")
    refuted: bool = property(  # type: ignore[assignment]
        lambda self: self.state.refuted or self.moment.is_refuted,
        lambda self, refuted: self._note_refuted(flag(refuted, "refuted")),
        doc="Whether the data refute the assumptions at level δ, or were found to at any earlier check.",
    )

    @property
    def guarantee(self) -> str:
        """The guarantee, in words."""
        if self.moment.guarantee != "anytime":
            return "The bounds are Bayesian: right on average over the prior. Nothing is guaranteed for this problem."
        return (
            f"Given {self.moment.stated()}, and {self.moment.model.given}{_condition(self)}: with probability ≥ "
            f"{confidence(self.moment.delta)}, at all times at once, bounds, proven certificates and proven "
            f"data-dependent regret bounds hold, whatever is chosen. {self.rule.worst_case(self.moment)}"
        )

    @overload
    def ask(self, arms: Region | ArrayLike | None = None, *, context: ArrayLike | None = None) -> Choice: ...
    @overload
    def ask(
        self,
        arms: Region | ArrayLike | None = None,
        *,
        context: ArrayLike | None = None,
        n: int,
        distinct: bool = True,
    ) -> list[Choice]: ...
    @overload
    def ask(self, arms: Region | ArrayLike | None = None, *, contexts: ArrayLike) -> list[Choice]: ...

    @recorded
    def ask(
        self,
        arms: Region | ArrayLike | None = None,
        *,
        context: ArrayLike | None = None,
        n: int | None = None,
        distinct: bool = True,
        contexts: ArrayLike | None = None,
    ) -> Choice | list[Choice]:
        """Choose an action, or a list of n, among `arms` or else the policy's own actions.

        With a `context`, features see rows (context, action). Pending choices are treated as if they had returned their
        expected reward, so that asking again gives something else worth trying. A list holds different arms as long as
        there are enough of them, unless `distinct` is False. With `contexts` (n, k) there is one choice for each
        context; all are made now, from told rewards only, as in `choose_many`. On an error nothing changes.
        """
        if contexts is not None:
            if context is not None or n is not None:
                raise InvalidInput("pass contexts without context and n: there is one choice for each of them")
            offers = many.as_offers(self.state.moment.model.dim_in, self._actions, contexts, arms)
            decided = _decided(self, self._noted(), offers, track_regret=self.track_regret, recorded=True)
            region = self._actions if arms is None else arms
            labels = region.labels if is_region(region) else None
            chosen, new = many.registered(
                self.state,
                labels,
                offers,
                decided,
                self._runs.token(self.state.rounds, offers.count),
                track_regret=self.track_regret,
                remembered=self.keep_history,
            )
            each = (None if arms is None else Arms(offers.arms_of(i), labels) for i in range(offers.count))
            self._recorded.commit(new, decisions, chosen, each, self.state)
            return chosen
        turn = self._turn(arms, context, "arms")
        count = 1 if n is None else positive_int(n, "n", LARGEST_BATCH)
        state = self._noted()
        choices, new = choosing.choose(
            state,
            self.rule,
            turn,
            QUICK if self.quick else THOROUGH,
            count,
            run=self._runs.token(state.rounds, count),
            distinct=flag(distinct, "distinct"),
            track_regret=self.track_regret,
        )
        new = _consistent(self, new, choices)
        self._recorded.commit(new, _decisions, choices, arms, self.state, new.warm)
        return choices[0] if n is None else choices

    @recorded
    def adopt(self, action: ArrayLike, *, context: ArrayLike | None = None) -> Choice:
        """Register an action chosen elsewhere as a choice of this policy whose reward will be told.

        Use it for experiments already under way, or to try an action of your own. It counts in regret bounds.
        """
        turn = self._turn(None, context, "arms")
        before = np.empty(0) if turn.context is None else turn.context
        row = np.concatenate((before, as_vector(action, turn.region.dim - len(before), "action")))
        index, state = turn.region.index_of(row), self._noted()
        optimum = choosing.largest_upper(state, self.rule, turn) if self.track_regret else None
        run = self._runs.token(state.rounds, 1)
        picked = choosing.Picked(row, index)
        choice = choosing.made(state, turn, state.rounds, picked, self.rule, optimum, run, time.time())
        new = choosing.with_choices(state, turn, [choice], state.anticipated, state.warm)
        new = _consistent(self, new, [choice])
        self._recorded.commit(new, _decisions, [choice], None, self.state)
        return choice

    @recorded
    def tell(
        self,
        choice: Choice | str | int | Sequence[Choice | str | int],
        reward: float | ArrayLike,
        sigma: float | ArrayLike | None = None,
    ) -> Self:
        """Learn the reward of one choice or several, given as Choices or ids; late and in any order.

        Rewards count in order of arrival. That is valid if the noise is independent given the actions and a reward's
        value does not affect when, or whether, it arrives. With `strict=True` they count in order of play, with later
        ones waiting for earlier ones, which is valid whatever decides when they arrive. On an error nothing changes.
        """
        told = parse_told(self.state, choice, reward, sigma)
        # With a journal one at a time, as whoever follows it learns them: together they differ by rounding.
        state, parts = self.state, [told] if self.journal is None else one_by_one(*told)
        for part in parts:
            state = state.holding(*part) if self.strict else state.told(*part)
        self._recorded.commit(state, rewards_of, *told)
        return self

    @recorded
    def cancel(self, choice: Choice | str | int, *, played: bool = False) -> Self:
        """Give up on a choice whose reward will never come: it was never played, or `played` and its reward was lost.

        It is no longer pending, and counts in regret bounds only if it was played. For bounds to stay valid, whether a
        reward is lost must not depend on its value.
        """
        happened, open_ = flag(played, "played"), self.state.awaited(choice, held=True)
        state = self.state.giving_up(open_, played=happened)
        self._recorded.commit(state, cancelled, open_, happened)
        return self

    @recorded
    def choose_many(self, contexts: ArrayLike | None = None, *, arms: Region | ArrayLike | None = None) -> Decisions:
        """Choose for many contexts (n, k) at once; returns arrays: indices of arms, and lower and upper bounds.

        `arms` are the policy's own unless given: (K, m) for all, or (n, K, m), one set for each decision. All decisions
        are made now, from told rewards only. None is registered, so use `learn(decisions.rows, rewards)` instead of
        `tell`; they do not count in regret bounds. Asking again without new rewards gives the same decisions.
        """
        offers = many.as_offers(self.state.moment.model.dim_in, self._actions, contexts, arms)
        return _decided(self, self._noted(), offers, track_regret=False)[0]

    @recorded
    def learn(self, actions: ArrayLike, rewards: ArrayLike, sigma: ArrayLike | None = None) -> Self:
        """Learn from data collected elsewhere: a log, another tuner. Rows are (context, action)."""
        self.absorb(checked_rewards(self.moment, actions, rewards, sigma))
        return self

    @recorded
    def absorb(self, rewards: Rewards) -> None:
        """Learn rewards that were checked: those of `learn`, and those that its sequence is updated with."""
        self._recorded.commit(self.state.absorbed(rewards), learnt, rewards)

    @recorded
    def certificate(
        self,
        over: Region | ArrayLike | None = None,
        *,
        context: ArrayLike | None = None,
        proof: str | None = None,
    ) -> Certificate:
        """The action with the largest lower bound, among the policy's actions or others, and how much better any other
        may be.

        `proof` requires one method over a box: "branch-and-bound", "range" or "search". Print the result to read it.
        """
        turn = self._turn(over, context, "over")
        state = self._noted()
        rng = np.random.default_rng(READING_SEED)
        found = certificate(state.moment, turn.region, rng, proof=proof, warm=state.warm)
        if not found.trusted and not state.refuted:
            self.sequence.refute(_OUTSIDE)
        action = found.action if turn.context is None else found.action[len(turn.context) :]
        given = f"{found.model}{_condition(self)}"
        return dataclasses.replace(found, action=action, trusted=not self.state.refuted, model=given)

    def audit(self) -> Audit:
        """What the data so far say about the assumptions; print the result to read it."""
        return self.sequence.audit()

    @recorded
    def regret_bound(self) -> RegretBound:
        """Bounds on the regret of all choices so far; print the result to read them."""
        state = self._noted()
        hindsight, proof = None, None
        if self.keep_history and state.moment.stationary:
            hindsight, proof, contradicts = regret_in_hindsight(state.history, state.moment, self.actions, state.warm)
            if contradicts and not state.refuted:
                self.sequence.refute(_OUTSIDE)
        everything = state.settling(list(persistent.values(state.pending)))
        return RegretBound(
            rounds=everything.settled,
            widths=everything.widths,
            hindsight=hindsight,
            proof="search" if state.searched else "enumerated",
            hindsight_proof=proof,
            delta=state.moment.delta,
            guarantee=state.moment.guarantee,
            trusted=not self.refuted,
            condition=_condition(self),
        )

    def state_dict(self) -> dict[str, Any]:
        """Everything needed to resume, as numbers, strings, arrays, and lists and dicts of these."""
        if not is_kind(type(self)):
            raise not_storable(self)
        return stored.state_dict(self)

    @classmethod
    def reads(cls) -> list[str]:
        # Version 0.1.0 stored CMMUCB and its kin as plain UCB.
        return [base.kind for base in cls.__mro__ if issubclass(base, Policy)]

    @classmethod
    def restored(cls, fields: Stored, features: FeatureMap | int | None = None) -> Self:
        with reading(cls.__name__):
            new = cls.__new__(cls)
            Policy.__init__(new, **stored.keywords(fields, features))
            new.state = stored.recalled(new.state, fields, new.actions)
        return new

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one file, atomically: `mixbandit.load` resumes from it, bit for bit."""
        write_state(as_path(path), self.state_dict())

    def _turn(self, given: Region | ArrayLike | None, context: ArrayLike | None, name: str) -> Turn:
        """The input of a decision; directions of the policy's own arms are computed once."""
        belief = self.state.moment
        assert belief.model.dim_in is not None  # settled when the policy was made
        region, vector = offered(self._actions, given, context, belief.model.dim_in, name, borrow=not self.keep_history)
        is_exact = False
        if region.is_box:
            directions = None
        elif region is not self._actions:
            directions = None if vector is None else belief.model.in_context(vector, region.bare)
            is_exact = directions is not None
            directions = directions if is_exact else belief.directions(region.rows)
        else:
            directions = self._own_directions
            if directions is None:
                directions = self._own_directions = belief.directions(region.rows)
        return Turn(region, vector, directions, self.keep_history, region is self._actions, is_exact)

    @recorded
    def _note_refuted(self, refuted: bool) -> None:
        if self.journal is not None and not refuted and self.state.refuted:
            raise InvalidInput("a refutation in a journal stands: refuted can only become True")
        self._recorded.commit(self.state._replace(refuted=refuted), list)

    def _noted(self) -> State:
        """The state, with any refutation recorded for good: an error every time, or one warning."""
        state = self.state
        self.rule.prepare(state.moment)
        found = state.moment.refutation
        if found is None:
            return state
        if not state.refuted or self.sequence.on_empty == "raise":
            self.sequence.refute(found)
        return self.state


def _condition(policy: Policy) -> str:
    """What else statements rest on, once rewards were learnt in another order than that of play, given up or merged."""
    state, merged = policy.state, f", and{MERGED}" if policy.sequence.merged else ""
    given_up = f"{state.cancelled:,} cancelled choice{'' if state.cancelled == 1 else 's'}"
    return (_IN_TIME if state.reordered else "") + (_LOST.format(given_up) if state.cancelled else "") + merged


def _decided(
    policy: Policy, state: State, offers: many.Offers, **options: bool
) -> tuple[Decisions, list[Shares | None]]:
    """The decisions at a state; the policy is marked as refuted if their bounds contradict a known range."""
    found, shares = many.decide(state, policy.rule, offers, **options)
    if not found.trusted and not policy.state.refuted:
        policy.sequence.refute(_OUTSIDE)
        policy.refuted = True
    return found, shares


def _consistent(policy: Policy, state: State, choices: list[Choice]) -> State:
    """The state after these choices, marked as refuted if their bounds contradict a known range."""
    if state.refuted or state.moment.response.range is None or all(choice.trusted for choice in choices):
        return state
    policy.sequence.refute(_OUTSIDE)
    return state._replace(refuted=True)


def _decisions(
    choices: list[Choice], arms: Region | ArrayLike | None, before: State, ends: Array | None = None
) -> list[Event]:
    """The events of choices that were all made among the policy's own actions or the given ones."""
    return decisions(choices, itertools.repeat(None if arms is None else as_region(arms)), before, ends)
