"""Tables of trials, column by column: CSV files, read as a stream, and DataFrames of pandas, polars and Arrow."""

from __future__ import annotations

import abc
import contextlib
import csv
import functools
import math
import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import unquote

import numpy as np

from mixbandit._checks import clipped, shown
from mixbandit.errors import InvalidInput
from mixbandit.tuning.columns import ABSENT, LARGEST_EXACT, Column, Notes, Numbers, column_of, missing

Progress = Callable[[int], None]
"""Called with the number of rows read so far."""

_AT_ONCE = 2048  # rows
# Longer lines and more different texts in a column than this are not held in memory.
_LONGEST_LINE = 2**24
_MOST_TEXTS = 10_000
_LONGEST_INTEGER = 25  # digits; longer ones are read as floats
_MAGIC = {
    b"\xff\xfe": "UTF-16 text: save it as UTF-8, for example with `iconv -f UTF-16 -t UTF-8`",
    b"\xfe\xff": "UTF-16 text: save it as UTF-8, for example with `iconv -f UTF-16 -t UTF-8`",
    b"SQLite format 3\x00": "an SQLite database: for an Optuna storage, give its URL, sqlite:///PATH",
    b"PK\x03\x04": "a spreadsheet or an archive: export the table as CSV",
    b"\x1f\x8b": "compressed with gzip: unpack it first",
    b"PAR1": "a Parquet file: read it with pandas or polars and certify the DataFrame",
}
_SHORT = 2  # characters: replacing such parts of a password would garble everything
_NOT_UTF8 = re.compile("[\udc80-\udcff]")
# Passwords in an address: in its options, and between the user and the last @.
_SECRET_OPTION = re.compile(r"([?&][^=&\s]*(?:pass|pwd|secret|token|key)[^=&\s]*=)([^&\s'\"]*)", re.IGNORECASE)
_PASSWORD = re.compile(r"(:/+[^:/@\s]*:)(.*)(?=@)")


def masked(text: str) -> str:
    """An address, or a text with one, without its password."""
    return _PASSWORD.sub(r"\1***", _SECRET_OPTION.sub(r"\1***", text))


def secrets_in(address: str) -> set[str]:
    """The passwords that `masked` hides, and the parts that a reader may take for a host or a path."""
    found = [secret for _, secret in _SECRET_OPTION.findall(address)]
    found += [secret for _, secret in _PASSWORD.findall(_SECRET_OPTION.sub(r"\1", address))]
    whole = {*found, *map(unquote, found)}
    return whole | {part for secret in whole for part in re.split("[@/:?&=]", secret) if len(part) > _SHORT}


class Table(abc.ABC):
    """Named columns of the same length."""

    names: tuple[str, ...]
    rows: int
    ignored: Mapping[str, str] = {}  # what is not a column and is not read, with the reason

    @abc.abstractmethod
    def column(self, name: str, *, lists: bool = False) -> Column:
        """The cells of a column, with ABSENT where the table has none; `lists`: whether cells may be lists."""

    def check_names(self, source: str) -> None:
        """Raise InvalidInput for columns that share a name."""
        twice = [name for name, count in Counter(self.names).items() if count > 1]
        if twice:
            raise InvalidInput(f"{source} has several columns named {', '.join(map(repr, twice))}: rename all but one")


