"""Which mixture gives the smallest sets: radius and mean width, relative to `Scaled(0.1)`.

    python benchmarks/mixtures.py [--quick] [--out docs/results/mixtures.csv]

Rewards are Binomial(m, f)/m − ½ at the stated σ = 1/(2√m), f a smooth function of 1, 2 or 4 parameters with values in
[0.9, 0.99] or [0.3, 0.9]. Actions are drawn uniformly, or around the maximum; widths are means over such actions. The
model is a constant plus an RBF of length-scale 0.2√d, as a kernel or by 100 random Fourier features; B = 2.
"""

import argparse
import itertools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import mixbandit as mb
from mixbandit.paper.store import write_table

SCALES = (0.01, 0.1, 1.0)
MIXTURES: dict[str, Callable[[], mb.Scaled | mb.Grid | mb.SemiAdaptive]] = {
    "Scaled(.1)": lambda: mb.Scaled(0.1),
    "Grid of 3": lambda: mb.Grid(SCALES),
    "Grid of 5": lambda: mb.Grid([0.001, 0.01, 0.1, 1.0, 10.0]),
    "SemiAdaptive(.1)": lambda: mb.SemiAdaptive(0.1),
    "Grid of SemiAdaptive": lambda: mb.Grid([mb.SemiAdaptive(c) for c in SCALES]),
}
RANGES = ((0.9, 0.99), (0.3, 0.9))
QUERIES = 50
# The constants of SemiAdaptive were chosen on seeds 0 to 2.
FIRST_SEED = 100


def smooth_function(d: int, ends: tuple[float, float], rng: np.random.Generator) -> tuple[Any, Any]:
    """A sum of three wide bumps whose values fill the range, and its maximiser."""
    centres, heights = rng.uniform(size=(3, d)), rng.normal(size=3)
    grid = rng.uniform(size=(4000, d))

    def raw(x: Any) -> Any:
        return np.exp(-((x[:, None] - centres) ** 2).sum(axis=2) / (2.0 * 0.4**2 * d)) @ heights

    values = raw(grid)
    low, high = values.min(), values.max()
    share = (ends[1] - ends[0]) / (high - low)
    return lambda x: np.clip(ends[0] + share * (raw(x) - low), *ends), grid[values.argmax()]


def actions(n: int, best: Any, near: bool, rng: np.random.Generator) -> Any:
    """Drawn uniformly, or around the maximiser."""
    return np.clip(best + 0.1 * rng.normal(size=(n, len(best))), 0.0, 1.0) if near else rng.uniform(size=(n, len(best)))


def sequence(kind: str, d: int, sigma: float, mixture: Any) -> mb.MartingaleMixture:
    """A constant plus an RBF, as a kernel or by features."""
    lengthscale, stated = 0.2 * d**0.5, {"sigma": sigma, "norm_bound": 2.0, "delta": 0.05, "mixture": mixture}
    if kind == "kernel":
        return mb.KernelMixture(mb.ConstantKernel(1.0) + mb.RBF(lengthscale), **stated)
    return mb.MartingaleMixture(mb.WithConstant(mb.RandomFourier(d, 100, lengthscale, rng=0)), **stated)


def compare(kind: str, d: int, ends: tuple[float, float], m: int, near: bool, t: int, seed: int) -> dict[str, Any]:
    """Radius, mean width and seconds to learn of every mixture on the same data."""
    rng = np.random.default_rng([seed, d, m, near, int(100 * ends[0])])
    function, best = smooth_function(d, ends, rng)
    x, queries = actions(t, best, near, rng), actions(QUERIES, best, near, rng)
    rewards = rng.binomial(m, function(x)) / m - 0.5
    found = {}
    for name, make in MIXTURES.items():
        cs = sequence(kind, d, 0.5 / m**0.5, make())
        start = time.perf_counter()
        cs.update(x, rewards)
        seconds = time.perf_counter() - start
        if cs.is_empty:
            found[name] = (np.nan, np.nan, seconds, np.nan)
            continue
        upper, lower = cs.upper(queries) + 0.5, cs.lower(queries) + 0.5
        truth = function(queries)
        missed = ((lower > truth) | (truth > upper)).any()
        found[name] = (cs.radius, float((upper - lower).mean()), seconds, float(missed))
    return found


def main() -> None:
    """Print and write the ratios, with their standard errors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few runs, to see that it works")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    seeds = 2 if options.quick else options.seeds
    cells = itertools.product(
        ("kernel", "features"), (2,) if options.quick else (1, 2, 4), RANGES, (100, 1000), (False, True), (100, 300)
    )
    rows: list[list[Any]] = []
    for kind, d, ends, m, near, t in cells:
        if options.quick and t == 300:
            continue
        runs = [compare(kind, d, ends, m, near, t, seed) for seed in range(FIRST_SEED, FIRST_SEED + seeds)]
        base = np.array([run["Scaled(.1)"][:2] for run in runs])
        for name in MIXTURES:
            ratios = np.array([run[name][:2] for run in runs]) / base
            known = ratios[np.isfinite(ratios).all(axis=1)]
            mean = known.mean(axis=0) if len(known) else np.full(2, np.nan)
            error = known.std(axis=0, ddof=1) / len(known) ** 0.5 if len(known) > 1 else np.full(2, np.nan)
            misses = sum(run[name][3] == 1.0 for run in runs)
            seconds = float(np.mean([run[name][2] for run in runs]))
            cell = [kind, d, f"{ends[0]}-{ends[1]}", m, "near the best" if near else "uniform", t, name]
            measured = [*(float(f"{x:.4g}") for x in (mean[0], error[0], mean[1], error[1]))]
            rows.append([*cell, *measured, len(known), misses, float(f"{seconds:.3g}")])
            print(*rows[-1], sep=",", flush=True)
    if options.out is not None:
        columns = [
            "model",
            "d",
            "values",
            "m",
            "actions",
            "t",
            "mixture",
            "radius_ratio",
            "radius_error",
            "width_ratio",
        ]
        columns += ["radius_ratio", "radius_error", "width_ratio", "width_error", "runs", "missed", "seconds"]
        write_table(options.out, columns, rows, command="python benchmarks/mixtures.py", seed=FIRST_SEED)


if __name__ == "__main__":
    main()
