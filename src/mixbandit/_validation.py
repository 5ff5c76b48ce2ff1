"""Checks at the boundary: what comes in is float64, finite and of the stated shape, or an InvalidInput."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixbandit.errors import InvalidInput

Array = NDArray[np.float64]

# Squares of larger entries overflow float64 inside a factorisation.
LARGEST_ENTRY = 1e140


def as_float_array(value: ArrayLike, name: str) -> Array:
    """`value` as a float64 array; InvalidInput for text, ragged lists, complex numbers."""
    try:
        array = np.asarray(value)
        if array.dtype.kind == "c":
            raise TypeError("complex numbers")
        return array.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{name} must be numbers, got {_shorten(value)} ({error})") from error


def check_finite(array: Array, name: str) -> None:
    """Raise InvalidInput naming the first entry that is NaN, infinite or too large to square."""
    # One pass suffices in the usual case: NaN and infinity both fail the comparison.
    usable = np.abs(array) <= LARGEST_ENTRY
    if usable.all():
        return
    index = tuple(int(i) for i in np.argwhere(~usable)[0])
    where = f"{name}[{', '.join(map(str, index))}]" if index else name
    raise InvalidInput(f"{where} must be finite and at most {LARGEST_ENTRY:g} in size, got {array[index]}")


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


def positive(value: float, name: str) -> float:
    """`value` as a float in (0, ∞)."""
    number = _number(value, name)
    if not (number > 0 and math.isfinite(number)):
        raise InvalidInput(f"{name} must be positive and finite, got {value!r}")
    return number


def nonnegative(value: float, name: str) -> float:
    """`value` as a float in [0, ∞)."""
    number = _number(value, name)
    if not (number >= 0 and math.isfinite(number)):
        raise InvalidInput(f"{name} must be at least 0 and finite, got {value!r}")
    return number


def interval(value: tuple[float, float], name: str) -> tuple[float, float]:
    """`value` as a pair of finite numbers low < high."""
    try:
        low, high = value
    except (TypeError, ValueError):
        raise InvalidInput(f"{name} must be a pair (low, high), got {_shorten(value)}") from None
    pair = _number(low, name), _number(high, name)
    if not (pair[0] < pair[1] and all(math.isfinite(end) for end in pair)):
        raise InvalidInput(f"{name} must be a pair low < high of finite numbers, got {_shorten(value)}")
    return pair


def probability(value: float, name: str) -> float:
    """`value` as a float in (0, 1), ends excluded."""
    number = _number(value, name)
    if not 0 < number < 1:
        raise InvalidInput(f"{name} must lie strictly between 0 and 1, got {value!r}")
    return number


def positive_int(value: int, name: str) -> int:
    """`value` as an int ≥ 1; bools and floats are refused."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InvalidInput(f"{name} must be an integer ≥ 1, got {value!r}")
    return int(value)


def one_of(value: str, choices: tuple[str, ...], name: str) -> str:
    """`value` if it is among `choices`."""
    if value not in choices:
        raise InvalidInput(f"{name} must be one of {', '.join(choices)}; got {value!r}")
    return value


def as_generator(rng: int | np.random.Generator | None) -> np.random.Generator:
    """A Generator from a seed, a Generator or None (fresh entropy)."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"rng must be a seed ≥ 0, a numpy Generator or None, got {rng!r}") from error


def _number(value: Any, name: str) -> float:
    try:
        if isinstance(value, bool | str):
            raise TypeError
        return float(value)
    except (TypeError, ValueError):
        raise InvalidInput(f"{name} must be a number, got {_shorten(value)}") from None


def _shorten(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
