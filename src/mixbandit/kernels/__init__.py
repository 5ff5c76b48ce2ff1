"""Kernels: k(A, B) for rows of actions (n, dim_in) and (m, dim_in) is the matrix (n, m) of k(a, b)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mixbandit.kernels.base import ConstantKernel, Kernel, OnColumns, ProductKernel, SumKernel
from mixbandit.kernels.categories import ConditionalKernel, OverlapKernel
from mixbandit.kernels.polynomial import LinearKernel, PolynomialKernel
from mixbandit.kernels.sklearn import SklearnKernel, as_kernel, is_kernel
from mixbandit.kernels.stationary import RBF, Matern

__all__ = [
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


def kernel_from_state_dict(state: Mapping[str, Any]) -> Kernel:
    """The kernel of a `state_dict`."""
    kernel: Kernel = Kernel.family.load(state)
    return kernel
