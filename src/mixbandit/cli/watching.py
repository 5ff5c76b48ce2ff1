"""What a user sees while a study is tuned: a live table on a terminal, a line for each trial elsewhere."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from mixbandit.cli.workers import COMPLETE, Report
from mixbandit.errors import MixbanditError
from mixbandit.tuning import Assumptions, Space, StudyCertificate

_MOST_ROWS = 15
# Fewer trials than this certify next to nothing.
_LEAST_TRIALS = 5
_UNKNOWN = "–"


def in_short(parameters: Mapping[str, Any]) -> str:
    """A configuration in a few characters."""
    return " ".join(f"{n}={v:.4g}" if isinstance(v, float) else f"{n}={v}" for n, v in parameters.items())


@dataclass(frozen=True)
class Standing:
    """How far a study is."""

    searched: int = 0  # trials of the search that are done
    trials: int = 0  # as many as there will be
    confirmed: int = 0
    confirmations: int = 0
    failed: int = 0

    def __str__(self) -> str:
        told = f"{self.searched} of {self.trials} trials"
        if self.confirmations:
            told += f", {self.confirmed} of {self.confirmations} confirmations"
        return f"{told}, {self.failed} failed" if self.failed else told


class Certifier:
    """Certificates now and then, in a thread of their own, because they take as long as many a trial."""

    def __init__(self, directions: Any, assumptions: Assumptions, space: Space | None) -> None:
        self._directions, self._assumptions, self._space = directions, assumptions, space
        self._thread: threading.Thread | None = None
        self._next, self._seen = 0.0, 0
        self._found: StudyCertificate | None = None

    def look(self, trials: list[Any]) -> StudyCertificate | None:
        """The certificate that was finished since the last look; the next one is about these trials."""
        if self._thread is not None and self._thread.is_alive():
            return None
        found, self._found = self._found, None
        completed = sum(trial.state.name == COMPLETE for trial in trials)
        if completed >= max(self._seen + 1, _LEAST_TRIALS) and time.monotonic() >= self._next:
            self._seen = completed
            self._thread = threading.Thread(target=self._certify, args=(trials,), daemon=True)
            self._thread.start()
        return found

    def _certify(self, trials: list[Any]) -> None:
        from mixbandit.integrations.optuna.certifying import certify_study

        began = time.monotonic()
        study: Any = SimpleNamespace(directions=self._directions, get_trials=lambda **_: trials)
        with contextlib.suppress(MixbanditError):  # what is wrong is said at the end
            self._found = certify_study(study, self._assumptions, self._space)
        # At most a third of the time goes into it.
        self._next = time.monotonic() + 2.0 * (time.monotonic() - began)


def worst_and_gap(found: StudyCertificate) -> tuple[str, str]:
    """The guaranteed value of the recommended configuration, and how much better others can be."""
    return f"{found.interval[0 if found.direction == 'maximize' else 1]:.4g}", f"{found.gap:.4g}"


class Watch:
    """A line for each trial, and for each certificate on the way."""

    def __init__(self, console: Console) -> None:
        self._console, self._best = console, "floor"

    def towards(self, direction: str) -> None:
        """Say in which direction values are better, which is known once the study is open."""
        self._best = "floor" if direction == "maximize" else "ceiling"

    @contextlib.contextmanager
    def shown(self) -> Iterator[None]:
        yield

    def say(self, text: str) -> None:
        """Say something that is not about a trial's end, such as what the objective prints."""
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def ended(self, report: Report, standing: Standing) -> None:
        value = f"{report.value:.6g}" if report.value is not None else report.state.lower()
        marks = " (confirmation)" if report.confirms else ""
        self.say(f"trial {report.number}: {value}{marks}  {in_short(report.parameters)}  [{standing}]")
        self._say_error(report)

    def _say_error(self, report: Report) -> None:
        if report.error and report.state != COMPLETE:
            self.say(f"trial {report.number} failed: {report.error}")

    def certified(self, found: StudyCertificate) -> None:
        doubt = "" if found.trusted else "; NOT TRUSTED: the data refute the assumptions"
        floor, gap = worst_and_gap(found)
        self.say(f"after {found.t} completed trials: {self._best} of the best {floor}, gap {gap}{doubt}")


class LiveWatch(Watch):
    """A table of the last trials, which is kept up to date."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._rows: deque[tuple[str, str, str, str, str]] = deque(maxlen=max(3, min(_MOST_ROWS, console.height - 8)))
        self._known, self._standing = (_UNKNOWN, _UNKNOWN), Standing()
        self._as_of = ""
        self._live = Live(console=console, get_renderable=self._table, refresh_per_second=4, transient=False)

    @contextlib.contextmanager
    def shown(self) -> Iterator[None]:
        with self._live:
            yield

    def ended(self, report: Report, standing: Standing) -> None:
        value = f"{report.value:.6g}" if report.value is not None else report.state.lower()
        number = f"{report.number}{' ✓' if report.confirms else ''}"
        self._rows.append((number, value, in_short(report.parameters), *self._known))
        self._standing = standing
        self._say_error(report)

    def certified(self, found: StudyCertificate) -> None:
        doubt = "" if found.trusted else ", NOT TRUSTED"
        self._known = worst_and_gap(found)
        self._as_of = f"; {self._best} and gap as of {found.t} completed trials{doubt}"
        if self._rows:
            self._rows[-1] = (*self._rows[-1][:3], *self._known)

    def _table(self) -> Table:
        marks = ". ✓: confirmation" if self._standing.confirmations else ""
        table = Table(caption=Text(f"{self._standing}{self._as_of}{marks}"), expand=True)
        table.add_column("trial", justify="right", no_wrap=True)
        table.add_column("value", justify="right", no_wrap=True)
        table.add_column("parameters", ratio=1, no_wrap=True, overflow="ellipsis")
        table.add_column(f"{self._best} of the best", justify="right", no_wrap=True)
        table.add_column("gap", justify="right", no_wrap=True)
        for row in self._rows:
            table.add_row(*map(Text, row))
        return table


def watch_on(console: Console) -> Watch:
    """What suits the output."""
    return LiveWatch(console) if console.is_terminal else Watch(console)
