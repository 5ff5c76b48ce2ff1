"""Kernels: k(A, B) for rows of actions (n, dim_in) and (m, dim_in) is the matrix (n, m) of k(a, b)."""

from __future__ import annotations

import abc
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mixbandit._checks import Array, as_float_array, as_number, check_finite, finite, positive, positive_array, shown
from mixbandit._schema import array, checked, real, record, tagged
from mixbandit.errors import InvalidInput

# Distances beyond this, in units of the length-scale, count as this: the kernel is 0 there.
_FAR = 1e100


class Kernel(abc.ABC):
    """A stationary kernel: `variance` times a profile of the distance in units of `lengthscale`."""

    def __init__(self, lengthscale: ArrayLike = 1.0, variance: float = 1.0) -> None:
        scales = positive_array(lengthscale, "lengthscale")
        if scales.ndim > 1 or scales.size == 0:
            raise InvalidInput(f"lengthscale must be one number or one per input, got shape {scales.shape}")
        self.lengthscale, self.variance = scales.copy(), positive(variance, "variance")

    def __call__(self, A: Array, B: Array) -> Array:
        rows, others = as_float_array(A, "A"), as_float_array(B, "B")
        if rows.ndim != 2 or others.ndim != 2 or rows.shape[1] != others.shape[1]:
            raise InvalidInput(f"A and B must have shapes (n, k) and (m, k), got {rows.shape} and {others.shape}")
        if self.lengthscale.size not in (1, rows.shape[1]):
            raise InvalidInput(f"there are {self.lengthscale.size} length-scales for rows of length {rows.shape[1]}")
        check_finite(rows, "A")
        check_finite(others, "B")
        a, b = rows / self.lengthscale, others / self.lengthscale
        # Differences, not norms and products: equal rows must be at distance exactly 0.
        with np.errstate(over="ignore"):
            distance2 = np.sum((a[:, None, :] - b[None, :, :]) ** 2, axis=2)
        return self.variance * self._profile(np.sqrt(np.minimum(distance2, _FAR**2)))

    @abc.abstractmethod
    def _profile(self, distance: Array) -> Array:
        """The kernel over its variance, at distances in units of the length-scale."""

    def state_dict(self) -> dict[str, Any]:
        return {"type": type(self).__name__, "lengthscale": self.lengthscale.copy(), "variance": self.variance}


class RBF(Kernel):
    """exp(−‖a − b‖²/2ℓ²), the Gaussian kernel."""

    def _profile(self, distance: Array) -> Array:
        return np.asarray(np.exp(-0.5 * distance**2))


class Matern(Kernel):
    """The Matérn kernel of smoothness ν = 1/2, 3/2 or 5/2."""

    def __init__(self, nu: float = 2.5, lengthscale: ArrayLike = 1.0, variance: float = 1.0) -> None:
        super().__init__(lengthscale, variance)
        self.nu = as_number(nu, "nu")
        if self.nu not in (0.5, 1.5, 2.5):
            raise InvalidInput(f"nu must be 0.5, 1.5 or 2.5, got {shown(nu)}")

    def _profile(self, distance: Array) -> Array:
        scaled = math.sqrt(2.0 * self.nu) * distance
        polynomial = {0.5: 1.0, 1.5: 1.0 + scaled, 2.5: 1.0 + scaled + scaled**2 / 3.0}[self.nu]
        return np.asarray(polynomial * np.exp(-scaled))

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "nu": self.nu}


def _lengthscale(value: Any, where: str) -> Array:
    return array(None)(value, where) if np.ndim(value) else array()(np.asarray(value), where)


_COMMON = {"lengthscale": _lengthscale, "variance": real(positive)}
KERNEL = tagged({"RBF": record(_COMMON), "Matern": record({**_COMMON, "nu": real(finite)})}, "a kernel")


def kernel_from_state_dict(state: Mapping[str, Any]) -> Kernel:
    """The kernel of a `state_dict`."""
    settings = checked(KERNEL, state, "kernel")
    kinds: dict[str, type[Kernel]] = {"RBF": RBF, "Matern": Matern}
    return kinds[settings.pop("type")](**settings)
