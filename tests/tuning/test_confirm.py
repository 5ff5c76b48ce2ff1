"""Confirming finalists: an iterator of trials that have a part of δ of their own."""

import itertools
import math

import numpy as np
import pytest

import mixbandit as mb
from mixbandit.tuning.confirming import _ALIKE, Finalist
from mixbandit.tuning.evidence import mean_after

SPACE = mb.Space({"C": mb.Float(1e-2, 1e2, log=True), "k": mb.Categorical(["a", "b"])})
STATED = {"reward_range": (0.0, 1.0), "samples": 50, "rows": "fresh"}
STATEMENTS = {
    "samples": STATED,
    "minimize": {**STATED, "direction": "minimize"},
    "sigma": {"sigma": 0.07, "reward_range": (0.0, 1.0)},
    "gaussian": {"noise": "gaussian", "reward_range": (0.0, 1.0)},
    "no range": {"noise": "gaussian", "norm_bound": 2.0, "direction": "minimize"},
}


def truth(parameters):
    return 0.85 - 0.05 * math.log10(parameters["C"] / 3.0) ** 2 - 0.1 * (parameters["k"] == "b")


def value(tuner, parameters, rng):
    found = float(rng.binomial(50, truth(parameters)) / 50)
    if tuner.assumptions.samples is None:
        found = float(rng.normal(truth(parameters), 0.05))
    return found if tuner.assumptions.direction == "maximize" else 1.0 - found


def played(rounds=15, seed=0, **stated):
    tuner, rng = mb.Tuner(SPACE, **(stated or STATED), rng=seed), np.random.default_rng(seed)
    for _ in range(rounds):
        trial = tuner.ask()
        tuner.tell(trial, value(tuner, trial.parameters, rng))
    return tuner


def confirmed(tuner, n, finalists=3, seed=1):
    rng, confirmation = np.random.default_rng(seed), tuner.confirm(n, finalists)
    for trial in confirmation:
        tuner.tell(trial, value(tuner, trial.parameters, rng))
    return confirmation


def test_trials_are_chosen_when_they_are_requested():
    tuner = played()
    confirmation = tuner.confirm(5)
    assert iter(confirmation) is confirmation
    assert (confirmation.unused, confirmation.finalists, tuner.pending) == (5, (), ())
    assert tuner.state.nominated == ()
    first = next(confirmation)
    assert confirmation.unused == 4
    assert tuner.pending == (first,)
    assert len(confirmation.finalists) == 3
    # What is told now decides what comes next: a finalist that disappoints is not confirmed again.
    other = tuner.copy()
    tuner.tell(first, 0.64)
    assert next(confirmation).parameters != first.parameters
    again = other.confirm(4)
    other.tell(first, 0.98)
    assert next(again).parameters == first.parameters


def test_it_ends_after_n_trials():
    tuner = played()
    confirmation = tuner.confirm(4, 2)
    trials = list(itertools.islice(confirmation, 10))  # without telling any
    assert len(trials) == 4
    assert confirmation.unused == 0
    for _ in range(2):
        with pytest.raises(StopIteration):
            next(confirmation)
    assert [trial.id for trial in tuner.pending] == [trial.id for trial in trials]
    assert len({trial.id for trial in trials}) == 4


def test_it_ends_early_when_one_finalist_is_left():
    tuner, confirmation = played(), None
    confirmation = tuner.confirm(400, 2)
    good = None
    for trial in confirmation:
        good = good or trial.parameters
        tuner.tell(trial, 0.98 if trial.parameters == good else 0.02)
        if tuner.told > 60:
            break
        # The other finalist is only asked for once it promises more: here it is never better.
        if tuner.told > 25 and trial.parameters == good:
            for other in confirmation.finalists:
                parameters = SPACE.decode(other.row)
                if not SPACE.same(parameters, good):
                    tuner.tell(tuner.adopt(parameters), 0.02)
    assert confirmation.unused > 300
    judgement = tuner.judgement
    left, right = judgement.ends(np.array([finalist.row for finalist in confirmation.finalists]))
    assert left.upper < right.lower or right.upper < left.lower


