"""Ridge regression as a predictor: one per arm, or one for all arms by their features.

| symbol | meaning | shape |
|---|---|---|
| λ | the ridge | |
| s² = (s₀² + Σ e²/(1+w)) / (1 + n) | the noise level, from one-step errors e with squared widths w | |

The prediction of a direction φ is φᵀθ̂, with spread s√w, w = φᵀ(ΦᵀΦ + λI)⁻¹φ.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from mixbandit._checks import Array, nonnegative, positive
from mixbandit._lazy import lazy
from mixbandit._schema import count, real, record
from mixbandit.data import RIDGES, Residual, Ridges
from mixbandit.errors import InvalidInput
from mixbandit.predictors.base import Prediction, Predictor, Scored, noise_variance
from mixbandit.search import ArmsOffer

# Its matrix takes 800 MB.
_MOST_FEATURES = 10_000


class _Ridge(Predictor, abc.ABC):
    """What both have in common: the noise level, and how they are stored."""

    schema = record({"ridge": real(positive), "noise": real(positive)})
    memory = record({"ridges": RIDGES, "errors": real(nonnegative), "count": count})

    def __init__(self, ridge: float = 0.1, noise: float = 0.5) -> None:
        """`noise` is the noise level that is expected before any reward; it counts as one reward."""
        self.ridge, self.noise = positive(ridge, "ridge"), positive(noise, "noise")
        # At first the intercept is all that rows have.
        self.ridges, self.errors, self.count = Ridges(self.ridge, 1).extended(1), 0.0, 0

    @lazy
    def spread(self) -> float:
        """The noise level s."""
        return math.sqrt(noise_variance(self.noise, self.errors, self.count))

    def _learnt_one(self, number: int, row: Array, reward: float) -> tuple[Self, Residual]:
        new = object.__new__(type(self))
        new.ridge, new.noise, new.count = self.ridge, self.noise, self.count + 1
        new.ridges, residual = self.ridges.learnt(number, row, reward)
        new.errors = self.errors + residual.share
        return new, residual

    def _scored_one(self, number: int, row: Array, reward: float) -> Scored:
        new, (error, width2) = self._learnt_one(number, row, reward)
        return Scored(new, reward - error, self.spread * math.sqrt(width2))

    def _learnt(self, numbers: Sequence[int], rows: Sequence[Array], rewards: Sequence[float]) -> Self:
        new = object.__new__(type(self))
        new.ridge, new.noise, new.count, errors = self.ridge, self.noise, self.count + len(rewards), self.errors
        new.ridges, found = self.ridges.stepped(numbers, rows, rewards)
        for residual in found:  # one by one: a sum would differ in the last digit
            errors += residual.share
        new.errors = errors
        return new

    def _mapped(self, change: Array) -> Self:
        if change.shape[1] != self.ridges.dim:
            raise InvalidInput(
                f"a predictor that has learnt from rows of {self.ridges.dim} features cannot go on with rows of "
                f"{change.shape[1]}: pass a new one"
            )
        if len(change) > _MOST_FEATURES:
            raise InvalidInput(f"a ridge regression takes up to {_MOST_FEATURES:,} features, got {len(change):,}")
        return self._with(ridges=self.ridges.mapped(change))

    def learnt(self) -> dict[str, Any]:
        return {**super().learnt(), "ridges": self.ridges.state_dict()}

    def recalled(self, memory: Mapping[str, Any]) -> Self:
        ridges = Ridges.from_state_dict(memory["ridges"])
        if ridges.alpha != self.ridge:
            raise InvalidInput(f"ridges.alpha must be the ridge, {self.ridge:g}, got {ridges.alpha:g}")
        return super().recalled({**memory, "ridges": ridges})


class RidgePerArm(_Ridge):
    """A ridge regression of rewards on contexts for every arm, from that arm's rewards alone."""

    kind = "RidgePerArm"

    def predict(self, offer: ArmsOffer) -> Prediction:
        context, arms = in_context(offer)
        ridges = self.ridges
        mean, w = ridges.measured(context, None if len(arms) == len(ridges) else arms)
        spread = np.sqrt(w, w)
        spread *= self.spread
        return Prediction(mean, spread)

    def predict_many(self, offers: Sequence[ArmsOffer]) -> Prediction:
        contexts, arms = np.array([in_context(offer)[0] for offer in offers]), offers[0].arms
        assert arms is not None
        mean, w = self.ridges.measured_many(contexts, None if len(arms) == len(self.ridges) else arms)
        return Prediction(mean, self.spread * np.sqrt(w))

    def after(self, offer: ArmsOffer, arm: int, reward: float) -> Self:
        context, arms = in_context(offer)
        return self._learnt_one(int(arms[arm]), context, reward)[0]

    def scored(self, offer: ArmsOffer, arm: int, reward: float) -> Scored:
        context, arms = in_context(offer)
        return self._scored_one(int(arms[arm]), context, reward)

    def means(self, offer: ArmsOffer) -> Array:
        context, arms = in_context(offer)
        return self.ridges.means(context, None if len(arms) == len(self.ridges) else arms)

    def after_many(self, offers: Sequence[ArmsOffer], rewards: Sequence[float]) -> Self:
        told = [in_context(offer) for offer in offers]
        return self._learnt([int(arms[0]) for _, arms in told], [context for context, _ in told], rewards)

    def contributions(self, offer: ArmsOffer) -> Array:
        context, arms = in_context(offer)
        return np.asarray(self.ridges.thetas[arms] * context)

    def for_arms(self, count: int) -> Self:
        return self._with(ridges=self.ridges.extended(max(count - len(self.ridges), 0)))

    def rescaled(self, context: Array, rows: Array) -> Self:
        return self._mapped(context)


