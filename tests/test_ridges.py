"""Ridge regressions of many arms, against the definitions."""

import numpy as np
import pytest

from mixbandit._threads import MOST_ENTRIES
from mixbandit.data import Ridges
from mixbandit.data.products import ridge_step, times
from mixbandit.data.ridges import COUNT, LOG_DET, LOSS, NORM2, SIZE2, SLACK
from mixbandit.errors import DamagedState

ALPHA = 0.3


def played(arms, dim, count, seed=0):
    """Ridges that have learnt, and what each arm has seen."""
    rng = np.random.default_rng(seed)
    ridges, seen = Ridges(ALPHA, dim).extended(arms), [([], []) for _ in range(arms)]
    for _ in range(count):
        arm, row, reward = int(rng.integers(arms)), rng.normal(size=dim), float(rng.normal())
        ridges = ridges.learnt(arm, row, reward)[0]
        seen[arm][0].append(row)
        seen[arm][1].append(reward)
    return ridges, [(np.array(rows).reshape(-1, dim), np.array(rewards)) for rows, rewards in seen]


def check(ridges, seen, tolerance=1e-10):
    """Everything that the ridges say, by the definitions."""
    dim, numbers = ridges.dim, ridges.numbers
    query = np.random.default_rng(1).normal(size=dim)
    means, w = ridges.measured(query)
    for arm, (rows, rewards) in enumerate(seen):
        v = rows.T @ rows + ALPHA * np.eye(dim)
        theta = np.linalg.solve(v, rows.T @ rewards)
        assert np.isclose(means[arm], query @ theta, rtol=tolerance, atol=tolerance)
        assert np.isclose(w[arm], query @ np.linalg.solve(v, query), rtol=tolerance)
        one = ridges.of(arm)
        assert np.allclose(one.root @ one.root.T, np.linalg.inv(v), rtol=tolerance, atol=tolerance)
        assert np.allclose(one.root @ one.white, theta, atol=tolerance)
        assert np.isclose(numbers[arm, LOG_DET], np.linalg.slogdet(v / ALPHA)[1], rtol=tolerance, atol=tolerance)
        residual = rows @ theta - rewards
        assert np.isclose(numbers[arm, LOSS], residual @ residual + ALPHA * theta @ theta, atol=tolerance)
        assert np.isclose(numbers[arm, SIZE2], np.sum(rows**2))
        assert np.isclose(numbers[arm, NORM2], theta @ theta)
        assert numbers[arm, COUNT] == len(rows)


@pytest.mark.parametrize(("arms", "dim", "count"), [(1, 1, 5), (3, 4, 60), (40, 30, 200), (2, 120, 80), (300, 20, 900)])
def test_every_arm_is_a_ridge_regression_of_its_own_rewards(arms, dim, count):
    check(*played(arms, dim, count))


def test_what_was_known_before_stays():
    before, seen = played(3, 4, 20)
    after = before.learnt(1, np.ones(4), 2.0)[0]
    check(before, seen)
    assert after.numbers[1, COUNT] == before.numbers[1, COUNT] + 1


@pytest.mark.parametrize("apart", [False, True])
def test_means_follow_what_is_learnt(apart):
    rng, d, arms = np.random.default_rng(4), 20, 150
    ridges, row = Ridges(ALPHA, d, apart=apart).extended(arms), rng.normal(size=d)
    for t in range(400):
        if t == 200:
            ridges = ridges.extended(7).mapped(np.diag(rng.uniform(0.5, 2.0, d)))
        if t == 300:
            ridges = Ridges.from_state_dict(ridges.state_dict(), apart=apart)
        ridges, (error, width2) = ridges.learnt(int(rng.integers(arms)), rng.normal(size=d), float(rng.random()))
        assert width2 > 0.0
        assert np.isfinite(error)
        np.testing.assert_allclose(ridges.means(row), ridges.measured(row)[0], rtol=1e-11, atol=1e-13)
    some = np.array([0, 3, 149, 156])
    np.testing.assert_array_equal(ridges.means(row, some), ridges.means(row)[some])
    np.testing.assert_array_equal(ridges.thetas[3], ridges.of(3).theta)


