"""What a configuration's own trials say: how δ is spent, which values count, which configurations are the same."""

import math

import numpy as np
import pytest

import mixbandit as mb
from mixbandit.tuning.evidence import SHARES, UNKNOWN, OwnTrials, Trials
from mixbandit.tuning.ledgers import of_bounds

DELTA = 0.1
STATED = {"reward_range": (0.0, 1.0), "samples": 20, "rows": "fresh", "delta": DELTA}


def own(values, configurations=None, nominations=None, ordered=True, **stated):
    """Trials of configurations that are numbered from 0, each a row of one coordinate."""
    configurations = range(len(values)) if configurations is None else configurations
    rows = np.array([[0.01 * c] for c in configurations], dtype=np.float64)
    marks = np.zeros(len(values), dtype=np.int64) if nominations is None else np.array(nominations)
    known = mb.Assumptions(**{**STATED, "direction": "maximize", **stated})
    return OwnTrials(known, Trials([{"c": c} for c in configurations], rows, np.array(values, float), marks, ordered))


def mean(values, delta, samples=20):
    found = mb.MeanSequence((0.0, 1.0), delta).update(np.array(values), samples=samples)
    return pytest.approx((found.lower(), found.upper()), abs=1e-12)


def test_the_parts_of_delta_are_all_of_it():
    assert sum(SHARES) == pytest.approx(1.0, abs=1e-15)
    assert min(SHARES) > 0.0
    assert of_bounds(0.1).in_words() == (
        "0.04 for the model, 0.02 for each configuration's own trials, 0.04 for confirmed finalists"
    )


@pytest.mark.parametrize("options", [{}, {"planned": 7}, {"planned": 300}, {"ordered": False}])
def test_no_more_is_spent_than_there_is(options):
    """On any number of configurations, also more than were planned."""
    found = own(np.full(60, 0.5), **options)
    spent = [found.share_by_order(row) for row in found.distinct]
    assert len(spent) == 60
    assert sum(spent) <= SHARES.own * DELTA * (1 + 1e-12)
    assert math.fsum(found.share_by_nomination(j) for j in range(1, 10_000)) <= SHARES.nominated * DELTA
    if not options:
        assert spent[:3] == pytest.approx([0.02 / 2, 0.02 / 6, 0.02 / 12])
    elif options == {"planned": 7}:
        assert spent == pytest.approx([0.02 / 7] * 7 + [0.0] * 53)
    elif options == {"planned": 300}:
        assert spent == pytest.approx([0.02 / 300] * 60)
    else:
        assert spent == pytest.approx([0.02 / 60] * 60)


def test_by_order_of_play():
    values, configurations = [0.5, 0.7, 0.9, 0.8, 0.6, 0.85], [4, 2, 4, 3, 2, 3]
    found = own(values, configurations)
    for c, i, told in ((4, 1, [0.5, 0.9]), (2, 2, [0.7, 0.6]), (3, 3, [0.8, 0.85])):
        lower, upper, trials = found.interval(np.array([0.01 * c]))
        assert (lower, upper) == mean(told, 0.2 * DELTA / (i * (i + 1)))
        assert trials == found.count(np.array([0.01 * c])) == 2
        assert found.values(np.array([0.01 * c])).tolist() == told
        assert found.given(np.array([0.01 * c])) == {"c": c}
    assert found.interval(np.array([0.9])) == UNKNOWN == (-math.inf, math.inf, 0)
    assert found.given(np.array([0.9])) is None
    assert found.count(np.array([0.9])) == 0
    assert len(found) == 3
    assert found.distinct[:, 0].tolist() == [0.04, 0.02, 0.03]


def test_a_number_fixed_in_advance_and_an_order_that_is_not_known():
    values = [0.5, 0.7, 0.9]
    planned, unordered = own(values, planned=2), own(values, ordered=False)
    assert planned.interval(np.array([0.01]))[:2] == mean([0.7], 0.2 * DELTA / 2)
    assert planned.interval(np.array([0.02])) == (-math.inf, math.inf, 1)  # beyond the plan
    assert unordered.interval(np.array([0.01]))[:2] == mean([0.7], 0.2 * DELTA / 3)
    # What is planned does not count where the order of play, and so who is within the plan, is not known.
    assert own(values, ordered=False, planned=1).interval(np.array([0.01])) == unordered.interval(np.array([0.01]))


