"""One column of a run: the cells of one parameter or of the values, held compactly, trial by trial.

Numbers are one float a row. Anything else is a code a row and a list of what occurs. A run of a million trials then
needs a few megabytes per column, where a dict per trial needs gigabytes.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixbandit._checks import LARGEST_ENTRY, Array, shown
from mixbandit.errors import InvalidInput
from mixbandit.tuning.parameters import Categorical, Float, Int, Parameter

Codes = NDArray[np.int64]
Mask = NDArray[np.bool_]

# Up to here every integer is a float.
LARGEST_EXACT = 2**53
# Text that occurs once or twice each is a note or a name, not a category; a few rows cannot tell.
_MOST_CATEGORIES, _FEW = 1000, 10


class Absent:
    """The type of ABSENT: a trial without this parameter, or a cell without content."""

    def __repr__(self) -> str:
        return "nothing"


ABSENT = Absent()


class Column(abc.ABC):
    """The cells of one column, by row."""

    @abc.abstractmethod
    def __len__(self) -> int: ...

    @abc.abstractmethod
    def __getitem__(self, row: int) -> Any:
        """The cell of a row, ABSENT if it has none."""

    @property
    @abc.abstractmethod
    def present(self) -> Mask:
        """Which rows have a cell."""

    @abc.abstractmethod
    def kept(self, rows: Any) -> Column:
        """The cells of these rows, in this order: a mask, a slice or indices."""

    @abc.abstractmethod
    def values(self) -> tuple[Any, ...]:
        """What occurs, each once."""

    @abc.abstractmethod
    def numbers(self, name: str) -> Array:
        """The cells as numbers, NaN where there is none; InvalidInput if one is something else."""

    @abc.abstractmethod
    def spanned(self, name: str) -> Parameter:
        """The smallest parameter that has all these values."""

    @abc.abstractmethod
    def encoded(self, parameter: Parameter) -> tuple[Array, Mask]:
        """Coordinates (n, width), and for which rows they are right: other cells are absent or not allowed."""

    @property
    def varies(self) -> bool:
        """Whether rows differ, be it in having a cell at all."""
        return len(self.values()) > 1 or (not self.present.all() and bool(self.present.any()))

    def choices(self, parameter: Categorical) -> Codes:
        """Which choice of the parameter each row has; −1 for none of them."""
        rows, right = self.encoded(parameter)
        return np.where(right, rows.argmax(axis=1), -1)


@dataclass(frozen=True, eq=False)
class Numbers(Column):
    """Numbers, NaN where there is none."""

    cells: Array
    whole: bool  # whether all of them are integers, of a size that floats hold exactly

    @classmethod
    def of(cls, cells: Array) -> Numbers:
        some = cells[~np.isnan(cells)]
        return cls(cells, bool((np.abs(some) <= LARGEST_EXACT).all() and (some == np.rint(some)).all()))

    def __len__(self) -> int:
        return len(self.cells)

    def __getitem__(self, row: int) -> Any:
        cell = float(self.cells[row])
        if math.isnan(cell):
            return ABSENT
        return int(cell) if self.whole else cell

    @property
    def present(self) -> Mask:
        return ~np.isnan(self.cells)

    def kept(self, rows: Any) -> Numbers:
        return Numbers(self.cells[rows], self.whole)

    @property
    def varies(self) -> bool:
        some = self.cells[self.present]
        return len(some) > 0 and (len(some) < len(self) or float(some.min()) < float(some.max()))

    def values(self) -> tuple[Any, ...]:
        return tuple(self._python(np.unique(self.cells[self.present])))

    def numbers(self, name: str) -> Array:
        return self.cells

    def spanned(self, name: str) -> Parameter:
        some = self.cells[self.present]
        low, high = float(some.min()), float(some.max())
        _check_size(name, low, high)
        if low == high:
            return Categorical(self._python(some[:1]))
        return Int(int(low), int(high)) if self.whole else Float(low, high)

    def encoded(self, parameter: Parameter) -> tuple[Array, Mask]:
        if not self._is_line(parameter):
            return self.listed().encoded(parameter)
        assert isinstance(parameter, Float | Int)
        low, high = float(parameter.low), float(parameter.high)
        inside = (self.cells >= low) & (self.cells <= high)  # never for NaN
        cells = np.where(inside, self.cells, low)
        if parameter.log:
            place = (np.log(cells) - math.log(low)) / (math.log(high) - math.log(low))
        else:
            place = (cells - low) / (high - low)
        place = np.clip(place, 0.0, 1.0)
        for row in np.flatnonzero(self.present & ~inside).tolist():
            found = encoded_cell(parameter, self[row])  # rounding may have led a little outside
            if found is not None:
                place[row], inside[row] = found[0], True
        return place[:, None], inside

    def _is_line(self, parameter: Parameter) -> bool:
        """Whether the coordinate of every number between the ends is a simple function of it."""
        if isinstance(parameter, Float):
            return parameter.step is None
        whole = self.whole and isinstance(parameter, Int) and parameter.step == 1
        return whole and isinstance(parameter, Int) and max(-parameter.low, parameter.high) <= LARGEST_EXACT

    def listed(self) -> Choices:
        """The same cells, by value."""
        distinct, codes = np.unique(self.cells[self.present], return_inverse=True)
        everywhere = np.full(len(self), -1)
        everywhere[self.present] = codes
        return Choices(everywhere, tuple(self._python(distinct)))

    def _python(self, cells: Array) -> list[Any]:
        return [int(cell) for cell in cells.tolist()] if self.whole else cells.tolist()


@dataclass(frozen=True, eq=False)
class Choices(Column):
    """Cells of any kind: the code of each row, −1 for none, and what the codes stand for."""

    codes: Codes
    known: tuple[Any, ...]

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, row: int) -> Any:
        code = int(self.codes[row])
        return ABSENT if code < 0 else self.known[code]

    @property
    def present(self) -> Mask:
        return self.codes >= 0

    def kept(self, rows: Any) -> Choices:
        return Choices(self.codes[rows], self.known)

    def values(self) -> tuple[Any, ...]:
        return tuple(self.known[code] for code in np.unique(self.codes[self.present]).tolist())

    def numbers(self, name: str) -> Array:
        known = [_number(value) for value in self.known]
        occurring = np.unique(self.codes[self.present]).tolist()
        mixed = len({isinstance(self.known[code], bool) for code in occurring}) > 1
        for code in occurring:
            if known[code] is None or (mixed and isinstance(self.known[code], bool)):
                raise InvalidInput(f"the column {name!r} must hold numbers, got {shown(self.known[code])}")
        return np.array([*(math.nan if number is None else number for number in known), math.nan])[self.codes]

    def spanned(self, name: str) -> Parameter:
        values = self.values()
        if len(values) == 1:
            return Categorical(values)
        if all(is_number(value) for value in values):
            low, high = min(values), max(values)
            _check_size(name, low, high)
            return Int(low, high) if all(isinstance(v, int) for v in values) else Float(float(low), float(high))
        rows = int(self.present.sum())
        if len(values) > _MOST_CATEGORIES or (len(values) > _FEW and 2 * len(values) > rows):
            raise InvalidInput(_not_a_parameter(name, f"{len(values)} different values", rows, values[0]))
        return Categorical(sorted(values, key=lambda v: (type(v).__name__, str(v))))

    def encoded(self, parameter: Parameter) -> tuple[Array, Mask]:
        table = np.zeros((len(self.known) + 1, parameter.width))  # the last row is for −1: nothing
        right = np.zeros(len(table), dtype=np.bool_)
        for code in np.unique(self.codes[self.present]).tolist():
            found = encoded_cell(parameter, self.known[code])
            if found is not None:
                table[code], right[code] = found, True
        return table[self.codes], right[self.codes]

    def filled(self, value: Any) -> Choices:
        """With this value in the rows that have none."""
        return Choices(np.where(self.present, self.codes, len(self.known)), (*self.known, value))


@dataclass(frozen=True, eq=False)
class Notes(Column):
    """Text with more different values than anybody would tune over: counted, not kept."""

    rows: int
    example: str
    why: str = "not numbers"

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, row: int) -> Any:
        return self.example

    @property
    def present(self) -> Mask:
        return np.ones(self.rows, dtype=np.bool_)

    def kept(self, rows: Any) -> Notes:
        return Notes(len(np.arange(self.rows)[rows]), self.example, self.why)

    @property
    def varies(self) -> bool:
        return True

    def values(self) -> tuple[Any, ...]:
        return (self.example,)

    def numbers(self, name: str) -> Array:
        raise InvalidInput(
            f"the column {name!r} must hold numbers, got {shown(self.example)}: its values are {self.why}"
        )

    def spanned(self, name: str) -> Parameter:
        raise InvalidInput(_not_a_parameter(name, "thousands of different values", self.rows, self.example, self.why))

    def encoded(self, parameter: Parameter) -> tuple[Array, Mask]:
        return np.zeros((self.rows, parameter.width)), np.zeros(self.rows, dtype=np.bool_)


def column_of(cells: Sequence[Any], name: str) -> Column:
    """A column of Python objects; ABSENT where a row has none."""
    kinds = set(map(type, cells))
    if kinds <= {int, float, Absent} and not any(cell != cell for cell in cells):  # noqa: PLR0124 - an explicit NaN
        return _of_numbers(cells)
    plain = [_plain(cell, name, row) for row, cell in enumerate(cells)]
    if set(map(type, plain)) <= {int, float, Absent} and not any(cell != cell for cell in plain):  # noqa: PLR0124
        return _of_numbers(plain)
    return coded(plain)


def coded(cells: Sequence[Hashable]) -> Choices:
    """A column of hashable cells; 1, 1.0 and True are different ones."""
    known: dict[Any, int] = {}
    codes = [-1 if cell is ABSENT else known.setdefault(_key(cell), len(known)) for cell in cells]
    return Choices(np.array(codes, dtype=np.int64), tuple(value for _, value in known))


def _key(cell: Hashable) -> tuple[type, Hashable]:
    return type(cell), cell


def _of_numbers(cells: Sequence[Any]) -> Column:
    numbers = [cell for cell in cells if cell is not ABSENT]
    if any(isinstance(cell, int) and abs(cell) > LARGEST_EXACT for cell in numbers):
        return coded(cells)
    array = np.array([math.nan if cell is ABSENT else cell for cell in cells], dtype=np.float64)
    return Numbers.of(array)


def missing(cell: Any) -> bool:
    """Whether a table means that there is nothing: None, NaN, or what pandas writes for them."""
    if isinstance(cell, str):
        return not cell.strip()
    if cell is None or cell is ABSENT or type(cell).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(cell, np.ma.MaskedArray):
        return bool(np.ma.is_masked(cell))
    if isinstance(cell, Decimal):
        return cell.is_nan()
    return isinstance(cell, float | np.floating) and math.isnan(cell)


def _plain(cell: Any, name: str, row: int) -> Any:
    """A cell as Python's own bool, int, float or text where it is one, and hashable in any case."""
    if np.ma.is_masked(cell) or getattr(cell, "requires_grad", False) is True:
        what = "is masked" if np.ma.is_masked(cell) else "carries a gradient: detach it first"
        raise InvalidInput(f"{shown(name)} in row {row + 1} {what}, got {shown(cell)}")
    if getattr(cell, "ndim", None) == 0 and hasattr(cell, "item") and not isinstance(cell, np.datetime64):
        cell = cell.item()  # numpy's and torch's scalars
    if isinstance(cell, complex):
        raise InvalidInput(f"{shown(name)} in row {row + 1} must not be complex, got {shown(cell)}")
    if cell is ABSENT or cell is None or isinstance(cell, bool):
        return cell
    if isinstance(cell, str):
        return str(cell)
    if isinstance(cell, Integral):
        return int(cell)
    try:
        if isinstance(cell, Real | Decimal):
            return float(cell)
        hash(cell)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(
            f"the column {name!r} holds a {type(cell).__name__}, {shown(cell)}, in row {row + 1}: "
            "cells must be numbers, text or other hashable values"
        ) from None
    return cell


def _number(value: Any) -> float | None:
    """A value as a number, also if it is written as text; None if it is not one."""
    if not isinstance(value, int | float | str):
        return None
    try:
        return None if isinstance(value, str) and "_" in value else float(value)
    except (ValueError, OverflowError):
        return None


def is_number(value: Any) -> bool:
    """Whether a plain value is a number, which bools are not here."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def encoded_cell(parameter: Parameter, value: Any) -> Array | None:
    """The coordinates of a value, None if it is not allowed."""
    try:
        return parameter.encode(value, "")
    except (InvalidInput, OverflowError):
        return None


def _check_size(name: str, *numbers: float) -> None:
    for number in numbers:
        if not abs(number) <= LARGEST_ENTRY:
            raise InvalidInput(
                f"the column {name!r} holds {shown(number)}: a parameter must be finite and at most "
                f"{LARGEST_ENTRY:g} in size"
            )


def _not_a_parameter(name: str, many: str, rows: int, example: Any, why: str = "not numbers") -> str:
    return (
        f"the column {name!r} has {many} in {rows} rows, such as {shown(example)}, and they are {why}, so it cannot "
        "be a parameter. Name the parameters with parameters=[…] (--parameter on the command line), or pass the "
        "space"
    )
