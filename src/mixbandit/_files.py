"""Atomic writes: after a crash a file is the old one or the new one, never a mix. And state files, with a checksum.

A state file begins with the line `mixbandit-state FORMAT SHA256`; the rest is UTF-8 JSON with the hash of its bytes in
that line. No pickle, nothing executed. Arrays are stored as dtype, shape and base64 of their bytes, so that every float
is restored bit for bit.
"""

from __future__ import annotations

import base64
import contextlib
import errno
import functools
import hashlib
import json
import math
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mixbandit._checks import shown
from mixbandit.errors import DamagedState, NotStorable

MAGIC = "mixbandit-state"
# Format 2: randomness is a seed and the round, not the state of a generator.
FORMAT = 2
_FIRST_LINE = re.compile(rf"{MAGIC} ([1-9][0-9]{{0,5}}) ([0-9a-f]{{64}})\n".encode())
_LONGEST_FIRST_LINE = 128

# Mappings of this form stand for values that JSON lacks. A user's mapping with such a key is wrapped in _ESCAPED.
_ARRAY, _FLOAT, _ESCAPED = "__array__", "__float__", "__escaped__"
_ARRAY_KEYS = {_ARRAY, "shape", "data"}
_FLOATS = ("nan", "inf", "-inf")
_DTYPE = re.compile(r"[<|](b1|[iu][1248]|f(2|4|8|16))")
# What no state needs, but a damaged or hostile file could ask for.
_DEEPEST = 100
_MOST_DIGITS = 4000

_SUFFIX = ".part"
_SECONDS_OF_A_DAY = 86_400.0


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
    """Write beside `path`, flush to disk, and rename over it; folders are made as needed.

    An existing file keeps its permissions and, where the system allows, its owner; a new one gets the usual ones. A
    symbolic link stays: the file that it points to is replaced. Devices and pipes are written to directly.
    """
    data = content.encode() if isinstance(content, str) else content
    path = Path(os.path.realpath(path))
    if path.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    known = path.stat() if path.exists() else None
    if known is not None and not stat.S_ISREG(known.st_mode):
        path.write_bytes(data)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = _part_of(path)
    try:  # from here on an interrupt at any moment removes the file again
        while (handle := _made(temporary, 0o666 if known is None else 0o600)) is None:
            temporary = _part_of(path)
        with os.fdopen(handle, "wb") as file:
            if known is not None:  # before there is anything to read in it
                _take_over(file.fileno(), known)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            if os.name == "posix":  # renamed while it is open, and so locked: nobody sweeps it away before
                temporary.replace(path)
        if os.name != "posix":
            temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sweep(path)


def _take_over(handle: int, known: os.stat_result) -> None:
    """Give an open file the permissions of another and, if we may, its owner."""
    if os.name != "posix":
        return
    for owner in ((known.st_uid, -1), (-1, known.st_gid)):
        with contextlib.suppress(PermissionError):
            os.fchown(handle, *owner)
    os.fchmod(handle, stat.S_IMODE(known.st_mode))  # last: changing the owner may clear bits


def _part_of(path: Path) -> Path:
    """A new name beside `path`."""
    return path.with_name(f"{_prefix(path)}{_kernel()}.{secrets.token_hex(8)}{_SUFFIX}")


def _made(temporary: Path, mode: int) -> int | None:
    """A new file, open and locked as long as this process lives; None if a sweep came between creation and lock."""
    # Not `tempfile`, whose files are private: these permissions are cut by the umask, as for any new file.
    handle = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
    _lock(handle, wait=True)  # a sweep may have it, which then removes the file
    if os.fstat(handle).st_nlink or os.name != "posix":
        return handle
    os.close(handle)
    return None


def _prefix(path: Path) -> str:
    # Cut so that the whole stays a legal name. Names that begin alike share their sweeps, which does no harm.
    return f".{path.name[:40]}."


@functools.cache
def _kernel() -> str:
    """The id of the running system, the same in all its containers; empty where there is none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", "")
    except OSError:
        return ""


def _lock(handle: int, *, wait: bool) -> bool:
    """Lock a file, optionally waiting; return whether it worked."""
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True


def _sweep(path: Path) -> None:
    """Remove temporary files that were left when their writers were killed, and no others.

    Process ids and host names prove nothing: two containers may share both. A lock does, on one running system: it
    lasts as long as its writer. Files from elsewhere must be a day old.
    """
    prefix, kernel = _prefix(path), _kernel()
    for entry in os.scandir(path.parent):
        if entry.name.startswith(prefix) and entry.name.endswith(_SUFFIX):
            with contextlib.suppress(OSError):  # gone already, or another user's
                if time.time() - entry.stat(follow_symlinks=False).st_mtime > _SECONDS_OF_A_DAY:
                    os.unlink(entry.path)
                elif kernel and entry.name.startswith(f"{prefix}{kernel}."):
                    _unlink_abandoned(entry.path)


def _unlink_abandoned(path: str) -> None:
    """Remove a temporary file of this system unless its writer lives."""
    handle = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    try:
        if _lock(handle, wait=False):
            os.unlink(path)
    finally:
        os.close(handle)


def write_state(path: str | os.PathLike[str], state: Mapping[str, Any]) -> None:
    """Write `state`, plain values and arrays, to a file, atomically."""
    body = json.dumps(encoded(state, "state"), allow_nan=False, separators=(",", ":")).encode()
    digest = hashlib.sha256(body).hexdigest()
    write_atomically(Path(path), f"{MAGIC} {FORMAT} {digest}\n".encode() + body)


def read_state(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The state in a file; DamagedState if it is not a state file, is damaged or has a newer format."""
    with Path(path).open("rb") as file:
        first = file.readline(_LONGEST_FIRST_LINE)
        words = _FIRST_LINE.fullmatch(first)
        if words is None:
            raise DamagedState(f"{path} was not saved by mixbandit, or its first line is damaged")
        written = int(words[1])
        if written > FORMAT:
            raise DamagedState(
                f"{path} was saved by a newer mixbandit, in format {written}; this one reads formats up to {FORMAT}: "
                "upgrade mixbandit to load it"
            )
        body = file.read()
    if hashlib.sha256(body).hexdigest().encode() != words[2]:
        raise DamagedState(f"{path} is damaged: its content does not match the checksum in its first line")
    state = _loaded(body, path)
    if not isinstance(state, dict):
        raise DamagedState(f"{path} holds a {type(state).__name__}, not a state")
    return state


