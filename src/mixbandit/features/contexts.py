"""Contexts as users pass them, read into one checked form: the input of `ContextFeatures`.

A context is a dict, a pandas Series, a DataFrame or structured array with one row, a named tuple, or a vector: an array
or list of numbers, which may hold texts, too. Its names are the keys; those of a vector are the positions 0, 1, ….
A value is a number, a category (text or a truth value), or missing: None, NaN, or what pandas writes for them.
"""

from __future__ import annotations

import abc
import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple, Self

import numpy as np

from mixbandit._checks import LARGEST_DATUM, Array, as_items, as_number, as_text, is_integer, shown
from mixbandit.errors import InvalidInput
from mixbandit.storage import Family, Remembering

Name = str | int
Category = str | bool
Context = Any
"""A context that was read. Only the features that read it look inside."""

# Of an integer, in bits. Files do not take thousands of digits.
_LONGEST_NAME = 256

NO_NUMBER = math.nan
"""Where a value is missing, or a category."""


class ContextFeatures(Remembering, abc.ABC):
    """Base class of values that turn contexts into rows of features, and learn from contexts how to do it.

    Fold it over the contexts in order: `features = features.after(context)`. Old values stay as they were. A context
    is read by the value that it is then given to, and may be turned into a row by any value of the chain.
    """

    family = Family("context features", "features")

    dim: int
    """The number of features, the intercept included."""
    version: int = 0
    """Two values of one chain with the same version make the same rows of contexts that both have seen."""

    @abc.abstractmethod
    def read(self, context: Any) -> Context:
        """A user's context, checked and in a form that never changes; InvalidInput if it is none."""

    @abc.abstractmethod
    def row(self, context: Context) -> Array:
        """The features (dim,), read-only, of a context, whether `after` has seen it or not."""

    def rows(self, contexts: Sequence[Context]) -> Array:
        """The features (n, dim) of several contexts: in every row what `row` returns."""
        return np.array([self.row(context) for context in contexts], dtype=np.float64).reshape(-1, self.dim)

    @abc.abstractmethod
    def after(self, context: Context) -> Self:
        """The value after one more context; `self` if that changes nothing."""

    def change(self, earlier: Self) -> Array | None:
        """The matrix A (self.dim, earlier.dim) that turns rows of `earlier` into rows of `self`, or None if they agree.

        `self` must follow from `earlier` by calls of `after`. A is exact for contexts that `earlier` has seen: others
        may have categories without a column in `earlier`.
        """
        if self.version == earlier.version:
            return None
        return np.eye(self.dim, earlier.dim)

    @abc.abstractmethod
    def name(self, column: int) -> str:
        """What a column of a row means, such as "topic=code"."""

    def provisos(self, earlier: Self) -> list[str]:
        """What rows of contexts since `earlier` do not show, so that rewards linear in rows do not depend on it.

        Clauses of a sentence.
        """
        return []

    @abc.abstractmethod
    def plain(self, context: Context) -> Any:
        """A context as lists, dicts, texts, numbers and None, for a journal."""

    @abc.abstractmethod
    def unplain(self, value: Any) -> Context:
        """The context that `plain` described; InvalidInput if it describes none."""

    def check_column(self, column: int) -> int:
        """`column`, if it is one of a row."""
        if not is_integer(column) or not 0 <= column < self.dim:
            raise InvalidInput(f"column must be an integer from 0 to {self.dim - 1}, got {shown(column)}")
        return int(column)


class Values(NamedTuple):
    """A context with names, which are those that the features know, in their order.

    `numbers` (read-only) are NaN where a value is a category or missing.
    """

    names: tuple[Name, ...]
    numbers: Array
    categories: tuple[tuple[int, Category], ...] = ()  # by place in `names`, increasing
    gaps: tuple[int, ...] = ()  # the places of missing values
    others: tuple[tuple[Name, float | Category], ...] = ()  # values of names that the features do not know
    given: Array | None = None  # the numbers that the user passed, where the features use others

    def items(self) -> dict[Name, float | Category]:
        """All values by name as the user passed them, those of unknown names last."""
        cells: list[float | Category] = (self.numbers if self.given is None else self.given).tolist()
        for i, category in self.categories:
            cells[i] = category
        return {**dict(zip(self.names, cells, strict=True)), **dict(self.others)}


