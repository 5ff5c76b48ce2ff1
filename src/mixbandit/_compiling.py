"""Compiled code where numba is installed and works, else numpy; MIXBANDIT_COMPILED=0 in the environment forbids it."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import logging
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

logger = logging.getLogger(__name__)

Kernel = Callable[..., Any]

_known: dict[str, Kernel | None] = {}
_said: list[str] = []
_SILENT = 1.5  # seconds
_off = [os.environ.get("MIXBANDIT_COMPILED") == "0"]


def kernel(name: str, check: Callable[[Kernel], None]) -> Kernel | None:
    """The compiled function `module.function`, or None.

    When it is first asked for, `check` compiles it, and raises RuntimeError if it disagrees with numpy.
    """
    if _off[-1]:
        return None
    if name not in _known:
        _known[name] = _found(name, check)
    return _known[name]


def _found(name: str, check: Callable[[Kernel], None]) -> Kernel | None:
    if importlib.util.find_spec("numba") is None:
        return None
    module, _, function = name.rpartition(".")
    try:
        found: Kernel = getattr(importlib.import_module(module), function)
        with _patience():
            check(found)
    except Exception as error:  # if numba is broken, numpy does the same
        raise_interrupt_in(error)
        logger.warning("numba is installed but does not work; slower numpy code is used", exc_info=True)
        return None
    return _interruptible(found)


def _interruptible(compiled: Kernel) -> Kernel:
    """The same function, from which Ctrl-C comes out as KeyboardInterrupt.

    If it comes while arguments or results are converted, numba returns a result nevertheless, and Python then raises
    SystemError because of it, at each level of C code that it passes.
    """

    def call(*arguments: Any) -> Any:
        try:
            return compiled(*arguments)
        except SystemError as error:
            raise_interrupt_in(error)
            raise

    return call


def raise_interrupt_in(error: BaseException) -> None:
    """Raise the KeyboardInterrupt that led to an error, however many other errors lie between."""
    seen, left = set[int](), [error]
    while left:
        each = left.pop()
        if isinstance(each, KeyboardInterrupt):
            raise each.with_traceback(None) from None
        seen.add(id(each))
        left += [e for e in (each.__cause__, each.__context__) if e is not None and id(e) not in seen]


@contextlib.contextmanager
def _patience() -> Iterator[None]:
    """Say what is going on if it takes seconds, which it does once, before results are cached on disk."""
    message = "compiling numerical code, which takes ten to thirty seconds; the result is cached"
    timer = threading.Timer(_SILENT, _say_once, (message,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _say_once(message: str) -> None:
    if message not in _said:
        _said.append(message)
        logger.warning(message)


@contextlib.contextmanager
def off() -> Iterator[None]:
    """Numpy alone, for comparisons."""
    _off.append(True)
    try:
        yield
    finally:
        _off.pop()


def forget() -> None:
    """Look for compiled code again."""
    _known.clear()
