"""Which configuration is tried next, and how a known budget is spent."""

import itertools
import math
import pickle

import numpy as np
import pytest

import mixbandit as mb
from mixbandit.bandits import persistent
from mixbandit.tuning.proposing import Experience, Proposer, as_weights
from mixbandit.tuning.space import centre
from tests.helpers.interrupts import finishes
from tests.helpers.spaces import EVERYTHING

STATED = {"reward_range": (0.0, 1.0), "samples": 100, "rows": "fresh"}
PLANE = mb.Space({"x": mb.Float(0.0, 1.0), "y": mb.Float(0.0, 1.0)})
SMALL = mb.Space({"i": mb.Int(0, 4), "k": mb.Categorical(["a", "b"])})


def chance(parameters):
    return 0.9 - 0.5 * (parameters["x"] - 0.7) ** 2 - 0.3 * (parameters["y"] - 0.2) ** 2


def noisy(parameters, rng):
    return float(rng.binomial(100, chance(parameters))) / 100


def test_it_begins_in_the_centre_and_finds_the_best():
    rng = np.random.default_rng(0)
    tuner = mb.Tuner(PLANE, **STATED, rng=0)
    trials = []
    for _ in range(40):
        trials.append(tuner.ask())
        tuner.tell(trials[-1], noisy(trials[-1].parameters, rng))
    assert trials[0].parameters == {"x": 0.5, "y": 0.5}
    late = [chance(trial.parameters) for trial in trials[20:]]
    assert np.mean(late) > 0.87
    assert np.mean(late) > np.mean([chance(p) for p in PLANE.sample(500, rng=0)]) + 0.08


def test_every_choice_is_a_configuration():
    tuner = mb.Tuner(EVERYTHING, **STATED, rng=0)
    rng = np.random.default_rng(0)
    for _ in range(30):
        trial = tuner.ask()
        row = EVERYTHING.encode(trial.parameters)
        assert np.array_equal(EVERYTHING.region.snapped(row[None])[0], row)
        tuner.tell(trial, 0.5 + 0.05 * rng.uniform())


def test_a_small_space_is_tried_out_before_anything_is_repeated_without_need():
    tuner = mb.Tuner(SMALL, **STATED, rng=0)
    rng = np.random.default_rng(1)
    tried = []
    for _ in range(60):
        trial = tuner.ask()
        tried.append((trial.parameters["i"], trial.parameters["k"]))
        expected = 0.6 + 0.08 * trial.parameters["i"] - 0.2 * (trial.parameters["k"] == "b")
        tuner.tell(trial, rng.binomial(100, expected) / 100)
    # The best one is found, and then repeated.
    assert tried[30:].count((4, "a")) > 20


def test_pending_configurations_are_not_chosen_again():
    tuner = mb.Tuner(SMALL, **STATED, initial=1, rng=0)
    tuner.tell(tuner.ask(), 0.5)
    batch = [tuple(trial.parameters.values()) for trial in tuner.ask(10)]
    assert len(set(batch)) == 10
    plane = mb.Tuner(PLANE, **STATED, rng=0)
    first = plane.ask(8)  # nothing is known yet: spread, from the centre on
    assert first[0].parameters == {"x": 0.5, "y": 0.5}
    assert min(math.dist(a.parameters.values(), b.parameters.values())
               for i, a in enumerate(first) for b in first[:i]) > 0.05  # fmt: skip
    for trial in first:
        plane.tell(trial, noisy(trial.parameters, np.random.default_rng(trial.number)))
    assert len({tuple(trial.parameters.values()) for trial in plane.ask(8)}) == 8


