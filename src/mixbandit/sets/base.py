"""The protocol of a confidence set: an immutable value, used through its support function.

h(φ) = max_{θ∈Θ} φᵀθ is the upper confidence bound of a direction φ, and −h(−φ) its lower one. A set is made once
per moment, and whether it is empty is decided then. With feature maps directions are the feature vectors, an array
(n, d), and points of the set are vectors (d,); nothing outside the sets and the model relies on that.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from mixbandit._checks import Array
from mixbandit.data import squares

IntArray = NDArray[np.int64]

CASES = ("origin", "ball", "ellipsoid", "interior", "closed form")
ORIGIN, BALL, ELLIPSOID, INTERIOR, CLOSED_FORM = range(len(CASES))


class Maximum(NamedTuple):
    """Maxima over a set and their maximisers, one row per direction."""

    value: Array  # (n,)
    points: Any  # maximisers, one per direction, which are the gradients of the support function: (n, d) for features
    alpha: Array  # (n,), multipliers of the norm bound: inf where it alone binds, 0 where it does not
    case: IntArray  # (n,), indices into CASES


def chosen(found: Sequence[Maximum], which: IntArray) -> Maximum:
    """Row by row the maximum that `which` (n,) names."""
    points: Any = None
    for number, each in enumerate(found):
        part = (which == number).astype(np.float64)[:, None] * each.points
        points = part if points is None else points + part
    rows = np.arange(len(which))
    value = np.array([each.value for each in found])[which, rows]
    alpha = np.array([each.alpha for each in found])[which, rows]
    return Maximum(value, points, alpha, np.array([each.case for each in found])[which, rows])


class SingleEnds(abc.ABC):
    """For sets to which one direction is like many."""

    @abc.abstractmethod
    def interval(self, directions: Any) -> tuple[Array, Array]: ...

    def ends(self, direction: Any) -> tuple[float, float]:
        """The interval of one direction, as numbers."""
        low, high = self.interval(direction)
        return float(low[0]), float(high[0])


ROUND, CUT, INFORMATIVE = range(3)


class Form(NamedTuple):
    """A score as arrays, for compiled code; all are in C's order.

    ROUND: the maximum over {centre + Wx : ‖x‖ ≤ radius}. INFORMATIVE: information per regret, over the same ellipsoid.
    CUT: the maximum over the paper's set, an ellipsoid that the norm ball cuts, in the units of `dual`.
    """

    kind: int
    basis: Array  # W, (d, d), or an orthonormal basis of the range of Φᵀ, (d, rank)
    centre: Array  # (d,); empty if CUT
    radius: float
    optimum: float  # the largest upper bound, from which regret counts, if INFORMATIVE
    # Only if CUT: a `dual.Problem`, and arguments of its solver.
    root_s: Array  # (rank,)
    z: Array  # (rank,)
    excess: float
    norm_bound: float
    start: float  # a guess at multipliers
    lower: float  # what they lie between
    upper: float
    tolerance: float
    round_up: float
    max_steps: int
    negligible: float  # a part of a unit direction outside the range that is only rounding

    @classmethod
    def of_ellipsoid(cls, root: Array, centre: Array, radius: float) -> Form:
        """{centre + Wx : ‖x‖ ≤ radius} for W = `root`."""
        nothing = np.empty(0)
        return cls(
            ROUND, np.ascontiguousarray(root), np.ascontiguousarray(centre), radius, math.nan, nothing, nothing,
            excess=0.0, norm_bound=0.0, start=0.0, lower=0.0, upper=0.0, tolerance=0.0, round_up=0.0, max_steps=0,
            negligible=0.0,
        )  # fmt: skip


class Searched:
    """How the best of many directions is found, unless a set or a score knows better: by looking at all of them."""

    screens_from = 0  # look at `ceiling` first from this many directions on
    evaluates = 8  # then, at first, evaluate this many directions at once

    def best(self, directions: Any, tie: float) -> tuple[int, float] | None:
        """The index of the largest maximum, and its value; None if others may be as large up to `tie`, or unknown."""
        return None

    def ceiling(self, near: Any = None) -> Any:
        """A larger set with a cheaper support function, tight near the direction `near`; None if there is none."""
        return None

    def shell(self) -> Ball | None:
        """A ball around the set, to exclude most of many directions by; None if none is known."""
        return None

    def form(self) -> Form | None:
        """The support function as arrays; None if it is of another form."""
        return None


class Ball:
    """{θ : ‖θ − centre‖ ≤ radius}: its support function takes the least work of all."""

    def __init__(self, centre: Array, radius: float) -> None:
        self._centre, self._radius = centre, radius

    def maximum(self, directions: Array) -> Array:
        """The support function, (n,)."""
        return np.asarray(directions @ self._centre + self._radius * np.sqrt(squares(directions)))


class ConfidenceSet(Protocol):
    """What bounds, scores and certificates are made from."""

    @property
    def screens_from(self) -> int:
        """From how many directions on it saves work to look at `ceiling` first, if only the largest maximum counts."""
        ...

    @property
    def evaluates(self) -> int:
        """How many directions to evaluate at first, once most are excluded by `ceiling`."""
        ...

    def best(self, directions: Any, tie: float) -> tuple[int, float] | None:
        """The index of the largest maximum, and its value; None if others may be as large up to `tie`, or unknown."""
        ...

    def shell(self) -> Ball | None:
        """A ball around the set, to exclude most of many directions by; None if none is known."""
        ...

    def form(self) -> Form | None:
        """The support function as arrays; None if it is of another form."""
        ...

    @property
    def is_empty(self) -> bool:
        """Whether no parameter is left, which refutes the assumptions."""
        ...

    def maximum(self, directions: Any) -> Array:
        """The support function h of the set, (n,), which must not be empty."""
        ...

    def interval(self, directions: Any) -> tuple[Array, Array]:
        """−h(−φ) and h(φ), (n,) each: the minimum and maximum of φᵀθ."""
        ...

    def ends(self, direction: Any) -> tuple[float, float]:
        """The interval of one direction, as numbers."""
        ...

    def support(self, directions: Any) -> Maximum:
        """The support function with its maximisers."""
        ...

    def ceiling(self, near: Any = None) -> ConfidenceSet | None:
        """A larger set with a cheaper support function, tight near the direction `near`; None if there is none."""
        ...

    def scaled(self, factor: float, estimate: ConfidenceSet) -> Any:
        """A score: the estimate + factor·(upper bound − estimate) in every direction.

        The estimate is the maximum over the set `estimate`, which has a single point; an ellipsoid has its own centre.
        """
        ...

    def opened(self) -> ConfidenceSet:
        """The set itself, or the least larger one with an interior."""
        ...

    def contains(self, theta: Array, rtol: float) -> bool:
        """Whether the set contains θ; `rtol` allows for rounding at its border."""
        ...
