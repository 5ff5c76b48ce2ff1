"""Checks at the boundary: a value is what was asked for, in our own types, or InvalidInput names what was given.

Values from any library are welcome where they mean one thing: numpy's scalars and arrays, pandas, polars, torch without
gradients, Decimal, Fraction. Whatever could be misread is refused: text, complex numbers, masked entries, sets.
Conversions run code of other libraries and of users, which may raise anything: all of it becomes InvalidInput.
"""

from __future__ import annotations

import functools
import itertools
import math
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from decimal import Decimal
from numbers import Real
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixbandit.errors import DamagedState, InvalidInput

Array = NDArray[np.float64]
T = TypeVar("T")
P = ParamSpec("P")

# Larger entries are rejected everywhere, so that lengths and bounds stay finite.
LARGEST_ENTRY = 1e200
# Data are squared, together with norm bounds and noise levels; within these limits nothing overflows or vanishes.
LARGEST_DATUM = 1e50
SMALLEST_SETTING, LARGEST_SETTING = 1e-20, 1e20
SMALLEST_MULTIPLIER, LARGEST_MULTIPLIER = 1e-100, 1e100
SMALLEST_PROBABILITY = 1e-200
# Counts fit 64 bits. Beyond the other two, a slip is likelier than a need.
LARGEST_COUNT, LARGEST_DIMENSION, LARGEST_BATCH = 2**63 - 1, 1_000_000, 1_000_000

_FLOAT64 = np.dtype(np.float64)
_SAFE_ENTRY = 1e150  # its square is a float
_LONGEST_SHOWN = 80
_LONGEST_LABEL = 256  # of an integer, in bits
_PLAIN, _LISTS = frozenset((float, int)), frozenset((list, tuple))
_DEEPEST = 64  # numpy refuses lists nested more deeply


def underflowing(function: Callable[P, T]) -> Callable[P, T]:
    """What underflows is 0, also in programs of users with `np.seterr(all="raise")`."""

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        with np.errstate(under="ignore"):
            return function(*args, **kwargs)

    return wrapped


def shown(value: Any) -> str:
    """The value for a message: its repr, cut to one short line; never an error."""
    if isinstance(value, int) and value.bit_length() > 256:  # beyond 4,300 digits, Python does not write them
        return f"an integer of about {round(value.bit_length() * math.log10(2.0))} digits"
    try:
        return clipped(" ".join(repr(value).split()))
    except Exception:  # a user's __repr__ may raise anything
        return f"<{type(value).__name__} without a repr>"


def clipped(text: str) -> str:
    """The text for a message, cut if it is long."""
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 3] + "..."


def as_float_array(value: ArrayLike, name: str) -> Array:
    """`value` as a float64 array; InvalidInput for text, dates, ragged lists, complex numbers, masked entries."""
    if type(value) is np.ndarray and value.dtype is _FLOAT64:
        return value
    try:
        return _converted(value)
    except MemoryError:
        raise
    except Exception as error:
        raise InvalidInput(f"{name} must be numbers, got {shown(value)} ({_reason(error)})") from error


def _converted(value: Any) -> Array:
    refuse_masked(value)
    if type(value) not in _LISTS:
        _refuse_gradient(value)
        if isinstance(value, bytes | bytearray):  # numpy would read the bytes as small integers
            raise TypeError(f"a {type(value).__name__}")
        if hasattr(type(value), "toarray"):
            raise TypeError(f"sparse, of shape {value.shape}: make it dense first, with toarray()")
    array = np.asarray(value)
    if array.dtype is _FLOAT64:
        return array
    if array.dtype.kind == "O":
        cells = [float(cell) if isinstance(cell, bool | np.bool_) else _number(cell) for cell in array.flat]
        return np.array(cells, dtype=np.float64).reshape(array.shape)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"dtype {array.dtype}")
    with np.errstate(over="ignore"):  # what is too large for float64 becomes infinite, and is refused as that
        return array.astype(np.float64)


def _refuse_gradient(value: Any) -> None:
    """A gradient would end here unnoticed."""
    if getattr(value, "requires_grad", False) is True:
        raise TypeError("it carries a gradient: detach it first")


def refuse_masked(value: Any) -> None:
    """Numpy drops masks in np.asarray, also those of arrays inside lists."""
    if not isinstance(value, list | tuple):
        if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
            raise TypeError("masked entries have no value")
        return
    level: Any = value
    for _ in range(_DEEPEST):  # one fast pass per level of nested lists
        kinds = set(map(type, level))
        if kinds <= _PLAIN:
            return
        if not kinds <= _LISTS:
            for part in level:
                if not isinstance(part, list | tuple):
                    refuse_masked(part)
            level = [part for part in level if isinstance(part, list | tuple)]
        level = list(itertools.chain.from_iterable(level))


