"""Exact and closed-form bounds for 1,000 actions: ours against CVXPY, in one process with one BLAS thread.

    python benchmarks/bounds.py [--quick] [--csv FILE]

The workload: Φ (t×d) and 1,000 actions N(0,1)/√d, θ* ~ N(0, I) scaled to norm ≤ 10, σ = 0.1, δ = 0.01,
standard mixture; once with B = ‖θ*‖, so that the norm bound binds, once with B = 10. CVXPY solves a
parametrised problem in its fastest, reduced form ‖Lᵀ(θ−θ_LS)‖ ≤ √(R²−RSS), compiled once outside the timing, for L
triangular and by singular values; the fastest solver and form count. Ours includes the factorisation of the
round. Repeats are interleaved, and only ratios within a run count.
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
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import mixbandit as mb
from mixbandit.data import Factor
from mixbandit.sets import dual

SIZES = ((100, 10), (500, 20), (1000, 100), (50, 100))
ACTIONS = 1000
SOLVERS = ("CLARABEL", "ECOS", "SCS")


@dataclass(frozen=True)
class Workload:
    """One round's data, and the actions to bound."""

    t: int
    d: int
    norm_bound: float
    Phi: Any
    r: Any
    actions: Any

    def sequence(self) -> mb.MartingaleMixture:
        cs = mb.MartingaleMixture(self.d, sigma=0.1, norm_bound=self.norm_bound, delta=0.01)
        return cs.update(self.Phi, self.r)


def workload(t: int, d: int, *, tight: bool) -> Workload:
    rng = np.random.default_rng(0)
    Phi = rng.normal(size=(t, d)) / np.sqrt(d)
    actions = rng.normal(size=(ACTIONS, d)) / np.sqrt(d)
    theta = rng.normal(size=d)
    theta *= min(1.0, 10.0 / float(np.linalg.norm(theta)))
    r = Phi @ theta + 0.1 * rng.normal(size=t)
    return Workload(t, d, float(np.linalg.norm(theta)) if tight else 10.0, Phi, r, actions)


def conic_programs(load: Workload) -> dict[str, tuple[Any, Any]]:
    """The reduced conic form per solver and factor of ΦᵀΦ, triangular or by singular values.

    A problem each: changing the solver of one problem would make CVXPY compile it again.
    """
    cp = importlib.import_module("cvxpy")  # its names are not typed
    cs = load.sequence()
    data = cs.moment.data
    assert isinstance(data, Factor)
    spectrum, triangle = data.spectrum, data.factor[:-1, :-1]
    factors = {
        "triangular": triangle[triangle.any(axis=1)],
        "singular": spectrum.singular[:, None] * spectrum.basis.T,
    }
    least_squares = spectrum.basis @ (spectrum.z / spectrum.singular)
    excess = float(np.sqrt(cs.radius**2 - spectrum.residual(load.norm_bound)))
    programs = {}
    for name, factor in factors.items():
        for solver in SOLVERS:
            theta, phi = cp.Variable(load.d), cp.Parameter(load.d)
            constraints = [
                cp.norm(factor @ theta - factor @ least_squares, 2) <= excess,
                cp.norm(theta, 2) <= load.norm_bound,
            ]
            programs[f"{solver}, {name}"] = cp.Problem(cp.Maximize(phi @ theta), constraints), phi
    return programs