@pytest.mark.parametrize(("arms", "dim"), [(7, 5), (300, 20), (3, 120)])
def test_some_arms_are_measured_to_the_bit_as_all_are(arms, dim):
    ridges, _ = played(arms, dim, 4 * arms)
    query = np.random.default_rng(2).normal(size=dim)
    means, w = ridges.measured(query)
    some = np.arange(0, arms, 2)
    for found, all_of_them in zip(ridges.measured(query, some), (means, w), strict=True):
        assert np.array_equal(found, all_of_them[some])
    shuffled = np.random.default_rng(3).permutation(arms)
    each = ridges.measured_each(np.tile(query, (arms, 1)), shuffled)
    for found, all_of_them in zip(each, (means, w), strict=True):
        assert np.allclose(found, all_of_them[shuffled], rtol=1e-13)
    assert ridges.measured(query, np.empty(0, dtype=np.int64))[0].shape == (0,)


def test_arms_come_one_by_one_or_together():
    together, _ = played(200, 20, 0)
    one_by_one = Ridges(ALPHA, 20)
    for _ in range(200):
        one_by_one = one_by_one.extended(1)
    assert len(one_by_one) == len(together) == 200
    assert np.array_equal(one_by_one.state_dict()["stack"], together.state_dict()["stack"])


def test_rows_may_be_changed_linearly():
    ridges, seen = played(4, 5, 40)
    for change in (np.diag([1.0, 2.0, 0.5, 3.0, 1e-9]), np.random.default_rng(4).normal(size=(7, 5)), np.eye(6, 5)):
        changed = ridges.mapped(change)
        check(changed, [(rows @ change.T, rewards) for rows, rewards in seen], tolerance=1e-8)


def test_an_arm_without_rewards_is_the_same_in_any_scale():
    changed = Ridges(ALPHA, 2).extended(1).mapped(np.diag([1.0, 5.0, 3.0])[:, :2])
    assert np.array_equal(changed.state_dict()["stack"], Ridges(ALPHA, 3).extended(1).state_dict()["stack"])


def test_the_relative_error_of_a_root_is_at_most_what_is_recorded():
    rng = np.random.default_rng(5)
    ridges, gram = Ridges(1e-8, 4).extended(1), 1e-8 * np.eye(4, dtype=np.longdouble)
    for _ in range(3000):
        row = rng.normal(size=4) * np.array([1.0, 1.0, 1e-3, 1e-4])
        ridges, gram = ridges.learnt(0, row, 0.0)[0], gram + np.outer(row, row).astype(np.longdouble)
    root = ridges.of(0).root.astype(np.longdouble)
    away = float(np.abs(root.T @ gram @ root - np.eye(4)).max())  # I without errors
    assert away / 2.0 <= ridges.numbers[0, SLACK] < 1e-4


def test_states_come_back_bit_for_bit_and_damage_is_refused():
    ridges, _ = played(90, 20, 300)
    state = ridges.state_dict()
    back = Ridges.from_state_dict(state).learnt(3, np.ones(20), 1.0)[0].state_dict()
    for name, value in ridges.learnt(3, np.ones(20), 1.0)[0].state_dict().items():
        assert np.array_equal(back[name], value)
    half, endless = state["numbers"].copy(), state["numbers"].copy()
    half[0, COUNT], endless[0, COUNT] = 0.5, 1e60
    wrong = (
        {"numbers": state["numbers"][:-1]},
        {"numbers": -state["numbers"]},
        {"numbers": half},
        {"numbers": endless},
    )
    for damage in ({"dim": 19}, {"alpha": -1.0}, *wrong):
        with pytest.raises(DamagedState, match="ridges"):
            Ridges.from_state_dict({**state, **damage})


@pytest.mark.parametrize("dim", [3, 89, 91, 130, 361])
def test_products_in_groups_of_rows_are_products(dim):
    rng = np.random.default_rng(dim)
    matrix, vector = rng.normal(size=(dim + 2, dim)), rng.normal(size=dim)
    assert np.allclose(times(matrix, vector), matrix @ vector, rtol=1e-11)
    root, theta, white = np.asfortranarray(rng.normal(size=(dim, dim))) / dim, rng.normal(size=dim), vector
    kept = root.copy()
    found = ridge_step(root, theta, white, vector, 0.5)
    assert np.array_equal(root, kept)
    u = root.T @ vector
    w = float(u @ u)
    shrink = 1.0 / (np.sqrt(1.0 + w) * (np.sqrt(1.0 + w) + 1.0))
    assert np.allclose(found[0].T, root - shrink * np.outer(root @ u, u), rtol=1e-10, atol=1e-12)
    assert np.isclose(found[3], w)
    again = root.copy(order="F")
    in_place = ridge_step(again, theta, white, vector, 0.5, in_place=True)
    assert np.shares_memory(in_place[0], again)
    assert np.array_equal(again, found[0].T)
    assert dim <= 90 or dim * dim > MOST_ENTRIES  # both ways are tried
