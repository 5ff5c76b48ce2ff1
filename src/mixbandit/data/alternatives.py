"""The same rewards as data of several kernels, for a function that lies in the space of one of them.

Directions, points and data are tuples with one part per kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mixbandit._checks import Array
from mixbandit._lazy import lazy
from mixbandit.data.base import Data, RidgeRegression
from mixbandit.data.observations import Observations
from mixbandit.data.sections import Functions, Sections
from mixbandit.data.spectrum import Decomposed


class AlternativeSections:
    """A direction in every space."""

    __array_ufunc__ = None

    def __init__(self, parts: Sequence[Sections]) -> None:
        self.parts = tuple(parts)

    @property
    def rows(self) -> Array:
        return self.parts[0].rows

    def __len__(self) -> int:
        return len(self.parts[0])

    def __getitem__(self, index: Any) -> AlternativeSections:
        return AlternativeSections([part[index] for part in self.parts])

    def __neg__(self) -> AlternativeSections:
        return AlternativeSections([-part for part in self.parts])

    def __sub__(self, other: AlternativeSections) -> AlternativeSections:
        return AlternativeSections([part - less for part, less in zip(self.parts, other.parts, strict=True)])

    def gradients(self, points: AlternativeFunctions) -> Array:
        """The gradients of functions, one per action, at these actions, (n, k)."""
        known = [(part, found) for part, found in zip(self.parts, points.parts, strict=True) if found is not None]
        total = known[0][0].gradients(known[0][1])
        for part, found in known[1:]:
            total = total + part.gradients(found)
        return total


class AlternativeFunctions:
    """A sum of functions, at most one of every space: points of a union of sets."""

    __array_ufunc__ = None

    def __init__(self, parts: Sequence[Functions | None]) -> None:
        self.parts = tuple(parts)

    @classmethod
    def only(cls, place: int, of: int, part: Functions) -> AlternativeFunctions:
        """A function of one of the spaces."""
        return cls([part if i == place else None for i in range(of)])

    def __mul__(self, factor: Any) -> AlternativeFunctions:
        return AlternativeFunctions([None if part is None else part * factor for part in self.parts])

    __rmul__ = __mul__

    def __add__(self, other: AlternativeFunctions) -> AlternativeFunctions:
        def total(a: Functions | None, b: Functions | None) -> Functions | None:
            return b if a is None else a if b is None else a + b

        return AlternativeFunctions([total(a, b) for a, b in zip(self.parts, other.parts, strict=True)])

    def __sub__(self, other: AlternativeFunctions) -> AlternativeFunctions:
        return self + (-1.0) * other


class Alternatives(Data):
    """The same actions and rewards for every kernel."""

    dim: int | None = None
    has_quick_ridges = True

    def __init__(self, parts: Sequence[Observations], memory: Any = None) -> None:
        self.parts, self.memory = tuple(parts), memory
        first = self.parts[0]
        self.count, self.weight2 = first.count, first.weight2
        self.derived: dict[Any, Any] = {}

    def __getstate__(self) -> dict[str, Any]:
        # Caches are rebuilt on demand.
        kept = {name: getattr(self, name) for name in ("parts", "memory", "count", "weight2")}
        return {**kept, "derived": {}}

    def learn(
        self, directions: AlternativeSections, rewards: Array, weights: Array | None = None, memory: Any = None
    ) -> Alternatives:
        pairs = zip(self.parts, directions.parts, strict=True)
        # What a part remembers refers to the parts of its time: kept, it would keep all of the past alive.
        return Alternatives([part.learn(each, rewards, weights) for part, each in pairs], memory)

    def merge(self, other: Alternatives, memory: Any = None) -> Alternatives:
        pairs = zip(self.parts, other.parts, strict=True)
        return Alternatives([part.merge(each) for part, each in pairs], memory)

    def remembering(self, memories: Sequence[Any]) -> Alternatives:
        """With what a rule remembers beside each part."""
        pairs = zip(self.parts, memories, strict=True)
        return Alternatives([part.remembering(each) for part, each in pairs], self.memory)

    @lazy
    def spectrum(self) -> Decomposed:
        """That of the first kernel; sets are made from the parts."""
        return self.parts[0].spectrum

    def ridge(self, alpha: float) -> RidgeRegression:
        return self.parts[0].ridge(alpha)

    def loss(self, alpha: float) -> float:
        return self.parts[0].loss(alpha)

    def near_residual(self, alpha: float, reach: float | None) -> float:
        return self.parts[0].near_residual(alpha, reach)

    @property
    def residual(self) -> float:
        return self.parts[0].residual

    def rounding(self, reach: float) -> float:
        return max(part.rounding(reach) for part in self.parts)

    def state_dict(self) -> dict[str, Any]:
        return self.parts[0].state_dict()


def as_alternatives(data: Data) -> Alternatives:
    """The data, which must be those of several kernels."""
    assert isinstance(data, Alternatives)
    return data
