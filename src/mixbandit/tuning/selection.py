"""Which columns of a table are parameters, and which rows count; all others are named. Ambiguity is an error."""

from __future__ import annotations

import ast
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixbandit._checks import Array, as_text, is_integer, shown
from mixbandit.errors import InvalidInput
from mixbandit.tuning.columns import ABSENT, LARGEST_EXACT, Choices, Column, Mask, Numbers
from mixbandit.tuning.parameters import Categorical
from mixbandit.tuning.space import Space
from mixbandit.tuning.tables import Table

COMPLETE = "COMPLETE"
GIVEN_UP = "PRUNED"  # Optuna's state of a pruned trial
FAILED = "FAIL"
_STATES = (COMPLETE, GIVEN_UP, FAILED, "RUNNING", "WAITING")
_STATE, _VALUE = "state", "value"
_PREFIX = "params_"  # of Optuna's DataFrames, where other columns are not parameters
_CONSTRAINTS = ("system_attrs_constraints", "system_attrs_constraints:")  # all in a cell, or a column each
_INDEX = ("", "Unnamed: 0")  # of a saved DataFrame
_NOT_A_PARAMETER, _NOT_NAMED, _OUTSIDE, _OF_FRAME = (
    "not a parameter",
    "not among the parameters stated",
    "not in the space",
    "the index of a saved DataFrame",
)
# Which finalist a trial confirms, as a column of its own or as an attribute in Optuna's DataFrames.
NOMINATION = "mixbandit_nomination"
_NOMINATIONS = (NOMINATION, f"user_attrs_{NOMINATION}")
# The noise level of a value, where it is not the stated one, in the same two ways.
SIGMA = "mixbandit_sigma"
_SIGMAS = (SIGMA, f"user_attrs_{SIGMA}")
# Marks of trials that were given up because of their own values, in the same two ways: what they lost against, or how a
# value contradicts what was stated.
PRUNED, LEFT_OUT = "mixbandit_pruned", "mixbandit_left_out"
_PRUNINGS, _CONTRADICTIONS = (PRUNED, f"user_attrs_{PRUNED}"), (LEFT_OUT, f"user_attrs_{LEFT_OUT}")
# The attribute of a trial that was failed before anybody ran it.
WITHDRAWN = "mixbandit:withdrawn"
_WITHDRAWALS = (f"system_attrs_{WITHDRAWN}",)
# When trials were completed, which tells the order in which values came.
_COMPLETED = "datetime_complete"
# Trial numbers, which tell the order of play.
_NUMBERS = ("number", "trial_number", "trial_id", "trial", "iteration")
# Those of them that count the trials of one run, so that a gap is a trial that is not in the table.
_COUNTED = ("number", "trial_number")
_NO_ORDER = "no different numbers"
# Names that tuners give to what they write beside parameters.
_BOOKKEEPING = {
    *("number", "trial", "trial_id", "trial_number", "id", "run", "run_id", "uuid", "index", "iteration"),
    *("datetime", "datetime_start", "datetime_complete", "duration", "date", "time", "timestamp"),
}
_INTERMEDIATE = "intermediate_values_"
_BOOKKEEPING_PREFIXES = ("user_attrs_", "system_attrs_", "values_", _INTERMEDIATE)


def no_numbers() -> NDArray[np.int64]:
    """None at all."""
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Selected:
    """What a table says about trials that count."""

    columns: Mapping[str, Column]  # by parameter
    values: Array
    left_out: Mapping[str, int]
    unused: Mapping[str, str]
    written: Mapping[str, str] = field(default_factory=dict)  # the column of each parameter
    feasible: Mask | None = None
    nominations: NDArray[np.int64] | None = None  # which finalist a row confirms, 0 for none
    owned: Mask | None = None  # which rows are of the configuration that their nomination belongs to; None: all
    numbers: NDArray[np.int64] | None = None  # trial numbers; None if that is their position
    ordered: bool = False  # whether rows are in the order in which trials were completed
    levels: Array | None = None  # noise levels of values, NaN where they are the stated one
    pruned: int = 0  # how many trials were pruned because of their own values, as far as that is known
    spoiled: frozenset[int] = frozenset()  # finalists of which a confirmation was pruned
    lost: NDArray[np.int64] = field(
        default_factory=no_numbers
    )  # which finalists trials without a value were to confirm, 0 for none
    absent: int = 0  # how many trials are missing, by the numbers of the others


