"""Values that contradict what was stated: the study goes on, what was claimed does not."""

import logging
import math
import warnings

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState

import mixbandit as mb
from mixbandit.integrations.optuna import LEFT_OUT, LOWER, REFUTED, MixBanditSampler, StopOnGap
from tests.integrations.studies import COMPLETE, STATED, make, simple

OUTSIDE, INFINITE = "with a value outside reward_range", "with a value that is infinite or larger than 1e+50"
UNUSABLE = [
    (1.7, "maximize", OUTSIDE),
    (-0.2, "minimize", OUTSIDE),
    (math.inf, "minimize", INFINITE),
    (-math.inf, "minimize", INFINITE),
    (1e200, "maximize", INFINITE),
]


@pytest.mark.parametrize(("value", "direction", "why"), UNUSABLE)
def test_a_value_that_contradicts_the_range_fails_its_trial_and_not_the_study(value, direction, why, caplog):
    study = make(direction, n_startup_trials=0, **STATED)
    study.optimize(simple, n_trials=3)
    assert study.sampler.certificate(study).trusted
    assert LOWER in study.trials[-1].user_attrs
    trial = study.ask()
    simple(trial)
    with caplog.at_level(logging.WARNING, logger="mixbandit"):
        study.tell(trial, value)
        with pytest.warns(mb.AssumptionsRefutedWarning):
            study.optimize(simple, n_trials=3)
    assert study.trials[3].user_attrs[LEFT_OUT] == why
    assert LOWER not in study.trials[3].user_attrs
    assert [r.message for r in caplog.records if "Trial 3 is left out" in r.message] != []
    assert sum("Trial 3 is left out" in r.message for r in caplog.records) == 1
    # The others are learnt, nothing carries an interval any more, and the certificate says why.
    assert study.sampler.tuner(study).told == 6
    assert study.sampler.tuner(study).refuted
    assert not any(LOWER in t.user_attrs for t in study.trials[3:])
    with pytest.warns(mb.AssumptionsRefutedWarning):
        certificate = study.sampler.certificate(study)
    assert (certificate.trusted, certificate.proven, certificate.t) == (False, False, 6)
    assert certificate.left_out == {why: 1}
    assert f"1 {why}" in certificate.details()
    assert "none of this is guaranteed" in str(certificate)
    # Whoever opens the study knows as well.
    study.sampler = MixBanditSampler(seed=1, **STATED)
    with pytest.warns(mb.AssumptionsRefutedWarning):
        study.optimize(simple, n_trials=1)
    assert study.sampler.tuner(study).refuted


@pytest.mark.parametrize("value", [1.7, -0.2, math.inf, -math.inf, 1e200])
@pytest.mark.parametrize("when", ["before", "while confirming"])
def test_confirming_goes_on_after_a_value_that_contradicts_the_range(value, when):
    """It used to end by an error: for one bad value no finalist of the study could be confirmed any more."""
    study = make(n_startup_trials=2, **STATED)
    study.optimize(lambda t: (simple(t), value)[1] if when == "before" and t.number == 5 else simple(t), n_trials=6)
    confirmed = 0
    for trial in study.sampler.confirm(study, 4):
        honest = simple(trial)
        study.tell(trial, value if when != "before" and confirmed == 1 else honest)
        confirmed += 1
    assert confirmed == 4
    with pytest.warns(mb.AssumptionsRefutedWarning):
        found = study.sampler.certificate(study)
    assert (found.trusted, found.t, sum(found.left_out.values())) == (False, 9, 1)
    nothing = make(**STATED)
    nothing.optimize(lambda t: simple(t) + 7.0, n_trials=1)
    with pytest.raises(mb.InvalidInput, match="no completed trial can be used"):
        nothing.sampler.confirm(nothing, 2)


