"""A study's trials as a picture shows them: which count, which do not, and why."""

from __future__ import annotations

import html
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from optuna.trial import FrozenTrial, TrialState

from mixbandit._checks import clipped
from mixbandit.errors import InvalidInput
from mixbandit.integrations.optuna.trials import same_value, value_of
from mixbandit.tuning import StudyCertificate
from mixbandit.tuning.columns import Mask
from mixbandit.tuning.evidence import Trials
from mixbandit.tuning.marks import by_completion, is_given_up, nomination_of, spoiled_finalists

if TYPE_CHECKING:
    from optuna.study import Study

_WITHOUT_VALUE = {TrialState.PRUNED: "pruned", TrialState.FAIL: "failed"}
LEFT_OUT = "left out"
# Values of parameters are shown with this many digits.
_DIGITS = 6


@dataclass(frozen=True)
class Drawn:
    """The trials of a study, as far as a certificate speaks of them."""

    known: Trials  # what the certificate is based on
    counted: Sequence[FrozenTrial]  # the certificate's, in its order
    later: Sequence[FrozenTrial]  # those that have completed since
    lucky: Sequence[FrozenTrial]  # those that do not count because unlucky ones were pruned
    others: Sequence[tuple[FrozenTrial, str, str]]  # those that do not count: what they are, and why in words
    feasible: Mask | None  # (len(counted),); None without constraints
    first_left_out: int | None  # the number of the first trial whose value contradicts the assumptions

    @property
    def reached(self) -> list[int]:
        """The largest number of a trial, after each of those that count, which are in the order of their completion."""
        return list(itertools.accumulate((trial.number for trial in self.counted), max))

    @classmethod
    def of(cls, study: Study, certificate: StudyCertificate) -> Drawn:
        """InvalidInput if the certificate is not about this study."""
        known = _trials_of(certificate)
        assumptions = certificate.judgement.assumptions  # type: ignore[union-attr]
        usable, others, contradicting = [], [], []
        trials = study.get_trials(deepcopy=False)
        for trial in trials:
            value = value_of(trial)
            if trial.state in _WITHOUT_VALUE:
                others.append((trial, _WITHOUT_VALUE[trial.state], _WITHOUT_VALUE[trial.state]))
            elif value is not None:
                wrong = assumptions.objection(value)
                if wrong is None:
                    usable.append(trial)
                else:
                    others.append((trial, LEFT_OUT, f"left out, {wrong}: {value:g}"))
                    contradicting.append(trial.number)
        pruned = any(is_given_up(trial) for trial in trials)
        spoiled = {0, *spoiled_finalists(trials)}
        lucky = [trial for trial in usable if pruned and nomination_of(trial) in spoiled]
        counted, later = _matched([t for t in usable if not pruned or nomination_of(t) not in spoiled], known)
        return cls(known, counted, later, lucky, others, known.feasible, min(contradicting, default=None))


def _trials_of(certificate: StudyCertificate) -> Trials:
    judgement = certificate.judgement
    if judgement is None or judgement.own is None:
        raise InvalidInput("this certificate was made by hand, so there is no study to draw")
    return judgement.own.trials


def _matched(usable: Sequence[FrozenTrial], known: Trials) -> tuple[list[FrozenTrial], list[FrozenTrial]]:
    """The trials that a certificate is based on, and those that have completed since, with any number."""
    counted: list[FrozenTrial] = []
    later: list[FrozenTrial] = []
    for trial in by_completion(usable):
        i = len(counted)
        same = i < len(known.values) and value_of(trial) == known.values[i]
        if same and all(same_value(trial.params.get(n), v) for n, v in known.configurations[i].items()):
            counted.append(trial)
        else:
            later.append(trial)
    if len(counted) < len(known.values):
        raise InvalidInput(
            f"the certificate is not about this study: of the {len(known.values)} values that it is based on, "
            f"{len(counted)} are among the study's {len(usable)}"
        )
    return counted, sorted(later, key=lambda trial: trial.number)


def best_so_far(values: Sequence[float], usable: Sequence[bool], upwards: bool) -> list[float | None]:
    """The best value up to each trial, of those that may be recommended; None before the first of them."""
    best, found = None, []
    for value, counts in zip(values, usable, strict=True):
        if counts and (best is None or (value > best if upwards else value < best)):
            best = value
        found.append(best)
    return found


def plain(text: str) -> str:
    """Text that Plotly shows as it is: it would read tags, entities and formulas between dollar signs."""
    line = "".join(c if c.isprintable() else " " for c in text)
    readable = line.encode("utf-8", "replace").decode()
    return html.escape(readable, quote=False).replace("$", "&#36;")


def one(value: Any) -> str:
    """The value of a parameter, short."""
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:.{_DIGITS}g}"
    return str(value)


def listed(parameters: Mapping[str, Any]) -> list[str]:
    """Parameters, one line each, for Plotly."""
    return [plain(clipped(f"{name} = {one(value)}")) for name, value in parameters.items()]
