"""Pruners that know nothing of certificates: completed trials are the lucky ones, so only confirmations count."""

import pickle

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState

import mixbandit as mb
from mixbandit.integrations.optuna import LOWER, ConfirmFinalists, MixBanditSampler, StopOnGap

optuna.logging.set_verbosity(optuna.logging.ERROR)
STATED = {"reward_range": (0.0, 1.0), "samples": 100, "rows": "fresh"}
STEPS = 5


def measured(trial, *, stops="raising"):
    """Five measurements of 20 new rows each; every configuration is worth .5."""
    trial.suggest_categorical("c", ["a", "b"])
    draws = np.random.default_rng(trial.number)
    values = []
    for step in range(STEPS):
        values.append(draws.binomial(20, 0.5) / 20)
        trial.report(float(np.mean(values)), step)
        if trial.should_prune():
            if stops == "raising":
                raise optuna.TrialPruned
            break
    return float(np.mean(values))


def pruned_study(pruner, n_trials=60, sampler=None, **options):
    sampler = sampler or optuna.samplers.RandomSampler(seed=0)
    study = optuna.create_study(direction="maximize", pruner=pruner, sampler=sampler)
    study.optimize(lambda trial: measured(trial, **options), n_trials=n_trials)
    return study


PRUNERS = [
    lambda: optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=1),
    optuna.pruners.SuccessiveHalvingPruner,
    lambda: optuna.pruners.HyperbandPruner(min_resource=1, max_resource=STEPS, reduction_factor=2),
    lambda: optuna.pruners.ThresholdPruner(lower=0.45, n_warmup_steps=1),
]


@pytest.mark.parametrize("pruner", PRUNERS)
def test_any_pruning_by_values_is_selection(pruner, tmp_path):
    study = pruned_study(pruner())
    assert any(trial.state == TrialState.PRUNED for trial in study.trials)
    frame = study.trials_dataframe()
    frame.to_csv(tmp_path / "study.csv")
    for run in (study, frame, tmp_path / "study.csv"):
        with pytest.raises(mb.InvalidInput, match=r"^nothing is guaranteed: \d+ trials were pruned because"):
            mb.certify(run, **STATED)


def test_a_column_of_intermediate_values_tells_as_well():
    """Also where the value of a pruned row is not written."""
    study = pruned_study(PRUNERS[0]())
    frame = study.trials_dataframe()
    rows = frame["state"] == "PRUNED"
    frame["intermediate_values_0"] = 0.5
    frame.loc[rows, "value"] = np.nan
    with pytest.raises(mb.InvalidInput, match="nothing is guaranteed"):
        mb.certify(frame, **STATED)


@pytest.mark.parametrize("pruner", PRUNERS[:3])
def test_confirmations_are_immune_and_certified_alone(pruner):
    sampler = MixBanditSampler(seed=0, **STATED)
    study = pruned_study(pruner(), sampler=sampler)
    first = next(trial.number for trial in study.trials if trial.state == TrialState.PRUNED)
    if not isinstance(study.pruner, optuna.pruners.HyperbandPruner):  # which shows samplers one bracket at a time
        assert not any(LOWER in trial.user_attrs for trial in study.trials[first + 1 :])
    with pytest.raises(mb.InvalidInput, match="nothing is guaranteed"):
        sampler.certificate(study)
    for trial in sampler.confirm(study, 6):
        for step in range(STEPS):
            trial.report(0.0, step)
            assert not trial.should_prune()
        draws = np.random.default_rng(trial.number)
        trial.suggest_categorical("c", ["a", "b"])
        study.tell(trial, draws.binomial(100, 0.5) / 100)
    found = sampler.certificate(study)
    assert found.t == 6 == mb.certify(study.trials_dataframe(), **STATED).t
    assert found.trusted
    assert found.interval[0] <= 0.5
    # Trials of a later search are pruned as before.
    searching = study.ask()
    for step in range(STEPS):
        searching.report(-1.0, step)
    assert searching.should_prune() or isinstance(pruner(), optuna.pruners.HyperbandPruner)
    pickle.loads(pickle.dumps(study.pruner))


