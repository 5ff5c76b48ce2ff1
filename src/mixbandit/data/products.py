"""Products with matrices that are too small for several threads to pay, whatever the environment says.

OpenBLAS hands a product of a matrix and a vector to several threads from about 9,000 entries on, and a change of rank
one from about 8,000. On a busy machine a decision then waits for a thread that is not scheduled. So larger matrices
are taken in groups of rows.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mixbandit._checks import Array
from mixbandit._lazy import blas
from mixbandit._threads import MOST_ENTRIES


def times(matrix: Array, vector: Array) -> Array:
    """Mx for M (n, d) in C's order."""
    n, d = matrix.shape
    group = max(MOST_ENTRIES // d, 1)
    if n <= group:
        return np.asarray(matrix @ vector)
    found, whole = np.empty(n), n - n % group
    np.matmul(matrix[:whole].reshape(-1, group, d), vector, out=found[:whole].reshape(-1, group))
    if whole < n:
        np.matmul(matrix[whole:], vector, out=found[whole:])
    return found


def ridge_step(
    root: Array, theta: Array, white: Array, row: Array, reward: float, *, in_place: bool = False
) -> tuple[Any, ...]:
    """A step of ridge regression, as `Ridge.after` makes it: the transposed root, θ̂ and q; w, the error, and ‖θ̂‖².

    `in_place` overwrites the root, which must be in Fortran's order, θ̂ and q.
    """
    fast, d = blas(), len(row)
    group = max(MOST_ENTRIES // d, 1)
    if d <= group:
        u = fast.dgemv(1.0, root, row, trans=1)
        v = fast.dgemv(1.0, root, u)
    else:
        u, v = np.empty(d), np.zeros(d)
        for start in range(0, d, group):
            part = slice(start, start + group)
            u[part] = fast.dgemv(1.0, root[:, part], row, trans=1)
            v = fast.dgemv(1.0, root[:, part], u[part], beta=1.0, y=v, overwrite_y=1)
    w = fast.ddot(u, u)
    stretch = 1.0 + w
    error, long = reward - fast.ddot(row, theta), math.sqrt(stretch)
    # BLAS overwrites the vector that it adds to.
    theta, white = (theta, white) if in_place else (theta.copy(), white.copy())
    new, shrink = fast.daxpy(v, theta, a=error / stretch), 1.0 / (long * (long + 1.0))
    if d <= group:
        changed = fast.dger(-shrink, v, u, a=root, overwrite_a=in_place)
    else:
        changed = root if in_place else root.copy(order="F")
        for start in range(0, d, group):
            part = slice(start, start + group)
            fast.dger(-shrink, v, u[part], a=changed[:, part], overwrite_a=1)
    moved = fast.daxpy(u, white, a=reward - shrink * (fast.ddot(u, white) + reward * w))
    return changed.T, new, moved, w, error, fast.ddot(new, new)
