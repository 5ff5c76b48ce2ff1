"""Boxes in which some coordinates are discrete: what may be chosen, the search, and proofs."""

import itertools

import numpy as np
import pytest

import mixbandit as mb
from mixbandit.actions import REGIONS, Levels, MixedBox, OneHot, Pin
from mixbandit.simulate.environments import largest_expected
from tests.helpers.scores import linear, optimism, search_box

CATEGORY = Levels((1, 2, 3), np.eye(3), ordered=False)
MANY = Levels((4,), np.linspace(0.0, 1.0, 12)[:, None], ordered=True)
FEW = Levels((5,), np.array([[0.0], [0.3], [1.0]]), ordered=True)


def mixed():
    """A float, a category of three, an integer of twelve values and one of three."""
    return MixedBox(np.zeros(6), np.ones(6), [CATEGORY, MANY, FEW])


def neighbours(box, row):
    return np.vstack([part.rows(np.arange(len(part.columns))) for part in box.neighbours(row)])


def valid(rows):
    rows = np.atleast_2d(rows)
    one_hot = (np.sort(rows[:, 1:4], axis=1) == [0.0, 0.0, 1.0]).all()
    return one_hot and np.isin(rows[:, 4], MANY.values).all() and np.isin(rows[:, 5], FEW.values).all()


def all_rows(floats):
    parts = itertools.product(floats, range(3), range(12), range(3))
    return np.array([[x, *np.eye(3)[c], MANY.values[i, 0], FEW.values[j, 0]] for x, c, i, j in parts])


def sequence(features, seed, n=20):
    rng = np.random.default_rng(seed)
    cs = mb.MartingaleMixture(features, sigma=0.1, norm_bound=10.0)
    rows, theta = mixed().sample(n, rng), rng.normal(size=features.dim)
    return cs.update(rows, features(rows) @ theta + 0.1 * rng.normal(size=n))


def test_samples_are_allowed_and_reach_everything():
    rows = mixed().sample(2000, np.random.default_rng(0))
    assert valid(rows)
    assert len(np.unique(rows[:, 1:], axis=0)) == 3 * 12 * 3
    assert len(np.unique(rows[:, 0])) == 2000


def test_snapping_takes_the_nearest_allowed_value():
    row = np.array([[0.123, 0.2, 0.9, 0.8, 0.51, 0.64]])
    np.testing.assert_allclose(mixed().snapped(row), [[0.123, 0, 1, 0, 6 / 11, 0.3]])
    np.testing.assert_allclose(mixed().snapped(row + np.array([0, 0, 0, 0.2, 0, 0.02]))[0, [3, 5]], [1, 1])


def test_a_neighbour_that_makes_a_part_matter_gives_it_an_allowed_value():
    # Coordinate 2 matters where coordinate 1 is 1; elsewhere it stands at 0.5, which is none of its values.
    parts = [Levels((0, 1), np.eye(2), ordered=False), Levels((2,), np.array([[0.0], [1.0]]), ordered=True)]
    box = MixedBox(np.zeros(3), np.ones(3), parts, [Pin((2,), (1,), np.array([0.5]))])
    for row in (np.array([1.0, 0.0, 0.5]), np.array([0.0, 1.0, 1.0])):
        found = neighbours(box, row)
        assert len(found)
        np.testing.assert_array_equal(found, box.snapped(found))
        assert (found[found[:, 1] == 1.0, 2] != 0.5).all()


def test_neighbours_differ_in_one_part():
    row = np.array([0.4, 0, 1, 0, 0.0, 0.3])
    rows = neighbours(mixed(), row)
    assert valid(rows)
    changed = [tuple(np.flatnonzero(r != row)) for r in rows]
    assert sorted(changed) == [(1, 2), (2, 3), (4,), (4,), (5,), (5,)]