def as_number(value: Any, name: str) -> float:
    """`value` as a float, NaN and infinity included; text and bools are refused."""
    if type(value) is float:
        return value
    try:
        return _number(value)
    except Exception as error:
        raise InvalidInput(f"{name} must be a number, got {shown(value)} ({_reason(error)})") from None


def as_reward(value: Any, name: str) -> float:
    """`value` as a number; clicks and successes come as booleans."""
    if type(value) is float:
        return value
    return float(value) if isinstance(value, bool | np.bool_) else as_number(value, name)


def _number(value: Any) -> float:
    refuse_masked(value)
    if isinstance(value, bool | np.timedelta64):  # both count as integers
        raise TypeError(f"a {type(value).__name__}")
    if isinstance(value, Real | Decimal):
        return float(value)
    if hasattr(type(value), "__array__"):  # numpy's other scalars too: float() drops the imaginary part of complex ones
        _refuse_gradient(value)
        array = np.asarray(value)
        if array.dtype.kind == "b" or array.ndim:
            raise TypeError(f"an array of shape {array.shape} and dtype {array.dtype}")
        return float(_converted(array))
    if not hasattr(type(value), "__float__"):  # float() would read text
        raise TypeError(f"a {type(value).__name__}")
    return float(value)


def _reason(error: Exception) -> str:
    """An error of another library in a few words."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 2 * _LONGEST_SHOWN else text[: 2 * _LONGEST_SHOWN - 3] + "..."


def check_finite(array: Array, name: str, largest: float = LARGEST_ENTRY) -> None:
    """Raise InvalidInput naming the first entry that is NaN, infinite or too large."""
    # One sum suffices in the usual case: NaN and infinity fail every comparison, and np.vdot never warns.
    if np.vdot(array, array) <= min(largest, _SAFE_ENTRY) ** 2:
        return
    usable = np.abs(array) <= largest
    if usable.all():
        return
    index = tuple(int(i) for i in np.argwhere(~usable)[0])
    where = f"{name}[{', '.join(map(str, index))}]" if index else name
    raise InvalidInput(f"{where} must be finite and at most {largest:g} in size, got {array[index]}")


def check_within(values: Array, ends: tuple[float, float] | None, name: str) -> None:
    """InvalidInput names the first value outside a stated range, if there is one."""
    if ends is None:
        return
    outside = ~((values >= ends[0]) & (values <= ends[1]))
    if outside.any():
        check_finite(values, name, LARGEST_DATUM)
        first = int(np.argmax(outside))
        where = name if len(values) == 1 else f"{name}[{first}]"
        raise InvalidInput(f"{where} must lie in reward_range=({ends[0]:g}, {ends[1]:g}), got {values[first]:g}")


def as_rows(value: ArrayLike, width: int, name: str) -> Array:
    """`value` as (n, width) finite rows. One row may come as (width,); for width 1, (n,) is n rows."""
    given = array = as_float_array(value, name)
    if array.ndim < 2:
        array = array.reshape(-1, 1) if width == 1 else array.reshape(1, -1)
    if array.ndim != 2 or array.shape[1] != width:
        raise InvalidInput(f"{name} must have shape (n, {width}) or ({width},), got {given.shape}")
    check_finite(array, name)
    return array


def as_vector(value: ArrayLike, length: int | None, name: str) -> Array:
    """`value` as a finite vector, of the given length unless that is None; a scalar counts as length 1."""
    given = array = as_float_array(value, name)
    if array.ndim == 0:
        array = array.reshape(1)
    if array.ndim == 2 and array.shape[1] == 1:  # a one-column DataFrame
        array = array[:, 0]
    if array.shape != (length,) and (length is not None or array.ndim != 1):
        raise InvalidInput(f"{name} must have shape ({'n' if length is None else length},), got {given.shape}")
    check_finite(array, name)
    return array


def positive(value: float, name: str, least: float = SMALLEST_SETTING, most: float = LARGEST_SETTING) -> float:
    """`value` as a positive float whose square neither underflows nor overflows."""
    number = as_number(value, name)
    if not (number > 0 and math.isfinite(number)):
        raise InvalidInput(f"{name} must be positive and finite, got {shown(value)}")
    if not least <= number <= most:
        raise InvalidInput(f"{name} must lie in [{least:g}, {most:g}], got {shown(value)}")
    return number


def positive_array(value: ArrayLike, name: str) -> Array:
    """`value` as positive floats, one or several."""
    numbers = as_float_array(value, name)
    if not numbers.ndim:
        return np.asarray(positive(value, name), dtype=np.float64)  # type: ignore[arg-type]
    for number in numbers.flat:
        positive(float(number), name)
    return numbers


def multiplier(value: float, name: str) -> float:
    """`value` as a multiplier α > 0, which is in units of squared features."""
    return positive(value, name, SMALLEST_MULTIPLIER, LARGEST_MULTIPLIER)


def multipliers(value: Any, name: str) -> float | tuple[float, ...]:
    """`value` as one multiplier, or as several."""
    # Not np.ndim of a list, which goes through all that is nested in it, and fails where that is too deep.
    several = value.ndim > 0 if isinstance(value, np.ndarray) else isinstance(value, list | tuple)
    if not several:
        return multiplier(value, name)
    if not len(value):
        raise InvalidInput(f"{name} must be a multiplier or a list of them, got an empty list")
    return tuple(multiplier(each, name) for each in value)


def finite(value: float, name: str) -> float:
    """`value` as a finite float."""
    number = as_number(value, name)
    if not math.isfinite(number):
        raise InvalidInput(f"{name} must be finite, got {shown(value)}")
    return number


def nonnegative(value: float, name: str, most: float = LARGEST_SETTING) -> float:
    """`value` as a float that is 0 or positive, up to `most`."""
    number = as_number(value, name)
    if not 0 <= number <= most:
        raise InvalidInput(f"{name} must lie in [0, {most:g}], got {shown(value)}")
    return number


def as_range(value: Any, name: str) -> tuple[float, float]:
    """`value` as a pair of finite numbers low < high."""
    if not isinstance(value, list | tuple):
        value = as_float_array(value, name)
        if value.shape != (2,):
            raise InvalidInput(f"{name} must be a pair (low, high), got shape {value.shape}")
    elif len(value) != 2:
        raise InvalidInput(f"{name} must be a pair (low, high), got {shown(value)}")
    low, high = as_number(value[0], name), as_number(value[1], name)
    if not (low < high and max(-low, high) <= LARGEST_DATUM):
        raise InvalidInput(f"{name} must be a pair low < high of finite numbers, got {shown((low, high))}")
    return low, high


def probability(value: float, name: str) -> float:
    """`value` as a float in (0, 1), ends excluded."""
    number = as_number(value, name)
    if not 0 < number < 1:
        raise InvalidInput(f"{name} must lie strictly between 0 and 1, got {shown(value)}")
    if number < SMALLEST_PROBABILITY:
        raise InvalidInput(f"{name} must be at least {SMALLEST_PROBABILITY:g}, got {shown(value)}")
    return number


def error_probability(value: float, name: str) -> float:
    """`value` as a probability of being wrong: at most ½, because nobody wants to be wrong more often than right."""
    number = probability(value, name)
    if number > 0.5:
        raise InvalidInput(
            f"{name} is the probability of a wrong statement, not of a right one, and must be at most 0.5; got "
            f"{shown(value)}: for a guarantee with probability {number:g}, state {name}={1.0 - number:.6g}"
        )
    return number


def is_integer(value: Any) -> bool:
    """Whether `value` is a whole number of Python's or numpy's, and not a bool or a duration, which they count in."""
    return type(value) is int or (isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64))


def positive_int(value: int, name: str, most: int = LARGEST_COUNT) -> int:
    """`value` as an int from 1 to `most`; bools and floats are refused."""
    return _whole(value, name, 1, most)


def nonnegative_int(value: int, name: str) -> int:
    """`value` as a count that may be 0."""
    return _whole(value, name, 0, LARGEST_COUNT)


def _whole(value: int, name: str, least: int, most: int) -> int:
    if not is_integer(value) or value < least:
        raise InvalidInput(f"{name} must be an integer ≥ {least}, got {shown(value)}")
    if value > most:
        raise InvalidInput(f"{name} must be at most {most:,}, got {shown(value)}")
    return int(value)


def dimension(value: int, name: str) -> int:
    """`value` as the length of a vector."""
    return positive_int(value, name, LARGEST_DIMENSION)


def flag(value: Any, name: str) -> bool:
    """`value`, if it is True or False; "no" and 0 are not."""
    if value is True or value is False:
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    raise InvalidInput(f"{name} must be True or False, got {shown(value)}")


def one_of(value: str, choices: tuple[str, ...], name: str) -> str:
    """`value`, if it is one of `choices`."""
    text = as_text(value, name) if isinstance(value, str) else None
    if text not in choices:
        raise InvalidInput(f"{name} must be one of {', '.join(choices)}; got {shown(value)}")
    return text


def as_text(value: Any, name: str) -> str:
    """`value` as plain text."""
    if not isinstance(value, str):
        raise InvalidInput(f"{name} must be text, got {shown(value)}")
    return str.__str__(value)  # a subclass may compare as it likes


def as_items(value: Any, name: str, expected: str, *, ordered: bool = True) -> list[Any]:
    """The items of a list or another iterable, but not of text, bytes, mappings, tables, or sets if order counts."""
    unsuitable = (str, bytes, bytearray, Mapping, *((AbstractSet,) if ordered else ()))
    try:
        if isinstance(value, unsuitable):
            raise TypeError(f"a {type(value).__name__}")
        if getattr(value, "ndim", 1) != 1:  # iterating over a DataFrame gives the names of its columns
            raise TypeError(f"of shape {value.shape}")
        # Some iterables never end.
        found = list(value if isinstance(value, Collection) else itertools.islice(value, LARGEST_BATCH + 1))
    except MemoryError:
        raise
    except Exception as error:  # iterating runs the code of users
        raise InvalidInput(f"{name} must be {expected}, got {shown(value)} ({_reason(error)})") from error
    if not isinstance(value, Collection) and len(found) > LARGEST_BATCH:
        raise InvalidInput(f"{name} must have a length, or at most {LARGEST_BATCH:,} items, got {shown(value)}")
    return found


def as_label(value: Any) -> str | int | float:
    """`value` as the label of an arm, in Python's own types, which can be stored."""
    is_scalar = isinstance(value, np.generic) and not isinstance(value, np.timedelta64)  # which may count as an integer
    plain = value.item() if is_scalar else value
    if isinstance(plain, str):
        return as_text(plain, "a label")
    if isinstance(plain, bool) or not isinstance(plain, int | float) or plain != plain:  # noqa: PLR0124 - NaN
        raise InvalidInput(f"labels of arms must be text or numbers, got {shown(value)}")
    if isinstance(plain, int) and plain.bit_length() > _LONGEST_LABEL:
        raise InvalidInput(
            f"labels of arms that are integers must have at most {_LONGEST_LABEL} bits, got {shown(value)}"
        )
    return plain


