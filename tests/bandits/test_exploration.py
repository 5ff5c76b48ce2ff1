"""Acting on estimate + exploration·(upper bound − estimate): by ridge estimates, and before any range limits it."""

import numpy as np
import pytest

import mixbandit as mb
from mixbandit.bandits import Optimism
from mixbandit.integrations.mabwiser import MixBanditMAB

ARMS = np.random.default_rng(0).normal(size=(10, 4)) / 2.0
THETA = np.array([0.4, -0.2, 0.3, 0.1])


def learnt(norm_bound, **options):
    sequence = mb.MartingaleMixture(4, sigma=0.3, norm_bound=norm_bound, delta=0.05, **options)
    rng = np.random.default_rng(1)
    rows = ARMS[rng.integers(10, size=30)]
    return sequence.update(rows, rows @ THETA + 0.3 * rng.normal(size=30))


@pytest.mark.parametrize("bounds", [None, (-0.1, 0.1)])
@pytest.mark.parametrize("norm_bound", [0.6, 5.0])
def test_scores_lie_between_the_ridge_estimate_and_the_upper_bound(norm_bound, bounds):
    free = learnt(norm_bound)
    moment = learnt(norm_bound, reward_range=bounds, on_empty="inflate").moment
    rows = ARMS
    estimate = moment.closed_form.scaled(0.0).maximum(rows)
    # Ridge regression by hand, at the multiplier of the closed form.
    rng = np.random.default_rng(1)
    played = ARMS[rng.integers(10, size=30)]
    rewards = played @ THETA + 0.3 * rng.normal(size=30)
    ridge = np.linalg.solve(played.T @ played + moment.alpha0 * np.eye(4), played.T @ rewards)
    np.testing.assert_allclose(estimate, rows @ ridge, rtol=1e-9, atol=1e-12)
    for e in (0.0, 0.1, 0.7, 1.0, 1.5):
        score = Optimism(None, e).score(moment)
        expected = rows @ ridge + e * (free.upper(rows) - rows @ ridge)
        np.testing.assert_allclose(score.maximum(rows), expected, rtol=1e-8, atol=1e-10)
        found, step = score.support(rows), 1e-6
        for i in range(4):
            moved = rows + step * np.eye(4)[i]
            slope = (score.maximum(moved) - score.maximum(rows)) / step
            np.testing.assert_allclose(found.points[:, i], slope, atol=1e-4)


def clicks(norm_bound, exploration, rounds=400):
    earned = 0.0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        bandit = mb.CMMUCB(4, actions=ARMS, sigma=0.3, norm_bound=norm_bound, exploration=exploration, rng=seed)
        for _ in range(rounds):
            choice = bandit.ask()
            bandit.tell(choice, float(choice.action @ THETA + 0.3 * rng.normal()))
            earned += float(choice.action @ THETA)
    return earned


def test_a_tighter_norm_bound_does_not_earn_less():
    assert clicks(0.56, 0.1) >= 0.97 * clicks(5.0, 0.1)  # 0.56 > ‖θ‖ = 0.548


def test_mabwiser_explores_less_with_a_range_as_it_does_without():
    rng = np.random.default_rng(3)
    arms, decisions = list(range(5)), rng.integers(5, size=40)
    rewards = (rng.uniform(size=40) < 0.1 + 0.1 * decisions).astype(float)
    stated = {"sigma": 0.5, "norm_bound": 1.0, "seed": 1}
    for exploration in (0.0, 0.1, 0.5, 1.0):
        chosen = []
        for options in ({}, {"reward_range": (0.0, 1.0)}):
            mab = MixBanditMAB(arms, exploration=exploration, **stated, **options)
            mab.fit(decisions, rewards)
            chosen.append(mab.predict())
        assert chosen[0] == chosen[1]
    assert all(0.0 <= low <= high <= 1.0 for low, high in mab.predict_interval().values())
