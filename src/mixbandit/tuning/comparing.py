"""How much better one configuration is than another, and with what certainty."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mixbandit._checks import Array, as_float_array
from mixbandit.errors import STATEMENTS, InvalidInput
from mixbandit.means import compare_means
from mixbandit.spending import Ledger
from mixbandit.tuning.evidence import OwnTrials
from mixbandit.tuning.judgement import MODEL, Judgement
from mixbandit.tuning.ledgers import bounds_of

PAIRS = "pairs"
# A p-value below this is not told apart from it.
_LEAST_PVALUE = 1e-12


@dataclasses.dataclass(frozen=True)
class Comparison:
    """An interval for how much larger the expected value of one configuration is than that of another."""

    lower: float
    upper: float
    evidence: str  # "model", "own trials" or "pairs": which of them gives the lower end
    pvalue: float  # that they differ, by their own trials: valid at all times, and for any pair picked after the fact
    trusted: bool = True
    ledger: Ledger | None = dataclasses.field(default=None, repr=False, compare=False)  # how δ is divided

    def __str__(self) -> str:
        warning = "" if self.trusted else " NOT TRUSTED: the data refute the assumptions."
        by = "the pairs" if self.evidence == PAIRS else "their own trials"
        who = "the model" if self.evidence == MODEL else by
        return (
            f"The difference lies in [{self.lower:.4g}, {self.upper:.4g}], according to {who}; "
            f"p = {self.pvalue:.4g} by {by}.{warning}"
        )


def compare(
    judgement: Judgement,
    one: Mapping[str, Any],
    other: Mapping[str, Any],
    pairs: Sequence[tuple[float, float]] | None = None,
) -> Comparison:
    """How much larger the expected value of one configuration is than that of another.

    `pairs` are paired values of both, such as results on the same rows: what they have in common cancels. The interval
    then rests on the pairs alone, at all of δ.
    """
    if pairs is not None:
        return _compared_in_pairs(judgement, one, other, pairs)
    rows = np.array([judgement.space.encode(one), judgement.space.encode(other)])
    lower, by = difference(judgement, rows[0], rows[1])
    upper = -difference(judgement, rows[1], rows[0])[0]
    lower, upper = judgement.as_values(lower, upper)
    return Comparison(lower, upper, by, pvalue(judgement, rows[0], rows[1]), judgement.trusted, bounds_of(judgement))


def _compared_in_pairs(
    judgement: Judgement, one: Mapping[str, Any], other: Mapping[str, Any], pairs: Sequence[tuple[float, float]]
) -> Comparison:
    for parameters in (one, other):
        judgement.space.encode(parameters)
    known = judgement.assumptions
    values = as_float_array(pairs, "pairs")
    if values.ndim != 2 or values.shape[1] != 2:
        raise InvalidInput(f"pairs must be values of both configurations, of shape (n, 2), got {values.shape}")
    ends = known.reward_range if known.counts_results else None
    if known.sigma is not None:
        raise InvalidInput(
            f"pairs need reward_range or noise: sigma is about single values, not differences; {STATEMENTS}"
        )
    a, b = values[:, 0], values[:, 1]
    found = compare_means(a, b, reward_range=ends, delta=known.delta, paired=True, noise=known.noise)
    return Comparison(found.lower, found.upper, PAIRS, found.pvalue, ledger=found.ledger)


def difference(judgement: Judgement, one: Array, other: Array) -> tuple[float, str]:
    """At least how much more one configuration is worth than another, and who says so."""
    model = judgement.bounding
    directions = model.directions(np.array([one, other]))
    most = float(model.exact.maximum(directions[1:] - directions[0]).max())
    by_model = -model.response.difference(most)
    mine, others = judgement.ends(np.array([one, other]))
    apart = mine.lower - others.upper
    return (apart, mine.evidence) if apart > by_model else (by_model, MODEL)


def pvalue(judgement: Judgement, one: Array, other: Array) -> float:
    """The least δ at which the own trials of two configurations tell them apart."""
    if judgement.own is None or not (judgement.own.count(one) and judgement.own.count(other)):
        return 1.0

    def apart(delta: float) -> bool:
        assert judgement.own is not None
        own = OwnTrials(dataclasses.replace(judgement.assumptions, delta=delta), judgement.own.trials)
        a, b = own.interval(one), own.interval(other)
        return a.lower > b.upper or b.lower > a.upper

    low, high = math.log(_LEAST_PVALUE), math.log(0.5)
    if not apart(0.5):
        return 1.0
    if apart(_LEAST_PVALUE):
        return _LEAST_PVALUE
    while high - low > 0.01:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if apart(math.exp(middle)) else (middle, high)
    return math.exp(high)
