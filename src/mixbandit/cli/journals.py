"""Journals whose last line was torn, by a full disk or a process that was killed while it wrote.

Optuna reads such a journal, but would append to the half line, and from then on nothing could read it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mixbandit._extras import import_extra

_CHUNK = 1 << 16


def said_on_stderr(text: str) -> None:
    print(f"mixbandit: {text}", file=sys.stderr)  # noqa: T201


def journal_to_write(path: str, say: Callable[[str], None] = said_on_stderr) -> Any:
    """A journal storage that ends or sets aside a torn last line before anything is written."""
    optuna = import_extra("optuna", extra="optuna")
    journal = optuna.storages.journal
    lock = _MendingLock(journal.JournalFileSymlinkLock(path), Path(path), say)
    backend = journal.JournalFileBackend(path, lock_obj=lock)
    lock.acquire()  # what is torn already is told now, and not with the first trial
    lock.release()
    return optuna.storages.JournalStorage(backend)


class _MendingLock:
    """Optuna's lock, which is held for every write: nobody else is in the middle of a line."""

    def __init__(self, lock: Any, path: Path, say: Callable[[str], None]) -> None:
        self._lock, self._path, self._say = lock, path, say

    def acquire(self) -> bool:
        self._lock.acquire()
        try:
            self._mend()
        except BaseException:
            self._lock.release()
            raise
        return True

    def release(self) -> None:
        self._lock.release()

    def _mend(self) -> None:
        with self._path.open("r+b") as file:
            start, torn = _torn_line(file)
            if not torn:
                return
            if _is_complete(torn):
                file.seek(0, os.SEEK_END)
                file.write(b"\n")
                return
            kept = _kept(self._path, torn)  # first, so that the bytes are always somewhere
            file.truncate(start)
            file.flush()
            os.fsync(file.fileno())
        self._say(
            f"the last line of {self._path} was cut off, by a full disk or a process that was killed; its {len(torn)} "
            f"bytes were moved to {kept}"
        )


def _torn_line(file: Any) -> tuple[int, bytes]:
    """Where a last line without an end begins, and what there is of it."""
    end = file.seek(0, os.SEEK_END)
    torn = b""
    while end > 0:
        # Nearly always the last byte is the end of a line, and no more is read.
        size = min(end, _CHUNK if torn else 1)
        end = file.seek(end - size)
        read = file.read(size)
        cut = read.rfind(b"\n")
        if cut >= 0:
            return end + cut + 1, read[cut + 1 :] + torn
        torn = read + torn
    return 0, torn


def _is_complete(line: bytes) -> bool:
    """Whether only the end of the line is missing: what is cut off earlier is no JSON."""
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _kept(path: Path, torn: bytes) -> Path:
    """Write what is set aside to a new file beside the journal."""
    stem, count = f"{path.name}.torn-{datetime.now(UTC):%Y%m%dT%H%M%S}", 0
    while True:
        kept = path.with_name(stem if not count else f"{stem}-{count}")
        try:
            with kept.open("xb") as file:
                file.write(torn)
                file.flush()
                os.fsync(file.fileno())
            return kept
        except FileExistsError:
            count += 1
