"""One function with a cliff, 100 uniform trials of 100 samples: what its certificates say, over some runs."""

from __future__ import annotations

import sys
from collections import Counter

import numpy as np

from mixbandit import StudyCertificate

from .functions import functions
from .histories import uniform
from .play import bounds_at, certified, evaluated, falsehoods

NAME, TRIALS, SAMPLES = "cliff-line", 100, 100
# Statements are checked at this many equally spaced configurations.
CHECKED = 401


def example(runs: int, settings: dict[str, str]) -> None:
    """Print the counts as a table."""
    counts: Counter[str] = Counter()
    for seed in range(runs):
        counts.update(_run(seed, settings))
        print(f"\r{seed + 1} of {runs}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    print(f"| of {runs} runs | |\n|---|---|")
    for what in ("trusted", "proven", "gap wrong", "true best excluded", "anything wrong", "trusted and wrong"):
        print(f"| {what} | {counts[what]} |")


def _run(seed: int, settings: dict[str, str]) -> list[str]:
    """What is true of a run."""
    function, rng = functions()[NAME], np.random.default_rng((seed, TRIALS, SAMPLES))
    history = [
        (configuration, float(rng.binomial(SAMPLES, function(configuration))) / SAMPLES)
        for configuration in uniform(function.space, TRIALS, rng)
    ]
    keywords = evaluated(settings, function.space, SAMPLES)
    found = certified(history, function.space, keywords)
    checked = [{"x": float(x)} for x in np.linspace(0.0, 1.0, CHECKED)]
    lower, upper = bounds_at(found, checked)
    truths = np.array([function(configuration) for configuration in checked])
    outside = bool(((truths < lower - 1e-9) | (truths > upper + 1e-9)).any())
    _, too_low, gap_wrong = statements = falsehoods(found, function(found.action), function.best)
    excluded = too_low or _excludes(found, function.best_at["x"])
    wrong = outside or excluded or any(statements)
    trusted = found.trusted
    true = {
        "trusted": trusted,
        "proven": found.proven,
        "gap wrong": gap_wrong,
        "true best excluded": excluded,
        "anything wrong": wrong,
        "trusted and wrong": trusted and wrong,
    }
    return [what for what, is_true in true.items() if is_true]


def _excludes(found: StudyCertificate, best_at: float) -> bool:
    """Whether the best configuration lies outside the region where the certificate says that it can be."""
    return any(not any(low <= best_at <= high for low, high in part.values) for part in found.possible)
