"""A yardstick: choose at random."""

from __future__ import annotations

from mixbandit.acquisition import Field
from mixbandit.confidence import ConfidenceSequence
from mixbandit.policies.base import Policy, Selection


class UniformSampling(Policy):
    """Play any action, uniformly. What it learns is reported like anybody's."""

    def _select(self, acting: ConfidenceSequence, field: Field, round_: int) -> Selection:
        return Selection(field.sample())

    def _worst_case(self) -> str:
        return "Its regret grows in proportion to time."
