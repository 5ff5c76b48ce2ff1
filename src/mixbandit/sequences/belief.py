"""What is known of expected rewards at a moment: what policies act on, and certificates over arms are made from.

`Moment` is the belief of the paper's sets. Others say the same of blocks of arms, of drifting rewards, or of anything
that has a confidence set: derive from `Belief`, give what is abstract, and hold it in a `ConfidenceSequence`.
"""

from __future__ import annotations

import abc
from typing import Any, Generic, Self, TypeVar

import numpy as np

from mixbandit._checks import Array, multipliers
from mixbandit._lazy import lazy
from mixbandit.data import Factor
from mixbandit.errors import InvalidInput
from mixbandit.models import Model
from mixbandit.sequences.examined import Tested
from mixbandit.sequences.response import Bounds, Interval, Response
from mixbandit.sequences.ridge_only import RidgeOnly
from mixbandit.sets import ConfidenceSet

D = TypeVar("D")
"""Directions: opaque but for `len`, indexing, negation and subtraction. Feature vectors (n, d), where there are any."""

Multiplier = float | tuple[float, ...]
"""One multiplier of a closed form, or several, of which the best counts in every direction."""


class Belief(Tested, abc.ABC, Generic[D]):
    """A value: `after` returns another one.

    Nothing here raises or warns when the data refute the assumptions: bounds then come from an opened set, and
    `is_empty`, `is_refuted` and `Bounds.contradicts` say so.
    """

    model: Model  # from actions to directions
    response: Response  # from φᵀθ to expected rewards
    delta: float
    kind: str = "your own"  # its name in tables of methods
    guarantee: str = "anytime"
    stationary: bool = True
    """Whether what is bounded is the same at all times. If not, bounds of different times are not compared, and
    nothing is said in hindsight."""
    sigma: float | None = None  # the stated noise level, where one is stated
    value_range: tuple[float, float] | None = None  # single rewards outside are refused; None: there is no such range
    theories: tuple[str, ...] = ()  # the ways of acting that have a theory for its sets, by name
    regret_theorem_alpha: float | None = None  # α of thm:regret_bound (`regret.worst_case`), where that applies
    sums_up: bool = False
    """Whether rows, with their expected rewards, may be replaced by others with the same Gram matrix (`summed_up`)."""

    # What a belief has to say.

    @property
    @abc.abstractmethod
    def t(self) -> int:
        """How many rewards have been seen."""

    @abc.abstractmethod
    def stated(self) -> str:
        """The assumptions besides the model's, for messages."""

    @abc.abstractmethod
    def after(self, rows: Array, rewards: Array, weights: Array | None = None) -> Self:
        """The belief after rewards (n,) of action rows (n, dim_in), weighted by σ/σ_k, all already checked."""

    @abc.abstractmethod
    def at(self, alpha: Multiplier | None) -> ConfidenceSet:
        """The exact set, opened if it is empty; or the closed form at a multiplier, or the best of those at several."""

    @property
    @abc.abstractmethod
    def estimate(self) -> ConfidenceSet:
        """An estimate, as a set whose bounds are the estimates themselves."""

    @abc.abstractmethod
    def blank(self) -> Self:
        """The belief before any reward."""

    # What follows from that, unless there is a better way.

    def directions(self, rows: Array) -> D:
        """Directions of action rows (n, dim_in) that were checked."""
        found: D = self.model.directions(rows)
        return found

    @lazy
    def exact(self) -> ConfidenceSet:
        """The exact set, opened if it is empty."""
        return self.at(None)

    @property
    def closed_form(self) -> ConfidenceSet:
        """The set of the closed form at its best multiplier; the exact one where there is none."""
        return self.exact

    @property
    def alpha0(self) -> float:
        """The multiplier that works best for the closed form."""
        raise InvalidInput(f"{type(self).__name__} has no closed form, and no multiplier")

    def check_multiplier(self, alpha: Any) -> Multiplier:
        """One multiplier of the closed form, or a list of them, checked."""
        multipliers(alpha, "alpha")
        raise InvalidInput(f"{type(self).__name__} has no closed form: alpha must be None")

    def sampled(self, rng: np.random.Generator, spread: float) -> Any:
        """A random parameter around the estimate, as a score; `spread` is in units of the noise level."""
        raise InvalidInput(f"{type(self).__name__} has no parameter to draw")

    def upper(self, directions: D, within: ConfidenceSet | None = None) -> Bounds:
        """Upper bounds on expected rewards, from the exact set or a larger one."""
        return self.response.upper((within or self.exact).maximum(directions))

    def lower(self, directions: D, within: ConfidenceSet | None = None) -> Bounds:
        """Lower bounds on expected rewards, from the exact set or a larger one."""
        return self.response.lower((within or self.exact).maximum(-directions))  # type: ignore[operator]

    def interval(self, directions: D, within: ConfidenceSet | None = None) -> Interval:
        """Lower and upper bounds on expected rewards, cheaper than one after the other."""
        return self.response.interval(*(within or self.exact).interval(directions))

    def weights(self, levels: Array) -> Array:
        """The weights of rewards whose noise levels σ_k are known."""
        raise InvalidInput("noise levels of single rewards need a stated sigma, which this sequence does not have")

    def ridge_only(self) -> RidgeOnly | None:
        """Its rule as ridge regression at one multiplier alone can follow it; None where that is not enough."""
        return None

    def recovered(self, data: Factor) -> Self:
        """The belief with these data, where there is a `ridge_only`."""
        raise InvalidInput(f"{type(self).__name__} is not made from ridge regression alone")

    def after_choice(self, row: Array, direction: Any, reward: Array) -> Self:
        """The belief after the reward (1,) of one action row (1, dim_in) whose direction is known to be learnable."""
        return self.after(row, reward)

    def expecting(self, rows: Array) -> Self:
        """As if rows (n, dim_in) had returned their expected rewards, which refute nothing."""
        return self.after(rows, self.response.reward(self.estimate.maximum(self.directions(rows))))

    def summed_up(self, root: Array) -> Self:
        """As if rows with the Gram matrix RᵀR had returned their expected rewards, where `sums_up`."""
        raise InvalidInput(f"{type(self).__name__} does not sum up rows")

    def of_width(self, width: int) -> Self:
        """For action rows of this length, where any would do."""
        return self
