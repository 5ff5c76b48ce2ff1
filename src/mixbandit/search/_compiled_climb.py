"""The climb of `climb` for features that are one layer, and an ellipsoid or the paper's set, compiled by numba.

It takes the same steps, row by row, and keeps the multiplier of each row as a start for the next evaluation.
"""

from __future__ import annotations

import math

import numpy as np

from mixbandit._jit import dot, jit
from mixbandit.features import COSINE, RELU, TANH
from mixbandit.sets._compiled_form import support, times, transposed_times, workspace


def _features(layer, offset, y, phi, slope):
    """φ and its derivatives by the pre-activations; `offset` takes the place of the layer's own."""
    times(layer.weights, y, phi)
    factor = layer.factor
    for j in range(len(phi)):
        at = phi[j] + offset[j]
        if layer.activation == COSINE:
            phi[j], slope[j] = factor * math.cos(at), -factor * math.sin(at)
        elif layer.activation == TANH:
            value = math.tanh(at)
            phi[j], slope[j] = factor * value, factor * (1.0 - value * value)
        elif layer.activation == RELU:
            phi[j], slope[j] = factor * max(at, 0.0), factor if at > 0.0 else 0.0
        else:
            value = math.tanh(0.5 * at)
            phi[j], slope[j] = 0.5 * factor * (1.0 + value), 0.25 * factor * (1.0 - value * value)


def _evaluate(layer, offset, form, work, y, start, room, gradient):
    """The score at y and its multiplier, or `start`; its gradient in y goes to `gradient`."""
    phi, slope, theta = room[0], room[1], room[2]
    _features(layer, offset, y, phi, slope)
    value, alpha = support(form, work, phi, start, theta)
    for j in range(len(slope)):
        slope[j] *= theta[j]
    transposed_times(layer.weights, slope, gradient)
    return value, alpha


def _direction(B, fresh, gradient, free, settings, direction, reduced):
    """The quasi-Newton direction, 0 where not free; without an estimate of the curvature, a short step."""
    k = len(gradient)
    if fresh:
        steepest = 0.0
        for i in range(k):
            direction[i] = gradient[i] if free[i] else 0.0
            steepest = max(steepest, abs(direction[i]))
        for i in range(k):
            direction[i] *= settings.first_step / (steepest if steepest > 0.0 else 1.0)
        return
    largest = 0.0
    for i in range(k):
        if free[i]:
            largest = max(largest, B[i, i])
    for i in range(k):
        for j in range(k):
            reduced[i, j] = B[i, j] if free[i] and free[j] else 0.0
        # At a kink the estimate can lose rank: a small multiple of its size keeps it invertible.
        reduced[i, i] += settings.keep_invertible * largest if free[i] else 1.0
        direction[i] = gradient[i] if free[i] else 0.0
    _solve(reduced, direction)


def _solve(A, x):
    """X ← A⁻¹x by elimination with pivots; A is overwritten."""
    n = len(x)
    for c in range(n):
        pivot = c
        for i in range(c + 1, n):
            if abs(A[i, c]) > abs(A[pivot, c]):
                pivot = i
        if pivot != c:
            for j in range(c, n):
                A[c, j], A[pivot, j] = A[pivot, j], A[c, j]
            x[c], x[pivot] = x[pivot], x[c]
        for i in range(c + 1, n):
            share = A[i, c] / A[c, c]
            if share != 0.0:
                for j in range(c + 1, n):
                    A[i, j] -= share * A[c, j]
                x[i] -= share * x[c]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            x[i] -= A[i, j] * x[j]
        x[i] /= A[i, i]


