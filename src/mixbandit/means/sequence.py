"""One mean without a model: an interval that holds at all times at once, e-values and p-values."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixbandit._checks import (
    LARGEST_DATUM,
    Array,
    as_float_array,
    as_range,
    as_vector,
    finite,
    one_of,
    positive,
    positive_int,
    probability,
    shown,
    underflowing,
)
from mixbandit._locks import Lock, locked
from mixbandit._schema import (
    Fields,
    array,
    integer,
    one_of_these,
    optional,
    real,
    record,
    require,
)
from mixbandit.errors import STATEMENTS, AssumptionsMissing, DamagedState, InvalidInput
from mixbandit.means.bounded import Bounded
from mixbandit.means.gaussian import KnownLevel, UnknownLevel
from mixbandit.means.kinds import Kind, Range, Record
from mixbandit.storage import FILES, Family, Storable, Stored

STATE_VERSION = 1
LARGEST_SAMPLES = 10**12
"""Beyond, a result more or less is lost to rounding."""
_MOST_APART, _ROUNDING = 1e6, 1e-9
ALTERNATIVES = ("two-sided", "greater", "less")


def _fits(stored: Fields, where: str) -> None:
    require(len(stored["values"]) == len(stored["samples"]), where, "has as many samples as values")


_STATE = record(
    {
        "version": integer(1, STATE_VERSION),
        "reward_range": optional(as_range),
        "delta": real(probability),
        "sigma": optional(real(positive)),
        "noise": optional(one_of_these("gaussian")),
        "values": array(None),
        "samples": array(None),
    },
    _fits,
)


class MeanSequence(Storable):
    """Bounds on the mean of values that hold at all times at once with probability ≥ 1 − `delta`.

    You may look after every value and stop when you like. Each value must have the same expectation given those before
    it, as independent values of one mean do. State one of

    - `reward_range=(low, high)` alone: every single result lies in it. Bounds adapt to the spread of the results. For
      values that are means of several results, use `update(values, samples=…)`.
    - `sigma`: values are sub-Gaussian of this level; for values of other levels, use `update(values, sigma=…)`.
      `reward_range` bounds the mean, not the values; use None if nothing does.
    - `noise="gaussian"`: values are Gaussian, of one level that is learnt. The first 5 to 10 values say nothing yet.
      Nothing is promised for values that are not Gaussian, such as accuracies near 1.
    """

    family, kind, schema = Family("the sequence of a mean", "sequence", within=FILES), "MeanSequence", _STATE

    def __init__(
        self,
        reward_range: Range | None = (0.0, 1.0),
        delta: float = 0.05,
        *,
        sigma: float | None = None,
        noise: str | None = None,
    ) -> None:
        self.reward_range: Range | None = None if reward_range is None else as_range(reward_range, "reward_range")
        self.delta: float = error_probability(delta)
        self.sigma: float | None = None if sigma is None else positive(sigma, "sigma")
        self.noise: str | None = None if noise is None else one_of(noise, ("gaussian",), "noise")
        # How values become evidence, and those that came: for other modules of `means`.
        self.evidence = _kind(self.reward_range, self.sigma, self.noise)
        self.record = Record(self.evidence.width)
        self._interval: tuple[float, float] | None = None
        self.lock = Lock()

    def __repr__(self) -> str:
        stated = [f"reward_range={self.reward_range}", f"delta={self.delta:g}"]
        stated += [f"sigma={self.sigma:g}"] if self.sigma is not None else []
        stated += [f"noise={self.noise!r}"] if self.noise is not None else []
        mean = f", mean={self.mean:.6g}" if self.t else ""
        return f"MeanSequence({', '.join(stated)}, t={self.t}{mean})"

    @property
    def t(self) -> int:
        """How many values have been seen."""
        return self.record.t

    @property
    def mean(self) -> float:
        """The mean so far, each value weighted by its samples or its precision; NaN before the first value."""
        return self.evidence.mean(self.record) if self.t else math.nan

    @underflowing
    def update(self, values: ArrayLike, samples: ArrayLike | None = None, *, sigma: ArrayLike | None = None) -> Self:
        """Learn one value or many, in order. On an error nothing changes.

        `samples`: each value is the mean of this many results in `reward_range`; one number, or one per value. `sigma`:
        the noise levels of these values, known before the values were, if they differ from the stated one.
        """
        known = as_vector(values, None, "values")
        return self._learn(known, self._weights(samples, sigma, len(known)))

    @locked
    def _learn(self, values: Array, weights: Array) -> Self:
        self.evidence.check(values, self.record)
        if len(values):
            self.record.add(values, weights, self.evidence.terms(values, weights))
            self._interval = None
        return self

    def after(self, values: ArrayLike, samples: ArrayLike | None = None, *, sigma: ArrayLike | None = None) -> Self:
        """A copy that has seen these values as well; this sequence is unchanged."""
        return self.copy().update(values, samples, sigma=sigma)

    @locked
    def copy(self) -> Self:
        """An independent sequence with the same settings and values."""
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__)
        new.record, new.lock = self.record.copy(), Lock()
        return new

    @locked
    @underflowing
    def interval(self) -> tuple[float, float]:
        """(lower, upper): contains the mean at all times at once with probability ≥ 1 − `delta`."""
        if self._interval is None:
            if self.t:
                self._interval = self.evidence.interval(self.record, -math.log(self.delta))
            else:
                self._interval = self.reward_range or (-math.inf, math.inf)
        return self._interval

    def lower(self) -> float:
        """The mean is at least this."""
        return self.interval()[0]

    def upper(self) -> float:
        """The mean is at most this."""
        return self.interval()[1]

    @locked
    @underflowing
    def log_evalue(self, mean: float) -> float:
        """The logarithm of the evidence against this mean. If the mean is right, the evidence ever reaches 1/x with
        probability ≤ x.

        Without `noise="gaussian"` the evidence is an e-value. With it, only the statement above holds: do not multiply
        or average it with other e-values.
        """
        return self.evidence.log_evalue(self.record, self._candidate(mean)) if self.t else 0.0

    @locked
    @underflowing
    def pvalue(self, mean: float, alternative: str = "two-sided") -> float:
        """The p-value of "the mean is `mean`", which may be read at any time and never rises.

        It is one over the largest evidence so far. `alternative="greater"` tests "the mean is at most `mean`", "less"
        tests "at least". The test and the interval agree whenever the evidence is at its largest.
        """
        candidate, side = self._candidate(mean), one_of(alternative, ALTERNATIVES, "alternative")
        if not self.t:
            return 1.0
        logs, ahead = self.evidence.log_path(self.record, candidate)
        # Evidence is log-convex in the mean, so the least over all means beyond `mean` is at `mean`, or at most 1.
        if side != "two-sided":
            logs = logs[ahead > 0.0] if side == "greater" else logs[ahead < 0.0]
        return math.exp(-max(float(logs.max(initial=0.0)), 0.0))

    @locked
    def settings(self) -> dict[str, Any]:
        """Everything needed to resume later: what is stated, and the values."""
        return {
            "version": STATE_VERSION,
            "reward_range": self.reward_range,
            "delta": self.delta,
            "sigma": self.sigma,
            "noise": self.noise,
            "values": self.record.values.copy(),
            "samples": self.record.samples.copy(),
        }

    @classmethod
    @underflowing
    def restored(cls, stored: Stored, features: Any = None) -> Self:
        samples = stored["samples"]
        try:
            new = cls(stored["reward_range"], stored["delta"], sigma=stored["sigma"], noise=stored["noise"])
            if new.sigma is not None:
                most = _MOST_APART**2 * (1.0 + _ROUNDING)
                require(((samples >= 1.0 / most) & (samples <= most)).all(), "sequence.samples", "must be precisions")
                return new._learn(as_vector(stored["values"], None, "values"), samples)
            return new.update(stored["values"], samples if np.any(samples != 1.0) else None)
        except InvalidInput as error:
            raise DamagedState(f"the state of {cls.__name__} contradicts itself: {error}") from error

    def _weights(self, samples: ArrayLike | None, sigma: ArrayLike | None, n: int) -> Array:
        if sigma is not None:
            if self.sigma is None:
                raise InvalidInput(
                    "noise levels of single values need a stated sigma, which this sequence does not have"
                )
            if samples is not None:
                raise InvalidInput("state samples or sigma of values, not both")
            levels = as_float_array(sigma, "sigma")
            levels = np.full(n, float(levels)) if not levels.ndim else as_vector(levels, n, "sigma")
            return precisions(self.sigma, levels)
        if samples is None:
            return np.ones(n)
        if not self.evidence.counts_samples:
            raise InvalidInput(
                "samples says how many results in reward_range a value averages; sigma and noise are about the "
                f"values themselves: state one or the other; {STATEMENTS}"
            )
        return as_samples(samples, n)

    def _candidate(self, mean: float) -> float:
        known = finite(mean, "mean")
        low, high = self.reward_range or (-LARGEST_DATUM, LARGEST_DATUM)
        if not low <= known <= high:
            raise InvalidInput(f"mean must lie in [{low:g}, {high:g}], got {shown(mean)}")
        return known


def error_probability(delta: float) -> float:
    """`delta` in (0, ½]; larger ones are confidence levels, given by mistake."""
    known = probability(delta, "delta")
    if known > 0.5:
        raise InvalidInput(
            f"delta is the probability of an error, got {known:g}; for intervals that hold with probability "
            f"{known:g}, state delta={1.0 - known:g}"
        )
    return known


def are_comparable(sigma: float, levels: Array) -> NDArray[np.bool_]:
    """Whether levels are positive, and not so far from σ that arithmetic loses one beside the other."""
    return np.asarray((levels >= sigma / _MOST_APART) & (levels <= sigma * _MOST_APART))


def precisions(sigma: float, levels: Array) -> Array:
    """(σ/σ_k)²: how many values of level σ each value of level σ_k counts for."""
    wrong = ~are_comparable(sigma, levels)
    if wrong.any():
        given = float(levels[int(np.argmax(wrong))])
        raise InvalidInput(
            f"sigma of a value must be positive and within a factor of a million of the stated {sigma:g}, got {given:g}"
        )
    return np.asarray((sigma / levels) ** 2)


def as_samples(samples: ArrayLike, n: int, name: str = "samples") -> Array:
    """`samples` as n whole numbers ≥ 1; one number stands for all."""
    if isinstance(samples, int | float | np.generic):
        return np.full(n, float(positive_int(samples, name, LARGEST_SAMPLES)))  # type: ignore[arg-type]
    if isinstance(samples, np.ndarray) and samples.dtype.kind == "b":
        raise InvalidInput(f"{name} must be whole numbers, got {shown(samples)}")
    known = as_float_array(samples, name)
    known = np.full(n, float(known)) if not known.ndim else as_vector(known, n, name)
    wrong = ~((known >= 1.0) & (known <= LARGEST_SAMPLES) & (known == np.floor(known)))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise InvalidInput(f"{name}[{at}] must be a whole number from 1 to {LARGEST_SAMPLES:,}, got {known[at]:g}")
    return known


def _kind(reward_range: Range | None, sigma: float | None, noise: str | None) -> Kind:
    if sigma is not None and noise is not None:
        raise InvalidInput(
            f"state sigma or noise, not both: got sigma={sigma:g} and noise={noise!r}, whose level is learnt"
        )
    if sigma is not None:
        return KnownLevel(sigma, reward_range)
    if noise is not None:
        return UnknownLevel(reward_range)
    if reward_range is None:
        raise AssumptionsMissing(
            "nothing bounds the noise: state reward_range=(low, high) that contains every result, sigma, or "
            f'noise="gaussian"; {STATEMENTS}'
        )
    return Bounded(reward_range)
