"""Certify stored histories, and check every statement against the truth: a CSV row per run."""

from __future__ import annotations

import functools
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import mixbandit as mb
from mixbandit import AssumptionsRefutedWarning, Space, StudyCertificate

from .functions import functions
from .histories import SAMPLERS, SAMPLES, TRIALS, History, Key, load, uniform
from .records import Records, Row, flag, number

Array = NDArray[np.float64]
# Intervals are checked at this many configurations.
CHECKED = 400
TOLERANCE = 1e-9
RUN = ("kind", "function", "sampler", "trials", "samples", "seed")
COLUMNS = (
    *RUN, "trusted", "refuted", "proven", "proof", "lower", "upper", "best_possible", "gap", "truth", "best", "hit",
    "interval_wrong", "best_possible_wrong", "gap_wrong", "intervals_wrong", "mean_width", "median_width", "wrong",
    "silent", "seconds",
)  # fmt: skip


@dataclass(frozen=True)
class Job:
    """One certificate: of the first trials of a history."""

    key: Key
    trials: int

    @property
    def run(self) -> tuple[str, ...]:
        key, kind = self.key, functions()[self.key.function].kind
        return (kind, key.function, key.sampler, str(self.trials), str(key.samples), str(key.seed))


def jobs(names: Sequence[str], seeds: int) -> list[Job]:
    """All runs, the first seeds first."""
    return [
        Job(Key(name, sampler, samples, seed), trials)
        for seed in range(seeds)
        for name in names
        for sampler in SAMPLERS
        for samples in SAMPLES
        for trials in TRIALS
    ]


def evaluated(settings: dict[str, str], space: Space, samples: int) -> dict[str, Any]:
    """The keywords of `certify`: the defaults of this benchmark, and settings given as Python expressions."""
    known = {"mb": mb, "np": np, "space": space, "samples": samples}
    stated = {"reward_range": (0.0, 1.0), "samples": samples, "rows": "fresh", "delta": 0.05}
    changed = {name: eval(text, known) for name, text in settings.items()}
    return {name: value for name, value in {**stated, **changed}.items() if value is not None}


def bounds_at(found: StudyCertificate, configurations: Sequence[dict[str, Any]]) -> tuple[Array, Array]:
    """Lower and upper bounds at configurations, from the same certificate."""
    assert found.judgement is not None
    ends = found.judgement.ends(found.judgement.space.encode_all(list(configurations)))
    return np.array([each.lower for each in ends]), np.array([each.upper for each in ends])


def certified(history: History, space: Space, keywords: dict[str, Any]) -> StudyCertificate:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionsRefutedWarning)
        return mb.certify(history, space=space, **keywords)


def falsehoods(found: StudyCertificate, truth: float, best: float) -> tuple[bool, bool, bool]:
    """Whether its interval, its bound on the best value and its gap are wrong; the last two count only if proven."""
    low, high = found.interval
    return (
        not low - TOLERANCE <= truth <= high + TOLERANCE,
        found.proven and best > found.best_possible + TOLERANCE,
        found.proven and best - truth > found.gap + TOLERANCE,
    )


def play(job: Job, settings: dict[str, str], folder: Path) -> Row:
    """Certify a history and check what is said."""
    function, key = functions()[job.key.function], job.key
    space, history = function.space, load(key, folder)[: job.trials]
    keywords = evaluated(settings, space, key.samples)
    with threadpool_limits(1):
        started = time.process_time()
        found = certified(history, space, keywords)
        seconds = time.process_time() - started
        # The same configurations for all runs of a seed.
        elsewhere = uniform(space, CHECKED, np.random.default_rng((key.seed, CHECKED)))
        lower, upper = bounds_at(found, elsewhere)
    truths, truth = np.array([function(configuration) for configuration in elsewhere]), function(found.action)
    intervals_wrong = int(((truths < lower - TOLERANCE) | (truths > upper + TOLERANCE)).sum())
    statements = falsehoods(found, truth, function.best)
    wrong = any(statements) or intervals_wrong > 0
    refuted = not found.trusted
    hit = "" if function.hit_above is None else flag(any(function(c) > function.hit_above for c, _ in history))
    values = (
        *job.run, flag(found.trusted), flag(refuted), flag(found.proven), found.proof,
        *map(number, (*found.interval, found.best_possible, found.gap, truth, function.best)), hit,
        *map(flag, statements), str(intervals_wrong), number(float(np.mean(upper - lower))),
        number(float(np.median(upper - lower))), flag(wrong), flag(wrong and not refuted), f"{seconds:.3f}",
    )  # fmt: skip
    return dict(zip(COLUMNS, values, strict=True))


# ---- the file of a label


def _place(row: Mapping[str, str]) -> tuple[int, str, int, int, int]:
    names = list(functions())
    return (names.index(row["function"]), row["sampler"], int(row["trials"]), int(row["samples"]), int(row["seed"]))


FORM = Records(COLUMNS, RUN, _place)
read, write = FORM.read, FORM.write


def play_all(
    label: str,
    wanted: Sequence[Job],
    settings: dict[str, str],
    *,
    out: Path,
    folder: Path,
    processes: int = 1,
) -> None:
    """Play the runs that are missing from the file of the label; every finished run is on disk at once."""
    path = out / f"{label}.csv"
    stated = ", ".join(f"{name}={value}" for name, value in settings.items()) or "the defaults"
    comment = f"mixbandit: {version('mixbandit')}; label: {label}; settings: {stated}; command: python -m "
    comment += f"benchmarks.certificates play --label {label}; seeds from 0; delta: 0.05 unless set"
    one = functools.partial(play, settings=settings, folder=folder)
    FORM.resume(path, comment, {job.run: job for job in wanted}, one, processes)
