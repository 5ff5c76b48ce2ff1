"""The protocol of a predictor."""

from __future__ import annotations

import abc
import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from mixbandit._checks import Array, shown
from mixbandit.errors import InvalidInput
from mixbandit.search import ArmsOffer
from mixbandit.storage import Family, Remembering


class Prediction(NamedTuple):
    """What is expected of each arm of an offer; of several offers, with a row for each."""

    mean: Array  # (K,)
    spread: Array  # (K,), a standard deviation of the mean


def checked_prediction(found: Any, shape: tuple[int, ...]) -> Prediction:
    """A prediction of this shape; InvalidInput if it is something else, or not finite."""
    try:
        mean, spread = found
        fits = isinstance(found, Prediction) and mean.shape == shape == spread.shape
    except (AttributeError, TypeError, ValueError):
        fits = False
    # NaN and infinity in either make the product of both so; a product that overflows is looked at again.
    if not fits or not (math.isfinite(np.vdot(mean, spread)) or np.isfinite(found).all()):
        raise InvalidInput(
            f"a predictor must return a Prediction of {' × '.join(map(str, shape))} finite means and spreads, got "
            f"{shown(found)}"
        )
    checked: Prediction = found
    return checked


def checked_contributions(found: Any, offer: ArmsOffer) -> Array:
    """Contributions (K, d) of the columns of the context; InvalidInput if they are something else, or not finite."""
    shape = (len(offer), 0 if offer.context is None else len(offer.context))
    if getattr(found, "shape", None) != shape or not np.isfinite(found).all():
        raise InvalidInput(f"contributions must be {shape[0]} × {shape[1]} finite numbers, got {shown(found)}")
    return np.asarray(found, dtype=np.float64)


def noise_variance(noise: float, errors: float, count: int) -> float:
    """s² = (s₀² + Σ e²/(1 + w))/(1 + n): the level that was expected counts as one reward."""
    return (noise**2 + errors) / (1.0 + count)


class Scored(NamedTuple):
    """A predictor after a reward, and what it had predicted of it."""

    after: Any  # the predictor
    mean: float
    spread: float


class Predictor(Remembering, abc.ABC):
    """A value that predicts rewards: `after` returns another one. It may be wrong; bounds come from elsewhere.

    A ContextualBandit takes rewards from their range to [0, 1] before a predictor learns them.

    To be stored it states its `kind`, the `schema` of its settings, and the form of what it has learnt, its `memory`.
    """

    family = Family("a predictor", "predictor")

    def _with(self, **changed: Any) -> Self:
        new = object.__new__(type(self))
        vars(new).update(vars(self), **changed)
        return new

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
