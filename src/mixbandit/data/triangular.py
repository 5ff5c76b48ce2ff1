"""Steps of linear algebra on triangular factors, by LAPACK without numpy's overhead."""

from __future__ import annotations

import math

import numpy as np

from mixbandit._checks import Array
from mixbandit._lazy import lapack
from mixbandit._threads import single_threaded
from mixbandit.data.ridge import Ridge

# Panel width of LAPACK's triangular-pentagonal QR; 8 was fastest for d = 20 and d = 100.
_PANEL = 8


@single_threaded
def svd(rows: Array) -> tuple[Array, Array, Array]:
    """The thin singular value decomposition, like numpy's but without its overhead."""
    if not rows.size:
        return np.empty((len(rows), 0)), np.empty(0), np.empty((0, rows.shape[1]))
    left, singular, right, info = lapack().dgesdd(rows, compute_uv=1, full_matrices=0)
    if info != 0:
        raise RuntimeError(f"LAPACK's dgesdd returned {info}: the singular values did not converge")
    return left, singular, right


@single_threaded
def folded_in(factor: Array, rows: Array) -> Array:
    """The triangular factor of `factor` stacked on `rows`; the arguments are left as they are."""
    # The zero: `rows` is a full rectangle, without a triangular part.
    folded, _, _, info = lapack().dtpqrt(0, min(_PANEL, len(factor)), factor, rows)
    if info != 0:
        raise RuntimeError(f"LAPACK's dtpqrt refused argument {-info}")
    return np.asarray(folded)


@single_threaded
def ridge_of(factor: Array, alpha: float) -> Ridge:
    """Ridge regression at α, by QR of the factor stacked on √αI."""
    d, root_alpha = len(factor) - 1, math.sqrt(alpha)
    penalty = np.zeros((d, d + 1), order="F")
    penalty.ravel(order="F")[: d * d : d + 1] = root_alpha
    # The d: the penalty is upper trapezoidal, and stays so while it is folded in.
    folded, _, _, info = lapack().dtpqrt(d, min(_PANEL, d + 1), factor, penalty)
    if info != 0:
        raise RuntimeError(f"LAPACK's dtpqrt refused argument {-info}")
    triangle = folded[:d, :d]
    inverse, info = lapack().dtrtri(triangle)
    if info != 0:
        raise RuntimeError(f"LAPACK's dtrtri returned {info}")
    white = folded[:d, d].copy()
    theta = inverse @ white
    return Ridge(
        alpha,
        inverse,
        theta,
        white,
        2.0 * float(np.add.reduce(np.log(np.abs(triangle.diagonal()) / root_alpha))),
        float(folded[d, d]) ** 2,
        float(np.maximum.reduce(np.abs(triangle), axis=None)) ** 2,
        float(theta @ theta),
    )
