"""Two means: how far apart they are, from independent values or from pairs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mixbandit._checks import as_range, as_vector, flag, positive, underflowing
from mixbandit.errors import AssumptionsRefuted, InvalidInput
from mixbandit.means.kinds import Range
from mixbandit.means.sequence import MeanSequence, error_probability
from mixbandit.spending import Ledger, Spending, evenly

_STEPS = 60
_MARGIN = 1e-6  # in nats


@dataclass(frozen=True)
class MeanComparison:
    """With probability ≥ 1 − δ, at all times at once, mean(a) − mean(b) lies between `lower` and `upper`."""

    lower: float
    upper: float
    pvalue: float  # of "both means are equal": about the least δ at which the interval excludes 0
    paired: bool
    ledger: Ledger | None = field(default=None, repr=False, compare=False)  # how δ is divided

    def __str__(self) -> str:
        return f"The difference lies in [{self.lower:.4g}, {self.upper:.4g}]; p = {self.pvalue:.4g}."


@underflowing
def compare_means(
    a_values: ArrayLike,
    b_values: ArrayLike,
    reward_range: Range | None = (0.0, 1.0),
    delta: float = 0.05,
    *,
    paired: bool = False,
    a_samples: ArrayLike | None = None,
    b_samples: ArrayLike | None = None,
    sigma: float | None = None,
    noise: str | None = None,
) -> MeanComparison:
    """Bounds on mean(a) − mean(b) that hold however often you look and whenever you stop.

    State what is known about values as for `MeanSequence`. `paired`: a_values[i] and b_values[i] belong together, such
    as two models' results on one row. Then only their differences count, and equal pairs hardly widen the interval. If
    not paired, the expectation of each value must be the mean of its side, given all earlier values of both sides. That
    holds for two independent sides, in whatever order their values came, but not for results on the same rows.
    """
    level = error_probability(delta)
    whole = Spending(level)
    together = flag(paired, "paired")
    known: dict[str, Any] = {"sigma": sigma, "noise": noise}
    if together:
        if a_samples is not None or b_samples is not None:
            raise InvalidInput("samples do not apply to pairs, whose differences are single values: leave them out")
        found = _paired(a_values, b_values, reward_range, level, known)
        return replace(found, ledger=_ledger(whole, "the pairs"))
    side = whole.each(2).delta
    a = MeanSequence(reward_range, side, **known).update(a_values, a_samples)
    b = MeanSequence(reward_range, side, **known).update(b_values, b_samples)
    if a.t and b.t and a.evidence.multiplies:
        return replace(_together(a, b, level), ledger=_ledger(whole, "both sides, whose evidence is multiplied"))
    if not (a.t and b.t):
        found = MeanComparison(a.lower() - b.upper(), a.upper() - b.lower(), 1.0, False)
    else:
        found = _apart(a, b)
    return replace(found, ledger=_ledger(whole, "the two sides", evenly(2)))


def _ledger(whole: Spending, what: str, how: str = "") -> Ledger:
    return whole.ledger("the difference ever lies outside the interval", whole.line(what, how))


def _paired(
    a_values: ArrayLike, b_values: ArrayLike, reward_range: Range | None, delta: float, known: dict[str, Any]
) -> MeanComparison:
    a = as_vector(a_values, None, "a_values")
    b = as_vector(b_values, len(a), "b_values")
    spread = None
    if reward_range is not None:
        low, high = as_range(reward_range, "reward_range")
        spread = (low - high, high - low)
        if known["sigma"] is None and known["noise"] is None:
            MeanSequence((low, high)).update(a).update(b)  # refuses values outside of the range
    if known["sigma"] is not None:
        # Noises that belong together may add up.
        known = {**known, "sigma": 2.0 * positive(known["sigma"], "sigma")}
    differences = MeanSequence(spread, delta, **known).update(a - b)
    pvalue = math.exp(-max(differences.log_evalue(0.0), 0.0))
    return MeanComparison(*differences.interval(), pvalue, True)


def _together(a: MeanSequence, b: MeanSequence, delta: float) -> MeanComparison:
    """By the product of both sides' E, which is an e-process too: all (x, y) with ln E_a(x) + ln E_b(y) < ln 1/δ.

    The largest x − y among them has one side's evidence s and the other's ln 1/δ − s; both bounds are concave in s.
    """
    sides = [_Side(a), _Side(b)]
    least = sum(side.least for side in sides)
    if least >= -math.log(delta):
        raise AssumptionsRefuted(
            f"at level delta the values refute sigma={a.sigma:g} with reward_range={a.reward_range}: no two means in "
            f"the range explain averages of {a.mean:.4g} and {b.mean:.4g}; pass reward_range=None if nothing bounds "
            "the means"
        )
    # Each s starts at its mean's; a set that is nearly empty is widened until there is room to search.
    level = max(-math.log(delta), least + 3.0 * _MARGIN) + sum(side.at_mean - side.least for side in sides)
    room = sides[0].at_mean + _MARGIN, level - sides[1].at_mean - _MARGIN

    def ends(s: float) -> tuple[float, float]:
        (a_low, a_high), (b_low, b_high) = sides[0].interval(s), sides[1].interval(level - s)
        return a_low - b_high, a_high - b_low

    lower = _least(lambda s: ends(s)[0], *room)[1]
    upper = -_least(lambda s: -ends(s)[1], *room)[1]
    widened = _MARGIN * (upper - lower)  # a search ends a little short of the extreme
    first, last = sorted(side.best for side in sides)
    evidence = _least(lambda m: a.log_evalue(m) + b.log_evalue(m), first, last)[1] - _MARGIN
    low, high = a.reward_range or (-math.inf, math.inf)
    lower, upper = max(lower - widened, low - high), min(upper + widened, high - low)
    return MeanComparison(lower, upper, math.exp(-max(evidence, 0.0)), False)


class _Side:
    """One side's values, with the mean that has the least evidence against it."""

    def __init__(self, sequence: MeanSequence) -> None:
        self.sequence = sequence
        mean = _clipped(sequence)
        self.at_mean = sequence.log_evalue(mean)
        if mean != sequence.mean:  # evidence is convex, and least at the end of the range that is nearest
            self.best, self.least = mean, self.at_mean
        else:
            self.best, self.least = _least(sequence.log_evalue, *self.interval(self.at_mean + _MARGIN))

    def interval(self, level: float) -> tuple[float, float]:
        return self.sequence.evidence.interval(self.sequence.record, level)


