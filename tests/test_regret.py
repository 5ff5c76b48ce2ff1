"""Regret bounds known in advance, against the paper's formulas in 50 digits and against what really happens."""

import dataclasses

import mpmath as mp
import numpy as np
import pytest

import mixbandit as mb
from mixbandit.regret import RegretBound, worst_case, worst_case_general


def settings(seed):
    """T, d and positive numbers of many sizes."""
    rng = np.random.default_rng([23, seed])
    T, d = int(10.0 ** rng.uniform(0, 6)), int(rng.integers(1, 200))
    sigma, B, L, c, alpha, sigma0 = (float(x) for x in 10.0 ** rng.uniform(-3, 3, size=6))
    return T, d, sigma, B, L, c, alpha, sigma0, float(10.0 ** rng.uniform(-10, -0.4))


def theorem(T, d, sigma, B, L, c, delta, C):
    """Label thm:regret_bound, as it is printed."""
    with mp.workdps(50):
        sigma, B, L, c, delta, C = map(mp.mpf, (sigma, B, L, c, delta, C))
        inside = d * mp.log(1 + c * L**2 * T / (sigma**2 * d)) + B**2 / c + 2 * mp.log(1 / delta)
        outside = mp.sqrt(d * T * mp.log(1 + c * L**2 * T / (sigma**2 * d)))
        return float(2 / mp.sqrt(mp.log(2)) * max(C, sigma * mp.sqrt(inside)) * outside)


def general_theorem(T, d, sigma, B, L, alpha, sigma0, distance, delta, C):
    """Label thm:gen_regret_bound, without the σ²d with which eqn:gen_rad begins: see the test of that below."""
    with mp.workdps(50):
        sigma, B, L, alpha, sigma0, distance, delta, C = map(mp.mpf, (sigma, B, L, alpha, sigma0, distance, delta, C))
        U2 = (
            sigma**2 / sigma0**2 * distance**2
            + sigma**2 * d * mp.log(1 + (T - 1) * sigma0**2 * L**2 / (sigma**2 * d))
            + alpha * B**2
            + 4 * sigma**2 * mp.log(1 / delta)
            + sigma**2 * d * mp.log(1 + (T - 1) * L**2 / (alpha * d))
            + 2
            * mp.sqrt(alpha)
            * B
            * mp.sqrt(sigma**2 * d * mp.log(1 + (T - 1) * L**2 / (alpha * d)) + 2 * sigma**2 * mp.log(1 / delta))
        )
        outside = mp.sqrt(d * T * mp.log(1 + L**2 * T / (alpha * d)))
        return float(2 / mp.sqrt(mp.log(2)) * max(C, mp.sqrt(U2)) * outside)


def test_the_worst_case_is_the_papers_formula():
    for seed in range(300):
        T, d, sigma, B, L, c, _, _, delta = settings(seed)
        common = {"dim": d, "sigma": sigma, "norm_bound": B, "feature_norm": L, "delta": delta, "c": c}
        assert worst_case(T, **common) == pytest.approx(theorem(T, d, sigma, B, L, c, delta, L * B), rel=1e-12)
        # With C too small to matter, the radius itself is seen.
        given = worst_case(T, **common, reward_bound=1e-15)
        assert given == pytest.approx(theorem(T, d, sigma, B, L, c, delta, 1e-15), rel=1e-12)
        assert given <= worst_case(T, **common)


def test_the_general_worst_case_is_the_papers_formula_with_its_errata():
    for seed in range(300):
        T, d, sigma, B, L, _, alpha, sigma0, delta = settings(seed)
        common = {"dim": d, "sigma": sigma, "norm_bound": B, "feature_norm": L}
        common |= {"alpha": alpha, "sigma0": sigma0, "delta": delta}
        for distance, C in ((None, None), (0.0, 1e-15), (2.5 * B, 1e-15)):
            expected = general_theorem(
                T, d, sigma, B, L, alpha, sigma0, B if distance is None else distance, delta, C or L * B
            )
            ours = worst_case_general(T, **common, prior_distance=distance, reward_bound=C)
            assert ours == pytest.approx(expected, rel=1e-12)


def test_the_defaults_are_those_of_the_standard_mixture():
    options = {"dim": 3, "sigma": 0.1, "norm_bound": 2.0, "feature_norm": 1.0}
    assert worst_case(50, **options) == worst_case(50, **options, c=1.0, delta=0.01, reward_bound=2.0)
    assert worst_case_general(50, **options, alpha=0.3) == worst_case_general(
        50, **options, alpha=0.3, sigma0=1.0, prior_distance=2.0, delta=0.01, reward_bound=2.0
    )


