"""A confidence set of your own, from its support function alone."""

from __future__ import annotations

import abc
from typing import Any

from mixbandit._checks import Array
from mixbandit.errors import InvalidInput
from mixbandit.sets.base import ConfidenceSet, Maximum, Searched, SingleEnds
from mixbandit.sets.leaning import Leaning


class FromMaximum(Searched, SingleEnds, abc.ABC):
    """Give `maximum`; what else arms need follows from it. Override what can be had in a better way."""

    is_empty = False

    @abc.abstractmethod
    def maximum(self, directions: Any) -> Array:
        """The support function h(φ) = max φᵀθ over the set, (n,)."""

    def interval(self, directions: Any) -> tuple[Array, Array]:
        """The minimum −h(−φ) and the maximum h(φ), (n,) each."""
        return -self.maximum(-directions), self.maximum(directions)

    def support(self, directions: Any) -> Maximum:
        """The support function with its maximisers, which gradients are made from."""
        raise InvalidInput(f"{type(self).__name__} has a maximum, but no maximisers")

    def scaled(self, factor: float, estimate: ConfidenceSet) -> Any:
        """A score: the estimate + factor·(upper bound − estimate) in every direction."""
        return self if factor == 1.0 else Leaning(self, factor, estimate)

    def opened(self) -> ConfidenceSet:
        """The set itself, or the least larger one with an interior."""
        return self

    def contains(self, theta: Any, rtol: float) -> bool:
        """Whether the set contains θ; `rtol` allows for rounding at its border."""
        raise InvalidInput(f"{type(self).__name__} cannot tell whether it contains a parameter")
