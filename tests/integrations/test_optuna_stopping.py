"""The callback that stops a study: when it stops, and that it never ends a study by an error."""

import logging

import optuna
import pytest

import mixbandit as mb
from mixbandit.integrations.optuna import ConfirmFinalists, StopOnGap
from tests.integrations.studies import COMPLETE, STATED, make, simple


def test_a_study_stops_once_the_gap_is_proven():
    # To prove that nothing else is better, one has to look everywhere.
    study = make(reward_range=(0.0, 1.0), samples=10_000, exploration=1.0)
    stop = study.sampler.stop_on_gap(0.1, every=20)
    study.optimize(simple, n_trials=300, callbacks=[stop])
    assert len(study.trials) < 300
    assert len(study.trials) % 20 == 0
    assert stop.certificate.gap <= 0.1
    assert stop.certificate.t == len(study.trials)
    never = StopOnGap(1e-9, every=5, **STATED)
    study.optimize(simple, n_trials=5, callbacks=[never])
    assert never.certificate is not None


def test_a_callback_says_what_is_missing_and_looks_as_often_as_it_should(monkeypatch):
    with pytest.raises(mb.AssumptionsMissing):
        StopOnGap(0.1)
    with pytest.raises(mb.InvalidInput, match="low < high"):
        StopOnGap(0.1, reward_range=(1.0, 0.0))
    looked, stop = [], StopOnGap(0.1, every=4, **STATED)
    monkeypatch.setattr(
        "mixbandit.integrations.optuna.stopping.certify_study",
        lambda study, *_, **__: looked.append(len(study.trials)) or mb_certificate(),
    )
    study = make(**STATED)

    def objective(trial):
        value = simple(trial)
        if 4 <= trial.number < 8:
            raise optuna.TrialPruned
        return value

    study.optimize(objective, n_trials=14, callbacks=[stop])
    assert looked == [4, 12]


def mb_certificate():
    return mb.certify([({"x": 0.1}, 0.5), ({"x": 0.9}, 0.5)], **STATED)


def test_a_callback_does_not_look_for_where_the_best_can_be(monkeypatch):
    """Half of a study's time went into what was never read."""

    def searched(*arguments):
        raise AssertionError

    monkeypatch.setattr("mixbandit.tuning.recommending.still_possible", searched)
    study, stop = make(**STATED), StopOnGap(1e-9, every=4, **STATED)
    study.optimize(simple, n_trials=8, callbacks=[stop])
    assert stop.certificate.t == 8
    with pytest.raises(AssertionError):
        _ = stop.certificate.possible


def sometimes_infinite(trial):
    value = simple(trial)
    return float("inf") if trial.number % 5 == 3 else value


@pytest.mark.parametrize("n_jobs", [1, 8])
def test_values_that_contradict_the_range_let_the_study_run_on(n_jobs):
    study, stop = make("minimize", n_startup_trials=4, **STATED), StopOnGap(1e-9, every=8, **STATED)
    with pytest.warns(mb.AssumptionsRefutedWarning):
        study.optimize(sometimes_infinite, n_trials=16, n_jobs=n_jobs, callbacks=[stop])
    # A gap of 10 is proven at once, unless the assumptions are refuted.
    late = StopOnGap(10.0, every=20, **STATED)
    with pytest.warns(mb.AssumptionsRefutedWarning) as warned:
        study.optimize(sometimes_infinite, n_trials=8, callbacks=[late])
    assert sum("data refute" in str(w.message) for w in warned) == 1
    assert len(study.get_trials(states=COMPLETE)) == 24
    assert not late.certificate.trusted
    assert not late.certificate.proven
    assert sum(late.certificate.left_out.values()) in (3, 4)


def test_nothing_but_unusable_values(caplog):
    study, stop = make(n_startup_trials=0, **STATED), StopOnGap(10.0, every=2, **STATED)
    with caplog.at_level(logging.WARNING, logger="mixbandit"), pytest.warns(mb.AssumptionsRefutedWarning):
        study.optimize(lambda trial: 7.0 + trial.suggest_float("x", 0.0, 1.0), n_trials=6, callbacks=[stop])
    assert len(study.trials) == 6
    assert stop.certificate is None
    said = [r.message for r in caplog.records if "StopOnGap" in r.message]
    assert len(said) == 1
    assert "2 with a value outside reward_range" in said[0]


def test_a_study_that_cannot_be_certified_runs_on(caplog):
    study, stop = make(**STATED), StopOnGap(10.0, every=2, space={"x": mb.Float(-1.0, 1.0)}, **STATED)
    with caplog.at_level(logging.WARNING, logger="mixbandit"):
        study.optimize(simple, n_trials=6, callbacks=[stop])
    assert len(study.trials) == 6
    assert [r.message for r in caplog.records if "'y', which is not in the space" in r.message] != []
    two = optuna.create_study(directions=["maximize", "minimize"], sampler=optuna.samplers.RandomSampler(seed=0))
    with caplog.at_level(logging.WARNING, logger="mixbandit"):
        two.optimize(lambda trial: (trial.suggest_float("x", 0.0, 1.0), 0.0), n_trials=3, callbacks=[stop])
    assert len(two.trials) == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [({"gap": 0.0}, "gap"), ({"every": 0}, "every"), ({"every": 1.5}, "every"), ({"space": 3}, "space must be a Space"),
     ({"gap": "x"}, "gap"), ({"assumptions": 1, "reward_range": None}, "not both"), ({"space": {"x": 1}}, "x must be")],
)  # fmt: skip
def test_bad_settings_are_refused(options, message):
    with pytest.raises(mb.InvalidInput, match=message):
        StopOnGap(**{"gap": 0.1, **STATED, **options})


def test_one_callback_looks_at_every_study_from_its_beginning():
    callback, sampler = StopOnGap(0.9, every=5, sigma=0.05, reward_range=(0, 1)), optuna.samplers.RandomSampler(seed=0)
    for _ in range(2):
        study = optuna.create_study(study_name="same", direction="maximize", sampler=sampler)
        study.optimize(lambda trial: 0.5 + 0.1 * trial.suggest_float("x", 0, 1), n_trials=20, callbacks=[callback])
        assert len(study.trials) == 5


@pytest.mark.parametrize(
    "make", [lambda **known: StopOnGap(0.1, **known), lambda **known: ConfirmFinalists(3, after=9, **known)]
)
def test_fixed_rows_are_refused_when_a_callback_is_made(make):
    with pytest.raises(mb.InvalidInput, match='rows="fixed" is for certify'):
        make(reward_range=(0, 1), samples=100, rows="fixed")
