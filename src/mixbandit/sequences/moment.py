"""A confidence sequence at one moment, as a value: what policies act on and certificates are made from."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mixbandit._checks import LARGEST_DATUM, Array, as_vector, check_finite, check_within, multipliers, positive_array
from mixbandit._lazy import lazy
from mixbandit.data import Data, Observations
from mixbandit.errors import InvalidInput
from mixbandit.models import Model
from mixbandit.sequences.examined import Examined
from mixbandit.sequences.response import Bounds, Interval, Response
from mixbandit.sequences.rules import Rule
from mixbandit.sets import ConfidenceSet, Ellipsoid, Tightest

# What statements rest on after shards were merged one by one.
MERGED = " that when shards were merged did not depend on what they contain"
Multiplier = float | tuple[float, ...]
"""One multiplier of a closed form, or several, of which the best counts in every direction."""


class Moment(Examined):
    """Model, rule and response with the data of one moment; `after` returns the next.

    Nothing here raises or warns when assumptions are refuted: bounds then come from the opened set, and
    `is_empty`, `is_refuted` and `Bounds.contradicts` say so.
    """

    def __init__(
        self, model: Model, rule: Rule, response: Response, data: Data, beyond: tuple[int, Moment] | None = None
    ) -> None:
        self.model, self.rule, self.response, self.data = model, rule, response, data
        # After more rewards than this number, another moment, which has no data yet, learns all of them instead.
        self.beyond = beyond

    def __getstate__(self) -> dict[str, Any]:
        # Caches are rebuilt on demand.
        return {name: self.__dict__[name] for name in ("model", "rule", "response", "data", "beyond")}

    @property
    def t(self) -> int:
        """How many rewards have been seen."""
        return self.data.count

    @lazy
    def alpha0(self) -> float:
        """The multiplier that works best for the closed form."""
        return self.rule.alpha0(self.data)

    @lazy
    def exact(self) -> ConfidenceSet:
        """The exact set, opened if it is empty."""
        return self.rule.set(self.data).opened()

    def check_multiplier(self, alpha: Any) -> Multiplier:
        """One multiplier of the closed form, or a list of them, checked."""
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
        """The exact set, or the closed form at a multiplier, or the best of those at several."""
        if alpha is None:
            return self.exact
        if isinstance(alpha, tuple):
            return Tightest([self.at(each) for each in alpha])
        return self.closed_form if alpha == self.alpha0 else self.rule.outer(self.data, alpha)

    def stated(self) -> str:
        """The assumptions, for messages."""
        parts = [self.rule.stated()]
        if self.response.range is not None:
            parts.append(f"reward_range={self.response.range}")
        if self.response.deviation:
            parts.append(f"misspecification={self.response.deviation:g}")
        return ", ".join(parts)

    def directions(self, actions: Array) -> Any:
        """Directions of action rows that were checked."""
        return self.model.directions(actions)

    def upper(self, directions: Any, within: ConfidenceSet | None = None) -> Bounds:
        """Upper bounds on expected rewards, from the exact set or a larger one."""
        return self.response.upper((within or self.exact).maximum(directions))

    def lower(self, directions: Any, within: ConfidenceSet | None = None) -> Bounds:
        """Lower bounds on expected rewards, from the exact set or a larger one."""
        return self.response.lower((within or self.exact).maximum(-directions))

    def interval(self, directions: Any, within: ConfidenceSet | None = None) -> Interval:
        """Lower and upper bounds on expected rewards, cheaper than one after the other."""
        return self.response.interval(*(within or self.exact).interval(directions))

    def learnt(self, actions: ArrayLike, rewards: ArrayLike, sigma: ArrayLike | None = None) -> Moment:
        """The moment after these rewards; the arguments are checked first."""
        rows = self.model.checked(actions)
        values = as_vector(rewards, len(rows), "rewards")
        check_within(values, self.rule.value_range, "rewards")
        if sigma is None:
            check_finite(values, "rewards", LARGEST_DATUM)
            return self.after(rows, values)
        weights = np.broadcast_to(self.rule.weights(_levels(sigma, len(rows))), (len(rows),))
        check_finite(weights * values, "rewards", LARGEST_DATUM)
        return self.after(rows, values, weights)

    def after(self, rows: Array, rewards: Array, weights: Array | None = None) -> Moment:
        """The moment after rewards (n,) of action rows (n, dim_in), weighted by σ/σ_k, all already checked."""
        if self.beyond is not None and self.t + len(rows) > self.beyond[0]:
            return self.moved_on().after(rows, rewards, weights)
        if weights is None:
            phi = self.model.directions(rows, LARGEST_DATUM)
        else:
            phi = self.model.directions(rows)
            self.model.check_learnable(phi, weights)
        data = self.rule.learn(self.data, rows, phi, rewards, weights)
        return self.of_width(rows.shape[1]).with_data(data)

    def after_choice(self, row: Array, direction: Any, reward: Array) -> Moment:
        """The moment after the reward (1,) of one action row (1, dim_in) whose direction is known to be learnable."""
        if self.beyond is not None:
            return self.after(row, reward)
        return self.of_width(row.shape[1]).with_data(self.rule.learn(self.data, row, direction, reward, None))

    def of_width(self, width: int) -> Moment:
        """For action rows of this length, where the model takes any."""
        model = self.model.of_width(width)
        return self if model is self.model else Moment(model, self.rule, self.response, self.data, self.beyond)

    def until(self, count: int, beyond: Moment) -> Moment:
        """The same, but after more than `count` rewards `beyond`, which has no data yet, learns all of them instead."""
        return Moment(self.model, self.rule, self.response, self.data, (count, beyond))

    def moved_on(self) -> Moment:
        """The moment that learns beyond this one, with the same data, which must be those of a kernel."""
        assert self.beyond is not None
        assert isinstance(self.data, Observations)
        data, plain = self.data, bool((self.data.weights == 1.0).all())
        return self.beyond[1].after(data.rows, data.rewards, None if plain else data.weights)

    def with_data(self, data: Data) -> Moment:
        """The same settings with other data."""
        return Moment(self.model, self.rule, self.response, data, self.beyond)


def seen_refuted(moment: Moment) -> bool:
    """Whether somebody has asked already, and the data do refute the assumptions."""
    known = vars(moment)
    return bool(known.get("is_empty") or known.get("noise_refuted") or known.get("suspect_refuted"))


def _levels(sigma: ArrayLike, n: int) -> Array:
    """Noise levels as one number or one per reward."""
    levels = positive_array(sigma, "sigma")
    if levels.shape == (n, 1):  # a one-column DataFrame
        levels = levels[:, 0]
    if levels.shape not in ((), (n,)):
        raise InvalidInput(f"sigma must be one number or have shape ({n},), got {levels.shape}")
    return levels
