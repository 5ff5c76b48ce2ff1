"""Information-directed sampling.

| symbol | meaning |
|---|---|
| Δ(a) = max_{a'} UCB(a') − LCB(a) | a bound on the regret of a |
| w = φᵀV_α⁻¹φ, I(a) = ln(1 + w) | the information gained from a |
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mixbandit._checks import Array
from mixbandit._schema import record
from mixbandit.bandits.rules.base import ActingRule, View
from mixbandit.search import InformationPerRegret, Offer, Selection, Selections, best_arms


class LeastRegretPerInformation(ActingRule):
    """Play argmin Δ²/I with OFUL's bounds (Kirschner & Krause 2018): little regret for much information.

    On a box this takes two searches: the largest upper bound, then 2 ln Δ − ln I.
    """

    name = "information-directed sampling"
    kind = "LeastRegretPerInformation"
    schema = record({})
    bounds_optimum = True
    takes = "an OFULSequence"

    def select(self, view: View, offer: Offer, rng: Any) -> Selection:
        ellipsoid = view.belief.closed_form
        optimum = offer.maximise(ellipsoid, rng).score
        return offer.maximise(InformationPerRegret(ellipsoid, optimum), rng)._replace(optimum=optimum)

    def select_many(self, view: View, rows: Array, directions: Any, arms: int, rng: Any) -> Selections:
        ellipsoid = view.belief.closed_form
        optimum = ellipsoid.maximum(directions).reshape(-1, arms).max(axis=1)
        score = InformationPerRegret(ellipsoid, np.repeat(optimum, arms))
        return Selections(best_arms(score, directions, arms)[0], optimum)