def no_selection(columns: Mapping[str, Column], values: Column) -> Selected:
    """Everything that has a value."""
    counts, left_out = _with_a_value(values, np.ones(len(values), dtype=np.bool_))
    return Selected(
        {name: column.kept(counts) for name, column in columns.items()},
        values.kept(counts).numbers("value"),
        left_out,
        {},
        {name: name for name in columns},
        ordered=True,
        lost=np.zeros(sum(left_out.values()), dtype=np.int64),
    )


def selected(table: Table, value: Any, parameters: Sequence[Any] | None, space: Space | None) -> Selected:
    """The parameters and values of a table.

    Parameters are those stated, or those of the space, or the `params_…` columns if there are any, or else all columns
    but values, states and the index of a saved frame. InvalidInput if it is not clear which is which.
    """
    target = _VALUE if value is None else _name(value, "value")
    if target not in table.names:
        raise InvalidInput(
            f"there is no column {shown(target)} of values; the columns are {_listed(table.names)}: name the right one "
            "with `value` (--value)"
        )
    nomination = next((name for name in _NOMINATIONS if name in table.names), None)
    level = next((name for name in _SIGMAS if name in table.names), None)
    others, index = [name for name in table.names if name not in (target, nomination, level)], _index_of(table)
    if parameters is not None:
        names, reason = _stated(parameters, others, target), _NOT_NAMED
    elif space is not None:
        names, reason = _of_space(space, others), _OUTSIDE
    else:
        names, reason = _by_form(others, target, value is not None, index), _NOT_A_PARAMETER
    is_state = _STATE in others and _STATE not in names.values()
    constraints = [name for name in others if name.startswith(_CONSTRAINTS) and name not in names.values()]
    spare = [n for n in others if n not in names.values() and n not in constraints and not (is_state and n == _STATE)]
    number = next((name for name in _NUMBERS if name in spare), None)
    spare = [name for name in spare if name != number]
    unused = {name: _OF_FRAME if name == index else reason for name in spare} | dict(table.ignored)
    values = table.column(target)
    counts, left_out = _completed(table.column(_STATE), table.rows) if is_state else (np.ones(table.rows, bool), {})
    given_up = _given_up(table, values, counts, _STATE if is_state else None)
    lost = _lost(table, counts, given_up, values, _STATE if is_state else None)
    marked = np.zeros(table.rows, dtype=np.int64) if nomination is None else _nominations(table.column(nomination))
    counts, without = _with_a_value(values, counts)
    columns = {name: table.column(column).kept(counts) for name, column in names.items()}
    if space is not None:
        columns = {name: _with_none(column, name, space) for name, column in columns.items()}
    _check_covered([n for n in spare if n.startswith(_PREFIX)], table, counts, space is not None)
    numbers = None if number is None else _whole(table.column(number).kept(counts))
    order = None if numbers is None else _order(numbers, table, counts, _COMPLETED in spare)
    if number is not None and order is None:
        unused[number] = _NO_ORDER
    kept = slice(None) if order is None else order
    feasible = _feasible({name: table.column(name, lists=True).kept(counts) for name in constraints})
    return Selected(
        {name: column.kept(kept) for name, column in columns.items()},
        values.kept(counts).kept(kept).numbers(target),
        {**left_out, **without},
        unused,
        names,
        None if feasible is None else feasible[kept],
        None if nomination is None else _nominations(table.column(nomination).kept(counts).kept(kept)),
        None if nomination is None else _owned(table, nomination, number, list(names.values()))[counts][kept],
        None if numbers is None or order is None else numbers[order],
        ordered=order is not None,
        levels=None if level is None else _levels(table.column(level).kept(counts).kept(kept), level),
        pruned=max(int(given_up.sum()), int(any(name in table.names for name in _PRUNINGS))),
        spoiled=frozenset() if nomination is None else _numbers_of(table.column(nomination), given_up),
        lost=marked[lost],
        absent=_absent(table.column(number)) if number in _COUNTED else 0,
    )


