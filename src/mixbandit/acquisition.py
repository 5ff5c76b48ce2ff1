"""Maximise a score over arms, exactly and lazily, or over a box, by gradients from many starts at once.

A score is a function of feature vectors, so that features of arms are computed once and gradients in actions
come from the feature map. Scores are on one scale with the bounds they are made of.

| symbol | meaning | shape |
|---|---|---|
| φ | feature rows | (n, d) |
| y | actions of a box in units of its width | (n, dim_in) |
| B | Hessian of minus the score, estimated by BFGS, per start | (n, dim_in, dim_in) |
"""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mixbandit._validation import LARGEST_MULTIPLIER, SMALLEST_MULTIPLIER, Array
from mixbandit.actions import Box
from mixbandit.confidence import ConfidenceSequence
from mixbandit.confidence.base import FixedMultiplier
from mixbandit.features import FeatureMap

# Scores that differ by less than this, relative to their size, are ties: rounding must not decide.
TIE_TOLERANCE = 1e-9
# Fewer arms than this are evaluated at once; among more, exact evaluations start with a few and double.
_LAZY_FROM, _FIRST_CHUNK = 64, 8
# Points of a box to look at, and starts to climb from: a fixed number, and so many per free coordinate.
_SCREENED_FIXED, _SCREENED, _STARTS_FIXED, _STARTS = 128, 32, 8, 6
_KEPT_OPTIMA = 5
_MAX_CLIMB = 60
_ARMIJO, _SHRINK, _MAX_SHRINKS = 1e-4, 0.25, 8
_FIRST_STEP = 0.1
_DAMPED = 0.2
_KEEP_INVERTIBLE = 1e-10
# A start has arrived when a unit gradient step would move it by less than this part of the score's scale.
_ARRIVED = 1e-5
# Optima nearer than this, in units of the box, are one.
_SAME_OPTIMUM = 1e-4
# After so many steps a start that would not win by rising this many times what its next step promises is given up.
_PRUNE_AFTER, _HOPE = 3, 10.0


class Score(abc.ABC):
    """What a policy maximises, as a function of features."""

    @abc.abstractmethod
    def values(self, phi: Array) -> Array:
        """Scores (n,) of feature rows (n, d)."""

    @abc.abstractmethod
    def slopes(self, phi: Array) -> tuple[Array, Array]:
        """Scores (n,) and their gradients in φ, (n, d)."""

    def ceilings(self, phi: Array, guess: float | None = None) -> Array | None:
        """Cheap upper bounds on the scores, `guess` being a multiplier that may suit; None where there are none."""
        return None

    def multiplier(self, phi: Array) -> float | None:
        """The multiplier at which the score of one row is attained, if the score has such a thing."""
        return None


class Optimism(Score):
    """Centre + exploration·half-width of the interval [lower, upper] of a sequence; the upper bound at 1.

    Known ranges do not cap it: arms beyond the cap would tie, and a box would have no gradient there.
    """

    def __init__(self, sequence: ConfidenceSequence, alpha: float | None, exploration: float = 1.0) -> None:
        self._sequence, self._alpha = sequence, alpha
        self._on_upper, self._on_lower = 0.5 * (1.0 + exploration), 0.5 * (1.0 - exploration)

    def values(self, phi: Array) -> Array:
        value = self._on_upper * self._sequence._maximum(phi, self._alpha, with_theta=False).value
        if self._on_lower:
            value -= self._on_lower * self._sequence._maximum(-phi, self._alpha, with_theta=False).value
        return np.asarray(value)

    def slopes(self, phi: Array) -> tuple[Array, Array]:
        upper = self._sequence._maximum(phi, self._alpha, with_theta=True)
        assert upper.theta is not None
        if not self._on_lower:
            return upper.value, upper.theta
        lower = self._sequence._maximum(-phi, self._alpha, with_theta=True)
        assert lower.theta is not None
        value = self._on_upper * upper.value - self._on_lower * lower.value
        return value, self._on_upper * upper.theta + self._on_lower * lower.theta

    def ceilings(self, phi: Array, guess: float | None = None) -> Array | None:
        if self._alpha is not None or self._on_lower or isinstance(self._sequence, FixedMultiplier):
            return None  # nothing is cheaper than the score itself
        at = self._sequence.alpha0 if guess is None else guess
        return self._sequence._maximum(phi, at, with_theta=False).value

    def multiplier(self, phi: Array) -> float | None:
        alpha = float(self._sequence._maximum(phi, self._alpha, with_theta=False).alpha[0])
        return alpha if SMALLEST_MULTIPLIER < alpha < LARGEST_MULTIPLIER else None


