"""Noise of a level that nobody states: against its definition, and in simulation."""

import math

import numpy as np
import pytest
from mpmath import mp
from scipy.stats import binomtest

import mixbandit as mb


def log_density(Phi, r, norm_bound):
    """ln p(r) from its t×t definition, an average of multivariate t densities, with 60 digits: c reaches 1e12."""
    with mp.workdps(60):
        rows, t = mp.matrix(Phi.tolist()), len(r)
        values, vectors = mp.eigsy(rows * rows.T)
        turned = [mp.fsum(vectors[i, k] * mp.mpf(float(r[i])) for i in range(t)) for k in range(t)]
        total = mp.mpf(0)
        for c in (mp.mpf(10) ** k for k in range(-2, 13)):
            quadratic = mp.fsum(z**2 / (1 + c * s) for z, s in zip(turned, values, strict=True))
            determinant = mp.fprod(1 + c * s for s in values)
            for b0 in (mp.mpf(norm_bound) ** 2 * mp.mpf(10) ** k for k in range(-16, 3)):
                # One degree of freedom, and the shape 2b₀(I + cΦΦᵀ).
                density = mp.gamma(mp.mpf(t + 1) / 2) / mp.gamma(mp.mpf(1) / 2) / (2 * b0 * mp.pi) ** (mp.mpf(t) / 2)
                total += density / mp.sqrt(determinant) * (1 + quadratic / (2 * b0)) ** (-mp.mpf(t + 1) / 2)
        return float(mp.log(total / (15 * 19)))


def problem(seed, t, d, sigma=0.3):
    rng = np.random.default_rng([23, seed])
    theta = rng.normal(size=d) / np.sqrt(d)
    Phi = rng.normal(size=(t, d))
    return Phi, Phi @ theta + sigma * rng.normal(size=t), theta, rng


@pytest.mark.parametrize(("t", "d"), [(1, 1), (2, 4), (6, 3), (12, 2)])
@pytest.mark.parametrize("sigma", [1.0, 0.05])
def test_radius_and_evalue_follow_their_definitions(t, d, sigma):
    Phi, r, theta, rng = problem(t, t, d, sigma)
    cs = mb.UnknownNoise(d, norm_bound=3.0, delta=0.05).update(Phi, r)
    density = log_density(Phi, r, 3.0)
    radius2 = t / (2 * math.pi) * math.exp(2 / t * (math.log(20.0) - density) - 1)
    most = 4 * (np.linalg.norm(Phi, 2) * 3.0 + np.linalg.norm(r)) ** 2
    # Beyond what any parameter of the norm ball can reach, the radius does not matter.
    assert cs.radius**2 == pytest.approx(min(radius2, most), rel=1e-4)
    for point in (theta, np.zeros(d), rng.normal(size=d)):
        residual = float(np.sum((Phi @ point - r) ** 2))
        # The likelihood, maximised over the level by brute force.
        levels = np.sqrt(residual / t) * np.geomspace(0.5, 2.0, 20_001)
        likelihood = np.max(-t * np.log(levels) - residual / (2 * levels**2)) - 0.5 * t * math.log(2 * math.pi)
        assert cs.log_evalue(point) == pytest.approx(density - likelihood, rel=1e-4, abs=1e-4)
        if np.linalg.norm(point) <= 3.0 and radius2 < most:
            assert cs.contains(point) == (cs.log_evalue(point) <= math.log(20.0))


def test_bounds_scale_with_rewards_and_norm_bound():
    Phi, r, _, rng = problem(0, 40, 3)
    queries = rng.normal(size=(5, 3))
    base = mb.UnknownNoise(3, norm_bound=2.0).update(Phi, r)
    for unit in (1e-8, 1e8):
        scaled = mb.UnknownNoise(3, norm_bound=2.0 * unit).update(Phi, unit * r)
        np.testing.assert_allclose(scaled.upper(queries), unit * base.upper(queries), rtol=1e-8)


@pytest.mark.parametrize(("sigma", "norm_bound"), [(1.0, 1.0), (0.1, 10.0), (1e-3, 1.0), (1e-5, 1.0), (1e-5, 100.0)])
def test_not_knowing_the_level_costs_little(sigma, norm_bound):
    """At most a quarter more width at t = 300, d = 5, from the size of the parameter to 1e-5 of it."""
    ratios = []
    for seed in range(10):
        Phi, _, theta, rng = problem(seed, 300, 5)
        theta /= np.linalg.norm(theta)
        r = Phi @ theta + sigma * rng.normal(size=300)
        queries = rng.normal(size=(10, 5))
        unknown = mb.UnknownNoise(5, norm_bound=norm_bound, delta=0.05).update(Phi, r)
        known = mb.MartingaleMixture(5, sigma=sigma, norm_bound=norm_bound, delta=0.05).update(Phi, r)
        widths = [cs.upper(queries) - cs.lower(queries) for cs in (unknown, known)]
        ratios.append(np.mean(widths[0] / widths[1]))
    assert np.mean(ratios) < 1.25


@pytest.mark.parametrize("rewards", [0.0, 1.0], ids=["nothing but zeros", "exact ones"])
def test_data_without_any_noise_are_no_trouble(rewards):
    cs = mb.UnknownNoise(2, norm_bound=2.0)
    assert cs.upper([1.0, 0.0])[0] == 2.0
    assert cs.log_evalue([0.3, 0.4]) == 0.0
    for _ in range(50):
        cs.update([1.0, 0.0], rewards)
        assert cs.lower([1.0, 0.0])[0] <= rewards <= cs.upper([1.0, 0.0])[0]
    assert cs.upper([1.0, 0.0])[0] - cs.lower([1.0, 0.0])[0] < 1e-6
    assert cs.upper([0.0, 1.0])[0] == pytest.approx(math.sqrt(4.0 - rewards**2), abs=1e-6)  # never measured
    assert cs.log_evalue([rewards, 0.0]) < -500.0