def _learn_curvature(B, fresh, s, q, damping, Bs):
    """BFGS, as `Climb._learn_curvature`; returns whether the curvature is still unknown."""
    k = len(s)
    sq = dot(s, q)
    if fresh:
        ratio = dot(q, q) / sq
        if not (sq > 0.0 and 0.0 < ratio < math.inf):
            return True
        for i in range(k):
            for j in range(k):
                B[i, j] = ratio if i == j else 0.0
    times(B, s, Bs)
    sBs = dot(s, Bs)
    if sq < damping * sBs:
        share = (1.0 - damping) * sBs / (sBs - sq)
        for i in range(k):
            q[i] = share * q[i] + (1.0 - share) * Bs[i]
        sq = damping * sBs
    # Squares of steps or gradients may underflow or overflow in extremely small or large boxes.
    if 1e-290 < sBs < math.inf and sq > 1e-290 and math.isfinite(dot(q, q)):
        for i in range(k):
            for j in range(k):
                B[i, j] += q[i] * q[j] / sq - Bs[i] * Bs[j] / sBs
    return False


def _climb(starts, offsets, layer, form, settings):
    """Where the climbs end, (n, k), their values, and the number of evaluations; that is 0 where numpy has to do it.

    `starts` (n, k) are the moving coordinates, `offsets` (n, d) what the others add to pre-activations.
    """
    n, k = starts.shape
    y, value, gradient, alpha = starts.copy(), np.empty(n), np.empty((n, k)), np.full(n, form.start)
    B, fresh, active = np.zeros((n, k, k)), np.ones(n, dtype=np.bool_), np.ones(n, dtype=np.bool_)
    work, room = workspace(form), np.empty((3, len(layer.weights)))
    direction, reduced, Bs, proposal, found = np.empty(k), np.empty((k, k)), np.empty(k), np.empty(k), np.empty(k)
    moved, bent, free = np.empty(k), np.empty(k), np.empty(k, dtype=np.bool_)
    scale = 0.0

    for i in range(n):
        value[i], alpha[i] = _evaluate(layer, offsets[i], form, work, y[i], alpha[i], room, gradient[i])
        if math.isnan(value[i]):
            return y, value, 0
        if math.isfinite(value[i]):
            scale = max(scale, abs(value[i]), 1e-300)
    evaluations, scale = n, scale if scale > 0.0 else 1.0
    for step in range(settings.steps):
        top, going = value.max(), False
        for i in range(n):
            if not active[i]:
                continue
            own, g, possible = y[i], gradient[i], 0.0
            for j in range(k):
                possible = max(possible, abs(min(max(own[j] + g[j] / scale, 0.0), 1.0) - own[j]))
                free[j] = not ((own[j] <= 0.0 and g[j] <= 0.0) or (own[j] >= 1.0 and g[j] >= 0.0))
            active[i] = possible > settings.arrived
            if not active[i]:
                continue
            going = True
            _direction(B[i], fresh[i], g, free, settings, direction, reduced)
            if step >= settings.prune_after and not value[i] + settings.hope * dot(direction, g) >= top:
                active[i] = False
                continue
            length, accepted, reached = 1.0, False, 0.0
            for _ in range(settings.shrinks):
                promised = 0.0
                for j in range(k):
                    proposal[j] = min(max(own[j] + length * direction[j], 0.0), 1.0)
                    promised += g[j] * (proposal[j] - own[j]) if free[j] else 0.0
                reached, alpha[i] = _evaluate(layer, offsets[i], form, work, proposal, alpha[i], room, found)
                evaluations += 1
                if math.isnan(reached):
                    return y, value, 0
                accepted = reached >= value[i] + settings.armijo * promised
                if accepted:
                    break
                length *= settings.shrink
            if accepted:
                for j in range(k):
                    moved[j], bent[j] = proposal[j] - own[j], g[j] - found[j]
                    own[j], g[j] = proposal[j], found[j]
                value[i] = reached
                fresh[i] = _learn_curvature(B[i], fresh[i], moved, bent, settings.damped, Bs)
            else:
                # If no step along a quasi-Newton direction helped, try the gradient itself.
                active[i], fresh[i] = not fresh[i], True
        if not going:
            break
    return y, value, evaluations


_features = jit(_features)
_evaluate = jit(_evaluate)
_direction = jit(_direction)
_solve = jit(_solve)
_learn_curvature = jit(_learn_curvature)
climb = jit(_climb)
