"""Studies as they are found in the wild: odd names and choices, enqueued nonsense, other tools' edits."""

import json
import logging
import sqlite3

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState

import mixbandit as mb
from mixbandit.integrations.optuna import LOWER, MixBanditSampler, as_distribution
from tests.battery import studies as battery
from tests.integrations.studies import COMPLETE, STATED, make, simple

NAMES = [" ", "a:b", "mixbandit:parameters", "x" * 400, "ä\n\t", "'; DROP TABLE trials; --", "{}%s", "params_value"]


def journal(folder):
    return optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(f"{folder}/study.log"))


STORAGES = {
    "memory": lambda folder: optuna.storages.InMemoryStorage(),
    "sqlite": lambda folder: f"sqlite:///{folder}/study.db",
    "journal": journal,
}


@pytest.mark.parametrize("kind", STORAGES)
def test_names_of_any_kind_in_any_storage(kind, tmp_path):
    def objective(trial):
        return 0.1 + 0.1 * sum(trial.suggest_float(name, 0.0, 1.0) for name in NAMES)

    for seed in range(2):  # a second sampler goes on
        sampler = MixBanditSampler(seed=seed, n_startup_trials=1, **STATED)
        study = optuna.create_study(
            storage=STORAGES[kind](tmp_path), study_name="s", direction="maximize", sampler=sampler, load_if_exists=True
        )
        study.optimize(objective, n_trials=3)
        study.ask()
    told = 3 if kind == "memory" else 6
    assert sampler.tuner(study).told == told
    assert LOWER in study.trials[2].user_attrs


@pytest.mark.parametrize(
    "choices",
    [[1, True, 2], [0.0, False]],  # equal in Python, so that Optuna cannot tell them apart
)
def test_what_cannot_be_modelled_is_sampled_on_its_own(choices, caplog):
    study = make(n_startup_trials=0, **STATED)
    with caplog.at_level(logging.WARNING, logger="mixbandit"):
        for _ in range(4):
            odd = optuna.distributions.CategoricalDistribution(choices)
            trial = study.ask({"x": optuna.distributions.FloatDistribution(0.0, 1.0), "odd": odd})
            study.tell(trial, 0.5 * trial.params["x"])
    assert study.sampler.tuner(study).told == 4
    assert caplog.text.count("'odd' is sampled independently") == 1
    assert not any(LOWER in t.user_attrs for t in study.trials)


def test_a_parameter_without_a_name_is_sampled_on_its_own(caplog):
    study = make(n_startup_trials=0)
    study.optimize(lambda trial: trial.suggest_float("", 0.0, 1.0) + trial.suggest_float("x", 0.0, 1.0), n_trials=3)
    assert list(study.sampler.tuner(study).space) == ["x"]


def test_choices_that_are_long_or_many():
    study, choices = make(n_startup_trials=2, **STATED), [f"{i}" * 5000 for i in range(40)]
    study.optimize(lambda trial: 0.02 * choices.index(trial.suggest_categorical("c", choices)), n_trials=6)
    assert LOWER in study.trials[-1].user_attrs
    assert study.sampler.tuner(study).told == 6


def test_enqueued_parameters_outside_the_space_count_as_what_they_are():
    study = make(n_startup_trials=0, **STATED)
    study.optimize(simple, n_trials=3)
    for x in (5.0, -1e100, 1e100):
        study.enqueue_trial({"x": x, "y": 0.5})
    with pytest.warns(UserWarning, match="out of range"):
        study.optimize(lambda trial: 0.5 + 0.0 * simple(trial), n_trials=5)
    assert [trial.params["x"] for trial in study.trials[3:6]] == [5.0, -1e100, 1e100]
    assert study.sampler.tuner(study).told == 5
    assert not any(LOWER in trial.user_attrs for trial in study.trials[3:])


def test_trials_that_vanish_are_forgotten(tmp_path):
    file = tmp_path / "study.db"
    study = optuna.create_study(
        storage=f"sqlite:///{file}",
        direction="maximize",
        sampler=MixBanditSampler(seed=0, n_startup_trials=0, **STATED),
    )
    study.optimize(simple, n_trials=6)
    with sqlite3.connect(file) as database:
        for table in ("trial_params", "trial_values", "trial_user_attributes", "trial_system_attributes", "trials"):
            database.execute(f"DELETE FROM {table} WHERE trial_id IN (3, 4)")
    database.close()
    again = optuna.load_study(
        study_name=study.study_name, storage=f"sqlite:///{file}", sampler=MixBanditSampler(seed=0, **STATED)
    )
    again.optimize(simple, n_trials=2)
    # Optuna numbers trials by how many there are, and shows one of each number.
    assert again.sampler.tuner(again).told == len(again.get_trials(states=COMPLETE))


