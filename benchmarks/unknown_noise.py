"""Noise of a level that nobody states: how often the true parameter is missed, and how much wider bounds are.

    python benchmarks/unknown_noise.py [--quick] [--out docs/results/unknown_noise.csv]

Coverage: θ* in dimension 5, 100 rounds, δ = 5 %, actions drawn at random or where the interval is nearest to missing. A
run counts as missed if θ* was ever outside. The claim is for Gaussian noise; the other rows show where it ends. Width:
against `MartingaleMixture`, which is told σ, after 300 rewards.
"""

import argparse
import functools
from pathlib import Path
from typing import Any

import numpy as np

import mixbandit as mb
from mixbandit.paper.coverage import CoverageSettings, measure
from mixbandit.paper.store import write_table

CELLS = [
    (noise, design, sigma)
    for noise, sigmas in (("gaussian", (0.5, 1e-4)), ("rademacher", (0.5,)), ("uniform", (0.5,)), ("bernoulli", (0.5,)))
    for sigma in sigmas
    for design in ("iid", "chasing")
]
SEED = 0


def unknown_noise(theta: Any, sigma: float, delta: float) -> mb.UnknownNoise:
    """A sequence that is told the norm of θ*, and not σ."""
    return mb.UnknownNoise(len(theta), norm_bound=float(np.linalg.norm(theta)), delta=delta)


def width_ratio(sigma: float, scale: float, runs: int) -> tuple[float, float]:
    """Mean width of intervals, over that of a sequence that knows σ, and its standard error over problems.

    ‖θ*‖ = 1, the norm bound is 2, and features are multiplied by `scale`.
    The noise is σ times the scale, so that only the unit of the features changes with it.
    """
    ratios = []
    for run in range(runs):
        rng = np.random.default_rng([SEED, run])
        theta = rng.normal(size=5)
        theta /= np.linalg.norm(theta)
        x, queries = scale * rng.normal(size=(300, 5)), scale * rng.normal(size=(20, 5))
        r = x @ theta + scale * sigma * rng.normal(size=300)
        unknown = mb.UnknownNoise(5, norm_bound=2.0, delta=0.05).update(x, r)
        known = mb.MartingaleMixture(5, sigma=scale * sigma, norm_bound=2.0, delta=0.05).update(x, r)
        widths = [float((cs.upper(queries) - cs.lower(queries)).mean()) for cs in (unknown, known)]
        ratios.append(widths[0] / widths[1])
    return float(np.mean(ratios)), float(np.std(ratios, ddof=1) / np.sqrt(runs))


def main() -> None:
    """Print and write what was seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few runs, to see that it works")
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    runs, rounds = (20, 30) if options.quick else (1000, 100)
    rows: list[list[Any]] = []
    for noise, design, sigma in CELLS:
        settings = CoverageSettings("unknown-noise-anywhere", noise, design, rounds=rounds, sigma=sigma, seed=SEED)
        found = measure(settings, runs, factory=functools.partial(unknown_noise))
        share = found.misses / runs
        rows.append(["missed", noise, design, sigma, runs, share, round(np.sqrt(share * (1.0 - share) / runs), 4)])
        print(*rows[-1], flush=True)
    for sigma, scale in [(s, 1.0) for s in (1.0, 0.1, 1e-3, 1e-5)] + [(0.1, f) for f in (1e-4, 1e-2, 1e2, 1e4)]:
        measure_of = f"width over known sigma, features times {scale:g}"
        found_ratio = [round(number, 4) for number in width_ratio(sigma, scale, max(runs // 20, 2))]
        rows.append([measure_of, "gaussian", "iid", sigma, max(runs // 20, 2), *found_ratio])
        print(*rows[-1], flush=True)
    if options.out is not None:
        columns = ["measure", "noise", "design", "sigma", "runs", "value", "standard error"]
        write_table(options.out, columns, rows, command="python benchmarks/unknown_noise.py", seed=SEED)


if __name__ == "__main__":
    main()
