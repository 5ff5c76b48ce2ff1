"""A step of ridge regression, compiled by numba; `ridge` explains it."""

from __future__ import annotations

import math

import numpy as np

from mixbandit._jit import SUMS, dot, jit


def _along(root, row, u, v):
    """U ← Wᵀφ and v ← Wu, both in one pass over the columns of W."""
    d = len(row)
    for i in range(d):
        v[i] = 0.0
    for k in range(d):
        column, share = root[:, k], 0.0
        for i in range(d):
            share += column[i] * row[i]
        u[k] = share
        for i in range(d):
            v[i] += share * column[i]


def _rank_one(root, factor, v, u, new):
    """New ← W + factor·vuᵀ, by columns."""
    d = len(u)
    for k in range(d):
        column, own, share = root[:, k], new[k], factor * u[k]
        for i in range(d):
            own[i] = column[i] + share * v[i]


def _step(root, theta, white, row, reward):
    d = len(row)
    u, v = np.empty(d), np.empty(d)
    _along(root, row, u, v)
    w = dot(u, u)
    stretch = 1.0 + w
    long, error = math.sqrt(stretch), reward - dot(row, theta)
    columns, new_theta, new_white = np.empty((d, d)), np.empty(d), np.empty(d)
    shrink = 1.0 / (long * (long + 1.0))
    _rank_one(root, -shrink, v, u, columns)
    share, along = error / stretch, reward - shrink * (dot(u, white) + reward * w)
    for i in range(d):
        new_theta[i] = theta[i] + share * v[i]
        new_white[i] = white[i] + along * u[i]
    return columns, new_theta, new_white, w, error, dot(new_theta, new_theta)


_along = jit(_along, fastmath=SUMS)
_rank_one = jit(_rank_one, fastmath=SUMS)
step = jit(_step)