def test_constraints_are_ignored_for_choosing():
    study = make(n_startup_trials=0, **STATED)

    def constrained(trial):
        value = simple(trial)
        trial.set_constraint("c", float(trial.number % 2))
        return value

    study.optimize(constrained, n_trials=6)
    assert study.sampler.tuner(study).told == 6


def test_parameters_fixed_to_nonsense_by_another_tool_do_not_disturb_others():
    study = make(n_startup_trials=0, **STATED)
    study.optimize(simple, n_trials=2)
    waiting = study.ask()
    for nonsense in (7, "x", [1], {"x": "a", "y": None}):
        study._storage.set_trial_system_attr(waiting._trial_id, "fixed_params", nonsense)
        study.optimize(simple, n_trials=1)
    assert len(study.get_trials(states=COMPLETE)) == 6


def test_a_constant_that_is_not_equal_to_itself_is_one_constant():
    study = make(n_startup_trials=0, **STATED)

    def objective(trial):
        trial.suggest_categorical("constant", [float("nan")])
        return 0.5 * trial.suggest_float("x", 0.0, 1.0)

    study.optimize(objective, n_trials=3)
    assert LOWER in study.trials[-1].user_attrs


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": "x"}, "seed"),
        ({"seed": -1}, "seed"),
        ({"independent_sampler": "random"}, "independent_sampler"),
        ({"deterministic_objective": "no"}, "deterministic_objective must be True or False"),
        ({"warn_independent_sampling": 1}, "warn_independent_sampling must be True or False"),
        ({"n_startup_trials": 2.5}, "n_startup_trials"),
        ({"assumptions": "x"}, "assumptions"),
    ],
)
def test_settings_of_a_wrong_kind_are_refused(options, message):
    with pytest.raises(mb.InvalidInput, match=message):
        MixBanditSampler(**options)


def test_what_is_not_a_study_or_a_parameter_is_refused():
    sampler = MixBanditSampler(**STATED)
    for wrong in (None, "study", 3):
        with pytest.raises(mb.InvalidInput, match="study"):
            sampler.certificate(wrong)
        with pytest.raises(mb.InvalidInput, match="study"):
            sampler.tuner(wrong)
    with pytest.raises(mb.InvalidInput, match="'z'"):
        as_distribution(mb.Space({"x": mb.Float(0.0, 1.0)}), "z")
    two = optuna.create_study(directions=["maximize", "minimize"])
    with pytest.raises(mb.InvalidInput, match="single objective"):
        sampler.certificate(two)
    empty = optuna.create_study(direction="maximize")
    with pytest.raises(mb.InvalidInput, match="no completed trial"):
        sampler.certificate(empty)
    with pytest.raises(mb.InvalidInput, match="no parameter"):
        sampler.tuner(empty)


def test_the_battery_of_mutated_studies_can_fail(monkeypatch):
    """Mutations reach what they are meant to reach: without the check of values, intervals are claimed wrongly."""
    monkeypatch.setattr(mb.Assumptions, "objection", lambda self, value: None if np.isfinite(value) else "infinite")
    assert battery.run(80, 0).failures


def test_a_trial_left_running_by_a_dead_process_does_not_disturb():
    study = make(n_startup_trials=0, **STATED)
    study.optimize(simple, n_trials=2)
    dead = [study.ask() for _ in range(3)]
    study.optimize(simple, n_trials=2)
    assert [study.trials[trial.number].state for trial in dead] == [TrialState.RUNNING] * 3
    study.sampler = MixBanditSampler(seed=5, **STATED)
    study.optimize(simple, n_trials=1)
    assert study.sampler.tuner(study).told == 5


@pytest.mark.parametrize("values", ["x", ["x"], {}, [], [[]], [None], [1, 2], ["0.5"], [{"a": 1}], [10**400]])
def test_damaged_values_in_a_journal_are_named(values, tmp_path):
    study = optuna.create_study(storage=journal(tmp_path), study_name="s", direction="maximize")
    study.optimize(simple, n_trials=3)
    file = tmp_path / "study.log"
    lines = file.read_text().splitlines()
    ends = [i for i, line in enumerate(lines) if '"values"' in line]
    lines[ends[1]] = json.dumps({**json.loads(lines[ends[1]]), "values": values})
    file.write_text("\n".join(lines) + "\n")
    damaged = optuna.load_study(storage=journal(tmp_path), study_name="s")
    with pytest.raises(mb.InvalidInput, match="trial 1 is damaged"):
        mb.certify(damaged, reward_range=(0, 1), samples=100, rows="fresh")
