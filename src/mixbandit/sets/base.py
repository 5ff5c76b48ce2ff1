"""The protocol of a confidence set: an immutable value, used through its support function.

h(φ) = max_{θ∈Θ} φᵀθ is the upper confidence bound of a direction φ, and −h(−φ) its lower one. A set is made once
per moment, and whether it is empty is decided then. With feature maps directions are the feature vectors, an array
(n, d), and points of the set are vectors (d,); nothing outside the sets and the model relies on that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from mixbandit._checks import Array

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


class ConfidenceSet(Protocol):
    """What bounds, scores and certificates are made from."""

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

    def support(self, directions: Any) -> Maximum:
        """The support function with its maximisers."""
        ...

    def ceiling(self, near: Any = None) -> ConfidenceSet | None:
        """A larger set with a cheaper support function, tight near the direction `near`; None if there is none."""
        ...

    def scaled(self, factor: float) -> Any:
        """A score: centre + factor·half-width of the interval in every direction."""
        ...

    def opened(self) -> ConfidenceSet:
        """The set itself, or the least larger one with an interior."""
        ...

    def contains(self, theta: Array, rtol: float) -> bool:
        """Whether the set contains θ; `rtol` allows for rounding at its border."""
        ...
