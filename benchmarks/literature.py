"""Yes-or-no results whose chance is linear in known features: `BoundedMixture` beside confidence sets from papers.

    python benchmarks/literature.py [--quick] [--out docs/results/literature.csv]

θ* is uniform on a cube in dimension 5, actions are drawn from the simplex, and so chances φᵀθ* lie in the cube's range;
δ = 5 %, 300 results, norm bound that of the cube's far corner. Widths are those of intervals for 20 random actions at
the end, cut to [0, 1], over the first 10 seeds. A run is missed if θ* was outside after 10, 30, 100 or 300 results.

- *plug-in*: Emmenegger, Mutný & Krause (2023), the likelihood ratio to a running estimate, without their optional
  weights. The set is that of `BoundedMixture` with a point forecast, so β = −Σ ln q̂_k(r_k) + ln(1/δ). The estimate
  maximises the log-likelihood less (λ/2)‖θ − ½‖², since chances are ½ + φᵀ(θ − ½) here; q̂ is kept in [.005, .995].
  Much depends on λ: 10 is nearly the law from which θ* comes in the wide cube, which nobody would know.
- *unified*: Lee, Yun & Jun (2024), Theorem 3.1: β = L(θ̂) + ln(1/δ) + d ln max(e, 2eSL_t/d) with θ̂ the most likely
  parameter of a Θ in a ball of radius S, and L_t a Lipschitz constant of the loss over Θ. With their links it is finite
  over the ball. With chances that are linear it is not: Θ has to keep chances away from 0 and 1, which the others need
  not know. Θ is the cube from ε to 1 − ε, with ε the distance of the cube of θ* from the nearest end; L_t is the
  norm of the largest absolute values of the coordinates of the gradient, which are known from the results.
- *LOFAV*: Jun & Kim (2024), for noise in [−R, R], here R = 1, written from the authors' implementation, with S our norm
  bound and a horizon of 300 that fixes the number of its ellipsoids.

The first two have the same L and norm ball as `BoundedMixture` and go through the same solver: only β differs.
"""

import argparse
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

import mixbandit as mb
from mixbandit._checks import Array
from mixbandit.paper.store import write_table
from mixbandit.sets import LikelihoodSet
from mixbandit.sets.likelihood import Likelihood

SEED, DELTA, DIM, QUERIES = 0, 0.05, 5, 20
LOOKS = (10, 30, 100, 300)
CUBES = ((0.05, 0.95), (0.9, 0.99))
CLIP = 0.005


class Found(NamedTuple):
    """A confidence set: bounds of actions, whether it holds a parameter, and its β above the least loss."""

    interval: Callable[[Array], tuple[Array, Array]]
    contains: Callable[[Array], bool]
    nats: float = math.nan


Method = Callable[[Array, Array, tuple[float, float]], Found]


def norm_bound(cube: tuple[float, float]) -> float:
    """Of the far corner."""
    return math.sqrt(DIM) * cube[1]


def bounded(exact: bool) -> Method:
    """Ours."""

    def method(x: Array, r: Array, cube: tuple[float, float]) -> Found:
        cs = mb.BoundedMixture(DIM, norm_bound=norm_bound(cube), delta=DELTA).update(x, r)
        rule: Any = cs.moment.rule
        return with_budget(cs, -rule.log_density(cs.moment.data) - math.log(DELTA), exact)

    return method


def plug_in(regularisation: float, exact: bool) -> Method:
    """The likelihood ratio to a running estimate."""

    def method(x: Array, r: Array, cube: tuple[float, float]) -> Found:
        cs = mb.BoundedMixture(DIM, norm_bound=norm_bound(cube), delta=DELTA).update(x, r)
        return with_budget(cs, -log_forecasts(x, r, regularisation) - math.log(DELTA), exact)

    return method


def log_forecasts(x: Array, r: Array, regularisation: float) -> float:
    """Σ ln q̂_k(r_k), each estimate from the results before it."""
    theta, total = np.zeros(DIM), 0.0
    for k in range(len(r)):
        if k:
            theta = Likelihood(x[:k], r[:k], np.ones(k), 0.5).minimum(regularisation, theta).theta
        q = min(max(0.5 + float(x[k] @ theta), CLIP), 1.0 - CLIP)
        total += math.log(q if r[k] else 1.0 - q)
    return total


