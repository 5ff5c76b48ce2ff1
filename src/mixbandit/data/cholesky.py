"""Lower-triangular factors of matrices that grow, as values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mixbandit._checks import Array
from mixbandit._lazy import lapack, lazy
from mixbandit._schema import require

# Stored numbers that follow from others may differ from them by this much, relatively.
_ROUNDING = 1e-6
# Pivots that differ by more than this garble forecasts, by rounding. They stay valid, but nothing can be checked.
_WELL_CONDITIONED = 1e8
# Factors of at most this many rows are inverted, for more vectors at once than these.
_MOST_INVERTED, _FEW = 512, 4


class _Storage:
    """Storage for the rows of a factor, shared by the factors that appended them one after the other."""

    def __init__(self, capacity: int) -> None:
        self.rows: Array = np.zeros((capacity, capacity))
        self.used = 0


class GrowingCholesky:
    """The lower-triangular factor of a matrix that grows by one row and column at a time: immutable."""

    def __init__(self, size: int = 0, storage: _Storage | None = None) -> None:
        self.size = size
        self._storage = _Storage(16) if storage is None else storage

    @property
    def factor(self) -> Array:
        return self._storage.rows[: self.size, : self.size]

    def solve(self, b: Array, *, transposed: bool = False) -> Array:
        """Λ⁻¹b, or Λ⁻ᵀb."""
        from scipy.linalg import solve_triangular

        if self.size == 0:
            return b
        return np.asarray(solve_triangular(self.factor, b, lower=True, trans=int(transposed), check_finite=False))

    def appended(self, row: Array, diagonal: float) -> GrowingCholesky:
        """The factor with one more row, from `solve` applied to the new column, and its diagonal entry."""
        storage, size = self._storage, self.size
        if storage.used != size or size == len(storage.rows):  # another factor was appended here, or it is full
            storage = _Storage(max(16, size + size // 2))
            storage.rows[:size, :size] = self.factor
        storage.rows[size, :size] = row
        storage.rows[size, size] = diagonal
        storage.used = size + 1
        return GrowingCholesky(size + 1, storage)

    @classmethod
    def of(cls, matrix: Array) -> GrowingCholesky:
        """The factor of a whole positive definite matrix, (t, t)."""
        storage = _Storage(max(16, len(matrix) + len(matrix) // 4))
        if len(matrix):
            storage.rows[: len(matrix), : len(matrix)] = np.linalg.cholesky(matrix)
        storage.used = len(matrix)
        return cls(len(matrix), storage)

    @classmethod
    def from_factor(
        cls, factor: Array, where: str, least: float, squares: Array, pivot: float | None = None
    ) -> GrowingCholesky:
        """A stored factor: diagonal entries are at least `least`, and rows have about these squared norms or less.

        The latter only if digits are left to check, after divisions by pivots as small as `pivot`.
        """
        require(not np.triu(factor, 1).any(), where, "must be lower triangular")
        require((factor.diagonal() >= least * (1.0 - _ROUNDING)).all(), where, f"must have {least:g} on its diagonal")
        if is_well_conditioned(squares, least if pivot is None else pivot):
            largest = np.abs(factor).max(axis=1, initial=0.0)
            require((largest <= 2.0 * np.sqrt(squares)).all(), where, "must fit the kernel")
        storage = _Storage(max(16, 2 * len(factor)))
        storage.rows[: len(factor), : len(factor)] = factor
        storage.used = len(factor)
        return cls(len(factor), storage)


def is_well_conditioned(squares: Array, least: float) -> bool:
    """Whether a factor with rows of these squared norms, and pivots of at least `least`, has digits left to check."""
    return bool(squares.max(initial=0.0) <= _WELL_CONDITIONED * least**2)


def check_factor(factor: Array, matrix: Array, least: float, where: str) -> None:
    """Refuse a factor that is not one of this matrix, by their products with a vector: O(t²), and no chance to hide."""
    squares = matrix.diagonal()
    if not is_well_conditioned(squares, least):
        return
    scale = np.sqrt(squares)
    require((np.linalg.norm(factor, axis=1) >= (1.0 - _ROUNDING) * scale).all(), where, "must fit the kernel")
    v = np.random.default_rng(0).normal(size=len(factor))
    error = np.abs(factor @ (factor.T @ v) - matrix @ v)
    require((error <= _ROUNDING * scale * float(scale @ np.abs(v))).all(), where, "must fit the actions")


class BlockCholesky:
    """The lower-triangular factor of a matrix that grows, in blocks of rows: immutable.

    Blocks are full, except for the last, which is made anew when rows are added. So the numbers depend on the matrix
    only, not on how it grew, and a resumed run repeats them to the last bit.
    """

    ROWS = 32

    def __init__(self, blocks: tuple[Array, ...] = ()) -> None:
        self._blocks = blocks  # (rows, start + rows) each: what stands left of the diagonal, and the diagonal block
        self.size = (len(blocks) - 1) * self.ROWS + len(blocks[-1]) if blocks else 0

    @property
    def settled(self) -> int:
        """The number of rows in full blocks."""
        return self.size - self.size % self.ROWS

    def grown(self, size: int, rows: Callable[[int, int], Array]) -> BlockCholesky:
        """The factor of `size` rows; `rows(start, end)` are rows of the matrix up to its diagonal, (end−start, end)."""
        blocks = self._blocks[: self.settled // self.ROWS]
        for start in range(len(blocks) * self.ROWS, size, self.ROWS):
            end = min(start + self.ROWS, size)
            new = rows(start, end)
            left = BlockCholesky(blocks).solve(new[:, :start].T).T
            diagonal = np.linalg.cholesky(new[:, start:] - left @ left.T)
            blocks = (*blocks, np.hstack((left, diagonal)))
        return BlockCholesky(blocks)

    def diagonal(self) -> Array:
        """The diagonal entries, (t,)."""
        return np.concatenate([block[:, -len(block) :].diagonal() for block in self._blocks] or [np.empty(0)])

    @lazy
    def _inverse(self) -> Array | None:
        """Λ⁻¹, while it is small: one product then replaces a step per block."""
        if not 0 < self.size <= _MOST_INVERTED:
            return None
        whole = np.zeros((self.size, self.size), order="F")
        for block in self._blocks:
            end = block.shape[1]
            whole[end - len(block) : end, :end] = block
        inverse, info = lapack().dtrtri(whole, lower=1)
        if info != 0:
            raise RuntimeError(f"LAPACK's dtrtri returned {info}")
        return np.asarray(inverse)

    def whitened(self, b: Array) -> Array:
        """Λ⁻¹b for b (t, n), many times for one factor."""
        if b.shape[1] <= _FEW or self._inverse is None:
            return self.solve(b)
        return np.asarray(self._inverse @ b)

    def dewhitened(self, b: Array) -> Array:
        """Λ⁻ᵀb for b (t, n), many times for one factor."""
        if b.shape[1] <= _FEW or self._inverse is None:
            return self.solve_transposed(b)
        return np.asarray(self._inverse.T @ b)

    def solve(self, b: Array, known: Array | None = None) -> Array:
        """Λ⁻¹b for b (t,) or (t, n). `known` are its first rows, if they have been computed."""
        x = np.empty(b.shape)
        done = 0 if known is None else len(known) - len(known) % self.ROWS
        if done:
            assert known is not None
            x[:done] = known[:done]
        for block in self._blocks[done // self.ROWS :]:
            start = block.shape[1] - len(block)
            end = start + len(block)
            right = b[start:end] - block[:, :start] @ x[:start] if start else b[start:end]
            x[start:end] = _solved(block[:, start:], right, transposed=False)
        return x

    def solve_transposed(self, b: Array) -> Array:
        """Λ⁻ᵀb for b (t,) or (t, n)."""
        x = b.copy()
        for block in reversed(self._blocks):
            start = block.shape[1] - len(block)
            end = start + len(block)
            x[start:end] = _solved(block[:, start:], x[start:end], transposed=True)
            if start:
                x[:start] -= block[:, :start].T @ x[start:end]
        return x


def _solved(triangle: Array, b: Array, *, transposed: bool) -> Array:
    """One small triangular system."""
    x, info = lapack().dtrtrs(triangle, b, lower=1, trans=int(transposed))
    if info != 0:
        raise RuntimeError(f"LAPACK's dtrtrs returned {info}")
    return np.asarray(x)
