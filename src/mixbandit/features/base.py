"""Feature maps φ: rows of actions (n, dim_in) to rows of features (n, dim), with gradients.

A map has `__call__` and `vjp(actions, v)`, the product J_φ(a)ᵀv in every row; confidence sequences and the
search over actions need nothing else. If it also bounds how far it strays from its tangent (`remainder`), or
from its value (`lipschitz`), an optimum over a box can be proven.

| symbol | meaning | shape |
|---|---|---|
| a | an action | (dim_in,) |
| φ(a) | its features | (dim,) |
| J_φ(a) | the Jacobian of φ at a | (dim, dim_in) |
| v | a covector per row, or one for all rows | (n, dim) or (dim,) |
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixbandit._checks import (
    Array,
    as_float_array,
    as_function,
    as_rows,
    as_text,
    check_finite,
    dimension,
    is_integer,
    positive,
    shown,
)
from mixbandit._schema import Fields, Since, array, integer, record, require
from mixbandit.errors import InvalidInput, NotStorable
from mixbandit.storage import Family, Storable, Stored, is_kind

# Rows that are needed for a moment are made in parts of about this many numbers.
_MOST_ENTRIES = 2**20


ACTIVATIONS = ("cosine", "tanh", "relu", "sigmoid")
COSINE, TANH, RELU, SIGMOID = range(len(ACTIVATIONS))


class Layer(NamedTuple):
    """Features as arrays, for searches in compiled code: factor·g(Wa + offset)."""

    weights: Array  # W, (dim, dim_in)
    offset: Array  # (dim,)
    factor: float
    activation: int  # index into ACTIVATIONS


# What a map that is code, or contains code, must give again.
_PROBE = {"dim_in": integer(1), "dim": integer(1), "probe": array(None, None)}
_ANY_PROBE = {name: Since(schema) for name, schema in _PROBE.items()}


class _Maps(Family):
    """Kinds of feature maps; one that is code has the name of its class, and values by which it is verified."""

    def find(self, state: Mapping[str, Any], where: str) -> type[Storable]:
        kind = state.get("type")
        is_code = "probe" in state and isinstance(kind, str) and kind not in self.kinds
        return super().find({**state, "type": FromCallable.kind} if is_code else state, where)


class FeatureMap(Storable, abc.ABC):
    """Base class: it checks shapes once, so a map only implements `evaluate` and `pullback` on valid rows."""

    family = _Maps("a feature map", "features")
    always_probed: ClassVar[bool] = False
    """Whether files have its values at some actions even if they hold the whole map."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # The method names of version 0.1.0.
        for old, new in (("_evaluate", "evaluate"), ("_vjp", "pullback")):
            if old in cls.__dict__ and new not in cls.__dict__:
                setattr(cls, new, cls.__dict__[old])

    dim_in: int
    dim: int
    lipschitz: float | None = None
    """‖φ(a) − φ(a')‖ ≤ lipschitz·‖a − a'‖ for all actions; None if no such constant is known."""

    def __call__(self, actions: ArrayLike) -> Array:
        """Features (n, dim) of actions (n, dim_in)."""
        return self.evaluate(as_rows(actions, self.dim_in, "actions"))

    def vjp(self, actions: ArrayLike, v: ArrayLike) -> Array:
        """J_φ(a)ᵀv in every row, (n, dim_in): the gradient of a ↦ φ(a)ᵀv."""
        rows = as_rows(actions, self.dim_in, "actions")
        covectors = as_rows(v, self.dim, "v")
        if covectors.shape[0] not in (1, rows.shape[0]):
            raise InvalidInput(f"v must have shape ({len(rows)}, {self.dim}) or ({self.dim},), got {covectors.shape}")
        return self.pullback(rows, np.broadcast_to(covectors, (rows.shape[0], self.dim)))

    def jacobian(self, actions: ArrayLike) -> Array:
        """J_φ at every row, (n, dim, dim_in)."""
        return self._jacobian(as_rows(actions, self.dim_in, "actions"))

    def remainder(self, centres: Array, half_widths: Array) -> Array | None:
        """Bounds on |φ_j(a) − φ_j(c) − ∇φ_j(c)ᵀ(a − c)| for all |a − c| ≤ half_widths, both (n, dim_in) → (n, dim).

        None if no such bounds are known.
        """
        return None

    def layer(self) -> Layer | None:
        """The map as one layer of scalar functions; None if it is something else."""
        return None

    @abc.abstractmethod
    def evaluate(self, actions: Array) -> Array:
        """Features (n, dim) of rows that have been checked."""

    @abc.abstractmethod
    def pullback(self, actions: Array, v: Array) -> Array:
        """J_φ(a)ᵀv (n, dim_in) at rows that have been checked, for a covector per row."""

    def linearised(self, actions: Array) -> tuple[Array, Callable[[Array], Array]]:
        """Features, and the product v ↦ J_φᵀv with a covector per row: cheaper together than one after the other."""
        return self.evaluate(actions), lambda v: self.pullback(actions, v)

    def exchanged(self, base: Array, columns: NDArray[np.int64], values: Array) -> Array:
        """Features (n, dim) of rows that equal `base` (dim_in,) except for one value at one column each.

        A map that can tell how single inputs change its features need not see whole rows.
        """
        parts = [np.empty((0, self.dim))]
        chunk = max(_MOST_ENTRIES // self.dim_in, 1)
        for start in range(0, len(columns), chunk):
            at, new = columns[start : start + chunk], values[start : start + chunk]
            rows = np.tile(base, (len(at), 1))
            rows[np.arange(len(at)), at] = new
            parts.append(self.evaluate(rows))
        return np.concatenate(parts)

    def restricted(self, row: Array, columns: NDArray[np.int64]) -> FeatureMap:
        """The map of some inputs, in the order of `columns`; the others are those of `row` (dim_in,)."""
        return _Restricted(self, row, columns)

    def jacobian_along(self, actions: Array, columns: NDArray[np.int64]) -> Array:
        """The derivatives with respect to some inputs only, (n, dim, len(columns)), at rows that have been checked."""
        return self._jacobian(actions)[:, :, columns]

    def _jacobian(self, actions: Array) -> Array:
        shape = (len(actions), self.dim)
        return np.stack([self.pullback(actions, np.broadcast_to(e, shape)) for e in np.eye(self.dim)], axis=1)

    def state_dict(self) -> dict[str, Any]:
        """What `features_from_state_dict` needs: plain values and arrays. A map that is code must be passed again, and
        so must one that contains code: they are verified at some actions.
        """
        if not is_kind(type(self)):
            return {"type": type(self).__name__, **self._probed()}
        settings = super().state_dict()
        probed = self._probed() if self.always_probed or _has_probe(list(settings.values())) else {}
        return {"type": self.kind, **probed, **settings}

    def _probed(self) -> dict[str, Any]:
        return {"dim_in": self.dim_in, "dim": self.dim, "probe": self.evaluate(self.probes())}

    @classmethod
    def check_state(cls, state: Mapping[str, Any], where: str) -> Fields:
        return {**record(_ANY_PROBE)(state, where), **super().check_state(state, where)}

    def probes(self) -> Array:
        """Fixed actions at which a map is verified when it is passed again."""
        return np.random.default_rng(0).uniform(size=(3, self.dim_in))


def _has_probe(state: Any) -> bool:
    """Whether one of these is the state of a map with values by which it is verified."""
    return "probe" in state if isinstance(state, dict) else isinstance(state, list) and any(map(_has_probe, state))


class _Restricted(FeatureMap):
    """A map of which only some inputs vary."""

    def __init__(self, features: FeatureMap, row: Array, columns: NDArray[np.int64]) -> None:
        self._features, self._row, self._columns = features, row, columns
        self.dim_in, self.dim, self.lipschitz = len(columns), features.dim, features.lipschitz

    def evaluate(self, actions: Array) -> Array:
        return self._features.evaluate(self._whole(actions))

    def pullback(self, actions: Array, v: Array) -> Array:
        return self._features.pullback(self._whole(actions), v)[:, self._columns]

    def _whole(self, actions: Array) -> Array:
        rows = np.tile(self._row, (len(actions), 1))
        rows[:, self._columns] = actions
        return rows


def as_boxes(centres: ArrayLike, half_widths: ArrayLike, width: int) -> tuple[Array, Array]:
    """The arguments of `remainder` as rows, as many of one as of the other."""
    middle, halves = as_rows(centres, width, "centres"), as_rows(half_widths, width, "half_widths")
    if middle.shape != halves.shape or (halves < 0.0).any():
        raise InvalidInput(
            f"half_widths must be as many rows ≥ 0 as centres, got {shown(half_widths)} for {len(middle)} centres"
        )
    return middle, halves


class Identity(FeatureMap):
    """φ(a) = a: vectors unchanged."""

    kind = "Identity"
    schema = record({"dim": integer(1)})

    lipschitz = 1.0

    def __init__(self, dim: int) -> None:
        self.dim = self.dim_in = dimension(dim, "dim")

    def remainder(self, centres: Array, half_widths: Array) -> Array:
        return np.zeros(as_boxes(centres, half_widths, self.dim_in)[1].shape)

    def evaluate(self, actions: Array) -> Array:
        return actions.copy()

    def pullback(self, actions: Array, v: Array) -> Array:
        return v.copy()


def _check_probe(stored: Fields, where: str) -> None:
    fits = stored["probe"].shape == (3, stored["dim"])
    require(fits, f"{where}.probe", f"must have shape (3, {stored['dim']}), got {stored['probe'].shape}")


class FromCallable(FeatureMap):
    """Features from a user's function (n, dim_in) → (n, dim).

    `vjp(actions, v)` is optional; without it, gradients are central differences, which take 2·dim_in extra evaluations
    of `function`. The output of the function is checked on every call. `lipschitz` states that ‖function(a) −
    function(a')‖ ≤ lipschitz·‖a − a'‖; if given, certificates over a box rely on it.
    """

    kind = "FromCallable"
    schema = record({**_PROBE, "name": Since(as_text)}, _check_probe)

    def __init__(
        self,
        function: Callable[[Array], ArrayLike],
        dim_in: int,
        dim: int,
        vjp: Callable[[Array, Array], ArrayLike] | None = None,
        lipschitz: float | None = None,
    ) -> None:
        self.dim_in, self.dim = dimension(dim_in, "dim_in"), dimension(dim, "dim")
        self.function = as_function(function, "function")
        self.user_vjp = None if vjp is None else as_function(vjp, "vjp")
        self.lipschitz = None if lipschitz is None else positive(lipschitz, "lipschitz")

    def evaluate(self, actions: Array) -> Array:
        # A copy: the function may modify its argument.
        return _checked_output(self.function(actions.copy()), (len(actions), self.dim), "the feature function")

    def pullback(self, actions: Array, v: Array) -> Array:
        if self.user_vjp is not None:
            return _checked_output(self.user_vjp(actions.copy(), v.copy()), actions.shape, "the vjp function")
        gradient = np.empty_like(actions)
        # The step that balances truncation (h²) against cancellation (eps/h).
        steps = np.cbrt(np.finfo(np.float64).eps) * np.maximum(1.0, np.abs(actions))
        for i in range(self.dim_in):
            ahead, behind = actions.copy(), actions.copy()
            ahead[:, i] += steps[:, i]
            behind[:, i] -= steps[:, i]
            high, low = self._unchecked(ahead), self._unchecked(behind)
            # At the edge of the function's domain, such as 0 for a root, the difference is one-sided.
            for side, moved in ((high, ahead), (low, behind)):
                missing = ~np.isfinite(side).all(axis=1)
                if missing.any():
                    moved[missing] = actions[missing]
                    side[missing] = self.evaluate(actions[missing])
            step = ahead[:, i] - behind[:, i]
            if not step.all():
                raise InvalidInput(f"the feature function has no finite values next to {actions[step == 0.0][0]}")
            gradient[:, i] = np.einsum("nd,nd->n", high - low, v) / step
        return gradient

    def _unchecked(self, actions: Array) -> Array:
        """Values that may be NaN or infinite, for actions the caller did not ask about."""
        with np.errstate(all="ignore"):
            output = as_float_array(self.function(actions.copy()), "the output of the feature function")
        if output.shape != (len(actions), self.dim):
            raise InvalidInput(f"the feature function must return shape {(len(actions), self.dim)}, got {output.shape}")
        return output.copy()

    def state_dict(self) -> dict[str, Any]:
        name = getattr(self.function, "__qualname__", repr(self.function))
        try:
            return {"type": self.kind, "name": name, **self._probed()}
        except Exception as error:  # a user's function may raise anything at actions it was not made for
            raise NotStorable(f"{name} has no values at the actions that verify it: {error}") from error

    @classmethod
    def restored(cls, stored: Stored, features: Any = None) -> Self:
        name = stored["name"] or stored["type"]
        raise InvalidInput(f"the feature map {name!r} is code and is not stored: pass it again as `features`")


def as_feature_map(features: FeatureMap | int | Any) -> FeatureMap:
    """A feature map from a map or from an int d (vectors of length d, unchanged)."""
    if isinstance(features, FeatureMap):
        return features
    if is_integer(features):
        return Identity(features)
    raise InvalidInput(
        f"features must be a feature map or an integer d (vectors of length d, unchanged), got {shown(features)}; "
        "wrap a function as FromCallable(function, dim_in, dim)"
    )


def _checked_output(output: ArrayLike, shape: tuple[int, ...], who: str) -> Array:
    array = as_float_array(output, f"the output of {who}")
    if array.shape != shape:
        raise InvalidInput(f"{who} must return shape {shape}, got {array.shape}")
    check_finite(array, f"output of {who}")
    return array
