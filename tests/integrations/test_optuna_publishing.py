"""What the sampler publishes for other processes: all or nothing, whatever is interrupted or damaged."""

import json
import logging

import optuna
import pytest
from optuna.trial import TrialState

import mixbandit as mb
from mixbandit.integrations.optuna import MixBanditSampler
from mixbandit.integrations.optuna import storage as storage_module
from mixbandit.integrations.optuna.storage import publish, published
from tests.integrations.studies import STATED

# Some 2,500 characters: more than version 0.1 wrote at once.
NAMES = [f"{'parameter' * 45}_{i}" for i in range(6)]
DISTRIBUTIONS = {name: optuna.distributions.FloatDistribution(0.0, 1.0) for name in NAMES}
CHOSEN = "mixbandit:parameters"


class Killed(BaseException):
    """Stands for a process that ends here."""


def flat(trial):
    return 0.5 + 0.1 * sum(trial.suggest_float(name, 0.0, 1.0) for name in NAMES) / len(NAMES)


@pytest.fixture
def study(request, tmp_path):
    kinds = {
        "memory": optuna.storages.InMemoryStorage,
        "sqlite": lambda: f"sqlite:///{tmp_path}/study.db",
        "journal": lambda: optuna.storages.JournalStorage(
            optuna.storages.journal.JournalFileBackend(f"{tmp_path}/study.log")
        ),
    }
    sampler = MixBanditSampler(seed=0, n_startup_trials=0, **STATED)
    found = optuna.create_study(storage=kinds[request.param](), direction="maximize", sampler=sampler)
    found.optimize(flat, n_trials=2)
    return found


def seen(study, number):
    """What a reader finds published for a trial now."""
    return published(study.get_trials()[number], DISTRIBUTIONS)


def dying(monkeypatch, study, after):
    """Let the process end before the write of a trial's attribute number `after`."""
    writes, write = [], type(study._storage).set_trial_system_attr

    def counted(storage, *arguments):
        if len(writes) == after:
            raise Killed
        writes.append(arguments)
        write(storage, *arguments)

    monkeypatch.setattr(type(study._storage), "set_trial_system_attr", counted)
    return writes


@pytest.mark.parametrize("study", ["memory", "journal"], indirect=True)
@pytest.mark.parametrize("longest", [30_000, 1000])
def test_a_reader_sees_all_parameters_or_none_whatever_write_is_the_last(study, longest, monkeypatch):
    monkeypatch.setattr(storage_module, "_LONGEST", longest)
    first, second = ({name: level + i / 1000 for i, name in enumerate(NAMES)} for level in (0.1, 0.2))
    count = len(json.dumps(first)) // 1000 + 2 if longest == 1000 else 1
    for after in range(count + 1):
        number = study._storage.get_trial_number_from_id(trial_id := study._storage.create_new_trial(study._study_id))
        trial = study._storage.get_trial(trial_id)
        found, written = [{}], {}
        for parameters in (first, second):
            with monkeypatch.context() as patched:
                dying(patched, study, after)
                try:
                    publish(study, trial, parameters)
                    written = parameters
                except Killed:
                    assert after < count
            found.append(seen(study, number))
            assert found[-1] == written
            # Whoever comes next goes on, whatever is there.
            study.sampler = MixBanditSampler(seed=after, n_startup_trials=0, **STATED)
            study.tell(study.ask(DISTRIBUTIONS), 0.5)
        assert found == ([{}, first, second] if after == count else [{}, {}, {}])
    assert study.get_trials()[-1].state == TrialState.COMPLETE


@pytest.mark.parametrize("study", ["memory", "sqlite"], indirect=True)
@pytest.mark.parametrize("longest", [30_000, 1000])
def test_a_sampler_that_is_killed_while_it_publishes_leaves_a_study_that_goes_on(study, longest, monkeypatch):
    monkeypatch.setattr(storage_module, "_LONGEST", longest)
    for after in range(1 if longest == 30_000 else 4):
        with monkeypatch.context() as patched:
            dying(patched, study, after)
            with pytest.raises(Killed):
                study.ask(DISTRIBUTIONS)
        other = optuna.load_study(
            study_name=study.study_name, storage=study._storage, sampler=MixBanditSampler(seed=9, **STATED)
        )
        other.optimize(flat, n_trials=1)
        other.sampler.tuner(other)
        assert other.trials[-1].state == TrialState.COMPLETE


