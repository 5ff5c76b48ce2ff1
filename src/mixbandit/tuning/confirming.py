"""Confirming finalists: a few more trials of the configurations that look best, each chosen when it is requested.

Nominated configurations have their own share of δ, and only the values of their confirmations count for it
(`evidence`). So a few confirmations say far more about a finalist than all the trials before them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from mixbandit._checks import Array
from mixbandit._locks import Lock, locked
from mixbandit.errors import InvalidInput
from mixbandit.tuning.assumptions import spread_of
from mixbandit.tuning.evidence import OwnTrials, mean_after
from mixbandit.tuning.judgement import Judgement
from mixbandit.tuning.recommending import safest_by_model

Each = TypeVar("Each")

# Configurations closer than this, per root of a dimension of the unit box, are alike: confirming one of them will do.
_ALIKE = 0.05
# Estimates of at most this many tried configurations are compared.
_MOST_CANDIDATES = 500
# The estimate of a finalist, which its neighbours support, counts as much as this many of its values.
_PRIOR_TRIALS = 5.0
# A plan looks at most this many confirmations ahead.
_FURTHEST = 100_000


class Finalist(NamedTuple):
    """A nominated configuration."""

    number: int  # j: it was the j-th to be nominated
    row: Array


def finalists_of(rows: Array, numbers: NDArray[np.int64]) -> tuple[Finalist, ...]:
    """The configurations that trials were marked as confirmations of, in the order of their nomination."""
    found: dict[int, Array] = {}
    for i in np.flatnonzero(numbers > 0).tolist():
        found.setdefault(int(numbers[i]), rows[i])  # of several, as when workers nominate at once, the first
    return tuple(Finalist(number, found[number]) for number in sorted(found))


def nominated(judgement: Judgement, count: int, before: Sequence[Finalist] = ()) -> tuple[Finalist, ...]:
    """The configurations with the best guaranteed worths, best first, none like another.

    Not by estimates, because the best of many is often the luckiest.

    One that is like an earlier finalist gives way to it, so that the confirmations of both count together.
    """
    rows = _candidates(judgement)
    found: list[Finalist] = []
    lower = np.array([ends.lower for ends in judgement.ends(rows)])
    for row in rows[np.argsort(-lower, kind="stable")]:
        if len(found) == count:
            break
        number = max((each.number for each in (*before, *found)), default=0) + 1
        alike = [each for each in before if _distance(each.row, row) <= _ALIKE]
        finalist = min(alike, key=lambda each: _distance(each.row, row)) if alike else Finalist(number, row)
        if all(_distance(finalist.row, other.row) > _ALIKE for other in found):
            found.append(finalist)
    return tuple(found)


def _distance(one: Array, other: Array) -> float:
    """Per root of a dimension."""
    return float(np.linalg.norm(one - other)) / math.sqrt(len(one))


def _candidates(judgement: Judgement) -> Array:
    """What may be nominated: the best by the model, tried or not, and configurations that were tried."""
    best = judgement.space.snapped(safest_by_model(judgement))[None]
    if judgement.own is None:
        return best
    tried = judgement.own.distinct if len(judgement.own) <= _MOST_CANDIDATES else judgement.own.promising()
    return np.concatenate((tried, best))


class Confirmation(Iterator[Each], Generic[Each]):
    """Trials of finalists, each chosen when it is requested, from all values told by then.

    The next trial goes to the finalist that promises the best certified value if it were given all remaining trials:
    among configurations that are nearly as good, sticking to one certifies more. It ends after `n` trials, or as soon
    as all finalists but one are known to be worse; `unused` says how many trials were left then.
    """

    def __init__(
        self,
        n: int,
        nominate: Callable[[], tuple[Finalist, ...]],
        judge: Callable[[], Judgement],
        begin: Callable[[Finalist], Each],
    ) -> None:
        self.unused = self._count = n
        self._nominate, self._judge, self._begin = nominate, judge, begin
        self.finalists: tuple[Finalist, ...] = ()
        self.lock = Lock()  # threads may share it

    def __repr__(self) -> str:
        return f"Confirmation({len(self.finalists)} finalists, {self.unused} of {self._count} trials unused)"

    @locked
    def __next__(self) -> Each:
        if not self.unused:
            raise StopIteration
        judgement = self._judge()
        # One that is known to be worse from the beginning is no finalist.
        self.finalists = self.finalists or possibly_best(judgement, self._nominate())
        finalist = most_promising(judgement, self.finalists, self.unused)
        if finalist is None:
            raise StopIteration
        trial = self._begin(finalist)
        self.unused -= 1
        return trial


def check_ordered(own: OwnTrials) -> None:
    """Refuse confirmations where the order of play is not known: they would count as any other trials."""
    if not own.trials.ordered:
        raise InvalidInput(
            "confirmations need the order of play, which is not known: number the trials in a column `number`, or "
            "state that rows are already in that order (ordered=True, --ordered)"
        )


def possibly_best(judgement: Judgement, finalists: Sequence[Finalist]) -> tuple[Finalist, ...]:
    """Those that are not known to be worse than another."""
    ends = judgement.ends(np.array([finalist.row for finalist in finalists]))
    floor = max(end.lower for end in ends)
    left = tuple(finalist for finalist, end in zip(finalists, ends, strict=True) if end.upper >= floor)
    return left or tuple(finalists)  # an interval is empty if the values refute what was stated, and says nothing then


def most_promising(judgement: Judgement, finalists: Sequence[Finalist], unused: int) -> Finalist | None:
    """The finalist to confirm next; None if all but one of several are known to be worse."""
    left = possibly_best(judgement, finalists)
    if len(left) == 1 < len(finalists):
        return None
    return max(left, key=lambda finalist: promised(judgement, finalist, unused))


def next_confirmation(judgement: Judgement, unused: int, count: int, before: tuple[Finalist, ...]) -> Finalist | None:
    """The next confirmation of a run that ended with one, or else of new finalists."""
    assert judgement.own is not None
    check_ordered(judgement.own)
    goes_on = bool(before) and judgement.own.trials.nominations[-1] > 0
    finalists = before[-count:] if goes_on else possibly_best(judgement, nominated(judgement, count, before))
    return most_promising(judgement, finalists, unused)


def promised(judgement: Judgement, finalist: Finalist, more: int) -> float:
    """About what a finalist's worth will be certified at, after this many more confirmations."""
    assert judgement.own is not None
    assumptions, trials = judgement.assumptions, judgement.own.trials
    which = trials.nominations == finalist.number
    known = trials.values[which]
    mean, spread = _known(judgement, finalist.row)
    # Values that scatter as expected around the estimate.
    imagined = assumptions.sign * mean + spread * np.where(np.arange(more) % 2, 1.0, -1.0)
    if assumptions.reward_range is not None:
        imagined = np.clip(imagined, *assumptions.reward_range)
    share = judgement.own.share_by_nomination(finalist.number)
    levels = None
    if trials.levels is not None:
        levels = np.concatenate((trials.levels[which], np.full(more, assumptions.sigma)))
    sequence = mean_after(assumptions, share, np.concatenate((known, imagined)), levels)
    if sequence is None:
        return -math.inf
    return sequence.lower() if assumptions.sign > 0.0 else -sequence.upper()