def _least(function: Callable[[float], float], low: float, high: float) -> tuple[float, float]:
    """Where a convex function on [low, high] is least, and what it is there."""
    from scipy.optimize import minimize_scalar  # imported late: it would be much of the package's import time

    if not high > low:
        return low, function(low)
    options = {"xatol": 1e-5 * (high - low)}
    # Plain floats overflow to infinity; those of numpy warn.
    found = minimize_scalar(lambda x: function(float(x)), bounds=(low, high), method="bounded", options=options)
    return float(found.x), float(found.fun)


def _apart(a: MeanSequence, b: MeanSequence) -> MeanComparison:
    """From the two intervals, each at δ/2: for evidence that must not be multiplied.

    The p-value needs the least over all common means of the larger of the two sides' ln E. Both are convex and at most
    0 at their own side's mean. So between the means one rises and the other falls, as far as they are positive, and
    the least is where they cross.
    """
    lower, upper = a.lower() - b.upper(), a.upper() - b.lower()
    near, far = _clipped(a), _clipped(b)
    if b.log_evalue(near) <= 0.0 or a.log_evalue(far) <= 0.0:
        return MeanComparison(lower, upper, 1.0, False)
    for _ in range(_STEPS):
        middle = 0.5 * (near + far)
        if a.log_evalue(middle) < b.log_evalue(middle):
            near = middle
        else:
            far = middle
    evidence = max(0.0, min(b.log_evalue(far), a.log_evalue(near)))  # both a little below the crossing
    return MeanComparison(lower, upper, min(1.0, 2.0 * math.exp(-evidence)), False)


def _clipped(sequence: MeanSequence) -> float:
    low, high = sequence.reward_range or (-math.inf, math.inf)
    return float(np.clip(sequence.mean, low, high))
