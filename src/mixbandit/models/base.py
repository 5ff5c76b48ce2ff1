"""What a model is to the rest of the package."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixbandit._checks import LARGEST_ENTRY, Array, as_rows
from mixbandit.data import Data
from mixbandit.errors import InvalidInput
from mixbandit.features import FeatureMap, Layer
from mixbandit.kernels import Kernel
from mixbandit.storage import Family, Storable

Linearised = tuple[Any, Callable[[Any], Array]]


class Directed(Protocol):
    """What a search needs to know of a model."""

    @property
    def dim_in(self) -> int | None:
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

    def layer(self) -> Layer | None:
        """Directions as one layer of scalar functions; None if they are something else."""
        ...


class Unlayered:
    """For directions that are not one layer of scalar functions."""

    def layer(self) -> Layer | None:
        """Directions as one layer of scalar functions; None if they are something else."""
        return None


class Model(abc.ABC):
    """What ties actions to a confidence set, as far as arms need it: an opaque direction for every row."""

    features: FeatureMap | None = None
    kernel: Kernel | None = None

    @property
    @abc.abstractmethod
    def claim(self) -> str:
        """What is assumed of the expected reward, as a sentence."""

    @property
    def given(self) -> str:
        """The same after "given"."""
        return self.claim

    @property
    @abc.abstractmethod
    def dim_in(self) -> int | None:
        """The length of an action row, context included; None while that is not known."""

    @property
    def dim(self) -> int | None:
        """The number of features; None where there is none, as for a kernel."""
        return None

    @property
    def has_small_directions(self) -> bool:
        """Whether a direction takes no more memory than an action, so that a choice may keep its own."""
        return self.dim is not None

    @abc.abstractmethod
    def directions(self, actions: Array, largest: float = LARGEST_ENTRY) -> Any:
        """The directions of rows (n, dim_in) that have been checked; InvalidInput if they are larger than `largest`."""

    def in_context(self, context: Array, arms: Array) -> Any:
        """The directions of rows (context, arm), for arms (K, m), where that takes less work than from the rows.

        Each must be, to the last digit, what `directions` gives for its row alone.
        """
        return None

    def check_learnable(self, directions: Any, weights: Array | None = None) -> None:
        """Refuse directions so large, once they are weighted, that nothing can be learnt from them."""
        return

    def checked(self, actions: ArrayLike) -> Array:
        """Action rows, (n, dim_in), from user input."""
        assert self.dim_in is not None
        return as_rows(actions, self.dim_in, "actions")

    def of_width(self, width: int) -> Self:
        """The model for action rows of this length, where any would do."""
        return self

    def state_dict(self) -> dict[str, Any]:
        """What is stored of the model beside the settings of its sequence; nothing where those make it again."""
        return {}


class DataModel(Storable, Model):
    """A model with the data that rules learn from, and make sets of.

    Its fields, and those of its data, are in the state of a sequence; one of them has the name of its kind.
    """

    family = Family("a model", "model")

    stores: ClassVar[str]  # the name of its data in the state of a sequence

    @abc.abstractmethod
    def start(self, memory: Any = None) -> Data:
        """No data yet, but perhaps what a rule remembers besides them."""

    @abc.abstractmethod
    def linearised(self, actions: Array) -> Linearised:
        """Directions, and the map from a point per row to the gradient in the action, (n, dim_in)."""

    @abc.abstractmethod
    def parameters(self, points: Any) -> Array | None:
        """Points of a set as parameter vectors (n, d); None where there are none."""

    @abc.abstractmethod
    def difference(self, other: Model) -> str | None:
        """Why the data of two models do not go together; None if they do."""

    @abc.abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """The model as plain values, by the names of `MODEL`."""

    @abc.abstractmethod
    def data_from_state_dict(self, state: Mapping[str, Any]) -> Data:
        """The data that a state of a sequence, already checked, describes."""


class BoxModel(Unlayered, DataModel):
    """A model that can be climbed over a box, and bounded over its cells."""

    @abc.abstractmethod
    def exchanged(self, base: Array, columns: NDArray[np.int64], values: Array) -> Any:
        """The directions of rows that equal `base` (dim_in,) except for one value at one column each."""

    @abc.abstractmethod
    def restricted(self, row: Array, columns: NDArray[np.int64]) -> Directed:
        """The model of some coordinates of actions; the others are those of `row` (dim_in,)."""

    # What branch and bound needs: how far directions stray from those of a cell's centre.

    @abc.abstractmethod
    def stray(self, centres: Array, half_widths: Array) -> Array | None:
        """A bound on ‖φ(a) − φ(c)‖ over each cell |a − c| ≤ half_widths, (n,); None where none is known."""

    def tangents(self, centres: Array, half_widths: Array, columns: NDArray[np.int64]) -> tuple[Array, Array] | None:
        """The derivatives of φ in some coordinates, (n, dim, len(columns)), and how far φ strays from its tangent in
        each cell, see `FeatureMap.remainder`; None where that is not known.
        """
        return None

    def axes(self) -> Array | None:
        """The directions of the single coordinates of a parameter, where there are any."""
        return None

    @abc.abstractmethod
    def sensitivity(self, centre: Array) -> Array:
        """How much each coordinate matters around an action (1, dim_in), relative to the others, (dim_in,)."""


def box_model(model: Model) -> BoxModel:
    """The model, if it can be searched over a box; InvalidInput otherwise."""
    if not isinstance(model, BoxModel):
        raise InvalidInput(f"a box needs a model with gradients, a BoxModel, got {model.given}: choose among arms")
    return model
