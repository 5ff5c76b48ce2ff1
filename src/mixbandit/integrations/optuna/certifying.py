"""Certificates of studies that go on although a value contradicts what was stated."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

from optuna.trial import FrozenTrial, TrialState

from mixbandit.errors import InvalidInput
from mixbandit.integrations.optuna.trials import value_of
from mixbandit.tuning import Assumptions, Space, StudyCertificate
from mixbandit.tuning.certification import certified

if TYPE_CHECKING:
    from optuna.study import Study


class Sorted(NamedTuple):
    """The trials of a study that can be certified, and the completed ones that cannot, by reason."""

    usable: list[FrozenTrial]
    missing: Counter[str]  # without a value
    contradicting: Counter[str]  # with a value that contradicts the assumptions

    @property
    def left_out(self) -> Counter[str]:
        return self.missing + self.contradicting


def sorted_out(study: Study, assumptions: Assumptions) -> Sorted:
    """The trials of a study, sorted; InvalidInput if some are completed, and none of them can be used."""
    found = Sorted([], Counter(), Counter())
    for trial in study.get_trials(deepcopy=False):
        value = value_of(trial)
        problem = None if value is None else assumptions.objection(value)
        if problem is not None:
            found.contradicting[problem] += 1
        elif value is None and trial.state == TrialState.COMPLETE:  # by another tool
            found.missing["without a value"] += 1
        else:
            found.usable.append(trial)
    if found.left_out and not any(trial.state == TrialState.COMPLETE for trial in found.usable):
        told = ", ".join(f"{count} {why}" for why, count in found.left_out.items())
        raise InvalidInput(f"no completed trial can be used (found: {told})")
    return found


def with_trials(study: Study, trials: Sequence[FrozenTrial]) -> Any:
    """What `certify` reads of a study, with these trials only."""
    return SimpleNamespace(directions=study.directions, get_trials=lambda **_: trials)


def certify_study(
    study: Study, assumptions: Assumptions, space: Space | None = None, *, refuted: bool = False
) -> StudyCertificate:
    """The certificate of a study, without warnings.

    Values that contradict the assumptions are left out and counted by reason. They were left out because of what they
    are, and they refute the assumptions, as a caller may know something else does (`refuted`): nothing that is said
    about the others is guaranteed then.
    """
    trials = sorted_out(study, assumptions)
    found = certified(with_trials(study, trials.usable), assumptions, space=space, stated={})
    trusted = found.trusted and not trials.contradicting and not refuted
    return dataclasses.replace(
        found,
        left_out={**found.left_out, **trials.left_out},
        trusted=trusted,
        search_possible=found.search_possible if trusted else None,
    )
