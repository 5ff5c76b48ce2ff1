"""Against 60-digit arithmetic, where double precision is short of digits."""

import mpmath as mp
import numpy as np
import pytest

import mixbandit as mb
from tests.helpers.exact_arithmetic import ExactSet


def graded_problem(seed, ratio):
    """Data whose squared singular values reach from `ratio`·α₀ to below α₀."""
    rng = np.random.default_rng([11, seed])
    d = int(rng.integers(3, 8))
    t = int(rng.integers(d, 30)) if seed % 4 else d - 1
    sigma = 10.0 ** rng.uniform(-3, 0)
    k = min(t, d)
    A = np.linalg.qr(rng.normal(size=(max(t, d), max(t, d))))[0]
    U = np.linalg.qr(rng.normal(size=(d, d)))[0]
    singular = 10.0 ** np.sort(rng.uniform(-np.log10(ratio) / 2 - 1, 0, size=k))[::-1]
    singular[0] = 1.0
    Phi = (A[:t, :k] * (np.sqrt(ratio) * sigma * singular)) @ U[:, :k].T
    theta = rng.normal(size=d)
    theta *= 10.0 ** rng.uniform(-1, 1) / np.linalg.norm(theta)
    norm_bound = float(np.linalg.norm(theta) * 10.0 ** rng.choice([0.0, 0.5]))
    r = Phi @ theta + sigma * rng.normal(size=t)
    queries = np.vstack((rng.normal(size=(2, d)), U.T[rng.integers(0, d, size=2)], theta))
    return Phi, r, sigma, norm_bound, queries


@pytest.mark.parametrize("by_row", [False, True])
@pytest.mark.parametrize("ratio", [1e2, 1e6, 1e10, 1e14])
@pytest.mark.parametrize("seeds", [range(5), pytest.param(range(5, 20), marks=pytest.mark.heavy)], ids=str)
def test_bounds_and_radius_keep_their_digits(seeds, ratio, by_row):
    worst_naive = 0.0
    for seed in seeds:
        Phi, r, sigma, norm_bound, queries = graded_problem(seed, ratio)
        d = Phi.shape[1]
        exact = ExactSet(Phi, r, sigma, norm_bound, 0.01)
        cs = mb.MartingaleMixture(d, sigma=sigma, norm_bound=norm_bound)
        for rows, rewards in zip(Phi, r, strict=True) if by_row else [(Phi, r)]:
            cs.update(rows, rewards)
            cs.upper(queries)
        assert cs.radius**2 == pytest.approx(float(exact.radius2), rel=1e-10)
        for phi, upper in zip(queries, cs.upper(queries), strict=True):
            error = float(mp.mpf(float(upper)) - exact.support(phi)) / (norm_bound * np.linalg.norm(phi))
            assert -1e-9 <= error <= 1e-9
        for alpha in cs.alpha0 * np.array([1e-2, 1.0, 1e2]):
            truth = exact.rho(alpha)
            assert abs(float(mp.mpf(cs.analytic_radius(alpha)) ** 2 / truth - 1)) < 1e-10
            b = Phi.T @ r
            naive = cs.radius**2 + alpha * norm_bound**2 - r @ r
            naive += b @ np.linalg.solve(Phi.T @ Phi + alpha * np.eye(d), b)
            worst_naive = max(worst_naive, abs(naive / float(truth) - 1))
    if ratio >= 1e10:  # the test would mean nothing if the printed formula could pass it
        assert worst_naive > 1e-7


@pytest.mark.parametrize("seed", range(10))
def test_linear_mixtures_keep_their_digits(seed):
    Phi, r, sigma, norm_bound, queries = graded_problem(seed, 1e8)
    rng = np.random.default_rng(seed)
    d = Phi.shape[1]
    root = rng.normal(size=(d, d))
    theta0, Sigma0 = rng.normal(size=d), root @ root.T + 0.1 * np.eye(d)
    exact = ExactSet(Phi, r, sigma, norm_bound, 0.05, theta0, Sigma0)
    cs = mb.MartingaleMixture(
        d, sigma=sigma, norm_bound=norm_bound, delta=0.05, mixture=mb.Linear(theta0, Sigma0)
    ).update(Phi, r)
    assert cs.radius**2 == pytest.approx(float(exact.radius2), rel=1e-11)
    assert cs.analytic_radius(cs.alpha0) ** 2 == pytest.approx(float(exact.rho(cs.alpha0)), rel=1e-10)
    for phi, upper in zip(queries, cs.upper(queries), strict=True):
        assert abs(float(mp.mpf(float(upper)) - exact.support(phi))) < 1e-10 * norm_bound * np.linalg.norm(phi)
