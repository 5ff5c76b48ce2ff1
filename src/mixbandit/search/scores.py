"""Scores: functions of directions that are maximised over actions, on the same scale as their bounds.

A score is anything with the `maximum`, `support` and `ceiling` of a confidence set. The upper bound is the set itself;
a closed form with scaled width is a smaller ellipsoid (`scaled`); the others are here. Known ranges do not cap scores:
arms beyond the cap would tie, and a box would have no gradient there.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from mixbandit._checks import Array
from mixbandit.sets import INFORMATIVE, Ball, ConfidenceSet, Form, Maximum, Searched


class Score(Protocol):
    """What a search maximises; see `sets.base.ConfidenceSet`."""

    @property
    def screens_from(self) -> int: ...

    @property
    def evaluates(self) -> int: ...

    def best(self, directions: Any, tie: float) -> tuple[int, float] | None: ...

    def shell(self) -> Ball | None: ...

    def form(self) -> Form | None: ...

    def maximum(self, directions: Any) -> Array: ...

    def support(self, directions: Any) -> Maximum: ...

    def ceiling(self, near: Any = None) -> Score | None: ...


class Pessimism(Searched):
    """The lower bound on the expected reward of an action."""

    def __init__(self, set_: ConfidenceSet) -> None:
        self._set = set_

    def maximum(self, directions: Any) -> Array:
        return -self._set.maximum(-directions)

    def support(self, directions: Any) -> Maximum:
        lower = self._set.support(-directions)
        return lower._replace(value=-lower.value)


class Advantage(Searched):
    """How much more an action can be worth than the direction `own`, under one parameter at a time."""

    def __init__(self, set_: ConfidenceSet, own: Any) -> None:
        self._set, self._own = set_, own

    def maximum(self, directions: Any) -> Array:
        return self._set.maximum(directions - self._own)

    def support(self, directions: Any) -> Maximum:
        return self._set.support(directions - self._own)


class InformationPerRegret(Searched):
    """ln I − 2 ln Δ, which information-directed sampling maximises (Kirschner & Krause 2018), for an ellipsoid.

    Δ = `optimum` − lower bound, I = ln(1 + w). Infinite if nothing is lost (Δ = 0), −infinite if nothing is
    learnt.
    """

    # Divisors are at least this.
    _LEAST = 1e-300

    def __init__(self, ellipsoid: Any, optimum: float | Array) -> None:
        self._ellipsoid, self._optimum = ellipsoid, optimum

    def maximum(self, directions: Any) -> Array:
        regret = self._optimum + self._ellipsoid.maximum(-directions)
        return self._combined(self._ellipsoid.information(directions), regret)

    def support(self, directions: Any) -> Maximum:
        upper, lower = (self._ellipsoid.support(part) for part in (directions, -directions))
        radius = self._ellipsoid.radius
        half, regret = 0.5 * (upper.value + lower.value), self._optimum + lower.value
        # With half = radius·√w: d ln I = (2/radius²)·half·d half/((1 + w) I), and d ln Δ = −θ_lower/Δ.
        w = (half / radius) ** 2
        information = np.log1p(w)
        value = self._combined(information, regret)
        finite = np.isfinite(value)
        on_half = np.where(finite, half / (radius**2 * (1.0 + w) * np.maximum(information, self._LEAST)), 0.0)
        on_lower = np.where(finite, 2.0 / np.maximum(regret, self._LEAST), 0.0)
        slope = on_half[:, None] * (upper.points - lower.points) + on_lower[:, None] * lower.points
        return Maximum(value, slope, upper.alpha, upper.case)

    def form(self) -> Form | None:
        base: Form | None = self._ellipsoid.form()
        if base is None or not isinstance(self._optimum, float):
            return None
        return base._replace(kind=INFORMATIVE, optimum=self._optimum)

    @staticmethod
    def _combined(information: Array, regret: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.log(information) - 2.0 * np.log(np.maximum(regret, 0.0))
        return np.where(regret <= 0.0, np.inf, value)