def test_the_two_traces_are_exactly_sigma_squared_d():
    # Why the leading σ²d of the printed radius can go: tr(KΣ) + (σ²/σ₀²) tr Σ = σ²d, where two lemmas say 2σ²d.
    rng = np.random.default_rng(0)
    for sigma, sigma0 in ((0.1, 1.0), (1.0, 0.2), (3.0, 50.0)):
        Phi = rng.normal(size=(20, 6))
        K = Phi.T @ Phi
        Sigma = np.linalg.inv(K / sigma**2 + np.eye(6) / sigma0**2)
        assert np.trace(K @ Sigma) + sigma**2 / sigma0**2 * np.trace(Sigma) == pytest.approx(6 * sigma**2)


def data(rng, T, d, sigma, L):
    """Features of length at most L, some nearly all in one direction, and a parameter of length 1."""
    Phi = rng.normal(size=(T, d)) * 10.0 ** rng.uniform(-1, 1, size=d)
    Phi *= L / np.linalg.norm(Phi, axis=1, keepdims=True)
    theta = rng.normal(size=d)
    return Phi, theta / np.linalg.norm(theta), sigma * rng.normal(size=T)


def radius_in(bound, T, growth):
    """The radius that a worst case holds, given the sum of squared norms that it multiplies."""
    return bound * np.sqrt(np.log(2.0)) / (2.0 * np.sqrt(T * growth))


def test_the_radius_in_the_worst_case_bounds_every_analytic_radius():
    closest = []
    for seed in range(40):
        rng = np.random.default_rng([29, seed])
        T, d, L, c = (
            int(rng.integers(1, 60)),
            int(rng.integers(1, 6)),
            float(10 ** rng.uniform(-1, 1)),
            10 ** rng.uniform(-2, 2),
        )
        sigma, B = 0.3, 1.0
        Phi, theta, noise = data(rng, T, d, sigma, L)
        bound = worst_case(T, dim=d, sigma=sigma, norm_bound=B, feature_norm=L, delta=0.05, c=c, reward_bound=1e-15)
        U = radius_in(bound, T, d * np.log1p(c * L**2 * T / (sigma**2 * d)))
        if seed % 2:  # actions that make the log-determinant as large as it can be
            Phi = L * np.eye(d)[np.arange(T) % d]
        cs = mb.MartingaleMixture(d, sigma=sigma, norm_bound=B, delta=0.05, mixture=mb.Scaled(c))
        cs.update(Phi, Phi @ theta + noise)
        # Whatever the rewards are: a deterministic statement, so that an empty set is no excuse.
        if not cs.is_empty:
            assert cs.analytic_radius() <= U * (1 + 1e-12)
            closest.append(cs.analytic_radius() / U)
    assert len(closest) > 30
    assert max(closest) == pytest.approx(1.0, abs=1e-9)


def test_the_radius_in_the_general_worst_case_bounds_analytic_radii_with_high_probability():
    # Each of 200 paths may fail with probability δ = 1e-4: one failure is a 2 % event, and the seed is fixed.
    delta, sigma, sigma0, L, d, B, T = 1e-4, 0.3, 0.5, 1.0, 4, 1.0, 40
    closest = 0.0
    for seed in range(200):
        rng = np.random.default_rng([31, seed])
        alpha = float(10.0 ** rng.uniform(-2, 2))
        Phi, theta, noise = data(rng, T, d, sigma, L)
        theta0 = 0.5 * rng.normal(size=d)
        distance = float(np.linalg.norm(theta - theta0))
        cs = mb.MartingaleMixture(
            d, sigma=sigma, norm_bound=B, delta=delta, mixture=mb.Linear(theta0, sigma0**2 * np.eye(d))
        )
        for t in range(T):
            cs.update(Phi[t], Phi[t] @ theta + noise[t])
            # After t+1 rewards, in the bound of round t+2.
            common = {"dim": d, "sigma": sigma, "norm_bound": B, "feature_norm": L, "delta": delta, "alpha": alpha}
            bound = worst_case_general(t + 2, **common, sigma0=sigma0, prior_distance=distance, reward_bound=1e-15)
            U = radius_in(bound, t + 2, d * np.log1p(L**2 * (t + 2) / (alpha * d)))
            assert cs.analytic_radius(alpha) <= U
            closest = max(closest, cs.analytic_radius(alpha) / U)
    # Within a factor of two: a term more or less would show.
    assert closest > 0.5


@pytest.mark.parametrize("c", [0.1, 1.0])
def test_the_widths_of_a_run_sum_to_less_than_the_worst_case(c):
    d, sigma, B, rounds = 3, 0.1, 1.0, 120
    for seed in range(3):
        rng = np.random.default_rng([37, seed])
        arms = rng.normal(size=(30, d))
        arms /= np.linalg.norm(arms, axis=1, keepdims=True)
        theta = rng.normal(size=d)
        theta *= 0.8 / np.linalg.norm(theta)
        cs = mb.MartingaleMixture(d, sigma=sigma, norm_bound=B, delta=0.05, mixture=mb.Scaled(c))
        bandit = mb.UCB(cs, actions=arms, rng=seed, keep_history=True)
        widths = regret = 0.0
        for T in range(1, rounds + 1):
            widths += float(cs.upper(arms).max())
            choice = bandit.ask()
            widths -= float(cs.lower(choice.action)[0])
            regret += float((arms @ theta).max() - choice.action @ theta)
            bandit.tell(choice, float(choice.action @ theta + sigma * rng.normal()))
            bound = worst_case(T, dim=d, sigma=sigma, norm_bound=B, feature_norm=1.0, delta=0.05, c=c)
            assert regret <= widths <= bound
        reported = bandit.regret_bound()
        assert reported.widths == pytest.approx(widths, rel=1e-6)
        assert regret <= reported.hindsight
        assert reported.best == min(reported.widths, reported.hindsight)


