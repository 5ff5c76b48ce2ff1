"""What kernels compute with rows: products of all pairs, distances, column numbers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixbandit._checks import LARGEST_DIMENSION, Array, as_float_array, is_integer, shown
from mixbandit.errors import InvalidInput

IntArray = NDArray[np.int64]

# So many numbers stay in the cache from one operation to the next.
_BLOCK = 2**15


def in_blocks(compute: Callable[..., Array], A: Array, B: Array, *others: Array) -> Array:
    """The rows of compute(A, B, …), some at a time: what lies between stays in the cache. `others` have rows as A."""
    step = max(_BLOCK // max(len(B), 1), 1)
    if len(A) <= step:
        return compute(A, B, *others)
    blocks = [slice(start, start + step) for start in range(0, len(A), step)]
    first = compute(A[blocks[0]], B, *(other[blocks[0]] for other in others))
    out: Array = np.empty((len(A), first.shape[1]))
    out[blocks[0]] = first
    for block in blocks[1:]:
        out[block] = compute(A[block], B, *(other[block] for other in others))
    return out


def dots(A: Array, B: Array) -> Array:
    """The products aᵀb of all pairs, (n, m).

    Summed column by column, so that each depends on its two rows alone and on neither their order nor the other rows;
    a product of matrices does not promise that.
    """
    out: Array = np.zeros((len(A), len(B)))
    step = max(_BLOCK // max(len(B), 1), 1)
    work = np.empty((min(step, len(A)), len(B)))
    columns = np.ascontiguousarray(B.T)
    for start in range(0, len(A), step):
        block, rows = out[start : start + step], A[start : start + step]
        term = work[: len(block)]
        for i, column in enumerate(columns):
            np.multiply(rows[:, i, None], column, out=term)
            block += term
    return out


def squares(A: Array) -> Array:
    """‖a‖² of every row, (n,): to the last bit the diagonal of `dots(A, A)`."""
    out: Array = np.zeros(len(A))
    for column in A.T:
        out += column * column
    return out


def squared_distances(A: Array, B: Array) -> Array:
    """‖a − b‖² for all pairs, (n, m): exactly 0 for equal rows."""
    return np.asarray(_distance().cdist(A, B, "sqeuclidean"))


@functools.cache
def _distance() -> Any:
    from scipy.spatial import distance  # late: it takes longer to import than the package

    return distance


def power(x: Array, exponent: int) -> Array:
    """Whole powers ≥ 0, by squaring: many times faster than numpy's."""
    if exponent == 0:
        return np.ones(x.shape)
    if exponent == 1:
        return x
    half = power(x, exponent // 2)
    square = half * half
    if exponent % 2:
        square *= x
    return square


def farthest(centres: Array, half_widths: Array) -> Array:
    """The largest ‖a‖² over |a − centre| ≤ half_widths, (n,)."""
    return squares(np.abs(centres) + half_widths)


def as_columns(value: Any, name: str) -> tuple[int, ...]:
    """`value` as distinct column numbers; a single number is one column."""
    if is_integer(value):
        value = [value]
    array = as_float_array(value, name)
    # The cells as they came: as floats, masks of True and False would pass for columns 1 and 0.
    cells = value if isinstance(value, list | tuple) else np.asarray(value).ravel().tolist()
    if array.ndim != 1 or not array.size:
        raise InvalidInput(f"{name} must be a list of column numbers, got shape {array.shape}")
    if not all(is_integer(cell) and 0 <= cell < LARGEST_DIMENSION for cell in cells) or len(set(cells)) < len(cells):
        raise InvalidInput(f"{name} must be distinct integers from 0 to {LARGEST_DIMENSION - 1:,}, got {shown(value)}")
    return tuple(int(cell) for cell in cells)


def column_index(columns: Sequence[int]) -> IntArray:
    return np.array(columns, dtype=np.int64)
