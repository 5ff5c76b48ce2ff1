"""The protocol of a confidence sequence: feed it rewards, ask it for bounds at any time.

A sequence implements `_maximum`, the support function of its set at feature vectors; everything else, from
validation to lower bounds and gradients, follows from that here.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixbandit._validation import (
    LARGEST_DATUM,
    Array,
    as_float_array,
    as_rows,
    as_vector,
    check_finite,
    multiplier,
    positive,
    probability,
)
from mixbandit.confidence import noise
from mixbandit.confidence.dual import CASES
from mixbandit.confidence.support import Maximum
from mixbandit.errors import (
    AssumptionsRefuted,
    AssumptionsRefutedWarning,
    DamagedState,
    InvalidInput,
    NotMergeable,
    reading,
    warn_user,
)
from mixbandit.features import FeatureMap, FromCallable, Identity, as_feature_map, features_from_state_dict
from mixbandit.statistics import Ridge, Spectrum, Statistics

STATE_VERSION = 1


@dataclass(frozen=True)
class Support:
    """Upper bounds with what attains them, a row per action."""

    value: Array  # (n,) the upper bounds
    theta: Array  # (n, d) a maximiser of φᵀθ; for a closed form, the gradient of the bound in φ
    grad: Array  # (n, dim_in) J_φᵀθ: the gradient in the action, a subgradient where θ is not unique
    alpha: Array  # (n,) the multiplier: inf where only the norm bound binds, 0 where it does not
    case: np.ndarray[Any, np.dtype[np.str_]]  # (n,) one of dual.CASES, or "range" where a known range caps it
    inflated: bool = False  # True: the set is empty and had to be enlarged, so no guarantee remains


@dataclass(frozen=True)
class Reported:
    """Bounds on expected rewards, with what happened to them on the way from the set."""

    bounds: Array  # (n,)
    capped: NDArray[np.bool_]  # (n,) where a known range cut them
    trusted: bool  # False: an assumption is refuted, and no guarantee remains


class ConfidenceSequence(abc.ABC):
    """Error bars for φ(a)ᵀθ*, from rewards r = φ(a)ᵀθ* + noise."""

    on_empty: str = "raise"
    guarantee: ClassVar[str]
    """"anytime": at all times at once with probability ≥ 1−δ, whatever chose the actions. "bayesian":
    only on average over a prior."""

    def __init__(self, features: FeatureMap | int, *, sigma: float, delta: float) -> None:
        self.features = as_feature_map(features)
        self.sigma = positive(sigma, "sigma")
        self.delta = probability(delta, "delta")
        self._statistics = Statistics(self.features.dim)
        self._spectrum_cache: Spectrum | None = None
        self._ridge_cache: Ridge | None = None
        self._noise_cache: bool | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}(dim={self.features.dim}, sigma={self.sigma:g}, delta={self.delta:g}, t={self.t})"

    @property
    def t(self) -> int:
        """How many rewards have been seen."""
        return self._statistics.count

    @property
    def is_empty(self) -> bool:
        """Whether no parameter is left, which refutes the assumptions at level δ; an ellipsoid never is."""
        return False

    @property
    def is_refuted(self) -> bool:
        """Whether the data refute the assumptions at level δ: the set is empty, or rewards scatter too much for σ.

        Two tests, each of which gives a false alarm, at any time, with probability at most δ.
        """
        return self.is_empty or self.noise_refuted

    @property
    def noise_refuted(self) -> bool:
        """Whether rewards scatter around every linear function more than σ allows, by a test at level δ."""
        if self._noise_cache is None:
            self._noise_cache = self._tests_noise()
        return self._noise_cache

    def _tests_noise(self) -> bool:
        if not noise.may_be_refuted(self._statistics.residual(), self.t, self.sigma, self.delta):
            return False
        norm = getattr(self, "norm_bound", None) or 1.0
        spectrum = self._spectrum()
        evidence = noise.log_evalue(
            spectrum, spectrum.residual(norm), self.t, self.sigma, norm**2 / self.features.dim, self._deviation
        )
        return evidence >= -math.log(self.delta)

    @property
    def _deviation(self) -> float:
        """A bound on ‖Φθ* − f*‖ over the rows seen, f* being the expected rewards."""
        return 0.0

    def _report_refuted(self) -> None:
        """Raise AssumptionsRefuted or warn, as `on_empty` says, if the assumptions are refuted."""
        if self.is_refuted:
            self._refuted("the confidence set is empty" if self.is_empty else "these scatter more than sigma allows")

    def _refuted(self, what: str) -> None:
        """Raise, or warn where the user wants to go on."""
        message = self._refutation(what)
        if self.on_empty == "raise":
            raise AssumptionsRefuted(message)
        warn_user(message, AssumptionsRefutedWarning)

    def _refutation(self, what: str) -> str:
        return (
            f"after {self.t} rewards {what}: at level delta={self.delta:g} the data refute {self._stated()} "
            "or that the expected reward is linear in the features; audit() tells more, and on_empty='inflate' goes "
            "on without a guarantee"
        )

    def _stated(self) -> str:
        """The assumptions, for messages."""
        return f"sigma={self.sigma:g}"

    @property
    @abc.abstractmethod
    def alpha0(self) -> float:
        """The multiplier that the closed form goes best with."""

    def update(self, actions: ArrayLike, rewards: ArrayLike, sigma: ArrayLike | None = None) -> Self:
        """Learn that actions (n, dim_in) brought rewards (n,); one action may come as a vector.

        `sigma` states the noise level of these rewards where it is not the sequence's: one number or one
        per reward, known before the rewards are. On an error nothing is changed.
        """
        rows = as_rows(actions, self.features.dim_in, "actions")
        values = as_vector(rewards, len(rows), "rewards")
        weights = self._weights(sigma, len(rows))
        phi = self.features._evaluate(rows)
        check_finite(phi if weights is None else weights[:, None] * phi, "features", LARGEST_DATUM)
        check_finite(values if weights is None else weights * values, "rewards", LARGEST_DATUM)
        try:
            self._learn(rows, phi, values, weights)
        finally:
            self._forget()
        return self

    def upper(self, actions: ArrayLike, alpha: float | None = None) -> Array:
        """Upper bounds (n,) on the expected rewards; at a fixed multiplier α the closed form."""
        return self._bounded(self._features(actions), alpha, 1.0).bounds

    def lower(self, actions: ArrayLike, alpha: float | None = None) -> Array:
        """Lower bounds (n,) on the expected rewards: minus the upper bounds of minus the features."""
        return self._bounded(self._features(actions), alpha, -1.0).bounds

    def support(self, actions: ArrayLike, alpha: float | None = None) -> Support:
        """Upper bounds with maximisers and gradients."""
        rows = as_rows(actions, self.features.dim_in, "actions")
        maximum = self._maximum(self._features(rows), self._checked_alpha(alpha), with_theta=True)
        assert maximum.theta is not None
        reported, grad = self._reported(maximum.value, 1.0), self.features._vjp(rows, maximum.theta)
        case = np.array(CASES)[maximum.case]
        if reported.capped.any():
            grad = np.where(reported.capped[:, None], 0.0, grad)
            case = np.where(reported.capped, "range", case)
        return Support(reported.bounds, maximum.theta, grad, maximum.alpha, case, not reported.trusted)

    def merge(self, other: Self) -> Self:
        """A new sequence with the data of both, which must agree in everything else.

        Exact: the same as one pass over all data, in any grouping. Valid at all times along one nested path of
        data sets, as when shards report to a centre that only ever adds. To look at arbitrary pairs of stale
        shards and to keep the best is to look at many sequences, and δ does not cover that.
        """
        self._check_mergeable(other)
        new = self.copy()
        new._statistics = self._statistics.merged(other._statistics)
        new._forget()
        return new

    @abc.abstractmethod
    def contains(self, theta: ArrayLike, *, rtol: float = 1e-9) -> bool:
        """Whether the set holds θ; `rtol` forgives rounding on its border."""

    def copy(self) -> Self:
        """An independent sequence in the same state; the feature map, which has none, is shared."""
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__)
        new._statistics = self._statistics.copy()
        return new

    def state_dict(self) -> dict[str, Any]:
        """Everything needed to go on later: numbers, strings, arrays and dicts of them."""
        return {**self._settings(), "statistics": self._statistics.state_dict(), **self._memory()}

    def _settings(self) -> dict[str, Any]:
        return {
            "type": type(self).__name__,
            "version": STATE_VERSION,
            "features": self.features.state_dict(),
            "sigma": self.sigma,
            "delta": self.delta,
            **self._parameters(),
        }

    def _memory(self) -> dict[str, Any]:
        """What the sequence remembers beyond the statistics, for `state_dict`."""
        return {}

    def _recall(self, state: Mapping[str, Any]) -> None:
        """Take in what `_memory` gave."""

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any], features: FeatureMap | int | None = None) -> Self:
        """The sequence that `state_dict` described; `features` again if they are a user's function."""
        if not isinstance(state, Mapping):
            raise DamagedState(f"a state is a mapping, got {type(state).__name__}")
        if state.get("type") != cls.__name__:
            raise DamagedState(f"this is the state of a {state.get('type')!r}, not of a {cls.__name__}")
        if state.get("version") != STATE_VERSION:
            raise DamagedState(f"this state has version {state.get('version')!r}; this mixbandit reads {STATE_VERSION}")
        with reading(cls.__name__):
            feature_map = features_from_state_dict(state["features"], features)
            new = cls._from_parameters(feature_map, state)
            statistics = Statistics.from_state_dict(state["statistics"])
            new._recall(state)
        if statistics.dim != new.features.dim:
            raise DamagedState(f"the features have dimension {new.features.dim}, the stored data {statistics.dim}")
        new._statistics = statistics
        return new

    @abc.abstractmethod
    def _maximum(self, phi: Array, alpha: float | None, *, with_theta: bool) -> Maximum:
        """The support function of the set at feature rows (n, d)."""

    @abc.abstractmethod
    def _parameters(self) -> dict[str, Any]:
        """The settings beyond those of every sequence, for `state_dict`."""

    @classmethod
    @abc.abstractmethod
    def _from_parameters(cls, features: FeatureMap, state: Mapping[str, Any]) -> Self: ...

    def _learn(self, actions: Array, phi: Array, rewards: Array, weights: Array | None) -> None:
        """Take in what has been checked."""
        self._statistics.update(phi, rewards, weights)

    def _reported(self, maximum: Array, sign: float) -> Reported:
        """What the user sees, from the maxima of sign·φᵀθ."""
        return Reported(sign * maximum, np.zeros(len(maximum), dtype=np.bool_), trusted=True)

    def _forget(self) -> None:
        """Drop what was derived from older data."""
        self._spectrum_cache = self._ridge_cache = self._noise_cache = None

    def _interval(self, actions: ArrayLike) -> tuple[Array, Array, bool]:
        """Lower and upper bounds, and whether they carry the guarantee."""
        lower, upper = self._both_bounds(self._features(actions), None)
        return lower.bounds, upper.bounds, lower.trusted and upper.trusted

    def _both_bounds(self, phi: Array, alpha: float | None) -> tuple[Reported, Reported]:
        """Lower and upper bounds of feature rows, in one call of the solver."""
        n = len(phi)
        value = self._maximum(np.concatenate((-phi, phi)), self._checked_alpha(alpha), with_theta=False).value
        return self._reported(value[:n], -1.0), self._reported(value[n:], 1.0)

    def _bounded(self, phi: Array, alpha: float | None, sign: float) -> Reported:
        """Upper bounds for sign 1, lower bounds for sign −1."""
        maximum = self._maximum(phi if sign > 0.0 else -phi, self._checked_alpha(alpha), with_theta=False)
        return self._reported(maximum.value, sign)

    def _features(self, actions: ArrayLike) -> Array:
        rows = as_rows(actions, self.features.dim_in, "actions")
        if isinstance(self.features, Identity):  # checked already, and only read
            return rows
        phi = self.features._evaluate(rows)
        check_finite(phi, "features")
        return phi

    def _spectrum(self) -> Spectrum:
        if self._spectrum_cache is None:
            self._spectrum_cache = self._statistics.spectrum()
        return self._spectrum_cache

    def _ridge(self, alpha: float) -> Ridge:
        """The ridge regression at α, which needs no singular value decomposition."""
        if self._ridge_cache is None or self._ridge_cache.alpha != alpha:
            self._ridge_cache = self._statistics.ridge(alpha)
        return self._ridge_cache

    def _centre(self, alpha: float | None) -> Array | None:
        """θ̂ (d,) where bounds at this multiplier are φᵀθ̂ ± something, and θ̂ is at hand; else None."""
        return None

    def _check_mergeable(self, other: Self) -> None:
        if type(other) is not type(self):
            raise NotMergeable(f"a {type(self).__name__} cannot take in a {type(other).__name__}")
        if self.features is not other.features and isinstance(self.features, FromCallable):
            raise NotMergeable("feature functions must be the same object in both sequences")
        difference = self._difference(other)
        if difference is not None:
            raise NotMergeable(f"the sequences differ in {difference}")

    def _difference(self, other: ConfidenceSequence) -> str | None:
        """The first setting in which two sequences differ, with its values; None if only their data do."""
        theirs = other._settings()
        for name, mine in self._settings().items():
            if not _same(mine, theirs.get(name)):
                return f"{name}: {mine!r} and {theirs.get(name)!r}"
        return None

    def _checked_alpha(self, alpha: float | None) -> float | None:
        return None if alpha is None else multiplier(alpha, "alpha")

    def _theta(self, theta: ArrayLike) -> Array:
        return as_vector(theta, self.features.dim, "theta")

    def _weights(self, sigma: ArrayLike | None, n: int) -> Array | None:
        """The weights σ/σ_k of rewards with noise levels of their own; None where they have not."""
        if sigma is None:
            return None
        levels = as_float_array(sigma, "sigma")
        if levels.shape == (n, 1):  # a one-column DataFrame
            levels = levels[:, 0]
        if levels.shape not in ((), (n,)):
            raise InvalidInput(f"sigma must be one number or have shape ({n},), got {levels.shape}")
        for level in levels.flat:
            positive(float(level), "sigma")
        return np.broadcast_to(self.sigma / levels, (n,))


def _same(a: Any, b: Any) -> bool:
    """Equality of settings, which may be nested and hold arrays."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_same, a, b))
    return bool(np.array_equal(a, b))


class FixedMultiplier(ConfidenceSequence):
    """A sequence whose set is one ellipsoid with its multiplier chosen in advance."""

    def _checked_alpha(self, alpha: float | None) -> float | None:
        if alpha is not None and multiplier(alpha, "alpha") != self.alpha0:
            raise InvalidInput(
                f"{type(self).__name__} has its multiplier fixed in advance at {self.alpha0:g}, got alpha={alpha}"
            )
        return alpha
