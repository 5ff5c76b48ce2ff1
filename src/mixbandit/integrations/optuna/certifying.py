"""Certificates of studies that go on although a value contradicts what was stated."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from optuna.trial import FrozenTrial, TrialState

from mixbandit.errors import InvalidInput
from mixbandit.integrations.optuna.trials import value_of
from mixbandit.tuning import Assumptions, Space, StudyCertificate
from mixbandit.tuning.certification import certified
from mixbandit.tuning.selection import LEFT_OUT

if TYPE_CHECKING:
    from optuna.study import Study


@dataclasses.dataclass(frozen=True)
class Rest:
    """What remains of a study without the values that cannot be used: as much of a study as `read_run` reads."""

    directions: Sequence[Any]
    trials: Sequence[FrozenTrial]
    missing: Mapping[str, int]  # completed trials without a value, by reason
    contradicting: Mapping[str, int]  # trials whose values contradict the assumptions, by reason

    @classmethod
    def of(cls, study: Study, assumptions: Assumptions) -> Rest:
        """InvalidInput if nothing remains."""
        usable, missing, contradicting = [], Counter[str](), Counter[str]()
        for trial in study.get_trials(deepcopy=False):
            value = value_of(trial)
            problem = None if value is None else assumptions.objection(value)
            if problem is not None:
                contradicting[problem] += 1
            elif LEFT_OUT in trial.user_attrs and trial.state == TrialState.PRUNED:
                contradicting["pruned because a value contradicts the assumptions"] += 1
            elif value is None and trial.state == TrialState.COMPLETE:  # by another tool
                missing["without a value"] += 1
            else:
                usable.append(trial)
        left_out = missing + contradicting
        if left_out and not any(trial.state == TrialState.COMPLETE for trial in usable):
            told = ", ".join(f"{count} {why}" for why, count in left_out.items())
            raise InvalidInput(f"no completed trial can be used (found: {told})")
        return cls(study.directions, usable, missing, contradicting)

    def only(self, trials: Sequence[FrozenTrial]) -> Rest:
        """Some of these trials."""
        return dataclasses.replace(self, trials=trials)

    def get_trials(self, **_: Any) -> Sequence[FrozenTrial]:
        return self.trials


def certify_study(
    study: Study, assumptions: Assumptions, space: Space | None = None, *, refuted: bool = False
) -> StudyCertificate:
    """The certificate of a study, without warnings.

    Values that contradict the assumptions are left out and counted by reason. They were left out because of what they
    are, and they refute the assumptions, as a caller may know something else does (`refuted`): nothing that is said
    about the others is guaranteed then.
    """
    rest = Rest.of(study, assumptions)
    found = certified(rest, assumptions, space=space)
    trusted = found.trusted and not rest.contradicting and not refuted
    return dataclasses.replace(
        found,
        left_out={**found.left_out, **rest.missing, **rest.contradicting},
        lost=found.lost + sum(rest.missing.values()),
        trusted=trusted,
        search_possible=found.search_possible if trusted else None,
    )
