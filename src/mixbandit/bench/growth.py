"""How the time of a round grows with the number of rounds and with the dimension."""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np

from mixbandit.bandits import AMMUCB, CMMUCB, Policy
from mixbandit.bench import workloads
from mixbandit.bench.timing import Say

_POLICIES = {"CMM-UCB": CMMUCB, "AMM-UCB": AMMUCB}
_ROUNDS = 96  # three buffers of the factor


def over_time(*, quick: bool, say: Say) -> list[dict[str, Any]]:
    """A row per policy and t: microseconds of the median round, and of the mean, at d = 20 with 10 arms."""
    return _measured([(20, t) for t in (10**k for k in range(2, 6 if quick else 7))], 2 if quick else 5, say)


def over_dimension(*, quick: bool, say: Say) -> list[dict[str, Any]]:
    """A row per policy and d: microseconds of the median round, and of the mean, after 10·d rewards."""
    dims = (10, 20, 50, 100, 200) if quick else (10, 20, 50, 100, 200, 500, 1000)
    return _measured([(d, 10 * d) for d in dims], 1 if quick else 3, say)


def slope(rows: list[dict[str, Any]], policy: str, by: str) -> float:
    """The slope of the median round on a log-log scale."""
    points = [(row[by], row["median_microseconds"]) for row in rows if row["policy"] == policy]
    x, y = np.log(np.array(points, dtype=float)).T
    return float(np.polyfit(x, y, 1)[0])


def _measured(sizes: list[tuple[int, int]], repeats: int, say: Say) -> list[dict[str, Any]]:
    starts = {}
    for d, t in sizes:
        load = workloads.rounds(d, 10, _ROUNDS)
        for name, make in _POLICIES.items():
            say(f"growth: {name} learns {t:,} rewards, d = {d}")
            starts[name, d, t] = load, _experienced(make, load, t)
    rounds: dict[Any, list[float]] = {key: [] for key in starts}
    means: dict[Any, list[float]] = {key: [] for key in starts}
    for repeat in range(repeats):
        for key, (load, policy) in starts.items():
            say(f"growth, {repeat + 1} of {repeats}: {key[0]}, d = {key[1]}, t = {key[2]:,}")
            times = _times(policy.at(policy.state), load)
            rounds[key].append(statistics.median(times))
            means[key].append(statistics.mean(times))
    return [
        {
            "policy": name, "d": d, "t": t,
            "median_microseconds": 1e6 * statistics.median(rounds[name, d, t]),
            "mean_microseconds": 1e6 * statistics.median(means[name, d, t]),
        }
        for name, d, t in starts
    ]  # fmt: skip


def _experienced(make: Any, load: workloads.Rounds, t: int) -> Policy:
    """A policy that has learnt t rewards of random vectors: those of the sets alone would not span large dimensions."""
    options = {"sigma": workloads.SIGMA, "norm_bound": load.norm_bound, "delta": workloads.DELTA, "rng": 0}
    policy: Policy = make(load.d, **options)
    rng = np.random.default_rng(1)
    for start in range(0, t, 50_000):
        rows = rng.normal(size=(min(50_000, t - start), load.d)) / np.sqrt(load.d)
        policy.learn(rows, rows @ load.theta + workloads.SIGMA * rng.normal(size=len(rows)))
    return policy


def _times(policy: Policy, load: workloads.Rounds) -> list[float]:
    times = []
    for k in range(_ROUNDS + 8):
        start = time.perf_counter()
        choice = policy.ask(load.sets[k % len(load.sets)])
        policy.tell(choice, float(choice.action @ load.theta) + float(load.noise[k % _ROUNDS]))
        times.append(time.perf_counter() - start)
    return times[8:]
