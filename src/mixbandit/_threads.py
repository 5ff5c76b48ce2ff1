"""Linear algebra on one BLAS thread, whatever the environment says.

BLAS libraries divide larger problems between threads. On a busy machine a decision then waits until the operating
system runs the other thread: a change of scale at 361 features took 1.2 to 2.3 s where one thread takes .05 to .2 s.
Nothing that a decision computes is so large that a second thread would pay.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

from mixbandit._lazy import blas, lapack

Function = TypeVar("Function", bound=Callable[..., Any])

MOST_ENTRIES = 8192
"""OpenBLAS leaves products of a matrix of up to this many entries and a vector to one thread."""
# Decompositions of fewer entries take less time than setting a limit would save.
_FEW_ENTRIES = 1024

# Limits count for the whole process: two Python threads that set and restore one in turns would leave the wrong one.
_limiting = threading.Lock()


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """A context in which BLAS has one thread."""
    if not _limiting.acquire(blocking=False):  # this thread, or another one, has limited it already
        yield
        return
    try:
        with _controller().limit(limits=1, user_api="blas"):
            yield
    finally:
        _limiting.release()


@functools.cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController  # late: small matrices do without

    blas(), lapack()  # scipy has a BLAS of its own, which is found only once it is loaded
    return ThreadpoolController()


def single_threaded(function: Function) -> Function:
    """A decomposition that is computed on one BLAS thread; its first argument is the array that it decomposes."""

    @functools.wraps(function)
    def alone(matrix: Any, *args: Any, **options: Any) -> Any:
        if matrix.size <= _FEW_ENTRIES:
            return function(matrix, *args, **options)
        with one_thread():
            return function(matrix, *args, **options)

    return cast(Function, alone)