def unified(exact: bool) -> Method:
    """The likelihood ratio to the estimate from all results, with a price for its freedom."""

    def method(x: Array, r: Array, cube: tuple[float, float]) -> Found:
        cs = mb.BoundedMixture(DIM, norm_bound=norm_bound(cube), delta=DELTA).update(x, r)
        end = min(cube[0], 1.0 - cube[1])
        price = DIM * math.log(max(math.e, 2.0 * math.e * norm_bound(cube) * lipschitz(x, r, end) / DIM))
        return with_budget(cs, least_loss(x, r, end) - math.log(DELTA) + price, exact)

    return method


def lipschitz(x: Array, r: Array, end: float) -> float:
    """At least ‖∇L‖ over the cube from ε to 1 − ε; the entries of x are not negative."""
    yes, no = r @ x, (1.0 - r) @ x  # the gradient is Σ x/(1−p) over noes, less Σ x/p over yeses
    low, high = no / (1.0 - end) - yes / end, no / end - yes / (1.0 - end)
    return float(np.linalg.norm(np.maximum(np.abs(low), np.abs(high))))


def least_loss(x: Array, r: Array, end: float) -> float:
    """L(θ̂) over the cube from ε to 1 − ε."""

    def loss(theta: Array) -> tuple[float, Array]:
        p = x @ theta
        value = -float(np.log(np.where(r > 0.0, p, 1.0 - p)).sum())
        return value, x.T @ np.where(r > 0.0, -1.0 / p, 1.0 / (1.0 - p))

    found = minimize(loss, np.full(DIM, 0.5), jac=True, method="L-BFGS-B", bounds=[(end, 1.0 - end)] * DIM, tol=1e-10)
    return float(found.fun)


def with_budget(cs: mb.BoundedMixture, budget: float, exact: bool) -> Found:
    """The set L ≤ β, ‖θ‖ ≤ B of these results with another β."""
    rule: Any = cs.moment.rule
    problem = rule.likelihood(cs.moment.data)
    saturated = problem.likelihood.saturated
    known = LikelihoodSet(problem.with_budget(budget - saturated), exact=exact, margin=-math.log(DELTA))
    return Found(known.interval, lambda theta: known.contains(theta, 1e-9), budget - saturated - problem.least_loss())


def hoeffding(x: Array, r: Array, cube: tuple[float, float]) -> Found:
    """`MartingaleMixture` with σ = ½."""
    mixture = mb.Grid([0.01, 0.1, 1.0])
    cs = mb.MartingaleMixture(DIM, sigma=0.5, norm_bound=norm_bound(cube), delta=DELTA, mixture=mixture).update(x, r)
    return Found(lambda queries: (cs.lower(queries), cs.upper(queries)), cs.contains)


def lofav(x: Array, r: Array, cube: tuple[float, float]) -> Found:
    """The intersection of two ellipsoids for each of a few weightings of the results."""
    levels = max(1, math.ceil(0.5 * math.log2(LOOKS[-1] / DIM)))
    pairs = [pair for level in range(1, levels + 1) for pair in weighted(x, r, 2.0**-level, levels, norm_bound(cube))]

    def interval(queries: Array) -> tuple[Array, Array]:
        ball = norm_bound(cube) * np.linalg.norm(queries, axis=1)
        low, high = -ball, ball
        for centre, matrix, radius2 in pairs:
            reach = np.sqrt(radius2 * np.einsum("ij,ij->i", queries @ np.linalg.inv(matrix), queries))
            low, high = np.maximum(low, queries @ centre - reach), np.minimum(high, queries @ centre + reach)
        return low, high

    def contains(theta: Array) -> bool:
        return all((theta - centre) @ matrix @ (theta - centre) <= radius2 for centre, matrix, radius2 in pairs)

    return Found(interval, contains)


