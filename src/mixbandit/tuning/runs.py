"""Runs of any tuner, read as configurations and values: Optuna studies, DataFrames, CSV files.

Only completed trials count: pruned and failed ones have no comparable value. Nothing is left out without a word: a
`Run` lists the rows that do not count and the columns that are not used, with the reasons.
"""

from __future__ import annotations

import dataclasses
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from mixbandit._checks import Array, as_number, as_path, one_of, shown
from mixbandit.errors import InvalidInput
from mixbandit.means import precisions
from mixbandit.tuning.assumptions import DIRECTIONS
from mixbandit.tuning.columns import ABSENT, Codes, Column, Mask, column_of, missing
from mixbandit.tuning.marks import (
    by_completion,
    feasible_trials,
    is_given_up,
    levels_of,
    lost_nominations,
    nomination_of,
    own_nominations,
    spoiled_finalists,
    stopped_short,
)
from mixbandit.tuning.parameters import Categorical, Float, Int, Parameter
from mixbandit.tuning.selection import COMPLETE, SIGMA, Selected, no_numbers, no_selection, selected
from mixbandit.tuning.space import Space
from mixbandit.tuning.tables import CsvFile, Frame, Progress, Table, masked

# As many different values in order of size are no coincidence.
_SORTED = 8
CONSTANT, OUTSIDE = "never varies", "not in the space"
SELECTED = "not confirmed, in a run that pruned unlucky trials"


class Configurations(Sequence[dict[str, Any]]):
    """The configurations of a run, made when they are looked at."""

    def __init__(self, columns: Mapping[str, Column], length: int) -> None:
        self._columns, self._length = columns, length

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...

    @overload
    def __getitem__(self, index: slice) -> list[dict[str, Any]]: ...

    def __getitem__(self, index: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self._length))]
        row = range(self._length)[index]
        cells = {name: column[row] for name, column in self._columns.items()}
        return {name: cell for name, cell in cells.items() if cell is not ABSENT}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self[i] for i in range(self._length))


