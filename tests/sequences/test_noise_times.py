"""The noise test from ridge regression alone, and the times at which it takes a decomposition."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

import mixbandit as mb
from mixbandit.data import Factor
from mixbandit.sequences.refutation import Glimpse, NoiseTest, is_due, scales_of


def problem(rng):
    """A test, and rewards that may contradict it: noise, norm, size of rows and multiplier vary by orders."""
    d, t = int(rng.integers(1, 21)), int(np.exp(rng.uniform(0.0, np.log(3000.0))))
    sigma, bound, delta = 10.0 ** rng.uniform(-3, 3), 10.0 ** rng.uniform(-2, 2), 10.0 ** rng.uniform(-4, -0.3)
    rows = rng.normal(size=(t, d)) * np.geomspace(1.0, 10.0 ** rng.uniform(-3, 0), d)
    rows *= 10.0 ** rng.uniform(-1.5, 1.5) * sigma / bound
    theta = rng.normal(size=d)
    theta *= bound / np.linalg.norm(theta) * rng.choice([0.0, 0.3, 1.0, 3.0])
    noise = rng.normal(size=t) if rng.random() < 0.7 else rng.standard_t(3, size=t)
    rewards = rows @ theta + sigma * rng.choice([0.3, 1.0, 1.1, 1.3, 1.7, 3.0]) * noise
    test = NoiseTest(sigma, delta, bound, scales_of(bound, d))
    alpha = test.least_alpha * 10.0 ** rng.choice([0.0, rng.uniform(-3, 3)])
    return test, Factor(d).learn(rows, rewards), alpha


def glimpse(test, data, alpha):
    ridge = data.ridge(alpha)
    towards = data.towards(alpha, test.norm_bound)
    return Glimpse(alpha, data.loss(alpha), ridge.norm2, towards, data.sizes2[0], data.dim)


def test_a_glance_never_contradicts_the_test():
    rng, seen = np.random.default_rng(0), Counter()
    for _ in range(2000):
        test, data, alpha = problem(rng)
        known = test.glance(glimpse(test, data, alpha), data.count)
        seen[known] += 1
        if known is not None:
            assert known == test.refutes(data.spectrum, data.count)
    # It would be of no use without both verdicts.
    assert min(seen[True], seen[False]) > 300
    assert seen[None] < 700


def test_a_glance_is_right_where_the_test_is_about_to_change_its_mind():
    """With δ just above and just below the e-value, a verdict from bounds on it may be missing, but not wrong."""
    rng, seen = np.random.default_rng(1), Counter()
    for _ in range(400):
        test, data, alpha = problem(rng)
        evidence = test.log_evalue(data.spectrum, data.count)
        if not 1.0 < evidence < 400.0:
            continue
        for margin, refuted in ((-1e-6, True), (1e-6, False)):
            near = NoiseTest(test.sigma, float(np.exp(-evidence - margin)), test.norm_bound, test.scales)
            known = near.glance(glimpse(near, data, alpha), data.count)
            assert known in (None, refuted)
            seen[refuted] += 1
    assert min(seen.values()) > 50


def test_any_parameter_at_all_is_never_refuted_by_a_glance():
    """Without a norm bound the estimate says nothing about the residual of others."""
    rng = np.random.default_rng(2)
    for _ in range(200):
        test, data, alpha = problem(rng)
        free = NoiseTest(test.sigma, test.delta, None, test.scales)
        ridge = data.ridge(alpha)
        seen = Glimpse(alpha, data.loss(alpha), ridge.norm2, 0.0, data.sizes2[0], data.dim)
        known = free.glance(seen, data.count)
        assert known is not True
        assert known is None or not free.refutes(data.spectrum, data.count)


def test_without_rewards_nothing_is_refuted():
    data = Factor(3)
    test = NoiseTest(1.0, 0.05, 1.0, scales_of(1.0, 3))
    assert test.glance(glimpse(test, data, 1.0), 0) is False


def first_times(dim, seed, inflation=1.3, rounds=1500):
    """The first refutations by a test in every round, and as sequences make it."""
    rng, every, due = np.random.default_rng([dim, seed]), None, None
    theta = rng.normal(size=dim)
    theta /= np.linalg.norm(theta)
    cs = mb.MartingaleMixture(dim, sigma=0.5, norm_bound=1.0, delta=0.05)
    for t in range(1, rounds + 1):
        x = rng.normal(size=dim) / np.sqrt(dim)
        cs.update(x, x @ theta + inflation * 0.5 * rng.normal())
        moment = cs.moment
        if every is None and moment.noise_refuted:
            every = t
        if moment.is_refuted:
            due = t
            break
    return every, due


@pytest.mark.parametrize(("dim", "later"), [(5, 1.35), (20, 1.1)])
def test_first_refutations_are_hardly_later_than_with_a_test_in_every_round(dim, later):
    """At 1.3σ; times that grow by a tenth cost at most that, unless the evidence is lost again in between."""
    found = np.array([first_times(dim, seed) for seed in range(5)], dtype=np.float64)
    assert (found[:, 0] <= found[:, 1]).all()
    assert np.median(found[:, 1]) <= later * np.median(found[:, 0])


def test_decompositions_become_rare():
    due = [t for t in range(1, 100_001) if is_due(t)]
    assert due[0] == 1
    assert len(due) <= np.log(1e5) / np.log(1.1) + 1
    for earlier, later in pairwise(due):
        assert later <= max(1.1 * earlier + 1.0, earlier + 1)


def test_a_batch_is_due_where_one_of_its_rewards_was():
    rng = np.random.default_rng(3)
    due = np.cumsum([is_due(t) for t in range(2001)])
    for _ in range(500):
        first, last = np.sort(rng.integers(0, 2001, size=2))
        if last > first:
            assert is_due(int(last), int(last - first)) == (due[last] > due[first])
    assert not is_due(0, 0)
    assert not is_due(50, 0)


def test_the_noise_of_one_arm_is_refuted_when_that_of_its_own_sequence_is():
    """`Blocks` makes the tests of each arm at the times of its own rewards, at its own part of δ."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        blocks = mb.Blocks(mb.MartingaleMixture(2, sigma=0.2, norm_bound=1.0, delta=0.1), 3)
        alone, first = mb.MartingaleMixture(2, sigma=0.2, norm_bound=1.0, delta=0.1 / 6), None
        for _ in range(600):
            arm, x = int(rng.integers(3)), rng.normal(size=2)
            reward = 0.3 * x[0] + (0.4 if arm == 1 else 0.2) * rng.normal()
            blocks.update([*x, arm], reward)
            if arm == 1:
                alone.update(x, reward)
                if alone.moment.is_refuted:
                    first = alone.moment.refutation
            assert (blocks.moment.refutation is not None) == (first is not None)
            if first is not None:
                assert blocks.moment.refutation == f"{first}, for arm 1"
                break
        assert first is not None
