"""Whether values of the same configuration scatter more than `samples=m` allows.

A mean of m independent results in [0, 1] with expectation p scatters by at most √(p(1−p)/m). If a new seed or split
changes the trained model, or results are not independent, values scatter more, and bounds that rest on m are wrong.

For the values r_1, …, r_n of one configuration, of m results each, and forecasts q ~ Beta(a_k, b_k) of value k by the
values before it,

    E(p) = Π_{k≥2} E[q^{mr}(1−q)^{m(1−r)}] / (p^{mr}(1−p)^{m(1−r)})

is an e-process against p, so that it exceeds 1/δ with probability at most δ, whatever decided how often a configuration
is tried. Its minimum over p is at the mean of the values. Forecasts that expect extra noise make it large if there is
some. Products over configurations, averaged over several amounts of extra noise, are e-processes, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixbandit._checks import Array
from mixbandit.tuning.assumptions import Assumptions

# Variances that forecasts expect, as multiples of p(1−p)/m, and how much weight each has: power against a little extra
# noise is scarce, and a lot of it is found anyway.
_INFLATIONS, _WEIGHTS = (2.6, 5.0, 20.0), (0.75, 0.2, 0.05)
_LEAST_MEAN = 0.005
# So many equal values in a row are worth a word: means of 100 results repeat themselves in about one case of ten.
_SUSPICIOUS = 4


@dataclass(frozen=True)
class Scatter:
    """What repeats say about the noise of values."""

    repeats: int  # values beyond the first of their configurations
    log_evalue: float  # ln of the e-value against "no more noise than stated"
    delta: float
    unvaried: int = 0  # values of configurations whose repeats are all the same, though not at an end of the range

    @property
    def tested(self) -> bool:
        return self.repeats > 0

    @property
    def refuted(self) -> bool:
        return self.log_evalue >= -math.log(self.delta)

    def __str__(self) -> str:
        if not self.tested:
            return (
                "Whether training adds noise that samples does not cover could not be tested: no configuration was "
                "tried twice."
            )
        if self.refuted:
            return (
                f"REFUTED at level {self.delta:g}: values of the same configuration scatter more than the stated "
                "samples allow. Training is random as well, or the rows are not new each time."
            )
        return (
            f"The {self.repeats} repeated values scatter no more than the stated samples allow. {self.caution}".strip()
        )

    @property
    def caution(self) -> str:
        """What to check before the certificate is believed; empty if there is nothing."""
        if self.refuted or not self.unvaried:
            return ""
        return (
            f"{self.unvaried} repeated values are exactly equal, which hardly ever happens on new rows. If all trials "
            'used the same rows, nothing is guaranteed about new ones: state rows="fixed".'
        )


class Repeats(NamedTuple):
    """The values of one configuration, at least two, in order of play."""

    times: NDArray[np.int64]  # (n,): their places in the run
    values: Array  # (n,)


def scatter_of_repeats(groups: Sequence[Repeats], assumptions: Assumptions) -> Scatter:
    """The largest e-value that the repeats of a run ever gave: one that exceeds 1/δ at any time refutes."""
    assert assumptions.reward_range is not None
    low, high = assumptions.reward_range
    m = float(assumptions.counted or 1)
    times, changes = [np.empty(0, dtype=np.int64)], [np.empty((0, len(_INFLATIONS)))]
    for group in groups:
        shares = np.clip((group.values - low) / (high - low), 0.0, 1.0)
        times.append(group.times[1:])
        changes.append(np.diff(_log_evalues(shares, m), axis=0, prepend=0.0))
    order = np.argsort(np.concatenate(times), kind="stable")
    totals = np.cumsum(np.concatenate(changes)[order], axis=0)
    ever = np.logaddexp.reduce(totals + np.log(_WEIGHTS), axis=1)
    still = [len(group.values) - 1 for group in groups if _does_not_vary(group.values, low, high)]
    return Scatter(len(order), float(ever.max(initial=0.0)), assumptions.delta, sum(still))


def _does_not_vary(values: Array, low: float, high: float) -> bool:
    """Several equal values and no other: no proof, as results may be constant, and usual at an end of the range."""
    return len(values) >= _SUSPICIOUS and low < values[0] < high and bool((values == values[0]).all())


def _log_evalues(r: Array, m: float) -> Array:
    """Ln E at the p that is worst for it, after every value but the first, for every inflation: (n−1, inflations)."""
    from scipy.special import betaln, xlog1py, xlogy  # slow to import

    later, before = r[1:], np.arange(1, len(r))
    # Forecasts: the mean so far, drawn a little to ½ so that no result is impossible.
    mean = np.clip((np.cumsum(r)[:-1] * m + 0.5) / (before * m + 1.0), _LEAST_MEAN, 1.0 - _LEAST_MEAN)
    sums = np.cumsum(later)
    worst = sums / before
    at_worst = m * (xlogy(sums, worst) + xlog1py(before - sums, -worst))
    inflation = np.array(_INFLATIONS)
    # The variance of q: what is not known of the mean yet, and the extra noise of this value.
    most = (mean * (1.0 - mean))[:, None]
    variance = most / m * (inflation / before[:, None] + inflation - 1.0)
    size = most / np.minimum(variance, 0.9 * most) - 1.0
    a, b, hits = mean[:, None] * size, (1.0 - mean)[:, None] * size, (m * later)[:, None]
    steps = betaln(a + hits, b + m - hits) - betaln(a, b)
    return np.asarray(np.cumsum(steps, axis=0) - at_worst[:, None])
