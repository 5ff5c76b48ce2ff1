"""Random features: one layer of random weights followed by a fixed scalar function."""

from __future__ import annotations

import abc
import copy
import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixbandit._checks import LARGEST_DATUM, Array, as_generator, dimension, one_of, positive_array
from mixbandit._schema import Fields, array, one_of_these, record, require
from mixbandit.errors import InvalidInput
from mixbandit.features.base import ACTIVATIONS, COSINE, FeatureMap, Layer, as_boxes
from mixbandit.storage import Stored

# Rows of at least this many inputs are looked through for columns that are all 0.
_WIDE = 256


@dataclass(frozen=True)
class _Activation:
    """A scalar function with its derivative, and bounds on the first two derivatives."""

    function: Callable[[Array], Array]
    derivative: Callable[[Array], Array]
    curvature: Callable[[Array], Array] | None  # g''; None if g is piecewise linear with a kink at 0
    steepest: float  # sup |g'|
    most_curved: float  # sup |g''|
    jerk: float  # sup of the third derivative
    derivative_from_value: Callable[[Array], Array] | None = None  # g' as a function of g, where that is cheaper


def _check_layer(stored: Fields, where: str) -> None:
    weights, offset = stored["weights"], stored["offset"]
    require(weights.size > 0, f"{where}.weights", f"must not be empty, got shape {weights.shape}")
    fits = offset.shape == (len(weights),)
    require(fits, f"{where}.offset", f"must have shape ({len(weights)},), got {offset.shape}")


_LAYER = {"weights": array(None, None, largest=LARGEST_DATUM), "offset": array(None, largest=LARGEST_DATUM)}


class _RandomAffine(FeatureMap):
    """φ(a) = factor·g(stretch·Wa + …) with a random weight matrix W (dim, dim_in) and a random offset."""

    schema = record(_LAYER, _check_layer)
    _stretch: ClassVar[float] = 1.0

    def __init__(self, weights: Array, offset: Array) -> None:
        self.weights = weights
        self.offset = offset
        self.dim, self.dim_in = weights.shape
        self.lipschitz = self._factor * self._g.steepest * self._stretch * float(np.linalg.norm(weights, 2))

    @property
    @abc.abstractmethod
    def _g(self) -> _Activation: ...

    @property
    @abc.abstractmethod
    def _factor(self) -> float: ...

    @abc.abstractmethod
    def _preactivation(self, actions: Array) -> Array: ...

    def remainder(self, centres: Array, half_widths: Array) -> Array:
        centres, half_widths = as_boxes(centres, half_widths, self.dim_in)
        # The most that each pre-activation can change; then Taylor's remainder, with the largest curvature of g that
        # close to the centre. The kink at 0 matters only if it is within reach.
        change = self._stretch * (half_widths @ np.abs(self.weights).T)
        g = self._g
        at = self._preactivation(centres)
        if g.curvature is None:
            return np.asarray(self._factor * g.steepest * np.maximum(change - np.abs(at), 0.0))
        curvature = np.minimum(np.abs(g.curvature(at)) + g.jerk * change, g.most_curved)
        return np.asarray(0.5 * self._factor * curvature * change**2)

    def evaluate(self, actions: Array) -> Array:
        return self._factor * self._g.function(self._preactivation(actions))

    def pullback(self, actions: Array, v: Array) -> Array:
        return np.asarray((self._slope(actions) * v) @ self.weights)

    def linearised(self, actions: Array) -> tuple[Array, Callable[[Array], Array]]:
        g = self._g
        at = self._preactivation(actions)
        value = g.function(at)

        def pullback(v: Array) -> Array:
            slope = g.derivative(at) if g.derivative_from_value is None else g.derivative_from_value(value)
            return np.asarray((self._factor * self._stretch * slope * v) @ self.weights)

        return self._factor * value, pullback

    def exchanged(self, base: Array, columns: NDArray[np.int64], values: Array) -> Array:
        # From one pre-activation, by what single columns of W add to it.
        steps = self._stretch * (values - base[columns])[:, None] * self.weights.T[columns]
        return self._factor * self._g.function(self._preactivation(base[None]) + steps)

    def restricted(self, row: Array, columns: NDArray[np.int64]) -> Self:
        fixed = row.copy()
        fixed[columns] = 0.0
        used = np.flatnonzero(fixed)  # few, next to a category
        new = copy.copy(self)
        new.weights, new.dim_in = self.weights[:, columns], len(columns)
        new.offset = self.offset + self._stretch * (self.weights[:, used] @ fixed[used])
        return new

    def jacobian_along(self, actions: Array, columns: NDArray[np.int64]) -> Array:
        return np.asarray(self._slope(actions)[:, :, None] * self.weights[:, columns])

    def _jacobian(self, actions: Array) -> Array:
        return np.asarray(self._slope(actions)[:, :, None] * self.weights)

    def _slope(self, actions: Array) -> Array:
        return self._factor * self._stretch * self._g.derivative(self._preactivation(actions))

    @classmethod
    def restored(cls, stored: Stored, features: Any = None) -> Self:
        new = cls.__new__(cls)
        for name in cls.schema.fields:
            setattr(new, name, stored[name])
        _RandomAffine.__init__(new, new.weights, new.offset)
        return new


