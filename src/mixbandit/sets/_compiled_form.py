"""The value and the gradient of a `Form`, compiled by numba, for one direction at a time."""

from __future__ import annotations

import math

import numpy as np

from mixbandit._jit import SUMS, dot, jit
from mixbandit.sets._compiled import solve_row
from mixbandit.sets.base import CUT, ROUND

# Squares of directions beyond this or its inverse are left to numpy.
_SAFE = 1e-200
# Below this, the part of a unit direction outside the range is the small difference of larger vectors.
_CANCELLED = 0.1


def _times(matrix, x, product):
    """`product` ← Ax, for A (m, n)."""
    for j in range(len(matrix)):
        product[j] = dot(matrix[j], x)


def _transposed_times(matrix, x, product):
    """`product` ← Aᵀx, for A (m, n)."""
    product[:] = 0.0
    for j in range(len(matrix)):
        row, share = matrix[j], x[j]
        for k in range(len(row)):
            product[k] += share * row[k]


def _workspace(form):
    """What depends on the set alone (s, √s z, 1/s, z/√s), and room for vectors."""
    s, d = form.root_s * form.root_s, len(form.basis)
    return (s, form.root_s * form.z, 1.0 / s, form.z / form.root_s), np.empty((3, d))


def _support(form, work, phi, start, slope):
    """The score of φ, its multiplier or `start`, and its gradient in `slope`.

    NaN where squares leave the range of floats, and at φ = 0.
    """
    if form.kind == CUT:
        return _in_cut(form, work, phi, start, slope)
    p = work[1][0]
    transposed_times(form.basis, phi, p)
    w = dot(p, p)
    if not _SAFE < w < 1.0 / _SAFE:
        return math.nan, start
    times(form.basis, p, slope)  # V⁻¹φ
    share, middle, half = form.radius / math.sqrt(w), dot(phi, form.centre), form.radius * math.sqrt(w)
    if form.kind == ROUND:
        for j in range(len(slope)):
            slope[j] = form.centre[j] + share * slope[j]
        return middle + half, start
    regret, information = form.optimum - (middle - half), math.log1p(w)
    value = math.log(information) - 2.0 * math.log(regret) if regret > 0.0 else math.inf
    # As in `InformationPerRegret.support`.
    on_half = on_lower = 0.0
    if math.isfinite(value):
        on_half, on_lower = half / (form.radius**2 * (1.0 + w) * information), 2.0 / regret
    for j in range(len(slope)):
        slope[j] = (2.0 * on_half - on_lower) * share * slope[j] + on_lower * form.centre[j]
    return value, start


def _in_cut(form, work, phi, start, theta):
    (s, centre, inverse_s, least_squares), room = work
    rank = len(s)
    p, inside, rest, bound = room[0, :rank], room[1, :rank], room[2], form.norm_bound
    size2 = dot(phi, phi)
    if not _SAFE < size2 < 1.0 / _SAFE:
        return math.nan, start
    size, null = math.sqrt(size2), 0.0
    for j in range(len(phi)):
        rest[j] = phi[j] / size
    transposed_times(form.basis, rest, p)
    if rank < len(phi):
        for j in range(len(phi)):
            rest[j] -= dot(form.basis[j], p)
        null = math.sqrt(dot(rest, rest))
        if null < _CANCELLED:  # what is left is no longer orthogonal: project again
            transposed_times(form.basis, rest, inside)
            for j in range(len(phi)):
                rest[j] -= dot(form.basis[j], inside)
            null = math.sqrt(dot(rest, rest))
    # Whether φ lies in the range must not depend on rounding; its worst contribution is added instead.
    extra = null if null <= form.negligible else 0.0
    null -= extra
    value, alpha, _, along = solve_row(
        s, form.root_s, form.z, centre, inverse_s, least_squares, form.excess, p, null, start, form.lower, form.upper,
        form.tolerance, form.round_up, form.max_steps, room, 1,
    )  # fmt: skip
    times(form.basis, inside, theta)
    outside = along if null > 0.0 else 0.0
    for j in range(len(theta)):
        theta[j] = bound * (theta[j] + outside * rest[j])
    return bound * size * min(value + extra, 1.0), alpha if 0.0 < alpha < math.inf else start


times = jit(_times)
transposed_times = jit(_transposed_times, fastmath=SUMS)
workspace = jit(_workspace)
_in_cut = jit(_in_cut)
support = jit(_support)
