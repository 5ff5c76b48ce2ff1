"""What the user assumes about values, and the confidence sequence that follows.

Values are turned into rewards around 0, to be maximised: reward = ±(value − offset).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from mixbandit._checks import (
    LARGEST_DATUM,
    LARGEST_SETTING,
    Array,
    as_range,
    as_text,
    check_finite,
    error_probability,
    nonnegative,
    one_of,
    positive,
    positive_int,
    probability,
    shown,
)
from mixbandit._schema import Since, checked, integer, one_of_these, optional, real, record
from mixbandit.errors import STATEMENTS, AssumptionsMissing, InvalidInput, RowsMissingWarning, reading, warn_user
from mixbandit.features import FeatureMap
from mixbandit.kernels import Kernel
from mixbandit.mixtures import MOST_RESULTS, Forecaster, Grid, Mixture
from mixbandit.models import KernelListModel, as_model
from mixbandit.sequences import KernelMixture, MartingaleMixture, Moment, ResidualBallSequence, UnknownNoise
from mixbandit.tuning.default_model import MOST_ROWS, default_features, default_kernel, default_suspects
from mixbandit.tuning.space import Space

DIRECTIONS = ("maximize", "minimize")
NOISES = ("gaussian",)
FRESH, POOL, FIXED = "fresh", "pool", "fixed"
ROWS = (FRESH, POOL, FIXED)
# What `rows` becomes if `samples` is stated without it: new rows, for now, and certificates say that nobody stated it.
UNSTATED = "unstated"
ModelLike = FeatureMap | Kernel | Sequence[Kernel]
"""Features, a kernel, or a list of kernels."""
# With the default model, chosen by measurement (docs/how-to/tuning.md): the bound on the norm of the function, in
# widths of the range; the scales of the mixture, in squared widths, and the one whose closed form is acted on.
NORM, SCALES, ACTING_SCALE = 2.0, (0.01, 0.1, 1.0), 0.1
_ROUNDING = 1e-9
STATE_ROWS = (
    'state rows="fresh" if every trial is measured on new rows, or pool=N if its rows are drawn with replacement from '
    f"one set of N rows. Until then, new rows are assumed; {STATEMENTS}"
)


class Stated(TypedDict, total=False):
    """The fields of `Assumptions` as keywords, accepted wherever an `Assumptions` object is."""

    reward_range: tuple[float, float] | None
    samples: int | None
    rows: str | None
    pool: int | None
    sigma: float | None
    noise: str | None
    norm_bound: float | None
    planned: int | None
    delta: float
    misspecification: float
    direction: str


@dataclass(frozen=True)
class Assumptions:
    """Assumptions about values, stated once for `Tuner`, `certify`, the Optuna sampler and the command line.

    - `reward_range=(low, high)`: contains all *expected* values.
    - `samples=m`: a value is the mean of m independent results, each in the range. With the range alone, a value counts
      as one such result. Accuracy, error rates and mean losses are means; AUC, F1, R², medians and quantiles are not,
      and neither is the best of several epochs. A new seed or split that changes the trained model adds noise that
      `samples` does not cover: state `sigma` or `noise` for such values.
    - `rows`, to be stated with `samples`: "fresh", every trial is measured on new rows; or "pool", the rows of each
      trial are drawn with replacement from one pool of `pool=N` rows. Bounds are then about the pool, and
      `on_new_rows` of a certificate says what follows for new rows. "fixed", all trials are measured on the same rows,
      is for `certify` only.
    - `sigma`: the noise level of a value. Single values may then lie outside the range.
    - `noise="gaussian"`: Gaussian noise of one level, which is learnt. Never use it for accuracies close to an end of
      the range: values that pile up there are refused.
    - `norm_bound`: a bound on the norm of the function in the model; by default twice the width of the range.
    - `planned=N`: the number of configurations, if it was fixed before the first trial. Each of them then gets the same
      share of δ for its own trials; otherwise later ones get smaller shares.
    - `delta`: the probability of a wrong statement. `misspecification`: how far expected values may deviate from the
      model.
    - `direction`: "maximize" or "minimize"; by default the study's, or "maximize" without one.
    """

    reward_range: tuple[float, float] | None = None
    samples: int | None = None
    sigma: float | None = None
    norm_bound: float | None = None
    delta: float = 0.05
    misspecification: float = 0.0
    direction: str | None = None
    noise: str | None = None
    planned: int | None = None
    rows: str | None = None
    pool: int | None = None

    def __post_init__(self) -> None:
        if self.direction is not None:
            one_of(self.direction, DIRECTIONS, "direction")
        if self.reward_range is not None:
            object.__setattr__(self, "reward_range", as_range(self.reward_range, "reward_range"))
        if self.noise is not None:
            one_of(self.noise, NOISES, "noise")
        stated = [name for name in ("sigma", "samples", "noise") if getattr(self, name) is not None]
        if len(stated) > 1:
            raise InvalidInput(f"state {stated[0]} or {stated[1]}, not both")
        for name in ("samples", "planned", "pool"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, positive_int(getattr(self, name), name))
        for name in ("sigma", "norm_bound"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, positive(getattr(self, name), name))
        object.__setattr__(self, "delta", error_probability(self.delta, "delta"))
        object.__setattr__(self, "misspecification", nonnegative(self.misspecification, "misspecification"))
        object.__setattr__(self, "rows", self._stated_rows())

    def _stated_rows(self) -> str | None:
        """Where results come from, if that is consistent."""
        rows = (
            as_text(self.rows, "rows") if isinstance(self.rows, str) else self.rows
        )  # a subclass may compare as it likes
        if rows is not None and not (isinstance(rows, str) and rows == UNSTATED):
            rows = one_of(rows, ROWS, "rows")
        if self.pool is None and rows != POOL:
            if self.samples is None or rows is not None:
                return rows
            warn_user(f"samples={self.samples} without rows is deprecated: {STATE_ROWS}", RowsMissingWarning)
            return UNSTATED
        if rows not in (None, POOL):
            raise InvalidInput(f'pool={self.pool} means rows="pool", but rows={rows!r} is stated')
        for name, meaning in (("pool", "its number of rows"), ("samples", "the number of rows drawn for a value")):
            if getattr(self, name) is None:
                raise InvalidInput(f'rows="pool" needs {name}=…, {meaning}')
        return POOL

    @classmethod
    def of(cls, given: Assumptions | None, stated: Stated) -> Assumptions:
        """The assumptions, given as one object or as keywords, not both."""
        unknown = [name for name in stated if name not in cls.__dataclass_fields__]
        if unknown:
            known = ", ".join(cls.__dataclass_fields__)
            raise InvalidInput(f"unknown option {shown(unknown[0])}; assumptions are {known}")
        if given is None:
            return cls(**stated)
        if stated:
            raise InvalidInput(
                f"state assumptions as one object or as keywords, not both; got {shown(given)} and {shown(stated)}"
            )
        if not isinstance(given, Assumptions):
            raise InvalidInput(f"assumptions must be an Assumptions object, or stated as keywords; got {shown(given)}")
        return given

    def with_rows(self, rows: str | None, pool: int | None = None) -> Assumptions:
        """The same assumptions, with this statement about rows, unless they contradict it."""
        if rows is not None:
            one_of(rows, ROWS, "rows")
        pool = None if pool is None else positive_int(pool, "pool")
        given = POOL if rows is None and pool is not None else rows
        if given is None:
            return self
        if self.rows not in (None, UNSTATED, given) or (self.pool is not None and pool not in (None, self.pool)):
            mine = f"rows={self.rows!r}" if self.pool is None else f"pool={self.pool}"
            other = f"rows={shown(rows)}" if pool is None else f"pool={shown(pool)}"
            raise InvalidInput(f"{other} contradicts the assumptions, which state {mine}")
        return dataclasses.replace(self, rows=given, pool=self.pool if pool is None else pool)

    def check_rows_vary(self) -> None:
        """Raise InvalidInput if all values come from the same rows: then no confidence sequence learns from them."""
        if self.rows == FIXED:
            raise InvalidInput(
                'rows="fixed" is for certify: values on the same rows share their luck, and more of them say no more. '
                "Draw new rows for every trial, or draw them from a pool and state pool=N, its number of rows"
            )

    def towards(self, direction: str) -> Assumptions:
        """The same assumptions, with this direction unless one was stated."""
        return self if self.direction is not None else dataclasses.replace(self, direction=direction)

    @property
    def is_stated(self) -> bool:
        """Whether anything bounds the noise."""
        return self.reward_range is not None or self.sigma is not None or self.noise is not None

    @property
    def counts_results(self) -> bool:
        """Whether the noise is known because values are means of results in a range, or single ones."""
        return self.sigma is None and self.noise is None

    @property
    def counted(self) -> int | None:
        """The samples that count: a mean of more results is, by Jensen's inequality, as safe as one of fewer."""
        return None if self.samples is None else min(self.samples, MOST_RESULTS)

    def check_complete(self) -> None:
        """Raise AssumptionsMissing unless both the noise and the function are bounded."""
        if self.noise is None:
            _ = self.level
        _ = self.norm

    @property
    def level(self) -> float:
        """σ as stated, or by Hoeffding's lemma."""
        if self.sigma is not None:
            return self.sigma
        if self.reward_range is None:
            raise AssumptionsMissing(
                "nothing bounds the noise, so nothing can be guaranteed. If single results lie in a range, as for "
                "accuracy, state reward_range=(0, 1) and samples=…, the number of results that a value averages (such "
                "as validation rows); or sigma, the standard deviation of a value around its expectation; or "
                'noise="gaussian", if the noise is Gaussian with the same level everywhere. If all trials used the '
                f'same rows or folds, none of these fits: certify takes rows="fixed"; {STATEMENTS}'
            )
        low, high = self.reward_range
        return (high - low) / (2.0 * math.sqrt(self.samples or 1))

    @property
    def norm(self) -> float:
        """The norm bound as stated, or twice the width of the range."""
        if self.norm_bound is not None:
            return self.norm_bound
        if self.reward_range is None:
            raise AssumptionsMissing(
                "nothing bounds the function: state reward_range=(low, high), the range of expected values, or "
                f"norm_bound, a bound on the norm of its parameter vector; {STATEMENTS}"
            )
        return NORM * (self.reward_range[1] - self.reward_range[0])

    @property
    def scale(self) -> float:
        """The unit of values: quantities measured in it must not depend on how values are scaled."""
        return self.norm / NORM if self.reward_range is None else self.reward_range[1] - self.reward_range[0]

    @property
    def offset(self) -> float:
        """The value whose reward is 0: the middle of the range."""
        return 0.0 if self.reward_range is None else 0.5 * (self.reward_range[0] + self.reward_range[1])

    @property
    def sign(self) -> float:
        return -1.0 if self.direction == "minimize" else 1.0

    def reward(self, value: Array) -> Array:
        """Values as rewards. If the noise level comes from the range, a value outside it is an error."""
        check_finite(value, "value", LARGEST_DATUM)
        wrong = value[self._outside(value)]
        if self.reward_range is not None and len(wrong):
            low, high = self.reward_range
            raise InvalidInput(
                f"value {wrong[0]:g} lies outside reward_range=({low:g}, {high:g}), which must contain all results: "
                f"state a wider range, or sigma instead of samples if values can lie outside; {STATEMENTS}"
            )
        return self.sign * (value - self.offset)

    def objection(self, value: float) -> str | None:
        """What about a value contradicts these assumptions, for counting such values; None if nothing does."""
        if not abs(value) <= LARGEST_DATUM:
            return f"with a value that is infinite or larger than {LARGEST_DATUM:g}"
        return "with a value outside reward_range" if self._outside(np.array(value)) else None

    def _outside(self, value: Array) -> NDArray[np.bool_]:
        """Whether values lie outside the range, if the noise level comes from it: then it contains all results."""
        if not self.counts_results or self.reward_range is None:
            return np.zeros(value.shape, dtype=bool)
        low, high = self.reward_range
        slack = _ROUNDING * (high - low)
        return (value < low - slack) | (value > high + slack)

    def interval(self, lower: float, upper: float) -> tuple[float, float]:
        """Bounds on a reward as bounds on the value."""
        low, high = sorted(self.offset + self.sign * bound for bound in (lower, upper))
        return low, high

    def sequence(
        self,
        space: Space,
        features: ModelLike | None = None,
        mixture: Mixture | Forecaster | None = None,
        rows: int = 0,
    ) -> ResidualBallSequence:
        """The confidence sequence of rewards, before any data; with the default model, for this many of them."""
        self.check_complete()
        self.check_rows_vary()
        ends = self.reward_range
        known: dict[str, Any] = {
            "norm_bound": self.norm,
            "delta": self.delta,
            "reward_range": None if ends is None else (ends[0] - self.offset, ends[1] - self.offset),
            "misspecification": self.misspecification,
            "on_empty": "inflate",
        }
        if features is None:
            features = default_kernel(space) if rows <= MOST_ROWS else default_features(space)
            known["suspects"] = default_suspects(space) if rows <= MOST_ROWS else ()
        given = as_model(features, space.dim)
        if self.noise is not None:
            if mixture is not None:
                raise InvalidInput("a mixture needs sigma or samples: noise='gaussian' has its own forecasts")
            known.pop("suspects", None)
            sequence: ResidualBallSequence = UnknownNoise(given, **known)  # type: ignore[arg-type]
        else:
            known |= {"sigma": self.level, "mixture": default_mixture(self) if mixture is None else mixture}
            kind = KernelMixture if isinstance(given, KernelListModel) else MartingaleMixture
            sequence = kind(given, **known)  # type: ignore[arg-type]
        inputs = sequence.dim_in
        if inputs != space.dim:
            raise InvalidInput(f"features must take as many inputs as the space has ({space.dim}), got {inputs}")
        return sequence

    def __str__(self) -> str:
        known = [_noise_in_words(self)]
        if self.reward_range is not None:
            known.append(f"expected values in [{self.reward_range[0]:g}, {self.reward_range[1]:g}]")
        around = f" around {self.offset:g}" if self.offset else ""
        known.append(f"a function of norm_bound={self.norm:g}{around}")
        if self.misspecification:
            known.append(f"misspecification={self.misspecification:g}")
        return ", ".join(known)

    def state_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any]) -> Assumptions:
        stored = checked(ASSUMPTIONS, state, "assumptions")
        if stored["samples"] is not None and stored["rows"] is None and stored["pool"] is None:
            stored["rows"] = UNSTATED  # an older file, and no news to whoever loads it
        with reading("the assumptions"):
            found = cls(**stored)
            found.check_complete()
        return found


