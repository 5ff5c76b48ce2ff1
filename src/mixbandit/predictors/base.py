"""The protocol of a predictor."""

from __future__ import annotations

import abc
from typing import NamedTuple, Self

from mixbandit._checks import Array
from mixbandit.search import ArmsOffer
from mixbandit.storage import Family, Remembering


class Prediction(NamedTuple):
    """What is expected of each arm of an offer."""

    mean: Array  # (K,)
    spread: Array  # (K,), a standard deviation of the mean


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