def _known(judgement: Judgement, row: Array) -> tuple[float, float]:
    """An estimate of a configuration's worth, and the spread of one value around it."""
    own = judgement.own
    values = np.empty(0) if own is None else judgement.assumptions.sign * own.values(row)
    prior = float(judgement.estimates(row[None])[0])
    weights = np.ones(0) if own is None else own.weights(row)
    mean = (_PRIOR_TRIALS * prior + float(weights @ values)) / (_PRIOR_TRIALS + float(weights.sum()))
    spread = spread_of(judgement.assumptions, judgement.assumptions.sign * mean)
    if spread is None:
        spread = float(values.std(ddof=1)) if len(values) > 1 else judgement.assumptions.scale
    return mean, spread


@dataclass(frozen=True)
class Plan:
    """About how many more confirmations of the leading configuration a goal takes; an estimate, not a guarantee."""

    confirmations: int | None  # None: out of reach
    goal: str
    estimate: float  # of the expected value of that configuration

    def __str__(self) -> str:
        if self.confirmations is None:
            return f"{self.goal} is out of reach: the leading configuration is worth about {self.estimate:.4g}."
        if not self.confirmations:
            return f"{self.goal} is already certified."
        plural = "" if self.confirmations == 1 else "s"
        return f"{self.goal} will take about {self.confirmations} more confirmation{plural}."


def planned(judgement: Judgement, finalist: Finalist, worth: float, goal: str, certified: float) -> Plan:
    """How many more confirmations it takes until a finalist is certified for a worth, given what is certified now."""
    mean = _known(judgement, finalist.row)[0]
    estimate = judgement.assumptions.sign * mean
    if certified >= worth:
        return Plan(0, goal, estimate)
    if mean <= worth:
        return Plan(None, goal, estimate)
    high = 1
    while promised(judgement, finalist, high) < worth:
        high *= 2
        if high > _FURTHEST:
            return Plan(None, goal, estimate)
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if promised(judgement, finalist, middle) >= worth else (middle, high)
    return Plan(high, goal, estimate)
