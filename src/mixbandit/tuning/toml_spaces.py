"""Spaces written as TOML: a table for each parameter."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from mixbandit._checks import as_path, shown
from mixbandit.errors import InvalidInput
from mixbandit.tuning.parameters import Categorical, Float, Int, Parameter

_NUMBERS: dict[str, type[Float] | type[Int]] = {"float": Float, "int": Int}
_CATEGORICAL = "categorical"
_KEYS = {
    "float": ("type", "low", "high", "log", "step", "when"),
    "int": ("type", "low", "high", "log", "step", "when"),
    _CATEGORICAL: ("type", "choices", "when"),
}
# Longer paths are cut in messages.
_LONGEST = 300
_EXAMPLE = '[learning_rate] with type = "float", low = 0.001, high = 1.0, log = true'


class Written(NamedTuple):
    """What a file says."""

    source: str
    parameters: dict[str, Parameter]
    conditions: dict[str, tuple[str, list[Any]]]


def _name_of(path: str) -> str:
    """A path for messages; of a very long one the end, where the name of the file is."""
    return path if len(path) <= _LONGEST else f"…{path[-_LONGEST:]}"


def read_toml(path: str | os.PathLike[str]) -> Written:
    """The parameters in a file, and their conditions; InvalidInput names the file, the parameter and the setting."""
    import tomllib  # only those who read one need it

    file = as_path(path, "path")
    source = _name_of(str(file))
    try:
        tables = tomllib.loads(file.read_bytes().decode())
    except FileNotFoundError:
        raise InvalidInput(f"there is no file {source}") from None
    except OSError as error:
        raise InvalidInput(f"{source} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{source} must be UTF-8 text: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"{source} is not TOML: {error}") from None
    except (RecursionError, ValueError) as error:  # thousands of nested arrays, or of digits
        raise InvalidInput(f"{source} has arrays or numbers that cannot be read: {error}") from None
    if not tables:
        raise InvalidInput(f"{source} has no parameters: each is a table, such as {_EXAMPLE}")
    parameters, conditions = dict[str, Parameter](), dict[str, tuple[str, list[Any]]]()
    for name, table in tables.items():
        where = f"{source}, {name}"
        parameters[name] = _parameter(table, where)
        if "when" in table:
            conditions[name] = _condition(table["when"], where)
    return Written(source, parameters, conditions)


def _parameter(table: Any, where: str) -> Parameter:
    if not isinstance(table, Mapping):
        raise InvalidInput(f"{where} must be a table, such as {_EXAMPLE}; got {shown(table)}")
    kind = table.get("type", _CATEGORICAL if "choices" in table else None)
    if not isinstance(kind, str) or kind not in _KEYS:
        given = f"got {shown(kind)}" if "type" in table else "there is none"
        raise InvalidInput(f"{where}: type must be one of {', '.join(map(repr, _KEYS))}; {given}")
    unknown = [key for key in table if key not in _KEYS[kind]]
    if unknown:
        raise InvalidInput(
            f"{where}: {', '.join(map(shown, unknown))} unknown; a parameter of type {kind!r} has "
            f"{', '.join(_KEYS[kind])}"
        )
    needed = ("choices",) if kind == _CATEGORICAL else ("low", "high")
    missing = [key for key in needed if key not in table]
    if missing:
        raise InvalidInput(f"{where}: {' and '.join(missing)} missing; a parameter of type {kind!r} needs them")
    settings = {key: value for key, value in table.items() if key not in ("type", "when")}
    if kind == _CATEGORICAL:
        _check_choices(settings["choices"], where)
    try:
        return Categorical(settings["choices"]) if kind == _CATEGORICAL else _NUMBERS[kind](**settings)
    except InvalidInput as error:
        raise InvalidInput(f"{where}: {error}") from None


def _check_choices(choices: Any, where: str) -> None:
    if not isinstance(choices, list):
        raise InvalidInput(f"{where}: choices must be a list, got {shown(choices)}")
    for choice in choices:
        if not isinstance(choice, str | int | float):  # neither dates nor lists, which no storage keeps
            raise InvalidInput(f"{where}: choices must be text, numbers, true or false; got {shown(choice)}")


def _condition(when: Any, where: str) -> tuple[str, list[Any]]:
    """A condition `{parent = [values]}`."""
    if not isinstance(when, Mapping) or len(when) != 1:
        raise InvalidInput(f'{where}: when must name one parameter, such as {{ kernel = ["poly"] }}; got {shown(when)}')
    ((parent, values),) = when.items()
    return parent, values if isinstance(values, list) else [values]
