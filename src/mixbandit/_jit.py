"""Numba, as we use it. Only modules of compiled code import this one, because it needs numba.

Compiled code is cached on disk until its module changes (`_compile_cache`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numba

from mixbandit._compile_cache import CheckedCache

logger = logging.getLogger(__name__)

SUMS = {"reassoc", "contract"}
"""Fast mathematics for functions that only add up: reordered sums can use vector instructions."""


def jit(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Compile when first called, and cache the result on disk where possible."""
    # Division by zero gives infinity or NaN, as numpy does.
    compiled = numba.njit(**{"error_model": "numpy", **options})(function)
    try:
        compiled._cache = CheckedCache(function)  # where `cache=True` puts numba's own
    except Exception:  # no folder can be written to, or this numba caches in another way
        logger.info("compiled code is not cached", exc_info=True)
    return compiled  # type: ignore[no-any-return]


def _dot(x: Any, y: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        total += x[i] * y[i]
    return total


dot = jit(_dot, fastmath=SUMS)
"""xᵀy."""
