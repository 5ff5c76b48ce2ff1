"""Trials on draws from one pool of rows: what they say about the pool, and about new rows."""

import dataclasses
import math
import warnings

import numpy as np
import pytest

import mixbandit as mb
from mixbandit.tuning.assumptions import UNSTATED, Assumptions
from mixbandit.tuning.pools import log_choices, on_new_rows

DELTA = 0.05


def luckiest_on_the_pool(rng, runs, configurations, rows):
    """The accuracies on the pool of what a search that knows the pool ends with: all labels are coin flips."""
    return rng.binomial(rows, 0.5, size=(runs, configurations)).max(axis=1) / rows


def test_a_search_that_learns_the_luck_of_the_pool_is_wrong_on_new_rows_within_delta():
    rng, rows, size = np.random.default_rng(0), 200, 1000
    best = luckiest_on_the_pool(rng, 400, size, rows)
    floors = np.array([on_new_rows(np.array([a, a]), rows, DELTA, log_choices(1, 100, size))[0] for a in best])
    assert (best > 0.5).all()  # a floor on the pool says nothing about new rows
    assert (floors > 0.5).mean() <= DELTA / 2 + 0.02
    naive = np.array([on_new_rows(np.array([a, a]), rows, DELTA, 0.0)[0] for a in best])
    assert (naive > 0.5).mean() > 0.9  # without the union it would be wrong nearly always


def test_a_search_that_reads_the_pool_one_value_at_a_time_stays_within_delta():
    """Each trial asks about m single rows; the next configuration predicts what the values before it gave away."""
    rng, rows, samples, runs = np.random.default_rng(1), 60, 1, 300
    wrong = naive = 0
    for _ in range(runs):
        labels, known = rng.integers(2, size=rows), np.zeros(rows, dtype=int)
        place = 30
        for row in rng.integers(rows, size=place - 1):  # the trial predicts 1 there: its one result is the label
            known[row] = labels[row]
        guessed = np.where(known == 1, 1, 0)
        found = float((guessed == labels).mean())
        ends, exponent = np.array([found, found]), log_choices(place, samples, None)
        wrong += on_new_rows(ends, rows, DELTA, exponent)[0] > 0.5
        naive += on_new_rows(ends, rows, DELTA, 0.0)[0] > 0.5
    assert wrong <= DELTA * runs
    assert naive > 0.3 * runs


def test_the_count_of_configurations_is_the_formula_of_the_module():
    assert log_choices(1, 100, None) == pytest.approx(math.log(2))
    assert log_choices(5, 100, None) == pytest.approx(math.log(30) + 4 * math.log(102))
    assert log_choices(5, 100, 7) == pytest.approx(math.log(7))


def drawn_study(rng, pool, configurations=40, samples=50, repeats=10):
    """Coin-flip labels: every configuration has another fixed set of hits on the pool, and 1/2 on new rows."""
    hits = rng.integers(2, size=(configurations, pool))
    best = int(np.argmax(hits.mean(axis=1)))
    order = [*range(configurations), *[best] * repeats]
    return [({"x": i}, float(hits[i][rng.integers(pool, size=samples)].mean())) for i in order]


SPACE = mb.Space({"x": mb.Int(0, 39)})


def test_the_certificate_is_about_the_pool_and_says_what_follows_for_new_rows():
    run = drawn_study(np.random.default_rng(0), pool=60, repeats=60)
    found = mb.certify(run, space=SPACE, reward_range=(0, 1), samples=50, pool=60)
    assert "on the pool of 60 rows that trials were drawn from" in str(found)
    assert found.interval[0] > 0.5  # true of the pool
    assert found.on_new_rows[0] < 0.5 < found.on_new_rows[1]
    assert "On new rows it is at least" in str(found)
    assert found.to_dict()["on_new_rows"] == list(found.on_new_rows)
    larger = mb.certify(run, space=SPACE, reward_range=(0, 1), samples=50, pool=10**9)
    own = larger.judgement.own_ends(SPACE.encode(larger.parameters))
    assert larger.on_new_rows[0] == pytest.approx(own.lower, abs=1e-3)


def test_new_rows_are_the_interval_itself():
    run = drawn_study(np.random.default_rng(0), pool=60)
    found = mb.certify(run, space=SPACE, reward_range=(0, 1), samples=50, rows="fresh")
    assert found.on_new_rows == found.interval
    assert "on new rows as stated" in str(found)


