"""Stopping a study once enough is proven."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optuna.trial import FrozenTrial, TrialState

from mixbandit._validation import positive, positive_int
from mixbandit.certify import StudyCertificate, certify
from mixbandit.integrations.optuna.following import keywords
from mixbandit.objective import Objective
from mixbandit.space import Space

if TYPE_CHECKING:
    from optuna.study import Study


class StopOnGap:
    """A callback for `study.optimize`: stop once no configuration can be better than the recommended one by `gap`.

    It looks after every `every` completed trials. `certificate` is what it saw last. State the same about values as for
    `mixbandit.certify`.
    """

    def __init__(
        self,
        gap: float,
        *,
        every: int = 10,
        reward_range: tuple[float, float] | None = None,
        samples: int | None = None,
        sigma: float | None = None,
        norm_bound: float | None = None,
        delta: float = 0.05,
        misspecification: float = 0.0,
        space: Space | None = None,
    ) -> None:
        self.gap, self.every = positive(gap, "gap"), positive_int(every, "every")
        self._stated = Objective(reward_range, samples, sigma, norm_bound, delta, misspecification)
        _ = self._stated.noise, self._stated.norm  # what is missing is said here
        self._space = space
        self._looked_at = 0
        self.certificate: StudyCertificate | None = None

    def __call__(self, study: Study, trial: FrozenTrial) -> None:
        """Look, now and then."""
        complete = len(study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)))
        if complete < self._looked_at + self.every:
            return
        self._looked_at = complete
        self.certificate = certify(study, space=self._space, **keywords(self._stated))
        if self.certificate.proven and self.certificate.trusted and self.certificate.gap <= self.gap:
            study.stop()
