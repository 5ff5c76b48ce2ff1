"""Kernels: k(A, B) for rows of actions (n, dim_in) and (m, dim_in) is the matrix (n, m) of k(a, b)."""

from __future__ import annotations

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
]
