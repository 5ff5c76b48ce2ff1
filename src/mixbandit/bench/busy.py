"""Decisions in context while another process keeps both cores busy, with one BLAS thread and with two.

BLAS threads that wait for each other lose more than their share of a busy machine. LinUCB in ten lines of numpy, played
in the same process with one thread, tells what the other process alone costs.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from mixbandit.bench import workloads
from mixbandit.bench.context_players import FLOOR, OURS
from mixbandit.bench.rounds import compare
from mixbandit.bench.timing import Say

_CORES = 2
_COUNT = 500
_KEPT = ("player", "microseconds", "times_floor", "rounds")
_LONGEST = 300.0  # seconds that the other process lives if nobody ends it


def measure(*, quick: bool, say: Say) -> list[dict[str, Any]]:
    """A row per size, player and number of BLAS threads, beside the time of as many rounds on an idle machine."""
    speed = "quick" if quick else "full"
    say("contexts, an idle machine, BLAS threads: 1")
    quiet = {_key(row): row["microseconds"] for row in json.loads(_run("measure", 1, speed))}
    rows = []
    for threads in (1, _CORES):
        say(f"contexts, another process on {_CORES} cores, BLAS threads: {threads}")
        with _other_process():
            found = json.loads(_run("measure", threads, speed))
        times = [row["microseconds"] / quiet[_key(row)] for row in found]
        rows += [{**row, "blas_threads": threads, "busy_times_quiet": t} for row, t in zip(found, times, strict=True)]
    return sorted(rows, key=lambda row: workloads.CONTEXT_SIZES.index((row["d"], row["arms"])))


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["d"], row["arms"], row["player"]


def play(*, quick: bool) -> list[dict[str, Any]]:
    """The rows of this process, with the BLAS threads that it was started with."""
    # The cap is for the slowest: where rounds differ in what they cost, as many must be played each time.
    repeats, cap = (1, 0.1) if quick else (3, 2.0)
    rows = []
    for d, arms in workloads.CONTEXT_SIZES:
        load = workloads.contexts(d, arms, _COUNT, binary=False)
        found = compare([FLOOR, *OURS], load, count=_COUNT, repeats=repeats, cap=cap, title="", say=lambda _: None)
        rows += [{"d": d, "arms": arms, **{name: row[name] for name in _KEPT}} for row in found]
    return rows


def occupy() -> None:
    """Multiply matrices on both cores, until somebody ends this process."""
    end = time.monotonic() + _LONGEST

    def work() -> None:
        matrix = np.full((200, 200), 0.001)
        while time.monotonic() < end:
            matrix @ matrix

    for _ in range(_CORES):
        threading.Thread(target=work).start()


@contextlib.contextmanager
def _other_process() -> Iterator[None]:
    with subprocess.Popen(_command("occupy"), env=_environment(1), stdout=subprocess.PIPE) as process:  # noqa: S603
        try:
            assert process.stdout is not None
            process.stdout.readline()  # it has started
            yield
        finally:
            process.kill()


def _run(task: str, threads: int, *arguments: str) -> str:
    done = subprocess.run(  # noqa: S603
        _command(task, *arguments), env=_environment(threads), stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", __spec__.name, *arguments]


def _environment(threads: int) -> dict[str, str]:
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    return {**os.environ, **dict.fromkeys(names, str(threads))}


if __name__ == "__main__":
    if sys.argv[1] == "occupy":
        occupy()
        sys.stdout.write("started\n")
        sys.stdout.flush()
    else:
        sys.stdout.write(json.dumps(play(quick=sys.argv[2] == "quick")))
