"""Feature maps φ: rows of actions (n, dim_in) to rows of features (n, dim), with gradients.

A map gives `__call__` and `vjp(actions, v)`, the product J_φ(a)ᵀv in every row; that is all the
confidence sequences and the search over actions need of it.

| symbol | meaning | shape |
|---|---|---|
| a | an action | (dim_in,) |
| φ(a) | its features | (dim,) |
| J_φ(a) | the Jacobian of φ at a | (dim, dim_in) |
| v | a covector per row, or one for all rows | (n, dim) or (dim,) |
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from mixbandit._validation import (
    Array,
    as_float_array,
    as_generator,
    as_rows,
    check_finite,
    one_of,
    positive,
    positive_int,
)
from mixbandit.errors import DamagedState, InvalidInput


class FeatureMap(abc.ABC):
    """Base class: checks shapes once, so that a map only implements `_evaluate` and `_vjp` on valid rows."""

    dim_in: int
    dim: int

    def __call__(self, actions: ArrayLike) -> Array:
        """Features (n, dim) of actions (n, dim_in)."""
        return self._evaluate(as_rows(actions, self.dim_in, "actions"))

    def vjp(self, actions: ArrayLike, v: ArrayLike) -> Array:
        """J_φ(a)ᵀv in every row, (n, dim_in): the gradient of a ↦ φ(a)ᵀv."""
        rows = as_rows(actions, self.dim_in, "actions")
        covectors = as_rows(v, self.dim, "v")
        if covectors.shape[0] not in (1, rows.shape[0]):
            raise InvalidInput(f"v must have shape ({rows.shape[0]}, {self.dim}) or ({self.dim},), got {np.shape(v)}")
        return self._vjp(rows, np.broadcast_to(covectors, (rows.shape[0], self.dim)))

    @abc.abstractmethod
    def _evaluate(self, actions: Array) -> Array: ...

    @abc.abstractmethod
    def _vjp(self, actions: Array, v: Array) -> Array: ...

    def state_dict(self) -> dict[str, Any]:
        """What `features_from_state_dict` needs to build this map again: plain values and arrays."""
        return {"type": type(self).__name__, **self._parameters()}

    def _parameters(self) -> dict[str, Any]:
        """What `_from_parameters` needs; the defaults make a map that must be given again, as a function is."""
        probes = _probes(self.dim_in)
        return {"dim_in": self.dim_in, "dim": self.dim, "probe": self._evaluate(probes)}

    @classmethod
    def _from_parameters(cls, parameters: Mapping[str, Any]) -> FeatureMap:
        name = parameters.get("name", parameters.get("type"))
        raise InvalidInput(f"the feature map {name!r} is code and is not stored: pass it again as `features`")


class Identity(FeatureMap):
    """φ(a) = a: vectors taken as they are."""

    def __init__(self, dim: int) -> None:
        self.dim = self.dim_in = positive_int(dim, "dim")

    def _evaluate(self, actions: Array) -> Array:
        return actions.copy()

    def _vjp(self, actions: Array, v: Array) -> Array:
        return v.copy()

    def _parameters(self) -> dict[str, Any]:
        return {"dim": self.dim}

    @classmethod
    def _from_parameters(cls, parameters: Mapping[str, Any]) -> Identity:
        return cls(int(parameters["dim"]))


class _RandomAffine(FeatureMap):
    """φ(a) = g(Wa + β) with a random weight matrix W (dim, dim_in), a random offset β and a scalar g."""

    def __init__(self, weights: Array, offset: Array) -> None:
        self.weights = weights
        self.offset = offset
        self.dim, self.dim_in = weights.shape

    def _parameters(self) -> dict[str, Any]:
        return {"weights": self.weights.copy(), "offset": self.offset.copy()}

    def _load(self, parameters: Mapping[str, Any]) -> None:
        weights, offset = (np.array(parameters[name], dtype=np.float64) for name in ("weights", "offset"))
        if weights.ndim != 2 or offset.shape != (len(weights),):
            raise DamagedState(f"weights of shape {weights.shape} came with an offset of shape {offset.shape}")
        if not (np.isfinite(weights).all() and np.isfinite(offset).all()):
            raise DamagedState("the weights of the feature map contain NaN or infinity")
        _RandomAffine.__init__(self, weights, offset)


class RandomFourier(_RandomAffine):
    """Random Fourier features √(2/d) cos(Ωa + β), Ω ~ N(0, I/ℓ²), β ~ U[0, 2π] (Rahimi & Recht 2007).

    φ(a)ᵀφ(a') approximates the Gaussian kernel exp(−‖a − a'‖²/2ℓ²). `lengthscale` is one number or one
    per input.
    """

    def __init__(
        self,
        dim_in: int,
        dim: int,
        lengthscale: ArrayLike = 1.0,
        *,
        rng: int | np.random.Generator | None = None,
    ) -> None:
        dim_in, dim = positive_int(dim_in, "dim_in"), positive_int(dim, "dim")
        scales = as_float_array(lengthscale, "lengthscale")
        if scales.shape not in ((), (1,), (dim_in,)):
            raise InvalidInput(f"lengthscale must be one number or {dim_in}, got shape {scales.shape}")
        for scale in scales.flat:
            positive(float(scale), "lengthscale")
        generator = as_generator(rng)
        frequencies = generator.normal(size=(dim, dim_in)) / scales
        super().__init__(frequencies, generator.uniform(0.0, 2.0 * np.pi, size=dim))

    def _evaluate(self, actions: Array) -> Array:
        return math.sqrt(2.0 / self.dim) * np.cos(self._phase(actions))

    def _vjp(self, actions: Array, v: Array) -> Array:
        slope = -math.sqrt(2.0 / self.dim) * np.sin(self._phase(actions))
        return np.asarray((slope * v) @ self.weights)

    def _phase(self, actions: Array) -> Array:
        return np.asarray(actions @ self.weights.T + self.offset)

    @classmethod
    def _from_parameters(cls, parameters: Mapping[str, Any]) -> RandomFourier:
        new = cls.__new__(cls)
        new._load(parameters)
        return new


class RandomLayer(_RandomAffine):
    """One random hidden layer g(W(2a − 1) + β)/√d, W_ij ~ N(0, 1/dim_in), β ~ N(0, 1).

    `activation` is "tanh", "relu" or "sigmoid". Made for actions in the unit box: 2a − 1 centres them.
    """

    _activations: ClassVar[dict[str, tuple[Callable[[Array], Array], Callable[[Array], Array]]]] = {
        "tanh": (np.tanh, lambda h: 1.0 - np.tanh(h) ** 2),
        "relu": (lambda h: np.maximum(h, 0.0), lambda h: (h > 0.0).astype(np.float64)),
        # Written with tanh, which neither overflows nor loses digits for large |h|.
        "sigmoid": (
            lambda h: 0.5 * (1.0 + np.tanh(0.5 * h)),
            lambda h: 0.25 * (1.0 - np.tanh(0.5 * h) ** 2),
        ),
    }

    def __init__(
        self,
        dim_in: int,
        dim: int,
        activation: str = "tanh",
        *,
        rng: int | np.random.Generator | None = None,
    ) -> None:
        dim_in, dim = positive_int(dim_in, "dim_in"), positive_int(dim, "dim")
        self.activation = one_of(activation, tuple(self._activations), "activation")
        generator = as_generator(rng)
        weights = generator.normal(size=(dim, dim_in)) / np.sqrt(dim_in)
        super().__init__(weights, generator.normal(size=dim))

    def _evaluate(self, actions: Array) -> Array:
        return self._activations[self.activation][0](self._preactivation(actions)) / math.sqrt(self.dim)

    def _vjp(self, actions: Array, v: Array) -> Array:
        slope = self._activations[self.activation][1](self._preactivation(actions))
        return np.asarray((slope * v) @ self.weights) * (2.0 / math.sqrt(self.dim))

    def _preactivation(self, actions: Array) -> Array:
        return np.asarray((2.0 * actions - 1.0) @ self.weights.T + self.offset)

    def _parameters(self) -> dict[str, Any]:
        return {**super()._parameters(), "activation": self.activation}

    @classmethod
    def _from_parameters(cls, parameters: Mapping[str, Any]) -> RandomLayer:
        new = cls.__new__(cls)
        new.activation = one_of(str(parameters["activation"]), tuple(cls._activations), "activation")
        new._load(parameters)
        return new


class FromCallable(FeatureMap):
    """Features from a user's function (n, dim_in) → (n, dim).

    `vjp(actions, v)` may be given; otherwise gradients are central differences, 2·dim_in extra
    evaluations of `function`. What the function returns is checked on every call.
    """

    def __init__(
        self,
        function: Callable[[Array], ArrayLike],
        dim_in: int,
        dim: int,
        vjp: Callable[[Array, Array], ArrayLike] | None = None,
    ) -> None:
        self.dim_in, self.dim = positive_int(dim_in, "dim_in"), positive_int(dim, "dim")
        if not callable(function):
            raise InvalidInput(f"function must be callable, got {function!r}")
        if vjp is not None and not callable(vjp):
            raise InvalidInput(f"vjp must be callable, got {vjp!r}")
        self.function = function
        self.user_vjp = vjp

    def _evaluate(self, actions: Array) -> Array:
        # A copy: the function may change what it is given.
        return _checked_output(self.function(actions.copy()), (len(actions), self.dim), "the feature function")

    def _vjp(self, actions: Array, v: Array) -> Array:
        if self.user_vjp is not None:
            return _checked_output(self.user_vjp(actions.copy(), v.copy()), actions.shape, "the vjp function")
        gradient = np.empty_like(actions)
        # The step that balances truncation (h²) against cancellation (eps/h).
        steps = np.cbrt(np.finfo(np.float64).eps) * np.maximum(1.0, np.abs(actions))
        for i in range(self.dim_in):
            ahead, behind = actions.copy(), actions.copy()
            ahead[:, i] += steps[:, i]
            behind[:, i] -= steps[:, i]
            rise = np.einsum("nd,nd->n", self._evaluate(ahead) - self._evaluate(behind), v)
            gradient[:, i] = rise / (ahead[:, i] - behind[:, i])
        return gradient

    def _parameters(self) -> dict[str, Any]:
        return {"name": getattr(self.function, "__qualname__", repr(self.function)), **super()._parameters()}


def as_feature_map(features: FeatureMap | int | Any) -> FeatureMap:
    """A feature map from a map or from an int d (vectors of length d taken as they are)."""
    if isinstance(features, FeatureMap):
        return features
    if isinstance(features, int | np.integer) and not isinstance(features, bool):
        return Identity(int(features))
    raise InvalidInput(
        "features must be a feature map or an integer d (vectors of length d as they are), "
        f"got {features!r}; wrap a function as FromCallable(function, dim_in, dim)"
    )


def features_from_state_dict(state: Mapping[str, Any], given: FeatureMap | int | None = None) -> FeatureMap:
    """The feature map that `state_dict` described; if it is code, `given` again, and verified."""
    known: dict[str, type[FeatureMap]] = {cls.__name__: cls for cls in (Identity, RandomFourier, RandomLayer)}
    kind = state.get("type")
    stored = known.get(str(kind), FromCallable)
    if given is None:
        return stored._from_parameters(state)
    features = as_feature_map(given)
    if stored is FromCallable:
        dims, expected = (state["dim_in"], state["dim"]), np.asarray(state["probe"], dtype=np.float64)
    else:
        original = stored._from_parameters(state)
        dims, expected = (original.dim_in, original.dim), original._evaluate(_probes(original.dim_in))
    if (features.dim_in, features.dim) != dims:
        raise InvalidInput(
            f"the stored features go from dimension {dims[0]} to {dims[1]}, "
            f"the given ones from {features.dim_in} to {features.dim}"
        )
    if not np.allclose(features._evaluate(_probes(features.dim_in)), expected, rtol=1e-9, atol=1e-12):
        raise InvalidInput(f"the given features have other values than the stored {kind} at the probe actions")
    return features


def _probes(dim_in: int) -> Array:
    """Fixed actions in the unit box at which a map is recognised."""
    return np.random.default_rng(0).uniform(size=(3, dim_in))


def _checked_output(output: ArrayLike, shape: tuple[int, ...], who: str) -> Array:
    array = as_float_array(output, f"the output of {who}")
    if array.shape != shape:
        raise InvalidInput(f"{who} must return shape {shape}, got {array.shape}")
    check_finite(array, f"output of {who}")
    return array
