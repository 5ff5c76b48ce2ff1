"""The best action of a box, by screening random points and climbing from the best of them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixbandit._checks import Array
from mixbandit.actions import Box, Exchanges, MixedBox, mixed
from mixbandit.models import Directed, Unlayered
from mixbandit.search.climb import MOST_SHRINKS, MOST_STEPS, climbed
from mixbandit.search.scores import Score

_KEPT_OPTIMA = 5
# Up to this many combinations of discrete values are all tried, with this many points each.
_MOST_COMBINATIONS, _PER_COMBINATION = 256, 2
_LEAST_GAIN = 1e-9
# Optima closer than this, in units of the box, count as one.
_SAME_OPTIMUM = 1e-4


@dataclass(frozen=True)
class Effort:
    """How hard to search."""

    # Points to screen, and starts to climb from: a fixed number, plus a number per free coordinate.
    screened: tuple[float, float] = (128, 32)
    starts: tuple[float, float] = (8, 6)
    steps: int = MOST_STEPS
    shrinks: int = MOST_SHRINKS
    every_combination: bool = True  # whether each combination of discrete values gets its own start
    exchanged: int = _KEPT_OPTIMA  # the number of optima in which single discrete values are exchanged
    exchanges: int = 20  # the largest number of exchanges

    def times(self, factor: float) -> Effort:
        """The same with `factor` times the points and starts."""
        screened, starts = ((factor * fixed, factor * each) for fixed, each in (self.screened, self.starts))
        return dataclasses.replace(self, screened=screened, starts=starts)

    def points(self, free: int) -> int:
        return math.ceil(self.screened[0] + self.screened[1] * free)

    def climbers(self, free: int) -> int:
        return math.ceil(self.starts[0] + self.starts[1] * free)


THOROUGH = Effort()
# For choosing under noise, where near an optimum is good enough.
QUICK = Effort(screened=(96, 8), starts=(3, 0.5), steps=5, shrinks=2, every_combination=False, exchanged=2, exchanges=1)


@dataclass(frozen=True)
class BoxOptimum:
    action: Array  # (dim_in,)
    value: float
    optima: Array  # (m, dim_in) where the climbs ended, best first: where the next search may start
    evaluations: int  # of scores, gradients included


def search_box(
    score: Score,
    model: Directed,
    box: Box,
    rng: np.random.Generator,
    *,
    warm: Array | None = None,
    effort: Effort = THOROUGH,
) -> BoxOptimum:
    """A local maximum of the score over the box, usually the global one: nothing proves that it is.

    Random points are screened and the best of them climb together, with those of the last round (`warm`).
    """
    parts = mixed(box)
    if parts is not None:
        return _search_mixed(score, model, parts, rng, warm, effort)
    free = np.flatnonzero(box.width > 0.0)
    if not len(free):
        value = score.maximum(model.directions(box.low[None]))
        return BoxOptimum(box.low.copy(), float(value[0]), box.low[None].copy(), 1)
    points = rng.uniform(size=(effort.points(len(free)), box.dim))
    points[:, box.width == 0.0] = 0.0  # fixed coordinates must not make one optimum look like two
    if warm is not None and len(warm):
        points = np.vstack((box.unit(warm), points))
    phi = model.directions(box.at(points))
    screened = (score.ceiling() or score).maximum(phi)
    chosen = np.argsort(-screened, kind="stable")[: effort.climbers(len(free))]
    if warm is not None:  # the old optima climb in any case
        chosen = np.union1d(chosen, np.arange(len(warm)))
    climb = climbed(score, model, box, points[chosen], steps=effort.steps, shrinks=effort.shrinks)
    optima = _distinct(climb.y, climb.value)
    y = climb.y[optima]
    return BoxOptimum(
        action=box.at(y[0]),
        value=float(climb.value[optima[0]]),
        optima=box.at(y[:_KEPT_OPTIMA]),
        evaluations=len(points) + climb.evaluations,
    )


def _search_mixed(
    score: Score, model: Directed, box: MixedBox, rng: np.random.Generator, warm: Array | None, effort: Effort
) -> BoxOptimum:
    """If there are few combinations, each gets its own starts. Coordinates with many values are climbed as continuous
    and rounded. Then single values are exchanged for as long as that helps.
    """
    combinations = box.combinations(_MOST_COMBINATIONS)
    moving = box.width > 0.0
    moving[box.tried_columns] = False
    if combinations is not None and not moving.any():
        return _enumerated(score, model, combinations)
    size = effort.points(int(moving.sum()))
    rows = box.sample(size if combinations is None else max(size, _PER_COMBINATION * len(combinations)), rng)
    group = np.zeros(len(rows), dtype=np.int64)
    if combinations is not None:
        group = np.arange(len(rows)) % len(combinations)
        rows[:, box.tried_columns] = combinations[group][:, box.tried_columns]
        rows = box.pinned(rows)
    rows, group = _with_warm(rows, group, None if warm is None else box.snapped(np.clip(warm, box.low, box.high)))
    screened = score.maximum(model.directions(rows))
    order = np.argsort(-screened, kind="stable")
    chosen = order[: effort.climbers(int(moving.sum()))]
    if effort.every_combination:
        first_of_group = order[np.unique(group[order], return_index=True)[1]]
        chosen = np.unique(np.concatenate((chosen, first_of_group)))
    y, evaluations = _climbed(score, model, box, box.unit(rows[chosen]), moving, effort)
    rows = box.snapped(box.at(y))
    value = score.maximum(model.directions(rows))
    evaluations += len(group) + len(rows)
    best = _distinct(box.unit(rows), value)
    rows, value = rows[best], value[best]
    for _ in range(effort.exchanges):
        improved, counted = _exchange(score, model, box, rows[: effort.exchanged], value, effort)
        evaluations += counted
        if not improved:
            break
    order = np.argsort(-value, kind="stable")
    return BoxOptimum(rows[order[0]].copy(), float(value[order[0]]), rows[order], evaluations)


def _exchange(
    score: Score, model: Directed, box: MixedBox, rows: Array, value: Array, effort: Effort
) -> tuple[bool, int]:
    """Change one discrete value per row, then climb, if that helps. Returns whether it did, and the evaluations."""
    around = [(owner, part) for owner, row in enumerate(rows) for part in box.neighbours(row) if len(part.columns)]
    if not around:
        return False, 0
    sizes = [len(part.columns) for _, part in around]
    owner = np.repeat([i for i, _ in around], sizes)
    first = np.cumsum([0, *sizes])
    screened = np.concatenate([score.maximum(model.exchanged(*part)) for _, part in around])
    # The two most promising changes of each row.
    order = np.lexsort((-screened, owner))
    place = np.arange(len(order)) - np.searchsorted(owner[order], owner[order])
    chosen = order[place < 2]
    within = np.searchsorted(first, chosen, side="right") - 1
    candidates = np.vstack([around[k][1].rows(chosen[i : i + 1] - first[k]) for i, k in enumerate(within)])
    y, evaluations = _climbed(score, model, box, box.unit(candidates), box.continuous, effort)
    climbed = box.at(y)
    climbed[:, ~box.continuous] = candidates[:, ~box.continuous]
    values = score.maximum(model.directions(climbed))
    improved = False
    for i in np.argsort(values, kind="stable"):  # the best of a row comes last
        row = owner[chosen[i]]
        if values[i] > value[row] + _LEAST_GAIN * (1.0 + abs(value[row])):
            rows[row], value[row], improved = climbed[i], values[i], True
    return improved, len(screened) + evaluations


def _climbed(
    score: Score, model: Directed, box: MixedBox, y: Array, moving: NDArray[np.bool_], effort: Effort
) -> tuple[Array, int]:
    if not moving.any():
        return y, 0
    within = _Pinned(model, box) if box.pins else model
    found = climbed(score, within, box, y, moving, steps=effort.steps, shrinks=effort.shrinks)
    return found.y, found.evaluations


class _Pinned(Unlayered):
    """A model that is constant in coordinates that do not matter."""

    def __init__(self, model: Directed, box: MixedBox) -> None:
        self._model, self._box, self.dim_in = model, box, model.dim_in

    def directions(self, actions: Array) -> Any:
        return self._model.directions(self._box.pinned(actions))

    def exchanged(self, base: Array, columns: NDArray[np.int64], values: Array) -> Any:
        return self.directions(Exchanges(base, columns, values).rows(np.arange(len(columns))))

    def linearised(self, actions: Array) -> tuple[Any, Callable[[Any], Array]]:
        rows = self._box.pinned(actions)
        directions, pullback = self._model.linearised(rows)
        return directions, lambda points: np.where(self._box.active(rows), pullback(points), 0.0)


def _enumerated(score: Score, model: Directed, combinations: Array) -> BoxOptimum:
    value = score.maximum(model.directions(combinations))
    order = np.argsort(-value, kind="stable")[:_KEPT_OPTIMA]
    return BoxOptimum(combinations[order[0]], float(value[order[0]]), combinations[order], len(combinations))


def _with_warm(rows: Array, group: NDArray[np.int64], warm: Array | None) -> tuple[Array, NDArray[np.int64]]:
    """Old optima in front, each in its own group, so that all of them climb."""
    if warm is None or not len(warm):
        return rows, group
    own = int(group.max(initial=0)) + 1 + np.arange(len(warm))
    return np.vstack((warm, rows)), np.concatenate((own, group))


def _distinct(y: Array, value: Array) -> NDArray[np.int64]:
    """Indices of the optima, best first, without those that repeat a better one."""
    kept: list[int] = []
    for i in np.argsort(-value, kind="stable"):
        if len(kept) < _KEPT_OPTIMA and all(np.abs(y[i] - y[j]).max() > _SAME_OPTIMUM for j in kept):
            kept.append(int(i))
    return np.array(kept, dtype=np.int64)
