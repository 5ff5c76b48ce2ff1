"""Run a policy on an environment: choose, play, learn, and keep records."""

from __future__ import annotations

import contextlib
import inspect
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from mixbandit._checks import (
    as_number,
    as_path,
    finite,
    flag,
    instance_of,
    nonnegative,
    nonnegative_int,
    positive_int,
    shown,
)
from mixbandit._files import digest, read_state, write_state
from mixbandit._schema import check_type, checked, mapping, record, require
from mixbandit.bandits import Choice, Policy, difference
from mixbandit.certificates import Certificate
from mixbandit.errors import InvalidInput
from mixbandit.simulate.environments import Environment
from mixbandit.simulate.players import Player, ours, seat
from mixbandit.simulate.records import Record, Records

logger = logging.getLogger(__name__)

# By default, a run shorter than this shows no progress.
_SECONDS_WITHOUT_PROGRESS = 2.0

Delay = int | Callable[[int, float], int | None]
"""Rounds until a reward is told: a number, or a function of the round and the reward that returns None for never."""


@dataclass(frozen=True)
class StopWhen:
    """Stop as soon as a certificate proves that the best action is known to within `gap`."""

    gap: float
    every: int = 10

    def __post_init__(self) -> None:
        object.__setattr__(self, "gap", nonnegative(self.gap, "gap"))
        object.__setattr__(self, "every", positive_int(self.every, "every"))

    def __call__(self, policy: Policy) -> bool:
        """Whether to stop, for your own loops."""
        return self.met_by(policy) is not None

    def met_by(self, policy: Policy) -> Certificate | None:
        """The certificate that permits stopping, if any. One that is only found by search never does."""
        found = instance_of(policy, Policy, "policy", "a mixbandit policy").certificate()
        return found if found.proven and found.gap <= self.gap else None


def stop_when(*, gap: float, every: int = 10) -> StopWhen:
    """Check every `every` rounds whether the gap is proven to be at most `gap`: for `run`, or to call with a policy."""
    return StopWhen(gap, every)


def run(
    policy: Policy | Player,
    environment: Environment,
    rounds: int,
    *,
    records: Records | None = None,
    batch: int = 1,
    delay: Delay = 0,
    stop_when: StopWhen | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_seconds: float = 30.0,
    progress: bool | Callable[[int, int], None] | None = None,
) -> Records:
    """Play until there are `rounds` records, and return them.

    `policy`: one of mixbandit's, or any object with `ask(arms, context=…)`, which returns something with an `action`,
    and `tell(choice, reward)`. `ask` is given the arms and the context of the round, if there are any. The records of
    such an object have no bounds; `checkpoint` and `stop_when` need a policy of mixbandit's.

    `records`: continue from these and append to them; they contain every finished round, whatever happens.
    `checkpoint`: a file that is written at the start, every `checkpoint_seconds`, and at the end; if it exists, the run
    resumes from it, policy included, with the same records as if it had never stopped. `batch` choices are made at
    once. `delay` holds rewards back. `stop_when`, from `mixbandit.stop_when(gap=…)`, ends the run early;
    `Records.stopped` then gives the reason.

    `progress`: a function of rounds done and total rounds, or True or False for a bar on the terminal; by default a bar
    appears when a run takes longer than two seconds on a terminal. Ctrl-C never leaves half a round: the
    KeyboardInterrupt has the `records` so far as an attribute, and the policy can continue.
    """
    if not isinstance(environment, Environment):
        raise InvalidInput(
            f"environment must be an Environment, got {shown(environment)}; wrap a function as FunctionEnvironment(f)"
        )
    if records is not None:
        instance_of(records, Records, "records", "the Records of another run")
    seconds = nonnegative(checkpoint_seconds, "checkpoint_seconds")
    if callable(progress):
        _check_takes(progress, "progress", "rounds done", "total rounds")
    elif progress is not None:
        flag(progress, "progress, unless it is a function,")
    going = _Run(policy, environment, positive_int(rounds, "rounds"), Records() if records is None else records)
    going.batch = positive_int(batch, "batch")
    if callable(delay):
        _check_takes(delay, "delay", "the round", "its reward")
    going.delay = delay if callable(delay) else _rounds_late(delay)
    going.stop_when = stop_when
    going.check_actions()
    file = None if checkpoint is None else as_path(checkpoint, "checkpoint")
    if file is not None:
        ours(policy, "a checkpoint needs a mixbandit policy, whose state can be saved")
    if file is not None and file.exists():
        going.resume(read_state(file))
    going.prepare()
    with _shown(progress, going.rounds) as show:
        going.play(show, file, seconds)
    return going.records


