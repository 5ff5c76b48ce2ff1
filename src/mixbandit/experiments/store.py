"""Results on disk, a row per repetition, so that interrupted work goes on where it stopped; and what counts say."""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import io
import json
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mixbandit._files import write_atomically
from mixbandit.errors import DamagedState

# A promise is called broken when the misses would be this unlikely at the promised rate.
SIGNIFICANCE = 0.001
# At most this many seconds of results are lost to a crash.
_SECONDS_BETWEEN_WRITES = 2.0


def settings_key(settings: Any) -> str:
    """A short hash of a frozen dataclass of settings: the same settings and version find the same results."""
    text = json.dumps({**dataclasses.asdict(settings), **_made_by()}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def binomial_pvalue(misses: int, runs: int, rate: float) -> float:
    """The chance of so many misses, or more, at a true miss rate of `rate`."""
    from scipy.special import bdtrc

    return 1.0 if misses == 0 else float(bdtrc(misses - 1, runs, rate))


def _made_by() -> dict[str, str]:
    return {"mixbandit": version("mixbandit")}


class ResultStore:
    """One CSV file per settings: a comment line with the settings, a header, a row per repetition."""

    def __init__(self, folder: Path, name: str, settings: Any, columns: tuple[str, ...]) -> None:
        self._comment = "# " + json.dumps({**dataclasses.asdict(settings), **_made_by()}, sort_keys=True)
        self._columns = ("repetition", *columns)
        self.path = folder / f"{name}-{settings_key(settings)}.csv"
        self.rows: dict[int, tuple[str, ...]] = {}
        self._written = time.monotonic()
        if self.path.exists():
            self._read()

    def add(self, repetition: int, *values: object) -> None:
        """Keep a result, and write all of them now and then."""
        self.rows[repetition] = tuple(str(value) for value in values)
        if time.monotonic() - self._written > _SECONDS_BETWEEN_WRITES:
            self.flush()

    def flush(self) -> None:
        """Write everything, atomically."""
        text = io.StringIO()
        text.write(self._comment + "\n")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self._columns)
        writer.writerows((key, *self.rows[key]) for key in sorted(self.rows))
        write_atomically(self.path, text.getvalue())
        self._written = time.monotonic()

    def _read(self) -> None:
        text = self.path.read_text()
        comment, *lines = text.splitlines() or [""]
        header, *rows = list(csv.reader(lines)) or [[]]
        complete = text.endswith("\n") and all(len(row) == len(self._columns) and row[0].isdigit() for row in rows)
        if comment != self._comment or tuple(header) != self._columns or not complete:
            raise DamagedState(f"{self.path} was not written by these settings, or is damaged; remove it to start over")
        self.rows = {int(row[0]): tuple(row[1:]) for row in rows}
