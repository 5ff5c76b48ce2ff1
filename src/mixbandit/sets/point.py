"""A set of one point, as drawn by Thompson sampling."""

from __future__ import annotations

import numpy as np

from mixbandit._checks import Array
from mixbandit.sets.base import CLOSED_FORM, ConfidenceSet, Form, Maximum, Searched, SingleEnds


class Point(Searched, SingleEnds):
    """{θ}: its support function is φᵀθ."""

    is_empty = False

    def __init__(self, theta: Array) -> None:
        self._theta = theta

    def maximum(self, directions: Array) -> Array:
        return np.asarray(directions @ self._theta)

    def interval(self, directions: Array) -> tuple[Array, Array]:
        value = self.maximum(directions)
        return value, value

    def form(self) -> Form:
        return Form.of_ellipsoid(np.eye(len(self._theta)), self._theta, 0.0)

    def support(self, directions: Array) -> Maximum:
        n = len(directions)
        points = np.broadcast_to(self._theta, directions.shape)
        return Maximum(self.maximum(directions), points, np.zeros(n), np.full(n, CLOSED_FORM))

    def scaled(self, factor: float, estimate: ConfidenceSet | None = None) -> Point:
        return self

    def opened(self) -> Point:
        return self

    def contains(self, theta: Array, rtol: float) -> bool:
        return bool(np.allclose(theta, self._theta, rtol=rtol, atol=0.0))
