"""A CSV file of runs under a comment that says how they were made: resumable, every finished run on disk at once."""

from __future__ import annotations

import contextlib
import csv
import io
import multiprocessing
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

Row = dict[str, str]
Job = TypeVar("Job")


@dataclass(frozen=True)
class Records:
    """The form of a file: its columns, of which the first ones name a run, and the order of its rows."""

    columns: tuple[str, ...]
    run: tuple[str, ...]
    place: Callable[[Mapping[str, str]], Any]
    what: str = "certificates"

    def read(self, path: Path) -> tuple[str, list[Row]]:
        """The comment and the rows of a file; what an interruption left of a line does not count."""
        text = path.read_text(encoding="utf-8")
        comment, *lines = text[: text.rfind("\n") + 1].splitlines() or [""]
        rows = list(csv.DictReader(lines))
        if not comment.startswith("# ") or (rows and tuple(rows[0]) != self.columns):
            raise SystemExit(f"{path} is not a file of {self.what}, or of another version of this benchmark")
        return comment[2:], rows

    def write(self, path: Path, comment: str, rows: Sequence[Row]) -> None:
        """All rows in order, all or nothing."""
        text = io.StringIO()
        table = csv.DictWriter(text, self.columns, lineterminator="\n")
        table.writeheader()
        table.writerows(sorted(rows, key=self.place))
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".unfinished")
        unfinished.write_text(f"# {comment}\n{text.getvalue()}", encoding="utf-8")
        unfinished.replace(path)

    def resume(
        self,
        path: Path,
        comment: str,
        wanted: Mapping[tuple[str, ...], Job],
        one: Callable[[Job], Row],
        processes: int = 1,
    ) -> None:
        """Play the wanted runs that the file lacks; a file with another comment is an error."""
        old, rows = self.read(path) if path.exists() else (comment, [])
        if old != comment:
            raise SystemExit(f"{path} has other settings, choose another --label:\n  {old}\n  {comment}")
        self.write(path, comment, rows)  # without what an interruption left of a line
        seen = {tuple(row[name] for name in self.run) for row in rows}
        missing = [job for run, job in wanted.items() if run not in seen]
        started = time.monotonic()
        try:
            with path.open("a", encoding="utf-8") as file, _mapped(one, missing, processes) as results:
                table = csv.DictWriter(file, self.columns, lineterminator="\n")
                for done, row in enumerate(results, 1):
                    table.writerow(row)
                    file.flush()
                    rows.append(row)
                    left = (time.monotonic() - started) / done * (len(missing) - done) / 60
                    named = " ".join(row[name] for name in self.run)
                    shown = f"{path.stem}: {done} of {len(missing)}, {left:.0f} min left, {named}"
                    print(f"\r{shown:70}", end="", file=sys.stderr, flush=True)
        except KeyboardInterrupt:
            print(f"\ninterrupted; the same command resumes from {path}", file=sys.stderr)
            raise SystemExit(130) from None
        finally:
            self.write(path, comment, rows)
        print(f"\n{path}: {len(rows)} runs", file=sys.stderr)


@contextlib.contextmanager
def _mapped(one: Callable[[Job], Row], missing: Sequence[Job], processes: int) -> Iterator[Iterator[Row]]:
    if processes == 1:
        yield map(one, missing)
        return
    context = multiprocessing.get_context("spawn")
    with context.Pool(processes, _ignore_interrupts) as pool:
        yield pool.imap_unordered(one, missing)


def _ignore_interrupts() -> None:
    """Ctrl-C reaches all processes of a terminal; workers leave it to the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def flag(value: bool) -> str:
    return str(int(value))


def number(value: float) -> str:
    return f"{round(value, 6):g}" if abs(value) < 1e-4 else f"{value:.6f}".rstrip("0").rstrip(".")
