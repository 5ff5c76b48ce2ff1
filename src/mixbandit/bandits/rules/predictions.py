"""Rules that act on what a predictor expects. Nothing is proven about predictions; they often earn more than bounds do.

| symbol | meaning |
|---|---|
| m_k, s_k | the mean and the spread that are predicted for arm k |
| K | how many arms are offered |
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any

import numpy as np

from mixbandit._checks import Array, nonnegative, positive
from mixbandit._schema import real, record
from mixbandit.bandits.rules.base import ActingRule, View
from mixbandit.search import TIE_TOLERANCE, ArmsOffer, Offer, Selection, Shares


class OnPredictions(ActingRule, abc.ABC):
    """Rules that need no more than a mean and a spread of each arm."""

    @abc.abstractmethod
    def selected(self, round_: int, offer: ArmsOffer, mean: Array, spread: Array, rng: Any) -> Selection:
        """What to play, given means and spreads (K,)."""

    def select(self, view: View, offer: Offer, rng: Any) -> Selection:
        mean, spread = view.predict(offer)
        arms: Any = offer  # the view would have refused a box
        return self.selected(view.round, arms, mean, spread, rng)

    def select_each(self, view: View, offers: Sequence[Offer], rngs: Sequence[Any]) -> list[Selection]:
        means, spreads = view.predict_many(offers)
        each: Any = zip(offers, means, spreads, rngs, strict=True)
        return [self.selected(view.round + i, *given) for i, given in enumerate(each)]


class Optimistic(OnPredictions):
    """Play the largest m + `scale`·s; at 0, the largest mean."""

    name = "optimism about predictions"
    kind = "Optimistic"
    schema = record({"scale": real(nonnegative)})

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = nonnegative(scale, "scale")

    def selected(self, round_: int, offer: ArmsOffer, mean: Array, spread: Array, rng: Any) -> Selection:
        return offer.largest(mean + (spread if self.scale == 1.0 else self.scale * spread))


class Greedy(OnPredictions):
    """Play the largest predicted mean."""

    name = "greed"
    kind = "Greedy"
    schema = record({})

    def selected(self, round_: int, offer: ArmsOffer, mean: Array, spread: Array, rng: Any) -> Selection:
        return offer.largest(mean)


def _exponent(value: float, where: str) -> float:
    return nonnegative(value, where, 1.0)


class InverseGap(OnPredictions):
    """Play arm k with probability 1/(K + γΔ), Δ being how far m_k is below the best, which has the rest (SquareCB).

    In round t, γ = `gamma`·t^`exponent`, for rewards in [0, 1] (Foster & Rakhlin 2020).
    """

    name = "inverse gap weighting"
    kind = "InverseGap"
    schema = record({"gamma": real(positive), "exponent": real(_exponent)})
    randomised = True

    def __init__(self, gamma: float = 10.0, exponent: float = 0.5) -> None:
        self.gamma, self.exponent = positive(gamma, "gamma"), nonnegative(exponent, "exponent", 1.0)

    def selected(self, round_: int, offer: ArmsOffer, mean: Array, spread: Array, rng: Any) -> Selection:
        most = float(mean.max())
        gaps = most - mean
        best = gaps <= TIE_TOLERANCE * abs(most)
        gaps[best] = 0.0
        shares = 1.0 / (len(mean) + self.gamma * round_**self.exponent * gaps)
        shares[best] += (1.0 - shares.sum()) / np.count_nonzero(best)  # so that arms that tie are as probable
        return weighted(offer, shares)


def weighted(offer: ArmsOffer, shares: Array) -> Selection:
    """A selection by the probabilities of the arms offered."""
    found = Shares.checked(shares, len(offer))
    return Selection(found if offer.places is None else found.among(offer.places, offer.whole))
