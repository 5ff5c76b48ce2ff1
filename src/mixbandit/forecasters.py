"""Mixtures, each a forecaster: before a reward is seen it predicts a mean and a variance for it.

For a forecaster with one-step means m_j and variances s_j², e_j = r_j − m_j and v_j = 1 + s_j²/σ²,

    R² = Σ_j (e_j²/v_j + σ² ln v_j) + 2σ² ln(1/δ)

is the squared radius of the paper's confidence set (label eq:confidence-set). Any predictable forecaster
gives a valid set, because `predict` comes before `update`; a better one gives a smaller set.

Two routes lead to the sum, which is called the *cost* here. `Prequential` adds it up and serves any
forecaster. The fixed linear mixtures N(Φθ₀, ΦΣ₀Φᵀ) have a closed form in the factor of the data:

    cost = min_θ {‖Φθ − r‖² + σ²(θ−θ₀)ᵀΣ₀⁻¹(θ−θ₀)} + σ² ln det(I + Σ₀ΦᵀΦ/σ²)

What a `Mixture` hands out is the cost minus the least-squares residual of the data: the excess G of
`confidence.support` up to its δ term, formed without subtracting one large number from another.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from mixbandit._validation import Array, as_float_array, check_finite, positive
from mixbandit.errors import DamagedState, InvalidInput
from mixbandit.features import FeatureMap
from mixbandit.statistics import Spectrum, Statistics


@runtime_checkable
class Forecaster(Protocol):
    """Anything that predicts a reward before it learns from it."""

    def predict(self, x: Array) -> tuple[float, float]:
        """Mean and variance (≥ 0) of the expected reward of the action row x, as the user gave it."""
        ...

    def update(self, x: Array, r: float) -> None:
        """Learn that action x brought reward r."""
        ...


class Cost(abc.ABC):
    """The running cost of a forecaster on the rewards that a sequence sees."""

    def update(self, actions: Array, rewards: Array, weights: Array) -> None:
        """See action rows (n, dim_in) and rewards (n,); weights σ/σ_k state the noise of each."""

    @abc.abstractmethod
    def excess(self, statistics: Statistics, spectrum: Spectrum) -> float:
        """Cost minus the least-squares residual of the data."""

    @abc.abstractmethod
    def copy(self) -> Cost: ...

    def state_dict(self) -> dict[str, Any]:
        """What the cost remembers beyond the statistics."""
        return {}


class Mixture(abc.ABC):
    """Settings of a mixture; `cost` starts it for one sequence."""

    @abc.abstractmethod
    def cost(self, features: FeatureMap, sigma: float) -> Cost: ...

    @abc.abstractmethod
    def alpha0(self, dim: int, sigma: float) -> float:
        """The multiplier at which the closed-form bound goes best with this mixture."""

    def state_dict(self) -> dict[str, Any]:
        return {"type": type(self).__name__, **self._parameters()}

    @abc.abstractmethod
    def _parameters(self) -> dict[str, Any]: ...


class LinearMixture(Mixture):
    """N(Φθ₀, ΦΣ₀Φᵀ), fixed in advance: what a linear reward function with θ ~ N(θ₀, Σ₀) would give."""

    @abc.abstractmethod
    def prior(self, dim: int) -> tuple[Array | None, Array | float]:
        """θ₀ (None for 0) and a root of Σ₀: a matrix L with LLᵀ = Σ₀, or a number for a multiple of I."""

    def cost(self, features: FeatureMap, sigma: float) -> LinearCost:
        return LinearCost(*self.prior(features.dim), sigma)

    def forecaster(self, features: FeatureMap, sigma: float) -> Forecaster:
        """The same mixture as a chain of one-step forecasts (exact Bayesian linear regression)."""
        shift, root = self.prior(features.dim)
        return _LinearForecaster(features, sigma, shift, root)


class Scaled(LinearMixture):
    """N(0, cΦΦᵀ): θ ~ N(0, cI)."""

    def __init__(self, c: float) -> None:
        self.c = positive(c, "c")

    def __repr__(self) -> str:
        return f"Scaled({self.c!r})"

    def prior(self, dim: int) -> tuple[None, float]:
        return None, math.sqrt(self.c)

    def alpha0(self, dim: int, sigma: float) -> float:
        return sigma**2 / self.c

    def _parameters(self) -> dict[str, Any]:
        return {"c": self.c}


class Standard(Scaled):
    """N(0, ΦΦᵀ), the paper's standard mixture."""

    def __init__(self) -> None:
        super().__init__(1.0)

    def __repr__(self) -> str:
        return "Standard()"

    def _parameters(self) -> dict[str, Any]:
        return {}


