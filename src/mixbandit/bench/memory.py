"""What a policy keeps in memory, after few rounds and after many; with many arms also the time of a round."""

from __future__ import annotations

import gc
import statistics
import time
import tracemalloc
from collections.abc import Iterator
from typing import Any

from mixbandit.bandits import AMMUCB, CMMUCB
from mixbandit.bench import workloads
from mixbandit.bench.context_players import AMM
from mixbandit.bench.timing import Say

_POLICIES = {"CMM-UCB": CMMUCB, "AMM-UCB": AMMUCB}
_FEATURES, _CONTEXTS = 20, 200
_LAST = 50  # rounds whose median time is reported


def measure(*, quick: bool, say: Say) -> list[dict[str, Any]]:
    """A row per policy, d and number of rounds played: kilobytes that Python and numpy hold for the policy."""
    rows = []
    for d in (20, 100):
        load = workloads.rounds(d, 10, 64)
        for name, make in _POLICIES.items():
            make(d, sigma=0.1, norm_bound=1.0, rng=0).ask(load.sets[0])  # imports and compilation
            gc.collect()
            tracemalloc.start()
            policy = make(d, sigma=workloads.SIGMA, norm_bound=load.norm_bound, delta=workloads.DELTA, rng=0)
            played = 0
            for rounds in (100, 1000) if quick else (100, 1000, 10_000):
                say(f"memory: {name}, d = {d}, {rounds:,} rounds")
                for k in range(played, rounds):
                    choice = policy.ask(load.sets[k % len(load.sets)])
                    policy.tell(choice, float(choice.action @ load.theta) + float(load.noise[k % 64]))
                played = rounds
                gc.collect()
                held = tracemalloc.get_traced_memory()[0]
                rows.append({"policy": name, "d": d, "rounds": rounds, "kilobytes": held / 1024.0})
            tracemalloc.stop()
    return rows


def blocks(*, quick: bool, say: Say) -> list[dict[str, Any]]:
    """A row per number of arms and of rounds: kilobytes held by AMM-UCB with a belief per arm, beside those of one
    matrix per arm, and microseconds of the median of the last rounds.
    """
    rows = []
    for arms, marks in ((1000, (100, 1000) if quick else (100, 1000, 100_000)), (10_000, (100,))):
        load = workloads.contexts(_FEATURES, arms, _CONTEXTS, binary=False)
        bare = 8.0 * arms * (_FEATURES + 1) ** 2 / 1024.0
        say(f"memory: {arms:,} arms, {marks[-1]:,} rounds, timed")
        times = list(_timed(load, marks))  # first, so that imports and compilation are not counted below
        say(f"memory: {arms:,} arms, {marks[-1]:,} rounds, traced")
        for mark, microseconds, held in zip(marks, times, _traced(load, marks), strict=True):
            rows.append({
                "policy": AMM.name, "d": _FEATURES, "arms": arms, "rounds": mark, "kilobytes": held,
                "times_bare": held / bare, "microseconds": microseconds,
            })  # fmt: skip
    return rows


def _timed(load: workloads.Contexts, marks: tuple[int, ...]) -> Iterator[float]:
    step, played = AMM.start(load), 0
    for mark in marks:
        for t in range(played, mark - _LAST):
            step(t)
        times = []
        for t in range(mark - _LAST, mark):
            start = time.perf_counter()
            step(t)
            times.append(time.perf_counter() - start)
        played = mark
        yield 1e6 * statistics.median(times)


def _traced(load: workloads.Contexts, marks: tuple[int, ...]) -> Iterator[float]:
    gc.collect()
    tracemalloc.start()
    try:
        step, played = AMM.start(load), 0
        for mark in marks:
            for t in range(played, mark):
                step(t)
            played = mark
            gc.collect()
            yield tracemalloc.get_traced_memory()[0] / 1024.0
    finally:
        tracemalloc.stop()
