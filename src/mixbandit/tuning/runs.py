"""Runs of any tuner, read as configurations and values: Optuna studies, DataFrames, CSV files.

Only completed trials count: pruned and failed ones have no comparable value.
"""

from __future__ import annotations

import csv
import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mixbandit._checks import Array, one_of
from mixbandit.errors import InvalidInput
from mixbandit.tuning.assumptions import DIRECTIONS
from mixbandit.tuning.parameters import Categorical, Float, Int, Parameter
from mixbandit.tuning.space import Space

_PREFIX = "params_"  # of Optuna's DataFrames, where other columns are not parameters
_COMPLETE = "COMPLETE"


@dataclass(frozen=True)
class Run:
    """The contents of a run, in order."""

    space: Space
    configurations: tuple[dict[str, Any], ...]
    values: Array  # (n,)
    direction: str = "maximize"
    left_out: Mapping[str, int] = field(default_factory=dict)  # trials that do not count, by reason
    inferred: bool = False  # whether the space was inferred from the data
    says_direction: bool = False  # whether the run itself states its direction

    @property
    def rows(self) -> Array:
        """The configurations, encoded (n, space.dim)."""
        return self.space.encode_all(self.configurations)


def read_run(
    history: Any, *, space: Space | None = None, direction: str | None = None, value: str | None = None
) -> Run:
    """The run in an Optuna study, a DataFrame, a CSV file, or a list of (configuration, value).

    `value` names the column of values in a table, by default "value". `space` is needed if the data do not determine
    it; for a table the default is the space its rows span. `direction` defaults to the study's.
    """
    if direction is not None:
        one_of(direction, DIRECTIONS, "direction")
    if space is not None and not isinstance(space, Space):
        raise InvalidInput(f"space must be a Space, got {space!r}")
    if hasattr(history, "get_trials") and hasattr(history, "directions"):
        return _from_study(history, space, direction)
    if hasattr(history, "columns") and hasattr(history, "to_dict"):
        return _from_table(history.to_dict("records"), list(map(str, history.columns)), space, direction, value)
    if isinstance(history, str) and "://" in history:
        raise InvalidInput(f"a storage holds studies: certify(optuna.load_study(storage={history!r}, study_name=…))")
    if isinstance(history, str | os.PathLike):
        rows, columns = _read_csv(Path(history))
        return _from_table(rows, columns, space, direction, value)
    if isinstance(history, Sequence) and history and all(_is_pair(item) for item in history):
        return _from_pairs(history, space, direction)
    raise InvalidInput(
        "history must be an Optuna study, a DataFrame, the path of a CSV file or a list of (configuration, value), "
        f"got {type(history).__name__}"
    )


def _is_pair(item: Any) -> bool:
    return isinstance(item, Sequence) and len(item) == 2 and isinstance(item[0], Mapping)


def _from_study(study: Any, space: Space | None, direction: str | None) -> Run:
    directions = [str(getattr(d, "name", d)).lower() for d in study.directions]
    if len(directions) != 1:
        raise InvalidInput(f"a certificate needs a single objective, the study has {len(directions)}")
    trials = study.get_trials(deepcopy=False)
    complete = [trial for trial in trials if trial.state.name == _COMPLETE]
    others = Counter(trial.state.name for trial in trials if trial.state.name != _COMPLETE)
    _some(complete, others)
    if space is None:
        space = space_of_trials([(trial.params, trial.distributions) for trial in complete])
    else:
        _check_covered([trial.params for trial in complete], space)
    known = tuple({name: v for name, v in trial.params.items() if name in space} for trial in complete)
    values = np.array([float(trial.value) for trial in complete])
    stated = directions[0] if direction is None else direction
    return Run(space, known, values, stated, others, says_direction=True)