def test_a_configuration_is_repeated_only_if_nothing_new_is_nearly_as_good():
    rows = centre(PLANE)[None] + np.array([[0.0, 0.0]])
    proposer = Proposer(PLANE)
    seen = Experience(np.repeat(rows, 6, axis=0), np.full(6, 0.9), np.ones(6))
    found = proposer.propose(seen, np.empty((0, 2)), np.random.default_rng(0))
    assert not np.array_equal(found, rows[0])
    # Of two configurations, one far better than the other.
    two = mb.Space({"k": mb.Categorical(["good", "bad"])})
    both = np.repeat(np.eye(2), 20, axis=0)
    values = np.repeat([0.9, 0.1], 20) + 0.01 * np.random.default_rng(0).normal(size=40)
    again = Proposer(two).propose(Experience(both, values, np.ones(40)), np.empty((0, 2)), np.random.default_rng(0))
    assert np.array_equal(again, [1.0, 0.0])


def test_what_is_stored_goes_on_in_the_same_way(tmp_path):
    rng = np.random.default_rng(0)
    tuner = mb.Tuner(EVERYTHING, **STATED, rng=3)
    for i in range(25):
        trial = tuner.ask()
        tuner.tell(trial, 0.5 + 0.05 * rng.uniform(), sem=0.1 if i % 2 else None)
    tuner.ask(2)
    tuner.save(tmp_path / "t")
    again = mb.Tuner.load(tmp_path / "t")
    assert [trial.parameters for trial in again.ask(3)] == [trial.parameters for trial in tuner.ask(3)]
    assert again.history == tuner.history


def test_standard_errors_steer_what_is_tried_and_nothing_else():
    def told(errors):
        tuner = mb.Tuner(PLANE, **STATED, rng=0)
        rng = np.random.default_rng(0)
        for i in range(12):
            trial = tuner.adopt(PLANE.sample(1, rng=i)[0])
            tuner.tell(trial, noisy(trial.parameters, rng), sem=errors(i))
        return tuner

    plain, steered = told(lambda i: None), told(lambda i: 0.5 if i % 3 else 0.01)
    assert plain.certificate().lower == steered.certificate().lower
    first = [trial.parameters for trial in plain.ask(5)]
    assert first != [trial.parameters for trial in steered.ask(5)]
    assert first == [trial.parameters for trial in told(lambda i: 0.2).ask(5)]  # only their ratios count
    assert "standard errors" in steered.certificate().details()
    assert "standard errors" not in plain.certificate().details()
    with pytest.raises(mb.InvalidInput, match="sem must lie in"):
        plain.tell(plain.ask(), 0.5, sem=-1.0)