def _given_up(table: Table, values: Column, counts: Mask, state: str | None) -> Mask:
    """Which rows are of trials that were given up because of their own values, by any pruner."""
    found = np.zeros(table.rows, dtype=np.bool_)
    for name in (name for name in _PRUNINGS if name in table.names):
        found |= table.column(name).present
    for name in (name for name in _CONTRADICTIONS if name in table.names):
        found |= table.column(name).present & ~counts
    if state is not None:
        # Optuna writes the last intermediate value as the value of a pruned trial.
        seen = values.present.copy()
        for name in (name for name in table.names if name.startswith(_INTERMEDIATE)):
            seen |= table.column(name).present
        found |= _in_state(table.column(state), GIVEN_UP) & seen
    return found


def _lost(table: Table, counts: Mask, given_up: Mask, values: Column, state: str | None) -> Mask:
    """Which rows ended without a value, so that nothing says that the value had no part in it."""
    found = np.asarray(counts & ~values.present)
    if state is not None:
        ended = _in_state(table.column(state), FAILED) | _in_state(table.column(state), GIVEN_UP)
        for name in (name for name in _WITHDRAWALS if name in table.names):
            ended &= ~table.column(name).present
        found |= ended & ~given_up
    return found


def _absent(numbers: Column) -> int:
    """How many trials are not in the table, by the gaps between the numbers of those that are."""
    whole = _whole(numbers)
    return 0 if whole is None or not len(whole) else int(np.ptp(whole)) + 1 - len(whole)


def _in_state(states: Column, state: str) -> Mask:
    assert isinstance(states, Choices)
    codes = [code for code, written in enumerate(states.known) if _state(written) == state]
    return np.isin(states.codes, codes)


def _state(written: Any) -> str:
    return str(written).rpartition(".")[2].upper()  # TrialState.COMPLETE


def _whole(numbers: Column) -> NDArray[np.int64] | None:
    """Trial numbers, if they tell trials apart: different whole numbers from 0 on."""
    if not isinstance(numbers, Numbers) or not numbers.whole or not numbers.present.all():
        return None
    different = len(np.unique(numbers.cells)) == len(numbers)
    return numbers.cells.astype(np.int64) if different and (numbers.cells >= 0.0).all() else None


def _order(numbers: NDArray[np.int64], table: Table, counts: Mask, has_times: bool) -> NDArray[np.int64]:
    """The order in which trials were completed, or that of their numbers where it is not known."""
    if has_times:
        cells = table.column(_COMPLETED).kept(counts)
        times = [_seconds(cells[row]) for row in range(len(cells))]
        if not any(map(math.isnan, times)):
            return np.lexsort((numbers, np.array(times)))
    return np.argsort(numbers, kind="stable")


def _seconds(cell: Any) -> float:
    """A moment, or its text, in seconds; NaN if it is not one."""
    try:
        moment = cell if isinstance(cell, datetime) else datetime.fromisoformat(str(cell))
        return moment.timestamp()
    except (ValueError, OverflowError, OSError):
        return math.nan


def _owned(table: Table, nomination: str, number: str | None, names: Sequence[str]) -> Mask:
    """Which rows are of the configuration that their nomination belongs to: that of the first row marked with it.

    Rows in any state count, as `marks.own_nominations` says.
    """
    marked, order = _nominations(table.column(nomination)), np.arange(table.rows, dtype=np.float64)
    numbers = None if number is None else table.column(number)
    if isinstance(numbers, Numbers):
        order = np.where(numbers.present, numbers.cells, np.inf)
    columns, owners = [table.column(name) for name in names], dict[int, list[Any]]()
    owned = np.ones(table.rows, dtype=np.bool_)
    for row in sorted(np.flatnonzero(marked).tolist(), key=lambda row: order[row]):
        configuration = [column[row] for column in columns]
        owned[row] = owners.setdefault(int(marked[row]), configuration) == configuration
    return owned


