"""What belongs to one object in one process, and is made anew for its copies."""

from __future__ import annotations

import functools
import os
import secrets
import threading
from collections.abc import Callable
from typing import Any, TypeVar, cast

Method = TypeVar("Method", bound=Callable[..., Any])


class Lock(type(threading.RLock())):  # type: ignore[misc]
    """A reentrant lock. Copies and pickles of its owner get one of their own."""

    def __reduce__(self) -> tuple[type[Lock], tuple[()]]:
        return Lock, ()


def locked(method: Method) -> Method:
    """A method that one thread at a time can be in, by its owner's `lock`."""

    @functools.wraps(method)
    def alone(self: Any, *args: Any, **options: Any) -> Any:
        with self.lock:
            return method(self, *args, **options)

    return cast(Method, alone)


_forks: list[int] = []  # the processes that came of this one by forks, down to the one that runs
if hasattr(os, "register_at_fork"):  # elsewhere processes are never copied
    os.register_at_fork(after_in_child=lambda: _forks.append(os.getpid()))


class Runs:
    """Tokens that make ids unique: an id is a token and a number, and no token serves one number twice.

    A token is drawn afresh for every object, copy and process, and for a state that was gone back to. So an id is never
    issued again, whatever was lost: choices made after the last save, a process, a copy.
    """

    def __init__(self) -> None:
        self._token, self._fork, self._next = "", -1, 0

    def __reduce__(self) -> tuple[type[Runs], tuple[()]]:
        return Runs, ()

    def token(self, first: int, count: int) -> str:
        """The token for the numbers from `first` to `first + count − 1`."""
        if self._fork != len(_forks) or first < self._next:
            # Not from a seed: two runs with the same seed must differ in their ids, and only in these.
            self._token, self._fork = secrets.token_hex(8), len(_forks)
        self._next = first + count
        return self._token