def test_noise_levels_of_values_steer_and_count(tmp_path):
    def told(levels):
        tuner = mb.Tuner(PLANE, reward_range=(0.0, 1.0), sigma=0.1, rng=0)
        rng = np.random.default_rng(0)
        for i in range(12):
            trial = tuner.adopt(PLANE.sample(1, rng=i % 6)[0])
            tuner.tell(trial, chance(trial.parameters) + 0.02 * rng.normal(), sigma=levels(i))
        return tuner

    plain, same = told(lambda i: None), told(lambda i: 0.1)
    precise, first = told(lambda i: 0.02), PLANE.sample(1, rng=0)[0]
    assert plain.interval(first) == pytest.approx(same.interval(first), abs=1e-9)
    ends = precise.interval(first)
    assert ends[1] - ends[0] < 0.5 * (plain.interval(first)[1] - plain.interval(first)[0])
    assert ends[0] <= chance(first) <= ends[1]
    mixed = told(lambda i: 0.5 if i % 2 else 0.02)
    assert [t.parameters for t in mixed.ask(5)] != [t.parameters for t in plain.ask(5)]
    precise.save(tmp_path / "t")
    again = mb.Tuner.load(tmp_path / "t")
    assert again.certificate().lower == precise.certificate().lower
    assert again.history[0].sigma == 0.02
    # The table has them, too.
    stated = {"reward_range": (0.0, 1.0), "sigma": 0.1, "space": PLANE}
    for tuner in (plain, precise, mixed):
        for trial in tuner.pending:
            tuner.fail(trial)
        assert mb.certify(tuner.to_frame(), **stated).lower == pytest.approx(tuner.certificate().lower, abs=1e-9)
        learnt = mb.Tuner(PLANE, reward_range=(0.0, 1.0), sigma=0.1, rng=0).learn(tuner.to_frame())
        assert learnt.interval(first) == pytest.approx(tuner.interval(first), abs=1e-9)
    with pytest.raises(mb.InvalidInput, match="need a stated sigma"):
        mb.certify(mixed.to_frame(), space=PLANE, **STATED)
    with pytest.raises(mb.InvalidInput, match="positive noise levels"):
        mb.certify(mixed.to_frame().assign(mixbandit_sigma=0.0), **stated)
    for trial in precise.confirm(3):
        precise.tell(trial, chance(trial.parameters), sigma=0.02)
    assert precise.certificate().lower >= again.certificate().lower
    # Noisy values hardly count, and the certificate says what was told.
    wild = mb.Tuner(PLANE, reward_range=(0.0, 1.0), sigma=0.02, rng=0)
    for value, level in [(0.8, None)] * 5 + [(0.0, 3.0)] * 5:
        wild.tell(wild.adopt(first), value, sigma=level)
    low, high = wild.interval(first)
    assert low <= wild.plan(floor=0.78).estimate <= high
    assert "noise levels told with single values: 0.02 to 3" in wild.certificate().details()
    assert "Hint" not in str(wild.certificate().audit)
    counting = mb.Tuner(PLANE, **STATED, rng=0)
    trial = counting.ask()
    for tuner, waiting, bad in ((counting, trial, 0.1), (plain, plain.ask(), -1.0), (wild, wild.ask(), 1e-9)):
        before = tuner.told
        with pytest.raises(mb.InvalidInput, match="sigma"):
            tuner.tell(waiting, 0.5, sigma=bad)
        assert tuner.told == before


def test_weights_are_relative_and_limited():
    assert as_weights(np.array([np.nan, np.nan])).tolist() == [1.0, 1.0]
    assert as_weights(np.array([0.1, 0.1, 0.2, np.nan, 0.0])).tolist() == [1.0, 1.0, 0.25, 1.0, 1.0]
    assert as_weights(np.array([1.0, 1.0, 1e9])).min() == 0.0625


@pytest.mark.parametrize(
    ("n", "confirmations", "expected"), [(40, None, (27, 10, 3)), (20, 5, (10, 5, 5)), (1, 0, (1, 0, 0))]
)
def test_a_known_budget_is_searched_settled_and_confirmed(n, confirmations, expected):
    rng = np.random.default_rng(2)
    tuner = mb.Tuner(PLANE, **STATED, rng=0)
    seen = []

    def objective(parameters):
        seen.append(tuple(parameters.values()))
        return noisy(parameters, rng)

    assert tuner.optimize(objective, n, confirmations=confirmations) is tuner
    search, again, last = expected
    assert tuner.told == n == len(seen)
    # Repeats, as long as it is in doubt what they are worth.
    assert set(seen[search : search + min(again, 3)]) <= set(seen[:search])
    nominated = [told.nomination > 0 for told in tuner.history]
    assert sum(nominated) <= last
    assert not any(nominated[: search + again])


def test_an_objective_that_fails_loses_only_its_own_trial():
    tuner = mb.Tuner(PLANE, **STATED, rng=0)
    calls = []

    def broken(parameters):
        calls.append(parameters)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return 0.5

    with pytest.raises(KeyboardInterrupt):
        tuner.optimize(broken, 10)
    assert (tuner.told, tuner.pending) == (3, ())
    tuner.optimize(lambda parameters: 0.5, 7)
    assert tuner.told == 10


def test_a_budget_that_cannot_be_is_refused():
    tuner = mb.Tuner(PLANE, **STATED, rng=0)
    for bad in ({"n_trials": 0}, {"n_trials": 3, "confirmations": 4}, {"n_trials": 3, "confirmations": -1}):
        with pytest.raises(mb.InvalidInput):
            tuner.trials(**bad)
    with pytest.raises(mb.InvalidInput, match="objective must be callable"):
        tuner.optimize(3, 5)