class Linear(LinearMixture):
    """N(Φθ₀, ΦΣ₀Φᵀ) for a mean vector θ₀ (d,) and a positive definite covariance Σ₀ (d, d)."""

    def __init__(self, theta0: ArrayLike, Sigma0: ArrayLike) -> None:  # noqa: N803 (the contract's name)
        mean = np.atleast_1d(as_float_array(theta0, "theta0"))
        covariance = np.atleast_2d(as_float_array(Sigma0, "Sigma0"))
        if mean.ndim != 1 or covariance.shape != (len(mean), len(mean)):
            raise InvalidInput(
                "theta0 and Sigma0 must have shapes (d,) and (d, d), "
                f"got {np.shape(theta0)} and {np.shape(Sigma0)}"
            )
        check_finite(mean, "theta0")
        check_finite(covariance, "Sigma0")
        if not np.allclose(covariance, covariance.T, rtol=1e-10, atol=0.0):
            worst = np.abs(covariance - covariance.T).max()
            raise InvalidInput(f"Sigma0 must be symmetric, got entries that differ by {worst:g}")
        try:
            self._root: Array = np.linalg.cholesky(covariance).astype(np.float64, copy=False)
        except np.linalg.LinAlgError:
            least = np.linalg.eigvalsh(covariance)[0]
            raise InvalidInput(
                f"Sigma0 must be positive definite, got a least eigenvalue of {least:g}"
            ) from None
        self.theta0, self.Sigma0 = mean.copy(), covariance.copy()

    def __repr__(self) -> str:
        return f"Linear(theta0={self.theta0!r}, Sigma0={self.Sigma0!r})"

    def prior(self, dim: int) -> tuple[Array, Array]:
        if dim != len(self.theta0):
            raise InvalidInput(
                f"the features have dimension {dim}, but theta0 has {len(self.theta0)} entries"
            )
        return self.theta0, self._root

    def alpha0(self, dim: int, sigma: float) -> float:
        return dim * sigma**2 / float(np.trace(self.Sigma0))

    def _parameters(self) -> dict[str, Any]:
        return {"theta0": self.theta0.copy(), "Sigma0": self.Sigma0.copy()}


class LinearCost(Cost):
    """The cost of N(Φθ₀, ΦΣ₀Φᵀ), in closed form; it remembers nothing of its own."""

    def __init__(self, shift: Array | None, root: Array | float, sigma: float) -> None:
        self._shift, self._root, self._sigma = shift, root, sigma

    def excess(self, statistics: Statistics, spectrum: Spectrum) -> float:
        white, mismatch = self.whitened(statistics, spectrum), 0.0
        # Both have the same residual, except where rounding gave them different ranks.
        if white.rank != spectrum.rank:
            mismatch = white.rss - spectrum.rss
        variance = self._sigma**2
        fit = float(np.sum((white.z / np.hypot(white.singular / self._sigma, 1.0)) ** 2))
        return fit + mismatch + variance * log_det(white.singular, self._sigma)

    def whitened(self, statistics: Statistics, spectrum: Spectrum) -> Spectrum:
        """The data in coordinates in which the mixture is θ ~ N(0, I), given them in plain ones."""
        if self._shift is None and isinstance(self._root, float):
            return Spectrum(self._root * spectrum.singular, spectrum.basis, spectrum.z, spectrum.rss)
        return statistics.spectrum(self._shift, np.asarray(self._root))

    def copy(self) -> LinearCost:
        return self


