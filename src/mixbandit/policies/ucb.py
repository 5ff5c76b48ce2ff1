"""Optimism: play what may be best."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from mixbandit._validation import multiplier, nonnegative
from mixbandit.acquisition import Field, Optimism
from mixbandit.actions import Region
from mixbandit.confidence import ConfidenceSequence, MartingaleMixture
from mixbandit.forecasters import Scaled
from mixbandit.policies.base import Policy, Selection


class UCB(Policy):
    """Play the action with the largest centre + `exploration`·half-width of its interval; at 1, the upper bound.

    `alpha` acts on closed-form bounds at that multiplier (AMM-UCB), None on the exact ones (CMM-UCB). `exploration`
    below 1 is greedier and often earns more; it changes how the policy acts, never what it reports: bounds,
    certificates and data-dependent regret bounds stay those of `sequence`, unscaled, and hold. What is lost are
    the regret bounds known in advance (`regret.worst_case`), which need exploration ≥ 1. `guarantee` says so, too.

    The sequence is used as it is, not copied. `strict`: rewards count in order of play. `keep_history` remembers
    what was chosen among what, for the regret bound in hindsight. `track_regret=False` spares the extra search that
    data-dependent regret bounds may need on a box. `quick` searches a box with less effort for what to play; what is
    reported is searched for as ever.
    """

    def __init__(
        self,
        sequence: ConfidenceSequence,
        actions: Region | ArrayLike | None = None,
        alpha: float | None = None,
        exploration: float = 1.0,
        *,
        rng: int | np.random.Generator | None = None,
        strict: bool = False,
        keep_history: bool = False,
        track_regret: bool = True,
        quick: bool = False,
    ) -> None:
        known: dict[str, Any] = {"rng": rng, "strict": strict, "keep_history": keep_history, "quick": quick}
        super().__init__(sequence, actions, track_regret=track_regret, **known)
        self.alpha = None if alpha is None else multiplier(alpha, "alpha")
        sequence._checked_alpha(self.alpha)
        self.exploration = nonnegative(exploration, "exploration")

    def _select(self, acting: ConfidenceSequence, field: Field, round_: int) -> Selection:
        found = field.maximise(Optimism(acting, self.alpha, self.exploration))
        return Selection(found, found.value if self.exploration == 1.0 else None)

    @property
    def _reporting_alpha(self) -> float | None:
        return self.alpha

    def _worst_case(self) -> str:
        if self.exploration < 1.0:
            return (
                f"With exploration={self.exploration:g} < 1 no regret bound is known in advance: an action that may "
                "be the best can be ignored for ever."
            )
        sequence = self.sequence
        exact = isinstance(sequence, MartingaleMixture) and isinstance(sequence.mixture, Scaled)
        if not exact or sequence.misspecification or self.alpha not in (None, sequence.alpha0):  # type: ignore[attr-defined]
            return "No regret bound known in advance is computed for these settings."
        factor = "" if self.exploration == 1.0 else f", times {0.5 * (1.0 + self.exploration):g}"
        return (
            f"`regret.worst_case` bounds the regret in advance{factor}, as far as the largest upper bound is found and "
            "rewards are told before the next choice."
        )

    def _parameters(self) -> dict[str, Any]:
        return {"alpha": self.alpha, "exploration": self.exploration}

    @classmethod
    def _from_parameters(
        cls, sequence: ConfidenceSequence, actions: Region | None, state: Mapping[str, Any], **options: Any
    ) -> Self:
        return cls(sequence, actions, state["alpha"], state["exploration"], **options)
