"""The best action of a box, by screening random points and climbing from the best of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mixbandit._validation import Array
from mixbandit.acquisition.climb import Climb
from mixbandit.acquisition.scores import Score
from mixbandit.actions import Box
from mixbandit.features import FeatureMap

# Points of a box to look at, and starts to climb from: a fixed number, and so many per free coordinate.
_SCREENED_FIXED, _SCREENED, _STARTS_FIXED, _STARTS = 128, 32, 8, 6
_KEPT_OPTIMA = 5
# Optima nearer than this, in units of the box, are one.
_SAME_OPTIMUM = 1e-4


@dataclass(frozen=True)
class BoxOptimum:
    action: Array  # (dim_in,)
    value: float
    optima: Array  # (m, dim_in) where the climbs ended, best first: where the next search may start
    evaluations: int  # of scores, gradients included


def search_box(
    score: Score,
    features: FeatureMap,
    box: Box,
    rng: np.random.Generator,
    *,
    warm: Array | None = None,
    effort: float = 1.0,
) -> BoxOptimum:
    """A local maximum of the score over the box, usually the global one: nothing proves that it is.

    Random points are screened and the best of them climb together, with those of the last round (`warm`).
    `effort` multiplies how many.
    """
    free = np.flatnonzero(box.width > 0.0)
    if not len(free):
        value = score.values(features._evaluate(box.low[None]))
        return BoxOptimum(box.low.copy(), float(value[0]), box.low[None].copy(), 1)
    points = rng.uniform(size=(math.ceil(effort * (_SCREENED_FIXED + _SCREENED * len(free))), box.dim))
    points[:, box.width == 0.0] = 0.0  # what is fixed must not make one optimum look like two
    if warm is not None and len(warm):
        points = np.vstack((box.unit(warm), points))
    phi = features._evaluate(box.at(points))
    screened = score.ceilings(phi)
    screened = score.values(phi) if screened is None else screened
    starts = math.ceil(effort * (_STARTS_FIXED + _STARTS * len(free)))
    chosen = np.argsort(-screened, kind="stable")[:starts]
    if warm is not None:  # the old optima climb whatever screening says
        chosen = np.union1d(chosen, np.arange(len(warm)))
    climb = Climb(score, features, box, points[chosen])
    climb.run()
    optima = _distinct(climb.y, climb.value)
    y = climb.y[optima]
    return BoxOptimum(
        action=box.at(y[0]),
        value=float(climb.value[optima[0]]),
        optima=box.at(y[:_KEPT_OPTIMA]),
        evaluations=len(points) + climb.evaluations,
    )


def _distinct(y: Array, value: Array) -> NDArray[np.int64]:
    """Indices of the optima, best first, without those that repeat a better one."""
    kept: list[int] = []
    for i in np.argsort(-value, kind="stable"):
        if len(kept) < _KEPT_OPTIMA and all(np.abs(y[i] - y[j]).max() > _SAME_OPTIMUM for j in kept):
            kept.append(int(i))
    return np.array(kept, dtype=np.int64)
