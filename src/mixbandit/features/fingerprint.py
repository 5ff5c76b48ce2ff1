"""A name for what a fitted object does, from its content: the same in every process, and nothing is pickled."""

from __future__ import annotations

import copyreg
import hashlib
import types
from collections.abc import Mapping, Set
from typing import Any

import numpy as np


def fingerprint(value: Any) -> str:
    """A hash of an object's parameters and fitted attributes, all the way down."""
    digest = hashlib.blake2b(digest_size=16)
    for part in _parts(value, ()):
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()


def _parts(value: Any, above: tuple[int, ...]) -> Any:
    """An unambiguous description, in pieces."""
    if value is None or isinstance(value, bool | int | float | complex | str | bytes | np.generic):
        plain = value.item() if isinstance(value, np.generic) else value
        yield f"{type(plain).__name__} {plain!r}".encode()
    elif isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
        # The same bytes on every platform.
        ordered = np.ascontiguousarray(value, dtype=value.dtype.newbyteorder("<"))
        yield f"array {ordered.dtype.str} {value.shape}".encode()
        yield ordered.tobytes()
    elif isinstance(value, type | np.ufunc) or (isinstance(value, types.BuiltinFunctionType) and _is_free(value)):
        yield _code(value)
    elif id(value) in above:
        yield b"itself"
    else:
        yield from _composed(value, (*above, id(value)))


def _composed(value: Any, above: tuple[int, ...]) -> Any:
    parts: Any
    if isinstance(value, types.FunctionType):  # what it does itself is code; this is what it does it with
        yield _code(value)
        parts = [value.__defaults__, value.__kwdefaults__, [_inside(cell) for cell in value.__closure__ or ()]]
    elif isinstance(value, np.ndarray):
        yield f"array {value.shape}".encode()
        parts = value.ravel().tolist()
    elif isinstance(value, Mapping):
        yield f"mapping {len(value)}".encode()
        parts = sorted(value.items(), key=lambda item: repr(item[0]))
    elif isinstance(value, Set):
        yield f"set {len(value)}".encode()
        parts = sorted(value, key=repr)
    elif isinstance(value, list | tuple):
        yield f"list {len(value)}".encode()
        parts = list(value)
    elif hasattr(type(value), "tocoo"):  # a sparse matrix
        entries = value.tocoo()
        yield f"sparse {value.shape}".encode()
        parts = [entries.row, entries.col, entries.data]
    elif hasattr(type(value), "tolist"):  # an index or a column of pandas or polars
        yield type(value).__name__.encode()
        parts = value.tolist()
    else:
        yield f"{type(value).__module__}.{type(value).__qualname__}".encode()
        # In the order of their names. A transformer may keep what it was called with last, or a cache.
        parts = sorted(getattr(value, "__dict__", {}).items()) or _reduced(value)
    for part in parts:
        yield from _parts(part, above)


def _code(value: Any) -> bytes:
    return f"code {getattr(value, '__module__', '')}.{getattr(value, '__qualname__', value.__name__)}".encode()


def _is_free(function: Any) -> bool:
    """Whether a compiled function is no method of an object."""
    return function.__self__ is None or isinstance(function.__self__, types.ModuleType)


def _inside(cell: Any) -> Any:
    """What a variable of the function around holds, None before it holds anything."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _reduced(value: Any) -> list[Any]:
    """What pickle would keep of an object without attributes: a partial function, a bound method, a compiled class."""
    registered = copyreg.dispatch_table.get(type(value))
    try:
        found = value.__reduce_ex__(2) if registered is None else registered(value)
    except Exception:  # it cannot be pickled
        return []
    return list(found[1:]) if isinstance(found, tuple) else [found]