def test_a_pool_that_is_too_small_says_so():
    run = [({"x": i / 30}, 0.2) for i in range(30)] + [({"x": 1.0}, 0.9)] * 5
    found = mb.certify(run, reward_range=(0, 1), samples=50, pool=10)
    assert found.parameters == {"x": 1.0}
    assert found.on_new_rows[0] < 1e-6
    assert "Nothing is guaranteed about new rows: " in str(found)
    assert "mb.certify_fitted" in str(found)


def test_means_that_are_not_of_yes_or_no_results_say_nothing_about_new_rows_in_a_continuum():
    run = [({"x": 0.1 * (1 + i % 9)}, 0.51234) for i in range(30)]
    found = mb.certify(run, space=mb.Space({"x": mb.Float(0, 1)}), reward_range=(0, 1), samples=50, pool=10**7)
    assert found.on_new_rows == (0.0, 1.0)
    assert "yes-or-no" in str(found)


def test_failed_trials_count_in_what_a_search_may_have_learnt():
    tuner = mb.Tuner({"x": mb.Float(0, 1)}, reward_range=(0, 1), samples=10, pool=2000, rng=0)
    for value in (0.9, 0.8):
        tuner.tell(tuner.ask(), value)
    before = tuner.certificate().on_new_rows
    for _ in range(3):
        tuner.fail(tuner.ask())
    after = tuner.certificate().on_new_rows
    assert after[0] < before[0]


def test_samples_without_rows_is_deprecated_and_the_line_is_the_users():
    with pytest.warns(mb.RowsMissingWarning, match=r'state rows="fresh" .* or pool=N') as caught:
        known = Assumptions(reward_range=(0, 1), samples=10)
    assert caught[0].filename == __file__
    assert known.rows == UNSTATED
    run = drawn_study(np.random.default_rng(0), pool=60)
    found = mb.certify(run, known, space=SPACE)  # without another warning
    assert "new rows assumed, not stated" in str(found)
    assert issubclass(mb.RowsMissingWarning, DeprecationWarning)


def test_no_warning_where_rows_are_clear():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Assumptions(reward_range=(0, 1), samples=10, rows="fresh")
        Assumptions(reward_range=(0, 1), samples=10, pool=99)
        Assumptions(reward_range=(0, 1))
        mb.certify_finalists([({"x": 1}, 0.5)], reward_range=(0, 1), samples=100)
        mb.certify([({"x": 1}, 0.5), ({"x": 2}, 0.4)], reward_range=(0, 1), samples=100, rows="fixed")
        state = Assumptions(reward_range=(0, 1), samples=10, rows="fresh").state_dict()
        old = {name: value for name, value in state.items() if name not in ("rows", "pool")}
        assert Assumptions.from_state_dict(old).rows == UNSTATED
        pool = Assumptions(reward_range=(0, 1), samples=10, pool=99)
        assert Assumptions.from_state_dict(pool.state_dict()) == pool
        assert dataclasses.replace(Assumptions.from_state_dict(old), delta=0.1).rows == UNSTATED


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        ({"samples": 10, "rows": "pool"}, "needs pool"),
        ({"pool": 10}, "needs samples"),
        ({"samples": 10, "pool": 10, "rows": "fresh"}, "pool=10 means"),
        ({"samples": 10, "rows": "old"}, "rows"),
        ({"samples": 10, "pool": 0}, "pool"),
    ],
)
def test_contradictions_are_refused(stated, message):
    with pytest.raises(mb.InvalidInput, match=message):
        Assumptions(reward_range=(0, 1), **stated)


def test_rows_may_stand_beside_an_object_unless_they_contradict_it():
    run, fresh = [({"x": 1}, 0.5), ({"x": 2}, 0.4)], Assumptions(reward_range=(0, 1), samples=50, rows="fresh")
    with pytest.raises(mb.InvalidInput, match="contradicts the assumptions"):
        mb.certify(run, fresh, rows="fixed")
    with pytest.raises(mb.InvalidInput, match="contradicts the assumptions"):
        mb.certify(run, fresh, pool=100)
    ranged = Assumptions(reward_range=(0, 1))
    assert mb.certify(run, ranged, rows="fixed").about == "these rows only"
    with pytest.raises(mb.InvalidInput, match="is for certify"):
        mb.Tuner(SPACE, reward_range=(0, 1), samples=50, rows="fixed")


@pytest.mark.parametrize("rows", [np.zeros(2), np.empty(0), 3, "same"])
def test_rows_that_are_no_word_are_refused(rows):
    with pytest.raises(mb.InvalidInput, match="rows must be one of"):
        Assumptions(reward_range=(0, 1), samples=10, rows=rows)