def _nominations(column: Column) -> NDArray[np.int64]:
    if not isinstance(column, Numbers) or not column.whole:
        return np.zeros(len(column), dtype=np.int64)
    return np.maximum(np.where(column.present, column.cells, 0.0), 0.0).astype(np.int64)


def _numbers_of(nominations: Column, rows: Mask) -> frozenset[int]:
    """The finalists that some rows confirm."""
    return frozenset(_nominations(nominations)[rows].tolist()) - {0}


def _levels(column: Column, name: str) -> Array | None:
    """The noise levels of values, NaN where none is given; None if there are none at all."""
    if not column.present.any():
        return None
    if not isinstance(column, Numbers):
        raise InvalidInput(f"the column {shown(name)} must hold noise levels of values, got {shown(column[0])}")
    levels = np.where(column.present, column.cells, np.nan).astype(np.float64)
    wrong = column.present & ~((levels > 0.0) & np.isfinite(levels))
    if wrong.any():
        raise InvalidInput(
            f"the column {shown(name)} must hold positive noise levels of values, got {levels[wrong][0]:g}"
        )
    return levels


def _name(given: Any, what: str) -> str:
    if isinstance(given, str):
        return as_text(given, what)
    if not is_integer(given) or abs(int(given)) > LARGEST_EXACT:  # Python refuses to write out very long ones
        raise InvalidInput(f"{what} must be the name of a column, got {shown(given)}")
    return str(given)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))


def _stated(parameters: Sequence[Any], columns: Sequence[str], target: str) -> dict[str, str]:
    """The column of every parameter that was stated, by its own name or without Optuna's prefix."""
    if isinstance(parameters, str) or not isinstance(parameters, Sequence) or not len(parameters):
        raise InvalidInput(f"parameters must be a list of names of columns, got {shown(parameters)}")
    found: dict[str, str] = {}
    for given in parameters:
        name = _name(given, "a parameter")
        if name == target:
            raise InvalidInput(f"the column {shown(name)} holds the values: it cannot be a parameter as well")
        column = name if name in columns else _PREFIX + name
        if column not in columns:
            raise InvalidInput(f"there is no column {shown(name)} for a parameter; the columns are {_listed(columns)}")
        parameter = column.removeprefix(_PREFIX)
        if parameter in found:
            both = _listed([column, found[parameter]])
            raise InvalidInput(f"the parameter {shown(parameter)} is stated twice, by the columns {both}")
        found[parameter] = column
    return found


