"""A study that is being tuned: who runs which trial, when it ends, and what is left when it is stopped."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import TYPE_CHECKING, Any

from mixbandit.cli.storage import study_to_tune
from mixbandit.cli.watching import Certifier, Standing, Watch
from mixbandit.cli.workers import COMPLETE, FAIL, PRUNED, Job, Pool, Report, is_here, may_be_alive
from mixbandit.errors import STATEMENTS, InvalidInput, MixbanditError
from mixbandit.tuning import Assumptions, Space
from mixbandit.tuning.tables import masked

if TYPE_CHECKING:
    from mixbandit.integrations.optuna import ConfirmFinalists

# A study stops after this many failures in a row; after fewer, if no trial has ever been completed.
_MOST_FAILURES, _MOST_AT_FIRST = 10, 3
# Seconds that objectives have to end after Ctrl-C, and idle processes in any case.
_GRACE = 5.0
_LOOK_EVERY = 0.2
# More processes than this for each core are not started by one command.
_MOST_PER_CORE = 8
# Attribute of a study: the space that it was begun with.
_SPACE = "mixbandit_space"


class TrialsFail(MixbanditError):
    """One trial after another has failed."""


@dataclass
class Tuning:
    """A study, and the processes that run its trials."""

    job: Job
    confirmations: int
    jobs: int
    timeout: float | None
    watch: Watch
    study: Any = None
    standing: Standing = field(default_factory=Standing)
    _failures: int = 0  # in a row
    _exhausted: bool = False  # nothing more is to be confirmed
    _decided: bool = False  # enough confirmations, or no more needed
    _failed_before: set[int] = field(default_factory=set)  # confirmations that failed in earlier runs
    _ordered: set[int] = field(default_factory=set)  # confirmations that a worker was told to run

    @property
    def assumptions(self) -> Assumptions | None:
        known = self.job.assumptions
        return None if known is None else known.towards(self.study.direction.name.lower())

    def run(self, direction: str | None) -> Stop:
        """Run what is left, until it is done or somebody asks to stop."""
        with _stoppable() as stop, self.watch.shown():
            pool = Pool(self.job, 1, self.watch.say)  # more when it is known how much there is to do
            stop.pool = pool
            try:
                while (
                    not pool.idle and not stop.asked
                ):  # what is wrong with the objective is told before a study is made
                    pool.events(_LOOK_EVERY)
                if not stop.asked:
                    self.study = study_to_tune(self.job.address, self.job.study, direction, self.watch.say)
                    self.watch.towards(self.study.direction.name.lower())
                    _check_space(self.study, self.job.space)
                    self._begin(pool)
                    self._loop(pool, stop)
            finally:
                stop.lost = sum(report.state == FAIL for report in pool.stop(_GRACE, lambda: stop.killed))
                if self.study is not None:
                    stop.lost += self._fail_abandoned(pool)
                    self._look()
        return stop

    def _begin(self, pool: Pool) -> None:
        from mixbandit.integrations.optuna.finalists import failed_confirmations

        trials = self._look()
        so_far, self._failed_before = len(trials), failed_confirmations(trials)
        there = f", which has {so_far} trial{'' if so_far == 1 else 's'} so far" if so_far else ""
        self.watch.say(f"The study {self.job.study!r} is in {masked(self.job.source)}{there}.")
        if self.assumptions is None:
            self.watch.say(
                f"Nothing is stated about the values (--range, --samples, …), so nothing is certified; {STATEMENTS}."
            )
        self._fail_abandoned(pool)
        pool.grow(self._processes())

    def _processes(self) -> int:
        """How many processes to start: no more than there is work for, nor than the machine can take."""
        done = self.standing
        left = max(done.trials - done.searched, done.confirmations - done.confirmed)
        most = _MOST_PER_CORE * (os.cpu_count() or 1)
        if self.jobs > most < left:
            self.watch.say(f"Starting {most} processes instead of {self.jobs}: at most {_MOST_PER_CORE} for each core.")
        elif self.jobs > left > 0:
            many = "one process" if left == 1 else f"{left} processes"
            self.watch.say(f"Starting {many} instead of {self.jobs}: no more than {left} can run at once.")
        return min(self.jobs, most, left)

    def _loop(self, pool: Pool, stop: Stop) -> None:
        until = math.inf if self.timeout is None else time.monotonic() + self.timeout
        known = self.assumptions
        certifier = None if known is None else Certifier(self.study.directions, known, self.job.space)
        while not stop.asked:
            trials = self._look()
            in_time = time.monotonic() < until
            if in_time:
                self._give_work(pool, trials)
            if not pool.busy and (not in_time or self._is_done):
                return
            for event in pool.events(_LOOK_EVERY):
                self._ended(event, pool)
            if certifier is not None and (found := certifier.look(trials)) is not None:
                self.watch.certified(found)

    @property
    def _is_done(self) -> bool:
        searched = self.standing.searched >= self.job.n_trials
        return searched and (self._exhausted or not self.confirmations)

    def _give_work(self, pool: Pool, trials: list[Any]) -> None:
        """Order a trial of every idle worker, as long as there are some to run."""
        ours = {worker.pid for worker in pool.workers}
        wanted = self.job.n_trials - self.standing.searched - len(pool.busy) - _elsewhere(trials, ours)
        for worker in pool.idle:
            number = None
            if self.standing.searched < self.job.n_trials:
                wanted -= 1
                if wanted < 0:
                    return
            elif (number := self._confirmation(trials, pool)) is None:
                return
            worker.run(number)

    def _confirmation(self, trials: list[Any], pool: Pool) -> int | None:
        """The number of a confirmation for a worker to run; None if there is none, at least for now."""
        if not self.confirmations or self._exhausted:
            return None
        from mixbandit.integrations.optuna.finalists import Step

        if not pool.busy:
            self._ordered.clear()  # what still waits was ordered from a process that died
        step = self._confirming(trials).enqueue(self.study)
        waiting = [number for number in _waiting(self.study.get_trials(deepcopy=False)) if number not in self._ordered]
        self._decided = step is Step.DONE
        over = step in (Step.DONE, Step.FAILED) and not waiting and not pool.busy
        self._exhausted = step is Step.IMPOSSIBLE or over
        if not waiting or step is Step.IMPOSSIBLE:
            return None
        self._ordered.add(waiting[0])
        return waiting[0]

    @property
    def failed_confirmations(self) -> int:
        """How many confirmations failed in this run and were not made up for."""
        from mixbandit.integrations.optuna.finalists import failed_confirmations

        if self._decided or self.standing.confirmed >= self.confirmations:
            return 0
        return len(failed_confirmations(self._look()) - self._failed_before)

    _callback: ConfirmFinalists | None = None

    def _confirming(self, trials: list[Any]) -> ConfirmFinalists:
        from mixbandit.integrations.optuna import ConfirmFinalists

        if self._callback is None:
            known = self.assumptions
            after = max(1, self.job.n_trials - sum(trial.state.name == PRUNED for trial in trials))
            self._callback = ConfirmFinalists(self.confirmations, after=after, assumptions=known, space=self.job.space)
        return self._callback

    def _look(self) -> list[Any]:
        """The study's trials, and how far it is."""
        from mixbandit.integrations.optuna.confirming import nomination_of

        trials: list[Any] = self.study.get_trials(deepcopy=False)
        done = [trial for trial in trials if trial.state.name in (COMPLETE, PRUNED)]
        confirmed = sum(nomination_of(trial) is not None for trial in done)
        failed = sum(trial.state.name == FAIL for trial in trials)
        self.standing = Standing(len(done) - confirmed, self.job.n_trials, confirmed, self.confirmations, failed)
        return trials

    def _ended(self, event: Report | int, pool: Pool) -> None:
        """Tell how a trial ended; TrialsFail after too many failures in a row."""
        if isinstance(event, int):
            self._fail_abandoned(pool)
            report = None
            error = "its process died"
        else:
            report, error = event, event.error
        self._look()
        if report is not None:
            self.watch.ended(report, self.standing)
        failed = report is None or report.state == FAIL
        self._failures = self._failures + 1 if failed else 0
        done = self.standing.searched
        if self._failures >= (_MOST_FAILURES if done else _MOST_AT_FIRST):
            many = f"the last {self._failures} trials" if done else f"all {self._failures} trials"
            raise TrialsFail(f"{many} failed, so the study was stopped. The last error: {error}")

    def _fail_abandoned(self, pool: Pool) -> int:
        """Fail running trials whose process is known to have ended, so that they are not pending for ever."""
        from optuna.trial import TrialState

        from mixbandit.integrations.optuna.storage import signature

        count = 0
        for trial in self.study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            process = signature(trial)
            ended = is_here(process) and process.get("pid") in pool.ended
            if ended or not may_be_alive(process):
                # Its process may have told it at the very end.
                with contextlib.suppress(Exception):
                    self.study.tell(trial.number, state=TrialState.FAIL)
                    self.watch.say(f"trial {trial.number} failed: the process that ran it has ended")
                    count += 1
        return count


