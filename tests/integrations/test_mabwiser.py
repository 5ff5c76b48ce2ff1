"""MABWiser's interface, without MABWiser; tests/benchmarks/test_mabwiser_side_by_side.py has both."""

import copy
import itertools
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import mixbandit as mb
from mixbandit.bandits import Greedy, Uniform
from mixbandit.integrations.mabwiser import MixBanditMAB
from tests.battery.odd_values import raising

ARMS = ["red", "green", "blue"]
STATED = {"sigma": 0.2, "norm_bound": 1.0, "delta": 0.05}
WIDTH = 4


def log(n=120, arms=ARMS, seed=0):
    """Decisions at random, rewards and contexts, and the parameters behind them."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=(len(arms), WIDTH))
    theta /= np.linalg.norm(theta, axis=1)[:, None]
    contexts, numbers = rng.normal(size=(n, WIDTH)), rng.integers(len(arms), size=n)
    rewards = (contexts * theta[numbers]).sum(axis=1) + STATED["sigma"] * rng.normal(size=n)
    return [arms[number] for number in numbers], rewards, contexts, dict(zip(arms, theta, strict=True))


@pytest.fixture
def fitted():
    mab = MixBanditMAB(ARMS, **STATED)
    mab.fit(*log()[:3])
    return mab


def ends(mab, contexts=None):
    """Intervals as an array (n, K, 2)."""
    found = mab.predict_interval(contexts)
    return np.array([list(row.values()) for row in (found if isinstance(found, list) else [found])])


def known(mab):
    """What a failed call must not change."""
    learnt = {arm: policy.moment.t for arm, policy in mab.policies.items()}
    return mab.arms, learnt, ends(mab, np.eye(WIDTH)).tolist()


@pytest.mark.parametrize("policy", [mb.CMMUCB, mb.AMMUCB, mb.OFUL, Greedy])
def test_an_arm_plays_by_bounds_from_its_own_rewards(policy):
    decisions, rewards, contexts, _ = log()
    mab = MixBanditMAB(ARMS, policy, **STATED)
    mab.fit(decisions, rewards, contexts)
    fresh = np.random.default_rng(1).normal(size=(20, WIDTH))
    scores = []
    for number, arm in enumerate(ARMS):
        own = np.array(decisions) == arm
        stated = {**STATED, "delta": STATED["delta"] / 6}
        if policy is mb.OFUL:
            alone, alpha = mb.OFULSequence(WIDTH, **stated), None
        else:
            alone, alpha = mb.MartingaleMixture(WIDTH, **stated), STATED["sigma"] ** 2
        alpha = None if policy is mb.CMMUCB else alpha
        alone.update(contexts[own], rewards[own])
        lower, upper = alone.lower(fresh, alpha=alpha), alone.upper(fresh, alpha=alpha)
        np.testing.assert_allclose(ends(mab, fresh)[:, number], np.stack((lower, upper), axis=1), rtol=1e-9)
        scores.append((lower + upper) / 2 if policy is Greedy else upper)
    assert mab.predict(fresh) == [ARMS[best] for best in np.argmax(scores, axis=0)]


def test_expectations_are_ridge_estimates():
    decisions, rewards, contexts, _ = log()
    mab = MixBanditMAB(ARMS, **STATED)
    mab.fit(decisions, rewards, contexts)
    x = np.array([[0.3, -0.2, 0.5, 0.1]])
    for arm, found in mab.predict_expectations(x).items():
        own = np.array(decisions) == arm
        gram = contexts[own].T @ contexts[own] + STATED["sigma"] ** 2 * np.eye(WIDTH)
        assert found == pytest.approx(x[0] @ np.linalg.solve(gram, contexts[own].T @ rewards[own]), rel=1e-9)


def test_fitting_in_parts_is_fitting_at_once(fitted):
    decisions, rewards, contexts, _ = log()
    parts = MixBanditMAB(ARMS, **STATED)
    for start in range(0, len(rewards), 7):
        part = slice(start, start + 7)
        parts.partial_fit(decisions[part], rewards[part], contexts[part])
    fresh = np.random.default_rng(1).normal(size=(5, WIDTH))
    np.testing.assert_allclose(ends(parts, fresh), ends(fitted, fresh), rtol=1e-9)
    assert parts.predict(fresh) == fitted.predict(fresh)
    fitted.fit(decisions[:10], rewards[:10], contexts[:10])
    assert sum(policy.moment.t for policy in fitted.policies.values()) == 10


def test_tables_and_series_are_welcome(fitted):
    decisions, rewards, contexts, _ = log()
    tables = MixBanditMAB(ARMS, **STATED)
    tables.fit(pd.Series(decisions), pd.Series(rewards), pd.DataFrame(contexts))
    assert tables.predict_interval(pd.DataFrame(contexts[:3])) == fitted.predict_interval(contexts[:3])
    assert tables.predict_interval(pd.Series(contexts[0])) == fitted.predict_interval(contexts[:1])
    tables.partial_fit(["red"], [0.1], pd.Series(contexts[0]))
    one_feature = MixBanditMAB([1, 2], **STATED)
    one_feature.fit(np.array([1, 2, 1]), [0.1, 0.2, 0.3], pd.Series([0.5, 0.6, 0.7]))
    assert len(one_feature.predict(pd.Series([0.5, 0.6]))) == 2


def test_adding_an_arm_changes_nothing_for_the_others_and_is_paid_for(fitted):
    fresh = np.random.default_rng(1).normal(size=(6, WIDTH))
    before, played = ends(fitted, fresh), fitted.predict(fresh)
    shares = [policy.sequence.delta for policy in fitted.policies.values()]
    for number in range(200):
        fitted.add_arm(f"new {number}")
    np.testing.assert_array_equal(ends(fitted, fresh)[:, : len(ARMS)], before)
    after = [policy.sequence.delta for policy in fitted.policies.values()]
    assert after[: len(ARMS)] == shares
    assert 0.99 * STATED["delta"] < sum(after) <= STATED["delta"]
    # Nothing is known about new arms but their norm bound, which is what makes them attractive.
    assert ends(fitted, fresh)[:, -1] == pytest.approx(np.linalg.norm(fresh, axis=1)[:, None] * [[-1.0, 1.0]])
    assert played != fitted.predict(fresh)


def test_a_removed_arm_is_not_offered_and_comes_back_with_what_was_learnt(fitted):
    x = np.full((1, WIDTH), 0.3)
    before = fitted.predict_interval(x)
    fitted.remove_arm("green")
    assert fitted.arms == ["red", "blue"]
    assert list(fitted.predict_interval(x)) == ["red", "blue"]
    assert {fitted.predict(row) for row in np.random.default_rng(0).normal(size=(20, WIDTH))} <= {"red", "blue"}
    fitted.add_arm("green")
    assert fitted.predict_interval(x) == before
    fitted.remove_arm("green")
    fitted.partial_fit(["green"], [0.0], x)  # a late reward
    fitted.add_arm("green")
    assert fitted.predict_interval(x)["green"] != before["green"]


def test_plain_arms():
    mab = MixBanditMAB([1, 2], sigma=0.5, norm_bound=1.0, reward_range=(0, 1))
    mab.add_arm(3)
    mab.fit([1, 1, 2, 2], [True, False, 1, 0])
    assert not mab.is_contextual
    assert mab.predict() in (1, 2, 3)
    assert len(mab.predict([[0.0], [0.0]])) == 2  # as MABWiser: as many predictions as contexts
    assert mab.predict_interval()[3] == (0.0, 1.0)
    for _ in range(20):
        mab.partial_fit([1] * 50 + [2] * 50 + [3] * 50, [1, 0] * 25 + [0] * 50 + [1] * 50)
    assert mab.predict() == 3
    assert mab.predict_expectations() == pytest.approx({1: 0.5, 2: 0.0, 3: 1.0}, abs=0.01)
    assert mab.predict_interval()[2][1] < mab.predict_interval()[1][0]


def test_ties_are_broken_at_random_and_the_same_way_until_rewards_come():
    first = [MixBanditMAB(ARMS, **STATED, seed=seed) for seed in range(40)]
    for mab in first:
        mab.fit([], [])
        assert len({mab.predict() for _ in range(5)}) == 1
    assert {mab.predict() for mab in first} == set(ARMS)


@pytest.mark.heavy
def test_bounds_hold_at_all_times_while_arms_come_and_go():
    """At most δ of the runs ever miss, though arms are removed when they look bad, and others added."""
    runs, misses = 150, 0
    for run in range(runs):
        rng = np.random.default_rng(run)
        theta = {arm: rng.normal(size=2) for arm in [*ARMS, "late"]}
        theta = {arm: vector / np.linalg.norm(vector) for arm, vector in theta.items()}
        mab = MixBanditMAB(ARMS, mb.AMMUCB, sigma=1.0, norm_bound=1.0, delta=0.2, seed=run)
        mab.fit(ARMS, rng.normal(size=3) + [theta[arm][0] for arm in ARMS], [[1.0, 0.0]] * 3)
        missed = False
        for t in range(40):
            x = rng.normal(size=(1, 2))
            arm = mab.predict(x)
            mab.partial_fit([arm], [x[0] @ theta[arm] + rng.normal()], x)
            if t == 15:
                expected = mab.predict_expectations(x)
                mab.remove_arm(min(expected, key=expected.get))
            if t == 20:
                mab.add_arm("late")
            probes = np.vstack((x, np.eye(2)))
            truth = probes @ np.array([theta[arm] for arm in mab.arms]).T
            found = ends(mab, probes)
            missed |= bool(((truth < found[..., 0]) | (truth > found[..., 1])).any())
        misses += missed
    assert stats.binomtest(misses, runs, 0.2, alternative="greater").pvalue > 0.001


def test_one_set_for_all_arms_would_be_three_times_as_wide():
    arms = list(range(10))
    decisions, rewards, contexts, _ = log(n=1000, arms=arms)
    mab = MixBanditMAB(arms, **STATED)
    mab.fit(decisions, rewards, contexts)
    together = mb.MartingaleMixture(mb.Disjoint(WIDTH, 10), **{**STATED, "norm_bound": np.sqrt(10.0)})
    together.update(np.column_stack((contexts, decisions)), rewards)
    rows = np.column_stack((np.tile(contexts[0], (10, 1)), arms))
    apart = np.diff(ends(mab, contexts[:1])[0], axis=1)[:, 0]
    assert 2.0 < np.mean(together.upper(rows) - together.lower(rows)) / np.mean(apart) < 4.0


def test_copies_and_pickles_are_independent(fitted):
    x, before = np.full((1, WIDTH), 0.3), known(fitted)
    for twin in (copy.deepcopy(fitted), pickle.loads(pickle.dumps(fitted))):
        assert twin.predict_interval(x) == fitted.predict_interval(x)
        twin.partial_fit(["red"], [0.0], x)
        assert twin.predict_interval(x) != fitted.predict_interval(x)
    assert known(fitted) == before


@pytest.mark.parametrize(
    "call",
    [
        lambda mab: mab.partial_fit(["red"], [0.1]),
        lambda mab: mab.partial_fit(["red"], [0.1], [[0.1]]),
        lambda mab: mab.partial_fit(["red", "green"], [0.1, np.nan], np.ones((2, WIDTH))),
        lambda mab: mab.partial_fit(["red", "green"], [0.1], np.ones((2, WIDTH))),
        lambda mab: mab.partial_fit(["red", "green"], [0.1, 0.2], np.ones((3, WIDTH))),
        lambda mab: mab.partial_fit(["red", "pink"], [0.1, 0.2], np.ones((2, WIDTH))),
        lambda mab: mab.partial_fit("red", [0.1], np.ones((1, WIDTH))),
        lambda mab: mab.partial_fit([["red"]], [0.1], np.ones((1, WIDTH))),
        lambda mab: mab.partial_fit(["red"], [0.1], np.full((1, WIDTH), np.inf)),
        lambda mab: mab.partial_fit(["red", "green"], [0.1, 0.2], [[0.1] * WIDTH, [1e80] * WIDTH]),
        lambda mab: mab.fit(["red"], ["much"], np.ones((1, WIDTH))),
        lambda mab: mab.fit(["red"], [0.1], np.ones((1, WIDTH, 2))),
        lambda mab: mab.fit(None, [0.1]),
        lambda mab: mab.predict(),
        lambda mab: mab.predict(np.ones((2, WIDTH + 1))),
        lambda mab: mab.predict(np.empty((0, WIDTH))),
        lambda mab: mab.predict_interval("abcd"),
        lambda mab: mab.add_arm("red"),
        lambda mab: mab.add_arm(None),
        lambda mab: mab.add_arm(float("nan")),
        lambda mab: mab.add_arm(["list"]),
        lambda mab: mab.remove_arm("pink"),
        lambda mab: mab.remove_arm(np.ones((2, 2))),
        lambda mab: mab.remove_arm(raising("__eq__")),
        lambda mab: mab.partial_fit(itertools.count(), [0.1]),
    ],
)
def test_bad_input_is_refused_and_changes_nothing(fitted, call):
    before = known(fitted)
    with pytest.raises(mb.MixbanditError):
        call(fitted)
    assert known(fitted) == before


@pytest.mark.parametrize(
    ("arms", "settings"),
    [
        ([], {}),
        ("ab", {}),
        (["a", "a"], {}),
        ([None], {}),
        (["a"], {"sigma": -1.0}),
        (["a"], {"norm_bound": 0.0}),
        (["a"], {"delta": 1.5}),
        (["a"], {"seed": -1}),
        (["a"], {"learning_policy": "CMMUCB"}),
        (["a"], {"learning_policy": mb.UCB}),
        (["a"], {"learning_policy": mb.FreqTS}),
        (["a"], {"learning_policy": mb.IDS}),
        (["a"], {"learning_policy": Uniform}),
        (["a"], {"learning_policy": mb.OFUL, "reward_range": (0, 1)}),
    ],
)
def test_bad_settings_are_refused(arms, settings):
    with pytest.raises(mb.MixbanditError):
        MixBanditMAB(arms, **{**STATED, **settings})


def test_nothing_is_predicted_before_fit_and_one_arm_stays():
    mab = MixBanditMAB(["only"], **STATED)
    for ask in (mab.predict, mab.predict_expectations, mab.predict_interval, lambda: mab.policies):
        with pytest.raises(mb.InvalidInput, match="fit"):
            ask()
    with pytest.raises(mb.InvalidInput, match="only arm"):
        mab.remove_arm("only")


def test_refuted_assumptions_are_reported():
    mab = MixBanditMAB(["a", "b"], sigma=0.1, norm_bound=1.0)
    mab.fit(["a"] * 50 + ["b"], [5.0] * 51)
    with pytest.raises(mb.AssumptionsRefuted):
        mab.predict()


def test_arms_may_be_anything_that_can_be_compared():
    """As in MABWiser; `Blocks` itself has text and numbers only."""
    arms = [True, ("a", 1), frozenset("b"), "c", 7, 2.5]
    mab = MixBanditMAB(arms, **STATED)
    mab.fit(arms, np.zeros(6), np.eye(6))
    mab.add_arm(("a", 2))
    mab.add_arm(0)
    mab.partial_fit([0, ("a", 2)], [0.1, 0.2], np.eye(6)[:2])
    known = mab.predict_interval(np.eye(6)[0])
    assert list(known) == list(mab.policies) == [*arms, ("a", 2), 0]
    assert {arm: policy.moment.t for arm, policy in mab.policies.items()} == dict.fromkeys(known, 1)
    mab.remove_arm(("a", 1))
    mab.add_arm(("a", 1))
    assert mab.predict_interval(np.eye(6)[0])[("a", 1)] == known[("a", 1)]
