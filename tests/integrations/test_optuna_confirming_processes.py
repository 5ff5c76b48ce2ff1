"""Processes that confirm at once on one SQLite database: nothing waits afterwards, and nothing told is lost."""

import pickle
import subprocess
import sys

import pytest
from optuna.trial import TrialState
from sqlalchemy import event

from mixbandit.integrations.optuna.confirming import nomination_of
from mixbandit.integrations.optuna.storage import begin, enqueue, queue_safely
from tests.integrations.studies import STATED, make
from tests.integrations.test_optuna_finalists import accuracy, random_study

WORKER = """
import sys
import optuna
from tests.integrations.test_optuna_finalists import STATED, accuracy, make

optuna.logging.set_verbosity(optuna.logging.ERROR)
study = optuna.load_study(study_name="s", storage=sys.argv[1])
for trial in make(**STATED).sampler.confirm(study, 4):
    value = accuracy(trial)
    study.tell(trial, value)
    print(trial.number, value, flush=True)
"""


@pytest.mark.heavy
def test_every_confirmation_that_is_told_is_there(tmp_path):
    address = f"sqlite:///{tmp_path}/study.db"
    study = random_study(address)
    study.optimize(accuracy, n_trials=8)
    workers = [subprocess.Popen([sys.executable, "-c", WORKER, address], stdout=subprocess.PIPE, text=True)
               for _ in range(6)]  # fmt: skip
    told = [line.split() for worker in workers for line in worker.communicate(timeout=300)[0].splitlines()]
    assert [worker.returncode for worker in workers] == [0] * 6
    found = {t.number: t.value for t in random_study(address).trials if nomination_of(t) is not None}
    assert len(told) == 24
    assert found == {int(number): float(value) for number, value in told}
    assert {trial.state for trial in random_study(address).trials} == {TrialState.COMPLETE}


def test_a_confirmation_never_waits_and_leaves_other_peoples_trials_alone():
    study = random_study()
    study.optimize(accuracy, n_trials=8)
    study.enqueue_trial({"x": 0.123})
    for trial in make(**STATED).sampler.confirm(study, 2):
        assert nomination_of(study.trials[trial.number]) is not None
        assert study.trials[trial.number].state == TrialState.RUNNING
        study.tell(trial, accuracy(trial))
    assert [t.state.name for t in study.trials[8:]] == ["WAITING", "COMPLETE", "COMPLETE"]
    study.optimize(accuracy, n_trials=1)
    assert study.trials[8].params == {"x": 0.123}


@pytest.mark.parametrize("how", ["tune", "ask"])
def test_a_queued_trial_is_taken_once_even_if_two_processes_look_before_either_writes(tmp_path, how):
    address = f"sqlite:///{tmp_path}/study.db"
    mine, theirs = random_study(address), random_study(address)
    number = enqueue(mine, {"x": 0.1}, {}).number
    queue_safely(mine)
    queue_safely(mine)
    pickle.loads(pickle.dumps(mine._storage))
    taken = []

    def before(connection, cursor, statement, *others):
        if statement.startswith("UPDATE trials") and not taken:
            taken.append(begin(theirs, number))

    event.listen(mine._storage._backend.engine, "before_cursor_execute", before)
    if how == "tune":
        assert begin(mine, number) is None
    else:
        assert mine.ask().number != number
    assert taken[0].number == number
    theirs.tell(taken[0], 0.5)
    assert theirs.trials[number].value == 0.5
    assert theirs.trials[number].datetime_start is not None


CALLBACK = """
import sys
import optuna
from mixbandit.integrations.optuna import ConfirmFinalists
from tests.integrations.test_optuna_finalists import STATED, accuracy, random_study

study = optuna.load_study(study_name="s", storage=sys.argv[1])

def told(trial):
    value = accuracy(trial)
    print(trial.number, value, flush=True)
    return value

study.optimize(told, n_trials=8, callbacks=[ConfirmFinalists(20, after=8, **STATED)])
"""


@pytest.mark.heavy
def test_what_callbacks_of_several_processes_queue_is_run_once(tmp_path):
    address = f"sqlite:///{tmp_path}/study.db"
    random_study(address).optimize(accuracy, n_trials=8)
    workers = [subprocess.Popen([sys.executable, "-c", CALLBACK, address], stdout=subprocess.PIPE, text=True)
               for _ in range(6)]  # fmt: skip
    told = [line.split() for worker in workers for line in worker.communicate(timeout=300)[0].splitlines()]
    assert [worker.returncode for worker in workers] == [0] * 6
    found = {t.number: t.value for t in random_study(address).trials[8:] if t.state == TrialState.COMPLETE}
    assert len(told) == len(found)
    assert found == {int(number): float(value) for number, value in told}
