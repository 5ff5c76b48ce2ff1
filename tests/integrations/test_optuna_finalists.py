"""The callback that confirms finalists: how many, which, when the study stops, and that it never ends by an error."""

import logging
import pickle
import subprocess
import sys

import numpy as np
import optuna
import pytest

import mixbandit as mb
from mixbandit.integrations.optuna import ConfirmFinalists, finalists
from mixbandit.integrations.optuna.confirming import nomination_of
from mixbandit.integrations.optuna.finalists import Step
from mixbandit.integrations.optuna.storage import enqueue
from tests.integrations.studies import COMPLETE, STATED, make

State = optuna.trial.TrialState


def accuracy(trial):
    """On 100 rows; two good configurations among many, which take a while to tell apart."""
    x = trial.suggest_float("x", 0.0, 1.0)
    rng = np.random.default_rng((trial.number, 7))
    return float(rng.binomial(100, 0.9 - 0.5 * (x - 0.4) ** 2)) / 100


def random_study(storage=None, direction="maximize", name="s"):
    sampler = optuna.samplers.RandomSampler(seed=0)
    return optuna.create_study(
        direction=direction, sampler=sampler, storage=storage, study_name=name, load_if_exists=True
    )


def confirmations(study):
    return [trial for trial in study.trials if nomination_of(trial) is not None]


@pytest.fixture(params=["memory", "journal", "sqlite"])
def storage(request, tmp_path):
    if request.param == "memory":
        yield optuna.storages.InMemoryStorage()
    elif request.param == "journal":
        backend = optuna.storages.journal.JournalFileBackend(str(tmp_path / "journal.log"))
        yield optuna.storages.JournalStorage(backend)
    else:
        found = optuna.storages.RDBStorage(f"sqlite:///{tmp_path}/study.db")
        yield found
        found.engine.dispose()


def test_the_trials_after_the_search_are_confirmations_and_then_the_study_stops(storage):
    study = random_study(storage)
    study.optimize(accuracy, n_trials=60, callbacks=[ConfirmFinalists(8, after=20, **STATED)])
    assert len(study.trials) == 28
    assert [nomination_of(trial) is None for trial in study.trials] == [True] * 20 + [False] * 8
    assert len({(nomination_of(t), t.params["x"]) for t in confirmations(study)}) <= 3
    without = mb.certify([(t.params, t.value) for t in study.trials[:20]], **STATED, space=SPACE)
    assert mb.certify(study, **STATED).interval[0] > without.interval[0]


SPACE = mb.Space({"x": mb.Float(0.0, 1.0)})


def test_it_confirms_what_the_iterator_of_the_sampler_confirms():
    ours, theirs = random_study(), random_study()
    ours.optimize(accuracy, callbacks=[ConfirmFinalists(6, after=15, **STATED)])
    theirs.optimize(accuracy, n_trials=15)
    for trial in make(**STATED).sampler.confirm(theirs, 6):
        theirs.tell(trial, accuracy(trial))
    assert [(t.params, nomination_of(t)) for t in ours.trials] == [(t.params, nomination_of(t)) for t in theirs.trials]


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_it_ends_early_once_all_finalists_but_one_are_known_to_be_worse(direction):
    worths = {"a": 0.8, "b": 0.4, "c": 0.1}
    study = of_three_kinds(9, direction)

    def objective(trial):
        worth = worths[trial.suggest_categorical("kind", list(worths))]
        return worth if direction == "maximize" else 1.0 - worth

    stated = {"reward_range": (0.0, 1.0), "samples": 20, "rows": "fresh"}
    study.optimize(objective, n_trials=100, callbacks=[ConfirmFinalists(50, after=9, **stated)])
    assert 0 < len(confirmations(study)) < 50
    assert len(study.trials) == 9 + len(confirmations(study))
    assert mb.certify(study, **stated).parameters == {"kind": "a"}