class Pessimism(Score):
    """The lower bound of a sequence: what an action is worth at least."""

    def __init__(self, sequence: ConfidenceSequence, alpha: float | None) -> None:
        self._sequence, self._alpha = sequence, alpha

    def values(self, phi: Array) -> Array:
        return -self._sequence._maximum(-phi, self._alpha, with_theta=False).value

    def slopes(self, phi: Array) -> tuple[Array, Array]:
        lower = self._sequence._maximum(-phi, self._alpha, with_theta=True)
        assert lower.theta is not None
        return -lower.value, lower.theta


class Linear(Score):
    """φᵀθ for one parameter."""

    def __init__(self, theta: Array) -> None:
        self._theta = theta

    def values(self, phi: Array) -> Array:
        return np.asarray(phi @ self._theta)

    def slopes(self, phi: Array) -> tuple[Array, Array]:
        return phi @ self._theta, np.broadcast_to(self._theta, phi.shape)


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

    def __init__(self, box: Box, features: FeatureMap, rng: np.random.Generator, warm: Array | None) -> None:
        self._box, self._features, self.rng, self._warm = box, features, rng, warm
        self.optima: list[Array] = []

    def maximise(self, score: Score) -> Found:
        best = search_box(score, self._features, self._box, self.rng, warm=self._warm)
        self.optima.append(best.optima)
        return Found(best.action, best.value)

    def sample(self) -> Found:
        return Found(self._box.sample(1, self.rng)[0], math.nan)


@dataclass(frozen=True)
class BestArm:
    index: int
    value: float
    evaluated: int  # arms that were evaluated exactly


def best_arm(score: Score, phi: Array, rng: np.random.Generator) -> BestArm:
    """An arm with the largest score, among ties one at random."""
    ceilings = score.ceilings(phi) if len(phi) >= _LAZY_FROM else None
    if ceilings is None:
        values = score.values(phi)
        return _pick(values, np.arange(len(phi)), rng)
    first = int(np.argmax(ceilings))
    # The multipliers of one set are alike: the best arm's makes a tight ceiling for all others.
    guess = score.multiplier(phi[first : first + 1])
    if guess is not None:
        tighter = score.ceilings(phi, guess)
        assert tighter is not None
        ceilings = np.minimum(ceilings, tighter)
    order = np.argsort(-ceilings, kind="stable")
    values, done, chunk = np.empty(0), 0, _FIRST_CHUNK
    while done < len(order):
        best = values.max() if done else -math.inf
        if ceilings[order[done]] < best - _tie(best):
            break
        rows = order[done : done + chunk]
        values = np.append(values, score.values(phi[rows]))
        done, chunk = done + len(rows), 2 * chunk
    return _pick(values, order[:done], rng)


def _pick(values: Array, indices: NDArray[np.int64], rng: np.random.Generator) -> BestArm:
    best = float(values.max())
    tied = np.sort(indices[values >= best - _tie(best)])
    index = int(tied[0] if len(tied) == 1 else rng.choice(tied))
    return BestArm(index, best, len(values))


def _tie(best: float) -> float:
    return TIE_TOLERANCE * abs(best) if math.isfinite(best) else 0.0


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
    climb = _Climb(score, features, box, points[chosen])
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


