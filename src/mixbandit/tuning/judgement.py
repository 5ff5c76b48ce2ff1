"""All that is known about configurations: what a model of the whole space says, and what their own trials say.

Worths are values, or minus the values if the smallest is best: larger is better.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from mixbandit._checks import Array
from mixbandit._lazy import lazy
from mixbandit.bandits.choosing import READING_SEED
from mixbandit.models import box_model
from mixbandit.search import search_box
from mixbandit.sequences import Audit, Moment
from mixbandit.sets import RidgeEllipsoid, SpectralEllipsoid
from mixbandit.tuning.assumptions import ACTING_SCALE, Assumptions, spread_of
from mixbandit.tuning.evidence import Interval, OwnTrials, Trials
from mixbandit.tuning.repeats import Scatter, scatter_of_repeats
from mixbandit.tuning.space import Space, enumerated

MODEL, OWN_TRIALS = "model", "own trials"
# Bounds are computed for this many configurations at a time: the features of a million would need gigabytes.
_AT_ONCE = 4 * 4096
# Spaces of up to this many configurations are enumerated.
_MOST_ENUMERATED = 100_000


@dataclasses.dataclass(frozen=True)
class Worth:
    """An interval for the expected value of a configuration, and what it is based on."""

    lower: float
    upper: float
    evidence: str  # "model" or "own trials": which of them says that it is worth at least so much
    trials: int  # how often it was tried
    trusted: bool = True  # False: the data refute the assumptions, and nothing is guaranteed

    @property
    def interval(self) -> tuple[float, float]:
        return self.lower, self.upper

    def __str__(self) -> str:
        tried = f"tried {self.trials} time{'' if self.trials == 1 else 's'}" if self.trials else "never tried"
        warning = "" if self.trusted else "; NOT TRUSTED: the data refute the assumptions"
        return f"in [{self.lower:.4g}, {self.upper:.4g}], according to {by_whom(self.evidence)} ({tried}{warning})"


def by_whom(evidence: str) -> str:
    """The evidence, in words."""
    return "its own trials" if evidence == OWN_TRIALS else f"the {evidence}"


class Ends(NamedTuple):
    """Bounds on the worth of one configuration."""

    lower: float
    upper: float
    evidence: str
    contradicts: bool  # whether the model and its own trials leave nothing in common


class Judgement:
    """A model's moment with the trials that it learnt from. `refuted`: whether the assumptions were refuted before."""

    def __init__(
        self, space: Space, assumptions: Assumptions, moment: Moment, trials: Trials | None, refuted: bool = False
    ) -> None:
        self.space, self.assumptions, self.moment = space, assumptions, moment
        self.own = None if trials is None else OwnTrials(assumptions, trials)
        self._refuted = refuted

    @property
    def shift(self) -> float:
        """From rewards to worths."""
        return self.assumptions.sign * self.assumptions.offset

    @lazy
    def bounding(self) -> Moment:
        """The model that bounds rest on: without any value where its part of δ may have been spent on other trials."""
        return self.moment.blank() if self.own is not None and self.own.trials.confirmations else self.moment

    @lazy
    def scatter(self) -> Scatter | None:
        """Whether repeats scatter more than `samples` allows; None where nothing is stated that this could test."""
        if self.own is None or not self.assumptions.counts_results:
            return None
        return scatter_of_repeats(self.own.repeated, self.assumptions)

    @lazy
    def refutation(self) -> str | None:
        """What refutes the assumptions, in words; None if nothing does."""
        if not self.moment.is_trusted:
            return f"the values refute the stated assumptions: {self.moment.refutation or 'the model does not fit'}"
        if self.scatter is not None and self.scatter.refuted:
            return (
                "values of the same configuration scatter more than the stated samples allow: training is random as "
                "well, or the rows are not new each time"
            )
        if self._contradiction:
            return "the model and a configuration's own trials contradict each other"
        return "the values refute the stated assumptions" if self._refuted else None

    @property
    def trusted(self) -> bool:
        return self.refutation is None

    @lazy
    def _contradiction(self) -> bool:
        if self.own is None:
            return False
        rows = self.own.promising()
        return any(ends.contradicts for ends in self.ends(rows))

    def ends(self, rows: Array) -> list[Ends]:
        """Bounds on the worth of configurations: the better of what the model and their own trials say."""
        found: list[Ends] = []
        for start in range(0, len(rows), _AT_ONCE):
            part = rows[start : start + _AT_ONCE]
            known = self.bounding.interval(self.bounding.directions(part))
            pairs = zip((known.lower + self.shift).tolist(), (known.upper + self.shift).tolist(), strict=True)
            found += [self._best(low, high, row) for (low, high), row in zip(pairs, part, strict=True)]
        return found

    def _best(self, low: float, high: float, row: Array) -> Ends:
        own = self.own_ends(row)
        evidence = OWN_TRIALS if own.lower > low else MODEL
        lower, upper = max(low, own.lower), min(high, own.upper)
        if lower <= upper:
            return Ends(lower, upper, evidence, False)
        # One of them is wrong; the model assumes more.
        return Ends(own.lower, own.upper, OWN_TRIALS, True)

    def own_ends(self, row: Array) -> Interval:
        """Bounds on the worth of a configuration by its own trials."""
        if self.own is None:
            return Interval(-math.inf, math.inf, 0)
        found = self.own.interval(row)
        return found if self.assumptions.sign > 0.0 else Interval(-found.upper, -found.lower, found.trials)

    def of(self, parameters: Mapping[str, Any]) -> Worth:
        """What is known about a configuration, tried or not."""
        return self.of_row(self.space.encode(parameters))

    def of_row(self, row: Array) -> Worth:
        ends = self.ends(row[None])[0]
        lower, upper = self.as_values(ends.lower, ends.upper)
        return Worth(lower, upper, ends.evidence, self.tried(row), self.trusted and not ends.contradicts)

    def tried(self, row: Array) -> int:
        return 0 if self.own is None else self.own.count(row)

    def as_values(self, lower: float, upper: float) -> tuple[float, float]:
        """Bounds on a worth, or on a difference of worths, as bounds on values."""
        return (lower, upper) if self.assumptions.sign > 0.0 else (-upper, -lower)

    def audit(self) -> Audit:
        """What the values say about the assumptions."""
        found = self.moment.audit() if self.scatter is None else self.moment.audit().without_repeats()
        return dataclasses.replace(found, reward_range=self.assumptions.reward_range)

    @lazy
    def everything(self) -> Array | None:
        """All configurations, where there are few enough to look at each."""
        return enumerated(self.space, _MOST_ENUMERATED)

    def given(self, row: Array) -> dict[str, Any]:
        """The configuration of a row, as it was given if it was tried."""
        given = None if self.own is None else self.own.given(row)
        return self.space.decode(row) if given is None else given

    @lazy
    def _centre(self) -> RidgeEllipsoid:
        """Estimates of rewards, no guarantee: ridge regression under the noise that values seem to have."""
        data = self.moment.data
        spread = spread_of(self.assumptions, float(np.median(self._values)) if self.own is not None else None)
        if spread is None:
            alpha = self.moment.alpha0
        else:
            # Rows of values with noise levels of their own are weighted so that their noise is the stated one; those
            # of a bounded set are weighted by how many results they average.
            each = 1.0 if self.assumptions.sigma is not None else data.weight2 / max(data.count, 1)
            alpha = each * spread**2 / (ACTING_SCALE * self.assumptions.scale**2)
        return RidgeEllipsoid(data.ridge(alpha), 0.0, lambda: SpectralEllipsoid(data.spectrum, alpha, 0.0))

    @property
    def _values(self) -> Array:
        assert self.own is not None
        return self.own.trials.values

    def estimates(self, rows: Array) -> Array:
        """Estimates of worths, (n,), which are no guarantee."""
        return self._centre.maximum(self.moment.directions(rows)) + self.shift

    def best_estimate(self, warm: Array | None = None) -> Array:
        """The configuration with the best estimate, tried or not, as a row."""
        rng = np.random.default_rng(READING_SEED)
        found = search_box(self._centre, box_model(self.moment.model), self.space.region, rng, warm=warm)
        return self.space.snapped(found.action)