def is_missing(cell: float | Category) -> bool:
    """Whether a cell that was read is a missing value."""
    return isinstance(cell, float) and math.isnan(cell)


def frozen(numbers: Sequence[float] | Array) -> Array:
    """A read-only copy."""
    array = np.array(numbers, dtype=np.float64)
    array.setflags(write=False)
    return array


@functools.lru_cache
def positions(length: int) -> tuple[int, ...]:
    """The names of a vector."""
    return tuple(range(length))


def of_cells(names: tuple[Name, ...], cells: Iterable[float | Category]) -> Values:
    """Values from cells that `read_cell` returned."""
    numbers: list[float] = []
    categories: list[tuple[int, Category]] = []
    gaps: list[int] = []
    for i, cell in enumerate(cells):
        if isinstance(cell, float):
            if math.isnan(cell):
                gaps.append(i)
            numbers.append(cell)
        else:
            categories.append((i, cell))
            numbers.append(NO_NUMBER)
    return Values(names, frozen(numbers), tuple(categories), tuple(gaps))


def place(name: Name) -> str:
    """A value of a context for messages, as users write it."""
    return f"context[{shown(name)}]"


def read_cell(value: Any, name: Name) -> float | Category:
    """A value as a number, a category, or NaN if it is missing; InvalidInput names it otherwise."""
    kind = type(value)
    if kind is float:
        return value if -LARGEST_DATUM <= value <= LARGEST_DATUM or math.isnan(value) else _refuse_size(value, name)
    if kind is str or kind is bool:
        return value  # type: ignore[no-any-return]
    if value is None:
        return NO_NUMBER
    if kind is int:
        return float(value) if -LARGEST_DATUM <= value <= LARGEST_DATUM else _refuse_size(value, name)
    return _read_unusual(value, name)


def _refuse_size(value: Any, name: Name) -> float:
    raise InvalidInput(f"{place(name)} must be finite and at most {LARGEST_DATUM:g} in size, got {shown(value)}")


def _read_unusual(value: Any, name: Name) -> float | Category:
    if isinstance(value, str):
        return as_text(value, place(name))
    if isinstance(value, np.bool_):
        return bool(value)
    if _is_missing(value):
        return NO_NUMBER
    try:
        if getattr(value, "ndim", None) == 0 and hasattr(value, "item") and not isinstance(value, np.generic):
            return read_cell(value.item(), name)  # an array without dimensions
        number = as_number(value, place(name))
    except InvalidInput:
        raise InvalidInput(
            f"{place(name)} must be a number, text, True, False or missing, got {shown(value)}{_hint(value)}"
        ) from None
    return read_cell(number, name)


def _is_missing(value: Any) -> bool:
    if value is np.ma.masked or type(value).__name__ in ("NAType", "NaTType"):  # pandas.NA, pandas.NaT
        return True
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    return isinstance(value, Decimal) and value.is_nan()


def _hint(value: Any) -> str:
    if isinstance(value, list | tuple | set | Mapping | np.ndarray):
        return ": give every number in it a name of its own. For several contexts at once there is ask_many"
    if isinstance(value, np.datetime64 | np.timedelta64) or type(value).__module__ in ("datetime", "pandas"):
        return ": pass what matters about the time, such as the hour, as a number or text"
    if isinstance(value, bytes):
        return ": decode it"
    return ""


def read_name(name: Any) -> Name:
    """A name of a value: text or an integer."""
    if type(name) is str:
        return name
    if is_integer(name) and int(name).bit_length() <= _LONGEST_NAME:
        return int(name)
    if isinstance(name, str):
        return as_text(name, "a name")
    raise InvalidInput(f"the names in a context must be text or integers, got {shown(name)}")


