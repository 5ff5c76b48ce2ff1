"""Many worker processes on one study, one of them killed: in a real PostgreSQL and in a journal file."""

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import optuna
import pytest
from optuna.trial import TrialState

import mixbandit as mb
from benchmarks import workers as bench
from mixbandit.integrations.optuna import LOWER, MixBanditSampler

pytestmark = pytest.mark.heavy
ROOT = Path(__file__).parent.parent.parent

# What a worker that opens the study later says about it.
SAYS = """
import sys
import optuna
from benchmarks import workers as bench
from mixbandit.integrations.optuna import MixBanditSampler

study = optuna.load_study(study_name=bench.STUDY, storage=bench.opened(sys.argv[1]))
print(MixBanditSampler(assumptions=bench.KNOWN, seed=5).certificate(study).to_json())
"""


@pytest.fixture(scope="module")
def server():
    with bench.postgresql() as address:
        yield address


@pytest.fixture
def address(request, tmp_path):
    """An empty storage of the kind that the test names."""
    if request.param == "journal":
        return str(tmp_path / "study.journal")
    return emptied(request.getfixturevalue("server"))


def emptied(server):
    storage = bench.opened(server)
    for name in optuna.get_all_study_names(storage):
        optuna.delete_study(study_name=name, storage=storage)
    return server


def created(address, heartbeat=None):
    storage = bench.opened(address, heartbeat)
    return optuna.create_study(study_name=bench.STUDY, storage=storage, direction="maximize")


def logged(folder):
    """What workers returned, by trial number; each number once."""
    lines = bench.logged(folder)
    found = {line["number"]: line for line in lines}
    assert len(found) == len(lines)
    return found


def kill(worker, seed, study, folder):
    """Kill a worker while its objective runs, and return the number of that trial."""
    while True:
        assert worker.poll() is None, "the worker ended before it could be killed"
        os.kill(worker.pid, signal.SIGSTOP)  # so that nothing changes while we look
        trials = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
        mine = [t.number for t in trials if t.user_attrs.get("worker") == seed and t.number not in logged(folder)]
        if mine:
            worker.kill()
            worker.wait()
            return mine[0]
        os.kill(worker.pid, signal.SIGCONT)
        time.sleep(0.02)


def run_with_one_killed(study, address, folder, count, **options):
    """Let workers run a study, and kill one of them on the way."""
    workers = [bench.started(address, seed, folder / f"{seed}.log", **options) for seed in range(count)]
    try:
        while len(study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))) < 3 * count:
            assert not any(worker.poll() for worker in workers)
            time.sleep(0.1)
        killed = kill(workers[0], 0, study, folder)
        assert [worker.wait() for worker in workers] == [-signal.SIGKILL] + [0] * (count - 1)
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    return killed


def answer(*command):
    """The certificate that another process prints."""
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def check_that_all_is_there(study, folder, killed, least, count):
    """No value is lost or doubled, nothing ran twice at the same time, and the killed worker cost one trial."""
    trials, returned = study.get_trials(), logged(folder)
    assert [t.number for t in trials] == list(range(len(trials)))
    assert least <= len(trials) < least + count  # at most one too many for each other worker
    assert {t.number for t in trials if t.state != TrialState.COMPLETE} == {killed}
    assert trials[killed].value is None
    values = {t.number: (t.params, t.value) for t in trials if t.number != killed}
    assert values == {number: (line["params"], line["value"]) for number, line in returned.items()}
    began = {number: line["chosen"] for number, line in returned.items()}
    ended = {number: line["returned"] for number, line in returned.items()}
    began[killed], ended[killed] = trials[killed].user_attrs["chosen"], float("inf")
    pairs = itertools.combinations(trials, 2)
    together = [
        (a, b) for a, b in pairs if max(began[a.number], began[b.number]) < min(ended[a.number], ended[b.number])
    ]
    assert len(together) > len(trials)
    assert not [(a.number, b.number) for a, b in together if a.params == b.params]


