"""numba's cache on disk, with a checksum: damaged machine code is compiled again instead of being run.

numba itself trusts what it finds. Half a file is then a foreign error at the first bound; a wrong byte in the code may
be a crash or a wrong number.
"""

from __future__ import annotations

import hashlib
import inspect
import logging
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache
from numba.core.dispatcher import Dispatcher
from numba.core.serialize import dumps

from mixbandit._files import write_atomically

logger = logging.getLogger(__name__)


class CheckedCache(FunctionCache):
    """The cache of one function; it never raises, because compiling again always helps."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        self._cache_file: Any = _CheckedFiles(Path(self.cache_path), function)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        except Exception:
            _say_once("the cache of compiled code cannot be read and is not used: compiling takes some seconds")
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]
        except Exception:
            _say_once("compiled code cannot be cached: compiling will take some seconds in every process")


class _CheckedFiles:
    """A file per function and key: hashes of what the code was made from and of the code itself, then the code."""

    def __init__(self, folder: Path, function: Callable[..., Any]) -> None:
        self._folder, self._name = folder, f"{function.__module__.rpartition('.')[2]}.{function.__name__}"
        # Other functions are inlined, so that all of the source counts, also that of modules they come from.
        compiled = (each for each in function.__globals__.values() if isinstance(each, Dispatcher))
        modules = {function.__module__, *(each.py_func.__module__ for each in compiled)}
        sources = "".join(inspect.getsource(sys.modules[name]) for name in sorted(modules))
        self._made_from = hashlib.sha256(f"{numba.__version__} {sources}".encode()).digest()

    def load(self, key: Any) -> Any:
        path = self._path(key)
        if not path.exists():
            return None
        content = path.read_bytes()
        made_from, digest, code = content[:32], content[32:64], content[64:]
        if digest != hashlib.sha256(made_from + code).digest():
            _say_once(f"the compiled code in {self._folder} is damaged and is compiled again, which takes some seconds")
            return None
        # Pickled as numba does: the folder is as trusted as the code that Python itself caches.
        return pickle.loads(code) if made_from == self._made_from else None  # noqa: S301

    def save(self, key: Any, data: Any) -> None:
        code: bytes = dumps(data)  # type: ignore[no-untyped-call]
        digest = hashlib.sha256(self._made_from + code).digest()
        write_atomically(self._path(key), self._made_from + digest + code)

    def flush(self) -> None:
        for path in self._folder.glob(f"{self._name}-*.nbc"):
            path.unlink(missing_ok=True)

    def _path(self, key: Any) -> Path:
        return self._folder / f"{self._name}-{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}.nbc"


def _say_once(message: str) -> None:
    # Through logging, as for a numba that does not work: bounds are the same, only later.
    logger.log(logging.DEBUG if _said else logging.WARNING, message)
    logger.debug("where it happened", exc_info=sys.exc_info()[0] is not None)
    _said.append(message)


_said: list[str] = []
