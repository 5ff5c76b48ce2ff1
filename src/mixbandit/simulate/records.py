"""Records of a run, round by round: to inspect, to export, to continue from."""

from __future__ import annotations

import csv
import dataclasses
import io
import os
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from mixbandit import plots
from mixbandit._checks import (
    LARGEST_DATUM,
    Array,
    as_number,
    as_path,
    as_text,
    check_finite,
    finite,
    flag,
    instance_of,
    is_integer,
    shown,
)
from mixbandit._extras import import_extra
from mixbandit._files import write_atomically
from mixbandit._schema import array, checked, count, list_of, optional, real, record, scalar
from mixbandit.actions import storable_label
from mixbandit.bandits import Choice
from mixbandit.errors import InvalidInput

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Record:
    """One choice and its outcome. Unknown values are None, or NaN in a column."""

    round: int
    id: int  # the number of the choice, in the order of play
    action: Array
    label: Hashable
    context: Array | None
    lower: float | None  # bounds on the expected reward at the time of choice; None without a policy of ours
    upper: float | None
    trusted: bool
    reward: float
    expected: float | None
    best: float | None  # the largest expected reward of the round
    told: int | None  # the round after which the reward is told; None if never
    ask_seconds: float
    tell_seconds: float

    @classmethod
    def of(cls, round_: int, choice: Choice, **rest: Any) -> Record:
        names = ("action", "label", "context")
        shared = {name: getattr(choice, name) for name in names}
        return cls(round=round_, id=choice.number, **shared, **rest)

    @property
    def regret(self) -> float | None:
        return None if self.expected is None or self.best is None else self.best - self.expected


_SCALARS = ("round", "id", "label", "reward", "expected", "best", "regret", "lower", "upper", "trusted", "told",
            "ask_seconds", "tell_seconds")  # fmt: skip


class _NoSuchRound(InvalidInput, IndexError):
    """An index beyond the rounds: also what Python expects of a list."""


class Records:
    """The rounds of one run, in order."""

    def __init__(self, rows: list[Record] | None = None) -> None:
        given = instance_of([] if rows is None else rows, list, "rows", "a list of records")
        for row in given:
            instance_of(row, Record, "a row", "a Record")
        self.rows: list[Record] = given
        self.stopped: str | None = None  # why the run ended before its last round

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Record]:
        return iter(self.rows)

    @overload
    def __getitem__(self, index: int) -> Record: ...

    @overload
    def __getitem__(self, index: slice) -> list[Record]: ...

    def __getitem__(self, index: int | slice) -> Record | list[Record]:
        if isinstance(index, slice):
            return self.rows[index]
        if not is_integer(index):
            raise InvalidInput(f"an index of records must be an integer, got {shown(index)}")
        if not -len(self) <= index < len(self):
            raise _NoSuchRound(f"there are {len(self)} records, got the index {shown(index)}")
        return self.rows[index]

    def __repr__(self) -> str:
        total = f", cumulative regret {self.cumulative_regret[-1]:.4g}" if len(self) and self.regret_known else ""
        return f"Records(rounds={len(self)}{total}{'' if self.stopped is None else f', stopped: {self.stopped}'})"

    def append(self, record: Record) -> None:
        self.rows.append(instance_of(record, Record, "record", "a Record"))

    def column(self, name: str) -> np.ndarray[Any, Any]:
        """One column: numbers, with NaN for unknown values; labels as objects; actions as (n, dim)."""
        name = as_text(name, "name")
        if name in ("action", "context"):
            return np.array([getattr(row, name) for row in self])
        if name not in _SCALARS:
            raise InvalidInput(f"records have the columns {', '.join(_SCALARS)}, action, context; got {shown(name)}")
        values = [getattr(row, name) for row in self]
        if name == "label":
            return np.array([*values, None], dtype=object)[:-1]
        if name in ("round", "id", "trusted"):
            return np.array(values)
        return np.array([np.nan if value is None else value for value in values], dtype=np.float64)

    @property
    def regret_known(self) -> bool:
        return all(row.regret is not None for row in self)

    @property
    def cumulative_regret(self) -> Array:
        """The running sum of best expected reward minus expected reward of the choice, (n,)."""
        return np.cumsum(self.column("regret"))

    def to_rows(self) -> list[dict[str, Any]]:
        """A dict per round, with actions and contexts as numbered columns."""
        table = []
        for row in self:
            parts = {f"action_{i}": float(x) for i, x in enumerate(row.action)}
            if row.context is not None:
                parts |= {f"context_{i}": float(x) for i, x in enumerate(row.context)}
            table.append({"round": row.round, **parts, **{name: getattr(row, name) for name in _SCALARS[1:]}})
        return table

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write one row per round; numbers can be read back bit for bit."""
        file, text = as_path(path), io.StringIO()
        table = self.to_rows()
        columns = list(dict.fromkeys(name for row in table for name in row)) or list(_SCALARS)
        writer = csv.DictWriter(text, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: "" if value is None else value for name, value in row.items()} for row in table)
        write_atomically(file, text.getvalue())

    def to_frame(self) -> pd.DataFrame:
        """A pandas DataFrame with one row per round."""
        frame: pd.DataFrame = import_extra("pandas", extra="frames").DataFrame(self.to_rows())
        return frame

    def plot(self) -> Figure:
        """Cumulative regret if known, and rewards with their bounds."""
        columns = 2 if len(self) and self.regret_known else 1
        fig, axes = plots.figure(columns=columns)
        t = self.column("round") + 1.0
        if columns == 2:
            plots.curve(axes[0], t, self.cumulative_regret, label="cumulative regret")
            axes[0].set(xlabel="round", ylabel="cumulative regret", ylim=(0.0, None))
        plots.outcomes(
            axes[-1], t, self.column("lower"), self.column("upper"), self.column("reward"), self.column("expected")
        )
        return fig

    def state_dict(self) -> dict[str, Any]:
        rows = [{**dataclasses.asdict(row), "label": storable_label(row.label)} for row in self]
        return {"rows": rows}

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any]) -> Records:
        return cls([Record(**row) for row in checked(RECORDS, state, "records")["rows"]])


def _any_number(value: float, where: str) -> float:
    return as_number(value, where)


def _reward(value: float, where: str) -> float:
    check_finite(np.asarray(as_number(value, where)), where, LARGEST_DATUM)
    return float(value)


RECORDS = record(
    {
        "rows": list_of(
            record(
                {
                    "round": count,
                    "id": count,
                    "action": array(None),
                    "label": scalar,
                    "context": optional(array(None)),
                    "lower": optional(real(finite)),
                    "upper": optional(real(finite)),
                    "trusted": flag,
                    "reward": real(_reward),
                    "expected": optional(real(_any_number)),
                    "best": optional(real(_any_number)),
                    "told": optional(count),
                    "ask_seconds": real(finite),
                    "tell_seconds": real(finite),
                }
            )
        )
    }
)
"""The state of the records of a run."""
