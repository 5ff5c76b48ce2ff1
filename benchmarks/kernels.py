"""One round with a kernel at t = 1,000: learn a reward, bound 1,000 points, in one process with one BLAS thread.

    python benchmarks/kernels.py [--quick] [--csv FILE]

The workload: 1,000 actions and 1,000 points uniform in the unit square, no two alike; f* = Σ c_i k(z_i, ·) of norm
B = 10, σ = 0.1, δ = 0.01, length-scale 0.2. A round is one new reward and upper bounds at all points. The
others see the same data: scikit-learn's Gaussian process with the same fixed kernel and noise, fitted anew, with
standard deviations; CVXPY one problem per point, in its smallest form (coordinates in which the kernel matrix is
diagonal, and the norm of the rest), parametrised and compiled outside the timing, as is the decomposition that this
form needs. A few points are solved and their median multiplied by 1,000; the fastest solver counts. Repeats are
interleaved; only ratios within a run count.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before numpy is imported

import argparse
import csv
import importlib
import statistics
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import mixbandit as mb
from mixbandit.data import KernelSpectrum

T, POINTS, SIGMA, NORM_BOUND, LENGTHSCALE = 1000, 1000, 0.1, 10.0, 0.2
KERNELS = {"RBF": mb.RBF(LENGTHSCALE), "Matérn 5/2": mb.Matern(2.5, LENGTHSCALE)}
SOLVERS = ("CLARABEL", "ECOS", "SCS")
STATED: dict[str, Any] = {"sigma": SIGMA, "norm_bound": NORM_BOUND, "delta": 0.01}


class Workload:
    """Actions, their rewards, and the points to bound."""

    def __init__(self, kernel: mb.Kernel, t: int) -> None:
        rng = np.random.default_rng(0)
        self.kernel, self.t = kernel, t
        self.actions, self.points = rng.uniform(size=(t + 100, 2)), rng.uniform(size=(POINTS, 2))
        centres, weights = rng.uniform(size=(20, 2)), rng.normal(size=20)
        weights *= NORM_BOUND / np.sqrt(weights @ kernel(centres, centres) @ weights)
        noise = SIGMA * rng.normal(size=t + 100)
        self.rewards = kernel(self.actions, centres) @ weights + noise

    def sequence(self) -> mb.KernelMixture:
        """With all but the last reward."""
        return mb.KernelMixture(self.kernel, **STATED).update(self.actions[: self.t - 1], self.rewards[: self.t - 1])


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def rounds(load: Workload, alpha: float | list[float] | None) -> Callable[[], object]:
    """A function that plays the next round."""
    cs = load.sequence()
    cs.upper(load.points[:1], alpha)  # what the rounds before have computed

    def play() -> object:
        cs.update(load.actions[cs.t], load.rewards[cs.t])
        return cs.upper(load.points, alpha)

    return play


def scikit_learn(load: Workload) -> Callable[[], object]:
    processes = importlib.import_module("sklearn.gaussian_process")
    kinds = importlib.import_module("sklearn.gaussian_process.kernels")
    matern = isinstance(load.kernel, mb.Matern)
    kernel = kinds.Matern(LENGTHSCALE, nu=2.5) if matern else kinds.RBF(LENGTHSCALE)

    def play() -> object:
        process = processes.GaussianProcessRegressor(kernel, alpha=SIGMA**2, optimizer=None)
        process.fit(load.actions[: load.t], load.rewards[: load.t])
        return process.predict(load.points, return_std=True)

    return play


def conic(load: Workload) -> tuple[dict[str, Callable[[int], float]], Any]:
    """For each solver a function that bounds one point, and what it should return for all."""
    cp = importlib.import_module("cvxpy")  # its names are not typed
    cs = load.sequence().update(load.actions[load.t - 1], load.rewards[load.t - 1])
    spectrum = cs.moment.data.spectrum
    assert isinstance(spectrum, KernelSpectrum)
    parts = spectrum.split(cs.moment.directions(load.points), attaining=False)
    inside, null = parts.size[:, None] * parts.inside, parts.size * parts.null
    excess = float(np.sqrt(cs.radius**2 - spectrum.residual(NORM_BOUND)))
    functions: dict[str, Callable[[int], float]] = {}
    for solver in SOLVERS:
        u, v = cp.Variable(spectrum.rank), cp.Variable()
        direction, rest = cp.Parameter(spectrum.rank), cp.Parameter()
        residual = cp.multiply(spectrum.singular, u - spectrum.z / spectrum.singular)
        constraints = [cp.norm(residual, 2) <= excess, cp.norm(cp.hstack([u, v]), 2) <= NORM_BOUND]
        problem = cp.Problem(cp.Maximize(direction @ u + rest * v), constraints)

        def bound(point: int, problem: Any = problem, d: Any = direction, r: Any = rest, solver: str = solver) -> float:
            d.value, r.value = inside[point], null[point]
            return float(problem.solve(solver=solver))

        functions[solver] = bound
    return functions, cs.upper(load.points)


def measure(load: Workload, repeats: int, solves: int) -> dict[str, float]:
    """Median seconds per round and method; CVXPY's are those of one point, times their number."""
    alpha0 = SIGMA**2
    works = {
        "exact": rounds(load, None),
        "closed form": rounds(load, alpha0),
        "closed forms at 4 multipliers": rounds(load, [multiple * alpha0 for multiple in (1.0, 4.0, 16.0, 64.0)]),
        "scikit-learn, fit and predict": scikit_learn(load),
    }
    bounds, expected = conic(load)
    for solver, bound in bounds.items():
        worst = max(abs(bound(point) - expected[point]) for point in range(2))
        if worst > 1e-3 * NORM_BOUND:
            print(f"  {solver} differs by {worst:.1e}", file=sys.stderr)
    times: dict[str, list[float]] = {}
    for work in works.values():
        work()  # compiles, warms up
    for repeat in range(repeats):
        for name, work in works.items():
            times.setdefault(name, []).append(seconds(work))
        for solver, bound in bounds.items():
            for k in range(solves):
                point = (repeat * solves + k) % POINTS
                taken = seconds(lambda b=bound, p=point: b(p))  # type: ignore[misc]
                times.setdefault(f"CVXPY, {solver}", []).append(taken * POINTS)
    return {name: statistics.median(values) for name, values in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description="Time one round with a kernel.")
    parser.add_argument("--quick", action="store_true", help="few rewards and repeats, to check that it runs")
    parser.add_argument("--csv", type=Path, help="write the numbers to this file")
    options = parser.parse_args()
    t, repeats, solves = (100, 2, 1) if options.quick else (T, 15, 5)
    rows: list[dict[str, object]] = []
    print(f"seconds per round at t = {t} with {POINTS} points; in brackets, how many times faster than CVXPY's best")
    for name, kernel in KERNELS.items():
        times = measure(Workload(kernel, t), repeats, solves)
        best = min((method for method in times if method.startswith("CVXPY")), key=times.__getitem__)
        print(f"\n{name}")
        for method, value in times.items():
            note = "  one point, scaled" if method.startswith("CVXPY") else ""
            print(f"  {method:32s}{value:12.4f}  ({times[best] / value:,.1f}){note}")
            rows.append({
                "kernel": name, "t": t, "points": POINTS, "method": method,
                "seconds": f"{value:.4g}", "faster_than_cvxpy": f"{times[best] / value:.4g}",
            })  # fmt: skip
    if options.csv:
        with options.csv.open("w", newline="") as file:
            packages = ("mixbandit", "numpy", "scipy", "numba", "scikit-learn", "cvxpy", "clarabel", "ecos", "scs")
            command = f"python benchmarks/kernels.py{' --quick' if options.quick else ''}"
            file.write(f"# {command}; " + ", ".join(f"{p} {version(p)}" for p in packages) + "\n")
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
