"""No preference at all."""

from __future__ import annotations

from typing import Any

from mixbandit._schema import record
from mixbandit.bandits.rules.base import ActingRule, View
from mixbandit.search import Offer, Selection
from mixbandit.sequences import Belief


class Uniform(ActingRule):
    """Play actions uniformly at random."""

    name = "uniform sampling"
    kind = "Uniformly"
    schema = record({})
    randomised = True

    def select(self, view: View, offer: Offer, rng: Any) -> Selection:
        return offer.uniform(rng)

    def worst_case(self, belief: Belief[Any]) -> str:
        return "Its regret grows linearly in time."
