"""Results on disk, a row per repetition, so that interrupted work can resume; and statistics of counts."""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import io
import json
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO

from mixbandit._files import locked, write_atomically
from mixbandit.errors import DamagedState

# A promise is called broken when the misses would be this unlikely at the promised rate.
SIGNIFICANCE = 0.001


def settings_key(settings: Any) -> str:
    """A short hash of a frozen dataclass of settings: the same settings and version find the same results."""
    text = json.dumps({**dataclasses.asdict(settings), **_made_by()}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def binomial_pvalue(misses: int, runs: int, rate: float) -> float:
    """The probability of at least this many misses at a true miss rate of `rate`."""
    from scipy.special import bdtrc

    return 1.0 if misses == 0 else float(bdtrc(misses - 1, runs, rate))


def binomial_interval(misses: int, runs: int) -> tuple[float, float]:
    """Clopper–Pearson 95 % interval of the miss rate."""
    from scipy.special import betaincinv

    low = 0.0 if misses == 0 else float(betaincinv(misses, runs - misses + 1, 0.025))
    high = 1.0 if misses == runs else float(betaincinv(misses + 1, runs - misses, 0.975))
    return low, high


def _made_by() -> dict[str, str]:
    return {"mixbandit": version("mixbandit")}


class ResultStore:
    """One CSV file per settings: a comment line with the settings, a header, a row per repetition.

    A result is written as soon as it is added, at the end of the file. Two commands may work on one file: each adds
    its rows, which are the same for the same repetition.
    """

    def __init__(self, folder: Path, name: str, settings: Any, columns: tuple[str, ...]) -> None:
        self._comment = "# " + json.dumps({**dataclasses.asdict(settings), **_made_by()}, sort_keys=True)
        self._columns = ("repetition", *columns)
        self.path = folder / f"{name}-{settings_key(settings)}.csv"
        self.rows: dict[int, tuple[str, ...]] = {}
        if self.path.exists():
            with locked(folder):
                self.rows = self._read()

    def add(self, repetition: int, *values: object) -> None:
        """Keep a result."""
        row = tuple(str(value) for value in values)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with locked(self.path.parent):
            if not self.path.exists():
                write_atomically(self.path, self._text({}))
            with self.path.open("r+b") as file:
                _cut_unfinished_line(file)
                file.write(_lines([(repetition, *row)]).encode())
        self.rows[repetition] = row

    def tidy(self) -> None:
        """Sort the file by repetition, each once, however many processes wrote to it."""
        with locked(self.path.parent):
            if self.path.exists():
                self.rows = self._read() | self.rows
            write_atomically(self.path, self._text(self.rows))

    def _text(self, rows: dict[int, tuple[str, ...]]) -> str:
        return f"{self._comment}\n{_lines([self._columns, *((key, *rows[key]) for key in sorted(rows))])}"

    def _read(self) -> dict[int, tuple[str, ...]]:
        with self.path.open("r+b") as file:
            _cut_unfinished_line(file)
        try:
            comment, *lines = self.path.read_text(encoding="utf-8").splitlines() or [""]
            header, *rows = list(csv.reader(lines)) or [[]]
            complete = all(len(row) == len(self._columns) for row in rows)
            if comment != self._comment or tuple(header) != self._columns or not complete:
                raise ValueError("another header, or rows of another length")
            return {_count(row[0]): tuple(row[1:]) for row in rows}
        except (ValueError, csv.Error) as error:
            wrong = f"{self.path} was written with other settings, or is damaged; remove it to start over ({error})"
            raise DamagedState(wrong) from error


def write_table(path: Path, columns: Sequence[str], rows: Iterable[Sequence[object]], **known: object) -> None:
    """A CSV file for readers, with a comment that says what made it: the version, and other facts given."""
    made = "; ".join(f"{name}: {value}" for name, value in {**_made_by(), **known}.items())
    write_atomically(path, f"# {made}\n{_lines([tuple(columns), *map(tuple, rows)])}")


def _cut_unfinished_line(file: BinaryIO) -> None:
    """Remove what a killed process, or a full disk, left of a line; the file is then as it was before, at its end."""
    size = file.seek(0, io.SEEK_END)
    if not size:
        return
    file.seek(-1, io.SEEK_END)
    if file.read(1) != b"\n":
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)
        file.seek(0, io.SEEK_END)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise ValueError(f"{text[:50]!r} is not the number of a repetition")
    return int(text)


def _lines(rows: Iterable[tuple[object, ...]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
