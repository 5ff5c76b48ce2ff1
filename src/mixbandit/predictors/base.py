"""The protocol of a predictor."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from mixbandit._checks import Array
from mixbandit.search import ArmsOffer
from mixbandit.storage import Family, Remembering


class Prediction(NamedTuple):
    """What is expected of each arm of an offer; of several offers, with a row for each."""

    mean: Array  # (K,)
    spread: Array  # (K,), a standard deviation of the mean


class Scored(NamedTuple):
    """A predictor after a reward, and what it had predicted of it."""

    after: Any  # the predictor
    mean: float
    spread: float


class Predictor(Remembering, abc.ABC):
    """A value that predicts rewards: `after` returns another one. It may be wrong; bounds come from elsewhere.

    To be stored it states its `kind`, the `schema` of its settings, and the form of what it has learnt, its `memory`.
    """

    family = Family("a predictor", "predictor")

    @abc.abstractmethod
    def predict(self, offer: ArmsOffer) -> Prediction:
        """What is expected of every arm of the offer."""

    @abc.abstractmethod
    def after(self, offer: ArmsOffer, arm: int, reward: float) -> Self:
        """The predictor after the reward of an arm. The offer may hold no more than that arm."""

    def means(self, offer: ArmsOffer) -> Array:
        """The means of `predict` alone, (K,), which may take less time."""
        return self.predict(offer).mean

    def contributions(self, offer: ArmsOffer) -> Array:
        """What each column of the context adds to the mean of each arm, (K, d); what no column adds is left out.

        By default nothing is said about columns.
        """
        assert offer.context is not None
        return np.zeros((len(offer), len(offer.context)))

    def scored(self, offer: ArmsOffer, arm: int, reward: float) -> Scored:
        """`after`, with what was predicted of the arm before."""
        mean, spread = self.predict(offer)
        return Scored(self.after(offer, arm, reward), float(mean[arm]), float(spread[arm]))

    def predict_many(self, offers: Sequence[ArmsOffer]) -> Prediction:
        """`predict` for several offers of the same arms in different contexts; the same, bit for bit."""
        found = [self.predict(offer) for offer in offers]
        return Prediction(np.array([each.mean for each in found]), np.array([each.spread for each in found]))

    def after_many(self, offers: Sequence[ArmsOffer], rewards: Sequence[float]) -> Self:
        """`after` for the rewards of several offers of one arm each, in order; the same, bit for bit."""
        new = self
        for offer, reward in zip(offers, rewards, strict=True):
            new = new.after(offer, 0, reward)
        return new

    def for_arms(self, count: int) -> Self:
        """The predictor once there are this many arms, by the numbers in `offer.arms`; by default the same."""
        return self

    def rescaled(self, context: Array, rows: Array) -> Self:
        """The predictor once a context that was x is Ax, for A = `context`, and a row Bφ, for B = `rows`.

        Both may have more rows than columns. At first contexts and rows are just 1, the intercept. By default nothing
        is done: what was learnt before then stands in the old scale.
        """
        return self
