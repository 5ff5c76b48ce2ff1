"""A user's response: gradients, imagined rewards and bounds are those of rewards, not of what is under the link."""

import numpy as np
import pytest

import mixbandit as mb
from mixbandit.bandits import persistent
from tests.extending.outside.prices import Prices

SIGMA = 0.3
FEATURES = mb.RandomFourier(dim_in=2, dim=6, lengthscale=0.7, rng=1)
THETA = np.array([1.2, -0.4, 0.3, 1.0, -0.8, 0.5])
RANGE = (0.0, 30.0)
SHOWN = np.random.default_rng(5).uniform(size=(6, 2))


def expected(actions):
    return np.exp(FEATURES(actions) @ THETA)


def told(actions, rng):
    return expected(actions) * np.exp(SIGMA * rng.normal(size=len(actions)) - 0.5 * SIGMA**2)


def fresh(**more):
    return Prices(FEATURES, sigma=SIGMA, norm_bound=2.5, reward_range=RANGE, delta=0.05, **more)


@pytest.fixture(scope="module")
def taught():
    rng = np.random.default_rng(0)
    actions = rng.uniform(size=(60, 2))
    return fresh().update(actions, told(actions, rng))


@pytest.mark.parametrize("alpha", [None, 0.05])
def test_gradients_are_those_of_the_bounds(taught, alpha):
    step = 1e-6
    differences = [
        (taught.upper(SHOWN + step * e, alpha) - taught.upper(SHOWN - step * e, alpha)) / (2 * step) for e in np.eye(2)
    ]
    found = taught.support(SHOWN, alpha)
    assert not (found.case == "range").any()
    np.testing.assert_allclose(found.grad, np.transpose(differences), rtol=1e-5, atol=1e-6)


def test_the_gradient_of_a_bound_that_the_range_cuts_is_zero():
    found = Prices(FEATURES, sigma=SIGMA, norm_bound=2.5, reward_range=(0.0, 2.0)).support(SHOWN)
    cut = found.case == "range"
    assert cut.any()
    assert (found.grad[cut] == 0.0).all()
    assert (found.value[cut] == 2.0).all()


def test_bounds_contain_the_truth_at_all_times():
    missed, runs = 0, 40
    for seed in range(runs):
        rng, cs, inside = np.random.default_rng(seed), fresh(), True
        for _ in range(20):
            actions = rng.uniform(size=(2, 2))
            cs.update(actions, told(actions, rng))
            truth = expected(SHOWN)
            inside &= bool((cs.lower(SHOWN) <= truth).all() and (truth <= cs.upper(SHOWN)).all())
        missed += not inside
    assert missed / runs <= 0.05


def test_what_is_learnt_has_the_logarithm_of_the_expected_reward_as_its_mean():
    actions = np.repeat(SHOWN, 1000, axis=0)
    cs = fresh().update(actions, told(actions, np.random.default_rng(7)))
    estimate = cs.moment.response.reward(cs.moment.estimate.maximum(cs.moment.directions(SHOWN)))
    np.testing.assert_allclose(estimate, expected(SHOWN), rtol=0.04)  # σ²/2 would be 0.045


def test_pending_choices_return_rewards_in_their_own_units():
    rng = np.random.default_rng(1)
    bandit = mb.UCB(fresh(), mb.Box([0.0, 0.0], [1.0, 1.0]), rng=0)
    for _ in range(30):
        choice = bandit.ask()
        bandit.tell(choice, told(choice.action[None], rng)[0])
    imagined = bandit.moment.response.reward(bandit.moment.estimate.maximum(bandit.moment.directions(SHOWN)))
    np.testing.assert_allclose(imagined, expected(SHOWN), rtol=1.0)  # e-fold errors would not pass
    bandit.ask(n=3)
    bandit.ask()
    known = bandit.state.anticipated.known.belief
    rows = np.array([choice.row for choice in persistent.values(bandit.state.pending)])[: known.t - bandit.moment.t]
    assert len(rows) >= 3
    before, after = (
        each.response.reward(each.estimate.maximum(each.directions(rows))) for each in (bandit.moment, known)
    )
    # One that took the index for a reward would learn ln 1 = 0 where the expected reward is e.
    np.testing.assert_allclose(after, before, rtol=SIGMA**2)


def test_certificates_are_about_rewards(taught):
    means = expected(SHOWN)
    found = mb.UCB(taught.copy(), SHOWN, rng=0).certificate()
    best = int(np.flatnonzero((found.action == SHOWN).all(axis=1))[0])
    assert found.lower <= means[best] <= found.upper
    assert found.optimum_upper >= means.max()
    assert means.max() - means[best] <= found.gap
    over = mb.UCB(taught.copy(), mb.Box([0.0, 0.0], [1.0, 1.0]), rng=0).certificate()
    assert over.proof == "branch-and-bound"
    grid = np.stack(np.meshgrid(*[np.linspace(0.0, 1.0, 60)] * 2), axis=-1).reshape(-1, 2)
    assert over.optimum_upper >= taught.upper(grid).max()
    assert expected(grid).max() - expected(over.action[None])[0] <= over.gap


def test_the_difference_bounds_every_difference():
    response = fresh().moment.response
    rng = np.random.default_rng(0)
    low = rng.uniform(-4.0, np.log(RANGE[1]), size=2000)
    high = np.minimum(low + rng.exponential(size=2000), np.log(RANGE[1]))
    apart = np.exp(high) - np.exp(low)
    assert all(response.difference(float(gap)) >= d - 1e-9 for gap, d in zip(high - low, apart, strict=True))
    assert response.difference(0.0) == response.difference(-1.0) == 0.0


def test_a_bound_for_linear_rewards_is_not_claimed():
    bandit = mb.UCB(fresh(), SHOWN, rng=0)
    assert "No a priori regret bound" in bandit.guarantee
    assert "logarithm" in bandit.guarantee
    assert bandit.moment.sums_up is False
    with pytest.raises(mb.InvalidInput, match="rewards must be positive"):
        bandit.learn(SHOWN[:1], [0.0])
    assert bandit.sequence.t == 0
