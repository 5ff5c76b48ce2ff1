"""One mean without a model: how wide intervals are beside those of ville, how long they take, and how often they miss.

    python benchmarks/means.py [--quick] [--out docs/results/means.csv]

Width: after 1,000 results, δ = 5 %, against each method of ville that applies, as it comes. Samples: whether values
that are means of 100 results are better treated as 100 results or as single values. Missed: runs in which the true mean
was ever outside, with 50 values; the claim of `noise="gaussian"` is for Gaussian values, and accuracies show where it
ends.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import ville

import mixbandit as mb
from mixbandit._checks import Array
from mixbandit.paper.store import write_table

Draw = Callable[[np.random.Generator, int], Array]
SEED, DELTA, RESULTS = 0, 0.05, 1000
SMALL = 0.001  # as in a certificate that shares δ among 50 configurations


def yes_or_no(p: float) -> Draw:
    """Results that are 1 with probability p, and 0."""
    return lambda rng, n: (rng.random(n) < p).astype(np.float64)


def narrow(rng: np.random.Generator, n: int) -> Array:
    """Values of standard deviation 0.01 around 0.94."""
    return np.clip(rng.normal(0.94, 0.01, n), 0.0, 1.0)


def uniform(rng: np.random.Generator, n: int) -> Array:
    """Values anywhere in [0, 1]."""
    return rng.random(n)


SOURCES: dict[str, Draw] = {
    "yes or no, p=0.5": yes_or_no(0.5),
    "yes or no, p=0.95": yes_or_no(0.95),
    "sd 0.01 around 0.94": narrow,
    "uniform": uniform,
}


def ours(values: Array) -> tuple[float, float]:
    """The interval of `MeanSequence`."""
    return mb.MeanSequence(delta=DELTA).update(values).interval()


def theirs(kind: str) -> Callable[[Array], tuple[float, float]]:
    """The interval of a class of ville, with its defaults: the intersection over all times."""

    def interval(values: Array) -> tuple[float, float]:
        low, high = getattr(ville, kind)(alpha=DELTA).fit(values).interval()
        return float(low), float(high)

    return interval


METHODS: dict[str, Callable[[Array], tuple[float, float]]] = {
    "MeanSequence": ours,
    **{f"ville {kind}": theirs(kind) for kind in ("BernoulliCS", "BettingCS", "EmpiricalBernsteinCS")},
}


def widths(runs: int) -> list[list[Any]]:
    """Mean width and time of each method, and ours over the best of ville's."""
    rows: list[list[Any]] = []
    for source, draw in SOURCES.items():
        found: dict[str, tuple[float, float]] = {}
        for name, interval in METHODS.items():
            if name.endswith("BernoulliCS") and not source.startswith("yes"):
                continue
            interval(draw(np.random.default_rng(SEED), RESULTS))  # imports and first calls are not timed
            sizes, seconds = [], []
            for run in range(runs):
                values = draw(np.random.default_rng([SEED, run]), RESULTS)
                start = time.perf_counter()
                low, high = interval(values)
                seconds.append(time.perf_counter() - start)
                sizes.append(high - low)
            error = float(np.std(sizes, ddof=1) / np.sqrt(runs))
            found[name] = float(np.mean(sizes)), float(np.median(seconds))
            rows.append(["width", source, name, runs, f"{found[name][0]:.5f}", f"{error:.5f}"])
            rows.append(["milliseconds", source, name, runs, f"{1e3 * found[name][1]:.3f}", ""])
        best = min((name for name in found if name != "MeanSequence"), key=lambda name: found[name][0])
        ratio = found["MeanSequence"][0] / found[best][0]
        rows.append(["width over the best of ville", source, best, runs, f"{ratio:.3f}", ""])
        ratio = found["MeanSequence"][1] / found[best][1]
        rows.append(["time over the best of ville", source, best, runs, f"{ratio:.3f}", ""])
    return rows


def of_samples(runs: int) -> list[list[Any]]:
    """Widths from 50 values, each the mean of 100 results: told so, or as single values."""
    rows: list[list[Any]] = []
    for source in ("yes or no, p=0.95", "sd 0.01 around 0.94"):
        for name, samples in (("samples=100", 100), ("single values", None)):
            sizes = []
            for run in range(runs):
                values = SOURCES[source](np.random.default_rng([SEED, run]), 5000).reshape(50, 100).mean(axis=1)
                low, high = mb.MeanSequence(delta=DELTA).update(values, samples).interval()
                sizes.append(high - low)
            error = float(np.std(sizes, ddof=1) / np.sqrt(runs))
            rows.append(["width, 50 means of 100", source, name, runs, f"{np.mean(sizes):.5f}", f"{error:.5f}"])
    return rows


def missed(runs: int) -> list[list[Any]]:
    """How often the true mean was ever outside, and how often values were refused, of all runs."""

    def accuracies(p: float, rows: int) -> Draw:
        return lambda rng, n: rng.binomial(rows, p, n) / rows

    sources: list[tuple[str, float, Draw, int | None]] = [
        ("Gaussian", 0.5, lambda rng, n: rng.normal(0.5, 0.1, n), None),
        *((f"accuracies of {m} rows, p={p}", p, accuracies(p, m), m) for m in (100, 20) for p in (0.9, 0.97, 0.99)),
    ]
    rows: list[list[Any]] = []
    for source, mean, draw, samples in sources:
        gaussian: dict[str, Any] = {"noise": "gaussian"}
        ways: dict[str, tuple[dict[str, Any], int | None]] = {
            "gaussian": (gaussian, None),
            "gaussian, no range": ({**gaussian, "reward_range": None}, None),
        }
        if samples is not None:
            ways["samples"] = ({}, samples)
        for name, (known, weight) in ways.items():
            pvalues, refused = [], 0
            for run in range(runs):
                values = draw(np.random.default_rng([SEED, run]), 50)
                try:
                    pvalues.append(mb.MeanSequence(**known).update(values, weight).pvalue(mean))
                except mb.InvalidInput:
                    refused += 1
            for delta in (DELTA, SMALL):
                misses = sum(p <= delta for p in pvalues)
                rows.append([f"missed, delta={delta}", source, name, runs, f"{misses / runs:.4f}", ""])
            rows.append(["refused", source, name, runs, f"{refused / runs:.3f}", ""])
    return rows


def short_calls(repeats: int) -> list[list[Any]]:
    """Update and lower bound of a new sequence, as a certificate makes thousands of them."""
    rng = np.random.default_rng(SEED)
    accuracies = rng.binomial(100, 0.94, 50) / 100
    rows: list[list[Any]] = []
    for name, values, samples in (
        ("one value, samples=100", 0.94, 100),
        ("50 values, samples=100", accuracies, 100),
        ("50 values", narrow(rng, 50), None),
    ):
        seconds = []
        for _ in range(repeats):
            start = time.perf_counter()
            mb.MeanSequence(delta=1e-5).update(values, samples).lower()
            seconds.append(time.perf_counter() - start)
        rows.append(["milliseconds", name, "MeanSequence", repeats, f"{1e3 * np.median(seconds):.3f}", ""])
    return rows


def main() -> None:
    """Print and write what was seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few runs, to see that it works")
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    few, many = (3, 30) if options.quick else (20, 1000)
    rows = widths(few) + of_samples(few) + missed(many) + short_calls(many)
    for row in rows:
        print(*row, flush=True)
    if options.out is not None:
        columns = ["measure", "source", "method", "runs", "value", "standard error"]
        write_table(options.out, columns, rows, command="python benchmarks/means.py", seed=SEED, ville="0.1.0")


if __name__ == "__main__":
    main()
