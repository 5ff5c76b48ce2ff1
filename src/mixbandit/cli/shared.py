"""What all commands share: the console, progress, and how to go on after Ctrl-C."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from mixbandit.experiments.parallel import Workers

console = Console()


@contextlib.contextmanager
def progress_bar(out: Path) -> Iterator[Progress]:
    """A bar with what is done and the time left; Ctrl-C says how to go on."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as bar:
        try:
            yield bar
        except KeyboardInterrupt:
            bar.stop()
            console.print(f"Stopped. The same command goes on from what is in {out}.", highlight=False)
            raise typer.Exit(130) from None


def measured(
    measure: Callable[..., Any], cells: Sequence[Any], labels: Sequence[str], runs: int, out: Path, workers: Workers
) -> list[Any]:
    """Measure all cells with a bar."""
    results: list[Any] = []
    with progress_bar(out) as bar:
        total = bar.add_task("all runs", total=len(cells) * runs)

        def show(done: int) -> None:
            bar.update(total, completed=len(results) * runs + done)

        for cell, label in zip(cells, labels, strict=True):
            bar.update(total, description=label)
            results.append(measure(cell, runs, folder=out, workers=workers, progress=show))
    return results


def expand(given: list[str], known: tuple[str, ...], *, everything: bool = True) -> list[str]:
    """The names given, or all of them for "all"."""
    if everything and "all" in given:
        return list(known)
    for name in given:
        if name not in known:
            raise typer.BadParameter(f"{name!r} is none of {', '.join(known)}{', all' if everything else ''}")
    return given