@pytest.mark.parametrize("norm_bound", [1e-6, 1.0, 1e6])
def test_without_data_the_closed_form_is_the_norm_bound_in_any_unit(norm_bound):
    cs = mb.UnknownNoise(2, norm_bound=norm_bound)
    assert cs.upper([1.0, 0.0], alpha=cs.alpha0)[0] == pytest.approx(norm_bound, rel=1e-6)


def test_no_more_rewards_than_features_say_little():
    Phi, r, _, _ = problem(0, 4, 4)
    cs = mb.UnknownNoise(4, norm_bound=1.0).update(Phi, r / 10)
    assert cs.upper(np.eye(4)[0])[0] > 0.95


def test_a_norm_bound_that_is_too_small_is_refuted():
    Phi, r, theta, _ = problem(0, 200, 3, sigma=0.1)
    size = float(np.linalg.norm(theta))
    cs = mb.UnknownNoise(3, norm_bound=0.3 * size, on_empty="inflate").update(Phi, r)
    assert cs.is_empty
    audit = cs.audit()
    assert 0.8 * size < audit.least_norm_bound <= size
    assert "REFUTED" in str(audit)
    assert "sigma" not in str(audit)
    assert not mb.UnknownNoise(3, norm_bound=size).update(Phi, r).is_empty


def test_levels_of_single_rewards_are_refused():
    cs = mb.UnknownNoise(2, norm_bound=1.0)
    with pytest.raises(mb.InvalidInput, match="noise levels of single rewards"):
        cs.update([[1.0, 0.0]], [0.1], sigma=0.2)
    assert cs.t == 0


def test_misspecification_widens_and_forbids_e_values():
    Phi, r, _, _ = problem(0, 60, 3)
    plain, allowed = (mb.UnknownNoise(3, norm_bound=3.0, misspecification=e).update(Phi, r) for e in (0.0, 0.1))
    assert allowed.upper(np.eye(3)[0])[0] > plain.upper(np.eye(3)[0])[0] + 0.1
    with pytest.raises(mb.InvalidInput, match="misspecification=0"):
        allowed.log_evalue(np.zeros(3))


def misses(noise, runs, *, d=3, t=60, delta=0.1, chasing=True):
    """Runs in which θ* was ever outside, with a design that chases the error."""
    missed = 0
    for run in range(runs):
        rng = np.random.default_rng([31, run])
        theta = rng.normal(size=d)
        theta /= np.linalg.norm(theta)
        cs, Phi, r = mb.UnknownNoise(d, norm_bound=1.5, delta=delta), np.empty((0, d)), np.empty(0)
        for _ in range(t):
            x = rng.normal(size=d)
            if chasing and len(r) >= d:  # where the estimate is most wrong
                error = np.linalg.lstsq(Phi, r, rcond=None)[0] - theta
                x = error / max(np.linalg.norm(error), 1e-300) * np.linalg.norm(x)
            reward = x @ theta + noise(rng)
            Phi, r = np.vstack((Phi, x)), np.append(r, reward)
            cs.update(x, reward)
            if not cs.contains(theta):
                missed += 1
                break
    return missed


@pytest.mark.parametrize("sigma", [0.5, 1e-4])
def test_it_covers_under_gaussian_noise_of_any_level(sigma):
    missed = misses(lambda rng: sigma * rng.normal(), 60)
    assert binomtest(missed, 60, 0.1, alternative="greater").pvalue > 0.001


@pytest.mark.heavy
@pytest.mark.parametrize("sigma", [3.0, 0.3, 1e-3, 1e-6])
@pytest.mark.parametrize("chasing", [True, False])
def test_it_covers_under_gaussian_noise_over_a_thousand_runs(sigma, chasing):
    missed = misses(lambda rng: sigma * rng.normal(), 1000, chasing=chasing)
    assert binomtest(missed, 1000, 0.1, alternative="greater").pvalue > 0.001


def test_its_claim_ends_at_yes_or_no_results():
    """What the documentation says of it: with rare failures it is wrong far more often than δ."""
    missed = 0
    for run in range(60):
        rng = np.random.default_rng([37, run])
        cs = mb.UnknownNoise(1, norm_bound=1.5, delta=0.05)
        for _ in range(80):
            cs.update([1.0], float(rng.uniform() < 0.99))
            if not cs.contains([0.99]):
                missed += 1
                break
    assert missed > 20


def test_policies_act_on_it_but_those_that_need_a_level():
    rng = np.random.default_rng(0)
    arms, theta = rng.normal(size=(8, 3)), np.array([0.5, -0.3, 0.1])
    policy = mb.UCB(mb.UnknownNoise(3, norm_bound=1.0, delta=0.05), arms, rng=0)
    for _ in range(40):
        choice = policy.ask()
        policy.tell(choice, float(choice.action @ theta) + 0.01 * rng.normal())
    found = policy.certificate()
    np.testing.assert_array_equal(found.action, arms[np.argmax(arms @ theta)])
    assert found.proven
    assert found.gap < 0.05
    for kind in (mb.ThompsonSampling, mb.InformationDirected):
        with pytest.raises(mb.NoTheory, match="unknown noise"):
            kind(mb.UnknownNoise(3, norm_bound=1.0), arms)
