"""The best of many directions for an ellipsoid, compiled by numba; `ellipsoid` explains it."""

from __future__ import annotations

import math

import numpy as np

from mixbandit._jit import SUMS, jit


def _reach(row, theta):
    """φᵀθ̂ and ‖φ‖²."""
    at = size2 = 0.0
    for i in range(len(row)):
        at += row[i] * theta[i]
        size2 += row[i] * row[i]
    return at, size2


def _width2(row, root):
    """‖Wᵀφ‖²: four columns of W at a time."""
    d = len(row)
    w, k = 0.0, 0
    while k + 4 <= d:
        a = b = c = e = 0.0
        for i in range(d):
            a += row[i] * root[i, k]
            b += row[i] * root[i, k + 1]
            c += row[i] * root[i, k + 2]
            e += row[i] * root[i, k + 3]
        w += a * a + b * b + c * c + e * e
        k += 4
    while k < d:
        a = 0.0
        for i in range(d):
            a += row[i] * root[i, k]
        w += a * a
        k += 1
    return w


def _best(directions, root, theta, radius, spread, tie, safe, most):
    """The index of the largest φᵀθ̂ + radius·‖Wᵀφ‖, and both terms; −1 where that takes another look.

    `spread` is at least the largest ‖Wᵀφ‖/‖φ‖. Another look is needed where values tie, where more than `most`
    directions have to be measured, and where squares leave the range of floats (`safe`).
    """
    n = len(directions)
    ceilings, values = np.empty(n), np.empty(n)
    first, reach = 0, 1.001 * radius * spread
    for i in range(n):
        at, size2 = _reach(directions[i], theta)
        if not safe < size2 < 1.0 / safe:
            return -1, 0.0, 0.0
        values[i] = at
        ceilings[i] = at + reach * math.sqrt(size2)
        if ceilings[i] > ceilings[first]:
            first = i
    best, winner, measured = -math.inf, -1, 0
    for k in range(n + 1):
        i = first if k == 0 else k - 1
        if (k > 0 and i == first) or ceilings[i] < best - tie * abs(best):
            continue
        measured += 1
        if measured > most:
            return -1, 0.0, 0.0
        w = _width2(directions[i], root)
        if not safe < w < 1.0 / safe:
            return -1, 0.0, 0.0
        ceilings[i] = values[i] + radius * math.sqrt(w)  # now exact
        if ceilings[i] > best:
            best, winner = ceilings[i], i
    for i in range(n):
        if i != winner and ceilings[i] >= best - tie * abs(best):
            return -1, 0.0, 0.0
    return winner, values[winner], best - values[winner]


_reach = jit(_reach, fastmath=SUMS)
_width2 = jit(_width2, fastmath=SUMS)
best = jit(_best)