@pytest.mark.parametrize("value", [1.7, math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("how", ["one thread", "four threads", "told", "enqueued", "added"])
def test_however_a_value_comes_it_stops_its_trial_and_not_the_study(value, how):
    study, stop = make(n_startup_trials=2, **STATED), StopOnGap(10.0, every=8, **STATED)

    def objective(trial):
        honest = simple(trial)
        return value if trial.number == 3 else honest

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The value nan is not acceptable")  # Optuna's own
        warnings.simplefilter("ignore", mb.AssumptionsRefutedWarning)
        study.optimize(objective, n_trials=3)
        if how == "told":
            trial = study.ask()
            study.tell(trial, objective(trial))
        elif how == "enqueued":
            study.enqueue_trial({"x": 0.5, "y": 0.5})
        elif how == "added" and not math.isnan(value):  # which Optuna refuses
            like = study.trials[0]
            study.add_trial(optuna.create_trial(params=like.params, distributions=like.distributions, value=value))
        left = 9 - len(study.get_trials(states=(TrialState.COMPLETE, TrialState.FAIL)))
        study.optimize(objective, n_trials=left, n_jobs=4 if how == "four threads" else 1, callbacks=[stop])
        found = study.sampler.certificate(study)
    assert len(study.trials) == 9
    assert study.sampler.tuner(study).told == found.t == 8
    failed = math.isnan(value)
    assert found.trusted == stop.certificate.trusted == failed
    assert found.left_out == {"FAIL" if failed else OUTSIDE if math.isfinite(value) else INFINITE: 1}


def test_not_a_number_is_a_failed_trial_of_optunas():
    study = make(n_startup_trials=0, **STATED)
    study.optimize(lambda trial: simple(trial) if trial.number != 2 else math.nan, n_trials=5)
    assert study.trials[2].state == TrialState.FAIL
    assert study.sampler.tuner(study).told == 4
    assert study.sampler.certificate(study).trusted


def test_with_sigma_values_may_lie_outside_the_range_but_not_be_infinite():
    study = make(sigma=0.5, reward_range=(0.0, 1.0), n_startup_trials=0)
    values = iter([0.5, 1.4, -0.3, 0.6, math.inf, 0.5, 0.5])
    study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0) * 0.0 + next(values), n_trials=4)
    assert study.sampler.certificate(study).trusted
    with pytest.warns(mb.AssumptionsRefutedWarning):
        study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0) * 0.0 + next(values), n_trials=3)
    assert study.sampler.tuner(study).told == 6
    with pytest.warns(mb.AssumptionsRefutedWarning):
        assert study.sampler.certificate(study).left_out == {INFINITE: 1}


def test_a_trial_that_is_outside_the_space_as_well_still_refutes():
    study = make(n_startup_trials=0, space={"x": mb.Float(0.0, 1.0)}, **STATED)
    wide = optuna.distributions.FloatDistribution(0.0, 9.0)
    study.add_trial(optuna.create_trial(params={"x": 5.0}, distributions={"x": wide}, value=1.7))
    study.optimize(lambda trial: 0.5 * trial.suggest_float("x", 0.0, 1.0), n_trials=2)
    assert study.sampler.tuner(study).refuted


def test_eight_threads_and_infinite_values():
    study = make("minimize", n_startup_trials=4, **STATED)
    with pytest.warns(mb.AssumptionsRefutedWarning):
        study.optimize(lambda t: max(simple(t), 0.0 if t.number % 4 else math.inf), n_trials=24, n_jobs=8)
    assert len(study.get_trials(states=COMPLETE)) == 24
    assert sum(LEFT_OUT in t.user_attrs for t in study.trials) == 6
    assert study.sampler.tuner(study).told == 18


@pytest.mark.parametrize("kind", ["fails", "is infinite", "is pruned"])
def test_where_trials_bring_no_value_the_sampler_does_not_stay(kind):
    """It used to choose the same configuration for ever: nothing had been learnt from it."""
    study = make(**STATED)

    def cliff(trial):
        x, _ = trial.suggest_float("x", 0.0, 1.0), trial.suggest_float("y", 0.0, 1.0)
        if x <= 0.6:
            return 0.1 + 0.8 * x
        if kind == "is infinite":
            return -math.inf
        raise optuna.TrialPruned if kind == "is pruned" else RuntimeError

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mb.AssumptionsRefutedWarning)
        study.optimize(cliff, n_trials=50, catch=RuntimeError)
    beyond = [tuple(trial.params.values()) for trial in study.trials if trial.params["x"] > 0.6]
    assert len(set(beyond)) == len(beyond)
    assert sum(trial.params["x"] <= 0.6 for trial in study.trials[25:]) > 12
    assert max(trial.params["x"] for trial in study.trials[25:] if trial.params["x"] <= 0.6) > 0.5
    # Only for choosing: what it says about configurations rests on values alone.
    usable = [(t.params, t.value) for t in study.trials if t.value is not None and math.isfinite(t.value)]
    tuner = study.sampler.tuner(study)
    by_hand = mb.Tuner(tuner.space, **STATED).learn(usable)
    at = {"x": 0.9, "y": 0.2}
    assert tuner.interval(at) == pytest.approx(by_hand.interval(at), abs=1e-9)