def read_names(names: Iterable[Any], what: str) -> tuple[Name, ...]:
    """Names of values; InvalidInput if one occurs twice."""
    found = tuple(map(read_name, names))
    if len(set(found)) < len(found):
        twice = next(name for i, name in enumerate(found) if name in found[:i])
        raise InvalidInput(f"{what} has the name {shown(twice)} more than once")
    return found


class Parts(NamedTuple):
    """The names of a context, None for a vector, and its cells, which have not been read."""

    names: tuple[Name, ...] | None
    cells: Sequence[Any]


def split(context: Any) -> Parts:
    """The names and cells of a context of any form; InvalidInput if it is none."""
    if isinstance(context, Mapping):
        return Parts(read_names(context.keys(), "the context"), list(context.values()))
    if isinstance(context, list | tuple):
        fields = getattr(context, "_fields", None)  # of a named tuple
        return Parts(None, _nonempty(context)) if fields is None else Parts(read_names(fields, "the context"), context)
    if _is_frame(context):
        return _only_row(context)
    if hasattr(context, "iloc") and hasattr(context, "index"):  # a Series
        return Parts(read_names(context.index, "the context"), _pandas_cells(context))
    if isinstance(context, np.void) and context.dtype.names is not None:
        return Parts(read_names(context.dtype.names, "the context"), [context[name] for name in context.dtype.names])
    return Parts(None, _vector(context))


def _only_row(frame: Any) -> Parts:
    names, columns = _columns(frame)
    if len(frame) != 1:
        raise InvalidInput(
            f"a DataFrame given as context must have one row, got {len(frame)}: ask_many takes several contexts"
        )
    return Parts(names, [column[0] for column in columns])


def _vector(context: Any) -> Sequence[Any]:
    if isinstance(context, str | bytes | bytearray) or not hasattr(type(context), "__array__"):
        raise InvalidInput(
            f"a context must be a dict, a Series, a vector or one row of a DataFrame, got {_what(context)}"
        )
    if getattr(context, "requires_grad", False) is True:
        raise InvalidInput("the context carries a gradient: detach it first")
    try:
        array = context if isinstance(context, np.ma.MaskedArray) else np.asarray(context)
    except Exception as error:  # it is code of users
        raise InvalidInput(f"a context must be a vector if it is an array, got {shown(context)}") from error
    if array.ndim == 2 and len(array) == 1:
        array = array[0]
    if array.ndim != 1:
        advice = ": ask_many takes several contexts" if array.ndim == 2 else ""
        raise InvalidInput(f"a vector given as context must have shape (d,), got {array.shape}{advice}")
    # Dates stay dates, so that they are refused.
    cells: list[Any] = list(array) if array.dtype.kind in "mM" else array.tolist()
    return _nonempty(cells)


def _nonempty(cells: Sequence[Any]) -> Sequence[Any]:
    if not len(cells):
        raise InvalidInput("a vector given as context must have at least one entry, got none")
    return cells


def _what(value: Any) -> str:
    if hasattr(type(value), "toarray"):
        return f"a sparse matrix of shape {value.shape}: make it dense first, with toarray()"
    if value is not None and np.isscalar(value) and not isinstance(value, str | bytes):
        return f'{shown(value)}: pass a single number as [{shown(value)}], or by name, as {{"size": {shown(value)}}}'
    return shown(value)


def _is_frame(value: Any) -> bool:
    """Whether this is a DataFrame of pandas, polars or Arrow, which need not be installed."""
    marks = (("columns", "iloc"), ("columns", "get_columns"), ("column_names", "to_pylist"))
    return any(all(hasattr(value, name) for name in names) for names in marks)


