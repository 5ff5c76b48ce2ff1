"""Exact bounds at one moment against conic solvers, and their gradients against cvxpylayers.

CVXPY solves a parametrised problem in its fastest, reduced form ‖Lᵀ(θ−θ_LS)‖ ≤ √(R²−RSS), compiled once outside the
timing, for L triangular and by singular values; the fastest solver and form count. Ours includes a new reward, and
everything that a new moment takes.
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
from mixbandit.data import as_factor
from mixbandit.sequences import MartingaleMixture

SOLVERS = ("CLARABEL", "ECOS", "SCS")
_BATCH = 100  # actions per batch for cvxpylayers
_CYCLE = 33


def conic_programs(load: workloads.Bounds) -> dict[str, tuple[Any, Any]]:
    """The reduced conic form per installed solver and factor of ΦᵀΦ, triangular or by singular values.

    A problem each: changing the solver of one problem would make CVXPY compile it again.
    """
    cp = importlib.import_module("cvxpy")  # its names are not typed
    cs = load.sequence()
    data = as_factor(cs.moment.data)
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


class _Moments:
    """A sequence that learns a reward before each question.

    It starts again when its buffer of 32 rewards has been folded in once, so that this counts as often as it happens,
    and the number of rewards hardly changes.
    """

    def __init__(self, load: workloads.Bounds) -> None:
        self._load, self._start, self._cs, self.asked = load, load.sequence(), load.sequence(), 0

    def next(self) -> MartingaleMixture:
        if self.asked % _CYCLE == 0:
            self._cs = self._start.copy()
        k, self.asked = self.asked % self._load.t, self.asked + 1
        return self._cs.update(self._load.features[k], self._load.rewards[k])


def _work(load: workloads.Bounds, *, peers: bool) -> dict[str, Callable[[], object]]:
    moments, actions = _Moments(load), load.actions

    def exact() -> object:
        return moments.next().upper(actions)

    def numpy_only() -> object:
        with off():
            return exact()

    def closed_form() -> object:
        cs = moments.next()
        return cs.upper(actions, alpha=cs.alpha0)

    work: dict[str, Callable[[], object]] = {
        "exact, 1,000 actions": exact,
        "exact, 1,000 actions, numpy only": numpy_only,
        "closed form, 1,000 actions": closed_form,
        "exact, one action in a new round": lambda: moments.next().upper(actions[moments.asked % len(actions)]),
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
        actions, moments, cs = load.actions[:_BATCH], _Moments(load), load.sequence()
        problem, phi = conic_programs(load)["CLARABEL, triangular"]
        layer = layers.CvxpyLayer(problem, parameters=[phi], variables=problem.variables())

        def theirs(layer: Any = layer, actions: Any = actions) -> Any:
            batch = torch.tensor(actions, requires_grad=True)
            (theta,) = layer(batch)
            (batch * theta).sum(dim=1).sum().backward()
            return batch.grad.numpy()

        def ours(moments: _Moments = moments, actions: Any = actions) -> Any:
            return moments.next().support(actions).grad

        difference = float(np.max(np.abs(theirs() - cs.support(actions).grad))) / load.norm_bound
        found = medians({"ours": ours, "cvxpylayers": theirs}, 2 if quick else 7)
        rows.append({
            "t": t, "d": d, "milliseconds": 1e3 * found["ours"], "cvxpylayers": 1e3 * found["cvxpylayers"],
            "times_faster": found["cvxpylayers"] / found["ours"], "largest_difference": difference,
        })  # fmt: skip
    return rows