ASSUMPTIONS = record(
    {
        "reward_range": optional(as_range),
        "samples": optional(integer(1)),
        "sigma": optional(real(positive)),
        "norm_bound": optional(real(positive)),
        "delta": real(probability),
        "noise": Since(optional(one_of_these(*NOISES))),
        "planned": Since(optional(integer(1))),
        "rows": Since(optional(one_of_these(*ROWS, UNSTATED))),
        "pool": Since(optional(integer(1))),
        "misspecification": real(nonnegative),
        "direction": optional(one_of_these(*DIRECTIONS)),
    }
)
"""The state of assumptions."""


def _noise_in_words(assumptions: Assumptions) -> str:
    if assumptions.noise is not None:
        return "Gaussian noise of one level, the same for all configurations"
    if assumptions.sigma is not None:
        return f"noise of sigma={assumptions.sigma:.4g}"
    if assumptions.samples is None:
        return "values that are single results (samples not stated)"
    plural = "s" if assumptions.samples > 1 else ""
    return f"values that average {assumptions.samples} independent result{plural} {rows_in_words(assumptions)}"


def rows_in_words(assumptions: Assumptions) -> str:
    """What is assumed of the rows that values with `samples` were measured on."""
    if assumptions.pool is not None:
        return f"drawn with replacement from one pool of {assumptions.pool:,} rows"
    if assumptions.rows == FIXED:
        return "on the same rows in every trial"
    return "on new rows (assumed, not stated)" if assumptions.rows == UNSTATED else "on new rows"


