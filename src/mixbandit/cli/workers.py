"""Processes that run trials of one study, one at a time each, when they are told to.

Each runs the objective in its own process group: Ctrl-C reaches the parent alone, which then ends them, with whatever
processes they started. One that dies costs the trial that it was running.
"""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import multiprocessing.connection
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from mixbandit._checks import shown
from mixbandit._extras import import_extra
from mixbandit.cli.objectives import Objective, load_objective, told
from mixbandit.cli.storage import storage_to_tune
from mixbandit.errors import InvalidInput, MixbanditError
from mixbandit.paper.parallel import die_with
from mixbandit.tuning import Assumptions, Space

COMPLETE, PRUNED, FAIL = "COMPLETE", "PRUNED", "FAIL"


@dataclass(frozen=True)
class Job:
    """What all workers do."""

    objective: str
    source: str  # the storage, as the user named it
    address: str  # the same from any folder
    study: str
    space: Space | None  # without one the objective gets Optuna's trial
    assumptions: Assumptions | None
    seed: int | None
    n_trials: int
    prune: bool = False  # whether trials may be given up by their intermediate values


@dataclass(frozen=True)
class Report:
    """How a trial ended."""

    number: int
    state: str
    value: float | None
    parameters: Mapping[str, Any]
    confirms: bool = False
    error: str = ""  # why it failed


# ---- in a worker


class _Ended(BaseException):
    """The parent asked to stop while the objective was running; objectives do not catch it by accident."""


