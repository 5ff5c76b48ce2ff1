"""The sampler inside Optuna."""

import logging
import threading
import time
from types import SimpleNamespace

import cloudpickle
import numpy as np
import optuna
import pytest
from optuna.testing.pytest_samplers import BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase

import mixbandit as mb
from mixbandit.integrations.optuna import LOWER, UPPER, MixBanditSampler, suggest
from mixbandit.integrations.optuna import sampler as sampler_module
from tests.helpers.runs import SPACE, objective, worth
from tests.helpers.spaces import EVERYTHING
from tests.integrations.studies import COMPLETE, STATED, make, of_everything, simple


class TestOptunasOwnCases(BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    """What Optuna asks of every sampler."""

    @pytest.fixture(params=[0, 10])
    def sampler(self, request):
        return lambda: MixBanditSampler(seed=0, n_startup_trials=request.param, warn_independent_sampling=False)


@pytest.fixture(scope="module")
def played():
    """A study of one float, a categorical and a conditional integer, 100 trials, some of them pruned."""
    study = make(space=SPACE, **STATED)
    rng = np.random.default_rng(0)
    study.optimize(lambda trial: objective(trial, rng), n_trials=100)
    return study


def test_it_finds_a_good_configuration_and_certifies_it(played):
    certificate = played.sampler.certificate(played)
    assert worth(certificate.action) > 0.77
    assert certificate.interval[0] <= worth(certificate.action) <= certificate.interval[1]
    assert certificate.left_out == {"PRUNED": 10}
    assert certificate.t == 90
    later = np.mean([worth(t.params) for t in played.trials[60:]])
    assert later > 0.76


def test_every_trial_carries_the_interval_of_its_expected_value(played):
    assert all(LOWER in t.user_attrs and UPPER in t.user_attrs for t in played.trials)
    inside = [t.user_attrs[LOWER] <= worth(t.params) <= t.user_attrs[UPPER] for t in played.trials]
    assert all(inside)
    # What was known later is narrower, and what the sampler said is what a tuner with the same data says.
    widths = [t.user_attrs[UPPER] - t.user_attrs[LOWER] for t in played.trials]
    assert np.mean(widths[-10:]) < 0.5 * np.mean(widths[:10])
    number = 50
    before = [t for t in played.trials[:number] if t.state.name == "COMPLETE"]
    tuner = mb.Tuner(SPACE, **STATED).learn([(t.params, t.value) for t in before])
    at = played.trials[number]
    interval = tuner.adopt(at.params).interval
    assert interval == pytest.approx((at.user_attrs[LOWER], at.user_attrs[UPPER]), abs=1e-9)


def test_without_stated_noise_it_acts_and_does_not_certify():
    study = make()
    study.optimize(simple, n_trials=60)
    assert study.best_value > 0.88
    assert not any(LOWER in t.user_attrs for t in study.trials)
    with pytest.raises(mb.AssumptionsMissing, match="nothing bounds the noise"):
        study.sampler.certificate(study)


@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_without_stated_noise_the_scale_of_values_does_not_matter(scale):
    study = make("minimize", deterministic_objective=True)

    def loss(trial):  # with a cliff, which must not blind it for what is near the optimum
        x = trial.suggest_float("x", 0.0, 1.0)
        return scale * (1e6 if x < 0.1 else (x - 0.6) ** 2)

    study.optimize(loss, n_trials=40)
    assert study.best_params["x"] == pytest.approx(0.6, abs=0.03)


def test_minimising():
    study = make("minimize", **STATED)
    study.optimize(lambda trial: 1.0 - simple(trial), n_trials=50)
    assert study.best_value < 0.12
    certificate = study.sampler.certificate(study)
    assert certificate.direction == "minimize"
    assert (
        certificate.interval[0] <= 1.0 - simple(optuna.trial.FixedTrial(certificate.action)) <= certificate.interval[1]
    )


@pytest.mark.parametrize("stated", [STATED, {}])
@pytest.mark.parametrize("space", [EVERYTHING, None])
def test_a_space_of_every_kind(space, stated, caplog):
    study = make(space=space, seed=2, warn_independent_sampling=False, **stated)
    study.optimize(lambda trial: of_everything(suggest(trial, EVERYTHING)), n_trials=40)
    for trial in study.trials:
        EVERYTHING.encode(trial.params)  # steps, integers and conditions are respected
    values = [trial.value for trial in study.trials]
    assert np.mean(values[-10:]) > np.mean([of_everything(p) for p in EVERYTHING.sample(200, rng=0)]) + 0.1
    # Without the space, once a trial lacks the conditional parameter, that one is beyond the model: intervals would be
    # about something else.
    certified = [LOWER in t.user_attrs for t in study.trials]
    lacking = next((t.number for t in study.trials if "j" not in t.params), None)
    assert space is not None or lacking is not None
    assert all(certified) if space and stated else not any(certified[lacking if stated else 0 :])


def test_what_is_sampled_independently_is_said(caplog):
    with caplog.at_level(logging.WARNING, logger="mixbandit"):
        study = make(n_startup_trials=3)
        study.optimize(lambda trial: of_everything(suggest(trial, EVERYTHING)), n_trials=12)
    messages = [record.message for record in caplog.records]
    assert any("'j'" in message and "space=mixbandit.Space" in message for message in messages)
    assert not any("'a'" in message for message in messages)


def test_no_two_running_trials_are_equal_in_a_race_of_eight_threads():
    study = make(**STATED)
    running, seen, lock = {}, [], threading.Lock()

    def played(trial):
        # The optimum is a corner: that is where everybody wants to go.
        point = tuple(trial.suggest_float(name, 0.0, 1.0) for name in "xy")
        with lock:
            seen.append(point in running.values())
            running[trial.number] = point
        time.sleep(0.005)
        with lock:
            del running[trial.number]
        return 0.4 + 0.25 * sum(point)

    study.optimize(played, n_trials=120, n_jobs=8)
    assert len(study.get_trials(states=COMPLETE)) == len(seen) == 120
    assert not any(seen)
    late = [t.params for t in study.trials[-20:]]
    assert np.mean([p["x"] + p["y"] for p in late]) > 1.7


def test_a_new_sampler_goes_on_from_the_study(tmp_path):
    storage = f"sqlite:///{tmp_path}/study.db"
    one = optuna.create_study(study_name="s", storage=storage, direction="maximize", sampler=MixBanditSampler(seed=0))
    one.optimize(simple, n_trials=15)
    waiting = one.ask()
    point = waiting.suggest_float("x", -1.0, 1.0), waiting.suggest_float("y", 0.01, 1.0, log=True)
    again = optuna.load_study(study_name="s", storage=storage, sampler=MixBanditSampler(seed=0))
    trial = again.ask()
    other = trial.suggest_float("x", -1.0, 1.0), trial.suggest_float("y", 0.01, 1.0, log=True)
    assert other != point
    tuner = again.sampler.tuner(again)
    assert tuner.told == 15
    assert len(tuner.pending) == 2
    assert any(pending.parameters == pytest.approx(waiting.params) for pending in tuner.pending)


def test_parameters_that_are_chosen_and_not_yet_asked_for_count_as_pending():
    study = make(n_startup_trials=0)
    study.optimize(simple, n_trials=5)
    first = study.ask()
    first.suggest_float("x", -1.0, 1.0)  # y has been chosen with it, and nobody has seen it
    second = MixBanditSampler(seed=1, n_startup_trials=0)
    study.sampler = second
    simple(study.ask())
    expected = pytest.approx({"x": first.params["x"], "y": first.relative_params["y"]})
    assert sum(pending.parameters == expected for pending in second.tuner(study).pending) == 1


def test_it_can_be_pickled_and_seeded():
    def played(sampler):
        study = optuna.create_study(direction="maximize", sampler=sampler)
        study.optimize(simple, n_trials=14)
        return [t.params for t in study.trials]

    assert played(MixBanditSampler(seed=3)) == played(cloudpickle.loads(cloudpickle.dumps(MixBanditSampler(seed=3))))
    assert played(MixBanditSampler(seed=3)) != played(MixBanditSampler(seed=4))
    study = make()
    study.optimize(simple, n_trials=12)
    again = cloudpickle.loads(cloudpickle.dumps(study.sampler))
    study.sampler = again
    study.optimize(simple, n_trials=1)
    assert again.tuner(study).told == 13


def test_trials_that_fail_or_are_pruned_are_neither_pending_nor_values():
    study = make(n_startup_trials=2, **STATED)

    def objective(trial):
        value = simple(trial)
        if trial.number % 3 == 1:
            raise optuna.TrialPruned
        if trial.number % 3 == 2:
            raise RuntimeError
        return value

    study.optimize(objective, n_trials=18, catch=RuntimeError)
    study.ask().suggest_float("x", -1.0, 1.0)
    tuner = study.sampler.tuner(study)
    assert tuner.told == 6
    assert len(tuner.pending) == 1


def test_a_trial_with_other_parameters_than_were_chosen_counts_as_what_it_was():
    study = make(n_startup_trials=0, **STATED)
    study.optimize(simple, n_trials=4)
    study.enqueue_trial({"x": 0.123, "y": 0.5})
    study.optimize(simple, n_trials=2)
    tuner = study.sampler.tuner(study)
    assert tuner.told == 6
    by_hand = mb.Tuner(tuner.space, **STATED).learn([(t.params, t.value) for t in study.trials])
    at = {"x": 0.2, "y": 0.2}
    assert tuner.adopt(at).interval == pytest.approx(by_hand.adopt(at).interval, abs=1e-9)


def test_the_startup_is_spread_or_left_to_whom_one_names():
    study = make(n_startup_trials=8)
    study.optimize(simple, n_trials=8)
    x = np.sort([t.params["x"] for t in study.trials[1:]])
    assert np.diff(x).max() < 1.0
    study = make(n_startup_trials=3, independent_sampler=optuna.samplers.RandomSampler(seed=7))
    study.optimize(simple, n_trials=3)
    plain = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=7))
    plain.optimize(simple, n_trials=3)
    assert [t.params for t in study.trials] == [t.params for t in plain.trials]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"samples": 10}, mb.InvalidInput, "need reward_range or sigma"),
        ({"sigma": 0.1}, mb.AssumptionsMissing, "norm_bound"),
        ({"reward_range": (1.0, 0.0)}, mb.InvalidInput, "low < high"),
        ({"reward_range": (0.0, 1.0), "deterministic_objective": True}, mb.InvalidInput, "no noise"),
        ({"n_startup_trials": -1}, mb.InvalidInput, "n_startup_trials"),
        ({"exploration": -1.0}, mb.InvalidInput, "exploration"),
        ({"delta": 2.0, **STATED}, mb.InvalidInput, "delta"),
        ({"misspecification": -1.0, **STATED}, mb.InvalidInput, "misspecification"),
        ({"space": {"x": 1}}, mb.InvalidInput, "x must be a Float, Int or Categorical"),
        ({"space": [1]}, mb.InvalidInput, "must be a Space or a dict"),
    ],
)
def test_bad_settings_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        MixBanditSampler(**options)