class Frame(Table):
    """A DataFrame of pandas, polars or Arrow, known by its methods: none of them is imported."""

    def __init__(self, frame: Any) -> None:
        if hasattr(frame, "collect_schema") and hasattr(frame, "collect"):  # polars' LazyFrame
            frame = frame.collect()
        self._cells: list[Callable[[], Sequence[Any]]]
        if hasattr(frame, "iloc"):
            if getattr(frame.columns, "nlevels", 1) > 1:
                raise InvalidInput(
                    f"the columns of the DataFrame have several levels, {shown(list(frame.columns)[:3])}: use one "
                    "level; for Optuna, trials_dataframe() without multi_index"
                )
            names = list(frame.columns)
            self._cells = [functools.partial(_pandas_cells, frame, i) for i in range(len(names))]
            labels = [name for name in getattr(frame.index, "names", ()) if name is not None]
            self.ignored = {str(name): "the index, not a column" for name in labels if str(name) not in names}
        elif hasattr(frame, "get_columns"):
            names = list(frame.columns)
            self._cells = [series.to_list for series in frame.get_columns()]
        else:
            names = list(frame.column_names)
            self._cells = [column.to_pylist for column in frame.columns]
        self.names, self.rows = tuple(map(str, names)), len(frame)
        self.check_names("the DataFrame")

    @staticmethod
    def is_one(history: Any) -> bool:
        """Whether this looks like a DataFrame."""
        marks = (("collect_schema", "collect"), ("columns", "iloc"), ("columns", "get_columns"))  # polars, pandas
        arrow = ("columns", "column_names", "to_pylist")
        return any(all(hasattr(history, name) for name in names) for names in (*marks, arrow))

    def column(self, name: str, *, lists: bool = False) -> Column:
        cells = [ABSENT if missing(cell) else cell for cell in self.cells(name)]
        if lists:
            cells = [tuple(cell) if isinstance(cell, list) else cell for cell in cells]
        return column_of(cells, name)

    def cells(self, name: str) -> Sequence[Any]:
        """The cells of a column as the frame has them."""
        return self._cells[self.names.index(name)]()


def _pandas_cells(frame: Any, i: int) -> list[Any]:
    cells: list[Any] = frame.iloc[:, i].tolist()
    return cells


class CsvFile(Table):
    """A CSV file with a header, in UTF-8; lines before the header that begin with # are comments.

    It is read once, in pieces, so that pipes work and memory does not depend on the number of different rows.
    """

    def __init__(self, path: Path, progress: Progress = lambda rows: None) -> None:
        source = clipped(masked(str(path)))
        columns: list[_Cells] = []
        self.rows = 0
        lines = _Lines(source)
        try:
            _check_kind(path, source)
            # Bytes that are not UTF-8 become lone surrogates, so that a message can name their line.
            with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
                reader = csv.reader(lines.of(file), strict=True)
                self.names = tuple(next(reader, ()))
                _check_header(self.names, source)
                self.check_names(source)
                columns = [_Cells() for _ in self.names]
                piece: list[list[str]] = []
                for row in reader:
                    if len(row) != len(columns):
                        if not row or (len(row) == 1 and row[0].isspace()):  # an empty line
                            continue
                        fields = f"{len(row)} field{'' if len(row) == 1 else 's'}"
                        raise InvalidInput(
                            f"{source}: line {lines.number} has {fields}, but the header has {len(columns)}"
                        )
                    piece.append(row)
                    if len(piece) == _AT_ONCE:
                        self._add(columns, piece)
                        progress(self.rows)
                        piece = []
                self._add(columns, piece)
        except csv.Error as error:
            raise InvalidInput(f"{source}: up to line {lines.number}: {_explained(error)}") from None
        except OSError as error:
            raise InvalidInput(f"{source} cannot be read: {error.strerror or error}") from None
        if not self.rows:
            raise InvalidInput(f"{source} must have a header and at least one row")
        self._columns = dict(zip(self.names, columns, strict=True))

    def _add(self, columns: Sequence[_Cells], piece: Sequence[Sequence[str]]) -> None:
        for column, texts in zip(columns, zip(*piece, strict=True), strict=False):
            column.add(texts)
        self.rows += len(piece)

    def column(self, name: str, *, lists: bool = False) -> Column:
        return self._columns[name].column(self.rows)