class _Signals:
    """SIGTERM ends an objective, and waiting for work; what is being stored is stored first."""

    def __init__(self) -> None:
        self.running, self.storing, self.asked = False, False, False
        signal.signal(signal.SIGTERM, self._asked)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def _asked(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        if self.running:
            self.running = False
            raise _Ended
        if not self.storing:
            raise SystemExit

    @contextlib.contextmanager
    def objective(self) -> Iterator[None]:
        self.storing, self.running = False, True
        try:
            if self.asked:
                raise _Ended
            yield
        finally:
            self.running, self.storing = False, True


def work(job: Job, orders: Any, reports: Any, output: Any) -> None:
    """The life of a worker: load the objective, then run a trial for each order."""
    if os.name == "posix":
        os.setpgrp()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        for number in (1, 2):
            os.dup2(output.fileno(), number)
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
        parent = multiprocessing.parent_process()
        if parent is not None and parent.pid is not None:
            die_with(parent.pid)
    signals = _Signals()
    try:
        objective = load_objective(job.objective)
        reports.send("ready")
        study = None
        while True:
            number = orders.recv()
            signals.storing = True
            study = study or _study(job)
            reports.send(_run(study, number, objective, job, signals))
            signals.storing = False
            if signals.asked:
                return
    except (EOFError, SystemExit, BrokenPipeError):
        return
    except MixbanditError as error:
        reports.send(error)
    except Exception as error:  # of the storage, or a bug of ours
        reports.send(InvalidInput(f"a worker process failed: {told(error)}"))


def _study(job: Job) -> Any:
    optuna = import_extra("optuna", extra="optuna")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    from mixbandit.integrations.optuna import CertifiedPruner, MixBanditSampler

    sampler = MixBanditSampler(seed=job.seed, space=job.space, n_trials=job.n_trials, assumptions=job.assumptions)
    # Optuna's own default would prune by values without a word, and certificates would be wrong.
    pruner = CertifiedPruner() if job.prune else optuna.pruners.NopPruner()
    storage = storage_to_tune(job.address)
    return optuna.load_study(study_name=job.study, storage=storage, sampler=sampler, pruner=pruner)


def _run(study: Any, number: int | None, objective: Objective, job: Job, signals: _Signals) -> Report | None:
    """Run a trial, this one if a number is given; None if another process runs that."""
    from optuna.exceptions import TrialPruned
    from optuna.trial import TrialState

    from mixbandit.integrations.optuna.storage import begin, sign
    from mixbandit.integrations.optuna.trials import suggest

    trial = study.ask() if number is None else begin(study, number)
    if trial is None:
        return None
    sign(study, trial, this_process())
    value, state, error = None, FAIL, ""
    try:
        given = trial if job.space is None else suggest(trial, job.space)
        with signals.objective():
            found = objective(given)
        value, error = _as_value(found)
        state = COMPLETE if value is not None else FAIL
    except TrialPruned:
        state = PRUNED
    except _Ended:
        error = "stopped"
    except (Exception, SystemExit, KeyboardInterrupt) as raised:  # the code of users
        error = told(raised)
    study.tell(trial, value, state=TrialState[state])
    confirms = "mixbandit_nomination" in trial.user_attrs
    return Report(trial.number, state, value, dict(trial.params), confirms, error)


def _as_value(found: Any) -> tuple[float | None, str]:
    """The value that an objective returned, or what is wrong with it."""
    try:
        value = float(found)
    except Exception:  # whatever it returned
        return None, f"the objective must return a number, got {shown(found)}"
    return (None, "the objective returned NaN") if math.isnan(value) else (value, "")


# ---- which process runs a trial


def this_process() -> dict[str, Any]:
    return {"host": socket.gethostname(), "pid": os.getpid(), "started": _started(os.getpid())}


def is_here(process: Mapping[str, Any]) -> bool:
    """Whether a process is of this machine."""
    return process.get("host") == socket.gethostname()


def may_be_alive(process: Mapping[str, Any]) -> bool:
    """Whether a process may still run; False only if it is known to have ended."""
    pid = process.get("pid")
    if not is_here(process) or not isinstance(pid, int) or os.name != "posix":
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # of another user
        return True
    # The number may have been given to another process since.
    return _started(pid) == process.get("started")


def _started(pid: int) -> str | None:
    """When a process was started, where the system says so, in units of its own."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return None


# ---- in the parent


class Worker:
    """One process, as its parent sees it."""

    def __init__(self, job: Job, say: Callable[[str], None]) -> None:
        context = multiprocessing.get_context("spawn")  # a fork would share what Optuna and BLAS have opened
        theirs, self._orders = context.Pipe(duplex=False)
        self.reports, reports = context.Pipe(duplex=False)
        reading, output = context.Pipe(duplex=False)
        self.process = context.Process(target=work, args=(job, theirs, reports, output), daemon=False)
        self.process.start()
        for end in (theirs, reports, output):
            end.close()
        self.ready, self.busy = False, False
        self._reader = threading.Thread(target=_pass_on, args=(reading, say), daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid

    def run(self, number: int | None = None) -> None:
        """Order a trial: the one of this number, which waits to be run, or any."""
        self.busy = True
        with contextlib.suppress(OSError):  # it has died, which is noticed where its reports are awaited
            self._orders.send(number)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the worker, and for SIGKILL to all that it started."""
        with contextlib.suppress(OSError):
            if os.name == "posix" and number == signal.SIGKILL:
                os.killpg(self.pid, number)
            elif self.process.is_alive():
                os.kill(self.pid, number)

    def end(self) -> None:
        """Kill whatever is left of it, and read what it still said."""
        self.signal(signal.SIGKILL if os.name == "posix" else signal.SIGTERM)
        self.process.join()
        self._reader.join(1.0)
        self._orders.close()
        self.reports.close()


def _pass_on(reading: Any, say: Callable[[str], None]) -> None:
    """Pass on what a worker prints, line by line."""
    if os.name != "posix":
        return
    with (
        contextlib.suppress(BrokenPipeError),
        reading,
        open(os.dup(reading.fileno()), encoding="utf-8", errors="replace") as lines,
    ):
        for line in lines:
            say(line.rstrip("\n"))


class Pool:
    """Workers; those that die are replaced."""

    def __init__(self, job: Job, count: int, say: Callable[[str], None]) -> None:
        self._job, self._say = job, say
        self.ended: list[int] = []  # the pids of all workers that are no more
        self.workers = list[Worker]()
        self.grow(count)

    def grow(self, count: int) -> None:
        """Start workers until there are this many."""
        while len(self.workers) < count:
            self.workers.append(Worker(self._job, self._say))

    @property
    def idle(self) -> list[Worker]:
        return [worker for worker in self.workers if worker.ready and not worker.busy]

    @property
    def busy(self) -> list[Worker]:
        return [worker for worker in self.workers if worker.busy]

    def events(self, timeout: float) -> list[Report | int]:
        """What workers report: ends of trials, and the pids of workers that died; their errors are raised."""
        waited: dict[Any, Worker] = {worker.reports: worker for worker in self.workers}
        found: list[Report | int] = []
        for connection in multiprocessing.connection.wait(list(waited), timeout):
            worker = waited[connection]
            try:
                message = worker.reports.recv()
            except (EOFError, OSError):
                found.append(self._replaced(worker))
                continue
            if isinstance(message, MixbanditError):
                raise message
            if message == "ready":
                worker.ready = True
            else:
                worker.busy = False
                found += [] if message is None else [message]
        return found

    def _replaced(self, worker: Worker) -> int:
        """Start another worker in place of one that died; its pid."""
        worker.end()
        if not worker.ready:
            raise InvalidInput(f"importing {self._job.objective} ended the process ({_died(worker)})")
        self.ended.append(worker.pid)
        self.workers[self.workers.index(worker)] = Worker(self._job, self._say)
        return worker.pid

    def stop(self, grace: float, killed: Callable[[], bool]) -> list[Report]:
        """End all workers: objectives are interrupted, and killed after the grace period; the reports of the first."""
        for worker in self.workers:
            worker.signal(signal.SIGTERM)
        found, until = list[Report](), time.monotonic() + grace
        while any(w.process.is_alive() for w in self.workers) and time.monotonic() < until and not killed():
            time.sleep(0.02)
        for worker in self.workers:
            with contextlib.suppress(EOFError, OSError):
                while worker.reports.poll():
                    message = worker.reports.recv()
                    if isinstance(message, Report):
                        found.append(message)
        self.kill()
        return found

    def kill(self) -> None:
        """End all workers at once."""
        for worker in self.workers:
            worker.end()
            self.ended.append(worker.pid)
        self.workers = []


def _died(worker: Worker) -> str:
    code = worker.process.exitcode
    return f"exit code {code}" if code is None or code >= 0 else f"signal {-code}"
