"""Whole rounds of a bandit on arms: choose, observe, update; ours against a floor in plain numpy, in one process.

    python benchmarks/rounds.py [--quick]

The workload: each round K vectors N(0,1)/√d (20 sets in turn), θ* ~ N(0, I) of norm ≤ 10, noise 0.1. The floor is OFUL
with a Sherman–Morrison inverse and nothing around it: no checks, no bounds reported, no late rewards, digits lost as
they are lost. Repeats are interleaved, and only ratios within a run count.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before numpy is imported

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import mixbandit as mb

SIZES = ((20, 10), (20, 1000), (100, 10), (100, 1000))
SIGMA, NORM_BOUND, DELTA = 0.1, 10.0, 0.01
Player = Callable[[Any, Any, Any], float]


def floor(sets: Any, theta: Any, noise: Any) -> float:
    """OFUL in plain numpy; the mean reward."""
    d = len(theta)
    inverse, b, volume, total = np.eye(d) / SIGMA**2, np.zeros(d), 0.0, 0.0
    for t, epsilon in enumerate(noise):
        arms = sets[t % len(sets)]
        radius = SIGMA * np.sqrt(volume - 2.0 * np.log(DELTA)) + SIGMA * NORM_BOUND
        width = np.sqrt(np.einsum("nd,nd->n", arms @ inverse, arms))
        x = arms[np.argmax(arms @ (inverse @ b) + radius * width)]
        reward = x @ theta + epsilon
        step = inverse @ x
        stretch = 1.0 + x @ step
        inverse -= np.outer(step, step) / stretch
        volume += np.log(stretch)
        b += reward * x
        total += x @ theta
    return float(total / len(noise))


def ours(make: Callable[..., mb.Policy]) -> Player:
    def play(sets: Any, theta: Any, noise: Any) -> float:
        policy = make(len(theta), sigma=SIGMA, norm_bound=NORM_BOUND, delta=DELTA, rng=0)
        total = 0.0
        for t, epsilon in enumerate(noise):
            choice = policy.ask(sets[t % len(sets)])
            value = float(choice.action @ theta)
            policy.tell(choice, value + epsilon)
            total += value
        return total / len(noise)

    return play


PLAYERS: dict[str, Player] = {
    "floor": floor,
    "CMM-UCB": ours(mb.CMMUCB),
    "AMM-UCB": ours(mb.AMMUCB),
    "OFUL": ours(mb.OFUL),
    "IDS": ours(mb.IDS),
    "Freq-TS": ours(mb.FreqTS),
}


def main() -> None:
    """Print microseconds per round, and how many times the floor that is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rounds, to see that it runs")
    quick = parser.parse_args().quick
    rounds, repeats = (30, 1) if quick else (500, 5)
    print(f"{'d, K':>10}  " + "  ".join(f"{name:>18}" for name in PLAYERS) + "   µs per round (times the floor)")
    for d, K in SIZES:
        rng = np.random.default_rng(0)
        sets = [rng.normal(size=(K, d)) / np.sqrt(d) for _ in range(20)]
        theta = rng.normal(size=d)
        theta *= min(1.0, NORM_BOUND / float(np.linalg.norm(theta)))
        noise = SIGMA * rng.normal(size=rounds)
        for play in PLAYERS.values():
            play(sets, theta, noise[:5])  # imports and compilation
        seconds: dict[str, list[float]] = {name: [] for name in PLAYERS}
        rewards = {}
        for _ in range(repeats):
            for name, play in PLAYERS.items():
                started = time.perf_counter()
                rewards[name] = play(sets, theta, noise)
                seconds[name].append((time.perf_counter() - started) / rounds)
        median = {name: 1e6 * statistics.median(values) for name, values in seconds.items()}
        cells = [f"{median[name]:9.0f} ({median[name] / median['floor']:5.1f})" for name in PLAYERS]
        print(f"{d:>4}, {K:>4}  " + "  ".join(f"{cell:>18}" for cell in cells))
        print(f"{'reward':>10}  " + "  ".join(f"{rewards[name]:18.3f}" for name in PLAYERS))


if __name__ == "__main__":
    main()