# The records, of which there may be many, are checked where they are made.
RUN = record({"environment": mapping, "policy": Policy.family, "records": mapping})
"""The state of a run, in a checkpoint."""


class _Run:
    """A run in progress, with the rewards still to be told."""

    def __init__(self, player: Any, environment: Environment, rounds: int, records: Records) -> None:
        self.environment, self.rounds, self.records = environment, rounds, records
        self.seat = seat(player, first=1 + max((row.id for row in records), default=-1))
        self.policy: Policy = player  # which only what needs a policy may ask for
        self.batch, self.delay = 1, 0  # type: int, Delay
        self.stop_when: StopWhen | None = None
        self._late: list[tuple[int, int, int]] = []  # round of arrival, id, row of the record

    def check_actions(self) -> None:
        """Reject a policy and an environment with different actions."""
        own, theirs = self.seat.actions, self.environment.actions
        if own is not None and theirs is not None and own != theirs:
            raise InvalidInput(f"the policy chooses from {shown(own)}, but the environment offers {shown(theirs)}")
        if self.stop_when is not None and not isinstance(self.stop_when, StopWhen):
            raise InvalidInput(f"stop_when must come from mixbandit.stop_when(gap=…), got {shown(self.stop_when)}")
        if self.stop_when is not None:
            ours(self.policy, "stop_when needs a mixbandit policy, which can prove a gap")
        if self.stop_when is not None and own is None:
            raise InvalidInput("stop_when needs a policy with fixed actions: otherwise there is nothing to certify")

    def prepare(self) -> None:
        """Find the rewards still to be told, and check whether to stop already."""
        waiting = self.seat.waiting()
        self._late = [
            (row.told, row.id, i) for i, row in enumerate(self.records) if row.told is not None and row.id in waiting
        ]
        self.records.stopped = None
        if self.stop_when is not None and len(self.records):
            self._stop_if_proven(self.stop_when)

    def play(self, show: Callable[[int], None], file: Path | None, seconds: float) -> None:
        saved = time.monotonic()
        if file is not None:
            self._save(file)  # fail now if something cannot be stored
        show(len(self.records))
        try:
            while len(self.records) < self.rounds and self.records.stopped is None:
                self._step()
                show(len(self.records))
                if file is not None and time.monotonic() - saved > seconds:
                    self._save(file)
                    saved = time.monotonic()
        except BaseException as error:
            where = "" if file is None else f"; call again to resume from {file}"
            error.add_note(f"stopped after {len(self.records)} of {self.rounds} rounds{where}")
            # An attribute, not a subclass: Python exits with the usual status only for KeyboardInterrupt itself.
            error.records = self.records  # type: ignore[attr-defined]
            raise
        finally:
            if file is not None:
                self._save(file)

    def resume(self, state: Mapping[str, Any]) -> None:
        check_type(state, "run", ["Run"])
        fields = checked(RUN, state, "run")
        if digest(fields["environment"]) != digest(self.environment.fingerprint()):
            raise InvalidInput("the checkpoint is from a run on another environment; use another file")
        if fields["policy"]["type"] not in self.policy.reads():
            raise InvalidInput(f"the checkpoint is from a run of {fields['policy']['type']}; use another file")
        stored = type(self.policy).from_state_dict(fields["policy"], self.policy.sequence.features)
        found = difference(self.policy, stored)
        if found is not None:
            raise InvalidInput(f"the checkpoint is from a run of another policy ({found}); use another file")
        records = Records.from_state_dict(fields["records"])
        waiting = {choice.number for choice in stored.pending}
        told_twice = len(waiting & {row.id for row in records}) < sum(row.id in waiting for row in records)
        require(not told_twice, "run.records", "must have one row for each choice that waits for its reward")
        self.policy.state = stored.state
        self.records.rows[:] = records.rows
        logger.info("resuming from round %d", len(self.records))

    def _save(self, file: Path) -> None:
        state = {
            "type": "Run",
            "environment": self.environment.fingerprint(),
            "policy": self.policy.state_dict(),
            "records": self.records.state_dict(),
        }
        with _interrupts_deferred():
            write_state(file, state)

    def _step(self) -> None:
        """One decision, of one choice or a batch; an interruption never leaves half of it."""
        t = len(self.records)
        n = min(self.batch, self.rounds - t)
        offer = self.environment.offer(t)
        arms = offer.arms
        if arms is None and self.seat.actions is None:
            arms = self.environment.actions
        before, played_none = self.seat.mark(), True
        try:
            started = time.perf_counter()
            with _interrupts_deferred():
                choices = self.seat.ask(arms, offer.context, n)
            asked = (time.perf_counter() - started) / n
            played = [self._play(t + k, t, choice) for k, choice in enumerate(choices)]
            with _interrupts_deferred():
                rows = [self._row(t + k, choice, played[k], asked) for k, choice in enumerate(choices)]
                played_none = False
                self._receive(rows)
                self._deliver(t + n - 1)
                if self.stop_when is not None and (t + n) // self.stop_when.every > t // self.stop_when.every:
                    self._stop_if_proven(self.stop_when)
        except BaseException:  # an interrupt, or an error in the environment: the choices were never played
            if played_none:
                self.seat.undo(before)
            raise

    def _play(self, round_: int, t: int, choice: Choice) -> dict[str, Any]:
        reward = finite(as_number(self.environment.reward(round_, choice), "reward"), "the environment's reward")
        return {
            "reward": reward,
            "expected": self.environment.expected(round_, choice),
            # A batch is chosen from the offer of its first round.
            "best": self.environment.best(t),
        }

    def _row(self, round_: int, choice: Choice, outcome: dict[str, Any], asked: float) -> Record:
        wait = self.delay(round_, outcome["reward"]) if callable(self.delay) else self.delay
        told = None if wait is None else round_ + _rounds_late(wait)
        known = {**outcome, **self.seat.bounds(choice)}
        return Record.of(round_, choice, **known, told=told, ask_seconds=asked, tell_seconds=0.0)

    def _receive(self, rows: list[Record]) -> None:
        for row in rows:
            self.records.append(row)
            if row.told is None:
                self.seat.lose(row.id)
            else:
                self._late.append((row.told, row.id, len(self.records) - 1))

    def _deliver(self, now: int) -> None:
        due = sorted(part for part in self._late if part[0] <= now)
        self._late = [part for part in self._late if part[0] > now]
        if not due:
            return
        started = time.perf_counter()
        self.seat.tell([number for _, number, _ in due], [self.records[row].reward for _, _, row in due])
        spent = (time.perf_counter() - started) / len(due)
        for _, _, row in due:
            object.__setattr__(self.records[row], "tell_seconds", spent)

    def _stop_if_proven(self, rule: StopWhen) -> None:
        found = rule.met_by(self.policy)
        if found is not None:
            self.records.stopped = f"gap {found.gap:.4g} ≤ {rule.gap:g} proven ({found.proof})"


