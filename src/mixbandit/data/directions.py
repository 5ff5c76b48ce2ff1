"""Feature vectors as length times unit vector, split into the range of Φᵀ and the rest."""

from __future__ import annotations

import numpy as np

from mixbandit._checks import Array

# Up to this many numbers a temporary array is cheaper than einsum.
_FEW = 4096
# Below this, the part outside is the small difference of larger vectors.
_CANCELLED = 0.1
# Lengths beyond this or its inverse are computed with rescaling.
SAFE_SIZE = 1e-100


def squares(rows: Array) -> Array:
    """Squared lengths of rows (n, d); infinite, without a warning, where they leave the range of floats."""
    if 0 < rows.size <= _FEW and np.maximum.reduce(np.abs(rows), axis=None) < 1.0 / SAFE_SIZE:
        return np.asarray(np.add.reduce(rows * rows, axis=1))
    return np.asarray(np.einsum("nd,nd->n", rows, rows))


def length(vector: Array) -> float:
    """The length of a vector (d,) of any size."""
    largest = float(np.abs(vector).max(initial=0.0))
    return largest * float(np.linalg.norm(vector / largest)) if largest > 0.0 else 0.0


def are_safe(size: Array, least: float = SAFE_SIZE) -> bool:
    """Whether all lengths, or squares of them, are neither too small nor too large to be squared as floats."""
    return not len(size) or bool(np.minimum.reduce(size) > least and np.maximum.reduce(size) < 1.0 / least)


def split(features: Array, basis: Array, *, with_outside: bool) -> tuple[Array, Array, Array, Array | None]:
    """Feature rows (n, d) and an orthonormal basis (d, rank) of the range of Φᵀ: without overflow or underflow,

    - ‖φ‖, (n,);
    - p, the unit vector's coordinates in the range of Φᵀ, (n, rank);
    - ν, the length of its part outside, (n,);
    - that part, (n, d); None if the range is everything or `with_outside` is False.
    """
    size = np.sqrt(squares(features))
    if not are_safe(size):
        # Squares of 1e-170 or 1e160 leave the range of floats: divide by the largest entry first.
        peak = np.abs(features).max(axis=1)
        features = features / np.where(peak > 0.0, peak, 1.0)[:, None]
        length = np.sqrt(squares(features))
        size = peak * length
        inverse = 1.0 / np.where(length > 0.0, length, 1.0)[:, None]
    else:
        inverse = 1.0 / size[:, None]
    inside = features @ basis
    inside *= inverse
    if basis.shape[1] == features.shape[1]:
        return size, inside, np.zeros(len(size)), None
    if not with_outside:
        null = np.sqrt(np.maximum(1.0 - squares(inside), 0.0))
        small = null < _CANCELLED  # there the difference has lost digits
        if small.any():
            null[small] = np.linalg.norm(_outside(features[small] * inverse[small], basis), axis=1)
        return size, inside, null, None
    outside = _outside(features * inverse, basis)
    return size, inside, np.sqrt(squares(outside)), outside


def _outside(unit: Array, basis: Array) -> Array:
    """The part of unit rows (n, d) that is orthogonal to the range of Φᵀ."""
    outside = unit - (unit @ basis) @ basis.T
    # Where most of the vector cancelled, what is left is no longer orthogonal: project again.
    again = squares(outside) < _CANCELLED**2
    if again.any():
        outside[again] -= (outside[again] @ basis) @ basis.T
    return outside