def weighted(x: Array, r: Array, rho: float, levels: int, s: float) -> list[tuple[Array, Array, float]]:
    """(centre, matrix, squared radius) of LOFAV's two ellipsoids with weights that ρ limits; noise in [−1, 1]."""
    lam = rho**2 / s**2
    least = 0.5 * lam * s**2
    sigma, moment, theta, middle = lam * np.eye(DIM), np.zeros(DIM), np.zeros(DIM), np.zeros(DIM)
    weights, predicted = np.empty(len(r)), np.empty(len(r))
    plain = leveraged = 0.0  # sums of weighted squared errors of prediction, halved; the second one times leverage
    largest, beta = least, least
    for k, (row, value) in enumerate(zip(x, r, strict=True)):
        weight = min(1.0, rho / math.sqrt(float(row @ np.linalg.solve(sigma, row))))
        weights[k], predicted[k] = weight**2, float(row @ theta)
        sigma, moment = sigma + weight**2 * np.outer(row, row), moment + weight**2 * value * row
        theta = np.asarray(np.linalg.solve(sigma, moment), dtype=np.float64)
        error = 0.5 * weight**2 * (value - predicted[k]) ** 2
        plain, leveraged = plain + error, leveraged + error * weight**2 * float(row @ np.linalg.solve(sigma, row))
        w, phi, seen, told = weights[: k + 1], x[: k + 1], r[: k + 1], predicted[: k + 1]
        double = 2.0 * sigma - lam * np.eye(DIM)
        middle = np.asarray(np.linalg.solve(double, phi.T @ (w * (seen + told))), dtype=np.float64)
        ridge = 0.5 * w @ (seen - phi @ theta) ** 2 + 0.5 * lam * theta @ theta
        both = 0.5 * w @ ((seen - phi @ middle) ** 2 + (told - phi @ middle) ** 2) + 0.5 * lam * middle @ middle
        scale = max(1.0, math.ceil(math.log2(math.sqrt(largest / least))))
        xi = math.log(math.sqrt(math.pi * (k + 2)) * 6.8 * levels * scale * math.log(1.0 + scale) ** 2 / DELTA)
        spread = math.sqrt(8.0 * rho**2 * largest * (plain + math.log(2.0 * levels / DELTA)) * xi)
        beta = ridge - both + least + leveraged + spread + 2.0**scale * rho * math.sqrt(2.0 * least) * xi
        largest = max(largest, beta)
    other = least + leveraged + math.log(2.0 * levels / DELTA)
    return [(middle, double, 2.0 * float(beta)), (theta, sigma, 2.0 * float(other))]


METHODS: dict[str, Method] = {
    "BoundedMixture": bounded(exact=False),
    "BoundedMixture, exact": bounded(exact=True),
    "plug-in, λ = 1": plug_in(1.0, exact=False),
    "plug-in, λ = 1, exact": plug_in(1.0, exact=True),
    "plug-in, λ = 10": plug_in(10.0, exact=False),
    "plug-in, λ = 10, exact": plug_in(10.0, exact=True),
    "unified": unified(exact=False),
    "unified, exact": unified(exact=True),
    "LOFAV": lofav,
    "MartingaleMixture, sigma=0.5": hoeffding,
}


def compared(cube: tuple[float, float], runs: int, wide: int, looks: tuple[int, ...]) -> list[list[Any]]:
    """One row per method."""
    rows: list[list[Any]] = []
    for name, method in METHODS.items():
        exact = name.endswith("exact")  # the same set: misses are those of the row above
        missed, widths, nats = 0, [], []
        for run in range(wide if exact else runs):
            rng = np.random.default_rng([SEED, run])
            theta, x = rng.uniform(*cube, size=DIM), rng.dirichlet(np.ones(DIM), size=looks[-1])
            r = (rng.random(looks[-1]) < x @ theta).astype(np.float64)
            queries = rng.dirichlet(np.ones(DIM), size=QUERIES)
            if not exact:
                missed += any(not method(x[:t], r[:t], cube).contains(theta) for t in looks)
            if run < wide:
                found = method(x, r, cube)
                low, high = found.interval(queries)
                widths.append(float((np.minimum(high, 1.0) - np.maximum(low, 0.0)).mean()))
                nats.append(found.nats)
        chances = f"{cube[0]:g} to {cube[1]:g}"
        error = np.std(widths, ddof=1) / math.sqrt(wide)
        above = "" if math.isnan(nats[0]) else f"{np.mean(nats):.1f}"
        shown = "as above" if exact else f"{missed} of {runs}"
        rows.append([chances, name, f"{np.mean(widths):.3f} ± {error:.3f}", above, shown])
        print(*rows[-1], sep=" | ", flush=True)
    return rows


def main() -> None:
    """Print and write what was seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few runs, to see that it works")
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    runs, wide, looks = (4, 2, LOOKS[:3]) if options.quick else (100, 10, LOOKS)
    rows = [row for cube in CUBES for row in compared(cube, runs, wide, looks)]
    if options.out is not None:
        columns = ["chances", "set", "width", "nats above the least loss", "runs missed"]
        seeds = f"widths 0 to {wide - 1}, misses 0 to {runs - 1}"
        write_table(options.out, columns, rows, command="python benchmarks/literature.py", seeds=seeds)


if __name__ == "__main__":
    main()