class _Cells:
    """The cells of one column as they come: codes while there are few different texts, then numbers, else nothing."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}
        self._codes = array("i")
        self._numbers: array[float] | None = None  # once there are too many different texts
        self._example: str | None = None  # a text that is not a number, among too many different ones
        self._inexact: str | None = None  # an integer that floats cannot hold, among too many different numbers

    def add(self, texts: Sequence[str]) -> None:
        if self._example is not None:
            return
        if self._numbers is not None:
            self._extend(texts)
            return
        known = self._known
        self._codes.extend([known.setdefault(text, len(known)) for text in texts])
        if len(known) > _MOST_TEXTS:
            self._numbers = array("d")
            self._extend([*known])
            if self._example is None:
                table = np.array(self._numbers)
                self._numbers = array("d", table[np.array(self._codes)].tobytes())
            self._known, self._codes = {}, array("i")

    def _extend(self, texts: Sequence[str]) -> None:
        assert self._numbers is not None
        if "_" not in "".join(texts):  # Python would read 1_000
            with contextlib.suppress(ValueError):
                numbers = list(map(float, texts))
                if max(map(abs, numbers), default=0.0) > LARGEST_EXACT:
                    self._inexact = next((text for text in texts if _is_inexact(text)), self._inexact)
                self._numbers.extend(numbers)
                return
        for text in texts:
            number = _parsed(text)
            if number is ABSENT:
                self._numbers.append(np.nan)
            elif isinstance(number, int | float) and not isinstance(number, bool):
                self._numbers.append(number)
            else:
                self._example, self._numbers = text, None
                return

    def column(self, rows: int) -> Column:
        if self._example is not None:
            return Notes(rows, self._example)
        if self._inexact is not None:
            return Notes(rows, self._inexact, f"too many, and too large to tell apart (beyond {LARGEST_EXACT})")
        if self._numbers is not None:
            return Numbers.of(np.array(self._numbers))
        values = [_parsed(text) for text in self._known]
        if not all(value is ABSENT or isinstance(value, int | float) for value in values):
            # Beside text, numbers are names: "01" and "1" are two.
            times = Counter((type(value), value) for value in values)
            values = [
                value if value is ABSENT or times[type(value), value] == 1 else text
                for value, text in zip(values, self._known, strict=True)
            ]
        return column_of(values, "").kept(np.array(self._codes, dtype=np.int64))


def _is_inexact(text: str) -> bool:
    """Whether this is an integer that floats cannot tell from its neighbours."""
    number = _parsed(text)
    return isinstance(number, int) and abs(number) > LARGEST_EXACT


def _parsed(text: str) -> Any:
    """A cell: a number, True, False, ABSENT for nothing, or else its text."""
    if "_" not in text:  # Python would read 1_000
        for kind in (int, float) if len(text) <= _LONGEST_INTEGER else (float,):
            try:
                number = kind(text)
            except ValueError:
                continue
            return ABSENT if math.isnan(number) else number
    if not text.strip() or text == "None":
        return ABSENT
    return {"True": True, "False": False}.get(text, text)


def _check_kind(path: Path, source: str) -> None:
    """Refuse what is not a text file, where the beginning tells; a pipe cannot be read twice."""
    if path.is_dir():
        raise InvalidInput(f"{source} is a folder, not a CSV file")
    if not path.is_file():
        return
    with path.open("rb") as file:
        start = file.read(16)
    for magic, what in _MAGIC.items():
        if start.startswith(magic):
            raise InvalidInput(f"{source} is not a CSV file but {what}")


class _Lines:
    """The lines of a text file from its header on, counted; a quoted field may continue on the next one."""

    def __init__(self, source: str) -> None:
        self._source, self.number = source, 0

    def of(self, file: TextIO) -> Iterator[str]:
        begun = False
        for line in iter(functools.partial(file.readline, _LONGEST_LINE), ""):
            self.number += 1
            if len(line) == _LONGEST_LINE:
                raise InvalidInput(f"{self._source}: line {self.number} is longer than {_LONGEST_LINE} characters")
            self._check_text(line)
            begun = begun or not (line.startswith("#") or line.isspace())
            if begun:
                yield line

    def _check_text(self, line: str) -> None:
        if "\0" in line:
            raise InvalidInput(f"{self._source}: line {self.number} has NUL bytes: not a text file, or UTF-16")
        if not line.isascii() and (wrong := _NOT_UTF8.search(line)) is not None:
            raise InvalidInput(
                f"{self._source}: line {self.number} is not UTF-8 text (byte 0x{ord(wrong[0]) - 0xDC00:02x}): convert "
                "the file; if it is Latin-1, with `iconv -f LATIN1 -t UTF-8`"
            )


def _check_header(names: Sequence[str], source: str) -> None:
    if not names:
        raise InvalidInput(f"{source} must have a header and at least one row")
    if len(names) == 1 and re.search("[;\t|]", names[0]):
        raise InvalidInput(f"{source}: columns must be separated by commas, but the header is {shown(names[0])}")


def _explained(error: csv.Error) -> str:
    text = str(error)
    if "field limit" in text:
        return f"a field is longer than {csv.field_size_limit()} characters; is a quotation mark missing?"
    if "end of data" in text:
        return "a quoted field is not closed; is a quotation mark missing?"
    return f"not CSV: {text}"
