"""Fixed linear mixtures N(Φθ₀, ΦΣ₀Φᵀ), whose cost has a closed form in the factor of the data:

    cost = min_θ {‖Φθ − r‖² + σ²(θ−θ₀)ᵀΣ₀⁻¹(θ−θ₀)} + σ² ln det(I + Σ₀ΦᵀΦ/σ²)

With L a root of Σ₀ and θ = θ₀ + Lη the mixture is η ~ N(0, I). In the singular basis of ΦL the minimum minus
the least-squares residual is Σ σ²z²/(s+σ²), a sum of squares, and the determinant is that of a diagonal.
"""

from __future__ import annotations

import abc
import math

import numpy as np
from numpy.typing import ArrayLike

from mixbandit._checks import LARGEST_DATUM, LARGEST_SETTING, Array, as_float_array, check_finite, positive
from mixbandit._schema import array, real, record
from mixbandit.data import Data, Spectrum, as_factor
from mixbandit.errors import InvalidInput
from mixbandit.mixtures.base import Cost, Mixture
from mixbandit.models import Model

# Variances of parameters, which are squares of settings, lie between this and its inverse.
_LARGEST_VARIANCE = LARGEST_SETTING**2


class LinearMixture(Mixture):
    """N(Φθ₀, ΦΣ₀Φᵀ), fixed in advance: the distribution of Φθ for θ ~ N(θ₀, Σ₀)."""

    @abc.abstractmethod
    def alpha0(self, dim: int | None, sigma: float) -> float:
        """The multiplier at which the closed-form bound suits this mixture best."""

    @abc.abstractmethod
    def prior(self, dim: int | None) -> tuple[Array | None, Array | float]:
        """θ₀ (None for 0) and a root of Σ₀: a matrix L with LLᵀ = Σ₀, or a number for a multiple of I."""

    def dense_prior(self, dim: int) -> tuple[Array, Array]:
        """θ₀ and a root of Σ₀ as a vector and a matrix, whatever the mixture."""
        shift, root = self.prior(dim)
        return np.zeros(dim) if shift is None else shift, root * np.eye(dim) if isinstance(root, float) else root

    def cost(self, model: Model, sigma: float) -> LinearCost:
        return LinearCost(*self.prior(model.dim), self.alpha0(model.dim, 1.0), sigma)


class Scaled(LinearMixture):
    """N(0, cΦΦᵀ): θ ~ N(0, cI)."""

    kind = "Scaled"
    schema = record({"c": real(positive)})

    def __init__(self, c: float) -> None:
        self.c = positive(c, "c")

    def __repr__(self) -> str:
        return f"Scaled({self.c!r})"

    def prior(self, dim: int | None) -> tuple[None, float]:
        return None, math.sqrt(self.c)

    def alpha0(self, dim: int | None, sigma: float) -> float:
        return sigma**2 / self.c


class Standard(Scaled):
    """N(0, ΦΦᵀ), the paper's standard mixture."""

    kind = "Standard"
    schema = record({})

    def __init__(self) -> None:
        super().__init__(1.0)

    def __repr__(self) -> str:
        return "Standard()"


