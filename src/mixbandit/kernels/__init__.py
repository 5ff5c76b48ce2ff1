"""Kernels: k(A, B) for rows of actions (n, dim_in) and (m, dim_in) is the matrix (n, m) of k(a, b)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mixbandit._checks import LARGEST_DIMENSION, Array, finite, nonnegative, positive
from mixbandit._schema import Schema, array, checked, deferred, integer, list_of, real, record, tagged
from mixbandit.kernels.base import ConstantKernel, Kernel, OnColumns, ProductKernel, SumKernel
from mixbandit.kernels.categories import ConditionalKernel, OverlapKernel
from mixbandit.kernels.polynomial import LinearKernel, PolynomialKernel
from mixbandit.kernels.sklearn import SklearnKernel, as_kernel, is_kernel
from mixbandit.kernels.stationary import RBF, Matern

__all__ = [
    "KERNEL",
    "RBF",
    "ConditionalKernel",
    "ConstantKernel",
    "Kernel",
    "LinearKernel",
    "Matern",
    "OnColumns",
    "OverlapKernel",
    "PolynomialKernel",
    "ProductKernel",
    "SklearnKernel",
    "SumKernel",
    "as_kernel",
    "is_kernel",
    "kernel_from_state_dict",
]


def _lengthscale(value: Any, where: str) -> Array:
    return array(None)(value, where) if np.ndim(value) else array()(np.asarray(value), where)


_VARIANCE = {"variance": real(positive)}
_STATIONARY = {"lengthscale": _lengthscale, **_VARIANCE}
_COLUMNS = list_of(integer(0, LARGEST_DIMENSION - 1), least=1)
_NESTED = deferred(lambda: _STORED)
_SEVERAL = record({"kernels": list_of(_NESTED, least=1)})
_STORED: Schema = tagged(
    {
        "RBF": record(_STATIONARY),
        "Matern": record({**_STATIONARY, "nu": real(finite)}),
        "ConstantKernel": record(_VARIANCE),
        "LinearKernel": record(_VARIANCE),
        "PolynomialKernel": record({"degree": integer(1), "constant": real(nonnegative), **_VARIANCE}),
        "SumKernel": _SEVERAL,
        "ProductKernel": _SEVERAL,
        "OnColumns": record({"kernel": _NESTED, "columns": _COLUMNS}),
        "OverlapKernel": record({"columns": _COLUMNS, "similarity": real(nonnegative), **_VARIANCE}),
        "ConditionalKernel": record({"kernel": _NESTED, "active": _COLUMNS}),
    },
    "a kernel",
)
_KINDS: dict[str, Callable[..., Kernel]] = {
    kind.__name__: kind
    for kind in (
        RBF,
        Matern,
        ConstantKernel,
        LinearKernel,
        PolynomialKernel,
        SumKernel,
        ProductKernel,
        OnColumns,
        OverlapKernel,
        ConditionalKernel,
    )
}


def KERNEL(value: Any, where: str) -> dict[str, Any]:
    """The schema of a kernel's `state_dict`: what has the right form must also make a kernel."""
    stored: dict[str, Any] = _STORED(value, where)
    _built(stored)
    return stored


def kernel_from_state_dict(state: Mapping[str, Any]) -> Kernel:
    """The kernel of a `state_dict`."""
    return _built(checked(KERNEL, state, "kernel"))


def _built(stored: Mapping[str, Any]) -> Kernel:
    settings = {name: value for name, value in stored.items() if name != "type"}
    if "kernel" in settings:
        settings["kernel"] = _built(settings["kernel"])
    if "kernels" in settings:
        settings["kernels"] = [_built(part) for part in settings["kernels"]]
    return _KINDS[stored["type"]](**settings)
