"""Several processes on one study, in a real PostgreSQL."""

import itertools
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import optuna
import pytest

from mixbandit.integrations.optuna import LOWER, MixBanditSampler

pytestmark = pytest.mark.heavy
PROCESSES, TRIALS = 3, 12

WORKER = """
import sys, time
import optuna
from mixbandit.integrations.optuna import MixBanditSampler

optuna.logging.set_verbosity(optuna.logging.ERROR)
storage, seed, trials = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
sampler = MixBanditSampler(seed=seed, n_startup_trials=4, reward_range=(0, 1), samples=100)
study = optuna.load_study(study_name="s", storage=storage, sampler=sampler)


def objective(trial):
    x, y = trial.suggest_float("x", 0.0, 1.0), trial.suggest_float("y", 0.0, 1.0)
    trial.set_user_attr("chosen", time.time())  # a trial begins before its parameters are chosen
    time.sleep(0.3)
    return 0.4 + 0.25 * (x + y)


study.optimize(objective, n_trials=trials)
"""


def _binaries():
    """Where PostgreSQL's programs are."""
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    found = shutil.which("initdb")
    if found is None and not places:
        pytest.fail("PostgreSQL is not installed: apt-get install postgresql")
    return Path(found).parent if found else places[0]


@pytest.fixture(scope="module")
def storage():
    """The address of an empty database, in a server of its own."""
    # Not a folder of pytest's, which later sessions clear away: a socket has to have a short path, and no other reader.
    folder, binaries = Path(tempfile.mkdtemp(prefix="mixbandit-")), _binaries()
    # The server refuses to run as root.
    own = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    if own:
        shutil.chown(folder, "postgres")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def program(name, *options):
        subprocess.run([*own, binaries / name, *options], check=True, cwd="/", stdout=subprocess.DEVNULL)

    data = folder / "data"
    program("initdb", "-D", data, "-U", "mixbandit", "-A", "trust")
    options = f"-p {port} -k {folder} -h 127.0.0.1"
    program("pg_ctl", "-D", data, "-o", options, "-w", "start")
    try:
        yield f"postgresql+psycopg2://mixbandit@127.0.0.1:{port}/postgres"
    finally:
        program("pg_ctl", "-D", data, "-m", "immediate", "stop")
        shutil.rmtree(folder)


def test_processes_share_a_study(storage):
    study = optuna.create_study(study_name="s", storage=storage, direction="maximize")
    command = [sys.executable, "-c", WORKER, storage]
    workers = [subprocess.Popen([*command, str(seed), str(TRIALS)]) for seed in range(PROCESSES)]
    pending = 0
    while any(worker.poll() is None for worker in workers):
        running = [t for t in study.get_trials(deepcopy=False) if t.state == optuna.trial.TrialState.RUNNING]
        pending = max(pending, len(running))
        time.sleep(0.1)
    assert [worker.returncode for worker in workers] == [0] * PROCESSES
    assert pending > 1
    trials = study.get_trials()
    assert len(trials) == PROCESSES * TRIALS
    assert {t.state.name for t in trials} == {"COMPLETE"}
    for one, other in itertools.combinations(trials, 2):
        chosen = max(one.user_attrs["chosen"], other.user_attrs["chosen"])
        together = chosen < min(t.datetime_complete.timestamp() for t in (one, other))
        assert not (together and one.params == other.params)
    assert sum(LOWER in t.user_attrs for t in trials) >= len(trials) - PROCESSES
    # Together they found the corner, and whoever comes later knows all of it.
    assert study.best_value > 0.8
    study.sampler = MixBanditSampler(reward_range=(0, 1), samples=100)
    study.ask().suggest_float("x", 0.0, 1.0)
    assert study.sampler.tuner(study).told == len(trials)
    assert study.sampler.certificate(study).t == len(trials)
