"""Whole rounds of a bandit on arms: choose, observe, update; ours against a floor in plain numpy, in one process.

    python benchmarks/rounds.py [--quick] [--other PYTHON]

The workload: each round K vectors N(0,1)/√d (20 sets in turn), θ* ~ N(0, I) of norm ≤ 10, noise 0.1. The floor is OFUL
with a Sherman–Morrison inverse and nothing around it: no checks, no bounds reported, no late rewards, digits lost as
they are lost. Repeats are interleaved, and only ratios within a run count. With `--other`, a Python that has another
version of mixbandit plays the same, in turn with this one.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before numpy is imported

import argparse
import json
import statistics
import subprocess
import sys
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


def ours(make: Callable[..., Any]) -> Player:
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


NAMED: dict[str, Callable[..., Any]] = {
    "CMM-UCB": mb.CMMUCB,
    "AMM-UCB": mb.AMMUCB,
    "OFUL": mb.OFUL,
    "IDS": mb.IDS,
    "Freq-TS": mb.FreqTS,
}
PLAYERS: dict[str, Player] = {"floor": floor, **{name: ours(make) for name, make in NAMED.items()}}


def workload(d: int, K: int, rounds: int) -> tuple[Any, Any, Any]:
    """Sets of arms, θ* and noise."""
    rng = np.random.default_rng(0)
    sets = [rng.normal(size=(K, d)) / np.sqrt(d) for _ in range(20)]
    theta = rng.normal(size=d)
    theta *= min(1.0, NORM_BOUND / float(np.linalg.norm(theta)))
    return sets, theta, SIGMA * rng.normal(size=rounds)


def seconds_per_round(rounds: int, repeats: int) -> dict[str, dict[str, float]]:
    """Medians by size and player, and the players' mean rewards."""
    found: dict[str, dict[str, float]] = {}
    for d, K in SIZES:
        sets, theta, noise = workload(d, K, rounds)
        for play in PLAYERS.values():
            play(sets, theta, noise[:5])  # imports and compilation
        seconds: dict[str, list[float]] = {name: [] for name in PLAYERS}
        rewards = {}
        for _ in range(repeats):
            for name, play in PLAYERS.items():
                started = time.perf_counter()
                rewards[f"{name} reward"] = play(sets, theta, noise)
                seconds[name].append((time.perf_counter() - started) / rounds)
        found[f"{d}, {K}"] = {name: statistics.median(values) for name, values in seconds.items()} | rewards
    return found


def calls_per_round(rounds: int = 100) -> dict[str, float]:
    """Calls of functions, Python's and C's, in a late round at d = 20, K = 10; they do not depend on the machine."""
    found = {}
    sets, theta, noise = workload(20, 10, rounds)
    for name, make in NAMED.items():
        policy, count = make(20, sigma=SIGMA, norm_bound=NORM_BOUND, delta=DELTA, rng=0), [0]

        def note(frame: Any, event: str, argument: Any, count: list[int] = count) -> None:
            count[0] += event in ("call", "c_call")

        for t in range(rounds):
            sys.setprofile(note if t >= rounds // 2 else None)
            choice = policy.ask(sets[t % len(sets)])
            policy.tell(choice, float(choice.action @ theta) + noise[t])
        sys.setprofile(None)
        found[name] = count[0] / (rounds - rounds // 2)
    return found


def measured_by(python: str) -> dict[str, Any]:
    """One pass of this script by an interpreter, which may have another version of mixbandit."""
    command = [python, __file__, "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)  # type: ignore[no-any-return]


def compare(other: str, passes: int) -> None:
    """Passes of the other interpreter and of this one in turn; only ratios within a pass count."""
    pairs = [(measured_by(other), measured_by(sys.executable)) for _ in range(passes)]
    theirs, ours = (part["version"] for part in pairs[0])
    print(f"µs per round, {theirs} → {ours} (ratio of medians over {passes} passes in turn)")
    for size in pairs[0][0]["seconds"]:
        cells = []
        for name in NAMED:
            before, after = (statistics.median(pair[k]["seconds"][size][name] for pair in pairs) for k in (0, 1))
            cells.append(f"{name} {1e6 * before:.0f} → {1e6 * after:.0f} ({after / before:.2f})")
        print(f"{size:>10}  " + "   ".join(cells))
    print("calls in a round at d = 20, K = 10")
    counts = [part["calls"] for part in pairs[0]]
    print("            " + "   ".join(f"{name} {counts[0][name]:.0f} → {counts[1][name]:.0f}" for name in NAMED))


def main() -> None:
    """Print microseconds per round, and how many times the floor that is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rounds, to see that it runs")
    parser.add_argument("--json", action="store_true", help="one pass, for programs")
    parser.add_argument("--other", help="a Python with another version of mixbandit, to compare with")
    options = parser.parse_args()
    if options.other:
        compare(options.other, 1 if options.quick else 5)
        return
    if options.json:
        found = {"version": mb.__version__, "seconds": seconds_per_round(300, 1), "calls": calls_per_round()}
        print(json.dumps(found))
        return
    rounds, repeats = (30, 1) if options.quick else (500, 5)
    print(f"{'d, K':>10}  " + "  ".join(f"{name:>18}" for name in PLAYERS) + "   µs per round (times the floor)")
    for size, median in seconds_per_round(rounds, repeats).items():
        cells = [f"{1e6 * median[name]:9.0f} ({median[name] / median['floor']:5.1f})" for name in PLAYERS]
        print(f"{size:>10}  " + "  ".join(f"{cell:>18}" for cell in cells))
        print(f"{'reward':>10}  " + "  ".join(f"{median[f'{name} reward']:18.3f}" for name in PLAYERS))
    print("calls per round at d = 20, K = 10: " + ", ".join(f"{name} {n:.0f}" for name, n in calls_per_round().items()))


if __name__ == "__main__":
    main()