def test_of_a_nominated_one_only_confirmations_count():
    values, configurations = [0.5, 0.7, 0.9, 0.95, 0.99], [0, 1, 1, 1, 0]
    found = own(values, configurations, [0, 0, 2, 2, 1])
    order, late = mean([0.7, 0.9, 0.95], 0.2 * DELTA / 6).expected, mean([0.9, 0.95], 0.4 * DELTA / 6).expected
    lower, upper, trials = found.interval(np.array([0.01]))
    assert (lower, upper) == pytest.approx((max(order[0], late[0]), min(order[1], late[1])))
    assert trials == 3
    first = mean([0.99], 0.4 * DELTA / 2).expected
    assert found.interval(np.array([0.0])).lower == pytest.approx(max(first[0], mean([0.5, 0.99], 0.01).expected[0]))


def test_a_number_belongs_to_one_configuration():
    """A table that says otherwise would spend the same part of δ twice."""
    values, configurations = [0.5, 0.6, 0.9, 0.9], [0, 1, 0, 1]
    found = own(values, configurations, [0, 0, 1, 1])
    honest = own(values, configurations, [0, 0, 1, 0])
    for row in found.distinct:
        assert found.interval(row) == honest.interval(row)


def test_rows_that_differ_by_rounding_are_one_configuration():
    rows = np.array([[0.3, 0.0], [0.1 + 0.2, -0.0], [0.3 + 1e-12, 0.0], [0.3 + 1e-6, 0.0]])
    known = mb.Assumptions(**STATED)
    found = OwnTrials(known, Trials([{"x": i} for i in range(4)], rows, np.full(4, 0.5), np.zeros(4, np.int64)))
    assert len(found) == 2
    assert found.count(rows[1]) == 3
    assert found.given(rows[2]) == {"x": 0}
    assert [len(group.values) for group in found.repeated] == [3]


@pytest.mark.parametrize("stated", [{}, {"sigma": 0.1, "samples": None, "norm_bound": 2.0},
                                    {"noise": "gaussian", "samples": None}])  # fmt: skip
def test_minimising_mirrors_maximising_exactly(stated):
    rng = np.random.default_rng(0)
    configurations = rng.integers(0, 4, 60)
    # Sixteenths, of which 1 − v is exact.
    values = rng.integers(1, 16, 60) / 16
    marks = np.where(configurations == 2, 1, 0) * (np.arange(60) > 20)
    up = own(values, configurations, marks, **stated)
    down = own(1.0 - values, configurations, marks, direction="minimize", **stated)
    assert np.array_equal(up.promising(), down.promising())
    for row in up.distinct:
        low, high, trials = down.interval(row)
        assert (1.0 - high, 1.0 - low, trials) == pytest.approx(up.interval(row), abs=1e-9)
        assert math.isfinite(up.interval(row).lower)


def test_promising_are_repeated_ones_and_the_best_single_ones():
    values = [*np.linspace(0.1, 0.9, 300), 0.0, 0.0]
    found = own(values, [*range(300), 300, 300])
    kept = set((100 * found.promising()[:, 0]).round().astype(int).tolist())
    assert kept == {*range(100, 300), 300}
    down = own(values, [*range(300), 300, 300], direction="minimize")
    assert set((100 * down.promising()[:, 0]).round().astype(int).tolist()) == {*range(200), 300}


def test_a_part_of_delta_that_is_too_small_says_nothing():
    found = own([0.5, 0.6], delta=1e-200)
    assert found.interval(np.array([0.0])) == (-math.inf, math.inf, 1)
    # And the model may have it all: no more is spent than was stated.
    certified = mb.certify(
        [({"x": 0.1}, 0.5), ({"x": 0.9}, 0.6)], reward_range=(0, 1), samples=20, rows="fresh", delta=1e-200
    )
    assert certified.judgement.moment.rule.delta == 1e-200
    assert certified.evidence == "model"