def test_a_single_finalist_is_confirmed_to_the_end():
    tuner = played()
    confirmation = confirmed(tuner, 6, 1)
    assert confirmation.unused == 0
    assert [told.nomination for told in tuner.history[-6:]] == [1] * 6


def test_finalists_are_different_and_look_best():
    tuner = played(30)
    confirmation = tuner.confirm(3, 4)
    next(confirmation)
    rows = [finalist.row for finalist in confirmation.finalists]
    assert [finalist.number for finalist in confirmation.finalists] == [1, 2, 3, 4]
    for one, other in itertools.combinations(rows, 2):
        assert np.linalg.norm(one - other) > _ALIKE * math.sqrt(SPACE.dim)
    lower = [ends.lower for ends in tuner.judgement.ends(np.array(rows))]
    assert lower == sorted(lower, reverse=True)
    tried = [ends.lower for ends in tuner.judgement.ends(tuner.judgement.own.distinct)]
    assert lower[0] >= max(tried) - 1e-9


def test_one_that_is_known_to_be_worse_is_no_finalist():
    """Then all confirmations go to the others, and they do not end before they begin."""
    tuner = mb.Tuner(SPACE, reward_range=(0, 1), samples=1000, rows="fresh", rng=0)
    for C, value in ((0.1, 0.3), (3.0, 0.9), (30.0, 0.3)):
        for _ in range(6):
            tuner.tell(tuner.adopt({"C": C, "k": "a"}), value)
    confirmation = tuner.confirm(5, 3)
    for trial in confirmation:
        assert 0.1 < trial.parameters["C"] < 30.0
        tuner.tell(trial, 0.9)
    assert confirmation.unused == 0


def test_numbers_are_given_once_and_confirmations_add_up():
    tuner = played()
    for _ in range(3):
        confirmed(tuner, 4, 1)
    numbers = [told.nomination for told in tuner.history if told.nomination]
    assert len(numbers) == 12
    by_number = {j: {str(told.parameters) for told in tuner.history if told.nomination == j} for j in numbers}
    assert all(len(configurations) == 1 for configurations in by_number.values())
    finalists = tuner.state.nominated
    assert [finalist.number for finalist in finalists] == list(range(1, len(finalists) + 1))
    # None is like another: the confirmations of two that are alike would not count together.
    for one, other in itertools.combinations(finalists, 2):
        assert np.linalg.norm(one.row - other.row) > _ALIKE * math.sqrt(SPACE.dim)
    assert len(finalists) < 3


def test_only_confirmations_count_for_the_nominated_part():
    tuner = played()
    confirmation = confirmed(tuner, 12, 1)
    (finalist,) = confirmation.finalists
    parameters = next(told.parameters for told in tuner.history if told.nomination)
    tuner.tell(tuner.adopt(parameters), 0.9)  # again, but not as a confirmation
    values = [told.value for told in tuner.history if told.nomination == 1]
    assert len(values) == 12
    everything = [told.value for told in tuner.history if SPACE.same(told.parameters, parameters)]
    assert len(everything) >= 13
    nominated = mb.MeanSequence((0, 1), 0.05 * 0.4 / 2).update(np.array(values), samples=50)
    place = list(dict.fromkeys(np.round(SPACE.encode(t.parameters), 9).tobytes() for t in tuner.history)).index(
        np.round(finalist.row, 9).tobytes()
    )
    by_order = mb.MeanSequence((0, 1), 0.05 * 0.2 / ((place + 1) * (place + 2)))
    by_order.update(np.array(everything), samples=50)
    found = tuner.judgement.own.interval(finalist.row)
    assert found.lower == pytest.approx(max(nominated.lower(), by_order.lower()), abs=1e-12)
    assert found.upper == pytest.approx(min(nominated.upper(), by_order.upper()), abs=1e-12)
    certificate = tuner.certificate()
    assert certificate.lower >= nominated.lower() - 1e-12


