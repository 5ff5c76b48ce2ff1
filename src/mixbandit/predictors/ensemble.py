"""Several predictors as one, weighted by how well each has predicted rewards so far.

| symbol | meaning |
|---|---|
| m_j, s_j | mean and spread that member j predicted of a reward before it came |
| s² = (s₀² + Σ e²/(1 + m̄²)) / (1 + n) | the noise level |
| p_j = N(r; m_j, s² + s_j²) | the density of the reward |
| w_j ← (1 − a)·w_j p_j/Σ_i w_i p_i + a·π_j | weights, from π_j on; with a > 0, the best member may change |
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from mixbandit._checks import Array, as_items, instance_of, nonnegative, positive, shown
from mixbandit._schema import count, list_of, optional, real, record
from mixbandit.errors import InvalidInput
from mixbandit.predictors.base import (
    Prediction,
    Predictor,
    Scored,
    checked_contributions,
    checked_prediction,
    noise_variance,
)
from mixbandit.search import ArmsOffer


def _as_prior(prior: Sequence[float], members: int) -> list[float]:
    """A weight for each member."""
    given = [positive(weight, "a weight of prior") for weight in as_items(prior, "prior", "a list of weights")]
    if len(given) != members:
        raise InvalidInput(f"prior must have a weight for each of {members} members, got {len(given)}")
    return given


def _means(member: Predictor, offer: ArmsOffer) -> Array:
    """What a member expects, which may be anything if users wrote it."""
    try:
        found = member.means(offer)
        fits = found.shape == (len(offer),)
    except AttributeError:
        fits = False
    if not fits:
        raise InvalidInput(f"{type(member).__name__}, a member of an Ensemble, must predict a mean for every arm")
    return found


def _share(value: float, name: str) -> float:
    return nonnegative(value, name, 1.0)


class Ensemble(Predictor):
    """A weighted mean of what its members predict, with the spread of the first.

    Weights follow Bayes' rule: a member counts as much as its predictions of rewards, each made before the reward was
    learnt, were good. They begin with `prior`, or even, and after every reward a `share` of them goes back to that, so
    that the best member may change (Herbster & Warmuth 1998). `noise` is the noise level that is expected before any
    reward, and counts as one reward.
    """

    kind = "Ensemble"
    schema = record(
        {
            "members": list_of(Predictor.family, least=1),
            "noise": real(positive),
            "share": real(_share),
            "prior": optional(list_of(real(positive))),
        }
    )
    memory = record({"weights": list_of(real(nonnegative)), "errors": real(nonnegative), "count": count})

    def __init__(
        self,
        members: Sequence[Predictor],
        noise: float = 0.5,
        share: float = 0.0001,
        prior: Sequence[float] | None = None,
    ) -> None:
        given = as_items(members, "members", "a list of predictors")
        if not given:
            raise InvalidInput("an Ensemble needs at least one member, got none")
        for member in given:
            instance_of(member, Predictor, "a member", "a Predictor such as RidgePerArm()")
        self.members: tuple[Predictor, ...] = tuple(given)
        self.noise, self.share = positive(noise, "noise"), _share(share, "share")
        self.prior = None if prior is None else _as_prior(prior, len(given))
        first = self.prior or [1.0] * len(given)
        self._first = [weight / sum(first) for weight in first]
        self.weights: list[float] = self._first
        self.errors, self.count = 0.0, 0

    def predict(self, offer: ArmsOffer) -> Prediction:
        first, *others = self.members
        mean, spread = checked_prediction(first.predict(offer), (len(offer),))
        return Prediction(self._mixed(mean, [_means(other, offer) for other in others]), spread)

    def means(self, offer: ArmsOffer) -> Array:
        mean, *others = (_means(member, offer) for member in self.members)
        return self._mixed(mean, others)

    def contributions(self, offer: ArmsOffer) -> Array:
        each = [checked_contributions(member.contributions(offer), offer) for member in self.members]
        return np.asarray(sum(weight * part for weight, part in zip(self.weights, each, strict=True)))

    def predict_many(self, offers: Sequence[ArmsOffer]) -> Prediction:
        first, *others = self.members
        means, spreads = checked_prediction(first.predict_many(offers), (len(offers), len(offers[0])))
        return Prediction(
            np.array([
                self._mixed(mean, [_means(other, offer) for other in others])
                for mean, offer in zip(means, offers, strict=True)
            ]),
            spreads,
        )  # fmt: skip

    def after(self, offer: ArmsOffer, arm: int, reward: float) -> Self:
        return self._scored(offer, arm, reward)[0]

    def scored(self, offer: ArmsOffer, arm: int, reward: float) -> Scored:
        new, mean, found = self._scored(offer, arm, reward)
        return Scored(new, mean, found[0].spread)

    def for_arms(self, count: int) -> Self:
        return self._with(members=tuple(member.for_arms(count) for member in self.members))

    def rescaled(self, context: Array, rows: Array) -> Self:
        return self._with(members=tuple(member.rescaled(context, rows) for member in self.members))

    def _mixed(self, first: Array, others: Sequence[Array]) -> Array:
        own, *weights = self.weights
        mean = own * first
        for weight, other in zip(weights, others, strict=True):
            mean += weight * other
        return mean

    def _scored(self, offer: ArmsOffer, arm: int, reward: float) -> tuple[Self, float, list[Scored]]:
        """The next value, the mean that was predicted, and what the members say."""
        found = [member.scored(offer, arm, reward) for member in self.members]
        noise2 = noise_variance(self.noise, self.errors, self.count)
        logs, mean, spread = [], 0.0, 0.0
        for weight, (_, expected, own) in zip(self.weights, found, strict=True):
            variance, error = noise2 + own * own, reward - expected
            logs.append(-0.5 * (error * error / variance + math.log(variance)))
            mean += weight * expected
            spread += weight * own
        top = max(logs)
        likely = [weight * math.exp(log - top) for weight, log in zip(self.weights, logs, strict=True)]
        total = sum(likely)
        if not total:  # the only members with a weight predicted so badly that it is lost to rounding
            likely, total = self.weights, 1.0
        kept, back = (1.0 - self.share) / total, self.share
        error = reward - mean
        new = self._with(
            members=tuple(each.after for each in found),
            weights=[kept * each + back * first for each, first in zip(likely, self._first, strict=True)],
            errors=self.errors + error * error * noise2 / (noise2 + spread * spread),
            count=self.count + 1,
        )
        return new, mean, found

    def recalled(self, memory: Mapping[str, Any]) -> Self:
        weights = memory["weights"]
        if len(weights) != len(self.members) or not abs(sum(weights) - 1.0) <= 1e-6:
            raise InvalidInput(f"weights must be {len(self.members)} numbers with sum 1, got {shown(weights)}")
        return super().recalled(memory)