@dataclass(frozen=True, eq=False)
class Run:
    """The contents of a run, in order."""

    space: Space
    columns: Mapping[str, Column]  # the cells of every parameter of the space that occurs
    values: Array  # (n,)
    direction: str = "maximize"
    left_out: Mapping[str, int] = field(default_factory=dict)  # trials that do not count, by reason
    unused: Mapping[str, str] = field(default_factory=dict)  # columns that are not used, with the reason
    inferred: bool = False  # whether the space was inferred from the data
    says_direction: bool = False  # whether the run itself states its direction
    feasible: Mask | None = None  # (n,), which trials are known to satisfy the constraints; None without constraints
    nominations: NDArray[np.int64] | None = None  # (n,), which finalist a trial confirms, 0 for none; None without any
    owned: Mask | None = None  # (n,), which trials are of the configuration that their nomination belongs to; None: all
    numbers: NDArray[np.int64] | None = None  # (n,), the numbers of trials; None if that is their position
    ordered: bool = True  # whether trials are in the order in which they were completed
    given: Sequence[Mapping[str, Any]] | None = None  # the configurations as they were given; None for a table
    levels: Array | None = None  # (n,), noise levels of values, NaN where they are the stated one; None without any
    pruned: int = 0  # how many trials were pruned because of their own values, as far as that is known
    spoiled: frozenset[int] = frozenset()  # finalists of which a confirmation was pruned
    stopped_short: int = 0  # how many completed trials of the search reported fewer steps than others
    lost: NDArray[np.int64] = field(
        default_factory=no_numbers
    )  # which finalists trials without a value were to confirm, 0 for none
    absent: int = 0  # how many trials are missing, by the numbers of the others
    confirmations: bool = False  # whether only confirmations are left, because others were pruned by their values

    @property
    def configurations(self) -> Sequence[Mapping[str, Any]]:
        if self.given is None:
            return Configurations(self.columns, len(self.values))
        return [{n: v for n, v in each.items() if n in self.space} for each in self.given]

    def noise_levels(self, stated: float | None) -> Array | None:
        """The noise levels of all values, (n,), given the stated one; None if all have that."""
        if self.levels is None:
            return None
        if stated is None:
            raise InvalidInput(f"the run has noise levels for single values ({SIGMA}), which need a stated sigma")
        levels = np.where(np.isnan(self.levels), stated, self.levels)
        precisions(stated, levels)  # InvalidInput if they are too far apart
        return levels

    def unselected(self) -> Run:
        """The part of the run that no pruner selected by its values: all of it, or the confirmations.

        If unlucky trials are pruned, the remaining ones are biased by luck, and no bound allows for that. Confirmations
        are spared by every pruner; should a worker have pruned one all the same, its finalist does not count.
        """
        if not self.pruned:
            return self
        nominations = np.zeros(len(self.values), dtype=np.int64) if self.nominations is None else self.nominations
        kept = (nominations > 0) & ~np.isin(nominations, list(self.spoiled))
        if not kept.any():
            raise InvalidInput(
                f"nothing is guaranteed: {self.pruned} trial{' was' if self.pruned == 1 else 's were'} pruned because "
                "of poor values, so the completed ones are biased by luck: only confirmations can be certified, and "
                "there are none. Confirm first: sampler.confirm(study, n)"
            )
        lost = int(len(kept) - kept.sum())
        return dataclasses.replace(
            self,
            columns={name: column.kept(kept) for name, column in self.columns.items()},
            values=self.values[kept],
            left_out={**self.left_out, **({SELECTED: lost} if lost else {})},
            feasible=None if self.feasible is None else self.feasible[kept],
            nominations=None if self.nominations is None else self.nominations[kept],
            owned=None if self.owned is None else self.owned[kept],
            numbers=None if self.numbers is None else self.numbers[kept],
            given=None if self.given is None else [self.given[i] for i in np.flatnonzero(kept).tolist()],
            levels=None if self.levels is None else self.levels[kept],
            pruned=0,
            spoiled=frozenset(),
            stopped_short=0,
            lost=self.lost[self.lost > 0],
            confirmations=True,
        )

    @property
    def overlapping(self) -> bool:
        """Whether trials are known to have run at the same time."""
        late = self.ordered and self.numbers is not None and bool((np.diff(self.numbers) < 0).any())
        return late or bool(self.left_out.get("RUNNING"))

    @property
    def rows(self) -> Array:
        """The configurations, encoded (n, space.dim)."""
        return self.encoded(slice(None))

    def encoded(self, trials: Any) -> Array:
        """The configurations of some trials, given as a slice or by number, encoded."""
        columns = {name: column.kept(trials) for name, column in self.columns.items()}
        n = len(self.values[trials])
        rows, right = np.zeros((n, self.space.dim)), np.zeros((n, self.space.dim), dtype=np.bool_)
        for name, column in columns.items():
            places = self.space.columns(name)
            rows[:, places.start : places.stop], fits = column.encoded(self.space[name])
            right[:, places.start : places.stop] = fits[:, None]
        wrong = ~right
        if self.space.conditions:
            rows = self.space.region.pinned(rows)
            wrong &= self.space.region.active(rows)  # the others do not matter
        for i in np.flatnonzero(wrong.any(axis=1)).tolist():
            try:
                rows[i] = self.space.encode(Configurations(columns, n)[i])  # which says what is wrong
            except (InvalidInput, OverflowError) as error:
                number = int(np.arange(len(self.values))[trials][i])
                raise InvalidInput(f"trial {number + 1} of {len(self.values)}: {error}") from None
        return rows


def read_run(
    history: Any,
    *,
    space: Space | None = None,
    direction: str | None = None,
    value: str | None = None,
    parameters: Sequence[str] | None = None,
    ordered: bool | None = None,
    progress: Progress = lambda rows: None,
) -> Run:
    """The run in an Optuna study, a DataFrame, a CSV file, or a list of (configuration, value).

    `value` names the column of values in a table, by default "value", and `parameters` those of the parameters: by
    default the `params_…` columns if there are any, else all others. `space` is needed if the data do not determine
    it; for a table the default is the space its rows span. `direction` defaults to the study's. `ordered` says whether
    the rows of a table, or a list, are in the order of play; by default a list is, and a table if a column numbers the
    trials. `progress` is called with the number of rows read so far.
    """
    if direction is not None:
        one_of(direction, DIRECTIONS, "direction")
    if space is not None and not isinstance(space, Space):
        raise InvalidInput(f"space must be a Space, got {shown(space)}")
    if space is not None and parameters is not None:
        raise InvalidInput("state the space or the parameters, not both: a space names its parameters")
    if Frame.is_one(history):
        return _from_table(Frame(history), space, direction, value, parameters, ordered)
    if isinstance(history, str) and "://" in history:
        raise InvalidInput(
            f"a storage holds studies: certify(optuna.load_study(storage={shown(masked(history))}, study_name=…))"
        )
    if isinstance(history, str | os.PathLike):
        return _from_table(CsvFile(as_path(history, "history"), progress), space, direction, value, parameters, ordered)
    if isinstance(history, Sequence) and history and all(_is_pair(item) for item in history):
        _only_for_tables(history, value=value, parameters=parameters)
        return _from_pairs(history, space, direction, ordered)
    _only_for_tables(history, value=value, parameters=parameters, ordered=ordered)
    if hasattr(history, "get_trials") and hasattr(history, "directions"):
        return _from_study(history, space, direction)
    raise InvalidInput(
        "history must be an Optuna study, a fitted scikit-learn search, a DataFrame, the path of a CSV file or a list "
        f"of (configuration, value), got {type(history).__name__}"
    )