class RandomFourier(_RandomAffine):
    """Random Fourier features √(2/d) cos(Ωa + β), Ω ~ N(0, I/ℓ²), β ~ U[0, 2π] (Rahimi & Recht 2007).

    φ(a)ᵀφ(a') approximates the Gaussian kernel exp(−‖a − a'‖²/2ℓ²). `lengthscale` is one number or one
    per input.
    """

    kind = "RandomFourier"

    _cosine: ClassVar[_Activation] = _Activation(np.cos, lambda h: -np.sin(h), np.cos, 1.0, 1.0, 1.0)

    def __init__(
        self,
        dim_in: int,
        dim: int,
        lengthscale: ArrayLike = 1.0,
        *,
        rng: int | np.random.Generator | None = None,
    ) -> None:
        dim_in, dim = dimension(dim_in, "dim_in"), dimension(dim, "dim")
        scales = positive_array(lengthscale, "lengthscale")
        if scales.shape not in ((), (1,), (dim_in,)):
            raise InvalidInput(f"lengthscale must be one number or {dim_in}, got shape {scales.shape}")
        generator = as_generator(rng)
        frequencies = generator.normal(size=(dim, dim_in)) / scales
        super().__init__(frequencies, generator.uniform(0.0, 2.0 * np.pi, size=dim))

    @property
    def _g(self) -> _Activation:
        return self._cosine

    @property
    def _factor(self) -> float:
        return math.sqrt(2.0 / self.dim)

    def _preactivation(self, actions: Array) -> Array:
        if self.dim_in >= _WIDE:
            # Rows with large categories are mostly 0: only columns that some row uses count.
            used = np.flatnonzero(actions.any(axis=0))
            if len(used) < self.dim_in // 2:
                return np.asarray(actions[:, used] @ self.weights[:, used].T + self.offset)
        return np.asarray(actions @ self.weights.T + self.offset)

    def layer(self) -> Layer | None:
        # Subclasses may compute something else; wide rows are mostly 0, and numpy leaves out the columns that are.
        is_one = type(self) is RandomFourier and self.dim_in < _WIDE
        return Layer(self.weights, self.offset, self._factor, COSINE) if is_one else None


class RandomLayer(_RandomAffine):
    """One random hidden layer g(W(2a − 1) + β)/√d, W_ij ~ N(0, 1/dim_in), β ~ N(0, 1).

    `activation` is "tanh", "relu" or "sigmoid". It is meant for actions in the unit box: 2a − 1 centres them.
    """

    _stretch = 2.0
    _activations: ClassVar[dict[str, _Activation]] = {
        "tanh": _Activation(
            np.tanh,
            lambda h: 1.0 - np.tanh(h) ** 2,
            lambda h: 2.0 * np.tanh(h) * (1.0 - np.tanh(h) ** 2),
            steepest=1.0,
            most_curved=4.0 / math.sqrt(27.0),
            jerk=2.0,
            derivative_from_value=lambda value: 1.0 - value**2,
        ),
        "relu": _Activation(
            lambda h: np.maximum(h, 0.0), lambda h: (h > 0.0).astype(np.float64), None, 1.0, math.inf, math.inf
        ),
        # Written with tanh, which neither overflows nor loses digits for large |h|.
        "sigmoid": _Activation(
            lambda h: 0.5 * (1.0 + np.tanh(0.5 * h)),
            lambda h: 0.25 * (1.0 - np.tanh(0.5 * h) ** 2),
            lambda h: 0.25 * np.tanh(0.5 * h) * (1.0 - np.tanh(0.5 * h) ** 2),
            steepest=0.25,
            most_curved=1.0 / math.sqrt(108.0),
            jerk=0.125,
        ),
    }
    kind = "RandomLayer"
    schema = record({**_LAYER, "activation": one_of_these(*_activations)}, _check_layer)

    def __init__(
        self,
        dim_in: int,
        dim: int,
        activation: str = "tanh",
        *,
        rng: int | np.random.Generator | None = None,
    ) -> None:
        dim_in, dim = dimension(dim_in, "dim_in"), dimension(dim, "dim")
        self.activation = one_of(activation, self.activations(), "activation")
        generator = as_generator(rng)
        weights = generator.normal(size=(dim, dim_in)) / np.sqrt(dim_in)
        super().__init__(weights, generator.normal(size=dim))

    @classmethod
    def activations(cls) -> tuple[str, ...]:
        """The names of the functions g."""
        return tuple(cls._activations)

    @property
    def _g(self) -> _Activation:
        return self._activations[self.activation]

    @property
    def _factor(self) -> float:
        return 1.0 / math.sqrt(self.dim)

    def _preactivation(self, actions: Array) -> Array:
        return np.asarray((2.0 * actions - 1.0) @ self.weights.T + self.offset)

    def layer(self) -> Layer | None:
        if type(self) is not RandomLayer:  # which may compute something else
            return None
        # W(2a − 1) + β = 2Wa + (β − W1)
        activation = ACTIVATIONS.index(self.activation)
        return Layer(2.0 * self.weights, self.offset - self._sums, self._factor, activation)

    def restricted(self, row: Array, columns: NDArray[np.int64]) -> Self:
        new, sums = super().restricted(row, columns), self._sums
        # The −1 of 2a − 1, for the coordinates that are left out.
        new.offset -= sums - new.weights.sum(axis=1)
        new.__dict__.pop("_sums", None)
        return new

    @functools.cached_property
    def _sums(self) -> Array:
        return np.asarray(self.weights.sum(axis=1))
