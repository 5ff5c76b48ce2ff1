"""Atomic writes: after a crash a file is the old one or the new one, never a mix. And state files, with a checksum.

A state file begins with the line `mixbandit-state FORMAT SHA256`; the rest is UTF-8 JSON with the hash of its bytes in
that line. No pickle, nothing executed. Arrays are stored as dtype, shape and base64 of their bytes, so that every float
is restored bit for bit.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import math
import os
import socket
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mixbandit.errors import DamagedState, NotStorable

MAGIC = "mixbandit-state"
# Format 2: randomness is a seed and the round, not the state of a generator.
FORMAT = 2
_ARRAY, _FLOAT = "__array__", "__float__"
_SUFFIX = ".part"


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold an exclusive lock on the folder, waiting for other processes; on systems without locks, do nothing."""
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
        # mkstemp makes files private; restore the usual permissions.
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sweep(path)


def _prefix(path: Path) -> str:
    # The host name, because other hosts may write to a shared folder, and their processes are not visible from here.
    return f".{path.name}.{socket.gethostname()}."


def _sweep(path: Path) -> None:
    """Remove temporary files of processes that were killed while writing to `path`."""
    prefix = _prefix(path)
    for entry in os.scandir(path.parent):
        if entry.name.startswith(prefix) and entry.name.endswith(_SUFFIX):
            owner = entry.name.removeprefix(prefix).split(".")[0]
            if owner.isdecimal() and not _is_alive(int(owner)):
                Path(entry.path).unlink(missing_ok=True)


def _is_alive(process: int) -> bool:
    if os.name != "posix":  # elsewhere signal 0 is more than a test
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # another user's process, or unknown
        return True
    return True


def write_state(path: str | os.PathLike[str], state: Mapping[str, Any]) -> None:
    """Write `state`, plain values and arrays, to a file, atomically."""
    body = json.dumps(encoded(state, "state"), allow_nan=False, separators=(",", ":")).encode()
    digest = hashlib.sha256(body).hexdigest()
    write_atomically(Path(path), f"{MAGIC} {FORMAT} {digest}\n".encode() + body)


def read_state(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The state in a file; DamagedState if it is not a state file, is damaged or has a newer format."""
    content = Path(path).read_bytes()
    line, _, body = content.partition(b"\n")
    words = line.decode("utf-8", errors="replace").split(" ")
    if len(words) != 3 or words[0] != MAGIC or not words[1].isdecimal() or int(words[1]) < 1:
        raise DamagedState(f"{path} is not a file that mixbandit saved")
    if int(words[1]) > FORMAT:
        raise DamagedState(
            f"{path} was saved by a newer mixbandit, in format {words[1]}; this one reads formats up to {FORMAT}: "
            "upgrade mixbandit to load it"
        )
    if hashlib.sha256(body).hexdigest() != words[2]:
        raise DamagedState(f"{path} is damaged: its content does not match the checksum in its first line")
    try:
        state = _decoded(json.loads(body))
    except (ValueError, TypeError, KeyError) as error:
        raise DamagedState(f"{path} cannot be read: {error}") from error
    if not isinstance(state, dict):
        raise DamagedState(f"{path} holds a {type(state).__name__}, not a state")
    return state


def digest(value: Any) -> str:
    """A short hash of plain values and arrays, to compare them."""
    return hashlib.sha256(json.dumps(encoded(value, "value"), sort_keys=True).encode()).hexdigest()[:16]


def encoded(value: Any, where: str) -> Any:
    """`value` as JSON; NotStorable, naming its place `where`, for code and other objects."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {_FLOAT: repr(value)}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        array = np.ascontiguousarray(value)
        data = base64.b64encode(array.astype(array.dtype.newbyteorder("<")).tobytes()).decode()
        return {_ARRAY: array.dtype.newbyteorder("<").str, "shape": list(value.shape), "data": data}
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise NotStorable(f"{where} has the key {key!r}, which is not a string")
        return {key: encoded(part, f"{where}.{key}") for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [encoded(part, f"{where}[{i}]") for i, part in enumerate(value)]
    raise NotStorable(f"{where} is a {type(value).__name__}, {value!r}: only text, numbers and arrays can be stored")


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return [_decoded(part) for part in value]
    if not isinstance(value, dict):
        return value
    if _FLOAT in value:
        return float(value[_FLOAT])
    if _ARRAY in value:
        dtype = np.dtype(value[_ARRAY])
        if dtype.kind not in "biuf":
            raise ValueError(f"an array of dtype {dtype}")
        array = np.frombuffer(base64.b64decode(value["data"], validate=True), dtype=dtype)
        return array.reshape(value["shape"]).astype(dtype.newbyteorder("="))
    return {key: _decoded(part) for key, part in value.items()}
