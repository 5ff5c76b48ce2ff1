"""Thompson sampling: play what is best in a random draw from what is believed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mixbandit._checks import Array, nonnegative, positive_int
from mixbandit._schema import Since, integer, real, record
from mixbandit.bandits.rules.base import NO_BELIEF, ActingRule, View
from mixbandit.bandits.rules.predictions import OnPredictions, weighted
from mixbandit.errors import NoTheory
from mixbandit.search import TIE_TOLERANCE, ArmsOffer, Offer, Selection
from mixbandit.sequences import Belief

_MOST_DRAWS = 100_000


class Thompson(OnPredictions):
    """Thompson sampling: of predictions where the policy has a predictor, else of the parameter.

    With predictions, rewards of arms are drawn from N(m, (`scale`·s)²), independently. The probability of an arm is its
    share of `draws` such draws, and the choice is drawn from these shares: so it is exact.

    Without, θ̃ is drawn from N(θ̂_α, v²V_α⁻¹), v = `scale`·σ√(9 d ln(t/δ)), in round t, at α = α₀, and argmax φᵀθ̃ is
    played. How probable each arm was before the draw is not computed, so that choices have no probabilities.
    """

    name = "Thompson sampling"
    kind = "Thompson"
    schema = record({"scale": Since(real(nonnegative), 1.0), "draws": Since(integer(1, _MOST_DRAWS), 100)})
    randomised = True
    takes = "a MartingaleMixture, GeneralLambda or OFULSequence"

    def __init__(self, scale: float = 1.0, draws: int = 100) -> None:
        self.scale = nonnegative(scale, "scale")
        self.draws = positive_int(draws, "draws", _MOST_DRAWS)

    def check(self, belief: Belief[Any]) -> None:
        if belief is NO_BELIEF:
            return
        super().check(belief)
        if belief.model.dim is None:
            raise NoTheory(
                f"{self.name} draws a parameter vector, which kernel models do not have: use features, such as a "
                "RandomFourier map"
            )

    def select(self, view: View, offer: Offer, rng: Any) -> Selection:
        if view.predictor is not None:
            return super().select(view, offer, rng)
        found = offer.maximise(self.drawn(view, rng), rng)
        return Selection(found.probabilities, None, found.row, found.score, marginal=False)

    def select_each(self, view: View, offers: Sequence[Offer], rngs: Sequence[Any]) -> list[Selection]:
        if view.predictor is not None:
            return super().select_each(view, offers, rngs)
        return ActingRule.select_each(self, view, offers, rngs)

    def selected(self, round_: int, offer: ArmsOffer, mean: Array, spread: Array, rng: Any) -> Selection:
        moved = rng.standard_normal((-(-self.draws // 2), len(mean)))
        moved *= self.scale * spread
        # A draw and its mirror image are each distributed as they should be, and their errors cancel in part.
        scores = np.concatenate((mean + moved, mean - moved))[: self.draws]
        most = scores.max(axis=1, keepdims=True)
        best = scores >= most - TIE_TOLERANCE * np.abs(most)
        return weighted(offer, (best / best.sum(axis=1, keepdims=True)).mean(axis=0))

    def drawn(self, view: View, rng: Any) -> Any:
        """A random parameter, as a score."""
        belief, dim = view.belief, view.belief.model.dim
        assert dim is not None
        return belief.sampled(rng, self.scale * math.sqrt(9.0 * dim * math.log(view.round / belief.delta)))

    def worst_case(self, belief: Belief[Any]) -> str:
        if self.scale != 1.0:
            return "No a priori regret bound is known for Thompson sampling at another scale than 1."
        return "Its regret is O(d^{3/2}√T) up to logarithms (Agrawal & Goyal 2013); the constant is not computed."
