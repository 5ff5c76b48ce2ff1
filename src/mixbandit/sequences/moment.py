"""A confidence sequence of the paper at one moment, as a value: model, rule and response with the data seen so far."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from mixbandit._checks import LARGEST_DATUM, Array, multipliers
from mixbandit._lazy import lazy, setting
from mixbandit.data import Data, Factor, observations_of
from mixbandit.errors import InvalidInput
from mixbandit.models import DataModel
from mixbandit.sequences.belief import Belief, Multiplier
from mixbandit.sequences.examined import Examined
from mixbandit.sequences.response import Response
from mixbandit.sequences.ridge_only import RidgeOnly
from mixbandit.sequences.rules import Rule
from mixbandit.sets import ConfidenceSet, Ellipsoid, Point, Tightest

# What statements rest on after shards were merged one by one.
MERGED = " that when shards were merged did not depend on what they contain"


class Moment(Examined, Belief[Any]):
    """Model, rule and response with the data of one moment; `after` returns the next."""

    t: int = setting("data.count", "How many rewards have been seen.")
    delta: float = setting("rule.delta")
    kind: str = setting("rule.kind")
    guarantee: str = setting("rule.guarantee")
    sigma: float | None = setting("rule.sigma")
    value_range: tuple[float, float] | None = setting("rule.value_range")
    theories: tuple[str, ...] = setting("rule.theories")
    weights = setting("rule.weights")
    sums_up = property(lambda self: self.rule.sums_up and self.response.linear)
    # The theorem is about linear rewards.
    regret_theorem_alpha = property(lambda self: self.rule.regret_theorem_alpha if self.response.linear else None)

    model: DataModel

    def __init__(
        self, model: DataModel, rule: Rule, response: Response, data: Data, beyond: tuple[int, Moment] | None = None
    ) -> None:
        self.model, self.rule, self.response, self.data = model, rule, response, data
        # After more rewards than this number, another moment, which has no data yet, learns all of them instead.
        self.beyond = beyond

    def __getstate__(self) -> dict[str, Any]:
        # Caches are rebuilt on demand.
        return {name: self.__dict__[name] for name in ("model", "rule", "response", "data", "beyond")}

    @lazy
    def alpha0(self) -> float:
        """The multiplier that works best for the closed form."""
        return self.rule.alpha0(self.data)

    @lazy
    def exact(self) -> ConfidenceSet:
        return self.rule.set(self.data).opened()

    def check_multiplier(self, alpha: Any) -> Multiplier:
        given, check = multipliers(alpha, "alpha"), self.rule.check_alpha
        return tuple(map(check, given)) if isinstance(given, tuple) else check(given)

    @lazy
    def closed_form(self) -> Ellipsoid:
        """The ellipsoid of the closed form at `alpha0`."""
        return self.rule.outer(self.data, self.alpha0)

    @lazy
    def estimate(self) -> ConfidenceSet:
        """Ridge regression's estimate at `alpha0`, as a set whose bounds are the estimates themselves."""
        return self.closed_form.scaled(0.0)

    def at(self, alpha: Multiplier | None) -> ConfidenceSet:
        if alpha is None:
            return self.exact
        if isinstance(alpha, tuple):
            return Tightest([self.at(each) for each in alpha])
        return self.closed_form if alpha == self.alpha0 else self.rule.outer(self.data, alpha)

    def sampled(self, rng: np.random.Generator, spread: float) -> Point:
        assert self.sigma is not None
        return Point(self.closed_form.sample(rng, self.sigma * spread))

    def stated(self) -> str:
        parts = [self.rule.stated()]
        if self.response.range is not None:
            parts.append(f"reward_range={self.response.range}")
        if self.response.deviation:
            parts.append(f"misspecification={self.response.deviation:g}")
        return ", ".join(parts)

    def after(self, rows: Array, rewards: Array, weights: Array | None = None) -> Self:
        if self.beyond is not None and self.t + len(rows) > self.beyond[0]:
            return self.moved_on().after(rows, rewards, weights)  # type: ignore[return-value]
        if weights is None:
            phi = self.model.directions(rows, LARGEST_DATUM)
        else:
            phi = self.model.directions(rows)
            self.model.check_learnable(phi, weights)
        data = self.rule.learn(self.data, rows, phi, rewards, weights)
        new = self.of_width(rows.shape[1]).with_data(data)
        if len(rows) != 1:
            new.latest = len(rows)
        return new

    def after_choice(self, row: Array, direction: Any, reward: Array) -> Self:
        if self.beyond is not None or self.model.dim is None:
            return self.after(row, reward)
        return self.with_data(self.rule.learn(self.data, row, direction, reward, None))

    def ridge_only(self) -> RidgeOnly | None:
        return self.rule.ridge_only()

    def recovered(self, data: Factor) -> Self:
        data.memory = self.data.memory
        return self.with_data(data)

    def summed_up(self, root: Array) -> Self:
        expected = root @ self.closed_form.centre
        return self.with_data(self.rule.learn(self.data, root, root, expected, None))

    def of_width(self, width: int) -> Self:
        model = self.model.of_width(width)
        if model is self.model:
            return self
        return type(self)(model, self.rule, self.response, self.data, self.beyond)

    def until(self, count: int, beyond: Moment) -> Moment:
        """The same, but after more than `count` rewards `beyond`, which has no data yet, learns all of them instead."""
        return Moment(self.model, self.rule, self.response, self.data, (count, beyond))

    def moved_on(self) -> Moment:
        """The moment that learns beyond this one, with the same data, which must be those of a kernel."""
        assert self.beyond is not None
        data = observations_of(self.data)
        assert data is not None
        plain = bool((data.weights == 1.0).all())
        return self.beyond[1].after(data.rows, data.rewards, None if plain else data.weights)

    def with_data(self, data: Data) -> Self:
        """The same settings with other data."""
        return type(self)(self.model, self.rule, self.response, data, self.beyond)

    def blank(self) -> Self:
        return self.with_data(self.rule.start())


def as_moment(belief: Belief[Any]) -> Moment:
    """The belief, if its model can be searched over a box; InvalidInput otherwise."""
    if not isinstance(belief, Moment):
        raise InvalidInput(f"{type(belief).__name__} is known at arms only: a box needs a model with gradients")
    return belief