def check_that_all_say_the_same(study, address):
    """One process with the same data in memory, one that opens the storage, and the command line."""
    found = mb.certify(study, bench.KNOWN)
    memory = optuna.storages.InMemoryStorage()
    optuna.copy_study(from_study_name=bench.STUDY, from_storage=study._storage, to_storage=memory)
    copy = optuna.load_study(study_name=bench.STUDY, storage=memory)
    said = mb.certify(copy, bench.KNOWN).to_json()
    assert found.to_json() == said
    assert MixBanditSampler(assumptions=bench.KNOWN).certificate(copy).to_json() == said
    assert answer("-c", SAYS, address) == json.loads(said)
    options = ("--study", bench.STUDY, "--range", "0", "1", "--samples", "100", "--rows", "fresh", "--json")
    told = answer("-m", "mixbandit", "certify", address, *options)
    assert told == {**told, **json.loads(said)}
    assert found.trusted
    assert found.t == len(study.get_trials(states=(TrialState.COMPLETE,)))


@pytest.mark.parametrize(
    ("address", "count", "trials"),
    [("postgresql", 8, 400), ("journal", 4, 60)],
    indirect=["address"],
)
def test_a_killed_worker_costs_one_trial(address, count, trials, tmp_path):
    study = created(address)
    # Trials that last longer than choosing: most of them run beside others.
    killed = run_with_one_killed(study, address, tmp_path, count, trials=trials, seconds=0.5)
    check_that_all_is_there(study, tmp_path, killed, trials, count)
    assert study.trials[killed].state == TrialState.RUNNING  # nobody knows that it will not end
    check_that_all_say_the_same(study, address)
    # All but the first were chosen by the sampler, which knew of the others.
    complete = study.get_trials(states=(TrialState.COMPLETE,))
    assert sum(LOWER in t.user_attrs for t in complete) >= len(complete) - count
    assert {t.user_attrs["worker"] for t in study.trials} == set(range(count))
    certificate = mb.certify(study, bench.KNOWN)
    assert certificate.lower > 0.85
    assert abs(certificate.parameters["x"] - 0.7) < 0.3


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_heartbeats_find_the_trial_of_a_killed_worker_and_run_it_again(server, tmp_path):
    study = created(emptied(server), heartbeat=2)
    options = {"trials": 30, "seconds": 0.1, "heartbeat": 2}
    killed = run_with_one_killed(study, server, tmp_path, 3, **options)
    lost = study.trials[killed]
    limit = time.monotonic() + 60.0
    while study.trials[killed].state != TrialState.FAIL:
        assert time.monotonic() < limit
        optuna.storages.fail_stale_trials(study)  # as each worker does before a trial
        time.sleep(0.2)
    assert [t.params for t in study.get_trials(states=(TrialState.WAITING,))] in ([lost.params], [])
    assert bench.started(server, 9, tmp_path / "9.log", **options).wait() == 0
    states = [t.state for t in study.trials]
    assert states.count(TrialState.FAIL) == 1
    assert states.count(TrialState.COMPLETE) == len(states) - 1 >= 30
    (again,) = (t for t in study.trials if t.system_attrs.get("failed_trial") == killed)
    assert again.params == lost.params
    certificate = mb.certify(study, bench.KNOWN)
    assert certificate.t == len(states) - 1
    assert certificate.left_out == {"FAIL": 1}


def test_the_commands_of_the_documentation(server):
    """Create a study on the command line, start `examples/worker.py` twice, certify."""
    address, name = emptied(server), "svm"
    create = ["create-study", "--storage", address, "--study-name", name, "--direction", "maximize", "--skip-if-exists"]
    optuna_program = Path(sys.executable).parent / "optuna"
    for _ in range(2):
        subprocess.run([optuna_program, *create], check=True, capture_output=True)
    command = [sys.executable, ROOT / "examples" / "worker.py", address, name, "12"]
    workers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [worker.communicate()[0] for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0]
    trials = optuna.load_study(study_name=name, storage=bench.opened(address)).trials
    assert 12 <= len(trials) <= 13
    assert {trial.state for trial in trials} == {TrialState.COMPLETE}
    known = ("--study", name, "--range", "0", "1", "--samples", "100", "--rows", "fresh")
    certify = [sys.executable, "-m", "mixbandit", "certify", address, *known]
    told = subprocess.run(certify, check=True, capture_output=True, text=True).stdout
    assert any(flat(told).startswith(flat(text)) for text in said)  # whoever ended last knew all trials


def flat(text):
    return " ".join(text.split())
