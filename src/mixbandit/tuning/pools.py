"""What values on draws from one pool of rows say about new rows.

| symbol | meaning |
|---|---|
| N | rows in the pool: independent new rows, which trained no model |
| m | rows drawn from it, with replacement, for each value |
| A, p | expected value of a configuration on the pool, and on new rows, both in [0, 1] |
| k | the place of the trial that tried it first; failed and pruned trials count |
| δ′ | the part of δ for this step |

Given the pool, draws with replacement are independent, so that all bounds hold for A, whatever the search did. The
pool's own luck is in all of them: a search learns it, and A of the recommended configuration exceeds p.

The tuner's random numbers and the draws do not depend on what the pool contains. Given these, the k-th trial's
configuration is a function of the k − 1 outcomes before it. Means of m yes-or-no results have m + 1 values, and a trial
may also fail, so it is one of at most (m + 2)^(k−1) configurations that were fixed before the pool was drawn. In a
finite space it is one of M. For each of those, A is a mean of N independent results in [0, 1] with expectation p, and
by Chernoff's bound and a union over sides and configurations, all of them satisfy, with probability ≥ 1 − δ′,

    N·kl(A, p) ≤ ln(2/δ′) + ln M,   or   N·kl(A, p) ≤ ln(2/δ′) + ln(k(k+1)) + (k−1)·ln(m+2).

With A in the interval of the configuration's own trials this gives an interval for p. No model enters, so the model's
share of δ pays for δ′: the statement about new rows holds with probability ≥ 1 − δ by itself.

If trials run in parallel, k − 1 must bound how many outcomes a configuration was chosen from. It does if parameters are
chosen when a trial begins, or if values are listed in the order in which they came.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from mixbandit._checks import Array
from mixbandit._words import confidence
from mixbandit.spending import level_of_each, places
from mixbandit.tuning.assumptions import Assumptions
from mixbandit.tuning.chernoff import chernoff_ends
from mixbandit.tuning.evidence import divided
from mixbandit.tuning.judgement import Judgement
from mixbandit.tuning.space import size_of

# How far a count of hits may be from an integer, by rounding.
_ROUNDING = 1e-6
_FRESH = "Measure it on fresh rows, such as with mb.certify_fitted"


class NewRows(NamedTuple):
    """An interval for the expected value on new rows; `unknown` says why it is no more than the stated range."""

    lower: float
    upper: float
    unknown: str | None = None


def from_pool(
    judgement: Judgement, parameters: Mapping[str, Any], others: int, *, inferred: bool, pruned: bool
) -> NewRows:
    """What is known of a configuration on new rows, from trials on draws from a pool.

    `others` is the number of trials without a value that counts. `inferred`: the space was inferred from the trials, so
    that its size was not known in advance. `pruned`: some were pruned, so that outcomes are more than their values.
    """
    known = judgement.assumptions
    assert known.pool is not None
    assert known.reward_range is not None
    low, high = known.reward_range
    row = judgement.space.encode(parameters)
    at = np.empty(0) if judgement.own is None else np.flatnonzero((judgement.own.trials.rows == row).all(axis=1))
    if judgement.own is None or not len(at):
        return NewRows(low, high, "it was never tried")
    trials = judgement.own.trials
    place = (int(at[0]) + 1 if trials.ordered else len(trials.values)) + others
    size = None if inferred else size_of(judgement.space)
    if size is None and pruned:
        return NewRows(low, high, "trials were pruned, and the space is not a finite list")
    if size is None and not yes_or_no(trials.values, known):
        return NewRows(low, high, "values are no means of yes-or-no results, and the space is not a finite list")
    own = judgement.own.interval(row)
    ends = np.clip(((own.lower - low) / (high - low), (own.upper - low) / (high - low)), 0.0, 1.0)
    delta = divided(known.delta)["model"].delta  # no model enters here
    lower, upper = on_new_rows(ends, known.pool, delta, log_choices(place, known.samples or 1, size))
    bounds = low + (high - low) * lower, low + (high - low) * upper
    worst = lower if known.sign > 0.0 else 1.0 - upper
    too_few = f"{known.pool:,} rows are too few for a search of this many trials"
    return NewRows(*bounds, None if worst > _ROUNDING else too_few)


def on_new_rows(ends: Array, rows: int, delta: float, log_choices: float) -> tuple[float, float]:
    """An interval for p, given one for A: the smallest and the largest p that are within Chernoff's bound of its ends.

    `log_choices`: ln of the number of configurations that the search may have ended with, fixed before the pool.
    """
    level = level_of_each(-math.log(delta), math.log(2.0) + log_choices)  # of each end of each choice
    lower, upper = chernoff_ends(ends, np.array(float(rows)), level)
    return float(lower[0]), float(upper[1])


def log_choices(place: int, samples: int, size: int | None) -> float:
    """Ln of how many configurations the one of this place was drawn from, each weighted as in the module's formula."""
    if size is not None:
        return math.log(size)
    return math.log(places(place)) + (place - 1.0) * math.log(samples + 2.0)


def yes_or_no(values: Array, known: Assumptions) -> bool:
    """Whether values are means of results that are all at one end of the range or the other."""
    assert known.reward_range is not None
    assert known.samples is not None
    low, high = known.reward_range
    hits = (values - low) / (high - low) * known.samples
    return bool((np.abs(hits - np.rint(hits)) <= _ROUNDING * max(known.samples, 1)).all())


def in_words(found: NewRows, known: Assumptions) -> str:
    """The sentence about new rows."""
    if found.unknown is not None:
        return f"Nothing is guaranteed about new rows: {found.unknown}. {_FRESH}."
    worth = f"at least {found.lower + 0.0:.4g}" if known.sign > 0.0 else f"at most {found.upper + 0.0:.4g}"
    return (
        f"On new rows it is {worth}, also with probability {confidence(known.delta)}, if the pool is a sample of new "
        "rows that trained no model."
    )