class SharedRidge(_Ridge):
    """One ridge regression of rewards on rows, which know context and arm: what one arm teaches helps the others."""

    kind = "SharedRidge"

    def predict(self, offer: ArmsOffer) -> Prediction:
        mean, w = self.ridges.measured_rows(0, self._rows(offer))
        return Prediction(mean, self.spread * np.sqrt(w))

    def after(self, offer: ArmsOffer, arm: int, reward: float) -> Self:
        return self._learnt_one(0, self._rows(offer)[arm], reward)[0]

    def scored(self, offer: ArmsOffer, arm: int, reward: float) -> Scored:
        return self._scored_one(0, self._rows(offer)[arm], reward)

    def after_many(self, offers: Sequence[ArmsOffer], rewards: Sequence[float]) -> Self:
        return self._learnt([0] * len(offers), [self._rows(offer)[0] for offer in offers], rewards)

    def means(self, offer: ArmsOffer) -> Array:
        return np.asarray(self._rows(offer) @ self.ridges.thetas[0])

    def contributions(self, offer: ArmsOffer) -> Array:
        if offer.context is None:
            return super().contributions(offer)
        # A row has the products of each column of the context with each feature of the arm.
        parts = self._rows(offer) * self.ridges.thetas[0]
        return np.asarray(parts.reshape(len(offer), len(offer.context), -1).sum(axis=2))

    def _rows(self, offer: ArmsOffer) -> Array:
        rows = offer.rows
        if rows.shape[1] != self.ridges.dim:
            raise InvalidInput(f"SharedRidge knows rows of {self.ridges.dim} features, and not of {rows.shape[1]}")
        return rows

    def rescaled(self, context: Array, rows: Array) -> Self:
        if self.ridges.dim == 1 < rows.shape[1]:  # rows end with the number of the arm
            raise InvalidInput("SharedRidge needs arms with features, as arms={label: features}; without, RidgePerArm")
        return self._mapped(rows)


def in_context(offer: ArmsOffer) -> tuple[Array, Any]:
    """The context of an offer, and the numbers of its arms."""
    context, arms = offer.context, offer.arms
    if context is None or arms is None:
        raise InvalidInput("this predictor knows numbered arms in a context: use it in a ContextualBandit")
    return context, arms