def slope(trial):
    return 0.1 + 0.7 * trial.suggest_float("x", 0.0, 1.0) + 0.1 * trial.suggest_float("y", 0.0, 1.0)


def test_only_a_trial_that_was_played_as_it_was_chosen_carries_an_interval():
    precise = {"reward_range": (0.0, 1.0), "samples": 10_000, "rows": "fresh", "n_startup_trials": 0}
    study = make(**precise)
    study.optimize(slope, n_trials=12)
    study.enqueue_trial({"x": 0.0})
    study.optimize(slope, n_trials=1)
    assert study.trials[-1].params["x"] == 0.0
    assert LOWER not in study.trials[-1].user_attrs
    study.optimize(slope, n_trials=1)
    assert LOWER in study.trials[-1].user_attrs
    # A parameter that appears later is not in the model, whether it varies in a trial or only between trials.
    for first, later in (
        (lambda trial: None, lambda trial: trial.suggest_float("z", 0.0, 1.0)),
        (lambda trial: trial.suggest_int("e", 1, 1), lambda trial: trial.suggest_int("e", 2, 2)),
    ):
        study = make(**precise)
        study.optimize(lambda trial, other=first: slope(trial) + 0.0 * (other(trial) or 0), n_trials=6)
        assert LOWER in study.trials[-1].user_attrs
        study.optimize(lambda trial, other=later: slope(trial) + 0.0 * (other(trial) or 0), n_trials=2)
        assert not any(LOWER in trial.user_attrs for trial in study.trials[-2:])