def test_confirmations_raise_the_certified_value_more_than_other_trials():
    one, two = played(), played()
    confirmed(one, 12, 1)
    rng = np.random.default_rng(1)
    for _ in range(12):
        trial = two.ask()
        two.tell(trial, value(two, trial.parameters, rng))
    assert one.certificate().lower > two.certificate().lower + 0.01
    assert one.certificate().evidence == "own trials"


def test_a_saved_confirmation_goes_on_bit_for_bit(tmp_path):
    tuner = played()
    confirmed(tuner, 3)
    waiting = next(tuner.confirm(2))
    tuner.save(tmp_path / "t")
    again = mb.Tuner.load(tmp_path / "t")
    assert [f.number for f in again.state.nominated] == [f.number for f in tuner.state.nominated]
    for one, other in zip(again.state.nominated, tuner.state.nominated, strict=True):
        assert np.array_equal(one.row, other.row)
    assert again.history == tuner.history
    for each in (tuner, again):
        each.tell(waiting.id, 0.9)
    assert tuner.history[-1].nomination > 0
    assert again.history == tuner.history
    one, two = confirmed(tuner, 5), confirmed(again, 5)
    assert again.history == tuner.history
    assert one.unused == two.unused
    assert again.certificate().interval == tuner.certificate().interval


def forged(state, *path, value):
    """The state with another value somewhere."""
    where = state
    for key in path[:-1]:
        where = where[key]
    where[path[-1]] = value
    return state


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("nominated",), [np.zeros(2)], "3 coordinates"),
        (("nominated",), [np.full(3, 9.0)], "in the space"),
        (("nominated",), [], "all finalists"),
        (("notes", 0, "id"), 999, "pending trials"),
        (("notes", 0, "nomination"), 7, "all finalists"),
        (("notes", 0, "parameters"), {"C": 77.0, "k": "b"}, "parameters of trial"),
        (("notes", 0, "parameters"), {"D": 1.0}, "'D' unknown"),
        (("history", 0, "nomination"), 9, "all finalists"),
        (("history", 0, "parameters"), {"C": 1e9, "k": "b"}, "C must lie between"),
        (("history", 0, "value"), 7.0, "outside reward_range"),
    ],
)
def test_a_forged_state_is_refused(path, value, message):
    """What is certified follows from the history, which must be one that can be."""
    tuner = played(4)
    confirmation = tuner.confirm(3, 1)
    tuner.tell(next(confirmation), 0.8)
    next(confirmation)
    assert mb.Tuner.from_state_dict(tuner.state_dict()).history == tuner.history
    with pytest.raises(mb.DamagedState, match=message):
        mb.Tuner.from_state_dict(forged(tuner.state_dict(), *path, value=value))


