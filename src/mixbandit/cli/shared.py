"""Shared by all commands: the console, progress, and how to resume after a stop."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Column
from rich.text import Text

from mixbandit.cli.exits import code_of
from mixbandit.paper.parallel import Workers, measure_all


class _Output(Console):
    """A console that leaves a closed pipe to whoever decides how commands end."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


console = _Output()
_errors = Console(stderr=True)
# Work that takes longer than this many seconds says what it is doing; without a terminal, a line now and then.
_PATIENCE, _EVERY = 2.0, 15.0


class TimeLeft(ProgressColumn):
    """The time left, estimated from this run only: stored results took no time."""

    def render(self, task: Task) -> Text:
        fresh = task.fields.get("fresh", 0)
        if task.finished or task.total is None or not fresh or task.elapsed is None:
            return Text("" if task.finished else "left: ?")
        seconds = (task.total - task.completed) * task.elapsed / fresh
        return Text(f"left: {timedelta(seconds=round(seconds))}")


class Meter:
    """Progress over labelled pieces of work, as a bar on a terminal and a line per piece elsewhere."""

    def __init__(self, bar: Progress) -> None:
        self._bar, self._task = bar, bar.add_task("", total=None, fresh=0)
        self._label, self._done, self._stored = "", 0, 0
        self.total = 0
        self._start, self._finished = bar.get_time(), list[float]()  # when fresh repetitions were done

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return self._bar.get_time() - self._start

    @property
    def pace(self) -> float | None:
        """Seconds per repetition, with the jobs of this run; None if all results were stored.

        The first one counts only if it is the only one: it waits for imports, compilation and processes.
        """
        if not self._finished:
            return None
        first, *others = self._finished
        return (others[-1] - first) / len(others) if others else first - self._start

    def __call__(self, label: str, done: int, total: int) -> None:
        """`done` of `total` repetitions are done; the next piece is called `label`."""
        if label != self._label:  # the first call for a piece counts what was stored
            if self._label and not console.is_terminal:
                console.print(f"{self._done}/{total} done, up to {self._label}", highlight=False)
            self._label, self._stored = label, self._stored + done - self._done
        self._done, self.total, fresh = done, total, done - self._stored
        self._finished += [self._bar.get_time()] * (fresh - len(self._finished))
        self._bar.update(self._task, description=label, completed=done, total=total, fresh=fresh)


@contextlib.contextmanager
def metered(out: Path) -> Iterator[Meter]:
    """A meter; after Ctrl-C or SIGTERM, say how to resume."""
    label = TextColumn("{task.description}", table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis"))
    columns = (label, BarColumn(12), MofNCompleteColumn(), TimeElapsedColumn(), TimeLeft())
    with Progress(*columns, console=console, expand=True) as bar:
        try:
            yield Meter(bar)
        except KeyboardInterrupt as interrupt:
            bar.stop()
            console.print(f"Stopped. Run the same command again to resume from {out}.", highlight=False)
            raise typer.Exit(code_of(interrupt)) from None


@contextlib.contextmanager
def patiently(doing: str) -> Iterator[Callable[[str], None]]:
    """Show on stderr what is being done, if it takes more than a moment; call it with the next thing."""
    status, stopped = _errors.status(Text(doing)), threading.Event()
    current = [doing]

    def tell(doing: str) -> None:
        current[0] = doing
        status.update(Text(doing))

    def show() -> None:
        if stopped.wait(_PATIENCE):
            return
        if _errors.is_terminal:
            status.start()
            return
        _errors.print(f"{current[0]} …", highlight=False, markup=False)
        while not stopped.wait(_EVERY):
            _errors.print(f"{current[0]} …", highlight=False, markup=False)

    shower = threading.Thread(target=show, daemon=True)
    shower.start()
    try:
        yield tell
    finally:
        stopped.set()
        shower.join()
        status.stop()


def measured(
    measure: Callable[..., Any], cells: Sequence[Any], labels: Sequence[str], runs: int, out: Path, workers: Workers
) -> list[Any]:
    """Measure all cells with a progress bar."""
    with metered(out) as meter:
        return measure_all(measure, cells, labels, runs, folder=out, workers=workers, progress=meter)


def spoken(seconds: float) -> str:
    """A duration in words: "40 seconds", "12 minutes", "2.5 hours"."""
    if seconds < 90:
        return f"{seconds:.0f} second{'' if round(seconds) == 1 else 's'}"
    return f"{seconds / 60:.0f} minutes" if seconds < 90 * 60 else f"{seconds / 3600:.1f} hours"


def expand(given: Sequence[str], known: tuple[str, ...]) -> list[str]:
    """The names given, or all of them for "all"."""
    for name in given:
        if name not in (*known, "all"):
            raise typer.BadParameter(f"{name!r} is not one of {', '.join(known)}, all")
    return list(known) if "all" in given else list(given)
