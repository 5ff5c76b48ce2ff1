"""Models: from actions to the directions in which confidence sets are queried, and back.

A model holds settings only. Directions are opaque to the rest of the package, which indexes, negates and subtracts them
and passes them to sets; points, which sets return, go back through `linearised` to gradients in the action.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixbandit._checks import LARGEST_DATUM, LARGEST_ENTRY, Array, as_rows, check_finite
from mixbandit.features import FeatureMap, Identity

Linearised = tuple[Any, Callable[[Any], Array]]


class Model(Protocol):
    """What ties actions to a confidence set."""

    @property
    def dim_in(self) -> int:
        """The length of an action row, context included."""
        ...

    def directions(self, actions: Array) -> Any:
        """The directions of rows (n, dim_in) that have been checked."""
        ...

    def exchanged(self, base: Array, columns: NDArray[np.int64], values: Array) -> Any:
        """The directions of rows that equal `base` (dim_in,) except for one value at one column each."""
        ...

    def linearised(self, actions: Array) -> Linearised:
        """Directions, and the map from a point per row to the gradient in the action, (n, dim_in)."""
        ...


@dataclass(frozen=True)
class FeatureModel:
    """Expected rewards φ(a)ᵀθ: directions are feature vectors."""

    features: FeatureMap

    @property
    def dim_in(self) -> int:
        return self.features.dim_in

    @property
    def dim(self) -> int:
        return self.features.dim

    def directions(self, actions: Array, largest: float = LARGEST_ENTRY) -> Array:
        if type(self.features) is Identity and largest >= LARGEST_ENTRY:  # checked already, and only read
            return actions
        phi = self.features.evaluate(actions)
        check_finite(phi, "features", largest)
        return phi

    def exchanged(self, base: Array, columns: NDArray[np.int64], values: Array) -> Array:
        phi = self.features.exchanged(base, columns, values)
        check_finite(phi, "features")
        return phi

    def restricted(self, row: Array, columns: NDArray[np.int64]) -> FeatureModel:
        """The model of some coordinates of actions; the others are those of `row` (dim_in,)."""
        return FeatureModel(self.features.restricted(row, columns))

    @staticmethod
    def check_learnable(directions: Array) -> None:
        """Refuse directions so large that nothing can be learnt from them."""
        check_finite(directions, "features", LARGEST_DATUM)

    def linearised(self, actions: Array) -> tuple[Array, Callable[[Array], Array]]:
        return self.features.linearised(actions)

    # What branch and bound over a box needs: how far directions stray from those of a cell's centre.

    @property
    def lipschitz(self) -> float | None:
        """‖φ(a) − φ(a')‖ ≤ lipschitz·‖a − a'‖; None where no such constant is known."""
        return self.features.lipschitz

    def jacobian(self, actions: Array, columns: NDArray[np.int64]) -> Array:
        """The derivatives of φ with respect to some coordinates at every row, (n, dim, len(columns))."""
        return self.features.jacobian_along(actions, columns)

    def remainder(self, centres: Array, half_widths: Array) -> Array | None:
        """How far φ strays from its tangent, see `FeatureMap.remainder`."""
        return self.features.remainder(centres, half_widths)

    def axes(self) -> Array:
        """The directions of the single coordinates of a parameter."""
        return np.eye(self.features.dim, dtype=np.float64)

    def checked(self, actions: ArrayLike) -> Array:
        """Action rows, (n, dim_in), from user input."""
        return as_rows(actions, self.features.dim_in, "actions")