def test_more_samples_than_can_be_counted_are_as_good_as_fewer():
    many, most = own([0.5, 0.6], samples=2**50), own([0.5, 0.6], samples=10**12)
    assert many.interval(np.array([0.0])) == most.interval(np.array([0.0]))


def test_values_beyond_the_range_by_rounding():
    beyond, at = own([1.0 + 1e-12, -1e-12], [0, 0]), own([1.0, 0.0], [0, 0])
    assert beyond.interval(np.array([0.0])) == at.interval(np.array([0.0]))


@pytest.mark.parametrize("ordered", [True, False])
def test_own_trials_are_wrong_in_no_more_runs_than_delta(ordered):
    """All ends of all configurations together, whoever is tried again; only the best are, which favours luck."""
    delta, wrong = 0.5, 0
    for run in range(150):
        rng = np.random.default_rng([4, run])
        truth, values, configurations = rng.uniform(0.2, 0.8, 6), [], []
        for t in range(24):
            seen = [
                np.mean([v for v, c in zip(values, configurations, strict=True) if c == k] or [1.0]) for k in range(6)
            ]
            k = t if t < 6 else int(np.argmax(seen))
            configurations.append(k)
            values.append(rng.binomial(20, truth[k]) / 20)
        found = own(values, configurations, ordered=ordered, delta=delta)
        intervals = [found.interval(np.array([0.01 * k])) for k in range(6)]
        wrong += any(not e.lower <= p <= e.upper for e, p in zip(intervals, truth, strict=True))
    assert wrong <= 150 * SHARES.own * delta + 3 * math.sqrt(150 * 0.1 * 0.9)


def numbered(numbers, configurations, **stated):
    known = mb.Assumptions(reward_range=(0.0, 1.0), delta=DELTA, **stated)
    rows = np.array([[0.01 * c] for c in configurations])
    given, marks = [{"c": c} for c in configurations], np.zeros(len(numbers), np.int64)
    return OwnTrials(known, Trials(given, rows, np.full(len(numbers), 0.5), marks, numbers=np.array(numbers)))


def test_places_follow_trial_numbers_and_only_shrink():
    """Of trials that end in any order, the shares at any look are at most the final ones, which fit into the budget."""
    rng = np.random.default_rng(0)
    for planned in (None, 9):
        for _ in range(20):
            configurations = rng.integers(12, size=30)
            order, before = rng.permutation(30), {}
            for look in range(1, 31):
                seen = order[:look]
                found = numbered(seen, configurations[seen], planned=planned)
                now = {c: found.share_by_order(np.array([0.01 * c])) for c in set(configurations[seen].tolist())}
                assert all(now[c] >= share for c, share in before.items())
                assert math.fsum(now.values()) <= SHARES.own * DELTA * (1 + 1e-12)
                before = now
            in_order = numbered(np.arange(30), configurations, planned=planned)
            assert before == {c: in_order.share_by_order(np.array([0.01 * c])) for c in before}
    late = numbered([7], [4])
    assert late.share_by_order(np.array([0.04])) == pytest.approx(0.02 / (8 * 9))  # not that of the first
    assert late.share_by_order(np.array([0.05])) == pytest.approx(0.02 / (9 * 10))  # of one that was not tried


@pytest.mark.heavy
def test_trials_that_end_in_reverse_order_are_wrong_in_at_most_delta_of_runs():
    """All begin at once and end in reverse; somebody looks after each. By ranks, far more runs were wrong."""
    wrong, runs, n = 0, 200, 60
    draws = np.random.default_rng(1).binomial(100, 0.5, size=(runs, n)) / 100
    known = mb.Assumptions(
        reward_range=(0.0, 1.0), samples=100, rows="fresh", delta=0.5
    )  # so that errors are not too rare to count
    for values in draws:
        for look in range(1, n + 1):
            seen = np.arange(n)[n - look :][::-1]
            found = OwnTrials(
                known,
                Trials([{}] * look, seen[:, None] / n, values[seen], np.zeros(look, np.int64), numbers=seen),
            )
            if found.interval(seen[-1:] / n).lower > 0.5:
                wrong += 1
                break
    assert wrong <= runs * SHARES.own * 0.5 + 3 * math.sqrt(runs * 0.1 * 0.9)