class Prequential(Cost):
    """The cost of any forecaster, one prediction at a time."""

    def __init__(self, forecaster: Forecaster, sigma: float) -> None:
        self.forecaster, self._sigma = forecaster, sigma
        self._cost = 0.0

    def update(self, actions: Array, rewards: Array, weights: Array) -> None:
        for x, r, weight in zip(actions, rewards, weights, strict=True):
            mean, variance = self._checked_prediction(x)
            error = weight * (r - mean)
            v = 1.0 + variance * (weight / self._sigma) ** 2
            self._cost += error**2 / v + self._sigma**2 * math.log(v)
            self.forecaster.update(x, float(r))

    def excess(self, statistics: Statistics, spectrum: Spectrum) -> float:
        return self._cost - spectrum.rss

    def copy(self) -> Prequential:
        import copy

        new = Prequential(copy.deepcopy(self.forecaster), self._sigma)
        new._cost = self._cost
        return new

    def _checked_prediction(self, x: Array) -> tuple[float, float]:
        mean, variance = (float(number) for number in self.forecaster.predict(x))
        if not (math.isfinite(mean) and math.isfinite(variance) and variance >= 0.0):
            raise InvalidInput(
                f"the forecaster {type(self.forecaster).__name__} must predict a finite mean and a finite "
                f"variance ≥ 0, got {mean} and {variance} at {x}"
            )
        return mean, variance


class _LinearForecaster:
    """Bayesian linear regression in recursive form: O(d²) a prediction and a step."""

    def __init__(self, features: FeatureMap, sigma: float, shift: Array | None, root: Array | float) -> None:
        d = features.dim
        self._features, self._noise = features, sigma**2
        self._mean = np.zeros(d) if shift is None else shift.copy()
        matrix = root * np.eye(d) if isinstance(root, float) else root
        self._covariance = matrix @ matrix.T

    def predict(self, x: Array) -> tuple[float, float]:
        phi = self._features(x)[0]
        return float(phi @ self._mean), float(phi @ self._covariance @ phi)

    def update(self, x: Array, r: float) -> None:
        phi = self._features(x)[0]
        cross = self._covariance @ phi
        spread = self._noise + phi @ cross
        self._mean += cross * ((r - phi @ self._mean) / spread)
        self._covariance -= np.outer(cross, cross) / spread


def log_det(singular: Array, sigma: float) -> float:
    """Log-determinant of I + diag(singular²)/σ², right also where it is tiny or a square overflows."""
    ratio = singular / sigma
    small = ratio < 1.0
    return float(np.sum(np.log1p(ratio[small] ** 2)) + 2.0 * np.sum(np.log(np.hypot(ratio[~small], 1.0))))


def as_cost(mixture: Mixture | Forecaster, features: FeatureMap, sigma: float) -> Cost:
    """Start a mixture, or a user's forecaster, for one sequence."""
    if isinstance(mixture, Mixture):
        return mixture.cost(features, sigma)
    if not isinstance(mixture, type) and isinstance(mixture, Forecaster):
        return Prequential(mixture, sigma)
    raise InvalidInput(
        "mixture must be one of mixbandit's mixtures or an object with predict(x) and update(x, r), "
        f"got {mixture!r}"
    )


def mixture_from_state_dict(state: Mapping[str, Any]) -> Mixture:
    """The mixture that `state_dict` described."""
    kind = state.get("type")
    try:
        if kind == "Standard":
            return Standard()
        if kind == "Scaled":
            return Scaled(state["c"])
        if kind == "Linear":
            return Linear(state["theta0"], state["Sigma0"])
    except KeyError as error:
        raise DamagedState(f"the state of the mixture {kind} lacks {error}") from error
    raise DamagedState(f"unknown mixture {kind!r}")
