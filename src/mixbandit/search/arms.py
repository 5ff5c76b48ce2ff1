"""The best of finitely many arms, exactly and lazily."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixbandit._checks import Array
from mixbandit.search.scores import Score

# Scores that differ by less than this, relative to their size, are ties: rounding must not decide.
TIE_TOLERANCE = 1e-9
# Fewer arms than this are evaluated at once; among more, exact evaluations start with a few and double.
_LAZY_FROM, _FIRST_CHUNK = 64, 8


class BestArm(NamedTuple):
    arm: int
    value: float
    evaluated: int  # arms that were evaluated exactly


def best_arm(score: Score, directions: Any, rng: Callable[[], np.random.Generator]) -> BestArm:
    """An arm with the largest score; ties are broken at random by the generator that `rng` returns."""
    n = len(directions)
    outer = score.ceiling() if n >= _LAZY_FROM else None
    if outer is None:
        return _pick(score.maximum(directions), np.arange(n), rng)
    ceilings = outer.maximum(directions)
    first = int(np.argmax(ceilings))
    # Multipliers of one set are similar: the best arm's gives a tight ceiling for all others.
    tighter = score.ceiling(directions[first : first + 1])
    if tighter is not None:
        ceilings = np.minimum(ceilings, tighter.maximum(directions))
    order = np.argsort(-ceilings, kind="stable")
    values, done, chunk = np.empty(0), 0, _FIRST_CHUNK
    while done < n:
        best = values.max() if done else -math.inf
        if ceilings[order[done]] < best - _tie(best):
            break
        rows = order[done : done + chunk]
        values = np.append(values, score.maximum(directions[rows]))
        done, chunk = done + len(rows), 2 * chunk
    return _pick(values, order[:done], rng)


def _pick(values: Array, indices: NDArray[np.int64], rng: Callable[[], np.random.Generator]) -> BestArm:
    best = float(values.max())
    tied = indices[values >= best - _tie(best)]
    index = int(tied[0] if len(tied) == 1 else rng().choice(np.sort(tied)))
    return BestArm(index, best, len(values))


def _tie(best: float) -> float:
    return TIE_TOLERANCE * abs(best) if math.isfinite(best) else 0.0
