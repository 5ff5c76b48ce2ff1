"""What a kernel is to the rest of the package, and the kernels that operators make of others.

| symbol | meaning | shape |
|---|---|---|
| A, B | rows of actions | (n, k), (m, k) |
| k(a, b) | a symmetric function with positive semi-definite matrices, for all real rows | |
| φ(a) = k(a, ·) | the features of a kernel: ⟨φ(a), φ(b)⟩ = k(a, b), ‖φ(a)‖² = k(a, a) | |
| cell | all rows a with |a − c| ≤ h, entry by entry, of a centre c and half-widths h | (k,), (k,) |
"""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mixbandit._checks import (
    LARGEST_DIMENSION,
    Array,
    as_float_array,
    check_finite,
    instance_of,
    is_integer,
    positive,
    shown,
)
from mixbandit._schema import Fields, integer, list_of, real, record
from mixbandit.errors import InvalidInput
from mixbandit.kernels.rows import IntArray, as_columns, column_index, in_blocks
from mixbandit.storage import CODE, Family, Storable, Stored

# Rows that are needed for a moment are made in parts of about this many numbers.
_MOST_ENTRIES = 2**20

VARIANCE = {"variance": real(positive)}
COLUMNS = list_of(integer(0, LARGEST_DIMENSION - 1), least=1)


