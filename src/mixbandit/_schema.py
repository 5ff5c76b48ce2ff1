"""What a stored state must look like, as data: checked as a whole, before anything is built from it.

A schema is a function of a value and its place, such as `policy.sequence.sigma`. It returns the value in the form that
code uses, or raises InvalidInput naming the place, as the functions of `_checks` do: they are schemas of single
numbers. `checked` turns that into DamagedState. Fields that a record does not know are ignored: what changes the
meaning of others needs a new format.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np

from mixbandit._checks import LARGEST_ENTRY, Array, as_float_array, check_finite, is_integer, shown
from mixbandit.errors import DamagedState, InvalidInput

Schema = Callable[[Any, str], Any]
Fields = dict[str, Any]
T = TypeVar("T")

# No program lives to count this far.
LARGEST_COUNT = 2**62


def checked(schema: Schema, state: Any, where: str) -> Any:
    """The state in the form of its schema; DamagedState, naming the place, if it does not have it."""
    try:
        return schema(state, where)
    except DamagedState:
        raise
    except InvalidInput as error:
        raise DamagedState(str(error)) from error


def check_type(state: Any, what: str, names: Collection[str]) -> None:
    """Refuse the state of something else, in words for whoever mixed up two files."""
    if not isinstance(state, Mapping):
        raise DamagedState(f"a state must be a mapping, got {shown(state)}")
    kind = state.get("type")
    if not isinstance(kind, str) or kind not in names:
        raise DamagedState(f"this is the state of a {shown(kind)}, not of a {what}")


class Since(NamedTuple):
    """A field that may be missing, as in older files, or None."""

    schema: Schema
    default: Any = None


class record:  # noqa: N801 - used as a function, like the other schemas
    """A mapping with these fields; `also` checks how they fit together, with `require`.

    Other fields are ignored, or have the form `others`.
    """

    def __init__(
        self,
        fields: Mapping[str, Schema | Since],
        also: Callable[[Fields, str], None] | None = None,
        others: Schema | None = None,
    ) -> None:
        self.fields, self.also, self.others = fields, also, others

    def __call__(self, value: Any, where: str) -> Fields:
        given = mapping(value, where)
        found = {}
        for name, field in self.fields.items():
            if isinstance(field, Since):
                part = given.get(name)
                found[name] = field.default if part is None else field.schema(part, f"{where}.{name}")
            elif name in given:
                found[name] = field(given[name], f"{where}.{name}")
            else:
                raise DamagedState(f"{where} lacks {name!r}")
        if self.others is not None:
            rest = {name: part for name, part in given.items() if name not in found}
            found |= {name: self.others(part, f"{where}.{name}") for name, part in rest.items()}
        if self.also is not None:
            self.also(found, where)
        return found


def deferred(schema: Callable[[], Schema]) -> Schema:
    """A schema that is only known later, for those that contain themselves."""

    def check(value: Any, where: str) -> Any:
        return schema()(value, where)

    return check


def optional(schema: Schema) -> Schema:
    """None, or what the schema says."""
    return lambda value, where: None if value is None else schema(value, where)


def list_of(schema: Schema, *, least: int = 0) -> Schema:
    """A list of these, with at least `least` entries."""

    def check(value: Any, where: str) -> list[Any]:
        if not isinstance(value, list | tuple) or len(value) < least:
            raise InvalidInput(f"{where} must be a list{f' of at least {least}' if least else ''}, got {shown(value)}")
        return [schema(part, f"{where}[{i}]") for i, part in enumerate(value)]

    return check


def mapping_of(schema: Schema) -> Schema:
    """A mapping with any keys to these."""
    return lambda value, where: {k: schema(part, f"{where}.{k}") for k, part in mapping(value, where).items()}


def real(check: Callable[[Any, str], T]) -> Callable[[Any, str], T]:
    """A single number that passes a check of `_checks`; arrays and truth values are none."""

    def schema(value: Any, where: str) -> T:
        if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
            raise InvalidInput(f"{where} must be a number, got {shown(value)}")
        return check(value, where)

    return schema


def integer(least: int = 0, most: int = LARGEST_COUNT) -> Callable[[Any, str], int]:
    """An integer between two others."""

    def schema(value: Any, where: str) -> int:
        if not is_integer(value) or not least <= value <= most:
            raise InvalidInput(f"{where} must be an integer between {least} and {most}, got {shown(value)}")
        return int(value)

    return schema


count = integer()


def scalar(value: Any, where: str) -> Any:
    """What can be a label or a choice: text, a number, true, false or None."""
    if value is not None and not isinstance(value, str | int | float):
        raise InvalidInput(f"{where} must be text or a number, got {shown(value)}")
    return value


def mapping(value: Any, where: str) -> Mapping[str, Any]:
    """Any mapping with text for keys, as it is."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise InvalidInput(f"{where} must be a mapping, got {shown(value)}")
    return value


def one_of_these(*choices: Any) -> Schema:
    """One of these values."""

    def schema(value: Any, where: str) -> Any:
        if not isinstance(value, str | int) or value not in choices:
            raise InvalidInput(f"{where} must be {' or '.join(map(repr, choices))}, got {shown(value)}")
        return value

    return schema


def array(*shape: int | None, largest: float = LARGEST_ENTRY) -> Callable[[Any, str], Array]:
    """Finite numbers of this shape, None for any length; an empty array fits wherever one length may be 0."""

    def schema(value: Any, where: str) -> Array:
        if not isinstance(value, list | tuple | np.ndarray):
            raise InvalidInput(f"{where} must be an array, got {shown(value)}")
        found = as_float_array(value, where)
        if not found.size and None in shape and found.ndim != len(shape):
            # An array without rows is stored as it happened to be made.
            found = found.reshape([n or 0 for n in shape])
        if len(found.shape) != len(shape) or any(n not in (None, m) for n, m in zip(shape, found.shape, strict=True)):
            wanted = ", ".join("any" if n is None else str(n) for n in shape)
            raise InvalidInput(f"{where} must have shape ({wanted}), got {found.shape}")
        check_finite(found, where, largest)
        return found.copy()

    return schema


def require(condition: bool | np.bool_, where: str, what: str) -> None:
    """Raise DamagedState unless the condition holds."""
    if not condition:
        raise DamagedState(f"{where} {what}")