class Linear(LinearMixture):
    """N(Φθ₀, ΦΣ₀Φᵀ) for a mean vector θ₀ (d,) and a positive definite covariance Σ₀ (d, d)."""

    kind = "Linear"
    schema = record({"theta0": array(None), "Sigma0": array(None, None)})

    def __init__(self, theta0: ArrayLike, Sigma0: ArrayLike) -> None:
        mean = np.atleast_1d(as_float_array(theta0, "theta0"))
        covariance = np.atleast_2d(as_float_array(Sigma0, "Sigma0"))
        if mean.ndim != 1 or covariance.shape != (len(mean), len(mean)):
            raise InvalidInput(
                f"theta0 and Sigma0 must have shapes (d,) and (d, d), got {mean.shape} and {covariance.shape}"
            )
        check_finite(mean, "theta0", LARGEST_DATUM)
        check_finite(covariance, "Sigma0", _LARGEST_VARIANCE)
        if not np.allclose(covariance, covariance.T, rtol=1e-10, atol=0.0):
            worst = np.abs(covariance - covariance.T).max()
            raise InvalidInput(f"Sigma0 must be symmetric, got entries that differ by {worst:g}")
        eigenvalues = np.linalg.eigvalsh(covariance)
        # Anything below this share of the largest eigenvalue is rounding: the matrix is really singular.
        if eigenvalues[0] <= len(mean) * np.finfo(np.float64).eps * eigenvalues[-1]:
            raise InvalidInput(f"Sigma0 must be positive definite, got a smallest eigenvalue of {eigenvalues[0]:g}")
        if eigenvalues[0] < 1.0 / _LARGEST_VARIANCE:
            raise InvalidInput(
                f"the eigenvalues of Sigma0 must be at least {1.0 / _LARGEST_VARIANCE:g}, got {eigenvalues[0]:g}"
            )
        self._root: Array = np.linalg.cholesky(covariance).astype(np.float64, copy=False)
        self.theta0, self.Sigma0 = mean.copy(), covariance.copy()

    def __repr__(self) -> str:
        return f"Linear(theta0={self.theta0!r}, Sigma0={self.Sigma0!r})"

    def prior(self, dim: int | None) -> tuple[Array, Array]:
        if dim is None:
            raise InvalidInput("a Linear mixture needs features; with a kernel use Scaled, Grid or Gaussian")
        if dim != len(self.theta0):
            raise InvalidInput(f"the features have dimension {dim}, but theta0 has {len(self.theta0)} entries")
        return self.theta0, self._root

    def alpha0(self, dim: int | None, sigma: float) -> float:
        return len(self.theta0) * sigma**2 / float(np.trace(self.Sigma0))


class LinearCost(Cost):
    """The cost of N(Φθ₀, ΦΣ₀Φᵀ), in closed form; it stores nothing beyond the data."""

    def __init__(self, shift: Array | None, root: Array | float, unit_alpha0: float, sigma: float) -> None:
        super().__init__(sigma)
        self._shift, self._root, self._unit_alpha0 = shift, root, unit_alpha0

    @property
    def stepwise(self) -> bool:
        return False

    @property
    def ridge_alpha(self) -> float | None:
        return self._unit_alpha0 * self.sigma**2 if self._is_scaled else None

    @property
    def _is_scaled(self) -> bool:
        return self._shift is None and isinstance(self._root, float)

    def excess(self, data: Data, reach: float) -> float:
        spectrum, sigma = data.spectrum, self.sigma
        white, factor = (spectrum, self._root) if self._is_scaled else (self.whitened(data), 1.0)
        # Lost singular values lie between 0 and what is stated: rewards along them cost the most at 0, and their
        # determinant at the other end. Anything less might not be the cost of any mixture.
        information = log_det(factor * white.all_singular, sigma)
        cost = _shrunk(white.z, factor * white.singular, sigma) + float(white.lost_z @ white.lost_z)
        # Both have the same residual outside the span, but may have lost different parts to rounding.
        return cost + sigma**2 * information - spectrum.unexplained(reach)

    def total(self, data: Data) -> float | None:
        alpha = self.ridge_alpha
        if alpha is None or not data.has_quick_ridges or not data.ridge(alpha).is_accurate:
            return None
        return data.loss(alpha) + self.sigma**2 * data.ridge(alpha).log_det

    def alpha0(self, data: Data) -> float:
        return self._unit_alpha0 * self.sigma**2

    def at_sigma(self, sigma: float) -> LinearCost:
        return LinearCost(self._shift, self._root, self._unit_alpha0, sigma)

    def whitened(self, data: Data) -> Spectrum:
        """The data in coordinates in which the mixture is θ ~ N(0, I)."""
        if not self._is_scaled:  # priors of parameters are refused for kernels when they start
            return as_factor(data).seen_from(self._shift, np.asarray(self._root))
        plain, root = as_factor(data).spectrum, self._root
        return plain._replace(singular=root * plain.singular, lost_singular=root * plain.lost_singular)


def _shrunk(z: Array, singular: Array, sigma: float) -> float:
    """Σ σ²z²/(s+σ²)."""
    if not len(z):
        return 0.0
    shrunk = z / np.hypot(singular / sigma, 1.0)
    return float(shrunk @ shrunk)


def log_det(singular: Array, sigma: float) -> float:
    """Log-determinant of I + diag(singular²)/σ², accurate also if it is tiny or a square overflows."""
    ratio = singular / sigma
    small = ratio < 1.0
    large = 2.0 * np.add.reduce(np.log(np.hypot(ratio[~small], 1.0)))
    return float(np.add.reduce(np.log1p(ratio[small] ** 2)) + large)