class Kernel(Storable, abc.ABC):
    """Base class. All methods but the call itself take rows that have been checked, and return new arrays."""

    family = Family("a kernel", "kernel")

    __array_ufunc__ = None  # numpy's numbers and arrays leave products with a kernel to the kernel

    dim_in: int | None = None
    """The length that rows must have; None if any length works."""
    least_dim_in: int = 0
    """The smallest length that rows may have."""
    differentiable: bool = True
    """Whether the kernel has derivatives everywhere; if not, `pullback` counts those that do not exist as 0."""
    constant_diagonal: bool = False
    """Whether k(a, a) is the same for all rows."""

    def __call__(self, A: ArrayLike, B: ArrayLike) -> Array:
        """The matrix (n, m) of k(a, b)."""
        rows, others = as_float_array(A, "A"), as_float_array(B, "B")
        if rows.ndim != 2 or others.ndim != 2 or rows.shape[1] != others.shape[1]:
            raise InvalidInput(f"A and B must have shapes (n, k) and (m, k), got {rows.shape} and {others.shape}")
        self.check_dim_in(rows.shape[1])
        check_finite(rows, "A")
        check_finite(others, "B")
        with np.errstate(over="ignore", invalid="ignore"):
            values = self.matrix(rows, others)
        if not np.isfinite(values).all():
            largest = max(np.abs(rows).max(initial=0.0), np.abs(others).max(initial=0.0))
            raise InvalidInput(f"the kernel has no finite values for entries as large as {largest:g}")
        return values

    def check_dim_in(self, length: int) -> None:
        """Raise InvalidInput unless the kernel takes rows of this length."""
        if self.dim_in not in (None, length) or length < self.least_dim_in:
            wanted = f"at least {self.least_dim_in}" if self.dim_in is None else self.dim_in
            raise InvalidInput(f"the kernel takes rows of length {wanted}, got length {length}")

    @abc.abstractmethod
    def matrix(self, A: Array, B: Array) -> Array:
        """The values k(a, b) of all pairs, (n, m); exchanging A and B transposes them to the last bit."""

    @abc.abstractmethod
    def diagonal(self, A: Array) -> Array:
        """k(a, a), (n,)."""

    @abc.abstractmethod
    def pullback(self, A: Array, B: Array, weights: Array) -> Array:
        """Σ_j weights_ij ∂k(a_i, b_j)/∂a_i, (n, k), for weights (n, m)."""

    @abc.abstractmethod
    def diagonal_pullback(self, A: Array) -> Array:
        """∂k(x, a)/∂x at x = a, (n, k): half the gradient of the diagonal."""

    def stray(self, centres: Array, half_widths: Array) -> Array | None:
        """Upper bounds (n,) on ‖φ(a) − φ(c)‖ = √(k(a,a) + k(c,c) − 2k(a,c)) over cells; None if none are known."""
        return None

    def largest(self, centres: Array, half_widths: Array) -> Array | None:
        """Upper bounds (n,) on ‖φ(a)‖ = √k(a, a) over cells; None if none are known."""
        stray = self.stray(centres, half_widths)
        return None if stray is None else np.sqrt(self.diagonal(centres)) + stray

    def exchanged(self, base: Array, columns: IntArray, values: Array, B: Array) -> Array:
        """k(a, b), (n, m), for rows a that equal `base` (k,) except for one value at one column each."""
        out = np.empty((len(columns), len(B)))
        chunk = max(_MOST_ENTRIES // max(len(base), 1), 1)
        for start in range(0, len(columns), chunk):
            at, new = columns[start : start + chunk], values[start : start + chunk]
            rows = np.tile(base, (len(at), 1))
            rows[np.arange(len(at)), at] = new
            out[start : start + chunk] = self.matrix(rows, B)
        return out

    def on(self, columns: Sequence[int]) -> OnColumns:
        """The same kernel on some columns of the rows, in this order."""
        return OnColumns(self, columns)

    @classmethod
    def check_state(cls, state: Mapping[str, Any], where: str) -> Fields:
        """The state in the form of its schema; what has the right form must also make a kernel."""
        fields = super().check_state(state, where)
        cls.restored(Stored(cls, fields, where))
        return fields

    def __add__(self, other: Kernel | float) -> Kernel:
        return SumKernel([*_terms(self), *_terms(_operand(other))])

    def __radd__(self, other: float) -> Kernel:
        if is_integer(other) and other == 0:  # where sum() starts
            return self
        return SumKernel([*_terms(_operand(other)), *_terms(self)])

    def __mul__(self, other: Kernel | float) -> Kernel:
        return ProductKernel([*_factors(self), *_factors(_operand(other))])

    def __rmul__(self, other: float) -> Kernel:
        return ProductKernel([*_factors(_operand(other)), *_factors(self)])

    def _stated(self) -> dict[str, Any] | None:
        """Its settings; None for a kernel that is code."""
        return self.settings() or (None if self.schema is CODE else {})

    def __repr__(self) -> str:
        settings = self._stated()
        if settings is None:
            return super().__repr__()
        return f"{type(self).__name__}({', '.join(f'{name}={_plain(value)}' for name, value in settings.items())})"

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        settings, others = self._stated(), other._stated()
        if settings is None or others is None:
            return self is other
        return bool(_frozen(settings) == _frozen(others))

    def __hash__(self) -> int:
        settings = self._stated()
        return object.__hash__(self) if settings is None else hash((type(self), _frozen(settings)))


class ConstantKernel(Kernel):
    """k = variance."""

    kind = "ConstantKernel"
    schema = record(VARIANCE)

    constant_diagonal = True

    def __init__(self, variance: float = 1.0) -> None:
        self.variance = positive(variance, "variance")

    def matrix(self, A: Array, B: Array) -> Array:
        return np.full((len(A), len(B)), self.variance)

    def diagonal(self, A: Array) -> Array:
        return np.full(len(A), self.variance)

    def pullback(self, A: Array, B: Array, weights: Array) -> Array:
        return np.zeros(A.shape)

    def diagonal_pullback(self, A: Array) -> Array:
        return np.zeros(A.shape)

    def stray(self, centres: Array, half_widths: Array) -> Array:
        return np.zeros(len(centres))

    def exchanged(self, base: Array, columns: IntArray, values: Array, B: Array) -> Array:
        return np.full((len(columns), len(B)), self.variance)


class _Combined(Kernel):
    """Several kernels of the same rows."""

    schema = record({"kernels": list_of(Kernel.family, least=1)})

    def __init__(self, kernels: Sequence[Kernel]) -> None:
        if not isinstance(kernels, list | tuple) or not kernels:
            raise InvalidInput(f"kernels must be a list of kernels, got {shown(kernels)}")
        self.kernels = tuple(_as_member(kernel, f"kernels[{i}]") for i, kernel in enumerate(kernels))
        self.dim_in = next((kernel.dim_in for kernel in self.kernels if kernel.dim_in is not None), None)
        self.least_dim_in = max(kernel.least_dim_in for kernel in self.kernels)
        if self.dim_in is not None:
            for kernel in self.kernels:
                kernel.check_dim_in(self.dim_in)
        self.differentiable = all(kernel.differentiable for kernel in self.kernels)
        self.constant_diagonal = all(kernel.constant_diagonal for kernel in self.kernels)


class SumKernel(_Combined):
    """k = Σ_l k_l, the result of `+`."""

    kind = "SumKernel"

    def matrix(self, A: Array, B: Array) -> Array:
        return in_blocks(lambda a, b: _total([kernel.matrix(a, b) for kernel in self.kernels]), A, B)

    def diagonal(self, A: Array) -> Array:
        return _total([kernel.diagonal(A) for kernel in self.kernels])

    def pullback(self, A: Array, B: Array, weights: Array) -> Array:
        return _total([kernel.pullback(A, B, weights) for kernel in self.kernels])

    def diagonal_pullback(self, A: Array) -> Array:
        return _total([kernel.diagonal_pullback(A) for kernel in self.kernels])

    def stray(self, centres: Array, half_widths: Array) -> Array | None:
        return _root([kernel.stray(centres, half_widths) for kernel in self.kernels])

    def largest(self, centres: Array, half_widths: Array) -> Array | None:
        return _root([kernel.largest(centres, half_widths) for kernel in self.kernels])

    def exchanged(self, base: Array, columns: IntArray, values: Array, B: Array) -> Array:
        return _total([kernel.exchanged(base, columns, values, B) for kernel in self.kernels])


class ProductKernel(_Combined):
    """k = Π_l k_l, the result of `*`."""

    kind = "ProductKernel"

    def matrix(self, A: Array, B: Array) -> Array:
        return in_blocks(lambda a, b: _product([kernel.matrix(a, b) for kernel in self.kernels]), A, B)

    def diagonal(self, A: Array) -> Array:
        return _product([kernel.diagonal(A) for kernel in self.kernels])

    def pullback(self, A: Array, B: Array, weights: Array) -> Array:
        return in_blocks(self._pullback, A, B, weights)

    def _pullback(self, A: Array, B: Array, weights: Array) -> Array:
        weighted = _times_others(weights, [kernel.matrix(A, B) for kernel in self.kernels])
        return _total([k.pullback(A, B, other) for k, other in zip(self.kernels, weighted, strict=True)])

    def diagonal_pullback(self, A: Array) -> Array:
        others = _times_others(np.ones(len(A)), [kernel.diagonal(A) for kernel in self.kernels])
        parts = zip(self.kernels, others, strict=True)
        return _total([kernel.diagonal_pullback(A) * other[:, None] for kernel, other in parts])

    def stray(self, centres: Array, half_widths: Array) -> Array | None:
        """By x⊗u − y⊗w = (x − y)⊗u + y⊗(u − w), for the features x, u at a row and y, w at the centre.

        Where ‖x‖ = ‖y‖ and ‖u‖ = ‖w‖, ⟨x − y, y⟩ ≤ 0 ≤ ⟨u, u − w⟩, and the squares of the two terms suffice.
        """
        size, most, stray, constant = np.ones(len(centres)), np.ones(len(centres)), np.zeros(len(centres)), True
        for kernel in self.kernels:
            new_most, new_stray = kernel.largest(centres, half_widths), kernel.stray(centres, half_widths)
            if new_most is None or new_stray is None:
                return None
            new_size = np.sqrt(kernel.diagonal(centres))
            constant = constant and kernel.constant_diagonal
            if constant:
                stray = np.hypot(stray * new_size, size * new_stray)
            else:
                stray = np.minimum(stray * new_most + size * new_stray, stray * new_size + most * new_stray)
            size, most = size * new_size, most * new_most
            stray = np.minimum(stray, size + most)
        return stray

    def largest(self, centres: Array, half_widths: Array) -> Array | None:
        parts = [kernel.largest(centres, half_widths) for kernel in self.kernels]
        known = [part for part in parts if part is not None]
        return _product(known) if len(known) == len(parts) else None

    def exchanged(self, base: Array, columns: IntArray, values: Array, B: Array) -> Array:
        return _product([kernel.exchanged(base, columns, values, B) for kernel in self.kernels])


class OnColumns(Kernel):
    """k(a, b) = kernel(a_columns, b_columns), the result of `kernel.on(columns)`."""

    kind = "OnColumns"
    schema = record({"kernel": Kernel.family, "columns": COLUMNS})

    def __init__(self, kernel: Kernel, columns: Sequence[int]) -> None:
        self.kernel, self.columns = _as_member(kernel, "kernel"), as_columns(columns, "columns")
        self.kernel.check_dim_in(len(self.columns))
        self.least_dim_in = max(self.columns) + 1
        self.differentiable, self.constant_diagonal = kernel.differentiable, kernel.constant_diagonal
        self._index = column_index(self.columns)

    def matrix(self, A: Array, B: Array) -> Array:
        return self.kernel.matrix(A[:, self._index], B[:, self._index])

    def diagonal(self, A: Array) -> Array:
        return self.kernel.diagonal(A[:, self._index])

    def pullback(self, A: Array, B: Array, weights: Array) -> Array:
        out = np.zeros(A.shape)
        out[:, self._index] = self.kernel.pullback(A[:, self._index], B[:, self._index], weights)
        return out

    def diagonal_pullback(self, A: Array) -> Array:
        out = np.zeros(A.shape)
        out[:, self._index] = self.kernel.diagonal_pullback(A[:, self._index])
        return out

    def stray(self, centres: Array, half_widths: Array) -> Array | None:
        return self.kernel.stray(centres[:, self._index], half_widths[:, self._index])

    def largest(self, centres: Array, half_widths: Array) -> Array | None:
        return self.kernel.largest(centres[:, self._index], half_widths[:, self._index])

    def exchanged(self, base: Array, columns: IntArray, values: Array, B: Array) -> Array:
        place = np.full(len(base), -1)
        place[self._index] = np.arange(len(self._index))
        at, base, B = place[columns], base[self._index], B[:, self._index]
        seen = at >= 0
        out = np.empty((len(columns), len(B)))
        out[seen] = self.kernel.exchanged(base, at[seen], values[seen], B)
        out[~seen] = self.kernel.matrix(base[None], B)
        return out


_WRAP = "wrap a scikit-learn kernel as SklearnKernel(kernel)"


def _as_member(kernel: Any, name: str) -> Kernel:
    return instance_of(kernel, Kernel, name, f"a mixbandit kernel ({_WRAP})")


def _operand(other: Any) -> Kernel:
    if isinstance(other, Kernel):
        return other
    if callable(other) or isinstance(other, str):
        raise InvalidInput(f"kernels combine with kernels and positive numbers, got {shown(other)}; {_WRAP}")
    return ConstantKernel(positive(other, "a number beside a kernel"))


def _terms(kernel: Kernel) -> tuple[Kernel, ...]:
    return kernel.kernels if type(kernel) is SumKernel else (kernel,)


def _factors(kernel: Kernel) -> tuple[Kernel, ...]:
    return kernel.kernels if type(kernel) is ProductKernel else (kernel,)


def _total(parts: list[Array]) -> Array:
    for part in parts[1:]:
        parts[0] += part
    return parts[0]


def _product(parts: list[Array]) -> Array:
    for part in parts[1:]:
        parts[0] *= part
    return parts[0]


def _times_others(start: Array, parts: list[Array]) -> list[Array]:
    """`start` times all parts but one, for each of them; without a division, as parts may be 0."""
    before = [start]
    for part in parts[:-1]:
        before.append(before[-1] * part)
    after = parts[-1]
    for i in range(len(parts) - 2, -1, -1):
        before[i] = before[i] * after
        after = after * parts[i] if i else after
    return before


def _root(parts: list[Array | None]) -> Array | None:
    """The root of the sum of squares; None if one is unknown."""
    total = np.zeros(())
    for part in parts:
        if part is None:
            return None
        total = np.hypot(total, part)
    return total


def _plain(value: Any) -> str:
    return repr(list(value) if isinstance(value, tuple) else value.tolist() if isinstance(value, np.ndarray) else value)


def _frozen(value: Any) -> Any:
    """The value in a form that can be compared and hashed."""
    if isinstance(value, dict):
        return tuple((name, _frozen(part)) for name, part in value.items())
    if isinstance(value, np.ndarray):
        return value.shape, tuple(value.ravel().tolist())
    return value