class _Climb:
    """Projected BFGS (Kelley 1999, section 5.5) on minus the score, for all starts at once as arrays."""

    def __init__(self, score: Score, features: FeatureMap, box: Box, y: Array) -> None:
        self._score, self._features, self._box = score, features, box
        self.y = y.copy()
        self.evaluations = 0
        self.value, self._gradient = self._evaluate(self.y)
        n, k = y.shape
        self._B: Array = np.zeros((n, k, k))
        self._fresh = np.ones(n, dtype=bool)
        finite = np.abs(self.value[np.isfinite(self.value)])
        self._scale = max(float(finite.max()), 1e-300) if len(finite) else 1.0

    def run(self) -> None:
        active = np.arange(len(self.y))
        for round_ in range(_MAX_CLIMB):
            active = active[self._going(active)]
            if not len(active):
                return
            active = self._step(active, prune=round_ >= _PRUNE_AFTER)

    def _evaluate(self, y: Array) -> tuple[Array, Array]:
        self.evaluations += len(y)
        actions = self._box.at(y)
        value, theta = self._score.slopes(self._features._evaluate(actions))
        return value, self._features._vjp(actions, theta) * self._box.width

    def _free(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Coordinates that the gradient does not push out of the box."""
        y, g = self.y[rows], self._gradient[rows]
        return ~(((y <= 0.0) & (g <= 0.0)) | ((y >= 1.0) & (g >= 0.0)))

    def _going(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        y, g = self.y[rows], self._gradient[rows]
        possible = np.abs(np.clip(y + g / self._scale, 0.0, 1.0) - y).max(axis=1)
        return np.asarray(possible > _ARRIVED)

    def _step(self, rows: NDArray[np.int64], prune: bool) -> NDArray[np.int64]:
        """One quasi-Newton step with backtracking; returns the rows that moved."""
        y, value = self.y[rows], self.value[rows]
        free = self._free(rows)
        g = np.where(free, self._gradient[rows], 0.0)
        plain = self._fresh[rows]
        # Without an estimate of the curvature, a short step along the gradient.
        steepest = np.abs(g).max(axis=1)
        direction = (_FIRST_STEP / np.where(steepest > 0.0, steepest, 1.0))[:, None] * g
        if not plain.all():
            curved = np.flatnonzero(~plain)
            reduced = np.where(free[curved, :, None] & free[curved, None, :], self._B[rows[curved]], 0.0)
            diagonal = np.einsum("nii->ni", reduced)
            # At a kink the estimate can lose rank: a little of its size keeps it invertible.
            diagonal += np.where(free[curved], _KEEP_INVERTIBLE * diagonal.max(axis=1, keepdims=True), 1.0)
            direction[curved] = np.linalg.solve(reduced, g[curved, :, None])[:, :, 0]
        if prune:
            hope = value + _HOPE * np.einsum("ni,ni->n", direction, g) >= self.value.max()
            rows, y, value, g, direction, plain = (part[hope] for part in (rows, y, value, g, direction, plain))

        new_y, new_value, new_gradient = y.copy(), value.copy(), self._gradient[rows].copy()
        trying, step = np.arange(len(rows)), np.ones(len(rows))
        for _ in range(_MAX_SHRINKS):
            proposal = np.clip(y[trying] + step[trying, None] * direction[trying], 0.0, 1.0)
            found, slope = self._evaluate(proposal)
            promised = np.einsum("ni,ni->n", g[trying], proposal - y[trying])
            good = found >= value[trying] + _ARMIJO * promised
            accepted = trying[good]
            new_y[accepted], new_value[accepted] = proposal[good], found[good]
            new_gradient[accepted] = slope[good]
            trying = trying[~good]
            if not len(trying):
                break
            step[trying] *= _SHRINK
        moved = np.ones(len(rows), dtype=bool)
        moved[trying] = False
        self._learn_curvature(rows[moved], (new_y - y)[moved], (self._gradient[rows] - new_gradient)[moved])
        # Where no step along a quasi-Newton direction helped, the gradient itself gets a try.
        failed = rows[~moved]
        retry = failed[~plain[~moved]]
        self._fresh[retry] = True
        self.y[rows], self.value[rows], self._gradient[rows] = new_y, new_value, new_gradient
        return np.concatenate((rows[moved], retry))

    def _learn_curvature(self, rows: NDArray[np.int64], s: Array, q: Array) -> None:
        """BFGS: B ← B − Bssᵀ B/sᵀBs + qqᵀ/sᵀq, damped where the score is not concave (Powell 1978)."""
        sq = np.einsum("ni,ni->n", s, q)
        fresh = self._fresh[rows]
        if fresh.any():
            with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
                ratio = np.einsum("ni,ni->n", q, q) / sq
            starts = fresh & (sq > 0.0) & (ratio > 0.0) & np.isfinite(ratio)
            scale = ratio[starts]
            self._B[rows[starts]] = scale[:, None, None] * np.eye(s.shape[1])
            self._fresh[rows[starts]] = False
            known = starts | ~fresh
            rows, s, q, sq = rows[known], s[known], q[known], sq[known]
        B = self._B[rows]
        Bs = np.einsum("nij,nj->ni", B, s)
        sBs = np.einsum("ni,ni->n", s, Bs)
        damped = sq < _DAMPED * sBs
        if damped.any():
            share = ((1.0 - _DAMPED) * sBs[damped] / (sBs[damped] - sq[damped]))[:, None]
            q[damped] = share * q[damped] + (1.0 - share) * Bs[damped]
            sq[damped] = _DAMPED * sBs[damped]
        # Squares of steps or gradients may vanish or overflow in boxes that are extremely small or large.
        usable = (sBs > 1e-290) & (sq > 1e-290) & np.isfinite(sBs) & np.isfinite(q).all(axis=1)
        left, right = q[usable], Bs[usable]
        B[usable] += np.einsum("ni,nj->nij", left, left) / sq[usable, None, None]
        B[usable] -= np.einsum("ni,nj->nij", right, right) / sBs[usable, None, None]
        self._B[rows] = B