def _only_for_tables(history: Any, **options: Any) -> None:
    for name, given in options.items():
        if given is not None:
            raise InvalidInput(
                f"{name} applies only to tables; got {name}={shown(given)} for a {type(history).__name__}"
            )


def _is_pair(item: Any) -> bool:
    return isinstance(item, Sequence) and len(item) == 2 and isinstance(item[0], Mapping)


def _from_study(study: Any, space: Space | None, direction: str | None) -> Run:
    directions = [str(getattr(d, "name", d)).lower() for d in study.directions]
    if len(directions) != 1:
        raise InvalidInput(f"a certificate needs a single objective, but the study has {len(directions)}")
    trials = study.get_trials(deepcopy=False)
    complete = by_completion(trial for trial in trials if trial.state.name == COMPLETE)
    others = Counter(trial.state.name for trial in trials if trial.state.name != COMPLETE)
    _check_some(len(complete), others)
    columns = _columns([trial.params for trial in complete])
    known = space_of_trials([trial.distributions for trial in complete], columns) if space is None else space
    outside = {name: column for name, column in columns.items() if name not in known}
    _check_covered(outside if space is not None else {}, known)
    return Run(
        known,
        {name: column for name, column in columns.items() if name in known},
        np.array([_value(trial) for trial in complete]),
        directions[0] if direction is None else direction,
        others,
        dict.fromkeys(outside, CONSTANT if space is None else OUTSIDE),
        says_direction=True,
        feasible=feasible_trials(complete),
        nominations=np.array([nomination_of(trial) for trial in complete], dtype=np.int64),
        owned=own_nominations(complete, trials, known),
        numbers=np.array([trial.number for trial in complete], dtype=np.int64),
        given=[trial.params for trial in complete],
        levels=levels_of(complete),
        pruned=sum(map(is_given_up, trials)),
        spoiled=spoiled_finalists(trials),
        stopped_short=stopped_short(complete),
        lost=lost_nominations(trials),
    )


def _value(trial: Any) -> float:
    """The value of a completed trial; storages keep whatever was written to them."""
    values = trial.values
    if values is None or len(values) != 1:
        raise InvalidInput(f"trial {trial.number} is damaged: it is complete, but its values are {shown(values)}")
    return as_number(values[0], f"trial {trial.number} is damaged: its value")


def _columns(configurations: Sequence[Mapping[str, Any]]) -> dict[str, Column]:
    names = dict.fromkeys(name for configuration in configurations for name in configuration)
    return {name: column_of([c.get(name, ABSENT) for c in configurations], name) for name in names}


def _check_covered(outside: Mapping[str, Column], space: Space) -> None:
    """Reject parameters that vary but are not in the space: their effect would pass for noise."""
    for name, column in outside.items():
        if column.varies:
            raise InvalidInput(
                f"the study varies {shown(name)}, which is not in the space: {', '.join(map(repr, space))}"
            )


def space_of_trials(distributions: Sequence[Mapping[str, Any]], columns: Mapping[str, Column]) -> Space:
    """The space that all trials, given as Optuna distributions and cells, were drawn from.

    A parameter that some trials lack must depend on a categorical one, whose values decide which trials have it.
    Parameters that never vary are left out.
    """
    found: dict[str, Any] = {}
    for of_trial in distributions:
        for name, distribution in of_trial.items():
            if found.setdefault(name, distribution) != distribution:
                raise InvalidInput(
                    f"the range of {shown(name)} changed during the study ({found[name]} and {distribution}): "
                    "pass the whole space as space=mixbandit.Space({…})"
                )
    varying = {name: parameter for name, d in found.items() if (parameter := as_parameter(name, d)) is not None}
    return Space(_some_parameter(varying), _conditions(varying, columns))


def as_parameter(name: str, distribution: Any) -> Parameter | None:
    """A parameter from an Optuna distribution; None for one with a single value."""
    kind = type(distribution).__name__
    if kind == "CategoricalDistribution":
        if len({_by_value(choice) for choice in distribution.choices}) < len(distribution.choices):
            raise InvalidInput(f"{shown(name)} has choices that Optuna considers equal: {shown(distribution.choices)}")
        return Categorical(distribution.choices) if len(distribution.choices) > 1 else None
    if kind not in ("FloatDistribution", "IntDistribution"):
        raise InvalidInput(f"{shown(name)} has an unsupported distribution: {shown(distribution)}")
    if distribution.low == distribution.high:
        return None
    if kind == "FloatDistribution":
        return Float(distribution.low, distribution.high, distribution.log, distribution.step)
    # Optuna's logarithmic integers have step 1.
    return Int(distribution.low, distribution.high, distribution.log, distribution.step)


