"""What the trials of one configuration say about it, without any model of the others.

One mean, no model: an interval at level δ_i from the values of configuration i alone, valid at all times. The δ_i are
fixed before the values that they are spent on:

- by order: the configuration in place i gets δ_own/(i(i+1)); or δ_own/N if their number N was fixed in advance, or if
  the order of play is not known; then those beyond N get nothing;
- by nomination: the j-th nominated one (a finalist of `confirm`) gets δ_nominated/(j(j+1)), and only the values of its
  confirmations count. That is far more: 5 nats instead of 11 for the 50th trial. A number belongs for good to the
  configuration of the first trial, in any state, that was marked with it.

Places follow the numbers of trials, not the order in which they end: place = 1 + the number of the configuration's
first trial − the trials before that which are known to repeat an even earlier configuration. A trial that is still
running, failed or missing counts as one of another configuration. As more becomes known, a place can only become
smaller, and in the end no two configurations have the same one. So whenever somebody looks, shares are at most the
final ones, which sum to at most δ_own. The final ones are fixed before the values that they are spent on, because a
trial has its parameters when it begins. (Ranks among completed trials would not do: of trials that end in reverse
order, each is the first once.)

A configuration's interval is the best of both, cut with the model's; each has its own part of δ (`SHARES`).

Once a pruner has stopped unlucky trials, only confirmations are left (`Trials.confirmations`). Looks before the first
pruning may have spent the model's part and that of own trials on sequences that those trials are in. So confirmations
get neither: they spend the nominated part, on the same sequences as before.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixbandit._checks import SMALLEST_PROBABILITY, Array
from mixbandit.means import MeanSequence, precisions
from mixbandit.spending import Parts, Spending
from mixbandit.tuning.assumptions import Assumptions
from mixbandit.tuning.columns import Mask
from mixbandit.tuning.repeats import Repeats
from mixbandit.tuning.space import row_key


class Shares(NamedTuple):
    """How δ is divided."""

    model: float
    own: float  # own trials, by order
    nominated: float  # confirmations of nominated configurations


SHARES = Shares(0.4, 0.2, 0.4)
"""The shares of δ. Tests of the assumptions have their own δ: a false alarm is not a wrong bound."""


def divided(delta: float) -> Parts:
    """The parts of δ: "model", "own" and "nominated"."""
    return Spending(delta).named(**SHARES._asdict())


# Configurations tried once are looked at only if their value is among this many of the best.
_MOST_SINGLE = 200


class Interval(NamedTuple):
    """An interval for an expected value, and the number of values it is based on."""

    lower: float
    upper: float
    trials: int


UNKNOWN = Interval(-math.inf, math.inf, 0)


@dataclass(frozen=True, eq=False)
class Trials:
    """All values of a run, in the order in which they came, if that is known."""

    configurations: Sequence[Mapping[str, Any]]  # t of them, as they were given
    rows: Array  # (t, dim): the same, encoded
    values: Array  # (t,)
    nominations: NDArray[np.int64]  # (t,): j if it confirms the j-th nominated configuration, else 0
    ordered: bool = True
    levels: Array | None = None  # (t,): the noise levels of values, where they are not all the stated one
    feasible: Mask | None = None  # (t,): which are known to satisfy the constraints; None without constraints
    numbers: NDArray[np.int64] | None = None  # (t,): the numbers of trials, from 0; None if that is their position
    confirmations: bool = False  # whether only confirmations are left of a run that pruned unlucky trials

    def first(self, n: int) -> Trials:
        """The first n of them."""
        levels = None if self.levels is None else self.levels[:n]
        feasible = None if self.feasible is None else self.feasible[:n]
        part = self.configurations[:n], self.rows[:n], self.values[:n], self.nominations[:n]
        numbers = None if self.numbers is None else self.numbers[:n]
        return Trials(*part, self.ordered, levels, feasible, numbers, self.confirmations)


class OwnTrials:
    """Every configuration that was tried, with its values and the interval that they give."""

    def __init__(self, assumptions: Assumptions, trials: Trials) -> None:
        self._assumptions, self.trials = assumptions, trials
        self._parts = divided(assumptions.delta)
        self._groups: dict[bytes, list[int]] = {}
        for i, row in enumerate(trials.rows):
            self._groups.setdefault(row_key(row), []).append(i)
        self._numbers = np.arange(len(trials.rows)) if trials.numbers is None else trials.numbers
        firsts = [self._numbers[indices].min() for indices in self._groups.values()]
        self._repeats = np.setdiff1d(self._numbers, firsts)
        self._places = {key: self._place(first) for key, first in zip(self._groups, firsts, strict=True)}
        # A number belongs to one configuration, whatever a table says, or its share would be spent twice.
        self._nominated: dict[int, bytes] = {}
        for i in sorted(np.flatnonzero(trials.nominations).tolist(), key=lambda i: self._numbers[i]):
            self._nominated.setdefault(int(trials.nominations[i]), row_key(trials.rows[i]))
        self._known: dict[bytes, Interval] = {}

    def _place(self, number: int) -> int:
        """The place of a configuration whose first trial has this number."""
        return 1 + int(number) - int(np.searchsorted(self._repeats, number))

    def __len__(self) -> int:
        return len(self._groups)

    def count(self, row: Array) -> int:
        """How often a configuration was tried."""
        return len(self._groups.get(row_key(row), ()))

    def given(self, row: Array) -> dict[str, Any] | None:
        """A configuration that was tried, as it was given first."""
        indices = self._groups.get(row_key(row))
        return None if indices is None else dict(self.trials.configurations[indices[0]])

    def values(self, row: Array) -> Array:
        """The values of a configuration, in order."""
        return self.trials.values[self._groups.get(row_key(row), [])]

    def weights(self, row: Array) -> Array:
        """How much each value of a configuration counts for, in values of the stated noise level."""
        indices, levels = self._groups.get(row_key(row), []), self.trials.levels
        if levels is None or self._assumptions.sigma is None:
            return np.ones(len(indices))
        return precisions(self._assumptions.sigma, levels[indices])

    def interval(self, row: Array) -> Interval:
        """What its own trials say about a configuration; (−∞, ∞) if there are none."""
        key = row_key(row)
        if key not in self._groups:
            return UNKNOWN
        if key not in self._known:
            self._known[key] = self._found(key)
        return self._known[key]

    def promising(self) -> Array:
        """Configurations whose own trials may say most: repeated and nominated ones, and those of the best values."""
        sign = self._assumptions.sign
        once = [indices[0] for indices in self._groups.values() if len(indices) == 1]
        often = [indices[0] for indices in self._groups.values() if len(indices) > 1]
        best = sorted(once, key=lambda i: -sign * self.trials.values[i])[:_MOST_SINGLE]
        return self.trials.rows[sorted([*often, *best])]

    @property
    def distinct(self) -> Array:
        """All configurations, in the order in which their first values came."""
        return self.trials.rows[[indices[0] for indices in self._groups.values()]]

    @property
    def repeated(self) -> list[Repeats]:
        """Every configuration that was tried more than once."""
        groups = [np.array(indices) for indices in self._groups.values() if len(indices) > 1]
        return [Repeats(indices, self.trials.values[indices]) for indices in groups]

    @property
    def planned(self) -> int | None:
        """How many configurations share δ evenly; None where they get parts of it in order."""
        return self._assumptions.planned if self.trials.ordered else len(self._groups)

    def share_by_order(self, row: Array) -> float:
        """The part of δ of a configuration, tried or not, by its place in the order of play."""
        if self.trials.confirmations:
            return 0.0
        place = self._places.get(row_key(row)) or self._place(self._numbers.max(initial=-1) + 1)
        planned = self.planned
        if planned is None:
            return self._parts["own"].nth(place).delta
        return self._parts["own"].each(planned).delta if place <= planned else 0.0

    def share_by_nomination(self, number: int) -> float:
        """The part of δ of the j-th nominated configuration."""
        return self._parts["nominated"].nth(number).delta

    def _found(self, key: bytes) -> Interval:
        indices = np.array(self._groups[key])
        values, nominations = self.trials.values[indices], self.trials.nominations[indices]
        own = sorted({number for number in nominations.tolist() if self._nominated.get(number) == key})
        levels = self.trials.levels[indices] if self.trials.levels is not None else None
        spent = [(self.share_by_order(self.trials.rows[indices[0]]), np.ones(len(values), dtype=np.bool_))]
        spent += [(self.share_by_nomination(number), nominations == number) for number in own]
        means = [
            mean_after(self._assumptions, share, values[which], None if levels is None else levels[which])
            for share, which in spent
        ]
        lower = max((mean.lower() for mean in means if mean is not None), default=-math.inf)
        upper = min((mean.upper() for mean in means if mean is not None), default=math.inf)
        return Interval(lower, upper, len(values))


def mean_after(
    assumptions: Assumptions, delta: float, values: Array, levels: Array | None = None
) -> MeanSequence | None:
    """One mean after its values, under what is stated about them; None if δ is too small to say anything."""
    if delta < SMALLEST_PROBABILITY:
        return None
    if assumptions.counts_results:
        values = np.clip(values, *assumptions.reward_range)  # type: ignore[misc]  # beyond it by rounding only
    return _mean(assumptions, delta).update(values, samples=assumptions.counted, sigma=levels)


def _mean(assumptions: Assumptions, delta: float) -> MeanSequence:
    if not assumptions.counts_results:
        # Without the range: that it contradicts a mean is for the caller to find.
        return MeanSequence(None, delta, sigma=assumptions.sigma, noise=assumptions.noise)
    assert assumptions.reward_range is not None
    return MeanSequence(assumptions.reward_range, delta)
