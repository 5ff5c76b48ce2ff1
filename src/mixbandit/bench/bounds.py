"""Exact bounds at one moment against conic solvers, and their gradients against cvxpylayers.

CVXPY solves a parametrised problem in its fastest, reduced form ‖Lᵀ(θ−θ_LS)‖ ≤ √(R²−RSS), compiled once outside the
timing, for L triangular and by singular values; the fastest solver and form count. Ours includes everything that a new
moment takes.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mixbandit._compiling import off
from mixbandit.bench import workloads
from mixbandit.bench.timing import Say, medians
from mixbandit.data import Factor

SOLVERS = ("CLARABEL", "ECOS", "SCS")
_BATCH = 100  # actions per batch for cvxpylayers


def conic_programs(load: workloads.Bounds) -> dict[str, tuple[Any, Any]]:
    """The reduced conic form per installed solver and factor of ΦᵀΦ, triangular or by singular values.

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
    excess = math.sqrt(cs.radius**2 - spectrum.residual(load.norm_bound))
    programs = {}
    for name, factor in factors.items():
        for solver in SOLVERS:
            if solver not in cp.installed_solvers():
                continue
            theta, phi = cp.Variable(load.d), cp.Parameter(load.d)
            constraints = [
                cp.norm(factor @ theta - factor @ least_squares, 2) <= excess,
                cp.norm(theta, 2) <= load.norm_bound,
            ]
            programs[f"{solver}, {name}"] = cp.Problem(cp.Maximize(phi @ theta), constraints), phi
    return programs


def floor_of_one(load: workloads.Bounds) -> Callable[[], object]:
    """A Cholesky factorisation of ΦᵀΦ + σ²I with a solve: the least that one action in a new round can take."""
    gram = load.features.T @ load.features + workloads.SIGMA**2 * np.eye(load.d)
    moment = load.features.T @ load.rewards

    def work() -> object:
        factor = np.linalg.cholesky(gram)
        return np.linalg.solve(gram, moment), factor

    return work


def measure(*, quick: bool, peers: bool, say: Say) -> list[dict[str, Any]]:
    """A row per size, norm bound and method: microseconds per action."""
    repeats = 3 if quick else 15
    rows = []
    for tight in (True, False):
        for t, d in workloads.BOUND_SIZES:
            say(f"bounds, t = {t}, d = {d}, norm bound {'‖θ*‖' if tight else '10'}")
            load = workloads.bounds(t, d, tight=tight)
            found = medians(_work(load, peers=peers), repeats)
            best = min((value for name, value in found.items() if name.startswith(SOLVERS)), default=None)
            for name, value in found.items():
                each = value / (workloads.ACTIONS if "1,000" in name else 1)
                rows.append({
                    "t": t, "d": d, "norm_bound": "‖θ*‖" if tight else "10", "method": name,
                    "microseconds": 1e6 * each, "times_faster_than_cvxpy": None if best is None else best / each,
                })  # fmt: skip
    return rows


def _work(load: workloads.Bounds, *, peers: bool) -> dict[str, Callable[[], object]]:
    cs, row, turn = load.sequence(), load.features[:1], [0]

    def fresh(work: Callable[[], object]) -> Callable[[], object]:
        def run() -> object:
            cs.update(np.empty((0, load.d)), [])  # no new data, in a new moment
            return work()

        return run

    def new_round() -> object:
        """One more reward, and the bound of one action."""
        turn[0] += 1
        return cs.after(row, load.rewards[:1]).upper(load.actions[turn[0] % workloads.ACTIONS])

    exact = fresh(lambda: cs.upper(load.actions))

    def numpy_only() -> object:
        with off():
            return exact()

    exact()
    new_round()
    work: dict[str, Callable[[], object]] = {
        "exact, 1,000 actions": exact,
        "exact, 1,000 actions, numpy only": numpy_only,
        "closed form, 1,000 actions": fresh(lambda: cs.upper(load.actions, alpha=cs.alpha0)),
        "exact, one action in a new round": new_round,
        "Cholesky factorisation with a solve": floor_of_one(load),
    }
    if peers and importlib.util.find_spec("cvxpy") is not None:
        for name, (problem, phi) in conic_programs(load).items():
            work[name] = _conic(problem, phi, load.actions, name.partition(",")[0])
            work[name]()
    return work


def _conic(problem: Any, phi: Any, actions: Any, solver: str) -> Callable[[], object]:
    turn = [0]

    def solve() -> object:
        turn[0] += 1
        phi.value = actions[turn[0] % len(actions)]
        return problem.solve(solver=solver)

    return solve


def gradients(*, quick: bool, say: Say) -> list[dict[str, Any]]:
    """A row per size: milliseconds for value and gradient of 100 actions, ours and cvxpylayers'; none without it."""
    if any(importlib.util.find_spec(name) is None for name in ("torch", "cvxpylayers", "cvxpy")):
        say("cvxpylayers and torch are not installed: gradients are not compared")
        return []
    torch, layers = importlib.import_module("torch"), importlib.import_module("cvxpylayers.torch")
    torch.set_num_threads(1)
    rows = []
    for t, d in workloads.BOUND_SIZES[:2] if quick else workloads.BOUND_SIZES:
        say(f"gradients, t = {t}, d = {d}")
        load = workloads.bounds(t, d, tight=True)
        actions, cs = load.actions[:_BATCH], load.sequence()
        problem, phi = conic_programs(load)["CLARABEL, triangular"]
        layer = layers.CvxpyLayer(problem, parameters=[phi], variables=problem.variables())

        def theirs(layer: Any = layer, actions: Any = actions) -> Any:
            batch = torch.tensor(actions, requires_grad=True)
            (theta,) = layer(batch)
            (batch * theta).sum(dim=1).sum().backward()
            return batch.grad.numpy()

        def ours(cs: Any = cs, actions: Any = actions, d: int = d) -> Any:
            cs.update(np.empty((0, d)), [])
            return cs.support(actions).grad

        difference = float(np.max(np.abs(theirs() - ours()))) / load.norm_bound
        found = medians({"ours": ours, "cvxpylayers": theirs}, 2 if quick else 7)
        rows.append({
            "t": t, "d": d, "milliseconds": 1e3 * found["ours"], "cvxpylayers": 1e3 * found["cvxpylayers"],
            "times_faster": found["cvxpylayers"] / found["ours"], "largest_difference": difference,
        })  # fmt: skip
    return rows