def test_a_category_is_what_the_list_of_its_values_is():
    rng = np.random.default_rng(0)
    listed, short = Levels((2, 0, 1), np.eye(3), ordered=False), OneHot.of((2, 0, 1))
    rows = np.vstack((rng.uniform(size=(200, 3)), np.zeros((1, 3)), np.eye(3)))
    np.testing.assert_array_equal(short.nearest(rows), listed.nearest(rows))
    np.testing.assert_array_equal(short.at(short.nearest(rows)), listed.at(listed.nearest(rows)))
    some = OneHot((2, 0, 1), np.array([2, 0]))
    listed = Levels((2, 0, 1), np.eye(3)[[2, 0]], ordered=False)
    np.testing.assert_array_equal(some.at(some.nearest(rows)), listed.at(listed.nearest(rows)))


def test_files_that_list_the_values_of_categories_still_load():
    state = mixed().state_dict()
    assert "values" not in state["levels"][0]
    state["levels"][0] = {"columns": [1, 2, 3], "values": np.eye(3), "ordered": False}
    assert REGIONS.load(state) == mixed()


@pytest.mark.parametrize("choices", [[], [0, 0], [3], [-1]])
def test_choices_that_a_category_does_not_have_are_refused(choices):
    with pytest.raises(mb.InvalidInput, match="levels"):
        MixedBox(np.zeros(6), np.ones(6), [OneHot((1, 2, 3), np.array(choices, dtype=np.int64))])


def test_what_is_left_of_a_box_when_categories_are_fixed():
    # Coordinate 4 matters where 1 or 2 is 1, coordinate 5 only where 2 is.
    pins = [Pin((4,), (1, 2), np.array([0.5])), Pin((5,), (2,), np.array([0.25]))]

    def reduced(*choices):
        category = OneHot((1, 2, 3), np.array(choices))
        return MixedBox(np.zeros(6), np.ones(6), [category, MANY], pins).reduced()

    inner, row, free = reduced(1)
    assert (free.tolist(), inner.pins) == ([0, 4, 5], ())
    assert [part.columns for part in inner.levels] == [(1,)]
    inner, row, free = reduced(2)
    assert free.tolist() == [0]
    np.testing.assert_array_equal(row[1:], [0.0, 0.0, 1.0, 0.5, 0.25])
    inner, row, free = reduced(0, 1)  # 4 matters in any case, 5 only sometimes
    assert free.tolist() == [0, 1, 2, 3, 4, 5]
    assert [pin.columns for pin in inner.pins] == [(5,)]
    assert MixedBox(np.zeros(3), np.ones(3), [OneHot((0, 1, 2), np.array([1]))]).reduced()[0] is None


def test_a_fixed_context_stays_in_front():
    box = mixed().given(np.array([7.0, 8.0]))
    rows = box.sample(50, np.random.default_rng(0))
    assert (rows[:, :2] == [7.0, 8.0]).all()
    assert valid(rows[:, 2:])
    assert list(box.continuous) == [False, False, True] + 5 * [False]


def test_it_comes_back_from_its_state():
    again = REGIONS.load(mixed().state_dict())
    assert again == mixed()
    assert again != mb.Box(np.zeros(6), np.ones(6))
    assert MixedBox(np.zeros(6), np.ones(6), [CATEGORY, MANY]) != mixed()


@pytest.mark.parametrize(
    "levels",
    [
        [CATEGORY, Levels((3,), np.array([[0.0], [1.0]]), ordered=True)],
        [Levels((9,), np.array([[0.0]]), ordered=True)],
        [Levels((4,), np.array([[0.5], [0.2]]), ordered=True)],
        [Levels((4,), np.array([[0.5], [1.2]]), ordered=True)],
        [Levels((4,), np.empty((0, 1)), ordered=True)],
    ],
)
def test_bad_levels_are_refused(levels):
    with pytest.raises(mb.InvalidInput, match="levels"):
        MixedBox(np.zeros(6), np.ones(6), levels)


