"""What is known about a list of configurations without a model: as a value and in words."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixbandit._checks import Array, as_text, shown
from mixbandit._words import confidence, with_article
from mixbandit.errors import InvalidInput
from mixbandit.tuning.judgement import Judgement, Worth
from mixbandit.tuning.study_certificate import StudyCertificate, readable

NEW_ROWS, THESE_ROWS = "new rows", "these rows only"
FIXED_LIST, FRESH_ROWS, SAME_ROWS = "fixed list", "fresh rows", "these rows"


@dataclass(frozen=True)
class ListCertificate(StudyCertificate):
    """A certificate for a list of configurations: each has its own interval, and no model connects them.

    `about` says what the intervals are about. "new rows": they hold together, on the whole list, with probability ≥
    1−δ. "these rows only": a search that chose configurations by their values on fixed rows. Then nothing is guaranteed
    about new rows, `proven` is False, and `interval`, `best_possible` and `gap` only reflect the stated range;
    `on_these_rows` is the value that was measured.
    """

    about: str = NEW_ROWS
    evidence: str = FIXED_LIST  # "fixed list", "fresh rows" or "these rows"
    tried: int = 0  # the configurations that were measured
    folds: int = 1
    measure: str = "expected value"  # what a value estimates, in words
    adaptive: bool | None = False  # whether configurations were chosen by earlier values; None: not known
    listed: int | None = None  # the length of a list fixed in advance, measured or not; None if there is none
    stratified: str | None = None  # how folds are stratified, if they are known to be
    unknown_folds: bool = False  # whether nobody knows how rows were split into folds
    on_these_rows: float = math.nan  # the measured value of `action`, the mean over folds
    configurations: Sequence[Mapping[str, Any]] = dataclasses.field(default=(), repr=False, compare=False)
    intervals: Array = dataclasses.field(default_factory=lambda: np.empty((0, 2)), repr=False, compare=False)

    @property
    def proven(self) -> bool:
        """Whether anything is guaranteed about new rows."""
        return self.trusted and self.about == NEW_ROWS

    @property
    def guaranteed(self) -> float:
        """The bound that the first line states."""
        return self.interval[0] if self.direction == "maximize" else self.interval[1]

    def of(self, parameters: Mapping[str, Any]) -> Worth:
        """What is known about the expected value, on new rows, of a configuration on the list.

        If a configuration is on the list several times, the interval covers all of its fitted models.
        """
        if not isinstance(parameters, Mapping):
            raise InvalidInput(f"parameters must be a dict, got {shown(parameters)}")
        spare = {*self.unused, *(column.removeprefix("params_") for column in self.unused)}
        wanted = {name: value for name, value in parameters.items() if name not in spare}
        at = [i for i, configuration in enumerate(self.configurations) if _same(configuration, wanted)]
        if not at:
            raise InvalidInput(f"{shown(dict(parameters))} is not among the {self.tried} configurations measured")
        low, high = float(self.intervals[at, 0].min()), float(self.intervals[at, 1].max())
        return Worth(low, high, self.evidence, len(at), self.proven)

    def _judged(self) -> Judgement:
        raise InvalidInput("a list has no model that connects its configurations: compare their intervals, of(…)")

    def to_dict(self) -> dict[str, Any]:
        """Everything, in plain types; infinite ends are None. Parameters are as given."""
        return {
            "about": self.about,
            "evidence": self.evidence,
            "proven": self.proven,
            "trusted": self.trusted,
            "parameters": dict(self.action),
            "interval": [_finite(end) for end in self.interval],
            "best_possible": _finite(self.best_possible),
            "gap": _finite(self.gap),
            "on_these_rows": self.on_these_rows,
            "direction": self.direction,
            "delta": self.delta,
            "tried": self.tried,
            "folds": self.folds,
            "proof": self.proof,
            "assumptions": self.assumptions,
            "left_out": dict(self.left_out),
            "unused": dict(self.unused),
            "infeasible": self.infeasible,
            "configurations": [
                {"parameters": dict(configuration), "interval": [_finite(low), _finite(high)]}
                for configuration, (low, high) in zip(self.configurations, self.intervals.tolist(), strict=True)
            ],
        }

    def sentences(self, named: str | None = None) -> list[str]:
        warning = "WARNING: the data refute the stated assumptions; none of this is guaranteed:"
        return [*([] if self.trusted else [warning]), *self._statements(named)[:2]]

    def details(self) -> str:
        """The two lines, what they are based on, and how δ is divided."""
        spent = map(str, self.ledgers) if self.trusted else ()
        return "\n".join([*self.sentences(), *self.reservations(), *spent])

    def _statements(self, named: str | None = None) -> list[str]:
        """The two sentences, and those that follow."""
        configuration = readable(self.action) if named is None else as_text(named, "named")
        if self.about == NEW_ROWS:
            return self._about_new_rows(configuration)
        return self._about_these_rows(configuration)

    def _about_new_rows(self, configuration: str) -> list[str]:
        low, high = (end + 0.0 for end in self.interval)  # without −0
        upwards = self.direction == "maximize"
        worst = f"at least {low:.4g}" if upwards else f"at most {high:.4g}"
        better, most = ("larger", "at most") if upwards else ("smaller", "at least")
        other = "finalist" if self.evidence == FRESH_ROWS else "configuration on the list"
        by = f"{better} by more than {self.gap:.4g}" if self.gap > 0.0 else better
        count = f"{self.tried} in all"
        if self.listed is not None and self.listed > self.tried:
            other, count = "configuration measured", f"{self.tried:,} of the {self.listed:,} on the list"
        second = f"No other {other} ({count}) has {with_article(self.measure)} that is {by}."
        if self.proof == "range":
            second = self._may_be_better(f"another {other} ({count})")
        if self.tried == 1:
            second = "Nothing else was measured, so nothing is known about alternatives."
        second += self._not_counted
        sure, best = f"with probability at least {confidence(self.delta)}", self.best_possible + 0.0
        fresh = ", if nothing used these rows before" if self.evidence == FRESH_ROWS else ""
        fresh += ", if no fold depends on the labels, as stratified ones do" if self.unknown_folds else ""
        others = "" if self.tried == 1 else f"; the best one's is {most} {best:.4g}"
        measured = f" (measured: {self.on_these_rows:.4g})" if self.evidence == FRESH_ROWS else ""
        lines = [
            f"Use {configuration}: on new rows its {self.measure} is {worst}{measured}, {sure}{fresh}.",
            second,
            f"Its {self.measure} lies in [{low:.4g}, {high:.4g}]{others}.",
            f"All of this holds together {sure}, given {self.assumptions}.",
        ]
        if self.folds > 1:
            lines.append(
                f"It is about the {self.folds} models fitted for the folds, on average, and not about a model "
                "refitted to all rows."
            )
        return lines

    def _may_be_better(self, other: str) -> str:
        """The sentence about the others where only the range bounds what they are worth."""
        end = f"{self.best_possible + 0.0:.4g}, the end of its range"
        return f"Nothing rules out that {other} is better, by up to {self.gap:.4g}: its {self.measure} may be {end}."

    def _about_these_rows(self, configuration: str) -> list[str]:
        lines = [
            f"ON THESE ROWS ONLY, the best of {self.tried} is {configuration}, with value {self.on_these_rows:.4g}: "
            f"nothing is guaranteed about new rows{self._because_stratified}.",
            "None of the others is better on these rows; on new rows, any of them may be, by any amount."
            + self._not_counted,
            "A search that reuses the same rows also selects for luck on them. Confirm a few finalists on rows that "
            "it never saw: mb.certify_finalists([(parameters, value), …], samples=…, reward_range=…).",
        ]
        if self.adaptive is None:
            lines.append("If the list was fixed before any value was seen, as a grid is, state fixed_list=True.")
        return lines

    @property
    def _because_stratified(self) -> str:
        """Why a list fixed in advance says nothing about new rows."""
        if self.stratified is None:
            return ""
        return (
            f", because of {self.stratified}: the number of classes is not known without a refitted "
            "classifier. Use KFold(shuffle=True), or fresh rows"
        )

    @property
    def _not_counted(self) -> str:
        """What was tried and does not count, by reason."""
        if not self.left_out:
            return ""
        return " Not counted: " + ", ".join(f"{n:,} {why}" for why, n in self.left_out.items()) + "."

    def reservations(self) -> list[str]:
        lines = self._statements()[2:]
        if self.infeasible is not None:
            lines.append(f"{self.infeasible} of {self.tried} are not known to be feasible, and are not recommended.")
        if self.unused:
            lines.append("Not used: " + ", ".join(f"{name!r} ({why})" for name, why in self.unused.items()) + ".")
        return lines


def _finite(end: float) -> float | None:
    return end if math.isfinite(end) else None


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return one.keys() == other.keys() and all(_equal(value, other[name]) for name, value in one.items())


def _equal(one: Any, other: Any) -> bool:
    """Equality that tells True from 1, and takes arrays and whatever does not compare."""
    if one is other:
        return True
    if isinstance(one, bool | np.bool_) != isinstance(other, bool | np.bool_):
        return False
    try:
        return bool(np.all(one == other)) and np.shape(one) == np.shape(other)
    except Exception:  # estimators and arrays of users may raise anything
        return False