def _check_covered(configurations: Sequence[Mapping[str, Any]], space: Space) -> None:
    """Reject parameters that vary but are not in the space: their effect would pass for noise."""
    seen: dict[str, Any] = {}
    for configuration in configurations:
        for name, value in configuration.items():
            if name not in space and seen.setdefault(name, value) != value:
                raise InvalidInput(
                    f"the study varies {name!r}, which is not in the space: {', '.join(map(repr, space))}"
                )


def space_of_trials(trials: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> Space:
    """The space that all trials, given as parameters and their Optuna distributions, were drawn from.

    A parameter that some trials lack must depend on a categorical one, whose values decide which trials have it.
    Parameters that never vary are left out.
    """
    found: dict[str, Any] = {}
    for _, distributions in trials:
        for name, distribution in distributions.items():
            if found.setdefault(name, distribution) != distribution:
                raise InvalidInput(
                    f"the range of {name!r} changed during the study ({found[name]} and {distribution}): "
                    "pass the whole space as space=mixbandit.Space({…})"
                )
    varying = {name: parameter for name, d in found.items() if (parameter := as_parameter(name, d)) is not None}
    conditions = {
        name: _condition(name, [params for params, _ in trials], varying)
        for name in varying
        if any(name not in params for params, _ in trials)
    }
    return Space(varying, conditions)


def as_parameter(name: str, distribution: Any) -> Parameter | None:
    """A parameter from an Optuna distribution; None for one with a single value."""
    kind = type(distribution).__name__
    if kind == "CategoricalDistribution":
        if len({_by_value(choice) for choice in distribution.choices}) < len(distribution.choices):
            raise InvalidInput(f"{name!r} has choices that Optuna considers equal: {distribution.choices!r}")
        return Categorical(distribution.choices) if len(distribution.choices) > 1 else None
    if kind not in ("FloatDistribution", "IntDistribution"):
        raise InvalidInput(f"{name!r} has an unsupported distribution: {distribution!r}")
    if distribution.low == distribution.high:
        return None
    if kind == "FloatDistribution":
        return Float(distribution.low, distribution.high, distribution.log, distribution.step)
    # Optuna's logarithmic integers have step 1.
    return Int(distribution.low, distribution.high, distribution.log, distribution.step)


def _by_value(choice: Any) -> Any:
    """A key that tells 1, 1.0 and True apart, which Python considers equal."""
    return choice if isinstance(choice, bool | int | float | str | None) else repr(choice)


def _condition(
    name: str, configurations: Sequence[Mapping[str, Any]], parameters: Mapping[str, Parameter]
) -> tuple[str, tuple[Any, ...]]:
    """The categorical parameter, and its values, that decide whether `name` is present."""
    for parent, parameter in parameters.items():
        if parent == name or not isinstance(parameter, Categorical):
            continue
        having = {parameter.choices.index(c[parent]) for c in configurations if name in c and parent in c}
        lacking = {parameter.choices.index(c[parent]) for c in configurations if name not in c and parent in c}
        always = all(parent in c for c in configurations if name in c)
        if having and always and not having & lacking:
            return parent, tuple(parameter.choices[i] for i in sorted(having))
    raise InvalidInput(
        f"{name!r} is missing in some trials, and no categorical parameter explains which: pass the space, with its "
        "conditions, as space=mixbandit.Space({…}, {…})"
    )


def _from_pairs(pairs: Sequence[Any], space: Space | None, direction: str | None) -> Run:
    configurations = tuple(dict(configuration) for configuration, _ in pairs)
    values = _numbers([number for _, number in pairs], "value")
    known = space_spanned(configurations) if space is None else space
    if space is None:  # a column that never varies is not a parameter
        configurations = tuple({name: v for name, v in c.items() if name in known} for c in configurations)
    return Run(known, configurations, values, direction or "maximize", {}, space is None)


def _numbers(values: Sequence[Any], name: str) -> Array:
    try:
        return np.array([float(value) for value in values])
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"the column {name!r} must hold numbers: {error}") from error