def test_more_rounds_noise_or_confidence_cost_more():
    options = {"dim": 3, "sigma": 0.5, "norm_bound": 2.0, "feature_norm": 1.0, "delta": 0.05}
    for bound, extra in ((worst_case, {"c": 0.7}), (worst_case_general, {"alpha": 0.3, "sigma0": 2.0})):
        by_rounds = [bound(T, **options, **extra) for T in range(1, 300)]
        assert (np.diff(by_rounds) > 0.0).all()
        base = bound(100, **options, **extra)
        for name, more in (("sigma", 5.0), ("norm_bound", 9.0), ("delta", 1e-9), ("feature_norm", 9.0), ("dim", 9)):
            assert bound(100, **options | extra | {name: more}) > base, name
        # Sublinear: 10,000 times the rounds cost less than 10,000·½ times as much.
        assert bound(10**8, **options, **extra) < 0.5 * 10**4 * bound(10**4, **options, **extra)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"rounds": 0}, "rounds must be an integer ≥ 1, got 0"),
        ({"rounds": 2.5}, "rounds must be an integer ≥ 1, got 2.5"),
        ({"dim": 0}, "dim must be an integer ≥ 1, got 0"),
        ({"sigma": 0.0}, "sigma must be positive and finite, got 0.0"),
        ({"norm_bound": -1.0}, "norm_bound must be positive and finite, got -1.0"),
        ({"feature_norm": np.inf}, "feature_norm must be positive and finite, got inf"),
        ({"delta": 1.0}, "delta must lie strictly between 0 and 1, got 1.0"),
        ({"reward_bound": 0.0}, "reward_bound must be positive and finite, got 0.0"),
    ],
)
def test_bad_input_is_named(wrong, says):
    options = {"rounds": 10, "dim": 3, "sigma": 0.5, "norm_bound": 2.0, "feature_norm": 1.0} | wrong
    for bound, extra in ((worst_case, {}), (worst_case_general, {"alpha": 1.0})):
        with pytest.raises(mb.InvalidInput, match=says):
            bound(**options, **extra)


def test_what_only_one_theorem_takes_is_checked_too():
    options = {"rounds": 10, "dim": 3, "sigma": 0.5, "norm_bound": 2.0, "feature_norm": 1.0}
    for wrong, says in (
        ({"delta": 0.6}, "at most 1/2.*got 0.6"),
        ({"alpha": 0.0}, "alpha must be positive"),
        ({"sigma0": -1.0}, "sigma0 must be positive"),
        ({"prior_distance": -0.1}, r"prior_distance must lie in \[0, .*got -0.1"),
    ):
        with pytest.raises(mb.InvalidInput, match=says):
            worst_case_general(**options, **{"alpha": 1.0} | wrong)
    with pytest.raises(mb.InvalidInput, match="c must be positive"):
        worst_case(**options, c=0.0)


BOUND = RegretBound(rounds=7, widths=3.0, hindsight=2.0, proof="enumerated", hindsight_proof="enumerated", delta=0.05)


def test_the_best_bound_is_the_least_of_the_proven_ones():
    for change, best in (
        ({}, 2.0),
        ({"hindsight_proof": "search"}, 3.0),
        ({"hindsight": None, "hindsight_proof": None}, 3.0),
        ({"proof": "search", "hindsight_proof": "range"}, 2.0),
        ({"proof": "search", "hindsight_proof": "search"}, None),
        ({"widths": None, "hindsight": None, "hindsight_proof": None}, None),
        ({"trusted": False}, None),
        ({"guarantee": "bayesian"}, None),
    ):
        assert dataclasses.replace(BOUND, **change).best == best, change


def test_a_bound_says_what_it_is_worth():
    assert "at most 3" in str(BOUND)
    assert "probability at least 0.95" in str(BOUND)
    assert "NOT PROVEN" not in str(BOUND)
    assert "at most 3 (NOT PROVEN: by search)" in str(dataclasses.replace(BOUND, proof="search"))
    assert "in hindsight: not known" in str(dataclasses.replace(BOUND, hindsight=None, hindsight_proof=None))
    assert "not guaranteed" in str(dataclasses.replace(BOUND, guarantee="bayesian"))
    assert "WARNING" in str(dataclasses.replace(BOUND, trusted=False))
