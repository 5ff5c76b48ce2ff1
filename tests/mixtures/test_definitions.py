"""Every mixture against the t×t definition of its radius, with explicit μ and T."""

import numpy as np
import pytest

import mixbandit as mb

SIGMA, DELTA = 0.3, 0.05


def problem(seed):
    rng = np.random.default_rng([5, seed])
    t, dim_in, d = int(rng.integers(0, 40)), 2, int(rng.integers(2, 7))
    phi = mb.RandomFourier(dim_in, d, rng=rng)
    actions = rng.uniform(size=(t, dim_in))
    if seed % 4 == 1:
        actions = actions[rng.integers(0, max(t // 3, 1), size=t)] if t else actions
    rewards = phi(actions) @ rng.normal(size=d) + SIGMA * rng.normal(size=t)
    levels = SIGMA * 10.0 ** rng.uniform(-0.5, 0.5, size=t) if seed % 3 == 2 else np.full(t, SIGMA)
    return phi, actions, rewards, levels


def radius2(mu, T, rewards, levels):
    """The paper's formula, rows and rewards divided by their noise levels."""
    w = SIGMA / levels
    error, noise = w * (mu - rewards), np.eye(len(mu)) + w[:, None] * w * T / SIGMA**2
    cost = error @ np.linalg.solve(noise, error) + SIGMA**2 * np.linalg.slogdet(noise)[1]
    return cost + 2 * SIGMA**2 * np.log(1 / DELTA)


def sequence(phi, mixture, actions, rewards, levels):
    cs = mb.MartingaleMixture(phi, sigma=SIGMA, norm_bound=5.0, delta=DELTA, mixture=mixture)
    return cs.update(actions, rewards, sigma=levels)


def adaptive_moments(K, rewards, levels, beta):
    """μ_j = m_{j−1}(a_j) and T_ij = k_{j−1}(a_i, a_j), i ≤ j, straight from the posterior of the process.

    With known noise levels both live in the units of the weighted rows.
    """
    w = SIGMA / levels
    K, r = w[:, None] * w * K, w * rewards
    t = len(r)
    mu, T = np.zeros(t), np.zeros((t, t))
    for j in range(t):
        seen = slice(0, j)
        gain = np.linalg.solve(K[seen, seen] + beta * np.eye(j), K[seen, :]) if j else np.zeros((0, t))
        mu[j] = gain[:, j] @ r[seen]
        T[: j + 1, j] = T[j, : j + 1] = K[: j + 1, j] - K[: j + 1, seen] @ gain[:, j]
    return mu / w, T / (w[:, None] * w)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("mean", [0.0, 0.7, lambda a: np.sin(a[:, 0])], ids=["0", "0.7", "sin"])
def test_gaussian(seed, mean):
    phi, actions, rewards, levels = problem(seed)
    kernel = mb.Matern(2.5, 0.5, 2.0)
    cs = sequence(phi, mb.Gaussian(mean, kernel), actions, rewards, levels)
    mu = mean(actions) if callable(mean) else np.full(len(actions), mean)
    assert cs.radius**2 == pytest.approx(radius2(mu, kernel(actions, actions), rewards, levels), rel=1e-9)


@pytest.mark.parametrize("beta", [None, 0.02, 3.0])
@pytest.mark.parametrize("seed", range(40))
def test_adaptive_linear(seed, beta):
    phi, actions, rewards, levels = problem(seed)
    cs = sequence(phi, mb.Adaptive(beta), actions, rewards, levels)
    K = phi(actions) @ phi(actions).T
    mu, T = adaptive_moments(K, rewards, levels, 4 * SIGMA**2 if beta is None else beta)
    assert cs.radius**2 == pytest.approx(radius2(mu, T, rewards, levels), rel=1e-9)
    if len(T):
        assert np.linalg.eigvalsh(T)[0] > -1e-9


@pytest.mark.parametrize("seed", range(40))
def test_adaptive_with_a_kernel(seed):
    phi, actions, rewards, levels = problem(seed)
    kernel = mb.RBF(0.4)
    cs = sequence(phi, mb.Adaptive(kernel=kernel), actions, rewards, levels)
    mu, T = adaptive_moments(kernel(actions, actions), rewards, levels, 4 * SIGMA**2)
    assert cs.radius**2 == pytest.approx(radius2(mu, T, rewards, levels), rel=1e-9)
    if len(T):
        assert np.linalg.eigvalsh(T)[0] > -1e-9


@pytest.mark.parametrize("seed", range(20))
def test_adaptive_with_the_linear_kernel_is_adaptive(seed):
    phi, actions, rewards, levels = problem(seed)
    by_kernel = mb.Adaptive(kernel=lambda a, b: phi(a) @ phi(b).T)
    one = sequence(phi, mb.Adaptive(), actions, rewards, levels)
    other = sequence(phi, by_kernel, actions, rewards, levels)
    assert one.radius == pytest.approx(other.radius, rel=1e-9)


@pytest.mark.heavy
def test_adaptive_stays_accurate_over_many_rounds():
    """Past several refreshes of its posterior, against the explicit matrix."""
    rng = np.random.default_rng(0)
    phi = mb.RandomFourier(2, 5, rng=1)
    actions = rng.uniform(size=(600, 2))
    rewards = phi(actions) @ rng.normal(size=5) + SIGMA * rng.normal(size=600)
    levels = np.full(600, SIGMA)
    cs = sequence(phi, mb.Adaptive(), actions, rewards, levels)
    mu, T = adaptive_moments(phi(actions) @ phi(actions).T, rewards, levels, 4 * SIGMA**2)
    assert cs.radius**2 == pytest.approx(radius2(mu, T, rewards, levels), rel=1e-9)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("weights", [None, [5.0, 1.0, 2.0]])
def test_grid_over_scales(seed, weights):
    phi, actions, rewards, levels = problem(seed)
    scales = [0.01, 1.0, 50.0]
    cs = sequence(phi, mb.Grid(scales, weights), actions, rewards, levels)
    K = phi(actions) @ phi(actions).T
    pi = np.ones(3) / 3 if weights is None else np.array(weights) / 8
    delta_term = 2 * SIGMA**2 * np.log(1 / DELTA)
    costs = [radius2(np.zeros(len(rewards)), c * K, rewards, levels) - delta_term for c in scales]
    shifted = np.log(pi) - (np.array(costs) - min(costs)) / (2 * SIGMA**2)
    expected = min(costs) - 2 * SIGMA**2 * np.log(np.sum(np.exp(shifted)))
    assert cs.radius**2 == pytest.approx(expected + delta_term, rel=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_grid_over_anything(seed):
    """A mixture, an adaptive one and a user's forecaster together: never much worse than the best."""

    class Guess:
        def predict(self, x):
            return float(np.sum(x)), 0.5

        def update(self, x, r):
            pass

    phi, actions, rewards, levels = problem(seed)
    members = [mb.Standard(), mb.Adaptive(), Guess()]
    alone = [sequence(phi, member, actions, rewards, levels).radius ** 2 for member in members]
    together = sequence(phi, mb.Grid(members), actions, rewards, levels).radius ** 2
    assert min(alone) - 1e-9 <= together + 1e-9
    assert together <= min(alone) + 2 * SIGMA**2 * np.log(3) + 1e-9


def test_alpha0_of_a_grid_follows_the_weight():
    phi, actions, rewards, _ = problem(7)
    grid = mb.Grid([0.1, 10.0], weights=[0.2, 0.8])
    cs = mb.MartingaleMixture(phi, sigma=SIGMA, norm_bound=5.0, mixture=grid)
    assert cs.alpha0 == pytest.approx(SIGMA**2 / 10.0)
    # Rewards near 0 speak for a small c.
    for _ in range(3):
        cs.update(actions, 0.01 * rewards)
    assert cs.alpha0 == pytest.approx(SIGMA**2 / 0.1)
    assert mb.MartingaleMixture(phi, sigma=SIGMA, norm_bound=5.0, mixture=mb.Adaptive()).alpha0 == SIGMA**2


def test_scales_may_come_as_an_array():
    for scales in (np.array([1, 10, 100]), np.array([1, 10, 100], dtype=np.float32)):
        assert [member.c for member in mb.Grid(scales).members] == [1.0, 10.0, 100.0]


def test_bounds_follow_from_the_radius_whatever_the_mixture():
    """The set depends on the mixture through R alone: a Grid of one scale is that scale."""
    phi, actions, rewards, levels = problem(7)
    one = sequence(phi, mb.Scaled(2.0), actions, rewards, levels)
    grid = sequence(phi, mb.Grid([2.0]), actions, rewards, levels)
    np.testing.assert_allclose(grid.upper(actions), one.upper(actions), rtol=1e-12)
    np.testing.assert_allclose(grid.upper(actions, alpha=0.1), one.upper(actions, alpha=0.1), rtol=1e-12)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: mb.Grid([]), "at least one"),
        (lambda: mb.Grid([1.0, -1.0]), "c must be positive"),
        (lambda: mb.Grid([1.0, "x"]), "member must be"),
        (lambda: mb.Grid([1.0, mb.Standard]), "member must be"),
        (lambda: mb.Grid(3.0), "list"),
        (lambda: mb.Grid([1.0, 2.0], weights=[1.0]), r"weights must have shape \(2,\)"),
        (lambda: mb.Grid([1.0, 2.0], weights=[1.0, 0.0]), "weights must be positive"),
        (lambda: mb.Grid([1.0, 2.0], weights=[1e-190, 1e190]), "too unequal"),
        (lambda: mb.Adaptive(beta=0.0), "beta must be positive"),
        (lambda: mb.Adaptive(kernel=3), "kernel must be a function"),
        (lambda: mb.Gaussian("x", mb.RBF()), "mean must be numbers"),
        (lambda: mb.Gaussian([1.0, 2.0], mb.RBF()), "mean must be a number or a function"),
        (lambda: mb.Gaussian(0.0, None), "kernel must be a function"),
        (lambda: sequence(mb.Identity(2), mb.Gaussian(0.0, lambda a, b: a), np.ones((2, 2)), [1, 2], 1.0), "shape"),
        (lambda: sequence(mb.Identity(2), mb.Gaussian(lambda a: a, mb.RBF()), np.ones((1, 2)), [1], 1.0), "one value"),
    ],
)
def test_bad_settings_are_named(make, says):
    with pytest.raises(mb.InvalidInput, match=says):
        make()