def _by_value(choice: Any) -> Any:
    """A key that tells 1, 1.0 and True apart, which Python considers equal."""
    return choice if isinstance(choice, bool | int | float | str | None) else repr(choice)


def _conditions(
    parameters: Mapping[str, Parameter], columns: Mapping[str, Column]
) -> dict[str, tuple[str, tuple[Any, ...]]]:
    """For each parameter that some trials lack, the categorical one, and its values, that decide which."""
    lacking = [name for name in parameters if not columns[name].present.all()]
    if not lacking:
        return {}
    choices = {
        name: columns[name].choices(parameter)
        for name, parameter in parameters.items()
        if isinstance(parameter, Categorical)
    }
    return {name: _condition(name, columns[name].present, choices, parameters) for name in lacking}


def _condition(
    name: str, present: Mask, choices: Mapping[str, Codes], parameters: Mapping[str, Parameter]
) -> tuple[str, tuple[Any, ...]]:
    for parent, codes in choices.items():
        on = parameters[parent]
        if parent == name or not isinstance(on, Categorical):
            continue
        having, lacking = set(codes[present].tolist()), set(codes[~present].tolist()) - {-1}
        if having and -1 not in having and not having & lacking:
            return parent, tuple(on.choices[i] for i in sorted(having))
    raise InvalidInput(
        f"{shown(name)} is missing from some trials, and no categorical parameter explains which: pass the space, "
        "with its conditions, as space=mixbandit.Space({…}, {…})"
    )


def _from_pairs(pairs: Sequence[Any], space: Space | None, direction: str | None, ordered: bool | None) -> Run:
    values = column_of([ABSENT if missing(number) else number for _, number in pairs], "value")
    names = dict.fromkeys(name for configuration, _ in pairs for name in configuration)
    unknown = [] if space is None else [name for name in names if name not in space]
    if unknown:
        raise InvalidInput(
            f"unknown parameters: {', '.join(map(shown, unknown))}; expected {', '.join(map(repr, space or ()))}"
        )
    columns = _columns([configuration for configuration, _ in pairs])
    run = _of_columns(no_selection(columns, values), space, direction, ordered)
    return dataclasses.replace(run, given=[configuration for configuration, number in pairs if not missing(number)])


def _from_table(
    table: Table,
    space: Space | None,
    direction: str | None,
    value: Any,
    parameters: Sequence[Any] | None,
    ordered: bool | None,
) -> Run:
    return _of_columns(selected(table, value, parameters, space), space, direction, ordered)


def _of_columns(found: Selected, space: Space | None, direction: str | None, ordered: bool | None) -> Run:
    _check_some(len(found.values), found.left_out)
    is_ordered = (found.ordered if ordered is None else ordered) and not _is_sorted(found.values)
    unused = dict(found.unused)
    constant = [name for name, column in found.columns.items() if space is None and not column.varies]
    columns = {name: column for name, column in found.columns.items() if name not in constant}
    unused |= dict.fromkeys((found.written[name] for name in constant), CONSTANT)
    known = space_spanned(columns) if space is None else space
    return Run(
        known,
        columns,
        found.values,
        direction or "maximize",
        found.left_out,
        unused,
        inferred=space is None,
        feasible=found.feasible,
        nominations=found.nominations,
        levels=found.levels,
        pruned=found.pruned,
        spoiled=found.spoiled,
        lost=found.lost,
        absent=found.absent,
        owned=found.owned,
        numbers=found.numbers if is_ordered else None,
        ordered=is_ordered,
    )


def _is_sorted(values: Array) -> bool:
    """Whether values come in order of size: then the order of rows is not that of play."""
    steps = np.diff(values)
    one_way = bool((steps >= 0.0).all() or (steps <= 0.0).all())
    return one_way and int(np.count_nonzero(steps)) + 1 >= _SORTED


def space_spanned(columns: Mapping[str, Column]) -> Space:
    """The smallest space that holds all configurations: ranges of numbers, and the other values that occur."""
    parameters = {name: column.spanned(name) for name, column in columns.items()}
    return Space(_some_parameter(parameters), _conditions(parameters, columns))


def _some_parameter(parameters: dict[str, Parameter]) -> dict[str, Parameter]:
    if not parameters:
        raise InvalidInput("no parameter varies between trials, so there is nothing to compare")
    return parameters


def _check_some(complete: int, others: Mapping[str, int]) -> None:
    if not complete:
        told = ", ".join(f"{n} {state}" for state, n in others.items())
        raise InvalidInput(f"no completed trial has a value{f' (found: {told})' if told else ''}")
