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


def test_pruning_before_any_measurement_is_no_selection():
    study = pruned_study(optuna.pruners.NopPruner(), n_trials=6)
    study.tell(study.ask(), state=TrialState.PRUNED)
    assert mb.certify(study, **STATED).t == 6
    assert mb.certify(study.trials_dataframe(), **STATED).t == 6


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
