"""Files that are either the old one or the new one, never half of each."""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

_SUFFIX = ".part"


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Wait until no other process is in such a block for the same folder; where there are no locks, do not wait."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write beside `path`, flush to disk, and rename over it; folders are made as needed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = content.encode() if isinstance(content, str) else content
    handle, name = tempfile.mkstemp(_SUFFIX, f"{_prefix(path)}{os.getpid()}.", path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes files private; what the user asked for has the usual permissions.
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sweep(path)


def _prefix(path: Path) -> str:
    # The host is named because others may write to a shared folder, and their processes cannot be seen from here.
    return f".{path.name}.{socket.gethostname()}."


def _sweep(path: Path) -> None:
    """Remove what processes that were killed while they wrote to `path` left behind."""
    prefix = _prefix(path)
    for entry in os.scandir(path.parent):
        if entry.name.startswith(prefix) and entry.name.endswith(_SUFFIX):
            owner = entry.name.removeprefix(prefix).split(".")[0]
            if owner.isdecimal() and not _is_alive(int(owner)):
                Path(entry.path).unlink(missing_ok=True)


def _is_alive(process: int) -> bool:
    if os.name != "posix":  # where signal 0 is not a question
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # somebody else's, or not to be told here
        return True
    return True
