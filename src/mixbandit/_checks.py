"""Checks at the boundary: inputs are float64, finite and of the stated shape, or InvalidInput is raised."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixbandit.errors import DamagedState, InvalidInput

Array = NDArray[np.float64]

# Larger entries are rejected everywhere, so that lengths and bounds stay finite.
LARGEST_ENTRY = 1e200
# Data are squared, together with norm bounds and noise levels; within these limits nothing overflows or vanishes.
LARGEST_DATUM = 1e50
SMALLEST_SETTING, LARGEST_SETTING = 1e-20, 1e20
SMALLEST_MULTIPLIER, LARGEST_MULTIPLIER = 1e-100, 1e100
SMALLEST_PROBABILITY = 1e-200


def as_float_array(value: ArrayLike, name: str) -> Array:
    """`value` as a float64 array; InvalidInput for text, dates, ragged lists, complex numbers, masked entries."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise InvalidInput(f"{name} must not have masked entries, got {_shorten(value)}")
    try:
        array = np.asarray(value)
        if array.dtype.kind == "O":
            array = _from_objects(array)
        if array.dtype.kind not in "biuf":
            raise TypeError(f"dtype {array.dtype}")
        return array.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(f"{name} must be numbers, got {_shorten(value)} ({error})") from error


def _from_objects(array: NDArray[Any]) -> Array:
    """Object arrays, as mixed DataFrames give, entry by entry: float() would also read text."""
    for entry in array.flat:
        if isinstance(entry, str | bytes | complex) or entry is None or entry is np.ma.masked:
            raise TypeError(f"{type(entry).__name__} {entry!r}")
    return array.astype(np.float64)


def check_finite(array: Array, name: str, largest: float = LARGEST_ENTRY) -> None:
    """Raise InvalidInput naming the first entry that is NaN, infinite or too large."""
    # One pass suffices in the usual case: NaN and infinity both fail the comparison.
    usable = np.abs(array) <= largest
    if np.logical_and.reduce(usable, axis=None):  # a faster `all`
        return
    index = tuple(int(i) for i in np.argwhere(~usable)[0])
    where = f"{name}[{', '.join(map(str, index))}]" if index else name
    raise InvalidInput(f"{where} must be finite and at most {largest:g} in size, got {array[index]}")


def as_rows(value: ArrayLike, width: int, name: str) -> Array:
    """`value` as (n, width) finite rows. One row may come as (width,); for width 1, (n,) is n rows."""
    array = as_float_array(value, name)
    if array.ndim < 2:
        array = array.reshape(-1, 1) if width == 1 else array.reshape(1, -1)
    if array.ndim != 2 or array.shape[1] != width:
        raise InvalidInput(f"{name} must have shape (n, {width}) or ({width},), got {np.shape(value)}")
    check_finite(array, name)
    return array


def as_vector(value: ArrayLike, length: int, name: str) -> Array:
    """`value` as a finite vector of the given length; a scalar counts as length 1."""
    array = as_float_array(value, name)
    if array.ndim == 0:
        array = array.reshape(1)
    if array.ndim == 2 and array.shape[1] == 1:  # a one-column DataFrame
        array = array[:, 0]
    if array.shape != (length,):
        raise InvalidInput(f"{name} must have shape ({length},), got {np.shape(value)}")
    check_finite(array, name)
    return array


def positive(value: float, name: str, least: float = SMALLEST_SETTING, most: float = LARGEST_SETTING) -> float:
    """`value` as a positive float whose square neither underflows nor overflows."""
    number = as_number(value, name)
    if not (number > 0 and math.isfinite(number)):
        raise InvalidInput(f"{name} must be positive and finite, got {value!r}")
    if not least <= number <= most:
        raise InvalidInput(f"{name} must lie in [{least:g}, {most:g}], got {value!r}")
    return number


def multiplier(value: float, name: str) -> float:
    """`value` as a multiplier α > 0, which is in units of squared features."""
    return positive(value, name, SMALLEST_MULTIPLIER, LARGEST_MULTIPLIER)


def finite(value: float, name: str) -> float:
    """`value` as a finite float."""
    number = as_number(value, name)
    if not math.isfinite(number):
        raise InvalidInput(f"{name} must be finite, got {value!r}")
    return number


def nonnegative(value: float, name: str, most: float = LARGEST_SETTING) -> float:
    """`value` as a float that is 0 or positive, up to `most`."""
    number = as_number(value, name)
    if not 0 <= number <= most:
        raise InvalidInput(f"{name} must lie in [0, {most:g}], got {value!r}")
    return number


def as_range(value: tuple[float, float], name: str) -> tuple[float, float]:
    """`value` as a pair of finite numbers low < high."""
    try:
        low, high = value
    except (TypeError, ValueError):
        raise InvalidInput(f"{name} must be a pair (low, high), got {_shorten(value)}") from None
    pair = as_number(low, name), as_number(high, name)
    if not (pair[0] < pair[1] and all(math.isfinite(end) for end in pair)):
        raise InvalidInput(f"{name} must be a pair low < high of finite numbers, got {_shorten(value)}")
    return pair


def probability(value: float, name: str) -> float:
    """`value` as a float in (0, 1), ends excluded."""
    number = as_number(value, name)
    if not 0 < number < 1:
        raise InvalidInput(f"{name} must lie strictly between 0 and 1, got {value!r}")
    if number < SMALLEST_PROBABILITY:
        raise InvalidInput(f"{name} must be at least {SMALLEST_PROBABILITY:g}, got {value!r}")
    return number


def positive_int(value: int, name: str) -> int:
    """`value` as an int ≥ 1; bools and floats are refused."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InvalidInput(f"{name} must be an integer ≥ 1, got {value!r}")
    return int(value)


def nonnegative_int(value: int, name: str) -> int:
    """Check a count that may be 0."""
    if value == 0 and isinstance(value, int | np.integer) and not isinstance(value, bool):
        return 0
    return positive_int(value, name)


def one_of(value: str, choices: tuple[str, ...], name: str) -> str:
    """`value`, if it is one of `choices`."""
    if value not in choices:
        raise InvalidInput(f"{name} must be one of {', '.join(choices)}; got {value!r}")
    return value


def as_generator(rng: int | np.random.Generator | None) -> np.random.Generator:
    """A Generator from a seed, a Generator or None (fresh entropy)."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"rng must be a seed ≥ 0, a numpy Generator or None, got {rng!r}") from error


def stored_generator(state: Mapping[str, Any]) -> np.random.Generator:
    """A generator restored from the state of its bit generator."""
    kinds = (np.random.PCG64, np.random.PCG64DXSM, np.random.MT19937, np.random.Philox, np.random.SFC64)
    kind = next((kind for kind in kinds if kind.__name__ == state["bit_generator"]), None)
    if kind is None:
        raise DamagedState(f"unknown random generator {state['bit_generator']!r}")
    bits: Any = kind()
    bits.state = state
    return np.random.Generator(bits)


def as_number(value: Any, name: str) -> float:
    """`value` as a float, NaN and infinity included; text and bools are refused."""
    try:
        if isinstance(value, bool | np.bool_ | str | bytes) or value is np.ma.masked:
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"{name} must be a number, got {_shorten(value)}") from None


def _shorten(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
