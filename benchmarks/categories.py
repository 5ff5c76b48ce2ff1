"""What a parameter with many choices costs: seconds and peak memory to ask, recommend and certify.

    python benchmarks/categories.py [choices …]

A tuner of one float and one category learns 40 values. Each number of choices runs in a process of its own, whose peak
memory includes Python and numpy (about 60 MB).
"""

from __future__ import annotations

import multiprocessing
import resource
import sys
import time

import numpy as np

import mixbandit as mb

CHOICES = (100, 400, 1600, 5000)
TRIALS = 40


def measured(choices: int) -> dict[str, float]:
    """Seconds by step, and the peak memory of this process in MB."""
    space = mb.Space({"x": mb.Float(0, 1), "c": mb.Categorical([f"c{i}" for i in range(choices)])})
    worth = np.random.default_rng(0).uniform(size=choices)
    tuner = mb.Tuner(space, reward_range=(0, 1), samples=100, rows="fresh", initial=0, rng=0)
    for parameters in space.sample(TRIALS, rng=1):
        value = 0.3 * parameters["x"] + 0.6 * worth[int(parameters["c"][1:])]
        tuner.tell(tuner.adopt(parameters), float(value))
    found = {}
    for name, step in (("ask", tuner.ask), ("recommend", tuner.recommend), ("certificate", tuner.certificate)):
        start = time.perf_counter()
        step()
        found[name] = time.perf_counter() - start
    # Linux counts in kilobytes, macOS in bytes.
    unit = 1e6 if sys.platform == "darwin" else 1e3
    return {**found, "MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit}


def main(sizes: tuple[int, ...]) -> None:
    print("| choices | ask, s | recommend, s | certificate, s | memory, MB |\n|---|---|---|---|---|")
    for choices in sizes:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            found = pool.apply(measured, (choices,))
        seconds = " | ".join(f"{found[name]:.2f}" for name in ("ask", "recommend", "certificate"))
        print(f"| {choices} | {seconds} | {found['MB']:.0f} |", flush=True)


if __name__ == "__main__":
    main(tuple(map(int, sys.argv[1:])) or CHOICES)