def _of_space(space: Space, columns: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in space:
        matching = [column for column in (name, _PREFIX + name) if column in columns]
        if len(matching) > 1:
            raise InvalidInput(
                f"the parameter {shown(name)} could be either of the columns {_listed(matching)}: rename one"
            )
        if matching:
            found[name] = matching[0]
        elif name not in space.conditions:
            raise InvalidInput(f"there is no column {shown(name)} for a parameter; the columns are {_listed(columns)}")
    return found


def _index_of(table: Table) -> str | None:
    """The column that is the index of a saved DataFrame: the first, without a name of its own, that counts the rows."""
    first = table.names[0]
    if first not in _INDEX:
        return None
    column = table.column(first)
    counted = isinstance(column, Numbers) and (np.diff(column.numbers(first)) > 0.0).all()
    return first if counted else None


def _by_form(columns: Sequence[str], target: str, is_target_stated: bool, index: str | None) -> dict[str, str]:
    """Optuna's form, with prefixes, or all columns; names that leave a doubt are an error."""
    state = "state which columns are parameters with parameters=[…] (--parameter on the command line)"
    prefixed = {name.removeprefix(_PREFIX): name for name in columns if name.startswith(_PREFIX)}
    if prefixed:
        twice = [name for name in columns if name in prefixed]
        if target in prefixed and not is_target_stated:
            twice.append(target)
        if twice:
            both = "; ".join(f"{shown(name)} and {shown(prefixed[name])}" for name in twice)
            raise InvalidInput(f"it is not clear which columns are meant: there are {both}; {state}")
        return prefixed
    odd = [c for c in columns if c.lower() in _BOOKKEEPING or c.lower().startswith(_BOOKKEEPING_PREFIXES)]
    if odd:
        one = len(odd) == 1
        look = f"the column {_listed(odd)} looks" if one else f"the columns {_listed(odd)} look"
        raise InvalidInput(f"{look} like {'a record' if one else 'records'} of the tuner, not a parameter: {state}")
    nameless = [name for name in columns if name in _INDEX and name != index]
    if nameless:
        raise InvalidInput(f"the column {nameless[0]!r} has no name and is not a row index: {state}")
    return {name: name for name in columns if name not in (_STATE, index)}


def _completed(states: Column, rows: int) -> tuple[Mask, dict[str, int]]:
    """The rows whose state is COMPLETE, and how many have another one."""
    if not isinstance(states, Choices):
        raise InvalidInput(_no_state(states[0]))
    found: Counter[str] = Counter()
    counts = np.zeros(rows, dtype=np.bool_)
    for code in np.unique(states.codes).tolist():
        mask = states.codes == code
        written = "without a state" if code < 0 else str(states.known[code])
        state = _state(written)
        if code >= 0 and state not in _STATES:
            raise InvalidInput(_no_state(written))
        if state == COMPLETE:
            counts |= mask
        else:
            found[written if code < 0 else state] += int(mask.sum())
    return counts, dict(found)


def _no_state(written: Any) -> str:
    return (
        f"the column {_STATE!r} must hold Optuna's states ({', '.join(_STATES)}), got {shown(written)}: if it is a "
        "parameter, name it in parameters=[…] (--parameter on the command line)"
    )


def _with_a_value(values: Column, counts: Mask) -> tuple[Mask, dict[str, int]]:
    kept = counts & values.present
    without = int(counts.sum() - kept.sum())
    return kept, {"without a value": without} if without else {}


def _with_none(column: Column, name: str, space: Space) -> Column:
    """Tables leave a cell empty where the choice was None."""
    parameter = space[name]
    if name in space.conditions or not isinstance(parameter, Categorical) or column.present.all():
        return column
    if not any(choice is None for choice in parameter.choices) or not isinstance(column, Choices | Numbers):
        return column
    return (column.listed() if isinstance(column, Numbers) else column).filled(None)


def _check_covered(spare: Sequence[str], table: Table, counts: Mask, by_space: bool) -> None:
    """Reject parameters that vary but are left out: their effect would pass for noise."""
    for name in spare:
        if table.column(name).kept(counts).varies:
            what = "in the space" if by_space else "among the parameters"
            raise InvalidInput(
                f"the run varies {shown(name.removeprefix(_PREFIX))} (column {shown(name)}), which is not {what}"
            )


def _feasible(columns: Mapping[str, Column]) -> Mask | None:
    """Which rows are known to satisfy Optuna's constraints: all values at most 0."""
    if not columns:
        return None
    worst = np.array([[_largest(column[row], name) for row in range(len(column))] for name, column in columns.items()])
    # NaN stands for a constraint that is not known; all of them must be known to hold.
    return np.asarray((worst <= 0.0).all(axis=0))


def _largest(cell: Any, name: str) -> float:
    """The largest of the constraints in a cell, which is a number, a list or its text; NaN if there are none."""
    if cell is ABSENT:
        return math.nan
    try:
        numbers = ast.literal_eval(cell) if isinstance(cell, str) else cell
        values = [float(v) for v in numbers] if isinstance(numbers, list | tuple) else [float(numbers)]
    except (TypeError, ValueError, SyntaxError, MemoryError, RecursionError) as error:
        raise InvalidInput(
            f"the column {shown(name)} must hold constraints, numbers or lists of them; got {shown(cell)}"
        ) from error
    return max((math.inf if math.isnan(v) else v for v in values), default=math.nan)
