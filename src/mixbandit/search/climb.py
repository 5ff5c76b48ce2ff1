"""Gradient ascent in a box from many starts at once.

With numpy all starts take a step together. Where features are one layer and the score is an ellipsoid or the paper's
set, compiled code takes the same steps start by start, six times as fast.

| symbol | meaning | shape |
|---|---|---|
| y | actions of a box in units of its width | (n, dim_in) |
| B | Hessian of minus the score in the k coordinates that move, estimated by BFGS, per start | (n, k, k) |
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixbandit._checks import Array
from mixbandit._compiling import Kernel, kernel
from mixbandit.actions import Box
from mixbandit.features import TANH, Layer
from mixbandit.models import Directed
from mixbandit.search.scores import Score
from mixbandit.sets import Form

MOST_STEPS, MOST_SHRINKS = 60, 8
_ARMIJO, _SHRINK = 1e-4, 0.25
_FIRST_STEP = 0.1
_DAMPED = 0.2
_KEEP_INVERTIBLE = 1e-10
# A start has converged when a unit gradient step would move it by less than this share of the score's scale.
_ARRIVED = 1e-5
# After this many steps, drop a start that could not win even if it rose by this multiple of its next step's gain.
_PRUNE_AFTER, _HOPE = 3, 10.0


class Climbed(NamedTuple):
    """Where the climbs ended."""

    y: Array  # (n, dim_in), in units of the box
    value: Array  # (n,)
    evaluations: int  # of the score with its gradient


class _Settings(NamedTuple):
    """The arguments of compiled code that are not data: it is cached until its own file changes."""

    steps: int
    shrinks: int
    armijo: float = _ARMIJO
    shrink: float = _SHRINK
    first_step: float = _FIRST_STEP
    damped: float = _DAMPED
    keep_invertible: float = _KEEP_INVERTIBLE
    arrived: float = _ARRIVED
    prune_after: int = _PRUNE_AFTER
    hope: float = _HOPE


def climbed(
    score: Score,
    model: Directed,
    box: Box,
    y: Array,
    moving: NDArray[np.bool_] | None = None,
    *,
    steps: int = MOST_STEPS,
    shrinks: int = MOST_SHRINKS,
) -> Climbed:
    """Climb from rows y (n, dim_in), in the coordinates that are `moving`, or all: compiled where that can be done."""
    columns = np.flatnonzero(box.width > 0.0 if moving is None else (box.width > 0.0) & moving)
    compiled = kernel("mixbandit.search._compiled_climb.climb", _check_agreement)
    layer = None if compiled is None else model.layer()
    form = None if layer is None else score.form()
    if compiled is not None and layer is not None and form is not None:
        found = _compiled(compiled, layer, form, box, y, columns, _Settings(steps, shrinks))
        if found is not None:
            return found
    climb = _Climb(score, model, box, y, columns, steps, shrinks)
    climb.run()
    return Climbed(climb.y, climb.value, climb.evaluations)


def _compiled(
    compiled: Kernel, layer: Layer, form: Form, box: Box, y: Array, columns: NDArray[np.int64], settings: _Settings
) -> Climbed | None:
    """By compiled code; None where that gives up."""
    # The moving coordinates in units of the box; what is fixed goes into the offsets.
    fixed = y.copy()
    fixed[:, columns] = 0.0
    offsets = (box.low + box.width * fixed) @ layer.weights.T + layer.offset
    own = layer._replace(weights=np.ascontiguousarray(layer.weights[:, columns] * box.width[columns]))
    ends, value, evaluations = compiled(np.ascontiguousarray(y[:, columns]), offsets, own, form, settings)
    fixed[:, columns] = ends
    return Climbed(fixed, value, evaluations) if evaluations else None


def _check_agreement(compiled: Kernel) -> None:
    """Raise RuntimeError unless compiled code finds the top of a hill; the first call compiles it."""
    # φ₁ − φ₂, up to the ellipsoid's small width, rises with y₁ and falls with y₂.
    form = Form.of_ellipsoid(0.1 * np.eye(2), np.array([1.0, -1.0]), 0.5)
    layer = Layer(np.array([[1.0, 0.2], [-0.3, 2.0]]), np.zeros(2), 1.0, TANH)
    box = Box([0.0, 0.0], [1.0, 1.0])
    found = _compiled(compiled, layer, form, box, np.full((1, 2), 0.4), np.arange(2), _Settings(20, 8))
    if found is None or not np.allclose(found.y, [[1.0, 0.0]], atol=1e-6):
        raise RuntimeError(f"compiled code climbs to {found}")


class _Climb:
    """Projected BFGS (Kelley 1999, section 5.5) on minus the score, for all starts at once as arrays."""

    def __init__(
        self,
        score: Score,
        model: Directed,
        box: Box,
        y: Array,
        columns: NDArray[np.int64],
        steps: int,
        shrinks: int,
    ) -> None:
        self._steps, self._shrinks = steps, shrinks
        self._score, self._model, self._box = score, model, box
        # Fixed coordinates keep the value of their start; only whole rows contain them.
        self._moving = columns
        self._all_move = len(self._moving) == box.dim
        self._width = box.width[self._moving]
        self._is_unit = bool((box.low == 0.0).all() and (box.high == 1.0).all())
        self._starts = y
        self._y: Array = y[:, self._moving]
        n, k = self._y.shape
        self.evaluations = 0
        self.value, self._gradient = self._evaluate(self._y, np.arange(n))
        self._B: Array = np.zeros((n, k, k))
        self._fresh = np.ones(n, dtype=bool)
        finite = np.abs(self.value[np.isfinite(self.value)])
        self._scale = max(float(finite.max()), 1e-300) if len(finite) else 1.0

    @property
    def y(self) -> Array:
        """Where the climbs are, (n, dim_in)."""
        return self._whole(self._y, np.arange(len(self._y)))

    def run(self) -> None:
        active = np.arange(len(self._y))
        for round_ in range(self._steps):
            active = active[self._going(active)]
            if not len(active):
                return
            active = self._step(active, prune=round_ >= _PRUNE_AFTER)

    def _evaluate(self, y: Array, rows: NDArray[np.int64]) -> tuple[Array, Array]:
        self.evaluations += len(y)
        whole = self._whole(y, rows)
        directions, pullback = self._model.linearised(whole if self._is_unit else self._box.at(whole))
        found = self._score.support(directions)
        slope = pullback(found.points)
        return found.value, (slope if self._all_move else slope[:, self._moving]) * self._width

    def _whole(self, y: Array, rows: NDArray[np.int64]) -> Array:
        """The moving coordinates with the fixed ones of the same starts."""
        if self._all_move:
            return y
        whole = self._starts[rows]
        whole[:, self._moving] = y
        return whole

    def _free(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Coordinates that the gradient does not push out of the box."""
        y, g = self._y[rows], self._gradient[rows]
        return ~(((y <= 0.0) & (g <= 0.0)) | ((y >= 1.0) & (g >= 0.0)))

    def _going(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        y, g = self._y[rows], self._gradient[rows]
        possible = np.abs(_in_unit(y + g / self._scale) - y).max(axis=1)
        return np.asarray(possible > _ARRIVED)

    def _step(self, rows: NDArray[np.int64], prune: bool) -> NDArray[np.int64]:
        """One quasi-Newton step with backtracking; returns the rows that moved."""
        y, value = self._y[rows], self.value[rows]
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
            # At a kink the estimate can lose rank: a small multiple of its size keeps it invertible.
            diagonal += np.where(free[curved], _KEEP_INVERTIBLE * diagonal.max(axis=1, keepdims=True), 1.0)
            direction[curved] = np.linalg.solve(reduced, g[curved, :, None])[:, :, 0]
        if prune:
            hope = value + _HOPE * np.einsum("ni,ni->n", direction, g) >= self.value.max()
            rows, y, value, g, direction, plain = (part[hope] for part in (rows, y, value, g, direction, plain))

        new_y, new_value, new_gradient = y.copy(), value.copy(), self._gradient[rows].copy()
        trying, step = np.arange(len(rows)), np.ones(len(rows))
        for _ in range(self._shrinks):
            proposal = _in_unit(y[trying] + step[trying, None] * direction[trying])
            found, slope = self._evaluate(proposal, rows[trying])
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
        # If no step along a quasi-Newton direction helped, try the gradient itself.
        failed = rows[~moved]
        retry = failed[~plain[~moved]]
        self._fresh[retry] = True
        self._y[rows], self.value[rows], self._gradient[rows] = new_y, new_value, new_gradient
        return np.concatenate((rows[moved], retry))

    def _learn_curvature(self, rows: NDArray[np.int64], s: Array, q: Array) -> None:
        """BFGS: B ← B − Bssᵀ B/sᵀBs + qqᵀ/sᵀq, damped if the score is not concave (Powell 1978)."""
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
        # Squares of steps or gradients may underflow or overflow in extremely small or large boxes.
        usable = (sBs > 1e-290) & (sq > 1e-290) & np.isfinite(sBs) & np.isfinite(q).all(axis=1)
        if not usable.all():
            rows, B, q, Bs, sq, sBs = (part[usable] for part in (rows, B, q, Bs, sq, sBs))
        B += q[:, :, None] * q[:, None, :] / sq[:, None, None]
        B -= Bs[:, :, None] * Bs[:, None, :] / sBs[:, None, None]
        self._B[rows] = B


def _in_unit(y: Array) -> Array:
    """Like np.clip, which for arrays of this size takes longer than the rest of a step."""
    return np.asarray(np.minimum(np.maximum(y, 0.0), 1.0))
