"""Where scores are maximised: arms or a box, with the data for one decision."""

from __future__ import annotations

import abc
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixbandit._checks import Array
from mixbandit._lazy import lazy
from mixbandit.actions import Box
from mixbandit.models import Directed
from mixbandit.search.arms import best_arm
from mixbandit.search.box import THOROUGH, Effort, search_box
from mixbandit.search.scores import Score

Entropy = int | Sequence[int] | np.random.Generator
"""The seed of a generator, which is made when needed."""


class Found(NamedTuple):
    """Where a score is largest."""

    row: Array  # (dim_in,)
    value: float
    arm: int | None = None  # its index; None on a box


class Field(abc.ABC):
    """A region with everything needed to maximise scores over it, during one decision."""

    def __init__(self, entropy: Entropy) -> None:
        self._entropy = entropy

    @lazy
    def rng(self) -> np.random.Generator:
        """The random numbers of this decision."""
        return np.random.default_rng(self._entropy)

    @abc.abstractmethod
    def maximise(self, score: Score) -> Found: ...

    @abc.abstractmethod
    def sample(self) -> Found:
        """A uniformly random action; its value is NaN."""

    @abc.abstractmethod
    def exclude(self, found: Found) -> None:
        """Choose something else next time, if possible."""


class ArmsField(Field):
    """Arms, given as rows (n, dim_in) and their directions."""

    def __init__(self, rows: Array, directions: Any, entropy: Entropy) -> None:
        super().__init__(entropy)
        self._rows, self._directions = rows, directions
        self._left: NDArray[np.int64] | None = None  # indices that may be chosen; None for all

    def maximise(self, score: Score) -> Found:
        if self._left is None:
            best = best_arm(score, self._directions, lambda: self.rng)
            return Found(self._rows[best.arm], best.value, best.arm)
        best = best_arm(score, self._directions[self._left], lambda: self.rng)
        index = int(self._left[best.arm])
        return Found(self._rows[index], best.value, index)

    def sample(self) -> Found:
        index = int(self.rng.choice(len(self._rows) if self._left is None else self._left))
        return Found(self._rows[index], math.nan, index)

    def exclude(self, found: Found) -> None:
        left = np.arange(len(self._rows)) if self._left is None else self._left
        left = left[left != found.arm]
        self._left = left if len(left) else None


class BoxField(Field):
    """A box, with the optima that searches found in it (`optima`) and where they may start (`warm`)."""

    def __init__(
        self, box: Box, model: Directed, entropy: Entropy, warm: Array | None, effort: Effort = THOROUGH
    ) -> None:
        super().__init__(entropy)
        self._box, self._model, self._warm, self._effort = box, model, warm, effort
        self.optima: list[Array] = []

    def maximise(self, score: Score) -> Found:
        best = search_box(score, self._model, self._box, self.rng, warm=self._warm, effort=self._effort)
        self.optima.append(best.optima)
        return Found(best.action, best.value)

    def sample(self) -> Found:
        return Found(self._box.sample(1, self.rng)[0], math.nan)

    def exclude(self, found: Found) -> None:
        """Nothing to do: a box always has other actions nearby."""
