"""Random problems in the function spaces of all kinds of kernels, and slow definitions to compare with."""

import functools
from dataclasses import dataclass, field

import cvxpy as cp
import numpy as np
from sklearn.gaussian_process import kernels as sk

import mixbandit as mb
from tests.kernels.cases import KERNELS, rows

# Kernels of rows of length 5; the last three columns are a one-hot block.
CASES = {name: kernel for name, (kernel, _) in KERNELS.items()} | {
    "scikit-learn": sk.RBF(0.8) + 0.3 * sk.RationalQuadratic(),
    "huge variance": mb.RBF(0.9, 1e8),
    "tiny variance": mb.Matern(1.5, 0.9, 1e-8),
    "long": mb.RBF(20.0),
}
NAMES = sorted(CASES)
MIXTURES = ("standard", "scaled", "grid", "gaussian", "adaptive")


@dataclass
class Problem:
    """Rewards of a function of norm at most `norm_bound`, and settings that fit them, unless `refuted`."""

    kernel: object
    actions: np.ndarray
    rewards: np.ndarray
    levels: np.ndarray | None
    queries: np.ndarray
    sigma: float
    norm_bound: float
    mixture: object = field(default_factory=mb.Standard)
    delta: float = 0.05

    @property
    def settings(self):
        return {"sigma": self.sigma, "norm_bound": self.norm_bound, "delta": self.delta}

    @property
    def weights(self):
        return np.ones(len(self.rewards)) if self.levels is None else self.sigma / self.levels

    @functools.cached_property
    def sequence(self):
        cs = mb.KernelMixture(self.kernel, **self.settings, mixture=self.mixture, dim_in=5)
        return cs.update(self.actions, self.rewards, sigma=self.levels)

    @functools.cached_property
    def reach(self):
        """B√k(x, x) of every query."""
        return self.norm_bound * np.sqrt(np.maximum(matrix(self.kernel, self.queries).diagonal(), 0.0))


def matrix(kernel, A, B=None):
    return np.asarray(kernel(A, A if B is None else B))


def problem(seed, *, name=None, mixture=None, refuted=None, most=40):
    rng = np.random.default_rng([77, seed])
    name = NAMES[seed % len(NAMES)] if name is None else name
    kernel = CASES[name]
    t = int(rng.choice([0, 1, 2, 5, 12, most]))
    actions = rows(max(t, 2), seed)[:t]
    if t and rng.random() < 0.5:
        actions = actions[rng.integers(max(t // 2, 1), size=t)]
    queries = np.vstack((rows(4, seed + 1)[:3], actions[:2], np.zeros((1, 5))))
    size = float(np.sqrt(np.abs(matrix(kernel, queries).diagonal()).max()))
    norm_bound = 10.0 ** rng.uniform(-3.0, 3.0)
    sigma = size * norm_bound * 10.0 ** rng.uniform(-2.5, 1.0)
    levels = sigma * 10.0 ** rng.uniform(-0.5, 0.5, size=t) if rng.random() < 0.4 else None
    truth = function(kernel, np.vstack((actions, queries)), norm_bound, rng)[:t]
    refuted = rng.random() < 0.15 if refuted is None else refuted
    noise = (sigma if levels is None else levels) * rng.normal(size=t)
    rewards = truth * (30.0 if refuted else 1.0) + noise
    if refuted:
        sigma, levels = 1e-2 * sigma, None if levels is None else 1e-2 * levels
    kind = MIXTURES[seed % len(MIXTURES)] if mixture is None else mixture
    return Problem(kernel, actions, rewards, levels, queries, sigma, norm_bound, mixture_of(kind, norm_bound))


def mixture_of(kind, scale=1.0):
    return {
        "standard": mb.Standard(),
        "scaled": mb.Scaled(min(scale**2, 1e4)),
        "grid": mb.Grid([0.1, 1.0, 10.0], weights=[1.0, 2.0, 3.0]),
        "gaussian": mb.Gaussian(0.1 * scale, mb.RBF(0.7, 2.0)),
        "adaptive": mb.Adaptive(),
    }[kind]


def function(kernel, points, norm, rng):
    """The values at these points of a random function of the space with exactly this norm."""
    K = matrix(kernel, points)
    values, vectors = np.linalg.eigh(K)
    kept = values > 1e-10 * max(values[-1], 1e-300)
    theta = rng.normal(size=int(kept.sum())) * rng.choice([1.0, 0.1], size=int(kept.sum()))
    length = np.linalg.norm(theta)
    return vectors[:, kept] @ (np.sqrt(values[kept]) * theta) * (norm / length if length else 0.0)


def radius(p):
    """R from the definition, with t×t matrices; None for an adaptive mixture."""
    weights = p.weights

    def cost(T, mean=0.0):
        S = np.eye(len(weights)) + weights[:, None] * T * weights / p.sigma**2
        error = weights * (mean - p.rewards)
        return error @ np.linalg.solve(S, error) + p.sigma**2 * np.linalg.slogdet(S)[1]

    K, mixture = matrix(p.kernel, p.actions), p.mixture
    if isinstance(mixture, mb.Scaled):
        total = cost(mixture.c * K)
    elif isinstance(mixture, mb.Gaussian):
        total = cost(matrix(mixture.kernel, p.actions), mixture.mean)
    elif isinstance(mixture, mb.Grid):
        costs = np.array([cost(member.c * K) for member in mixture.members])
        logs = np.log(mixture.weights) - costs / (2 * p.sigma**2)
        total = -2 * p.sigma**2 * np.logaddexp.reduce(logs)
    else:
        return None
    return float(np.sqrt(total + 2 * p.sigma**2 * np.log(1 / p.delta)))


class Conic:
    """max f(x) subject to ‖W(f(a) − r)‖ ≤ R and ‖f‖ ≤ B as a conic program: f in the span of all sections involved."""

    def __init__(self, p, bound):
        distinct, group = np.unique(p.actions, axis=0, return_inverse=True)
        self._p, self._bound = p, bound
        points = np.vstack((distinct, p.queries))
        K = matrix(p.kernel, points)
        values, vectors = np.linalg.eigh(K)
        self._unit = float(np.sqrt(max(values[-1], 1e-300)))
        self._L = vectors * np.sqrt(np.maximum(values, 0.0)) / self._unit  # rows are the points
        self._seen, self._asked = self._L[: len(distinct)][group.reshape(-1)], self._L[len(distinct) :]
        self._x = cp.Variable(len(points))
        scale = self._unit * p.norm_bound
        fit = (p.weights * scale / bound)[:, None] * self._seen @ self._x - p.weights * p.rewards / bound
        limits = [cp.norm(self._x, 2) <= 1.0]
        self._limits = limits if not len(p.rewards) else [*limits, cp.norm(fit, 2) <= 1.0]

    def upper(self, sign=1.0):
        """Upper bounds of `sign` times the function; None if no function is left, NaN where the solver gave up."""
        found = []
        for row in self._asked:
            length = np.linalg.norm(row)
            direction = sign * row / length if length else row
            program = cp.Problem(cp.Maximize(direction @ self._x), self._limits)
            try:
                program.solve(solver="CLARABEL")
            except cp.SolverError:
                found.append(np.nan)
                continue
            if program.status in cp.settings.INF_OR_UNB:
                return None
            good = program.status == cp.OPTIMAL
            found.append(self._unit * self._p.norm_bound * length * program.value if good else np.nan)
        return np.array(found)
