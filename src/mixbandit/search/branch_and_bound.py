"""A proven upper bound on a maximum over a box: branch and bound.

The objective is φ(a)ᵀθ, over a in the box and θ in a set with support function h. On a cell with centre c and
half-widths e

    φ(a)ᵀθ ≤ max over corners δ ∈ {±e} of h(φ(c) + J_φ(c)δ) + (the largest contribution of the remainder),

because h is convex, so that its maximum over the tangent's image of the cell is at a corner, and φ strays from its
tangent by at most the remainder r_j in feature j, which contributes at most min(‖θ‖‖r‖, Σ_j |θ_j| r_j). The gap closes
with the square of the cell's size. If it is only known how far φ strays from φ(c) in the cell, as for a kernel, the
bound is h(φ(c)) + ‖θ‖·max ‖φ(a) − φ(c)‖, whose gap closes linearly.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixbandit._checks import Array
from mixbandit.actions import Box
from mixbandit.models import BoxModel

# Cells split at once: larger batches vectorise better, smaller ones waste fewer splits. At least this share of the
# open cells, because all of them are moved every time.
_BATCH, _BATCH_SHARE = 128, 0.1
# Above this many free coordinates a cell has too many corners.
MOST_CORNERS = 6
# Up to this many combinations of discrete values are bounded one by one.
_MOST_CELLS = 256
# Bounds are rounded up by this share of their size.
_ROUND_UP = 1e-9

Convex = Callable[[Any], Array]


@dataclass(frozen=True)
class Bounded:
    """The maximum over the box is at most `upper`; h(φ(action)) is `attained`."""

    action: Array  # (dim_in,), where `attained` is
    attained: float
    upper: float
    evaluations: int  # of h


@dataclass(frozen=True)
class Reach:
    """How large θ can be."""

    norm: float  # ‖θ‖
    entries: Array | None = None  # |θ_j|, (d,)

    def times(self, remainder: Array) -> Array:
        """The largest product of θ with a vector bounded, entry by entry, by each row of (n, d)."""
        most = self.norm * np.linalg.norm(remainder, axis=1)
        return np.asarray(most if self.entries is None else np.minimum(most, remainder @ self.entries))


def can_bound(model: BoxModel, box: Box) -> bool:
    """Whether the model allows a bound that gets better with smaller cells."""
    one = np.zeros((1, box.dim))
    return model.stray(box.low + one, one) is not None or _has_tangents(model, box)


def _has_tangents(model: BoxModel, box: Box) -> bool:
    one, nothing = np.zeros((1, box.dim)), np.empty(0, dtype=np.int64)
    return free_dimensions(box) <= MOST_CORNERS and model.tangents(box.low + one, one, nothing) is not None


def free_dimensions(box: Box) -> int:
    """The number of coordinates in which cells must be split."""
    return int(np.count_nonzero(_free(box)))


def _free(box: Box) -> NDArray[np.bool_]:
    """Coordinates that have a width in some cell."""
    return np.asarray((np.array([cell.width for cell in box.cells(_MOST_CELLS)]) > 0.0).any(axis=0))


def bound_over_box(
    h: Convex,
    reach: Reach,
    model: BoxModel,
    box: Box,
    *,
    start: Array | None = None,
    tolerance: float = 0.0,
    max_evaluations: int = 200_000,
) -> Bounded:
    """Split cells until the bound is within `tolerance` of a value attained, or evaluations run out.

    The bound is proven in either case. `start`, an action (dim_in,), gives the first attained value.
    """
    cells = _Cells(h, reach, model, box)
    parts = box.cells(_MOST_CELLS)
    centres = np.array([0.5 * (part.low + part.high) for part in parts])
    halves = np.array([0.5 * part.width for part in parts])
    start_row = centres[:1] if start is None else start[None]
    best_value, best_action = float(h(model.directions(start_row))[0]), start_row[0].copy()
    upper, values = cells.bound(centres, halves)
    scale = cells.sensitivity(centres[:1])
    while True:
        top = int(np.argmax(values)) if len(values) else 0
        if len(values) and values[top] > best_value:
            best_value, best_action = float(values[top]), centres[top].copy()
        # Drop cells that cannot exceed the attained value.
        open_ = upper > best_value
        centres, halves, upper = centres[open_], halves[open_], upper[open_]
        if not len(upper):
            return Bounded(best_action, best_value, best_value + _slack(best_value), cells.evaluations)
        most = float(upper.max())
        if most <= best_value + tolerance or cells.evaluations >= max_evaluations:
            return Bounded(best_action, best_value, most + _slack(most), cells.evaluations)
        order = np.argsort(-upper, kind="stable")
        batch = max(_BATCH, math.ceil(_BATCH_SHARE * len(order)))
        split, rest = order[:batch], order[batch:]
        new_centres, new_halves = _halve(centres[split], halves[split], scale)
        new_upper, new_values = cells.bound(new_centres, new_halves)
        # The bound of a part never exceeds that of the whole.
        new_upper = np.minimum(new_upper, np.tile(upper[split], 2))
        values = np.concatenate((new_values, np.full(len(rest), -math.inf)))
        centres = np.vstack((new_centres, centres[rest]))
        halves = np.vstack((new_halves, halves[rest]))
        upper = np.concatenate((new_upper, upper[rest]))


class _Cells:
    """Bounds on h(φ(a)) over cells, the tightest that the features allow."""

    def __init__(self, h: Convex, reach: Reach, model: BoxModel, box: Box) -> None:
        self._h, self._reach, self._model = h, reach, model
        self._free = np.flatnonzero(_free(box))
        self._corners: Array | None = None
        if _has_tangents(model, box):
            k = len(self._free)
            self._corners = np.array(list(itertools.product((-1.0, 1.0), repeat=k))).reshape(2**k, k)
        self.evaluations = 0

    def bound(self, centres: Array, halves: Array) -> tuple[Array, Array]:
        """Upper bounds over the cells, and values attained at their centres."""
        phi = self._model.directions(centres)
        values = self._evaluate(phi)
        upper = np.full(len(centres), math.inf)
        stray = self._model.stray(centres, halves)
        if stray is not None:
            upper = values + self._reach.norm * stray
        if self._corners is not None:
            steps = self._corners[None] * halves[:, None, self._free]  # (n, corners, free coordinates)
            known = self._model.tangents(centres, halves, self._free)
            assert known is not None
            jacobian, remainder = known
            tangent = phi[:, None, :] + np.einsum("ndi,nci->ncd", jacobian, steps)
            n, corners, d = tangent.shape
            at_corners = self._evaluate(tangent.reshape(n * corners, d)).reshape(n, corners).max(axis=1)
            upper = np.minimum(upper, at_corners + self._reach.times(remainder))
        return upper, values

    def sensitivity(self, centre: Array) -> Array:
        """How much each coordinate matters, (dim_in,), to choose the one to halve."""
        columns = self._model.sensitivity(centre)
        return np.asarray(np.maximum(columns, 1e-3 * max(float(columns.max()), 1e-300)))

    def _evaluate(self, phi: Any) -> Array:
        self.evaluations += len(phi)
        return self._h(phi)


def _halve(centres: Array, halves: Array, scale: Array) -> tuple[Array, Array]:
    """Both halves of every cell, first all the lower ones."""
    along = np.argmax(halves * scale, axis=1)
    rows = np.arange(len(centres))
    smaller = halves.copy()
    smaller[rows, along] *= 0.5
    step = np.zeros_like(centres)
    step[rows, along] = smaller[rows, along]
    return np.vstack((centres - step, centres + step)), np.vstack((smaller, smaller))


def _slack(value: float) -> float:
    return _ROUND_UP * abs(value)
