"""All actions between two corners."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixbandit._checks import LARGEST_BATCH, Array, as_float_array, as_generator, as_vector, check_finite, positive_int
from mixbandit._schema import array, record
from mixbandit.actions.arms import REGIONS
from mixbandit.errors import InvalidInput
from mixbandit.storage import Storable

# An action that repeats another is moved by about this share of the width.
_NUDGE = 1e-3
_SAME_ACTION = 1e-9


class Box(Storable):
    """All actions between `low` and `high`, coordinate by coordinate; equal ends fix a coordinate."""

    rows: None = None
    """Its actions are not listed one by one."""
    is_box: Literal[True] = True
    labels: None = None
    family, kind = REGIONS, "Box"
    schema = record({"low": array(None), "high": array(None)})

    def __init__(self, low: ArrayLike, high: ArrayLike) -> None:
        given = [as_float_array(end, name) for end, name in ((low, "low"), (high, "high"))]
        ends = [np.atleast_1d(end) for end in given]
        if ends[0].ndim != 1 or ends[0].shape != ends[1].shape or not ends[0].size:
            raise InvalidInput(
                f"low and high must be vectors of the same length ≥ 1, got {given[0].shape}, {given[1].shape}"
            )
        for end, name in zip(ends, ("low", "high"), strict=True):
            check_finite(end, name)
        wrong = np.flatnonzero(ends[0] > ends[1])
        if len(wrong):
            i = int(wrong[0])
            raise InvalidInput(f"low must not exceed high, got low[{i}]={ends[0][i]:g}, high[{i}]={ends[1][i]:g}")
        self.low, self.high = (end.copy() for end in ends)
        for end in (self.low, self.high):
            end.setflags(write=False)

    def __repr__(self) -> str:
        return f"Box({self.low.tolist()}, {self.high.tolist()})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Box) and np.array_equal((self.low, self.high), (other.low, other.high))

    __hash__ = None  # type: ignore[assignment]

    @property
    def dim(self) -> int:
        return len(self.low)

    @property
    def width(self) -> Array:
        return self.high - self.low

    @property
    def continuous(self) -> NDArray[np.bool_]:
        """Coordinates that may take any value between their ends."""
        return np.asarray(self.width > 0.0)

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Uniform actions, (n, dim)."""
        return self.at(as_generator(rng).uniform(size=(positive_int(n, "n", LARGEST_BATCH), self.dim)))

    def at(self, unit: Array) -> Array:
        """Actions from coordinates in the unit box; its corners give the corners exactly."""
        # low + (high − low) may round to less than high.
        return np.where(unit >= 1.0, self.high, np.clip(self.low + self.width * unit, self.low, self.high))

    def unit(self, actions: Array) -> Array:
        """Coordinates in the unit box; 0 where the box has no width."""
        free = self.width > 0.0
        return np.where(free, np.clip((actions - self.low) / np.where(free, self.width, 1.0), 0.0, 1.0), 0.0)

    def snapped(self, rows: Array) -> Array:
        """The rows with the nearest allowed values: here all values are allowed."""
        return rows

    def cells(self, most: int) -> list[Box]:
        """At most `most` boxes that cover everything that can be chosen."""
        return [self]

    def index_of(self, row: Array) -> None:
        """A box has no indices; InvalidInput if the row is outside."""
        row = as_vector(row, self.dim, "action")
        if (row < self.low).any() or (row > self.high).any():
            raise InvalidInput(f"action {row} lies outside the box from {self.low} to {self.high}")

    def given(self, context: Array) -> Box:
        """The box of rows (context, action), with the context fixed."""
        context = as_vector(context, None, "context")
        return Box(np.concatenate((context, self.low)), np.concatenate((context, self.high)))

    def pinned(self, rows: Array) -> Array:
        """The rows with coordinates that do not matter set to fixed values: here all of them matter."""
        return rows

    def active(self, rows: Array) -> NDArray[np.bool_]:
        """Which coordinates of pinned rows matter, (n, dim)."""
        return np.ones(rows.shape, dtype=np.bool_)

    def nudged(self, row: Array, taken: list[Array], rng: np.random.Generator) -> Array:
        """The row, moved a little if it repeats a taken one: in a box there is always something new to learn."""
        if not taken or not self.continuous.any():
            return row
        y = self.unit(row)
        if not (np.abs(self.unit(np.array(taken)) - y) <= _SAME_ACTION).all(axis=1).any():
            return row
        step = _NUDGE * rng.uniform(0.5, 1.0, size=self.dim) * rng.choice((-1.0, 1.0), size=self.dim)
        step[~self.continuous] = 0.0
        # At a border the step goes inwards.
        return self.at(y + np.where((y + step < 0.0) | (y + step > 1.0), -step, step))