def _elsewhere(trials: list[Any], ours: set[int]) -> int:
    """How many trials of the search other commands are running on this machine."""
    from mixbandit.integrations.optuna.confirming import nomination_of
    from mixbandit.integrations.optuna.storage import signature

    running = [t for t in trials if t.state.name == "RUNNING" and nomination_of(t) is None and signature(t)]
    here = [signature(trial) for trial in running if is_here(signature(trial))]
    return sum(process.get("pid") not in ours and may_be_alive(process) for process in here)


def _waiting(trials: list[Any]) -> list[int]:
    """The numbers of confirmations that wait to be run."""
    from mixbandit.integrations.optuna.confirming import nomination_of

    return [trial.number for trial in trials if trial.state.name == "WAITING" and nomination_of(trial) is not None]


def _check_space(study: Any, space: Space | None) -> None:
    """Refuse to go on with another space than the study was begun with; remember the space of a new study."""
    from mixbandit.integrations.optuna import as_distribution

    stored = study.user_attrs.get(_SPACE)
    if space is None:
        if stored is not None:
            raise InvalidInput(
                f"the study {study.study_name!r} was begun with a space: give it as --space, or another --study"
            )
        return
    if stored is not None:
        begun = Space.from_state_dict(stored)
        if begun != space:
            raise InvalidInput(
                f"the study {study.study_name!r} was begun with another space, {begun!r}; now it is {space!r}. Name "
                "another --study"
            )
        return
    known = {name: as_distribution(space, name) for name in space}
    for trial in study.get_trials(deepcopy=False):
        for name, distribution in trial.distributions.items():
            if known.get(name) != distribution:
                now = known.get(name, "not in the space")
                raise InvalidInput(
                    f"trial {trial.number} of the study {study.study_name!r} has {name} from {distribution}; now it is "
                    f"{now}. Name another --study"
                )
    study.set_user_attr(_SPACE, space.state_dict())


# ---- stopping


@dataclass
class Stop:
    """Whether somebody asked to stop, and what that cost."""

    signalled: int | None = None  # the first signal
    killed: bool = False  # whether there was a second one
    lost: int = 0  # trials that were running
    pool: Pool | None = None

    @property
    def asked(self) -> bool:
        return self.signalled is not None

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Nothing is raised at first: a storage must not be left in the middle of a write."""
        if self.signalled is None:
            self.signalled = number
            again = " Press Ctrl-C again to kill them at once." if number == signal.SIGINT else ""
            print(f"\nStopping: ending running trials.{again}", file=sys.stderr)  # noqa: T201
        elif number == signal.SIGINT:
            if self.killed:  # a storage that does not answer, say
                raise KeyboardInterrupt
            self.killed = True
            for worker in self.pool.workers if self.pool is not None else ():
                worker.signal(signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)


@contextlib.contextmanager
def _stoppable() -> Iterator[Stop]:
    """Signals that ask to stop are noted, for as long as the block lasts."""
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    names = [name for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {name: signal.signal(getattr(signal, name), stop.handle) for name in names}
    try:
        yield stop
    finally:
        for name, handler in before.items():
            signal.signal(getattr(signal, name), handler)