@pytest.mark.parametrize("seed", range(10))
def test_the_search_finds_the_best_of_everything(seed):
    """Against every combination with a fine grid of the float."""
    phi = mb.RandomFourier(6, 40, 1.5, rng=seed)
    score = optimism(sequence(phi, seed), None)
    found = search_box(score, phi, mixed(), np.random.default_rng(seed))
    assert valid(found.action)
    assert valid(found.optima)
    assert found.value == pytest.approx(score.maximum(phi(found.action))[0])
    best = score.maximum(phi(all_rows(np.linspace(0.0, 1.0, 41)))).max()
    assert found.value >= best - 1e-3 * abs(best)


@pytest.mark.parametrize("seed", range(5))
def test_few_discrete_actions_are_enumerated(seed):
    box = MixedBox(np.zeros(4), np.ones(4), [Levels((0, 1, 2), np.eye(3), False), Levels((3,), FEW.values, True)])
    phi = mb.RandomFourier(4, 30, 0.3, rng=seed)
    theta = np.random.default_rng(seed).normal(size=30)
    score = linear(theta)
    rows = np.array([[*np.eye(3)[c], FEW.values[j, 0]] for c in range(3) for j in range(3)])
    found = search_box(score, phi, box, np.random.default_rng(0))
    assert found.value == score.maximum(phi(rows)).max()
    value, proven = largest_expected(phi, theta, box)
    assert proven
    assert value == pytest.approx(found.value, rel=1e-5)


def test_many_categories_are_searched_without_trying_all_combinations():
    parts = [Levels(tuple(range(6 * i, 6 * i + 6)), np.eye(6), False) for i in range(6)]  # 46,656 combinations
    box = MixedBox(np.zeros(36), np.ones(36), parts)
    theta = np.random.default_rng(3).normal(size=36)
    found = search_box(linear(theta), mb.Identity(36), box, np.random.default_rng(0))
    assert found.value == pytest.approx(theta.reshape(6, 6).max(axis=1).sum())
    assert found.evaluations < 5000


def test_a_bandit_plays_allowed_actions_and_its_certificate_is_proven_and_right(tmp_path):
    phi = mb.RandomFourier(6, 20, 1.5, rng=0)
    theta = np.random.default_rng(0).normal(size=20)
    rng = np.random.default_rng(1)
    bandit = mb.CMMUCB(phi, actions=mixed(), sigma=0.1, norm_bound=10.0, rng=0)
    for _ in range(60):
        choice = bandit.ask()
        assert valid(choice.action)
        bandit.tell(choice, float(phi(choice.action)[0] @ theta + 0.1 * rng.normal()))
    found = bandit.certificate()
    assert found.proof == "branch-and-bound"
    worth = phi(all_rows(np.linspace(0.0, 1.0, 41))) @ theta
    assert valid(found.action)
    assert found.optimum_upper >= worth.max()
    assert worth.max() - float(phi(found.action)[0] @ theta) <= found.gap
    # The proof is not that of the box around: categories in between would be worth more.
    around = mb.CMMUCB(phi, actions=mb.Box(np.zeros(6), np.ones(6)), sigma=0.1, norm_bound=10.0)
    around.moment = bandit.moment
    assert found.optimum_upper <= around.certificate().optimum_upper + 1e-9
    bandit.save(tmp_path / "bandit")
    np.testing.assert_array_equal(mb.load(tmp_path / "bandit").ask().action, bandit.ask().action)


def test_a_batch_repeats_nothing_where_there_is_a_float():
    phi = mb.RandomFourier(6, 20, 1.5, rng=0)
    bandit = mb.CMMUCB(phi, actions=mixed(), sigma=0.1, norm_bound=10.0, rng=0)
    rows = np.array([choice.action for choice in bandit.ask(n=12)])
    assert valid(rows)
    assert len(np.unique(rows, axis=0)) == 12
