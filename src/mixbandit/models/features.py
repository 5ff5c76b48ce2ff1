"""Expected rewards that are linear in features."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixbandit._checks import LARGEST_DATUM, LARGEST_ENTRY, Array, as_rows, check_finite
from mixbandit._schema import require
from mixbandit.data import Factor
from mixbandit.features import FeatureMap, Identity, Layer
from mixbandit.models.base import BoxModel, Model


@dataclass(frozen=True)
class FeatureModel(BoxModel):
    """Expected rewards φ(a)ᵀθ: directions are feature vectors."""

    features: FeatureMap
    stores = "statistics"
    claim = "the expected reward is linear in the features"
    given = "expected rewards linear in the features"

    @property
    def dim_in(self) -> int:
        return self.features.dim_in

    @property
    def dim(self) -> int:
        return self.features.dim

    def start(self, memory: Any = None) -> Factor:
        return Factor(self.features.dim, memory=memory)

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
        return FeatureModel(self.features.restricted(row, columns))

    def check_learnable(self, directions: Array, weights: Array | None = None) -> None:
        check_finite(directions if weights is None else weights[:, None] * directions, "features", LARGEST_DATUM)

    def linearised(self, actions: Array) -> tuple[Array, Callable[[Array], Array]]:
        return self.features.linearised(actions)

    def layer(self) -> Layer | None:
        return self.features.layer()

    def checked(self, actions: ArrayLike) -> Array:
        return as_rows(actions, self.features.dim_in, "actions")

    def of_width(self, width: int) -> FeatureModel:
        return self

    def parameters(self, points: Array) -> Array:
        return points

    def stray(self, centres: Array, half_widths: Array) -> Array | None:
        constant = self.features.lipschitz
        return None if constant is None else constant * np.linalg.norm(half_widths, axis=1)

    def tangents(self, centres: Array, half_widths: Array, columns: NDArray[np.int64]) -> tuple[Array, Array] | None:
        remainder = self.features.remainder(centres, half_widths)
        return None if remainder is None else (self.features.jacobian_along(centres, columns), remainder)

    def axes(self) -> Array:
        return np.eye(self.features.dim, dtype=np.float64)

    def sensitivity(self, centre: Array) -> Array:
        return np.asarray(np.linalg.norm(self.features.jacobian_along(centre, np.arange(centre.shape[1]))[0], axis=0))

    def difference(self, other: Model) -> str | None:
        if self.dim != other.dim:
            return f"features: {self.dim} and {other.dim} dimensions"
        return None

    def state_dict(self) -> dict[str, Any]:
        return {"features": self.features.state_dict()}

    def data_from_state_dict(self, state: Mapping[str, Any]) -> Factor:
        data = Factor.from_state_dict(state["statistics"])
        require(self.dim == data.dim, "sequence.statistics", f"have dimension {data.dim}, the features {self.dim}")
        return data