def of_three_kinds(trials, direction="maximize"):
    """A study that begins with a, b and c, in turns of equal length."""
    study = random_study(direction=direction)
    for i in range(trials):
        study.enqueue_trial({"kind": "abc"[i // (trials // 3)]})
    return study


@pytest.mark.parametrize("n_jobs", [2, pytest.param(4, marks=pytest.mark.heavy)])
def test_threads_confirm_as_often_as_they_should(storage, n_jobs):
    if isinstance(storage, optuna.storages.RDBStorage):
        n_jobs = (
            1  # SQLite locks no rows: Optuna can give a waiting trial to two threads, and the second one's tell fails
        )
    elif n_jobs == 4 and not isinstance(storage, optuna.storages.InMemoryStorage):
        n_jobs = 3
    study = random_study(storage)
    study.optimize(accuracy, n_trials=80, n_jobs=n_jobs, callbacks=[ConfirmFinalists(9, after=12, **STATED)])
    assert len(confirmations(study)) == 9
    assert {trial.state for trial in study.trials} == {State.COMPLETE}
    # Those that ran when the search ended are completed; and a thread that finds a trial taken that waited searches on.
    assert 12 <= len(study.trials) - 9 < 12 + n_jobs + 9
    assert len({(nomination_of(t), t.params["x"]) for t in confirmations(study)}) <= 3


WORKER = """
import sys
import optuna
from mixbandit.integrations.optuna import ConfirmFinalists
from tests.integrations.test_optuna_finalists import STATED, accuracy, random_study

optuna.logging.set_verbosity(optuna.logging.ERROR)
storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(sys.argv[1]))
random_study(storage).optimize(accuracy, n_trials=40, callbacks=[ConfirmFinalists(10, after=8, **STATED)])
"""


@pytest.mark.heavy
def test_processes_share_the_confirmations(tmp_path):
    path = str(tmp_path / "journal.log")
    storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(path))
    random_study(storage)
    workers = [subprocess.Popen([sys.executable, "-c", WORKER, path]) for _ in range(3)]
    assert [worker.wait(120) for worker in workers] == [0, 0, 0]
    study = random_study(storage)
    kept = [trial for trial in confirmations(study) if trial.state != State.FAIL]
    assert len(kept) == 10
    assert {trial.state for trial in kept} == {State.COMPLETE}
    # A number stands for one configuration, in whichever process it was nominated.
    assert len({(nomination_of(t), t.params["x"]) for t in kept}) == len({nomination_of(t) for t in kept}) <= 3


def test_of_two_that_are_enqueued_at_the_same_moment_the_later_is_withdrawn(storage, monkeypatch):
    study = random_study(storage)
    study.optimize(accuracy, n_trials=10)
    callback = ConfirmFinalists(1, after=10, **STATED)

    def both(study, parameters, attributes):
        enqueue(study, parameters, attributes)  # by another process, a moment before
        return enqueue(study, parameters, attributes)

    monkeypatch.setattr(finalists, "enqueue", both)
    assert callback.enqueue(study) is Step.DONE
    assert [trial.state for trial in study.trials[10:]] == [State.WAITING, State.FAIL]
    study.optimize(accuracy, n_trials=5, callbacks=[callback])
    assert [trial.state for trial in study.trials[10:]] == [State.COMPLETE, State.FAIL]


def test_a_study_that_was_interrupted_goes_on_in_another_process(storage):
    study, callback = random_study(storage), ConfirmFinalists(6, after=10, **STATED)
    study.optimize(accuracy, n_trials=13, callbacks=[callback])
    assert [trial.state for trial in confirmations(study)] == [State.COMPLETE] * 3 + [State.WAITING]
    again = pickle.loads(pickle.dumps(callback))
    random_study(storage).optimize(accuracy, n_trials=30, callbacks=[again])
    assert [trial.state for trial in confirmations(study)] == [State.COMPLETE] * 6
    assert len(study.trials) == 16
    # Everything is done: one trial more, because a callback comes after a trial.
    random_study(storage).optimize(accuracy, n_trials=30, callbacks=[ConfirmFinalists(6, after=10, **STATED)])
    assert len(study.trials) == 17


def test_what_a_dead_process_left_waiting_is_run_first():
    study = random_study()
    study.optimize(accuracy, n_trials=10)
    dead = ConfirmFinalists(6, after=10, **STATED)
    assert [dead.enqueue(study) for _ in range(4)] == [Step.ENQUEUED] * 4
    assert [trial.state for trial in study.trials[10:]] == [State.WAITING] * 4
    fresh = ConfirmFinalists(6, after=10, **STATED)
    assert fresh.enqueue(study) is Step.ENQUEUED  # by the other one
    assert len(study.trials) == 14
    study.optimize(accuracy, n_trials=30, callbacks=[fresh])
    assert [trial.state for trial in study.trials[10:]] == [State.COMPLETE] * 6


def test_failed_confirmations_are_made_up_for_up_to_a_point():
    def objective(trial):
        value = accuracy(trial)
        if trial.number in (11, 12):
            raise ValueError
        return value

    study = random_study()
    study.optimize(objective, n_trials=60, catch=(ValueError,), callbacks=[ConfirmFinalists(5, after=10, **STATED)])
    assert [t.state.name for t in confirmations(study)] == ["COMPLETE", "FAIL", "FAIL", *["COMPLETE"] * 4]

    def always_fails(trial):
        value = accuracy(trial)
        if trial.number >= 10:
            raise ValueError
        return value

    study = random_study()
    study.optimize(always_fails, n_trials=60, catch=(ValueError,), callbacks=[ConfirmFinalists(5, after=10, **STATED)])
    assert [t.state.name for t in confirmations(study)] == ["FAIL"] * 5


def test_an_earlier_round_of_confirmations_counts_for_itself():
    study = random_study()
    study.optimize(accuracy, n_trials=10)
    for trial in make(**STATED).sampler.confirm(study, 4):
        study.tell(trial, accuracy(trial))
    study.optimize(accuracy, n_trials=60, callbacks=[ConfirmFinalists(5, after=20, **STATED)])
    assert len(confirmations(study)) == 9
    assert len(study.trials) == 29
    pairs = {(nomination_of(t), t.params["x"]) for t in confirmations(study)}
    assert len(pairs) == len({number for number, _ in pairs})


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_values_that_contradict_what_was_stated_do_not_stop_the_study(caplog, n_jobs):
    def objective(trial):
        return 7.0 if trial.number % 5 == 3 else accuracy(trial)

    study, callback = random_study(), ConfirmFinalists(3, after=6, **STATED)
    with caplog.at_level(logging.WARNING, logger="mixbandit"):
        study.optimize(objective, n_trials=20, n_jobs=n_jobs, callbacks=[callback])
    assert len(study.get_trials(states=COMPLETE)) == 20
    assert confirmations(study) == []
    said = [record.message for record in caplog.records if "ConfirmFinalists" in record.message]
    assert len(said) == 1
    assert "with a value outside reward_range" in said[0]


def test_refuted_assumptions_do_not_stop_the_study(caplog):
    """Values of c scatter more than samples allow: that b is worse than a, as it seems to be, may then be wrong."""

    def objective(trial):
        kind = trial.suggest_categorical("kind", ["a", "b", "c"])
        return float(trial.number % 2) if kind == "c" else {"a": 0.8, "b": 0.5}[kind]

    study, callback = (
        of_three_kinds(6),
        ConfirmFinalists(50, after=6, reward_range=(0.0, 1.0), samples=30, rows="fresh"),
    )
    with caplog.at_level(logging.WARNING, logger="mixbandit"):
        study.optimize(objective, n_trials=30, callbacks=[callback])
    assert len(study.get_trials(states=COMPLETE)) == 30
    assert len([record for record in caplog.records if "does not stop the study" in record.message]) == 1


def test_finalists_without_any_interval_are_still_confirmed():
    """If values refute what was stated at once, no finalist is known to be worse than another."""
    study = random_study()

    def objective(trial):
        kind = trial.suggest_categorical("kind", ["a", "b", "c"])
        return float(np.random.default_rng((trial.number, ord(kind))).uniform())

    callback = ConfirmFinalists(30, after=6, reward_range=(0, 1), samples=1_000_000, rows="fresh")
    study.optimize(objective, n_trials=15, callbacks=[callback])
    assert len(study.get_trials(states=COMPLETE)) == 15


def test_a_study_that_cannot_be_certified_runs_on(caplog):
    callback = ConfirmFinalists(3, after=2, space={"y": mb.Float(-1.0, 1.0)}, **STATED)
    study = random_study()
    with caplog.at_level(logging.WARNING, logger="mixbandit"):
        study.optimize(accuracy, n_trials=6, callbacks=[callback])
    assert len(study.trials) == 6
    assert len([record for record in caplog.records if "cannot confirm finalists" in record.message]) == 1
    two = optuna.create_study(directions=["maximize", "minimize"], sampler=optuna.samplers.RandomSampler(seed=0))
    with caplog.at_level(logging.WARNING, logger="mixbandit"):
        two.optimize(lambda trial: (trial.suggest_float("x", 0.0, 1.0), 0.0), n_trials=5, callbacks=[callback])
    assert len(two.trials) == 5


def test_the_sampler_makes_one_under_its_assumptions():
    sampler = make(**STATED, space=SPACE).sampler
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.optimize(accuracy, callbacks=[sampler.confirm_finalists(4, after=12, finalists=2)])
    assert len(study.trials) == 16
    assert len({nomination_of(t) for t in confirmations(study)}) <= 2
    with pytest.raises(mb.AssumptionsMissing):
        make().sampler.confirm_finalists(4, after=12)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"n": 0}, "n must"), ({"after": 0}, "after"), ({"after": 1.5}, "after"), ({"finalists": 0}, "finalists"),
     ({"space": 3}, "space must be a Space"), ({"assumptions": 1, "reward_range": None}, "not both")],
)  # fmt: skip
def test_bad_settings_are_refused(options, message):
    with pytest.raises(mb.InvalidInput, match=message):
        ConfirmFinalists(**{"n": 5, "after": 10, **STATED, **options})
    with pytest.raises(mb.AssumptionsMissing):
        ConfirmFinalists(5, after=10)
    with pytest.raises(mb.InvalidInput, match="study must be an Optuna study"):
        ConfirmFinalists(5, after=10, **STATED).enqueue(3)
