"""Confirming a study's finalists: trials to run and tell, each chosen when it is requested."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from optuna.pruners import BasePruner
from optuna.trial import FrozenTrial, Trial

from mixbandit.integrations.optuna.certifying import Rest
from mixbandit.integrations.optuna.storage import begin_new
from mixbandit.sequences import Moment
from mixbandit.tuning import Assumptions, Space
from mixbandit.tuning.certification import judged
from mixbandit.tuning.confirming import Confirmation, Finalist, finalists_of, nominated
from mixbandit.tuning.judgement import Judgement
from mixbandit.tuning.runs import read_run
from mixbandit.tuning.selection import NOMINATION

if TYPE_CHECKING:
    from optuna.study import Study


class SparingPruner(BasePruner):
    """A pruner that leaves confirmations alone: if unlucky ones were pruned, the others would prove nothing."""

    def __init__(self, pruner: BasePruner) -> None:
        self.pruner = pruner

    def prune(self, study: Study, trial: FrozenTrial) -> bool:
        """Whether to prune the trial."""
        return nomination_of(trial) is None and self.pruner.prune(study, trial)


def spare_confirmations(study: Study) -> None:
    """From now on `should_prune` says no to confirmations, whatever the study's pruner."""
    if not isinstance(study.pruner, SparingPruner):
        study.pruner = SparingPruner(study.pruner)


def confirmation(
    study: Study, assumptions: Assumptions, space: Space | None, n: int, finalists: int
) -> Confirmation[Trial]:
    """Up to n trials of the study's best configurations; which one they confirm is stored with them."""
    model = _judged(study, assumptions, space).moment

    def judge() -> Judgement:
        return _judged(study, assumptions, space, model)

    def nominate() -> tuple[Finalist, ...]:
        judgement = judge()
        return nominated(judgement, finalists, marked(study.get_trials(deepcopy=False), judgement.space))

    def begin(finalist: Finalist) -> Trial:
        spare_confirmations(study)
        return begin_new(study, judge().given(finalist.row), {NOMINATION: finalist.number})

    return Confirmation(n, nominate, judge, begin)


def _judged(study: Study, assumptions: Assumptions, space: Space | None, model: Moment | None = None) -> Judgement:
    rest = Rest.of(study, assumptions)  # a value that contradicts the assumptions does not stop the others
    return judged(read_run(rest, space=space), assumptions, model=model, refuted=bool(rest.contradicting))


def nomination_of(trial: FrozenTrial) -> int | None:
    """The number of the finalist that a trial confirms; None if it confirms none."""
    number = trial.user_attrs.get(NOMINATION)
    return number if isinstance(number, int) and not isinstance(number, bool) and number > 0 else None


def marked(trials: Iterable[FrozenTrial], space: Space) -> tuple[Finalist, ...]:
    """The finalists that trials confirm, whether they have ended or not."""
    found: list[tuple[Any, int]] = []
    for trial in trials:
        number = nomination_of(trial)
        parameters = {**trial.system_attrs.get("fixed_params", {}), **trial.params}
        if number is not None:
            found.append((space.encode({n: v for n, v in parameters.items() if n in space}), number))
    rows = np.array([row for row, _ in found]).reshape(-1, space.dim)
    return finalists_of(rows, np.array([number for _, number in found], dtype=np.int64))
