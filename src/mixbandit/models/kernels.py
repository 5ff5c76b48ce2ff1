"""Expected rewards in the function space of a kernel, or of one of several."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixbandit._checks import LARGEST_DATUM, LARGEST_ENTRY, Array, as_float_array, as_rows, check_finite
from mixbandit._schema import require
from mixbandit.data import Alternatives, AlternativeSections, Observations, Sections
from mixbandit.errors import InvalidInput
from mixbandit.kernels import Kernel
from mixbandit.models.base import BoxModel, Directed, Linearised, Model, Unlayered


@dataclass(frozen=True)
class KernelModel(BoxModel):
    """Expected rewards f(a), f in the function space of a kernel: directions are its sections."""

    kernel: Kernel
    width: int | None = None  # of action rows; None until the first ones are seen
    stores = "observations"

    @property
    def claim(self) -> str:
        return f"the expected reward lies in the function space of {self.kernel}"

    @property
    def given(self) -> str:
        return f"expected rewards in the function space of {self.kernel}"

    @property
    def dim_in(self) -> int | None:
        return self.width if self.kernel.dim_in is None else self.kernel.dim_in

    @property
    def dim(self) -> None:
        return None

    def start(self, memory: Any = None) -> Observations:
        empty = np.empty(0)
        return Observations(self.kernel, np.empty((0, self.dim_in or 0)), empty, empty, memory=memory)

    def directions(self, actions: Array, largest: float = LARGEST_ENTRY) -> Sections:
        found = Sections.of(self.kernel, actions)
        if largest < LARGEST_ENTRY:
            self.check_learnable(found)
        return found

    def exchanged(self, base: Array, columns: NDArray[np.int64], values: Array) -> Sections:
        return Sections.exchanged(self.kernel, base, columns, values)

    def restricted(self, row: Array, columns: NDArray[np.int64]) -> Directed:
        return _SomeColumns(self, row, columns)

    def check_learnable(self, directions: Sections, weights: Array | None = None) -> None:
        squared = directions.squared if weights is None else weights**2 * directions.squared
        check_finite(squared, "the kernel's values", LARGEST_DATUM**2)

    def linearised(self, actions: Array) -> Linearised:
        found = self.directions(actions)
        return found, found.gradients

    def checked(self, actions: ArrayLike) -> Array:
        if self.dim_in is not None:
            return as_rows(actions, self.dim_in, "actions")
        given = as_float_array(actions, "actions")
        width = given.shape[-1] if given.ndim else 1
        if given.ndim > 2 or not width:
            raise InvalidInput(f"actions must have shape (n, k) or (k,), got {given.shape}")
        self.kernel.check_dim_in(width)
        return as_rows(given.reshape(-1, width), width, "actions")

    def of_width(self, width: int) -> KernelModel:
        if self.dim_in is not None:
            return self
        self.kernel.check_dim_in(width)
        return dataclasses.replace(self, width=width)

    def parameters(self, points: Any) -> None:
        return None

    def stray(self, centres: Array, half_widths: Array) -> Array | None:
        return self.kernel.stray(centres, half_widths)

    def sensitivity(self, centre: Array) -> Array:
        width = centre.shape[1]
        found = self.kernel.stray(np.repeat(centre, width, axis=0), 0.1 * np.eye(width))
        return np.ones(width) if found is None else found

    def difference(self, other: Model) -> str | None:
        if self.kernel != other.kernel:
            return f"kernel: {self.kernel} and {other.kernel}"
        if None not in (self.dim_in, other.dim_in) and self.dim_in != other.dim_in:
            return f"the length of actions: {self.dim_in} and {other.dim_in}"
        return None

    def state_dict(self) -> dict[str, Any]:
        return {"kernel": self.kernel.state_dict(), "dim_in": self.dim_in}

    def data_from_state_dict(self, state: Mapping[str, Any]) -> Observations:
        data = Observations.from_state_dict(state["observations"], self.kernel)
        width = data.rows.shape[1]
        require(not data.count or self.dim_in == width, "sequence.observations", f"have rows of length {width}")
        self.check_learnable(self.directions(data.rows), data.weights)
        return data


@dataclass(frozen=True)
class KernelListModel(BoxModel):
    """Expected rewards f(a), f in the function space of one of several kernels: directions have one part for each."""

    members: tuple[KernelModel, ...]
    stores = "observations"

    @property
    def claim(self) -> str:
        return f"the expected reward lies in the function space of one of {len(self.members)} kernels"

    @property
    def given(self) -> str:
        return f"expected rewards in the function space of one of {len(self.members)} kernels"

    @property
    def dim_in(self) -> int | None:
        return next((member.dim_in for member in self.members if member.dim_in is not None), None)

    @property
    def dim(self) -> None:
        return None

    def start(self, memory: Any = None) -> Alternatives:
        return Alternatives([member.start() for member in self.members], memory)

    def directions(self, actions: Array, largest: float = LARGEST_ENTRY) -> AlternativeSections:
        return AlternativeSections([member.directions(actions, largest) for member in self.members])

    def exchanged(self, base: Array, columns: NDArray[np.int64], values: Array) -> AlternativeSections:
        return AlternativeSections([member.exchanged(base, columns, values) for member in self.members])

    def restricted(self, row: Array, columns: NDArray[np.int64]) -> Directed:
        return _SomeColumns(self, row, columns)

    def check_learnable(self, directions: AlternativeSections, weights: Array | None = None) -> None:
        for member, part in zip(self.members, directions.parts, strict=True):
            member.check_learnable(part, weights)

    def linearised(self, actions: Array) -> Linearised:
        found = self.directions(actions)
        return found, found.gradients

    def checked(self, actions: ArrayLike) -> Array:
        rows = [member.checked(actions) for member in self.members]
        return rows[0]

    def of_width(self, width: int) -> KernelListModel:
        members = tuple(member.of_width(width) for member in self.members)
        return self if members == self.members else KernelListModel(members)

    def parameters(self, points: Any) -> None:
        return None

    def stray(self, centres: Array, half_widths: Array) -> Array | None:
        found = [member.stray(centres, half_widths) for member in self.members]
        known = [each for each in found if each is not None]
        return np.asarray(np.maximum.reduce(known)) if len(known) == len(found) else None

    def sensitivity(self, centre: Array) -> Array:
        return np.asarray(np.maximum.reduce([member.sensitivity(centre) for member in self.members]))

    def difference(self, other: Model) -> str | None:
        if not isinstance(other, KernelListModel) or len(other.members) != len(self.members):
            return "the list of kernels"
        pairs = zip(self.members, other.members, strict=True)
        return next((apart for one, two in pairs if (apart := one.difference(two)) is not None), None)

    def state_dict(self) -> dict[str, Any]:
        states = [member.state_dict() for member in self.members]
        return {"kernels": [state["kernel"] for state in states], "dim_in": self.dim_in}

    def data_from_state_dict(self, state: Mapping[str, Any]) -> Alternatives:
        return Alternatives([member.data_from_state_dict(state) for member in self.members])


class _SomeColumns(Unlayered):
    """A kernel's model of some coordinates of actions; the others keep the values of a row."""

    def __init__(self, model: KernelModel | KernelListModel, row: Array, columns: NDArray[np.int64]) -> None:
        self._model, self._row, self._columns = model, row, columns
        self.dim_in = len(columns)

    def _whole(self, actions: Array) -> Array:
        rows = np.tile(self._row, (len(actions), 1))
        rows[:, self._columns] = actions
        return rows

    def directions(self, actions: Array) -> Any:
        return self._model.directions(self._whole(actions))

    def exchanged(self, base: Array, columns: NDArray[np.int64], values: Array) -> Any:
        return self._model.exchanged(self._whole(base[None])[0], self._columns[columns], values)

    def linearised(self, actions: Array) -> Linearised:
        directions, pullback = self._model.linearised(self._whole(actions))
        return directions, lambda points: pullback(points)[:, self._columns]
