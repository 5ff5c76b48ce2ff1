"""Processes that confirm at once on one SQLite database: nothing waits afterwards, and nothing told is lost."""

import subprocess
import sys

import pytest
from optuna.trial import TrialState

from mixbandit.integrations.optuna.confirming import nomination_of
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
