"""Shared by all commands: the console, progress, and how to resume after Ctrl-C."""

from __future__ import annotations

import contextlib
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

from mixbandit.paper.parallel import Workers, measure_all

console = Console()


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

    def __call__(self, label: str, done: int, total: int) -> None:
        """`done` of `total` repetitions are done; the next piece is called `label`."""
        if label != self._label:  # the first call for a piece counts what was stored
            if self._label and not console.is_terminal:
                console.print(f"{self._done}/{total} done, up to {self._label}", highlight=False)
            self._label, self._stored = label, self._stored + done - self._done
        self._done = done
        self._bar.update(self._task, description=label, completed=done, total=total, fresh=done - self._stored)


@contextlib.contextmanager
def metered(out: Path) -> Iterator[Meter]:
    """A meter; after Ctrl-C, say how to resume."""
    label = TextColumn("{task.description}", table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis"))
    columns = (label, BarColumn(12), MofNCompleteColumn(), TimeElapsedColumn(), TimeLeft())
    with Progress(*columns, console=console, expand=True) as bar:
        try:
            yield Meter(bar)
        except KeyboardInterrupt:
            bar.stop()
            console.print(f"Stopped. Run the same command again to resume from {out}.", highlight=False)
            raise typer.Exit(130) from None


def measured(
    measure: Callable[..., Any], cells: Sequence[Any], labels: Sequence[str], runs: int, out: Path, workers: Workers
) -> list[Any]:
    """Measure all cells with a progress bar."""
    with metered(out) as meter:
        return measure_all(measure, cells, labels, runs, folder=out, workers=workers, progress=meter)


def expand(given: Sequence[str], known: tuple[str, ...]) -> list[str]:
    """The names given, or all of them for "all"."""
    for name in given:
        if name not in (*known, "all"):
            raise typer.BadParameter(f"{name!r} is not one of {', '.join(known)}, all")
    return list(known) if "all" in given else list(given)
