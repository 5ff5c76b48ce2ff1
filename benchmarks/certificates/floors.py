"""Tune, confirm, certify: how far certified floors lie below the truth, and below what an oracle could certify."""

from __future__ import annotations

import functools
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

import mixbandit as mb
from mixbandit import AssumptionsRefutedWarning
from mixbandit.tuning import Trial

from . import oracle
from .accuracies import Task, tasks
from .digits import digits
from .records import Records, Row, flag, number

DELTA = 0.05
FINALISTS = 3
DIGITS = "digits"
SEEDS = {"floors": 50, DIGITS: 5}
TOLERANCE = 1e-9
WAYS = ("confirm", "repeat")
# Streams of random numbers, so that what one part draws does not change what another one sees.
_SEARCH, _CONFIRMATION, _ORACLE = range(3)
RUN = ("task", "seed")
COLUMNS = (
    *RUN, "best", "truth_searched", "floor_searched", "truth", "floor", "upper", "width", "best_possible", "gap",
    "floor_wrong", "interval_wrong", "best_possible_wrong", "gap_wrong", "trusted", "proven", "proof", "evidence",
    "repeated", "unused", "oracle_floor", "seconds",
)  # fmt: skip


def _place(row: Mapping[str, str]) -> tuple[str, int]:
    return row["task"], int(row["seed"])


FORM = Records(COLUMNS, RUN, _place, "floors")


def default_way() -> str:
    """How recommendations are confirmed: by `Tuner.confirm` where this version of mixbandit has it."""
    return "confirm" if hasattr(mb.Tuner, "confirm") else "repeat"


def confirmations(tuner: mb.Tuner, n: int, way: str) -> Iterator[Trial]:
    """At most n trials that confirm what a search found: of finalists, or of the recommended configuration alone."""
    if way == "confirm":
        chosen: Any = tuner
        yield from chosen.confirm(n, finalists=FINALISTS)
        return
    recommended = tuner.recommend().parameters
    for _ in range(n):
        yield tuner.adopt(recommended)


def play(task: Task, seed: int, way: str) -> Row:
    """Tune a task, confirm, and check the certificate against the truth."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionsRefutedWarning)
        started = time.process_time()
        tuner = mb.Tuner(task.space, reward_range=(0.0, 1.0), samples=task.samples, rows="fresh", delta=DELTA, rng=seed)
        rng = task.rng(seed, _SEARCH)
        for _ in range(task.trials):
            trial = tuner.ask()
            tuner.tell(trial, task.measured(trial.parameters, rng))
        repeated = task.trials - len({tuple(told.parameters.items()) for told in tuner.history})
        searched = tuner.recommend()
        rng, used = task.rng(seed, _CONFIRMATION), 0
        for trial in confirmations(tuner, task.confirmations, way):
            tuner.tell(trial, task.measured(trial.parameters, rng))
            used += 1
        found = tuner.certificate()
        seconds = time.process_time() - started
    (low, high), truth, best = found.interval, task(found.action), task.best
    values = (
        task.name, str(seed), number(best), number(task(searched.parameters)), number(searched.interval[0]),
        *map(number, (truth, low, high, high - low, found.best_possible, found.gap)),
        flag(low > truth + TOLERANCE), flag(not low - TOLERANCE <= truth <= high + TOLERANCE),
        flag(found.proven and best > found.best_possible + TOLERANCE),
        flag(found.proven and best - truth > found.gap + TOLERANCE),
        flag(found.trusted), flag(found.proven), found.proof, getattr(found, "evidence", None) or "",
        str(repeated), str(task.confirmations - used), number(oracle_floor(task, seed)), f"{seconds:.3f}",
    )  # fmt: skip
    return dict(zip(COLUMNS, values, strict=True))


def oracle_floor(task: Task, seed: int) -> float:
    """What all confirmations, given to the best configuration, certify at level δ."""
    n = task.samples * task.confirmations
    return oracle.floor(int(task.rng(seed, _ORACLE).binomial(n, task.best)), n, DELTA)


def task_of(name: str) -> Task:
    return digits() if name == DIGITS else tasks()[name]


def play_all(
    command: str, label: str, names: Sequence[str], seeds: int, *, way: str, out: Path, processes: int = 1
) -> None:
    """Play the runs that are missing from the file of the label, the first seeds first."""
    how = f"confirm(finalists={FINALISTS})" if way == "confirm" else "the recommended configuration"
    comment = f"mixbandit: {version('mixbandit')}; label: {label}; confirmations: {how}; command: python -m "
    comment += f"benchmarks.certificates {command} --label {label} --way {way}; seeds from 0; delta: {DELTA}"
    wanted: dict[tuple[str, ...], tuple[str, int]] = {
        (name, str(seed)): (name, seed) for seed in range(seeds) for name in names
    }
    file = f"{label}.csv" if command == "floors" else f"{command}_{label}.csv"
    FORM.resume(out / file, comment, wanted, functools.partial(_one, way=way), processes)


def _one(job: tuple[str, int], way: str) -> Row:
    name, seed = job
    return play(task_of(name), seed, way)
