"""Suspects: kernels of functions that would break the model."""

import itertools
import math

import cvxpy as cp
import numpy as np
import pytest
import scipy.stats

import mixbandit as mb
from mixbandit.sequences.refutation import least_residual
from mixbandit.sequences.suspects import _SCALES, SuspectTest, is_time_to_test

SMOOTH, ROUGH = mb.RBF(0.3) + mb.ConstantKernel(), [mb.Matern(0.5, 0.6), mb.RBF(0.1)]
KNOWN = {"sigma": 0.1, "norm_bound": 2.0, "delta": 0.1, "mixture": mb.Scaled(0.3), "on_empty": "inflate"}


def sequence(suspects=ROUGH, **changed):
    return mb.KernelMixture(SMOOTH, suspects=suspects, **{**KNOWN, **changed})


def dense_log_evalue(cs, actions, rewards, levels=None):
    """By the definition: the densities of N(0, cK + σ²I) over that of the nearest function of the model."""
    sigma, bound = cs.sigma, cs.norm_bound
    weights = np.ones(len(rewards)) if levels is None else sigma / levels
    rows = np.linalg.cholesky(SMOOTH(actions, actions) + 1e-10 * np.eye(len(actions)))
    x = cp.Variable(len(actions))
    residual = cp.Problem(
        cp.Minimize(cp.sum_squares(cp.multiply(weights, rows @ x - rewards))), [cp.norm(x) <= bound]
    ).solve()
    exponents = []
    for kernel in cs.suspects:
        for scale in _SCALES:
            covariance = scale * bound**2 * kernel(actions, actions) * np.outer(weights, weights)
            predicted = scipy.stats.multivariate_normal.logpdf(
                weights * rewards, cov=covariance + sigma**2 * np.eye(len(rewards))
            )
            at_nearest = -0.5 * residual / sigma**2 - len(rewards) * math.log(sigma * math.sqrt(2.0 * math.pi))
            exponents.append(predicted - at_nearest)
    return np.logaddexp.reduce(exponents) - math.log(len(exponents))


@pytest.mark.parametrize("seed", range(6))
def test_the_evidence_is_that_of_the_definition(seed):
    rng = np.random.default_rng(seed)
    actions, rewards = rng.uniform(size=(15, 2)), rng.normal(size=15) * 10.0 ** rng.uniform(-1, 0)
    levels = None if seed % 2 else rng.uniform(0.05, 0.3, size=15)
    cs = sequence().update(actions, rewards, levels)
    rule, data = cs.moment.rule, cs.moment.data
    test = SuspectTest(rule.suspects, cs.sigma, 0.05, cs.norm_bound)
    found = test.log_evalue(least_residual(data.spectrum, cs.norm_bound), test._costs(data))
    assert found == pytest.approx(dense_log_evalue(cs, actions, rewards, levels), rel=1e-4, abs=1e-3)


def step(actions):
    return np.where(actions[:, 0] < 0.7, 0.2 + 0.25 * actions[:, 0], -0.4)


@pytest.mark.parametrize("repeats", [1, 2])
def test_a_jump_is_seen_though_values_scatter_as_stated(repeats):
    rng = np.random.default_rng(0)
    actions = np.repeat(rng.uniform(size=(60, 1)), repeats, axis=0)
    rewards = step(actions) + 0.05 * rng.normal(size=len(actions))
    cs = sequence(sigma=0.05).update(actions, rewards)
    assert cs.suspect_refuted
    assert cs.is_refuted
    assert not cs.is_trusted
    assert "rougher ones, predict these" in str(cs.audit())
    assert not sequence([], sigma=0.05).update(actions, rewards).suspect_refuted


def test_true_assumptions_are_rarely_refuted():
    """Functions of the model of the largest norm, played where the bounds are furthest off, looked at every time."""
    alarms = 0
    for seed in range(120):
        rng = np.random.default_rng([7, seed])
        centres, weights = rng.uniform(size=(4, 1)), rng.normal(size=4)
        weights *= 2.0 / math.sqrt(weights @ SMOOTH(centres, centres) @ weights)
        cs, arms = sequence(), rng.uniform(size=(20, 1))
        truth = SMOOTH(arms, centres) @ weights
        for t in range(25):
            best = int(np.argmax(np.abs(cs.upper(arms, alpha=cs.alpha0) - truth)) if t % 2 else rng.integers(20))
            cs.update(arms[best], truth[best] + 0.1 * rng.choice([-1.0, 1.0]))
            if t % 4 == 3 and cs.suspect_refuted:
                alarms += 1
                break
    assert alarms <= 12 + 2 * math.sqrt(12)


def test_policies_look_now_and_then():
    times = [t for t in range(1, 2000) if is_time_to_test(t)]
    assert times[0] == 8
    assert 30 < len(times) < 50
    assert max(b / a for a, b in itertools.pairwise(times)) < 1.25


def test_suspects_are_stored_and_part_of_the_settings():
    cs = sequence().update([[0.1], [0.5]], [0.2, 0.1])
    again = mb.KernelMixture.from_state_dict(cs.state_dict())
    assert again.suspects == cs.suspects == tuple(ROUGH)
    assert cs.difference(sequence([])) is not None
    both = mb.KernelMixture([SMOOTH, mb.Matern(1.5, 0.5)], suspects=ROUGH, **KNOWN)
    assert mb.KernelMixture.from_state_dict(both.state_dict()).suspects == both.suspects


def test_one_kernel_of_a_list_that_explains_everything_is_enough():
    rng = np.random.default_rng(1)
    actions = rng.uniform(size=(80, 1))
    rewards = step(actions) + 0.05 * rng.normal(size=80)
    settings = {**KNOWN, "sigma": 0.05, "norm_bound": 4.0}
    alone = mb.KernelMixture(SMOOTH, suspects=ROUGH, **settings).update(actions, rewards)
    both = mb.KernelMixture([SMOOTH, mb.Matern(0.5, 0.6)], suspects=ROUGH, **settings).update(actions, rewards)
    assert alone.suspect_refuted
    assert not both.suspect_refuted


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"suspects": mb.RBF(1.0)}, "must be a list of kernels"),
        ({"suspects": [3]}, "must be a mixbandit or scikit-learn kernel"),
    ],
)
def test_what_is_not_a_list_of_kernels_is_refused(options, match):
    with pytest.raises(mb.InvalidInput, match=match):
        mb.KernelMixture(SMOOTH, sigma=0.1, norm_bound=1.0, **options)


def test_features_have_no_suspects():
    with pytest.raises(mb.InvalidInput, match="remembers actions"):
        mb.MartingaleMixture(2, sigma=0.1, norm_bound=1.0, suspects=ROUGH)


def test_costs_that_rounding_spoils_refute_nothing():
    # Next to the kernel σ² vanishes: the factor that the costs come from exists only because something was added.
    actions = np.linspace(0.0, 1.0, 60)[:, None]
    cs = sequence([mb.RBF(0.5)], sigma=1e-9).update(actions, 0.1 * SMOOTH(actions, np.array([[0.4]]))[:, 0])
    rule, data = cs.moment.rule, cs.moment.data
    costs = SuspectTest(rule.suspects, cs.sigma, 0.05, cs.norm_bound)._costs(data)
    assert costs == [math.inf] * len(_SCALES)
    assert not cs.suspect_refuted
