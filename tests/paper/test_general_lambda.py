"""General λ_t against the paper's printed t×t formulas."""

import numpy as np
import pytest

import mixbandit as mb


def problem(seed):
    rng = np.random.default_rng([3, seed])
    t, d = int(rng.integers(0, 25)), int(rng.integers(1, 6))
    Phi, theta = rng.normal(size=(t, d)), rng.normal(size=d) / np.sqrt(d)
    if seed % 5 == 1 and t:
        Phi = Phi[np.zeros(t, dtype=int)]
    levels = 0.5 * 10.0 ** rng.uniform(-0.3, 0.3, size=t)
    lambdas = rng.uniform(0.0, 1.99, size=t) / levels**2
    r = Phi @ theta + levels * rng.normal(size=t)
    root = rng.normal(size=(d, d))
    theta0, Sigma0 = rng.normal(size=d), root @ root.T + 0.1 * np.eye(d)
    return Phi, r, levels, lambdas, theta0, Sigma0


def printed(Phi, r, levels, lambdas, theta0, Sigma0, delta):
    """P, q and s from the t×t matrices of the paper's appendix."""
    mu, T = Phi @ theta0, Phi @ Sigma0 @ Phi.T
    L, M = np.diag(lambdas), np.diag(levels**2 * lambdas**2)
    D, root = L - M, np.sqrt(M)
    inner = np.eye(len(r)) + root @ T @ root
    H = T - T @ root @ np.linalg.solve(inner, root @ T)
    h = L @ r - M @ mu
    P = Phi.T @ (L + D + D @ H @ D) @ Phi
    q = Phi.T @ (L @ r + D @ mu + D @ H @ h)
    s = 2 * r @ L @ mu - mu @ M @ mu + h @ H @ h - np.linalg.slogdet(inner)[1] - 2 * np.log(1 / delta)
    return P, q, s


def sequence(seed, delta=0.05, norm_bound=4.0):
    Phi, r, levels, lambdas, theta0, Sigma0 = problem(seed)
    cs = mb.GeneralLambda(
        Phi.shape[1],
        sigma=0.5,
        norm_bound=norm_bound,
        delta=delta,
        lam=lambda t, x: lambdas[t],
        mixture=mb.Linear(theta0, Sigma0),
    )
    return cs.update(Phi, r, sigma=levels)


@pytest.mark.parametrize("block", range(10))
def test_the_constraint_equals_the_printed_formula(block):
    for seed in range(50 * block, 50 * block + 50):
        P, q, s = sequence(seed).constraint()
        P0, q0, s0 = printed(*problem(seed), 0.05)
        scale = max(1.0, np.abs(P0).max(initial=0.0), np.abs(q0).max(initial=0.0), abs(s0))
        np.testing.assert_allclose(P, P0, atol=1e-9 * scale)
        np.testing.assert_allclose(q, q0, atol=1e-9 * scale)
        assert s == pytest.approx(s0, abs=1e-9 * scale)


@pytest.mark.parametrize("seed", range(60))
def test_the_e_value_is_the_constraint(seed):
    cs = sequence(seed)
    P, q, s = cs.constraint()
    theta = np.random.default_rng(seed).normal(size=len(q))
    log_evalue = 0.5 * (theta @ P @ theta - 2 * q @ theta + s) + np.log(1 / 0.05)
    assert cs.log_evalue(theta) == pytest.approx(log_evalue, rel=1e-7, abs=1e-7)
    inside = log_evalue <= np.log(1 / 0.05) and np.linalg.norm(theta) <= 4.0
    assert cs.contains(theta) == inside


@pytest.mark.parametrize("seed", range(40))
def test_bounds_equal_a_conic_solver(seed):
    import cvxpy as cp

    cs = sequence(seed)
    P, q, s = cs.constraint()
    x = cp.Variable(len(q))
    constraints = [cp.quad_form(x, cp.psd_wrap((P + P.T) / 2)) - 2 * q @ x + s <= 0, cp.norm(x, 2) <= 4.0]
    phi = np.random.default_rng(seed).normal(size=len(q))
    problem_ = cp.Problem(cp.Maximize(phi @ x), constraints)
    problem_.solve(solver="CLARABEL")
    assert cs.is_empty == (problem_.status in cp.settings.INF_OR_UNB)
    if not cs.is_empty:
        assert cs.upper(phi)[0] == pytest.approx(problem_.value, abs=1e-5 * 4.0 * np.linalg.norm(phi))


