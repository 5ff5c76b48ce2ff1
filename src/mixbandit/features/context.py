"""Feature maps of a context and an action together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixbandit._checks import Array, dimension, positive
from mixbandit._schema import checked, integer, real, record
from mixbandit.errors import InvalidInput
from mixbandit.features.base import FeatureMap, as_boxes, as_feature_map


class Interaction(FeatureMap):
    """φ(x, a) = φ_c(x) ⊗ φ_a(a): every feature of the context times every feature of the action.

    Rows are (context, action). An integer d means vectors of length d, unchanged.
    """

    kind = "Interaction"
    schema = record({"context": FeatureMap.family, "action": FeatureMap.family})
    always_probed = True

    def __init__(self, context: FeatureMap | int, action: FeatureMap | int) -> None:
        self.context, self.action = as_feature_map(context), as_feature_map(action)
        self.dim_in = self.context.dim_in + self.action.dim_in
        self.dim = dimension(self.context.dim * self.action.dim, "the product of the two dimensions")

    def evaluate(self, actions: Array) -> Array:
        x, a = self._parts(actions)
        return _products(self.context.evaluate(x), self.action.evaluate(a))

    def pullback(self, actions: Array, v: Array) -> Array:
        x, a = self._parts(actions)
        matrix = v.reshape(len(actions), self.context.dim, self.action.dim)
        of_context = np.einsum("nij,nj->ni", matrix, self.action.evaluate(a))
        of_action = np.einsum("nij,ni->nj", matrix, self.context.evaluate(x))
        return np.hstack((self.context.pullback(x, of_context), self.action.pullback(a, of_action)))

    def remainder(self, centres: Array, half_widths: Array) -> Array | None:
        centres, half_widths = as_boxes(centres, half_widths, self.dim_in)
        parts = []
        maps = (self.context, self.action)
        for features, c, e in zip(maps, self._parts(centres), self._parts(half_widths), strict=True):
            beyond = features.remainder(c, e)
            if beyond is None:
                return None
            # The total change of a feature: along its tangent, and beyond it.
            change = np.einsum("ndi,ni->nd", np.abs(features.jacobian(c)), e) + beyond
            parts.append((np.abs(features.evaluate(c)), beyond, change))
        (x, beyond_x, change_x), (a, beyond_a, change_a) = parts
        terms = ((x, beyond_a), (beyond_x, a), (change_x, change_a))
        return np.asarray(sum(_products(left, right) for left, right in terms))

    def _parts(self, actions: Array) -> tuple[Array, Array]:
        return actions[:, : self.context.dim_in], actions[:, self.context.dim_in :]


def _products(left: Array, right: Array) -> Array:
    """All products of an entry of one with an entry of the other, in every row, (n, p·q)."""
    return np.asarray(np.einsum("ni,nj->nij", left, right).reshape(len(left), left.shape[1] * right.shape[1]))


class WithConstant(FeatureMap):
    """(value, φ(a)): an intercept beside other features, so they need not spend the norm bound on it."""

    kind = "WithConstant"
    schema = record({"features": FeatureMap.family, "value": real(positive)})

    def __init__(self, features: FeatureMap | int, value: float = 1.0) -> None:
        self.features, self.value = as_feature_map(features), positive(value, "value")
        self.dim_in, self.dim = self.features.dim_in, self.features.dim + 1
        self.lipschitz = self.features.lipschitz

    def remainder(self, centres: Array, half_widths: Array) -> Array | None:
        beyond = self.features.remainder(centres, half_widths)
        return None if beyond is None else np.hstack((np.zeros((len(beyond), 1)), beyond))

    def evaluate(self, actions: Array) -> Array:
        return self._with(self.features.evaluate(actions))

    def pullback(self, actions: Array, v: Array) -> Array:
        return self.features.pullback(actions, v[:, 1:])

    def linearised(self, actions: Array) -> tuple[Array, Callable[[Array], Array]]:
        phi, pullback = self.features.linearised(actions)
        return self._with(phi), lambda v: pullback(v[:, 1:])

    def exchanged(self, base: Array, columns: NDArray[np.int64], values: Array) -> Array:
        return self._with(self.features.exchanged(base, columns, values))

    def restricted(self, row: Array, columns: NDArray[np.int64]) -> FeatureMap:
        return WithConstant(self.features.restricted(row, columns), self.value)

    def jacobian_along(self, actions: Array, columns: NDArray[np.int64]) -> Array:
        inner = self.features.jacobian_along(actions, columns)
        return np.concatenate((np.zeros((len(inner), 1, len(columns))), inner), axis=1)

    def _jacobian(self, actions: Array) -> Array:
        inner = self.features.jacobian(actions)
        return np.concatenate((np.zeros((len(inner), 1, self.dim_in)), inner), axis=1)

    def _with(self, phi: Array) -> Array:
        rows = np.empty((len(phi), self.dim))  # for a few rows np.hstack takes longer than everything else
        rows[:, 0], rows[:, 1:] = self.value, phi
        return rows

    def probes(self) -> Array:
        return self.features.probes()


class Disjoint(FeatureMap):
    """φ(x, k) = e_k ⊗ φ_c(x): a separate parameter vector for each of `arms` arms.

    Rows are (context, k) with k = 0, …, arms − 1; the actions are then `Arms(range(arms))`. The dimension is
    arms·φ_c.dim, and updates cost its square: use it for tens of arms, not thousands.
    """

    kind = "Disjoint"
    schema = record({"context": FeatureMap.family, "arms": integer(1)})
    always_probed = True

    def __init__(self, context: FeatureMap | int, arms: int) -> None:
        self.context, self.arms = as_feature_map(context), dimension(arms, "arms")
        self.dim_in = self.context.dim_in + 1
        self.dim = dimension(self.context.dim * self.arms, "the dimension of the context times arms")

    def evaluate(self, actions: Array) -> Array:
        features = np.zeros((len(actions), self.arms, self.context.dim))
        features[np.arange(len(actions)), self._arm(actions)] = self.context.evaluate(actions[:, :-1])
        return features.reshape(len(actions), self.dim)

    def pullback(self, actions: Array, v: Array) -> Array:
        own = v.reshape(len(actions), self.arms, self.context.dim)[np.arange(len(actions)), self._arm(actions)]
        # Arm numbers are discrete: there is no derivative with respect to them.
        return np.hstack((self.context.pullback(actions[:, :-1], own), np.zeros((len(actions), 1))))

    def _arm(self, actions: Array) -> NDArray[np.int64]:
        number = actions[:, -1]
        valid = (number == np.floor(number)) & (number >= 0) & (number < self.arms)
        if not valid.all():
            raise InvalidInput(
                f"the actions of Disjoint are arm numbers, 0 … {self.arms - 1}, got {number[~valid][0]:g}; "
                f"use Arms(range({self.arms}), labels=[…])"
            )
        return number.astype(np.int64)

    def probes(self) -> Array:
        probes = super().probes()
        probes[:, -1] = np.floor(self.arms * probes[:, -1])
        return probes


def features_from_state_dict(state: Mapping[str, Any], given: FeatureMap | int | None = None) -> FeatureMap:
    """The feature map of a `state_dict`; if it is code, `given` after it is verified."""
    stored = checked(FeatureMap.family, state, "features")
    if given is None:
        original: FeatureMap = stored.build()
        return original
    features = as_feature_map(given)
    if stored["probe"] is not None:  # the map is code, or contains code
        dims, expected = (stored["dim_in"], stored["dim"]), stored["probe"]
    else:
        original = stored.build()
        dims, expected = (original.dim_in, original.dim), original.evaluate(original.probes())
    if (features.dim_in, features.dim) != dims:
        raise InvalidInput(
            f"the stored features map dimension {dims[0]} to {dims[1]}, but the given ones map {features.dim_in} to "
            f"{features.dim}"
        )
    found = features.evaluate(features.probes())
    if found.shape != expected.shape or not np.allclose(found, expected, rtol=1e-9, atol=1e-12):
        raise InvalidInput(f"the given features differ from the stored {stored['type']} at the probe actions")
    return features