def _check_takes(function: Callable[..., Any], name: str, *arguments: str) -> None:
    """Reject a function that cannot be called with these arguments, before anything is played."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some of those written in C
        return
    try:
        signature.bind(*arguments)
    except TypeError:
        raise InvalidInput(f"{name} must take {' and '.join(arguments)}, got {shown(function)}") from None


def _rounds_late(delay: int) -> int:
    """A delay as an int ≥ 0."""
    return nonnegative_int(delay, "delay, unless it is None for a reward that never arrives,")


@contextlib.contextmanager
def _interrupts_deferred() -> Iterator[None]:
    """Defer Ctrl-C until the block is done, which takes milliseconds; only possible in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pending: list[tuple[int, FrameType | None]] = []
    before = signal.getsignal(signal.SIGINT)
    if not callable(before):  # ignored, or not handled by Python
        yield
        return
    signal.signal(signal.SIGINT, lambda number, frame: pending.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if pending:
            before(*pending[0])


@contextlib.contextmanager
def _shown(progress: bool | Callable[[int, int], None] | None, rounds: int) -> Iterator[Callable[[int], None]]:
    """A function that shows how many rounds are done."""
    if callable(progress):
        yield lambda done: progress(done, rounds)
        return
    if progress is False or (progress is None and not sys.stderr.isatty()):
        yield lambda done: None
        return
    bar = _Bar(rounds, at_once=progress is True)
    try:
        yield bar.show
    finally:
        bar.close()


class _Bar:
    """rich's progress bar on stderr, if rich is installed, once it is worth showing."""

    def __init__(self, rounds: int, *, at_once: bool) -> None:
        self._rounds, self._started = rounds, time.monotonic() - (_SECONDS_WITHOUT_PROGRESS if at_once else 0.0)
        self._bar: Any = None
        self._task: Any = None
        self._missing = False

    def show(self, done: int) -> None:
        if self._bar is None and not self._missing and time.monotonic() - self._started >= _SECONDS_WITHOUT_PROGRESS:
            self._open()
        if self._bar is not None:
            self._bar.update(self._task, completed=done)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()

    def _open(self) -> None:
        try:
            from rich.console import Console
            from rich.progress import Progress
        except ImportError:
            self._missing = True
            return
        self._bar = Progress(console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task("rounds", total=self._rounds)
        self._bar.start()