def test_confirmations_within_optimize_are_immune():
    study = optuna.create_study(direction="maximize", pruner=PRUNERS[0](), sampler=optuna.samplers.RandomSampler(0))
    study.optimize(measured, n_trials=200, callbacks=[ConfirmFinalists(12, after=20, **STATED)])
    confirmed = [trial for trial in study.trials if "mixbandit_nomination" in trial.user_attrs]
    assert len(confirmed) == 12
    assert {trial.state for trial in confirmed} == {TrialState.COMPLETE}
    assert mb.certify(study, **STATED).t == 12


def test_finalists_whose_confirmations_were_pruned_do_not_count(tmp_path):
    """By a worker that did not know of confirmations: what is left of that finalist are its lucky ones."""
    study = pruned_study(PRUNERS[0]())
    for number, c in ((1, "a"), (2, "b")):
        for i in range(4):
            study.enqueue_trial({"c": c}, user_attrs={"mixbandit_nomination": number})
            trial = study.ask()
            trial.suggest_categorical("c", ["a", "b"])
            trial.report(0.5, 0)
            given_up = number == 1 and i == 2
            study.tell(trial, None if given_up else 0.5, state=TrialState.PRUNED if given_up else TrialState.COMPLETE)
    frame = study.trials_dataframe()
    frame.to_csv(tmp_path / "study.csv")
    for run in (study, frame, tmp_path / "study.csv"):
        with pytest.raises(mb.InvalidInput, match="no parameter varies"):  # only finalist 2 is left
            mb.certify(frame[frame["user_attrs_mixbandit_nomination"] == 2], **STATED)
        found = mb.certify(run, space=mb.Space({"c": mb.Categorical(["a", "b"])}), **STATED)
        assert found.t == 4
        assert found.parameters == {"c": "b"}


def test_means_so_far_among_whole_ones_draw_a_caution():
    """As in the example of Optuna's Wilcoxon pruner: nothing marks such trials but that they reported fewer steps."""
    study = pruned_study(PRUNERS[0](), stops="returning")
    assert all(trial.state == TrialState.COMPLETE for trial in study.trials)
    first = str(mb.certify(study, **STATED)).splitlines()[0]
    assert first.startswith("CAUTION: ")
    assert "reported fewer steps" in first
    whole = pruned_study(optuna.pruners.NopPruner())
    assert "CAUTION" not in str(mb.certify(whole, **STATED))


def test_a_callback_that_stops_does_not_end_the_study_with_an_error(caplog):
    study = optuna.create_study(direction="maximize", pruner=PRUNERS[0](), sampler=optuna.samplers.RandomSampler(0))
    study.optimize(measured, n_trials=30, callbacks=[StopOnGap(0.01, every=10, **STATED)])
    assert len(study.trials) == 30
    assert "nothing is guaranteed" in caplog.text


LOST = "CAUTION: {} ended without a value. If that depended on values,"


def test_pruning_before_any_measurement_is_no_selection_as_far_as_anything_tells():
    """Such as of parameters that do not fit together; but the reason may have been a value that was not reported."""
    study = pruned_study(optuna.pruners.NopPruner(), n_trials=6)
    study.tell(study.ask(), state=TrialState.PRUNED)
    for run in (study, study.trials_dataframe()):
        found = mb.certify(run, **STATED)
        assert found.t == 6
        assert str(found).startswith(LOST.format("1 trial"))


def lucky_only(trial, how):
    """Whoever is unlucky fails, returns no number, or gives up without a report."""
    value = np.random.default_rng(trial.number).binomial(100, 0.5) / 100
    trial.suggest_categorical("c", ["a", "b"])
    if value >= 0.5:
        return value
    if how == "fails":
        raise ValueError
    if how == "gives up":
        raise optuna.TrialPruned
    return float("nan")