def test_with_features_or_exploration_it_acts_on_bounds():
    features = mb.RandomFourier(2, 20, 0.5, rng=0)
    for options in ({"features": features}, {"exploration": 0.1}, {"exact": True}):
        tuner = mb.Tuner(PLANE, **STATED, rng=0, **options)
        assert tuner.initial == 10
        for _ in range(12):
            tuner.tell(tuner.ask(), 0.5)
        assert tuner.told == 12


def test_candidates_are_bred_from_the_best_and_lie_in_the_space():
    rng = np.random.default_rng(0)
    parents = np.array([[0.1, 0.0, 1.0, 0.0, 0.9], [0.3, 1.0, 0.0, 0.0, 0.2]])
    space = mb.Space({"x": mb.Float(0.0, 1.0), "k": mb.Categorical(["a", "b", "c"]), "y": mb.Float(0.0, 1.0)})
    fresh = space.region.sample(4000, rng)
    bred = Proposer(space)._bred(parents, fresh, rng)
    assert ((bred >= 0.0) & (bred <= 1.0)).all()
    # A third is fresh, as if from one more parent; of categories also three in ten that are inherited.
    numbers, kinds = (bred[:, 0] == fresh[:, 0]).mean(), (bred[:, 1:4] == np.eye(3)[2]).all(axis=1).mean()
    assert numbers == pytest.approx(1 / 3, abs=0.03)
    assert kinds == pytest.approx((1 - 0.7 * 2 / 3) / 3, abs=0.03)
    # Parameters come from different parents: "b" stands beside a small y, "a" beside a large one, as often as not.
    alike = (bred[:, 2] == 1.0) == (np.abs(bred[:, 4] - 0.9) < np.abs(bred[:, 4] - 0.2))
    assert 0.4 < alike[bred[:, 3] == 0.0].mean() < 0.6
    # The spread around a parent is its distance to its neighbours.
    far = Proposer(space)._bred(np.array([[0.5] * 5, [0.51] * 5]), fresh, rng)[:, 0]
    assert np.std(far[far != fresh[:, 0]]) > 0.2
    near = Proposer(space)._bred(np.linspace(0.0, 1.0, 25)[:, None].repeat(5, axis=1), fresh, rng)[:, 0]
    assert abs(near.mean() - 0.5) < 0.02


def test_lucky_values_that_are_not_precise_do_not_attract_the_search():
    rng = np.random.default_rng(0)
    rows = rng.uniform(size=(40, 2))
    values = 0.9 - 0.5 * ((rows - 0.2) ** 2).sum(axis=1)
    values[:8], rows[:8] = 1.5, 0.9 + 0.05 * rng.uniform(size=(8, 2))  # nonsense far away from the best
    proposer = Proposer(PLANE)

    def far(weights):
        """The mean distance of candidates from the best."""
        seen = Experience(rows, values, weights)
        outlook = proposer._outlook(seen, np.empty((0, 2)))
        return np.linalg.norm(proposer._candidates(seen, outlook, np.random.default_rng(0)) - 0.2, axis=1).mean()

    assert far(np.where(np.arange(40) < 8, 0.0625, 16.0)) < far(np.ones(40)) - 0.15


def test_settling_repeats_the_leader_until_its_worth_is_known():
    tuner = mb.Tuner(PLANE, **STATED, rng=0)
    rng = np.random.default_rng(0)
    for _ in range(25):
        trial = tuner.ask()
        tuner.tell(trial, noisy(trial.parameters, rng))
    tried, news = {tuple(told.parameters.values()) for told in tuner.history}, []
    for _ in range(60):
        trial = tuner.settle()
        news.append(tuple(trial.parameters.values()) not in tried)
        tried.add(tuple(trial.parameters.values()))
        tuner.tell(trial, noisy(trial.parameters, rng))
    assert not any(news[:5])
    assert 0 < sum(news) < 50