@pytest.mark.parametrize("mixture", [mb.Standard(), mb.Scaled(0.2), mb.Linear(np.ones(3), np.diag([1.0, 2.0, 0.1]))])
@pytest.mark.parametrize("known_levels", [False, True])
def test_at_one_over_sigma_squared_it_is_the_martingale_mixture(mixture, known_levels):
    rng = np.random.default_rng(0)
    Phi, queries = rng.normal(size=(40, 3)), rng.normal(size=(9, 3))
    r = Phi @ [0.5, -0.5, 0.2] + 0.3 * rng.normal(size=40)
    levels = rng.uniform(0.2, 0.6, size=40) if known_levels else None
    settings = {"sigma": 0.3, "norm_bound": 0.8, "delta": 0.05, "mixture": mixture}
    ours = mb.MartingaleMixture(3, **settings).update(Phi, r, sigma=levels)
    general = mb.GeneralLambda(3, **settings).update(Phi, r, sigma=levels)
    for alpha in (None, ours.alpha0, 0.7):
        np.testing.assert_allclose(general.upper(queries, alpha), ours.upper(queries, alpha), rtol=1e-9)
        np.testing.assert_allclose(general.lower(queries, alpha), ours.lower(queries, alpha), rtol=1e-9)
    assert general.alpha0 == pytest.approx(ours.alpha0)
    assert general.analytic_radius() == pytest.approx(ours.analytic_radius(), rel=1e-9)
    if not known_levels:
        stated = mb.GeneralLambda(3, **settings, lam=1 / 0.3**2).update(Phi, r)
        np.testing.assert_allclose(stated.upper(queries), ours.upper(queries), rtol=1e-9)


def test_precision_at_high_signal():
    """Seen from the posterior mean nothing cancels: features of size 1e6 lose no digits that matter."""
    rng = np.random.default_rng(0)
    Phi = 1e6 * rng.normal(size=(40, 3))
    r = Phi @ np.ones(3) + 0.3 * rng.normal(size=40)
    settings = {"sigma": 0.3, "norm_bound": 2.0}
    ours, general = (kind(3, **settings).update(Phi, r) for kind in (mb.MartingaleMixture, mb.GeneralLambda))
    np.testing.assert_allclose(general.upper(np.eye(3)), ours.upper(np.eye(3)), rtol=1e-10)
    assert general.analytic_radius() == pytest.approx(ours.analytic_radius(), rel=1e-9)


@pytest.mark.parametrize("lam", [0.5, 1.5])
@pytest.mark.parametrize("signal", [1e3, 1e7, 1e9])
@pytest.mark.parametrize("c", [1.0, 1e4])
def test_unmeasured_directions_stay_unknown(lam, signal, c):
    """One direction measured, far above the noise: rounding must not pass for information about the others."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        theta, direction = rng.normal(size=5), rng.normal(size=5)
        size = float(np.linalg.norm(theta))
        Phi = signal * rng.normal(size=(20, 1)) * direction
        cs = mb.GeneralLambda(5, sigma=1.0, norm_bound=size, lam=lam, mixture=mb.Scaled(c))
        cs.update(Phi, Phi @ theta + rng.normal(size=20))
        away = theta - direction * (theta @ direction) / (direction @ direction)
        assert not cs.is_empty
        assert cs.contains(theta * (1 - 1e-12))
        assert cs.upper(away)[0] >= away @ theta * (1 - 1e-9)


@pytest.mark.parametrize("lam", [-0.1, 2 / 0.25, 9.0, np.nan])
def test_the_convexity_limit_is_enforced(lam):
    cs = mb.GeneralLambda(2, sigma=0.5, norm_bound=1.0, lam=lambda t, x: lam)
    with pytest.raises(mb.InvalidInput, match=r"below 2/sigma² = 8"):
        cs.update([[1.0, 0.0]], [0.1])
    assert cs.t == 0
    with pytest.raises(mb.InvalidInput, match="lambda must be a number"):
        mb.GeneralLambda(2, sigma=0.5, norm_bound=1.0, lam=lambda t, x: "much").update([[1.0, 0.0]], [0.1])
    with pytest.raises(mb.InvalidInput, match="lam"):
        mb.GeneralLambda(2, sigma=0.5, norm_bound=1.0, lam=lam)


def test_a_lambda_of_zero_ignores_the_reward():
    cs = mb.GeneralLambda(2, sigma=0.5, norm_bound=1.0, lam=lambda t, x: 0.0 if t == 0 else 4.0)
    cs.update([[1.0, 0.0], [0.0, 1.0]], [100.0, 0.1])
    only = mb.GeneralLambda(2, sigma=0.5, norm_bound=1.0, lam=4.0).update([[0.0, 1.0]], [0.1])
    np.testing.assert_allclose(cs.upper(np.eye(2)), only.upper(np.eye(2)), rtol=1e-12)


def test_only_linear_mixtures():
    with pytest.raises(mb.InvalidInput, match="Standard, Scaled or Linear"):
        mb.GeneralLambda(2, sigma=0.5, norm_bound=1.0, mixture=mb.Adaptive())


def test_a_function_is_not_stored():
    with pytest.raises(mb.NotStorable, match="code"):
        sequence(0).state_dict()