def test_one_sampler_serves_several_studies():
    sampler = MixBanditSampler(seed=0, n_startup_trials=0, **STATED)
    studies = [optuna.create_study(direction="maximize", sampler=sampler) for _ in range(2)]
    for level, study in zip((0.9, 0.1, 0.9), (*studies, studies[0]), strict=True):
        study.optimize(lambda t, level=level: level + 0.0 * t.suggest_float("x", 0.0, 1.0), n_trials=10)
        last = study.trials[-1]
        assert last.user_attrs[LOWER] <= level <= last.user_attrs[UPPER]


def test_a_sampler_around_it_may_fix_parameters():
    inner = MixBanditSampler(seed=0, space=EVERYTHING, n_startup_trials=2, **STATED)
    with pytest.warns(optuna.exceptions.ExperimentalWarning):
        around = optuna.samplers.PartialFixedSampler({"a": 0.25}, inner)
    study = optuna.create_study(direction="maximize", sampler=around)
    study.optimize(lambda trial: of_everything(suggest(trial, EVERYTHING)), n_trials=6)
    assert all(trial.params["a"] == 0.25 for trial in study.trials)
    assert inner.tuner(study).told == 6


def test_an_independent_sampler_is_told_of_trials():
    grid = optuna.samplers.GridSampler({"x": [0.1, 0.2, 0.3]}, seed=0)
    study = make(independent_sampler=grid, n_startup_trials=2)
    study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), n_trials=2)
    assert {trial.params["x"] for trial in study.trials} <= {0.1, 0.2, 0.3}