@pytest.mark.parametrize("how", ["fails", "is not a number", "gives up"])
def test_trials_without_a_value_draw_a_caution(how, tmp_path):
    """The floor is above the truth, .5, and nothing but the user knows why the others have no value."""
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(lambda trial: lucky_only(trial, how), n_trials=200, catch=(ValueError,))
    frame = study.trials_dataframe()
    frame.to_csv(tmp_path / "study.csv")
    lost = sum(trial.state != TrialState.COMPLETE for trial in study.trials)
    assert lost > 50
    for run in (study, frame, tmp_path / "study.csv"):
        found = mb.certify(run, **STATED)
        assert found.trusted
        assert found.interval[0] > 0.5
        assert str(found).startswith(LOST.format(f"{lost} trials"))
    pairs = [(trial.params, trial.value) for trial in study.trials]
    assert str(mb.certify(pairs, **STATED)).startswith(LOST.format(f"{lost} trials"))
    assert str(MixBanditSampler(**STATED).certificate(study)).startswith(LOST.format(f"{lost} trials"))


def test_a_tuner_counts_trials_that_failed():
    tuner = mb.Tuner({"x": mb.Float(0, 1)}, rng=0, **STATED)
    for value in (0.4, 0.6, 0.4, 0.7):
        trial = tuner.ask()
        tuner.tell(trial, value) if value > 0.5 else tuner.fail(trial)
    assert str(tuner.certificate()).startswith(LOST.format("2 trials"))
    again = mb.Tuner.from_state_dict(tuner.state_dict())
    assert str(again.certificate()) == str(tuner.certificate())
    assert "CAUTION" not in str(
        mb.Tuner({"x": mb.Float(0, 1)}, rng=0, **STATED).optimize(lambda p: 0.6, 3).certificate()
    )


def test_confirmations_that_failed_draw_a_caution_and_failed_searches_do_not_any_more():
    sampler = MixBanditSampler(seed=0, **STATED)
    study = pruned_study(PRUNERS[0](), sampler=sampler)
    study.tell(study.ask(), state=TrialState.FAIL)
    for place, trial in enumerate(sampler.confirm(study, 6)):
        trial.suggest_categorical("c", ["a", "b"])
        study.tell(trial, 0.5 + 0.01 * place)
    for run in (study, study.trials_dataframe()):
        assert "CAUTION" not in str(mb.certify(run, **STATED))
    trial = next(sampler.confirm(study, 1))
    trial.suggest_categorical("c", ["a", "b"])
    study.tell(trial, state=TrialState.FAIL)
    for run in (study, study.trials_dataframe()):
        assert str(mb.certify(run, **STATED)).startswith(LOST.format("1 trial"))


def test_numbers_that_are_missing_from_a_table_draw_a_caution():
    study = pruned_study(PRUNERS[0](), n_trials=100)
    frame = study.trials_dataframe()
    kept = frame[frame["state"] == "COMPLETE"]
    absent = int(np.ptp(kept["number"])) + 1 - len(kept)
    for table in (kept, kept.drop(columns="state")):
        said = str(mb.certify(table, **STATED))
        assert said.startswith(f"CAUTION: {absent} trial numbers are missing. If that depended on values,")
    whole = pruned_study(optuna.pruners.NopPruner()).trials_dataframe()
    found = mb.certify(whole, **STATED)
    assert "CAUTION" not in str(found)
    assert "No trial of the run was removed because of its value." in found.details()  # no table shows that


@pytest.mark.heavy
def test_floors_after_a_median_pruner_hold():
    """500 trials of two equal configurations: certified as if nothing had happened, the floor was wrong in 19 of 20."""
    wrong = 0
    for seed in range(20):
        draws = np.random.default_rng(seed)
        sampler = MixBanditSampler(seed=seed, **STATED)
        study = optuna.create_study(
            direction="maximize", pruner=PRUNERS[0](), sampler=optuna.samplers.RandomSampler(seed)
        )

        def objective(trial, draws=draws):
            trial.suggest_categorical("c", ["a", "b"])
            values = []
            for step in range(STEPS):
                values.append(draws.binomial(20, 0.5) / 20)
                trial.report(float(np.mean(values)), step)
                if trial.should_prune():
                    raise optuna.TrialPruned
            return float(np.mean(values))

        study.optimize(objective, n_trials=500)
        for trial in sampler.confirm(study, 10):
            study.tell(trial, objective(trial))
        wrong += mb.certify(study, **STATED).interval[0] > 0.5
    assert wrong <= 3  # P(more than 3 of 20 at 5 %) < 2 %
