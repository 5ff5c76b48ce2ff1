"""Kernels of scikit-learn, recognised by what they can do: the library itself is not imported."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mixbandit._checks import Array, as_float_array, shown
from mixbandit.errors import InvalidInput
from mixbandit.kernels.base import Kernel

# The step that balances truncation (h²) against cancellation (eps/h).
_STEP = float(np.cbrt(np.finfo(np.float64).eps))


class SklearnKernel(Kernel):
    """A kernel from `sklearn.gaussian_process.kernels`, with its current parameters.

    Gradients are central differences. There are no bounds over cells, and it cannot be stored. White noise is not a
    function of two actions: state it as `sigma`.
    """

    def __init__(self, kernel: Any) -> None:
        if not _is_sklearn_kernel(kernel):
            raise InvalidInput(f"kernel must be a scikit-learn kernel object, got {shown(kernel)}")
        if any(type(part).__name__ == "WhiteKernel" for part in (kernel, *kernel.get_params().values())):
            raise InvalidInput(f"kernel must not contain white noise, got {shown(kernel)}: state it as sigma")
        self.kernel = copy.deepcopy(kernel)

    def matrix(self, A: Array, B: Array) -> Array:
        return _shaped(self.kernel(A, B), (len(A), len(B)))

    def diagonal(self, A: Array) -> Array:
        return _shaped(self.kernel.diag(A), (len(A),))

    def pullback(self, A: Array, B: Array, weights: Array) -> Array:
        out = np.empty(A.shape)
        for i in range(A.shape[1]):
            ahead, behind, step = _moved(A, i)
            out[:, i] = np.einsum("nm,nm->n", self.matrix(ahead, B) - self.matrix(behind, B), weights) / step
        return out

    def diagonal_pullback(self, A: Array) -> Array:
        out = np.empty(A.shape)
        for i in range(A.shape[1]):
            ahead, behind, step = _moved(A, i)
            out[:, i] = 0.5 * (self.diagonal(ahead) - self.diagonal(behind)) / step
        return out

    def __repr__(self) -> str:
        return f"SklearnKernel({self.kernel!r})"

    def __eq__(self, other: object) -> bool:
        return bool(self.kernel == other.kernel) if isinstance(other, SklearnKernel) else NotImplemented

    def __hash__(self) -> int:
        return hash((SklearnKernel, repr(self.kernel)))


def as_kernel(kernel: Any) -> Kernel:
    """A kernel from one of ours or one of scikit-learn."""
    if isinstance(kernel, Kernel):
        return kernel
    if _is_sklearn_kernel(kernel):
        return SklearnKernel(kernel)
    raise InvalidInput(
        f"kernel must be a mixbandit or scikit-learn kernel, such as RBF(0.5), got {shown(kernel)}"
        + ("; it is a class: call it first" if isinstance(kernel, type) else "")
    )


def is_kernel(given: Any) -> bool:
    """Whether `as_kernel` takes it."""
    return isinstance(given, Kernel) or _is_sklearn_kernel(given)


def _is_sklearn_kernel(kernel: Any) -> bool:
    needed = ("__call__", "diag", "get_params")
    return not isinstance(kernel, type) and all(callable(getattr(kernel, name, None)) for name in needed)


def _moved(A: Array, column: int) -> tuple[Array, Array, Array]:
    """The rows with one column a step ahead and a step behind, and the distance between them."""
    ahead, behind = A.copy(), A.copy()
    steps = _STEP * np.maximum(1.0, np.abs(A[:, column]))
    ahead[:, column] += steps
    behind[:, column] -= steps
    return ahead, behind, ahead[:, column] - behind[:, column]


def _shaped(values: ArrayLike, shape: tuple[int, ...]) -> Array:
    array = as_float_array(values, "the kernel's values")
    if array.shape != shape:
        raise InvalidInput(f"the kernel must return shape {shape}, got {array.shape}")
    return array.copy()
