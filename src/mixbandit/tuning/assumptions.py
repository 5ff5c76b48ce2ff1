"""What the user assumes about values, and the confidence sequence that follows.

Values are turned into rewards around 0, to be maximised: reward = ±(value − offset).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from mixbandit._checks import (
    LARGEST_DATUM,
    Array,
    as_range,
    check_finite,
    nonnegative,
    one_of,
    positive,
    positive_int,
    probability,
    shown,
)
from mixbandit._schema import checked, integer, one_of_these, optional, real, record
from mixbandit.errors import AssumptionsMissing, InvalidInput, reading
from mixbandit.features import FeatureMap, RandomFourier, WithConstant
from mixbandit.mixtures import Forecaster, Mixture, Scaled
from mixbandit.sequences import MartingaleMixture
from mixbandit.tuning.space import Space

DIRECTIONS = ("maximize", "minimize")
# The default model of a function, chosen by measurement (docs/tuning.md): the number of random Fourier features; the
# length-scale on the unit box, times the root of the number of parameters; the scale of the mixture, in squared widths
# of the range; the bound on the norm of the function, in widths of the range.
FEATURES, LENGTHSCALE, PRIOR_SCALE, NORM = 100, 0.2, 0.1, 2.0
_FEATURE_SEED = 0
_ROUNDING = 1e-9


class Stated(TypedDict, total=False):
    """The same as keywords, accepted wherever an `Assumptions` is."""

    reward_range: tuple[float, float] | None
    samples: int | None
    sigma: float | None
    norm_bound: float | None
    delta: float
    misspecification: float
    direction: str


@dataclass(frozen=True)
class Assumptions:
    """Assumptions about values, stated once for `Tuner`, `certify`, the Optuna sampler and the command line.

    - `reward_range=(low, high)`: *expected* values lie there.
    - `samples=m`: a value is the mean of m independent results, each in the range; σ is then Hoeffding's,
      (high − low)/2√m. With the range alone, a value counts as one such result. Accuracy, error rates and mean losses
      are means; AUC, F1, R², medians and quantiles are not, and neither is the best of several epochs: state `sigma`.
    - `sigma`: the noise level of a value. Single values may then lie outside the range.
    - `norm_bound`: a bound on the norm of the function in the model; by default twice the width of the range.
    - `delta`: the probability of a wrong statement. `misspecification`: how far expected values may be from the model.
    - `direction`: "maximize" or "minimize"; by default that of the study, or "maximize" without one.
    """

    reward_range: tuple[float, float] | None = None
    samples: int | None = None
    sigma: float | None = None
    norm_bound: float | None = None
    delta: float = 0.05
    misspecification: float = 0.0
    direction: str | None = None

    def __post_init__(self) -> None:
        if self.direction is not None:
            one_of(self.direction, DIRECTIONS, "direction")
        if self.reward_range is not None:
            object.__setattr__(self, "reward_range", as_range(self.reward_range, "reward_range"))
        if self.sigma is not None and self.samples is not None:
            raise InvalidInput("state sigma or samples, not both")
        if self.samples is not None:
            object.__setattr__(self, "samples", positive_int(self.samples, "samples"))
        for name in ("sigma", "norm_bound"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, positive(getattr(self, name), name))
        object.__setattr__(self, "delta", probability(self.delta, "delta"))
        object.__setattr__(self, "misspecification", nonnegative(self.misspecification, "misspecification"))

    @classmethod
    def of(cls, given: Assumptions | None, stated: Stated) -> Assumptions:
        """The assumptions, given as one object or as keywords, not both."""
        unknown = [name for name in stated if name not in cls.__dataclass_fields__]
        if unknown:
            known = ", ".join(cls.__dataclass_fields__)
            raise InvalidInput(f"there is no option {shown(unknown[0])}; assumptions are {known}")
        if given is None:
            return cls(**stated)
        if stated:
            raise InvalidInput(
                f"state assumptions as one object or as keywords, not both; got {shown(given)} and {shown(stated)}"
            )
        if not isinstance(given, Assumptions):
            raise InvalidInput(f"assumptions must be an Assumptions object, or stated as keywords; got {shown(given)}")
        return given

    def towards(self, direction: str) -> Assumptions:
        """The same assumptions, with this direction unless one was stated."""
        return self if self.direction is not None else dataclasses.replace(self, direction=direction)

    @property
    def is_stated(self) -> bool:
        """Whether anything bounds the noise."""
        return self.reward_range is not None or self.sigma is not None

    def check_complete(self) -> None:
        """Raise AssumptionsMissing unless both the noise and the function are bounded."""
        _ = self.noise, self.norm

    @property
    def noise(self) -> float:
        """σ as stated, or by Hoeffding's lemma."""
        if self.sigma is not None:
            return self.sigma
        if self.reward_range is None:
            raise AssumptionsMissing(
                "nothing bounds the noise, so nothing can be guaranteed. If single results lie in a range, as "
                "accuracies do, state reward_range=(0, 1) and samples=…, the number of results that a value averages "
                "(such as validation points); or state sigma, the standard deviation of a value around its expectation"
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
                "sigma bounds the noise, but nothing bounds the function: state reward_range=(low, high), the range of "
                "expected values, or norm_bound, a bound on the norm of its parameter vector"
            )
        return NORM * (self.reward_range[1] - self.reward_range[0])

    @property
    def _scale(self) -> float:
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
                f"value {wrong[0]:g} lies outside reward_range=({low:g}, {high:g}), which must contain all "
                "results: state a wider range, or sigma instead of samples if values can lie outside"
            )
        return self.sign * (value - self.offset)

    def objection(self, value: float) -> str | None:
        """What about a value contradicts these assumptions, for counting such values; None if nothing does."""
        if not abs(value) <= LARGEST_DATUM:
            return f"with a value that is infinite or larger than {LARGEST_DATUM:g}"
        return "with a value outside reward_range" if self._outside(np.array(value)) else None

    def _outside(self, value: Array) -> NDArray[np.bool_]:
        """Whether values lie outside the range, if the noise level comes from it: then it contains all results."""
        if self.sigma is not None or self.reward_range is None:
            return np.zeros(value.shape, dtype=bool)
        low, high = self.reward_range
        slack = _ROUNDING * (high - low)
        return (value < low - slack) | (value > high + slack)

    def interval(self, lower: float, upper: float) -> tuple[float, float]:
        """Bounds on a reward as bounds on the value."""
        low, high = sorted(self.offset + self.sign * bound for bound in (lower, upper))
        return low, high

    def sequence(
        self, space: Space, features: FeatureMap | None = None, mixture: Mixture | Forecaster | None = None
    ) -> MartingaleMixture:
        """The confidence sequence of rewards, before any data."""
        ends = self.reward_range
        sequence = MartingaleMixture(
            default_features(space) if features is None else features,
            sigma=self.noise,
            norm_bound=self.norm,
            delta=self.delta,
            mixture=Scaled(PRIOR_SCALE * self._scale**2) if mixture is None else mixture,
            reward_range=None if ends is None else (ends[0] - self.offset, ends[1] - self.offset),
            misspecification=self.misspecification,
            on_empty="inflate",
        )
        inputs = sequence.features.dim_in
        if inputs != space.dim:
            raise InvalidInput(f"features must take as many inputs as the space has, {space.dim}; got {inputs}")
        return sequence

    def __str__(self) -> str:
        alone = self.sigma is None and self.samples is None
        known = [f"noise of sigma={self.noise:.4g}{' (1 sample per value: samples not stated)' if alone else ''}"]
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
        "misspecification": real(nonnegative),
        "direction": optional(one_of_these(*DIRECTIONS)),
    }
)
"""The state of assumptions."""


def default_features(space: Space) -> FeatureMap:
    """The default features of a function; always the same for a space."""
    lengthscale = LENGTHSCALE * math.sqrt(len(space))
    return WithConstant(RandomFourier(space.dim, FEATURES, lengthscale, rng=_FEATURE_SEED))