def _from_table(
    records: Sequence[Mapping[str, Any]],
    columns: Sequence[str],
    space: Space | None,
    direction: str | None,
    value: str | None,
) -> Run:
    target = "value" if value is None else value
    if target not in columns:
        raise InvalidInput(f"no column {target!r} of values among {', '.join(columns)}: name it as `value`")
    prefix = _PREFIX if any(column.startswith(_PREFIX) for column in columns) else ""
    left_out = (target, "state", "", "Unnamed: 0")  # the last two are the index of a saved DataFrame
    names = {c: c.removeprefix(prefix) for c in columns if c.startswith(prefix) and c not in left_out}
    if space is not None:
        names = {column: name for column, name in names.items() if name in space}
    others: Counter[str] = Counter()
    complete = []
    for record in records:
        state = str(record.get("state", _COMPLETE)).rpartition(".")[2]
        if state != _COMPLETE:
            others[state] += 1
        elif _is_missing(record[target]):
            others["without a value"] += 1
        else:
            complete.append(record)
    _some(complete, others)
    configurations = tuple(
        {name: record[column] for column, name in names.items() if not _is_missing(record.get(column))}
        for record in complete
    )
    values = _numbers([record[target] for record in complete], target)
    inferred = space is None
    known = space_spanned(configurations) if space is None else space
    configurations = tuple({name: v for name, v in c.items() if name in known} for c in configurations)
    return Run(known, configurations, values, direction or "maximize", others, inferred)


def space_spanned(configurations: Sequence[Mapping[str, Any]]) -> Space:
    """The smallest space that holds all configurations: ranges of numbers, and the other values that occur."""
    names = list(dict.fromkeys(name for configuration in configurations for name in configuration))
    parameters: dict[str, Parameter] = {}
    for name in names:
        values = [configuration[name] for configuration in configurations if name in configuration]
        numbers = all(isinstance(v, int | float | np.number) and not isinstance(v, bool | np.bool_) for v in values)
        if len({(type(v), v) for v in values}) < 2 and len(values) == len(configurations):
            continue  # a value that never varies is not a parameter
        if not numbers:
            parameters[name] = Categorical(sorted(set(values), key=lambda v: (type(v).__name__, str(v))))
        elif all(float(v).is_integer() for v in values) and min(values) < max(values):
            parameters[name] = Int(int(min(values)), int(max(values)))
        elif min(values) < max(values):
            parameters[name] = Float(float(min(values)), float(max(values)))
        else:
            parameters[name] = Categorical([values[0]])
    if not parameters:
        raise InvalidInput("no parameter varies between trials: there is nothing to compare")
    conditions = {
        name: _condition(name, configurations, parameters)
        for name in parameters
        if any(name not in configuration for configuration in configurations)
    }
    return Space(parameters, conditions)


def _some(complete: Sequence[Any], others: Mapping[str, int]) -> None:
    if not complete:
        told = ", ".join(f"{n} {state}" for state, n in others.items())
        raise InvalidInput(f"no completed trial has a value{f' (found: {told})' if told else ''}")


def _is_missing(value: Any) -> bool:
    return value is None or value == "" or (isinstance(value, float | np.floating) and math.isnan(value))


def _read_csv(path: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """Rows of a CSV file with a header; numbers become numbers, and lines that begin with # are comments."""
    lines = [line for line in path.read_text().splitlines() if line.strip() and not line.startswith("#")]
    if len(lines) < 2:
        raise InvalidInput(f"{path} must have a header and at least one row")
    header, *rows = csv.reader(lines)
    wrong = next((i for i, row in enumerate(rows) if len(row) != len(header)), None)
    if wrong is not None:
        raise InvalidInput(f"{path}: row {wrong + 1} has {len(rows[wrong])} fields, the header {len(header)}")
    return [dict(zip(header, map(_parsed, row), strict=True)) for row in rows], header


def _parsed(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"True": True, "False": False, "None": None}.get(text, text)