def test_parts_of_different_choices_never_mix(monkeypatch):
    """Both choices have the same length, so their parts would fit together."""
    monkeypatch.setattr(storage_module, "_LONGEST", 1000)
    study = optuna.create_study()
    trial = study._storage.get_trial(study._storage.create_new_trial(study._study_id))
    first, second = (dict.fromkeys(NAMES, level) for level in (0.25, 0.75))
    publish(study, trial, first)
    with monkeypatch.context() as patched:
        dying(patched, study, 2)
        with pytest.raises(Killed):
            publish(study, trial, second)
    assert seen(study, 0) == first


def test_what_earlier_versions_published_is_read():
    study = optuna.create_study()
    parameters = {name: i / 100 for i, name in enumerate(NAMES)}
    text = json.dumps(parameters)
    trial_id = study._storage.create_new_trial(study._study_id)
    study._storage.set_trial_system_attr(trial_id, f"{CHOSEN}:0", text[:2045])
    assert seen(study, 0) == {}  # written by half
    study._storage.set_trial_system_attr(trial_id, f"{CHOSEN}:1", text[2045:])
    assert len(text) > 2045
    assert seen(study, 0) == parameters


DAMAGE = {
    "text": "nothing",
    "number": 7,
    "list": [1, 2],
    "true": True,
    "text as a value": {NAMES[0]: "a"},
    "none as a value": {NAMES[0]: None},
    "not a number": {NAMES[0]: float("nan")},
    "too large a number": {NAMES[0]: 10**400},
    "a list as a value": {NAMES[0]: [0.1]},
    "true as a value": {NAMES[0]: True},
}


@pytest.mark.parametrize("what", DAMAGE)
def test_damage_is_said_and_ignored(what, caplog):
    sampler = MixBanditSampler(seed=0, n_startup_trials=0, **STATED)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.optimize(flat, n_trials=2)
    number = study.ask().number
    study._storage.set_trial_system_attr(study._storage.get_all_trials(study._study_id)[number]._trial_id, CHOSEN,
                                         DAMAGE[what])  # fmt: skip
    with caplog.at_level(logging.WARNING, logger="mixbandit"):
        study.optimize(flat, n_trials=2)
    said = [record.message for record in caplog.records if f"Trial {number}: " in record.message]
    assert len(said) == 1
    assert "ignored" in said[0]
    assert study.sampler.tuner(study).told == 4
    with pytest.raises(mb.DamagedState):
        seen(study, number)


def test_a_choice_that_does_not_exist_is_damage():
    distributions = {"c": optuna.distributions.CategoricalDistribution(["a", "b"])}
    study = optuna.create_study()
    for number, wrong in enumerate((-1, 2, 0.5)):
        trial_id = study._storage.create_new_trial(study._study_id)
        study._storage.set_trial_system_attr(trial_id, CHOSEN, {"c": wrong})
        with pytest.raises(mb.DamagedState, match="'c'"):
            published(study.get_trials()[number], distributions)


def test_a_part_that_is_missing_or_changed_is_damage(monkeypatch):
    monkeypatch.setattr(storage_module, "_LONGEST", 1000)
    study = optuna.create_study()
    trial = study._storage.get_trial(study._storage.create_new_trial(study._study_id))
    publish(study, trial, dict.fromkeys(NAMES, 0.5))
    part = next(key for key in study.trials[0].system_attrs if key.endswith(":1"))
    for wrong in (None, 3, "", "x" * 1000):
        study._storage.set_trial_system_attr(trial._trial_id, part, wrong)
        with pytest.raises(mb.DamagedState, match="missing or changed"):
            seen(study, 0)


def test_what_does_not_fit_one_attribute_of_any_database_is_written_in_parts():
    """MySQL's TEXT holds 65,535 bytes, of the value as JSON."""
    study = optuna.create_study()
    trial = study._storage.get_trial(study._storage.create_new_trial(study._study_id))
    names = [f'"{"ä" * 200}{i}' for i in range(90)]
    distributions = {name: optuna.distributions.FloatDistribution(0.0, 1.0) for name in names}
    parameters = {name: i / 90 for i, name in enumerate(names)}
    publish(study, trial, parameters)
    stored = study.trials[0].system_attrs
    assert max(len(json.dumps(value)) for value in stored.values()) <= 65_535
    assert len(stored) > 2
    assert published(study.trials[0], distributions) == parameters
