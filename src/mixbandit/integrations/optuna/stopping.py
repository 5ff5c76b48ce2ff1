"""Stopping a study once enough is proven."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from optuna.trial import FrozenTrial, TrialState

from mixbandit._checks import positive, positive_int
from mixbandit.tuning import Assumptions, Space, StudyCertificate, certify
from mixbandit.tuning.assumptions import Stated
from mixbandit.tuning.runs import may_be_recommended

if TYPE_CHECKING:
    from optuna.study import Study


class StopOnGap:
    """A callback for `study.optimize`: stop once no configuration can beat the recommended one by `gap`.

    It checks after every `every` completed trials; `certificate` is the latest result. With constraints it waits for a
    feasible trial. State the same assumptions
    as for `mixbandit.certify`.
    """

    def __init__(
        self,
        gap: float,
        *,
        every: int = 10,
        assumptions: Assumptions | None = None,
        space: Space | None = None,
        **stated: Unpack[Stated],
    ) -> None:
        self.gap, self.every = positive(gap, "gap"), positive_int(every, "every")
        self._stated = Assumptions.of(assumptions, stated)
        self._stated.check_complete()  # report missing assumptions here
        self._space = space
        self._looked_at = 0
        self.certificate: StudyCertificate | None = None

    def __call__(self, study: Study, trial: FrozenTrial) -> None:
        """Check, every `every` completed trials."""
        trials = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        if len(trials) < self._looked_at + self.every:
            return
        self._looked_at = len(trials)
        if not may_be_recommended(trials):
            return
        self.certificate = certify(study, self._stated.towards(study.direction.name.lower()), space=self._space)
        if self.certificate.proven and self.certificate.trusted and self.certificate.gap <= self.gap:
            study.stop()