def closed_form_reference(load: Workload) -> Any:
    """The cheapest conceivable bound: Cholesky of ΦᵀΦ + σ²I, a triangular solve, row norms."""
    from scipy.linalg import solve_triangular

    V = load.Phi.T @ load.Phi + 0.01 * np.eye(load.d)
    L = np.linalg.cholesky(V)
    centre = np.linalg.solve(V, load.Phi.T @ load.r)
    log_det = 2.0 * np.log(np.diag(L)).sum() - load.d * np.log(0.01)
    rho = 0.01 * (log_det + 2 * np.log(100.0)) + 0.01 * load.norm_bound**2
    white = solve_triangular(L, load.actions.T, lower=True, check_finite=False)
    return load.actions @ centre + np.sqrt(rho) * np.sqrt(np.einsum("dn,dn->n", white, white))


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def measure(load: Workload, repeats: int, solves: int) -> dict[str, float]:
    """Median seconds per action and method; "one" is a single action with the round's factorisation."""
    cs = load.sequence()
    programs = conic_programs(load)
    compiled = dual._compiled_kernel
    times: dict[str, list[float]] = {}

    def note(name: str, duration: float, actions: int) -> None:
        times.setdefault(name, []).append(duration / actions)

    def fresh(work: Callable[[], object]) -> Callable[[], object]:
        """The same, with everything derived from the data recomputed."""

        def run() -> object:
            cs.update(np.empty((0, load.d)), [])  # no new data, in a new moment
            return work()

        return run

    def conic(program: str, action: Any) -> float:
        problem, phi = programs[program]
        phi.value = action
        return float(problem.solve(solver=program.partition(",")[0]))

    exact = fresh(lambda: cs.upper(load.actions))
    one = fresh(lambda: cs.upper(load.actions[:1]))
    closed = fresh(lambda: cs.upper(load.actions, alpha=cs.alpha0))
    for program in programs:
        worst = max(abs(conic(program, a) - cs.upper(a)[0]) for a in load.actions[:5])
        if worst > 1e-3:
            print(f"  {program} differs by {worst:.1e}", file=sys.stderr)
    exact()  # compiles
    for repeat in range(repeats):
        note("exact", seconds(exact), ACTIONS)
        note("exact, one action", seconds(one), 1)
        note("closed form", seconds(closed), ACTIONS)
        note("Cholesky floor", seconds(lambda: closed_form_reference(load)), ACTIONS)
        dual._compiled_kernel = lambda: None  # type: ignore[assignment]
        note("exact, numpy only", seconds(exact), ACTIONS)
        note("exact, one action, numpy only", seconds(one), 1)
        dual._compiled_kernel = compiled
        for program in programs:
            for k in range(solves):
                action = load.actions[(repeat * solves + k) % ACTIONS]
                note(program, seconds(lambda p=program, a=action: conic(p, a)), 1)  # type: ignore[misc]
    return {name: statistics.median(values) for name, values in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description="Time exact bounds against CVXPY.")
    parser.add_argument("--quick", action="store_true", help="few repeats, to check that it runs")
    parser.add_argument("--csv", type=Path, help="write the numbers to this file")
    options = parser.parse_args()
    repeats, solves = (2, 1) if options.quick else (15, 8)
    rows: list[dict[str, object]] = []
    print("microseconds per action; in brackets, how many times faster than CVXPY's best")
    for tight in (True, False):
        for t, d in SIZES:
            load = workload(t, d, tight=tight)
            times = measure(load, repeats, solves)
            best = min((name for name in times if name.startswith(SOLVERS)), key=times.__getitem__)
            interior = float(np.mean(load.sequence().support(load.actions).case == "interior"))
            label = "B = ‖θ*‖" if tight else "B = 10"
            print(f"\nt={t} d={d} {label}, {interior:.0%} interior; CVXPY's {best}: {times[best] * 1e6:.0f}")
            for name, value in times.items():
                if not name.startswith(SOLVERS):
                    print(f"  {name:32s}{value * 1e6:10.2f}  ({times[best] / value:,.0f})")
                rows.append({
                    "t": t, "d": d, "norm_bound": label, "method": name,
                    "microseconds": round(value * 1e6, 3), "faster_than_cvxpy": round(times[best] / value, 2),
                })  # fmt: skip
    if options.csv:
        with options.csv.open("w", newline="") as file:
            packages = ("mixbandit", "numpy", "scipy", "numba", "cvxpy", "clarabel", "ecos", "scs")
            file.write("# " + ", ".join(f"{p} {version(p)}" for p in packages) + "\n")
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
