"""The state of a policy: one frozen value, replaced at the end of `ask` and `tell`.

Everything that changes is here, so undo, copies, interrupts and "what if these rewards came in" need no extra code.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mixbandit._checks import (
    LARGEST_DATUM,
    Array,
    as_float_array,
    as_reward,
    check_finite,
    check_within,
    is_integer,
    positive_array,
    shown,
)
from mixbandit.bandits import persistent
from mixbandit.bandits.choice import Choice, number_of
from mixbandit.bandits.crowd import Crowd
from mixbandit.errors import InvalidInput
from mixbandit.predictors import Predictor
from mixbandit.search import ArmsOffer
from mixbandit.sequences import Belief, Rewards

# More pending choices than this are summed up.
MOST_ROWS = 16


class Held(NamedTuple):
    """A told reward that waits for earlier choices to be told or cancelled."""

    reward: float
    sigma: float | None


class Known(NamedTuple):
    """What a decision is made from."""

    belief: Belief[Any]
    predictor: Predictor | None


class Anticipated(NamedTuple):
    """What is known as if choices that are still pending had returned their expected rewards."""

    known: Known
    up_to: int  # choices with smaller numbers are included


class State(NamedTuple):
    """What a policy has seen, what is pending, and what is known about refutations."""

    moment: Belief[Any]  # what the told rewards leave possible
    seed: int  # randomness comes from it and the round
    rounds: int = 0  # choices made, pending and cancelled ones included
    pending: persistent.Map = persistent.EMPTY  # choices by number
    held: persistent.Map = persistent.EMPTY  # rewards of pending choices that wait for earlier ones
    settled: int = 0  # choices that count in the regret bound for good
    widths: float | None = 0.0  # what they add to it; None once one is unknown
    searched: bool = False  # whether a search over a box had to find the largest upper bound
    refuted: bool = False  # whether the data have ever been seen to refute the assumptions
    history: persistent.Map = persistent.EMPTY  # choices and what they were chosen from, by number
    warm: Array | None = None  # where the last search over a box ended
    anticipated: Anticipated | None = None
    since: int = 0  # choices from this number on were made at this moment
    crowd: Crowd | None = None  # the feature rows of the pending choices, once there are many
    reordered: bool = False  # whether rewards were ever learnt in another order than that of play
    cancelled: int = 0  # choices that the user gave up, whose rewards will never come
    predictor: Predictor | None = None  # what the told rewards lead to expect, if the policy was given a predictor
    seen: int = 0  # events of a journal that led to this state

    def awaited(self, choice: Choice | str | int, *, held: bool = False) -> Choice:
        """The choice that waits for its reward or, if `held`, whose reward is held back; InvalidInput for others."""
        number = choice.number if isinstance(choice, Choice) else number_of(choice)
        if number is None and not isinstance(choice, str):
            raise InvalidInput(f"tell needs a Choice or its id, got {shown(choice)}")
        found: Choice | None = None if number is None else persistent.get(self.pending, number)
        if choice is not found and not _is_named(found, choice):
            name = choice.id if isinstance(choice, Choice) else choice
            problem = "is unknown: made by another bandit, or lost, being made after the state that was loaded"
            if found is None and number is not None and 0 <= number < self.rounds:
                problem = f"has already been told or cancelled, or {problem}"
            waiting = ", ".join(str(c.id) for c, _ in zip(persistent.values(self.pending), range(5), strict=False))
            raise InvalidInput(f"choice {shown(name)} {problem}; waiting for rewards: {waiting or 'none'}")
        assert found is not None
        if not held and self.held is not persistent.EMPTY and persistent.get(self.held, found.number) is not None:
            raise InvalidInput(f"choice {found.id} has already been told; its reward waits for earlier choices")
        return found

    def learnt(self, moment: Belief[Any]) -> State:
        """With other data; what was anticipated from the old data is dropped."""
        self._close_moment()
        refuted = self.refuted or self.moment.seen_refuted
        return self._replace(moment=moment, anticipated=None, since=self.rounds, refuted=refuted)

    def absorbed(self, rewards: Rewards) -> State:
        """After rewards that belong to no choice."""
        predictor = self.predictor
        if predictor is not None:
            for row, value in zip(rewards.rows, rewards.values.tolist(), strict=True):
                predictor = predictor.after(ArmsOffer(row[None]), 0, value)
        return self.learnt(self.moment.after(*rewards))._replace(predictor=predictor)

    def _close_moment(self) -> None:
        """Compute the bounds of pending choices that were made at this moment, so that they no longer hold it."""
        for number in range(self.since, self.rounds):
            choice = persistent.get(self.pending, number)
            if choice is not None:
                choice.close()

    def told(self, choices: list[Choice], rewards: Array, levels: list[float | None]) -> State:
        """After these rewards, which count at once."""
        if not choices:
            return self
        first = choices[0]
        if len(choices) == 1 and first.direction is not None and levels[0] is None:
            moment = self.moment.after_choice(first.row[None], first.direction, rewards)
        else:
            rows = np.array([choice.row for choice in choices])
            moment = self.moment.after(rows, rewards, self._weights(levels))
        self._close_moment()
        pending, held = self.pending, self.held
        for choice in choices:
            pending = persistent.drop(pending, choice.number)
            if held is not persistent.EMPTY:
                held = persistent.drop(held, choice.number)
        settled, widths, refuted = self._settled(choices)
        return State(
            moment, self.seed, self.rounds, pending, held, settled, widths, self.searched, refuted, self.history,
            self.warm, None, self.rounds, self._crowd_without(choices), self._reorders(choices, pending),
            self.cancelled, None if self.predictor is None else self._predicting(choices, rewards), self.seen,
        )  # fmt: skip

    def _predicting(self, choices: list[Choice], rewards: Array) -> Predictor | None:
        predictor = self.predictor
        for choice, reward in zip(choices, rewards.tolist(), strict=True):
            predictor = predictor.after(choice.played(), 0, reward)  # type: ignore[union-attr]
        return predictor

    def _reorders(self, choices: list[Choice], pending: persistent.Map) -> bool:
        """Whether rewards are, or were, learnt before those of earlier choices."""
        if self.reordered:
            return True
        if not pending[1] and len(choices) == 1:  # the usual case
            return False
        numbers, first = [choice.number for choice in choices], next(persistent.values(pending), None)
        return numbers != sorted(numbers) or (first is not None and first.number < numbers[-1])

    def _crowd_without(self, choices: list[Choice]) -> Crowd | None:
        crowd = self.crowd
        for choice in () if crowd is None else choices:
            crowd = crowd.without(choice.number)  # type: ignore[union-attr]
        return crowd if crowd is not None and crowd.count > MOST_ROWS else None

    def _weights(self, levels: list[float | None]) -> Array | None:
        if not any(levels):  # levels are positive
            return None
        own = self.moment.sigma
        return self.moment.weights(np.array([own if level is None else level for level in levels], dtype=float))

    def holding(self, choices: list[Choice], rewards: Array, levels: list[float | None]) -> State:
        """After these rewards, which count once no earlier choice is pending."""
        if any(levels):  # what could not be learnt later must be refused now
            self.moment.after(np.array([choice.row for choice in choices]), rewards, self._weights(levels))
        held = self.held
        for choice, reward, level in zip(choices, rewards, levels, strict=True):
            held = persistent.put(held, choice.number, Held(float(reward), level))
        return self._replace(held=held).released()

    def released(self) -> State:
        """After the held rewards that no longer wait for an earlier choice."""
        ready: list[Choice] = []
        for choice in persistent.values(self.pending):
            if persistent.get(self.held, choice.number) is None:
                break
            ready.append(choice)
        if not ready:
            return self
        parts = [persistent.get(self.held, choice.number) for choice in ready]
        return self.told(ready, np.array([part.reward for part in parts]), [part.sigma for part in parts])

    def settling(self, choices: list[Choice]) -> State:
        """With choices counted for good in the regret bound, and any refutation by their bounds recorded."""
        settled, widths, refuted = self._settled(choices)
        return self._replace(settled=settled, widths=widths, refuted=refuted)

    def _settled(self, choices: list[Choice]) -> tuple[int, float | None, bool]:
        widths, refuted = self.widths, self.refuted or self.moment.seen_refuted
        for choice in choices:
            known = choice.known
            widths = None if widths is None or known.width is None else widths + known.width
            refuted |= not known.trusted
        return self.settled + len(choices), widths, refuted

    def giving_up(self, choice: Choice, *, played: bool) -> State:
        """After a choice that the user gave up, which statements count."""
        return self.without(choice, played=played)._replace(cancelled=self.cancelled + 1)

    def without(self, choice: Choice, *, played: bool) -> State:
        """After a choice whose reward will never come."""
        choice.close()
        pending, held = persistent.drop(self.pending, choice.number), persistent.drop(self.held, choice.number)
        crowd = self._crowd_without([choice])
        new = self._replace(pending=pending, held=held, anticipated=None, crowd=crowd)
        new = new.settling([choice]) if played else new._replace(history=persistent.drop(self.history, choice.number))
        return new.released()


def _is_named(found: Choice | None, given: Choice | str | int) -> bool:
    """Whether a choice, or an id, is that of a pending one."""
    if found is None:
        return False
    if not isinstance(given, Choice):
        return bool(str(given) == str(found.id))  # ids of version 0.2 and earlier are numbers, and texts in journals
    # Numbers alone do not tell the choices of two bandits apart.
    return given.run == found.run and np.array_equal(given.action, found.action)


_NO_LEVEL: list[float | None] = [None]


def parse_told(
    state: State,
    choice: Choice | str | int | Sequence[Choice | str | int],
    reward: float | ArrayLike,
    sigma: float | ArrayLike | None,
) -> tuple[list[Choice], Array, list[float | None]]:
    """The arguments of `tell`, checked: choices, rewards, and noise levels where given."""
    if isinstance(choice, Choice | str) or is_integer(choice):
        choices = [state.awaited(choice)]  # type: ignore[arg-type]
        # Numpy's floats are floats, too; looking for other kinds of numbers takes longer.
        number = float(reward) if isinstance(reward, float) else as_reward(reward, "reward")
        values = np.array([number])
        if sigma is None and state.moment.value_range is None and -LARGEST_DATUM <= number <= LARGEST_DATUM:
            return choices, values, _NO_LEVEL  # the usual case, without further checks
    else:
        given = _several(choice)
        values = as_float_array(reward, "reward").ravel()
        if len(values) != len(given):
            raise InvalidInput(f"there must be one reward per choice, got {len(values)} for {len(given)}")
        choices = [state.awaited(each) for each in given]
        if len({each.number for each in choices}) != len(choices):
            raise InvalidInput("a choice occurs twice in one call")
    check_finite(values, "reward", LARGEST_DATUM)
    check_within(values, state.moment.value_range, "reward")
    if sigma is None:
        return choices, values, [None] * len(choices)
    levels = positive_array(sigma, "sigma").ravel()
    if len(levels) not in (1, len(choices)):
        raise InvalidInput(f"sigma must be one number or {len(choices)}, got {len(levels)}")
    known = np.broadcast_to(levels, (len(choices),))
    check_finite(state.moment.weights(known) * values, "reward", LARGEST_DATUM)
    return choices, values, known.tolist()


def one_by_one(
    choices: list[Choice], rewards: Array, levels: list[float | None]
) -> list[tuple[list[Choice], Array, list[float | None]]]:
    """The arguments of several rewards, one reward at a time."""
    return [([c], r, [level]) for c, r, level in zip(choices, rewards[:, None], levels, strict=True)]


def _several(choices: Any) -> list[Any]:
    """Several choices or ids, from a list, an array or a Series."""
    try:
        if isinstance(choices, Sequence) and not isinstance(choices, str | bytes):
            return list(choices)
        if hasattr(type(choices), "__array__") and not np.ma.is_masked(choices):
            array = np.asarray(choices)
            if array.ndim == 1:  # not a table: iterating would give the names of its columns
                return list(array.tolist())
    except Exception as error:  # the code of users and of other libraries
        raise InvalidInput(f"tell needs a Choice or its id, got {shown(choices)} ({error})") from error
    raise InvalidInput(f"tell needs a Choice or its id, or a list of them, got {shown(choices)}")