def default_mixture(assumptions: Assumptions) -> Grid:
    """The mixture of a sequence with a stated noise level."""
    return Grid(mixture_scales(assumptions))


def mixture_scales(assumptions: Assumptions) -> list[float]:
    """The scales of mixtures, in squared units of values."""
    # Scales beyond what a mixture takes are of values so small or large that it does not matter which.
    most = LARGEST_SETTING
    return [min(max(c * assumptions.scale**2, 1.0 / most), most) for c in SCALES]


def outgrowing(assumptions: Assumptions, space: Space, moment: Moment) -> Moment:
    """A moment of the default model that turns to features when there are too many trials for its kernel."""
    if moment.model.kernel != default_kernel(space):
        return moment
    mixture = None if assumptions.noise is not None else moment.rule.mixture  # type: ignore[attr-defined]
    return moment.until(MOST_ROWS, assumptions.sequence(space, default_features(space), mixture).moment)


def acting_alpha(assumptions: Assumptions) -> float | None:
    """The multiplier of the closed form that suits acting with the default mixture; None: no one does."""
    return None if assumptions.noise is not None else assumptions.level**2 / (ACTING_SCALE * assumptions.scale**2)


def check_values(assumptions: Assumptions, values: Array) -> None:
    """Refuse Gaussian noise where values pile up at an end of the range: there they are no such values."""
    if assumptions.noise is None or assumptions.reward_range is None:
        return
    for end in assumptions.reward_range:
        piled = int(np.count_nonzero(values == end))
        if piled > 1:
            raise InvalidInput(
                f"noise={assumptions.noise!r} does not fit: {piled} of {len(values)} values are exactly {end:g}, the "
                "end of reward_range, where guarantees for Gaussian noise fail. If values are means of results in "
                f"the range, state samples=…, the number of results, instead; {STATEMENTS}"
            )


def spread_of(assumptions: Assumptions, value: float | None) -> float | None:
    """About how much values scatter around this expected value, for estimates; None if nothing says so."""
    if assumptions.noise is not None:
        return None
    if not assumptions.counts_results or assumptions.reward_range is None or value is None:
        return assumptions.level
    low, high = assumptions.reward_range
    p = min(max((value - low) / (high - low), 0.02), 0.98)
    return (high - low) * math.sqrt(p * (1.0 - p) / (assumptions.samples or 1))
