"""Where scores are maximised: arms or a box, with what it takes for one decision."""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass

import numpy as np

from mixbandit._validation import Array
from mixbandit.acquisition.arms import best_arm
from mixbandit.acquisition.box import THOROUGH, Effort, search_box
from mixbandit.acquisition.scores import Score
from mixbandit.actions import Box
from mixbandit.features import FeatureMap


@dataclass(frozen=True)
class Found:
    """Where a score is largest."""

    row: Array  # (dim_in,)
    value: float
    index: int | None = None  # of the arm; None on a box


class Field(abc.ABC):
    """A region with all that it takes to maximise scores over it, during one decision."""

    rng: np.random.Generator

    @abc.abstractmethod
    def maximise(self, score: Score) -> Found: ...

    @abc.abstractmethod
    def sample(self) -> Found:
        """Anything, uniformly; its value is NaN."""


class ArmsField(Field):
    """Arms, of which `left` (indices) may be chosen."""

    def __init__(self, rows: Array, phi: Array, rng: np.random.Generator) -> None:
        self._rows, self._phi, self.rng = rows, phi, rng
        self.left = np.arange(len(rows))

    def maximise(self, score: Score) -> Found:
        everything = len(self.left) == len(self._phi)
        best = best_arm(score, self._phi if everything else self._phi[self.left], self.rng)
        index = int(self.left[best.index])
        return Found(self._rows[index], best.value, index)

    def sample(self) -> Found:
        index = int(self.rng.choice(self.left))
        return Found(self._rows[index], math.nan, index)

    def without(self, index: int) -> None:
        """Take an arm out, unless it is the last one: then all of them are back."""
        self.left = self.left[self.left != index]
        if not len(self.left):
            self.left = np.arange(len(self._rows))


class BoxField(Field):
    """A box, with the optima that searches found in it (`optima`) and where they may start (`warm`)."""

    def __init__(
        self,
        box: Box,
        features: FeatureMap,
        rng: np.random.Generator,
        warm: Array | None,
        effort: Effort = THOROUGH,
    ) -> None:
        self._box, self._features, self.rng, self._warm, self._effort = box, features, rng, warm, effort
        self.optima: list[Array] = []

    def maximise(self, score: Score) -> Found:
        best = search_box(score, self._features, self._box, self.rng, warm=self._warm, effort=self._effort)
        self.optima.append(best.optima)
        return Found(best.action, best.value)

    def sample(self) -> Found:
        return Found(self._box.sample(1, self.rng)[0], math.nan)
