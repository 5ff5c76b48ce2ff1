"""What rules and sets rely on, whatever the data are made of."""

from __future__ import annotations

import abc
import math
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np

from mixbandit._checks import Array
from mixbandit.data.spectrum import Decomposed


class Observed(NamedTuple):
    """What was seen, in order."""

    rows: Array  # (t, k): actions
    rewards: Array  # (t,)
    weights: Array  # (t,): σ/σ_k


class RidgeRegression(Protocol):
    """Ridge regression at one α: everything that a closed-form bound needs."""

    @property
    def alpha(self) -> float: ...

    @property
    def log_det(self) -> float:
        """Ln det(ΦᵀΦ/α + I)."""
        ...

    @property
    def is_accurate(self) -> bool:
        """Whether rounding leaves enough digits; if not, bounds come from the decomposition instead."""
        ...

    @property
    def norm2(self) -> float:
        """The squared norm of the estimate."""
        ...

    @property
    def theta(self) -> Array:
        """The estimate θ̂_α, (d,), where there are features."""
        ...

    def is_safe(self, directions: Any) -> bool:
        """Whether squares of the directions stay in the range of floats."""
        ...

    def measured(self, directions: Any) -> tuple[Array, Array] | None:
        """φᵀθ̂_α and √w = ‖φ‖_{V⁻¹}, (n,) each; None where squares leave the range of floats."""
        ...

    def measured_one(self, direction: Any) -> tuple[float, float] | None:
        """The same of one direction, as numbers."""
        ...

    def estimates(self, directions: Any) -> Array:
        """φᵀθ̂_α, (n,)."""
        ...

    def widths(self, directions: Any) -> Array:
        """√w = ‖φ‖_{V⁻¹}, (n,)."""
        ...

    def maximisers(self, directions: Any, radius: float) -> tuple[Array, Any]:
        """√w, and the points θ̂_α + radius·V⁻¹φ/√w."""
        ...

    def sample(self, rng: np.random.Generator, spread: float) -> Array:
        """θ ~ N(θ̂_α, spread²V⁻¹), (d,)."""
        ...


class Data(abc.ABC):
    """Rows and rewards seen so far: an immutable value; `learn` and `merge` return new ones."""

    dim: int | None  # the number of features; None for a kernel
    count: int  # rewards
    weight2: float  # sum of squared row weights: count, unless rows came with weights
    memory: Any  # what a rule remembers besides: the running cost of a forecaster, rows with other weights
    derived: dict[Any, Any]  # what rules derived from these data, by rule: a value's cache is never stale

    @abc.abstractmethod
    def learn(self, directions: Any, rewards: Array, weights: Array | None = None, memory: Any = None) -> Self:
        """With rewards (n,) of directions, already checked, both multiplied by their weights (n,)."""

    @abc.abstractmethod
    def merge(self, other: Self, memory: Any = None) -> Self:
        """Both data sets together."""

    @property
    @abc.abstractmethod
    def spectrum(self) -> Decomposed:
        """Rows and rewards decomposed."""

    @abc.abstractmethod
    def ridge(self, alpha: float) -> RidgeRegression:
        """Ridge regression at α."""

    @property
    def observed(self) -> Observed | None:
        """What was seen, where it is kept."""
        return None

    has_quick_ridges: ClassVar[bool]  # whether `ridge` and `loss` at any α take much less work than the spectrum

    @abc.abstractmethod
    def loss(self, alpha: float) -> float:
        """The least ‖Φθ − r‖² + α‖θ‖²."""

    @abc.abstractmethod
    def near_residual(self, alpha: float, reach: float | None) -> float:
        """‖Φθ − r‖² at a point of the norm ball: the ridge estimate at α, or the end of the ball towards it."""

    def towards(self, alpha: float, reach: float) -> float:
        """How much more than the loss at α that residual is, in all its digits; infinite where that takes some work."""
        return math.inf

    @property
    @abc.abstractmethod
    def residual(self) -> float:
        """At most the least-squares residual min ‖Φθ − r‖²."""

    @property
    def early_residual(self) -> float:
        """The same or less, where less takes less work."""
        return self.residual

    @abc.abstractmethod
    def rounding(self, reach: float) -> float:
        """How far the residual ‖Φθ − r‖ at parameters of norm `reach` may be from the true one."""

    @abc.abstractmethod
    def state_dict(self) -> dict[str, Any]: ...