def test_threads_keep_what_was_learnt():
    study = make(n_startup_trials=2, **STATED)
    study.optimize(simple, n_trials=30, n_jobs=4)
    assert study.sampler.tuner(study).told == 30


def test_processes_with_the_same_seed_begin_differently():
    one, two = (make(seed=5) for _ in range(2))
    study = one
    points = []
    for sampler in (one.sampler, two.sampler):  # as two processes on one study would
        study.sampler = sampler
        trial = study.ask()
        points.append((trial.suggest_float("x", 0.0, 1.0), trial.suggest_float("y", 0.0, 1.0)))
    assert points[0] != points[1]
    assert points[0][0] != points[0][1]


def test_a_study_that_varies_more_than_the_space_is_not_certified():
    study = make(space=mb.Space({"x": mb.Float(0.0, 1.0)}), **STATED)
    study.optimize(slope, n_trials=5)
    assert not any(LOWER in trial.user_attrs for trial in study.trials[1:])
    with pytest.raises(mb.InvalidInput, match="varies 'y', which is not in the space"):
        study.sampler.certificate(study)


def test_a_choice_that_another_process_just_made_is_made_anew(monkeypatch):
    """Another process publishes the same parameters between our choice and our look at what is running."""
    study = make(n_startup_trials=0, **STATED)
    # After these trials everybody wants the corner.
    study.optimize(lambda trial: 0.1 + 0.4 * sum(trial.suggest_float(name, 0.0, 1.0) for name in "xy"), n_trials=40)
    published, taken = sampler_module.publish, []

    def contested(study, trial, parameters):
        published(study, trial, parameters)
        if not taken:
            other = study._storage.create_new_trial(study._study_id)
            published(study, SimpleNamespace(_trial_id=other), parameters)
            taken.append(parameters)

    monkeypatch.setattr(sampler_module, "publish", contested)
    trial = study.ask()
    chosen = {name: trial.suggest_float(name, 0.0, 1.0) for name in "xy"}
    assert taken[0] == pytest.approx({"x": 1.0, "y": 1.0}, abs=0.05)
    assert chosen != taken[0]
    pending = [p.parameters for p in study.sampler.tuner(study).pending]
    assert len({tuple(p.values()) for p in pending}) == 2


def test_the_last_quarter_of_a_known_number_of_trials_settles_what_is_best():
    study = make(n_trials=20, **STATED)
    study.optimize(simple, n_trials=20)
    chosen = [tuple(trial.params.items()) for trial in study.trials]
    assert set(chosen[15:]) <= set(chosen[:15])
    study.optimize(simple, n_trials=5)  # beyond the budget it searches again
    assert not {tuple(trial.params.items()) for trial in study.trials[20:]} <= set(chosen)
    with pytest.raises(mb.InvalidInput, match="n_trials must be an integer"):
        make(n_trials=0, **STATED)


def attaching(n, name, attached, **stated):
    """A study of n trials that carry this attribute, as `attached(number)` says, or none if it is None."""
    study = make(**stated)
    for i in range(n):
        trial = study.ask()
        value = simple(trial)
        if attached is not None:
            trial.set_user_attr(name, attached(i))
        study.tell(trial, value)
    return study


def test_noise_levels_that_users_attach_count():
    known = {"reward_range": (0.0, 1.0), "sigma": 0.1}
    precise = attaching(14, "mixbandit_sigma", lambda i: 0.02, **known)
    space = precise.sampler.tuner(precise).space
    ours = mb.Tuner(space, **known, rng=0)
    for trial in precise.trials:
        ours.tell(ours.adopt(trial.params), trial.value, sigma=0.02)
    params = precise.trials[3].params
    assert precise.sampler.tuner(precise).moment.data.weights == pytest.approx(np.full(14, 5.0))
    for found in (precise.sampler.certificate(precise), mb.certify(precise, **known)):
        assert found.of(params).interval == pytest.approx(ours.certificate().of(params).interval, abs=1e-6)
    # What cannot be a level is not learnt from, and refused by certificates.
    for bad, stated in ((-1.0, known), ("small", known), (True, known), (0.1, STATED)):
        study = attaching(1, "mixbandit_sigma", lambda i, bad=bad: bad, **stated)
        simple(study.ask())
        assert study.sampler.tuner(study).told == 0
        with pytest.raises(mb.InvalidInput, match="sigma"):
            mb.certify(study, space=space, **stated)


def test_standard_errors_that_users_attach_steer_the_search():
    def next_choice(errors):
        study = attaching(12, "mixbandit_sem", errors, **STATED)
        for _ in range(5):
            simple(study.ask())
        return [tuple(each.params.values()) for each in study.trials]

    plain = next_choice(None)
    assert next_choice(lambda i: 0.1) == plain  # only their ratios count
    assert next_choice(lambda i: "unknown") == plain
    assert next_choice(lambda i: 0.5 if i % 2 else 0.01) != plain