@pytest.mark.parametrize("space", [PLANE, SMALL])
def test_what_fails_is_not_tried_again_at_once(space, tmp_path):
    rng = np.random.default_rng(0)
    tuner = mb.Tuner(space, **STATED, rng=0)
    for _ in range(17):
        tuner.tell(tuner.ask(), 0.6 + 0.02 * rng.normal())
    for method in ("ask", "settle"):
        failing, failed = tuner.copy(), []
        for _ in range(7):
            trial = getattr(failing, method)()
            failed.append(tuple(trial.parameters.values()))
            failing.fail(trial)
        assert len(set(failed)) == 7
    tuner = failing
    tuner.save(tmp_path / "t")
    again = mb.Tuner.load(tmp_path / "t")
    assert again.settle().parameters == tuner.settle().parameters
    # After some other values it may have been bad luck.
    for tried in (tuner, again):
        for _ in range(5):
            tried.tell(tried.search(), 0.58)
        assert tried._avoided == ()


def test_what_is_tried_again_depends_on_what_is_pending():
    tuner = mb.Tuner(SMALL, **STATED, initial=1, rng=0)
    rng = np.random.default_rng(0)
    for _ in range(12):
        tuner.tell(tuner.ask(), 0.5 + 0.02 * rng.normal())
    assert len({tuple(tuner.settle().parameters.values()) for _ in range(8)}) > 1


def test_a_configuration_is_tried_again_as_it_was_given():
    tuner = mb.Tuner({"rate": mb.Float(1e-4, 1.0, log=True)}, **STATED, rng=0)
    for _ in range(3):
        tuner.tell(tuner.adopt({"rate": 3e-3}), 0.9)
    assert tuner.settle().parameters == {"rate": 3e-3}


def test_integers_with_too_many_values_to_list_are_not_repeated():
    tuner = mb.Tuner({"n": mb.Int(1, 100_000, log=True)}, **STATED, rng=0)
    tuner.tell(tuner.ask(), 0.5)
    assert len({trial.parameters["n"] for trial in tuner.ask(12)}) == 12


def test_a_budget_after_a_table_without_an_order_is_spent_without_confirmations():
    tuner = mb.Tuner(PLANE, **STATED, rng=0)
    tuner.learn([(p, 0.5) for p in PLANE.sample(5, rng=0)], ordered=False)
    tuner.optimize(lambda parameters: 0.5, 13)
    assert tuner.told == 18
    assert not any(told.nomination for told in tuner.history)


def test_standard_errors_are_those_of_their_own_values_after_a_copy_and_a_file(tmp_path):
    tuner = mb.Tuner(PLANE, **STATED, rng=0).learn([(p, 0.5) for p in PLANE.sample(5, rng=0)], ordered=True)
    tuner.tell(tuner.ask(), 0.5, sem=0.01)
    tuner.save(tmp_path / "t")
    again = mb.Tuner.load(tmp_path / "t")
    assert list(persistent.items(again.state.errors)) == [(5, 0.01)]
    plain = pickle.loads(
        pickle.dumps(mb.Tuner(PLANE, **STATED, rng=0).learn([(p, 0.5) for p in PLANE.sample(5, rng=0)]))
    )
    assert "standard errors" not in plain.certificate().details()


def test_an_interrupt_at_any_instruction_of_optimize_leaves_whole_trials():
    tuner = mb.Tuner(PLANE, **STATED, rng=0)
    for number in itertools.count(1):
        start, told = tuner.state, tuner.told
        done = finishes(lambda: tuner.optimize(lambda parameters: 0.5, 2), number, "opcode", "mixbandit.tuning.finals")
        assert not tuner.pending
        assert tuner.told == tuner.state.bandit.rounds
        assert told <= tuner.told <= told + 2
        if done:
            break
        tuner.state = start
    assert number > 100
