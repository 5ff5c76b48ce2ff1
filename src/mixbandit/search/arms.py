"""The best of finitely many arms, exactly and lazily."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixbandit._checks import Array
from mixbandit.search.scores import Score
from mixbandit.sets import Ball

# Scores that differ by less than this, relative to their size, are ties: rounding must not decide.
TIE_TOLERANCE = 1e-9
# Below this many arms a few more products take no longer than excluding some.
_MANY = 64


class BestArm(NamedTuple):
    arms: tuple[int, ...]  # the arm with the largest score, or all that tie, in increasing order
    value: float
    evaluated: int  # arms that were evaluated exactly


def best_arm(score: Score, directions: Any) -> BestArm:
    """The arm with the largest score, or the arms that tie."""
    n = len(directions)
    found = score.best(directions, TIE_TOLERANCE)
    if found is not None:
        return BestArm((found[0],), found[1], 1)
    outer = score.ceiling() if n >= score.screens_from else None
    innermost = score if outer is None else outer
    shell = innermost.shell() if n >= _MANY else None
    ceilings = [each for each in (outer, shell) if each is not None]
    if not ceilings:
        return best_value(score.maximum(directions))
    return _screened(score, ceilings, directions)


def _screened(score: Score, ceilings: list[Score | Ball], directions: Any) -> BestArm:
    """The arms with the largest score, by ceilings from the tightest to the cheapest: arms below the best are out."""
    alive: NDArray[np.int64] | None = None  # those not out yet; None: all
    known: dict[int, float] = {}  # scores by arm
    limits = np.empty(0)

    def arms() -> Any:
        return directions if alive is None else directions[alive]

    for level in reversed(ceilings):
        limits = level.maximum(arms())
        place = int(limits.argmax())
        alive, limits = _left(score, known, place if alive is None else int(alive[place]), directions, alive, limits)
    assert alive is not None
    if 2 * len(alive) > len(directions) and len(alive) <= score.evaluates:  # all of them take no longer than these
        return best_value(score.maximum(directions))
    if len(alive) > score.evaluates:
        # Multipliers of one set are similar: the best arm's gives a tight ceiling for all others.
        leader = max(known, key=known.__getitem__)
        tighter = score.ceiling(directions[leader : leader + 1])
        if tighter is not None:
            limits = np.minimum(limits, tighter.maximum(arms()))
            alive, limits = _left(score, known, int(alive[limits.argmax()]), directions, alive, limits)
        order = np.argsort(-limits, kind="stable")
        alive, limits = alive[order], limits[order]
    left = [(arm, limit) for arm, limit in zip(alive.tolist(), limits.tolist(), strict=True) if arm not in known]
    done, chunk, best = 0, score.evaluates, max(known.values())
    while done < len(left) and left[done][1] >= best - _tie(best):
        part = [arm for arm, _ in left[done : done + chunk]]
        known.update(zip(part, score.maximum(directions[part]).tolist(), strict=True))
        best = max(known.values())
        done, chunk = done + chunk, 2 * chunk
    if len(known) == 1:
        return BestArm((next(iter(known)),), best, 1)
    return best_value(np.array(list(known.values())), np.array(list(known)))


def _left(
    score: Score, known: dict[int, float], arm: int, directions: Any, alive: NDArray[np.int64] | None, limits: Array
) -> tuple[NDArray[np.int64], Array]:
    """The arms whose limits allow for the best score known, once that of one more arm is, and their limits."""
    if arm not in known:
        known[arm] = float(score.maximum(directions[arm : arm + 1])[0])
    best = max(known.values())
    left = (limits >= best - _tie(best)).nonzero()[0]
    return left if alive is None else alive[left], limits[left]


def best_value(values: Array, indices: NDArray[np.int64] | None = None) -> BestArm:
    """The best of these values, which belong to all arms or those with these indices."""
    place = int(values.argmax())
    best: float = values.item(place)
    tied = values >= best - _tie(best)
    if np.count_nonzero(tied) == 1:
        return BestArm((place if indices is None else int(indices[place]),), best, len(values))
    places = np.flatnonzero(tied)
    return BestArm(tuple((places if indices is None else np.sort(indices[places])).tolist()), best, len(values))


def _tie(best: float) -> float:
    return TIE_TOLERANCE * abs(best) if math.isfinite(best) else 0.0


def best_arms(score: Score, directions: Any, arms: int) -> tuple[NDArray[np.bool_], Array]:
    """For each of n groups of `arms` directions which ones tie for the largest score, (n, arms), and that score."""
    groups = len(directions) // arms
    outer = score.ceiling() if arms > 1 else None
    if outer is None:
        values = score.maximum(directions).reshape(groups, arms)
    else:
        limits = outer.maximum(directions).reshape(groups, arms)
        values = np.full((groups, arms), -np.inf)
        first = np.arange(groups) * arms + limits.argmax(axis=1)
        values.flat[first] = score.maximum(directions[first])
        best = values.max(axis=1, keepdims=True)
        open_ = (limits >= best - TIE_TOLERANCE * np.abs(best)) & np.isneginf(values)
        left = np.flatnonzero(open_)
        if len(left):
            values.flat[left] = score.maximum(directions[left])
    best = values.max(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        tied = values >= best - np.where(np.isfinite(best), TIE_TOLERANCE * np.abs(best), 0.0)
    return tied, best[:, 0]
