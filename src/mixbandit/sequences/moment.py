"""A confidence sequence at one moment, as a value: what policies act on and certificates are made from."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mixbandit._checks import LARGEST_DATUM, Array, as_vector, check_finite, positive_array
from mixbandit._lazy import lazy
from mixbandit.data import Data
from mixbandit.errors import InvalidInput
from mixbandit.sequences.models import FeatureModel
from mixbandit.sequences.refutation import Audit
from mixbandit.sequences.response import Bounds, Interval, Response
from mixbandit.sequences.rules import Rule
from mixbandit.sets import ConfidenceSet, Ellipsoid


class Moment:
    """Model, rule and response with the data of one moment; `after` returns the next.

    Nothing here raises or warns when assumptions are refuted: bounds then come from the opened set, and
    `is_empty`, `is_refuted` and `Bounds.contradicts` say so.
    """

    def __init__(self, model: FeatureModel, rule: Rule, response: Response, data: Data) -> None:
        self.model, self.rule, self.response, self.data = model, rule, response, data

    def __getstate__(self) -> dict[str, Any]:
        # Caches are rebuilt on demand.
        return {name: self.__dict__[name] for name in ("model", "rule", "response", "data")}

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

    @lazy
    def closed_form(self) -> Ellipsoid:
        """The ellipsoid of the closed form at `alpha0`."""
        return self.rule.outer(self.data, self.alpha0)

    def at(self, alpha: float | None) -> ConfidenceSet:
        """The exact set, or the ellipsoid of the closed form at a multiplier."""
        if alpha is None:
            return self.exact
        return self.closed_form if alpha == self.alpha0 else self.rule.outer(self.data, alpha)

    @lazy
    def is_empty(self) -> bool:
        """Whether no parameter is left."""
        return self.rule.is_empty(self.data)

    @lazy
    def noise_refuted(self) -> bool:
        """Whether rewards are noisier than stated, by a test at level δ."""
        return self.rule.noise_refuted(self.data)

    @property
    def is_refuted(self) -> bool:
        """Whether the data refute the assumptions, by either test."""
        return self.is_empty or self.noise_refuted

    @property
    def refutation(self) -> str | None:
        """What refutes the assumptions, in words; None if nothing does."""
        if self.is_empty:
            return "the confidence set is empty"
        return "the residuals are larger than sigma allows" if self.noise_refuted else None

    def audit(self) -> Audit:
        """What the data say about the assumptions."""
        return self.rule.audit(self.data, self.response)

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
        if sigma is None:
            check_finite(values, "rewards", LARGEST_DATUM)
            return self.after(rows, values)
        weights = np.broadcast_to(self.rule.weights(_levels(sigma, len(rows))), (len(rows),))
        check_finite(weights * values, "rewards", LARGEST_DATUM)
        return self.after(rows, values, weights)

    def after(self, rows: Array, rewards: Array, weights: Array | None = None) -> Moment:
        """The moment after rewards (n,) of action rows (n, dim_in), weighted by σ/σ_k, all already checked."""
        if weights is None:
            phi = self.model.directions(rows, LARGEST_DATUM)
        else:
            phi = self.model.directions(rows)
            check_finite(weights[:, None] * phi, "features", LARGEST_DATUM)
        return self.with_data(self.rule.learn(self.data, rows, phi, rewards, weights))

    def with_data(self, data: Data) -> Moment:
        """The same settings with other data."""
        return Moment(self.model, self.rule, self.response, data)


def seen_refuted(moment: Moment) -> bool:
    """Whether somebody has asked already, and the data do refute the assumptions."""
    known = vars(moment)
    return bool(known.get("is_empty") or known.get("noise_refuted"))


def _levels(sigma: ArrayLike, n: int) -> Array:
    """Noise levels as one number or one per reward."""
    levels = positive_array(sigma, "sigma")
    if levels.shape == (n, 1):  # a one-column DataFrame
        levels = levels[:, 0]
    if levels.shape not in ((), (n,)):
        raise InvalidInput(f"sigma must be one number or have shape ({n},), got {levels.shape}")
    return levels
