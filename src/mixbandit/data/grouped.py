"""Rewards of a kernel with repeats of an action taken together, so that they do not make the kernel matrix singular.

| symbol | meaning | shape |
|---|---|---|
| x_1 … x_m | centres: the distinct actions seen, in the order of their first appearance | (m, k) |
| K | kernel matrix of the centres | (m, m) |
| W | weights of the rewards | (t,) |
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mixbandit._checks import Array
from mixbandit._lazy import lazy
from mixbandit.data.sections import Sections
from mixbandit.kernels import Kernel


class Grouped:
    """Actions (t, k), rewards (t,) and weights (t,), seen through the distinct actions among them.

    `older` is the kernel matrix of the first distinct actions, if it is known.
    """

    def __init__(self, kernel: Kernel, rows: Array, rewards: Array, weights: Array, older: Array | None) -> None:
        self.kernel, self.rows, self.rewards, self.weights, self._older = kernel, rows, rewards, weights, older

    @lazy
    def _groups(self) -> tuple[Array, NDArray[np.int64]]:
        """The distinct actions (m, k) in the order of their first appearance, and which one each reward belongs to."""
        if not len(self.rewards):
            return self.rows, np.empty(0, dtype=np.int64)
        known: dict[bytes, int] = {}
        place = np.array([known.setdefault(row.tobytes(), len(known)) for row in self.rows])
        if len(known) == len(self.rewards):
            return self.rows, place
        return self.rows[np.unique(place, return_index=True)[1]], place

    @property
    def centres(self) -> Array:
        """The distinct actions, (m, k)."""
        return self._groups[0]

    @property
    def place(self) -> NDArray[np.int64]:
        """Which centre each reward belongs to, (t,)."""
        return self._groups[1]

    @lazy
    def gram(self) -> Array:
        """The kernel matrix of the centres, (m, m)."""
        centres, old = self.centres, self._older
        if not len(centres):  # without rows there may be no columns either, and a kernel may want some
            return np.empty((0, 0))
        known = 0 if old is None else len(old)
        new = self.kernel.matrix(centres[known:], centres)
        if not known:
            return new
        assert old is not None
        return np.block([[old, new[:, :known].T], [new]])

    def at_rewards(self, directions: Sections) -> Array:
        """Inner products of directions with the weighted sections of all rewards, (n, t)."""
        centres, group = self._groups
        values = directions.at(centres)
        return (values if len(centres) == len(self.rewards) else values[:, group]) * self.weights

    def on_centres(self, coefficients: Array) -> Array:
        """Coefficients (n, t) of the weighted sections of all rewards, as those of sections at the centres, (n, m)."""
        centres, group = self._groups
        weighted = coefficients * self.weights
        if len(centres) == len(self.rewards):
            return weighted
        summed = np.zeros((len(centres), len(weighted)))
        np.add.at(summed, group, weighted.T)
        return summed.T

    @lazy
    def trace(self) -> float:
        """The trace of WKW, which bounds its eigenvalues."""
        return float(self.weights**2 @ self.kernel.diagonal(self.rows)) if len(self.rewards) else 0.0

    @lazy
    def residual(self) -> float:
        """The part of the rewards that differs between repeats of an action."""
        mean, _ = self.means
        within = self.weights * (self.rewards - mean[self._groups[1]])
        return float(within @ within) if len(self.centres) < len(self.rewards) else 0.0

    @lazy
    def means(self) -> tuple[Array, Array]:
        """The mean reward at every centre, and the sum of the squared weights there, (m,) each."""
        centres, group = self._groups
        squares = self.weights**2
        total = np.bincount(group, squares, len(centres)).astype(np.float64)
        return np.bincount(group, squares * self.rewards, len(centres)) / np.where(total > 0.0, total, 1.0), total

    @property
    def weighted_rewards(self) -> Array:
        return self.weights * self.rewards