def to_line(value: Any) -> str:
    """Plain values and arrays as one line of JSON, bit for bit; NotStorable for anything else."""
    return json.dumps(encoded(value, "value"))


def from_line(text: str) -> Any:
    """What `to_line` wrote; DamagedState for other text."""
    return _loaded(text.encode(), shown(text))


def digest(value: Any) -> str:
    """A short hash of plain values and arrays, to compare them."""
    return hashlib.sha256(json.dumps(encoded(value, "value"), sort_keys=True).encode()).hexdigest()[:16]


def encoded(value: Any, where: str, depth: int = 0) -> Any:
    """`value` as JSON; NotStorable, naming its place `where`, for code and other objects."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, int) and abs(value) >= _too_large():
        raise NotStorable(f"{where} is an integer of more than {_MOST_DIGITS} digits")
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {_FLOAT: repr(float(value))}
    if depth == _DEEPEST:
        raise NotStorable(f"{where} is nested more than {_DEEPEST} levels deep")
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        array = np.ascontiguousarray(value)
        data = base64.b64encode(array.astype(array.dtype.newbyteorder("<")).tobytes()).decode()
        return {_ARRAY: array.dtype.newbyteorder("<").str, "shape": list(value.shape), "data": data}
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise NotStorable(f"{where} has the key {shown(key)}, which is not a string")
        parts = {key: encoded(part, f"{where}.{key}", depth + 1) for key, part in value.items()}
        return {_ESCAPED: parts} if {_ARRAY, _FLOAT, _ESCAPED} & parts.keys() else parts
    if isinstance(value, list | tuple):
        return [encoded(part, f"{where}[{i}]", depth + 1) for i, part in enumerate(value)]
    raise NotStorable(
        f"{where} is a {type(value).__name__}, {shown(value)}: only text, numbers and arrays can be stored"
    )


@functools.cache
def _too_large() -> int:
    return int(10**_MOST_DIGITS)


def _loaded(body: bytes, name: object) -> Any:
    """Plain values and arrays; DamagedState, with a name for where they stood, if they are none."""
    try:
        return _decoded(_parsed(body), 0)
    except (ValueError, TypeError, KeyError) as error:
        raise DamagedState(f"{name} cannot be read: {error}") from error
    except RecursionError as error:
        raise DamagedState(f"{name} cannot be read: it is nested too deeply") from error


def _parsed(body: bytes) -> Any:
    """JSON without what we never write and readers disagree on: repeated keys, infinity, endless integers."""
    return json.loads(
        body.decode(),
        object_pairs_hook=_without_repetition,
        parse_int=_integer,
        parse_float=_finite,
        parse_constant=_finite,
    )


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError(f"duplicate keys among {', '.join(key for key, _ in pairs)[:200]}")
    return found


def _integer(text: str) -> int:
    if len(text) > _MOST_DIGITS + 1:  # and a sign
        raise ValueError(f"an integer of {len(text)} digits")
    return int(text)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the number {text[:50]}, which is not finite")
    return number


def _decoded(value: Any, depth: int) -> Any:
    if not isinstance(value, list | dict):
        return value
    if depth > 2 * _DEEPEST:  # an escaped mapping counts twice
        raise ValueError("it is nested too deeply")
    if isinstance(value, list):
        return [_decoded(part, depth + 1) for part in value]
    # Earlier versions did not escape: only the exact form is special.
    if value.keys() == {_FLOAT} and value[_FLOAT] in _FLOATS:
        return float(value[_FLOAT])
    if value.keys() == _ARRAY_KEYS and isinstance(value[_ARRAY], str):
        return _array(value[_ARRAY], value["shape"], value["data"])
    if value.keys() == {_ESCAPED} and isinstance(value[_ESCAPED], dict):
        value = value[_ESCAPED]
    return {key: _decoded(part, depth + 1) for key, part in value.items()}


def _array(name: str, shape: Any, data: Any) -> np.ndarray[Any, Any]:
    """An array as large as its data, whatever its shape says."""
    if not _DTYPE.fullmatch(name):
        raise ValueError(f"an array of dtype {name[:50]}")
    if not isinstance(shape, list) or len(shape) > 8 or not all(type(n) is int and 0 <= n < 2**48 for n in shape):
        raise ValueError(f"an array of shape {str(shape)[:50]}")
    dtype, content = np.dtype(name), base64.b64decode(data, validate=True)
    if math.prod(shape) * dtype.itemsize != len(content):
        raise ValueError(f"an array of shape {str(shape)[:50]} and dtype {name} with {len(content)} bytes")
    array = np.frombuffer(content, dtype=dtype)
    if dtype.kind == "b" and (array.view(np.uint8) > 1).any():
        raise ValueError("an array of truth values that are neither 0 nor 1")
    return array.reshape(shape).astype(dtype.newbyteorder("="))
