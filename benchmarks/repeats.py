"""Training that is random: how often repeats give it away, and how often bounds by `samples` alone are wrong.

    python benchmarks/repeats.py [--quick] [--out docs/results/repeats.csv]

One configuration, tried several times. Each value is an accuracy on 100 new rows, but every training yields another
model: its expected accuracy follows a Beta law around p. `spread` is the standard deviation of values, in units of what
100 independent results have. `found`: runs in which the test of repeats refutes `samples=100`, at δ = 5 %. `wrong`:
runs in which p lies outside the interval of a `MeanSequence` at δ = 5 %. `silent`: both wrong and not found. `ceiling`:
how often a test of the same kind finds it that knows p and the spread in advance: no e-value of Beta forecasts, which
must stand against every p, can be expected to do much better.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import betaln, xlog1py, xlogy

import mixbandit as mb
from mixbandit.paper.store import write_table
from mixbandit.tuning.repeats import Repeats, scatter_of_repeats

SAMPLES, DELTA, SEED = 100, 0.05, 0
KNOWN = mb.Assumptions(reward_range=(0.0, 1.0), samples=SAMPLES, rows="fresh", delta=DELTA)
SPREADS = (1.0, 1.4, 1.8, 2.5)


def accuracies(p: float, spread: float, shape: tuple[int, int], rng: np.random.Generator) -> Any:
    """Values of expectation p whose standard deviation is `spread` times that of the mean of 100 results."""
    models = np.full(shape, p)
    if spread > 1.0:
        variance = (spread**2 - 1.0) * p * (1.0 - p) / (SAMPLES - 1.0)
        size = p * (1.0 - p) / variance - 1.0
        models = rng.beta(p * size, (1.0 - p) * size, shape)
    return rng.binomial(SAMPLES, models) / SAMPLES


def knowing(values: Any, p: float, spread: float) -> float:
    """The largest logarithm of the e-value of whoever forecasts every value by its true law."""
    if spread == 1.0:
        return 0.0  # the truth is no alternative
    size = (SAMPLES - 1.0) / (spread**2 - 1.0) - 1.0
    a, b, hits = p * size, (1.0 - p) * size, SAMPLES * values
    count, sums = np.arange(1, len(values) + 1), np.cumsum(values)
    worst = sums / count
    at_worst = SAMPLES * (xlogy(sums, worst) + xlog1py(count - sums, -worst))
    return float((np.cumsum(betaln(a + hits, b + SAMPLES - hits) - betaln(a, b)) - at_worst).max())


def shares(p: float, spread: float, repeats: int, runs: int) -> list[Any]:
    """One row of the table."""
    rng = np.random.default_rng([SEED, round(1000 * p), round(10 * spread), repeats])
    found, wrong, ceiling = (np.zeros(runs, dtype=bool) for _ in range(3))
    for i, values in enumerate(accuracies(p, spread, (runs, repeats), rng)):
        found[i] = scatter_of_repeats([Repeats(np.arange(repeats), values)], KNOWN).refuted
        low, high = mb.MeanSequence((0.0, 1.0), DELTA).update(values, samples=SAMPLES).interval()
        wrong[i] = not low <= p <= high
        ceiling[i] = knowing(values, p, spread) >= -np.log(DELTA)
    return [
        p,
        spread,
        repeats,
        runs,
        *(round(float(part.mean()), 4) for part in (found, wrong, wrong & ~found, ceiling)),
    ]


def main() -> None:
    """Print and write what was seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few runs, to see that it works")
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    rows = []
    for repeats in (10, 30):
        for p in (0.8, 0.9, 0.95, 0.97, 0.99):
            for spread in SPREADS:
                rows.append(shares(p, spread, repeats, 20 if options.quick else 2000))
                print(*rows[-1], flush=True)
    if options.out is not None:
        columns = ["p", "spread", "repeats", "runs", "found", "wrong", "silent", "ceiling"]
        write_table(options.out, columns, rows, command="python benchmarks/repeats.py", seed=SEED)


if __name__ == "__main__":
    main()
