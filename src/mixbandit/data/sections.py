"""Directions and points of a kernel, which live in its function space.

| symbol | meaning | shape |
|---|---|---|
| k(a, ·) | the section at action a: f(a) = ⟨k(a, ·), f⟩ for every function f of the space | |
| x_1 … x_m | centres: the distinct actions seen | (m, k) |

A direction is a section, perhaps negated, perhaps less one other section. A point is a function that is a combination
of the sections at the centres and of the direction's own ones; sets need no other functions.
"""

from __future__ import annotations

import abc
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixbandit._checks import LARGEST_DATUM, Array, check_finite
from mixbandit._lazy import lazy
from mixbandit.kernels import Kernel

_EPS = float(np.finfo(np.float64).eps)


class _Actions(abc.ABC):
    """Actions at which sections are taken, and the kernel's values there."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        # The values at the centres of the last call, which those of the next one usually begin with.
        self._seen: tuple[Array, Array] | None = None

    def at(self, centres: Array) -> Array:
        """k(a, x), (n, m)."""
        known = 0
        if self._seen is not None:
            old, values = self._seen
            if old is centres:
                return values
            known = len(old) if len(old) <= len(centres) and np.array_equal(old, centres[: len(old)]) else 0
        with np.errstate(over="ignore", invalid="ignore"):  # values beyond all floats are refused below
            new = self._evaluated(centres[known:]) if len(centres) > known else np.empty((len(self), 0))
        check_finite(new, "the kernel's values", LARGEST_DATUM**2)
        values = np.hstack((values, new)) if known else new
        self._seen = centres, values
        return values

    @abc.abstractmethod
    def _evaluated(self, centres: Array) -> Array: ...

    @property
    @abc.abstractmethod
    def rows(self) -> Array:
        """The actions, (n, k)."""

    @abc.abstractmethod
    def __len__(self) -> int: ...

    def taken(self, index: Any) -> _Rows:
        """Some of the actions."""
        some = _Rows(self.kernel, self.rows[index])
        if self._seen is not None:
            some._seen = self._seen[0], self._seen[1][index]
        return some

    @lazy
    def diagonal(self) -> Array:
        """k(a, a), (n,)."""
        with np.errstate(over="ignore", invalid="ignore"):
            found = self._diagonal()
        check_finite(found, "the kernel's values", LARGEST_DATUM**2)
        return found

    def _diagonal(self) -> Array:
        return self.kernel.diagonal(self.rows)


class _Rows(_Actions):
    def __init__(self, kernel: Kernel, rows: Array) -> None:
        super().__init__(kernel)
        self._rows = rows

    @property
    def rows(self) -> Array:
        return self._rows

    def __len__(self) -> int:
        return len(self._rows)

    def _evaluated(self, centres: Array) -> Array:
        return self.kernel.matrix(self._rows, centres)


class _Exchanged(_Actions):
    """Rows that equal `base` except for one value each, which need not be written out."""

    def __init__(self, kernel: Kernel, base: Array, columns: NDArray[np.int64], values: Array) -> None:
        super().__init__(kernel)
        self._base, self._columns, self._values = base, columns, values

    @lazy
    def rows(self) -> Array:
        rows = np.tile(self._base, (len(self._columns), 1))
        rows[np.arange(len(rows)), self._columns] = self._values
        return rows

    def __len__(self) -> int:
        return len(self._columns)

    def _diagonal(self) -> Array:
        if self.kernel.constant_diagonal:
            return np.repeat(self.kernel.diagonal(self._base[None]), len(self._columns))
        return super()._diagonal()

    def _evaluated(self, centres: Array) -> Array:
        return self.kernel.exchanged(self._base, self._columns, self._values, centres)


class Sections:
    """Directions of a kernel: `sign`·(k(a, ·) − k(base, ·)) for every action a; without `base`, `sign`·k(a, ·)."""

    __array_ufunc__ = None  # numpy must not take it apart

    def __init__(self, actions: _Actions, sign: float = 1.0, base: _Actions | None = None) -> None:
        self.actions, self.sign, self.base = actions, sign, base

    @classmethod
    def of(cls, kernel: Kernel, rows: Array) -> Sections:
        """The sections at rows (n, k)."""
        return cls(_Rows(kernel, rows))

    @classmethod
    def exchanged(cls, kernel: Kernel, base: Array, columns: NDArray[np.int64], values: Array) -> Sections:
        """The sections at rows that equal `base` (k,) except for one value at one column each."""
        return cls(_Exchanged(kernel, base, columns, values))

    @property
    def kernel(self) -> Kernel:
        return self.actions.kernel

    @property
    def rows(self) -> Array:
        """The actions, (n, k)."""
        return self.actions.rows

    def __len__(self) -> int:
        return len(self.actions)

    def __getitem__(self, index: Any) -> Sections:
        if isinstance(index, int | np.integer):
            index = slice(index, index + 1) if index != -1 else slice(-1, None)
        return Sections(self.actions.taken(index), self.sign, self.base)

    def __neg__(self) -> Sections:
        new = Sections(self.actions, -self.sign, self.base)
        if "squared" in self.__dict__:
            new.__dict__["squared"] = self.squared
        return new

    def __sub__(self, other: Sections) -> Sections:
        """Less one other section, at a single action."""
        if not isinstance(other, Sections) or len(other) != 1 or self.base is not None or other.base is not None:
            return NotImplemented
        if self.sign != 1.0 or other.sign != 1.0:
            return NotImplemented
        return Sections(self.actions, 1.0, other.actions)

    def at(self, centres: Array) -> Array:
        """Inner products with the sections at the centres, (n, m)."""
        values = self.actions.at(centres)
        if self.base is not None:
            values = values - self.base.at(centres)
        return values if self.sign == 1.0 else -values

    @lazy
    def squared(self) -> Array:
        """Squared norms, (n,)."""
        own = self.actions.diagonal
        if self.base is None:
            return own
        terms = own + self.base.diagonal
        difference = terms - 2.0 * self.actions.at(self.base.rows)[:, 0]
        # Rounded up, because rounding down would pull bounds below the truth; but equal actions do not differ.
        return np.where(difference > 0.0, difference + 4.0 * _EPS * terms, 0.0)

    def functions(self, centres: Array, coefficients: Array, along: Array) -> Functions:
        """Combinations of the sections at the centres, plus `along` (n,) times each direction itself."""
        own = self.sign * along
        if self.base is None:
            return Functions(centres, coefficients, own)
        return Functions(centres, coefficients, own, self.base.rows, -own)

    def gradients(self, points: Functions) -> Array:
        """The gradients of functions, one per action, at these actions, (n, k)."""
        kernel, rows = self.kernel, self.rows
        found = points.own[:, None] * kernel.diagonal_pullback(rows)
        if len(points.centres):
            found += kernel.pullback(rows, points.centres, points.coefficients)
        if points.base is not None:
            found += kernel.pullback(rows, points.base, points.on_base[:, None])
        return found


class Functions:
    """Functions f_i = Σ_j C_ij k(x_j, ·) + c_i k(a_i, ·) + b_i k(base, ·), one per direction: points of kernel sets.

    They can be added, and multiplied by numbers or by columns (n, 1) of them.
    """

    __array_ufunc__ = None  # so that an array times this comes here

    def __init__(
        self, centres: Array, coefficients: Array, own: Array, base: Array | None = None, on_base: Array | None = None
    ) -> None:
        self.centres, self.coefficients, self.own = centres, coefficients, own
        self.base = base  # (1, k), or None
        self.on_base: Array = np.zeros(len(own)) if on_base is None else on_base

    def __mul__(self, factor: Any) -> Functions:
        by = np.asarray(factor, dtype=np.float64)
        each = by[:, 0] if by.ndim == 2 else by
        return Functions(self.centres, by * self.coefficients, each * self.own, self.base, each * self.on_base)

    __rmul__ = __mul__

    def __add__(self, other: Functions) -> Functions:
        return Functions(
            self.centres,
            self.coefficients + other.coefficients,
            self.own + other.own,
            other.base if self.base is None else self.base,
            self.on_base + other.on_base,
        )

    def __sub__(self, other: Functions) -> Functions:
        return self + (-1.0) * other