def listed(labels: Sequence[Any]) -> str:
    """The first few labels, for a message."""
    return ", ".join(map(shown, labels[:5])) + (", …" if len(labels) > 5 else "")


def instance_of(value: Any, kinds: type[T] | tuple[type[T], ...], name: str, expected: str) -> T:
    """`value`, if it is an object of the kind that `expected` describes."""
    if not isinstance(value, kinds):
        raise InvalidInput(f"{name} must be {expected}, got {shown(value)}")
    return value


def as_function(value: Callable[..., T], name: str) -> Callable[..., T]:
    """`value`, if it can be called."""
    if not callable(value):
        raise InvalidInput(f"{name} must be callable, got {shown(value)}")
    return value


def as_path(value: str | os.PathLike[str], name: str = "path") -> Path:
    """`value` as the path of a file. Whether the file can be used is for the operating system to say."""
    try:
        if not isinstance(value, str | os.PathLike) or not os.fspath(value):
            raise TypeError
        path = Path(value)
        if b"\0" in os.fsencode(path):
            raise ValueError
    except Exception:
        raise InvalidInput(f"{name} must be the path of a file, got {shown(value)}") from None
    return path


def as_generator(rng: Any, name: str = "rng") -> np.random.Generator:
    """A Generator from a seed, a Generator or None (fresh entropy).

    Seeds are integers ≥ 0 of any size, sequences of them, or numpy's SeedSequence.
    """
    if rng is None or isinstance(rng, np.random.Generator | np.random.BitGenerator | np.random.SeedSequence):
        return np.random.default_rng(rng)
    if is_integer(rng) and rng >= 0:
        return np.random.default_rng(int(rng))
    if isinstance(rng, list | tuple) and rng and all(is_integer(part) and part >= 0 for part in rng):
        return np.random.default_rng([int(part) for part in rng])
    raise InvalidInput(f"{name} must be a seed ≥ 0, a numpy Generator or None, got {shown(rng)}")


def stored_generator(state: Mapping[str, Any]) -> np.random.Generator:
    """A generator restored from the state of its bit generator."""
    kinds = (np.random.PCG64, np.random.PCG64DXSM, np.random.MT19937, np.random.Philox, np.random.SFC64)
    kind = next((kind for kind in kinds if kind.__name__ == state["bit_generator"]), None)
    if kind is None:
        raise DamagedState(f"unknown random generator {state['bit_generator']!r}")
    bits: Any = kind()
    bits.state = state
    return np.random.Generator(bits)
