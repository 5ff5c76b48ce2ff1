"""Stopping a study once enough is proven."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Unpack

from optuna.trial import FrozenTrial, TrialState

from mixbandit._checks import positive, positive_int, shown
from mixbandit.errors import AssumptionsRefutedWarning, InvalidInput, MixbanditError, warn_user
from mixbandit.integrations.optuna.certifying import certify_study
from mixbandit.integrations.optuna.saying import Said
from mixbandit.integrations.optuna.storage import identity
from mixbandit.tuning import Assumptions, Parameter, Space, StudyCertificate
from mixbandit.tuning.assumptions import Stated
from mixbandit.tuning.ledgers import refuted_in_words
from mixbandit.tuning.marks import may_be_recommended

if TYPE_CHECKING:
    from optuna.study import Study

_logger = logging.getLogger(__name__)


class Pace:
    """When a callback is due: after every `every` completed trials of a study."""

    def __init__(self, every: int) -> None:
        self.every = positive_int(every, "every")
        self._looked_at: tuple[Any, int] = (None, 0)  # the study, and how many trials it had

    def is_due(self, study: Study, complete: int) -> bool:
        """Whether it is due after `complete` completed trials; if so, it counts as done."""
        before, seen = self._looked_at
        due = complete >= (seen if before == identity(study) else 0) + self.every
        if due:
            self._looked_at = (identity(study), complete)
        return due


class StopOnGap:
    """A callback for `study.optimize`: stop once no configuration can beat the recommended one by `gap`.

    It checks after every `every` completed trials; `certificate` is the latest result. State the same assumptions as
    for `mixbandit.certify`. With constraints it waits for a feasible trial. It never ends a study with an error: once
    values refute the assumptions, or if the study cannot be certified, it warns once and lets the study run on.
    """

    def __init__(
        self,
        gap: float,
        *,
        every: int = 10,
        assumptions: Assumptions | None = None,
        space: Space | dict[str, Parameter] | None = None,
        **stated: Unpack[Stated],
    ) -> None:
        self.gap, self._pace = positive(gap, "gap"), Pace(every)
        self._stated = Assumptions.of(assumptions, stated)
        self._stated.check_rows_vary()
        self._stated.check_complete()  # report missing assumptions here
        self._space = as_space(space)
        self._said = Said()
        self.certificate: StudyCertificate | None = None

    @property
    def every(self) -> int:
        return self._pace.every

    def __call__(self, study: Study, trial: FrozenTrial) -> None:
        """Check, every `every` completed trials."""
        trials = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        if not self._pace.is_due(study, len(trials)) or not may_be_recommended(trials):
            return
        stated = self._stated.towards(study.directions[0].name.lower())
        try:
            found = self.certificate = certify_study(study, stated, self._space)
        except MixbanditError as error:
            if self._said.is_new(study, type(error).__name__):
                _logger.warning(f"StopOnGap cannot certify the study, so it will not stop it: {error}")
            return
        if not found.trusted and self._said.is_new(study, "refuted"):
            warn_user(refuted_in_words(found, found.assumptions), AssumptionsRefutedWarning)
        if found.proven and found.trusted and found.gap <= self.gap:
            study.stop()


def as_space(space: Space | dict[str, Parameter] | None) -> Space | None:
    """A space, given as such or as its parameters."""
    found = Space(space) if isinstance(space, dict) else space
    if found is not None and not isinstance(found, Space):
        raise InvalidInput(f"space must be a Space or a dict of parameters, got {shown(space)}")
    return found