def test_an_interrupt_between_requests_leaves_a_consistent_state(monkeypatch):
    tuner, twin = played(), played()
    confirmation = tuner.confirm(4)
    tuner.tell(next(confirmation), 0.8)
    before = tuner.state

    def interrupt(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("mixbandit.tuning.confirming.promised", interrupt)
        with pytest.raises(KeyboardInterrupt):
            next(confirmation)
    assert tuner.state is before
    assert (confirmation.unused, tuner.pending) == (3, ())
    with monkeypatch.context() as patched:  # before the first trial
        fresh = twin.confirm(4)
        patched.setattr("mixbandit.tuning.confirming.promised", interrupt)
        with pytest.raises(KeyboardInterrupt):
            next(fresh)
    assert twin.pending == ()
    twin.tell(next(fresh), 0.8)
    assert twin.history == tuner.history
    tuner.tell(next(confirmation), 0.8)
    twin.tell(next(fresh), 0.8)
    assert twin.history == tuner.history


def test_a_confirmation_that_fails_has_no_value():
    tuner = played()
    confirmation = tuner.confirm(3, 1)
    tuner.fail(next(confirmation))
    assert tuner.pending == ()
    assert tuner.told == len(tuner.history) == 15
    assert confirmation.unused == 2
    told = next(confirmation)
    tuner.tell(told, 0.8)
    assert tuner.history[-1].nomination == 1
    with pytest.raises(mb.InvalidInput, match="already been told or has failed"):
        tuner.tell(told.id, 0.5)


def test_a_confirmation_of_a_tried_configuration_is_given_back_as_it_was():
    tuner = mb.Tuner(SPACE, **STATED, rng=0)
    for c in (0.1, 3.0, 30.0):
        for _ in range(3):
            tuner.tell(tuner.adopt({"C": c, "k": "a"}), 0.9 if c == 3.0 else 0.3)
    given = {"C": 3.0, "k": "a"}
    row = SPACE.encode(given)
    tuner.state = tuner.state._replace(nominated=(Finalist(1, row + np.array([1e-13, 0.0, 0.0])),))
    trial = next(tuner.confirm(1, 1))
    assert trial.parameters == given
    assert tuner.recommend(tried=True).parameters == given


@pytest.mark.parametrize("kind", STATEMENTS)
def test_whatever_is_stated(kind):
    tuner = played(15, **STATEMENTS[kind])
    confirmation = confirmed(tuner, 20, 2)
    assert len(tuner.history) == 35 - confirmation.unused
    found = tuner.certificate()
    low, high = found.interval
    best = truth(found.parameters)
    best = best if found.direction == "maximize" else 1.0 - best
    assert low <= best <= high
    assert high - low < 0.5
    assert found.trusted
    assert found.evidence == "own trials"
    assert found.tried >= 10
    again = mb.certify(tuner.to_frame(), tuner.assumptions, space=SPACE)
    assert again.interval == pytest.approx(found.interval, abs=1e-9)
    assert again.evidence == found.evidence


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_the_ends_of_a_range_are_values_in_it(direction):
    """0.1 − 0.4 is not the negative of 0.7 − 0.4 in floating point."""
    tuner = mb.Tuner(SPACE, reward_range=(0.1, 0.7), samples=10, rows="fresh", direction=direction, initial=6, rng=0)
    for end in (0.1, 0.7, 0.1, 0.7, 0.1 - 1e-12, 0.7 + 1e-12):
        tuner.tell(tuner.ask(), end)
    assert tuner.certificate().t == 6
    assert mb.certify(tuner.to_frame(), tuner.assumptions, space=SPACE).t == 6


def test_values_beyond_the_range_by_rounding_are_confirmations_too():
    tuner = played()
    confirmation = tuner.confirm(3, 1)
    for trial in confirmation:
        tuner.tell(trial, 1.0 + 1e-12)
    assert confirmation.unused == 0
    assert tuner.plan(floor=0.999).confirmations != 0


@pytest.mark.parametrize("kind", ["samples", "minimize", "sigma"])
@pytest.mark.parametrize("runs", [3, pytest.param(10, marks=pytest.mark.heavy)])
def test_a_plan_is_roughly_right(kind, runs):
    """In the middle of all runs, as many confirmations as planned are about what it takes."""
    ratios = []
    for seed in range(runs):
        tuner = played(20, seed, **STATEMENTS[kind])
        goal = 0.72 if tuner.assumptions.direction == "maximize" else 0.28
        plan, rng = tuner.plan(floor=goal), np.random.default_rng([seed, 9])
        assert plan.confirmations is not None
        expected = f"will take about {plan.confirmations} more" if plan.confirmations else "is already certified"
        assert expected in str(plan)
        took = 0
        for trial in tuner.confirm(200, 1):
            tuner.tell(trial, value(tuner, trial.parameters, rng))
            took += 1
            low, high = tuner.certificate().interval
            if low >= goal if tuner.assumptions.direction == "maximize" else high <= goal:
                break
        ratios.append((took + 1) / (plan.confirmations + 1))
    assert 0.4 <= float(np.median(ratios)) <= 2.5


def test_plans_that_are_reached_or_out_of_reach():
    tuner = played()
    low = tuner.certificate().interval[0]
    assert tuner.plan(floor=low - 0.3).confirmations == 0
    assert tuner.plan(floor=0.999).confirmations is None
    assert "out of reach" in str(tuner.plan(floor=0.999))
    assert tuner.plan(gap=1.0).confirmations == 0
    tight = tuner.plan(gap=0.01)
    assert tight.confirmations is None or tight.confirmations > 0
    for wrong in ({}, {"floor": 0.5, "gap": 0.1}, {"gap": -1.0}, {"floor": math.nan}):
        with pytest.raises(mb.InvalidInput):
            tuner.plan(**wrong)
    state = tuner.state
    tuner.plan(floor=0.8)
    assert tuner.state is state


@pytest.mark.parametrize("bad", [0, -1, 2.5, "3", None, True])
def test_counts_are_checked(bad):
    tuner = played(3)
    with pytest.raises(mb.InvalidInput, match="n must be"):
        tuner.confirm(bad)
    with pytest.raises(mb.InvalidInput, match="finalists must be"):
        tuner.confirm(3, bad)
    with pytest.raises(mb.InvalidInput, match="no value has been told"):
        mb.Tuner(SPACE, **STATED).confirm(3)


def test_values_of_another_order_make_confirmations_ordinary_trials():
    tuner = played()
    confirmed(tuner, 6, 1)
    finalist = tuner.state.nominated[0].row
    rows = [({"C": c, "k": "a"}, 0.2 + 0.01 * i) for i, c in enumerate(np.geomspace(0.02, 50.0, 12))]
    tuner.learn(rows)  # sorted by value
    assert not tuner.state.ordered
    assert not tuner.judgement.own.trials.nominations.any()
    own = tuner.judgement.own
    plain = mean_after(tuner.assumptions, own.share_by_order(finalist), own.values(finalist))
    assert own.interval(finalist).lower == plain.lower()


@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore::mixbandit.AssumptionsRefutedWarning")  # false alarms are counted
@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_whole_runs_are_wrong_no_more_often_than_delta(direction):
    """25 trials of 20 results and 6 confirmations, at δ = 0.1: the recommended floor, and the best possible value.

    Tests of the assumptions have a δ of their own, so that they may refute true ones in some runs, too.
    """
    wrong, above, refuted = 0, 0, 0
    space = mb.Space({"x": mb.Float(0.0, 1.0), "y": mb.Float(0.0, 1.0)})

    def chance(p):
        return 0.9 - 0.35 * (p["x"] - 0.6) ** 2 - 0.25 * (p["y"] - 0.3) ** 2

    for run in range(200):
        rng = np.random.default_rng([8, run])
        stated = {"reward_range": (0, 1), "samples": 20, "rows": "fresh", "delta": 0.1, "direction": direction}
        tuner = mb.Tuner(space, **stated, rng=run)

        def told(parameters, rng=rng):
            hits = float(rng.binomial(20, chance(parameters)) / 20)
            return hits if direction == "maximize" else 1.0 - hits

        for _ in range(25):
            trial = tuner.ask()
            tuner.tell(trial, told(trial.parameters))
        for trial in tuner.confirm(6, 2):
            tuner.tell(trial, told(trial.parameters))
        found = tuner.certificate()
        best, own = (0.9, chance(found.parameters))
        if direction == "minimize":
            best, own = 1.0 - best, 1.0 - own
        sign = 1.0 if direction == "maximize" else -1.0
        low = found.interval[0] if sign > 0 else -found.interval[1]
        missed, too_low = low > sign * own + 1e-12, sign * found.best_possible < sign * best - 1e-12
        wrong += missed or too_low
        above += missed
        refuted += not found.trusted
    assert wrong <= 0.1 * 200, (wrong, above)
    assert refuted <= 0.1 * 200, refuted