def test_nothing_changes_the_filters_of_the_process_and_a_later_refutation_still_warns():
    study = make(n_startup_trials=4, **STATED)
    study.optimize(simple, n_trials=6)  # scipy adds a filter of its own when it is imported
    before = list(warnings.filters)
    study.optimize(simple, n_trials=16, n_jobs=8)
    assert list(warnings.filters) == before
    refuting = make(n_startup_trials=0, **STATED)

    def jumping(trial):
        return 0.5 * trial.suggest_float("x", 0.0, 1.0) + 7.0 * (trial.number == 3)

    with pytest.warns(mb.AssumptionsRefutedWarning):
        refuting.optimize(jumping, n_trials=30, n_jobs=8)
    # The same sampler on another study warns again: it is another refutation.
    other = optuna.create_study(direction="maximize", sampler=refuting.sampler)
    with pytest.warns(mb.AssumptionsRefutedWarning):
        other.optimize(jumping, n_trials=6)
    assert list(warnings.filters) == before


def test_refuted_assumptions_leave_no_intervals():
    study, rng = make(sigma=1e-3, reward_range=(0.0, 1.0), n_startup_trials=0), np.random.default_rng(0)
    with pytest.warns(mb.AssumptionsRefutedWarning):
        study.optimize(lambda t: 0.0 * t.suggest_float("x", 0.0, 1.0) + rng.choice([0.2, 0.8]), n_trials=12)
    assert LOWER not in study.trials[-1].user_attrs


def test_no_interval_follows_a_refutation():
    """A value that refutes what was stated, and others that hide it later; whoever opens the study knows, too."""

    def jumping(trial):
        trial.suggest_float("x", 0.0, 1.0)
        return 1.2 if trial.number == 3 else 0.0

    study = make(sigma=0.1, norm_bound=0.3, n_startup_trials=1000)
    with pytest.warns(mb.AssumptionsRefutedWarning):
        study.optimize(jumping, n_trials=40)
    with_intervals = [trial.number for trial in study.trials if LOWER in trial.user_attrs]
    assert with_intervals
    assert max(with_intervals) < 10
    refuted = [trial.number for trial in study.trials if REFUTED in trial.user_attrs]
    assert refuted == list(range(max(with_intervals) + 1, 40))
    study.optimize(jumping, n_trials=60)
    assert not study.sampler.tuner(study).moment.is_refuted  # by now the data hide it
    with pytest.warns(mb.AssumptionsRefutedWarning):
        assert not study.sampler.certificate(study).trusted
    assert [trial.number for trial in study.trials if LOWER in trial.user_attrs] == with_intervals
    with pytest.warns(mb.AssumptionsRefutedWarning):
        found = mb.certify(study, sigma=0.1, norm_bound=0.3)
    assert not found.trusted
    assert 3 < found.refuted_after < 10
    study.sampler = MixBanditSampler(seed=1, sigma=0.1, norm_bound=0.3)
    assert study.sampler.tuner(study).refuted


@pytest.mark.parametrize("values", [[1e200], [1e60, 1.0, 2.0, 3.0], [float("inf"), 1.0, -float("inf")], [1e-300] * 3])
def test_without_stated_noise_any_values_will_do(values):
    study, left = make("minimize", n_startup_trials=0), iter(values * 4)
    study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0) * 0.0 + next(left), n_trials=len(values) * 4)
    assert study.sampler.tuner(study).told == len(values) * 4


def test_a_second_study_of_the_same_name_is_refuted_aloud(caplog):
    sampler = MixBanditSampler(seed=0, n_startup_trials=2, reward_range=(0, 1), samples=100, rows="fresh")
    for _ in range(2):
        caplog.clear()
        study = optuna.create_study(study_name="same", direction="maximize", sampler=sampler)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", mb.AssumptionsRefutedWarning)
            study.optimize(lambda t: (t.suggest_float("x", 0, 1), 5.0 if t.number == 3 else 0.5)[1], n_trials=5)
        assert "Trial 3 is left out" in caplog.text


def test_a_name_that_is_no_unicode_is_sampled():
    study = optuna.create_study(sampler=MixBanditSampler(seed=0))
    study.optimize(lambda trial: trial.suggest_float("\ud800", 0, 1), n_trials=3)
    assert len(study.trials) == 3