def _columns(frame: Any) -> tuple[tuple[Name, ...], list[list[Any]]]:
    """The names and columns of a DataFrame, without a Series per row: those change the types of cells."""
    if hasattr(frame, "iloc"):
        if getattr(frame.columns, "nlevels", 1) > 1:
            raise InvalidInput(f"the columns of the DataFrame have several levels, {shown(list(frame.columns)[:3])}")
        cells = [_pandas_cells(frame.iloc[:, i]) for i in range(frame.shape[1])]
        return read_names(frame.columns, "the DataFrame"), cells
    if hasattr(frame, "get_columns"):
        return read_names(frame.columns, "the DataFrame"), [column.to_list() for column in frame.get_columns()]
    return read_names(frame.column_names, "the table"), [column.to_pylist() for column in frame.columns]


def _pandas_cells(column: Any) -> list[Any]:
    cells: list[Any] = column.tolist()
    if hasattr(column.dtype, "categories"):
        # Numbers in a categorical column are labels.
        cells = [
            cell if isinstance(cell, str | bool) or is_missing(cell) or _is_missing(cell) else str(cell)
            for cell in cells
        ]
    return cells


def contexts_of(contexts: Any) -> list[Any]:
    """Single contexts, for `read`, of a DataFrame, a matrix, a structured array, or any iterable of contexts."""
    if _is_frame(contexts):
        names, columns = _columns(contexts)
        if not columns:
            return [{} for _ in range(len(contexts))]
        return [dict(zip(names, cells, strict=True)) for cells in zip(*columns, strict=True)]
    if isinstance(contexts, np.ndarray):
        if contexts.ndim == 2:
            return list(contexts)
        if contexts.ndim == 1 and (contexts.dtype.names or contexts.dtype.kind == "O"):
            return _several(list(contexts))
        raise InvalidInput(f"an array of contexts must have shape (n, d), got {contexts.shape}{_ASK}")
    if isinstance(contexts, str | bytes | Mapping) or not isinstance(contexts, Iterable):
        raise InvalidInput(f"contexts must be a DataFrame, a matrix or a list of contexts, got {shown(contexts)}{_ASK}")
    if hasattr(type(contexts), "toarray"):
        raise InvalidInput(f"contexts must be dense, got {_what(contexts)}")
    if getattr(contexts, "ndim", 1) == 2:  # a tensor
        return list(contexts)
    return _several(as_items(contexts, "contexts", "a DataFrame, a matrix or a list of contexts"))


_ASK = "; for a single context there is ask"


def _several(contexts: list[Any]) -> list[Any]:
    for i, context in enumerate(contexts):
        if np.isscalar(context) and not isinstance(context, np.void):  # texts are scalars, too
            raise InvalidInput(
                f"contexts[{i}] must be a context, such as a dict or a vector, got {shown(context)}{_ASK}"
            )
    return contexts


def plain_cell(cell: float | Category) -> Any:
    """A cell as JSON has it, None for a missing value."""
    return None if is_missing(cell) else cell


def plain_values(values: Values) -> Any:
    """A list for a vector, a dict if all names are text, or a list of pairs [name, value]."""
    cells = {name: plain_cell(cell) for name, cell in values.items().items()}
    if all(isinstance(name, str) for name in cells):
        return cells
    if tuple(cells) == positions(len(cells)):
        return list(cells.values())
    return [[name, cell] for name, cell in cells.items()]


def unplain_parts(value: Any) -> Parts:
    """The parts of what `plain_values` returned; InvalidInput if it is something else."""
    if isinstance(value, Mapping):
        return split(dict(value))
    if isinstance(value, list) and value and not isinstance(value[0], list):
        return Parts(None, value)
    if isinstance(value, list) and value and all(isinstance(pair, list) and len(pair) == 2 for pair in value):
        return Parts(read_names([name for name, _ in value], "the stored context"), [cell for _, cell in value])
    raise InvalidInput(f"a stored context must be a list or a mapping, got {shown(value)}")


Reader = Callable[[Any, Name], float | Category]


def plain_reader(value: Any, name: Name) -> float | Category:
    """Like `read_cell`, of values in a journal: Python's own types only."""
    if value is None or type(value) in (str, bool, int, float):
        return read_cell(value, name)
    raise InvalidInput(f"{place(name)} must be a number, text, true, false or null, got {shown(value)}")
