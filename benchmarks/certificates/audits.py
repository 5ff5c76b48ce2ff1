"""Training noise: how often repeated trials show that values spread more than `samples` accounts for.

A value is the mean of m results that are 0 or 1. If training is random too, all m of them share an accuracy that varies
from trial to trial: here a Beta law around p, such that the standard deviation of a value is 1.8 times √(p(1−p)/m). The
tuner is told the same `samples` with and without: the first should be refuted, the second must not be.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

import mixbandit as mb
from mixbandit import AssumptionsRefutedWarning

from .accuracies import Task, tasks
from .floors import DELTA, TOLERANCE
from .functions import Configuration
from .histories import uniform
from .records import Records, Row, flag, number

TASKS = ("80-text", "90-machine", "95-components", "99-vectors")
# So many trials of one configuration, or shared out among three.
TRIALS, CONFIGURATIONS = 30, (1, 3)
# The standard deviation of a value, in units of √(p(1−p)/m).
SPREADS = (1.0, 1.8)
SEEDS = 200
_WHERE, _VALUES = 10, 11  # streams
RUN = ("task", "configurations", "spread", "seed")
COLUMNS = (*RUN, "seen_spread", "refuted", "trusted", "truth", "floor", "floor_wrong", "seconds")


@dataclass(frozen=True)
class Job:
    """Repeats of some configurations of a task."""

    task: str
    configurations: int
    spread: float
    seed: int

    @property
    def run(self) -> tuple[str, ...]:
        return (self.task, str(self.configurations), str(self.spread), str(self.seed))


def _place(row: Mapping[str, str]) -> tuple[str, int, float, int]:
    return row["task"], int(row["configurations"]), float(row["spread"]), int(row["seed"])


FORM = Records(COLUMNS, RUN, _place, "audits")


def value(p: float, m: int, spread: float, rng: np.random.Generator) -> float:
    """A mean of m results around p, with standard deviation spread·√(p(1−p)/m).

    A Beta(ap, a(1−p)) law of the shared accuracy multiplies the variance by 1 + (m−1)/(a+1).
    """
    if spread > 1.0:
        a = (m - 1) / (spread**2 - 1.0) - 1.0
        p = float(rng.beta(a * p, a * (1.0 - p)))
    return float(rng.binomial(m, p)) / m


def repeated(task: Task, job: Job) -> list[Configuration]:
    """The best configuration and uniform ones, in turn."""
    others = uniform(task.space, job.configurations - 1, task.rng(job.seed, _WHERE))
    return [[task.best_at, *others][i % job.configurations] for i in range(TRIALS)]


def play(job: Job) -> Row:
    """Tell a tuner repeats; whether its certificate, or its audit, says that the values refute what was stated."""
    task = tasks()[job.task]
    rng, errors = task.rng(job.seed, _VALUES), []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionsRefutedWarning)
        started = time.process_time()
        tuner = mb.Tuner(
            task.space, reward_range=(0.0, 1.0), samples=task.samples, rows="fresh", delta=DELTA, rng=job.seed
        )
        for configuration in repeated(task, job):
            p = task(configuration)
            measured = value(p, task.samples, job.spread, rng)
            tuner.tell(tuner.adopt(configuration), measured)
            errors.append((measured - p) / np.sqrt(p * (1.0 - p) / task.samples))
        found = tuner.certificate()
        said = any(sentence.startswith("REFUTED") for sentence in tuner.audit().sentences)
        seconds = time.process_time() - started
    truth, low = task(found.action), found.interval[0]
    values = (
        *job.run, number(float(np.sqrt(np.mean(np.square(errors))))), flag(said or not found.trusted or tuner.refuted),
        flag(found.trusted), number(truth), number(low), flag(low > truth + TOLERANCE), f"{seconds:.3f}",
    )  # fmt: skip
    return dict(zip(COLUMNS, values, strict=True))


def play_all(label: str, names: Sequence[str], seeds: int, *, out: Path, processes: int = 1) -> None:
    """Play the runs that are missing from the file of the label."""
    comment = f"mixbandit: {version('mixbandit')}; label: {label}; command: python -m benchmarks.certificates audits "
    comment += f"--label {label}; seeds from 0; delta: {DELTA}"
    wanted = [
        Job(name, configurations, spread, seed)
        for seed in range(seeds)
        for name in names
        for configurations in CONFIGURATIONS
        for spread in SPREADS
    ]
    FORM.resume(out / f"audits_{label}.csv", comment, {job.run: job for job in wanted}, play, processes)
