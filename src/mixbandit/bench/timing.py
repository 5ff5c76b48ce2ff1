"""Medians of interleaved repeats on one thread, and what they were measured on."""

from __future__ import annotations

import platform
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from mixbandit._lazy import blas, lapack

_PACKAGES = (
    "mixbandit", "numpy", "scipy", "numba", "cvxpy", "clarabel", "ecos", "scs", "cvxpylayers", "torch", "vowpalwabbit",
    "river", "mabwiser", "contextualbandits", "bayesianbandits",
)  # fmt: skip

Say = Callable[[str], None]

_TURN = 0.005  # seconds


def one_thread() -> AbstractContextManager[Any]:
    """Limit BLAS and OpenMP to one thread, as for a service with a process per core."""
    for library in (blas, lapack):  # scipy has a BLAS of its own, which can only be limited once it is loaded
        library()
    from threadpoolctl import threadpool_limits

    limits: AbstractContextManager[Any] = threadpool_limits(1)
    return limits


def seconds(work: Callable[[], object]) -> float:
    """How long it takes, once."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def medians(work: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Median seconds of each, taking turns: machines are noisy, and their noise comes in spells.

    A turn is as many calls as take some milliseconds, after one that is not counted: the first call after another
    library's would measure how fast caches are filled again.
    """
    calls = {}
    for name, each in work.items():
        each()  # imports and compilation
        calls[name] = max(int(_TURN / max(min(seconds(each), seconds(each)), 1e-9)), 1)
    times: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(repeats):
        for name, each in work.items():
            if calls[name] > 1:
                each()
            start = time.perf_counter()
            for _ in range(calls[name]):
                each()
            times[name].append((time.perf_counter() - start) / calls[name])
    return {name: statistics.median(values) for name, values in times.items()}


def facts() -> dict[str, Any]:
    """The machine and the versions that were measured."""
    versions: dict[str, str | None] = {}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = None
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "threads": 1,
        "versions": versions,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or sys.platform
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")
