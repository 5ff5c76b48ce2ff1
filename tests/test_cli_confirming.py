"""`mixbandit tune --confirm`: confirmations are stored in every kind of storage, and what fails is told and retried."""

import contextlib
import json
import threading
from pathlib import Path

import optuna
import pytest
from benchmarks.workers import postgresql
from optuna.storages._rdb.models import StudyModel
from sqlalchemy import create_engine
from typer.testing import CliRunner

from mixbandit.cli import app, running, workers
from mixbandit.cli.storage import check_may_be_tuned, resolved, storage_to_tune, study_in
from mixbandit.integrations.optuna.confirming import nomination_of

MODULE = """
import random
from pathlib import Path

def accuracy(parameters):
    chance = 0.9 - 0.3 * (parameters["x"] - 0.3) ** 2
    return sum(random.random() < chance for _ in range(100)) / 100

def moves(parameters):
    import os
    os.makedirs("elsewhere", exist_ok=True)
    os.chdir("elsewhere")
    return accuracy(parameters)

def breaks(parameters):
    begun = Path("begun.txt")
    count = int(begun.read_text()) if begun.exists() else 0
    begun.write_text(str(count + 1))
    if count >= 5 and not Path("mended").exists():
        raise ValueError("no data")
    return accuracy(parameters)
"""
SPACE = '[x]\ntype = "float"\nlow = -1.0\nhigh = 1.0\n'
STATED = ["--space", "space.toml", "--range", "0", "1", "--samples", "100"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(MODULE)
    (tmp_path / "space.toml").write_text(SPACE)
    return tmp_path


def tune(*arguments, code=0):
    result = CliRunner().invoke(app, ["tune", *map(str, arguments), *STATED])
    assert result.exit_code == code, result.output
    assert isinstance(result.exception, SystemExit | None)
    return result


def states(source):
    """How search trials and confirmations ended."""
    found = [(nomination_of(trial) is not None, trial.state.name) for trial in study_in(source, None).trials]
    return [state for confirms, state in found if not confirms], [state for confirms, state in found if confirms]


def check_confirmed(source, *, jobs=1):
    found = json.loads(tune("train:accuracy", "--storage", source, "--trials", 5, "--confirm", 3, "--jobs", jobs,
                            "--json").stdout)  # fmt: skip
    assert (found["searched"], found["confirmed"], found["failed"]) == (5, 3, 0)
    assert states(source) == (["COMPLETE"] * 5, ["COMPLETE"] * 3)


@pytest.mark.parametrize("source", ["sqlite:///study.db", "study.journal"])
def test_confirmations_are_stored(source):
    check_confirmed(source)


@pytest.mark.heavy
@pytest.mark.parametrize("jobs", [1, 3])
def test_confirmations_are_stored_in_postgresql(jobs):
    with postgresql() as source:
        check_confirmed(source, jobs=jobs)


@pytest.mark.parametrize("source", [pytest.param("sqlite:///study.db", marks=pytest.mark.heavy), "study.journal"])
def test_confirmations_that_fail_are_told_and_retried(source):
    command = ["train:breaks", "--storage", source, "--trials", 5, "--confirm", 2]
    said = tune(*command, code=1).output
    assert "0 of 2 confirmations were completed: 2 failed. Run the same command again to retry them." in said
    assert states(source) == (["COMPLETE"] * 5, ["FAIL"] * 2)
    Path("mended").touch()
    assert "2 of 2 confirmations" in tune(*command).output
    assert states(source) == (["COMPLETE"] * 5, ["FAIL"] * 2 + ["COMPLETE"] * 2)


@pytest.mark.parametrize(
    "source",
    [
        "study.journal",
        pytest.param("sqlite:///study.db", marks=pytest.mark.heavy),
        pytest.param("sqlite:///file:study.db?uri=true", marks=pytest.mark.heavy),
    ],
)
def test_an_objective_may_change_the_folder(folder, source):
    said = tune("train:moves", "--storage", source, "--trials", 3).output
    assert f"is in {source}." in said
    assert states(source) == (["COMPLETE"] * 3, [])
    assert not list(folder.glob("**/elsewhere/study.*"))


@pytest.mark.heavy
def test_no_more_processes_are_started_than_there_are_trials_left(monkeypatch):
    started = []
    begin = workers.Worker.__init__
    monkeypatch.setattr(workers.Worker, "__init__", lambda self, *args: (started.append(1), begin(self, *args))[1])
    command = ["train:accuracy", "--storage", "study.journal", "--jobs", 100_000]
    said = tune(*command, "--trials", 1).output
    assert len(started) == 1
    assert "Starting one process instead of 100000: no more than 1 can run at once." in said
    monkeypatch.setattr(running, "_MOST_PER_CORE", 1)
    monkeypatch.setattr(running.os, "cpu_count", lambda: 2)
    said = tune(*command, "--trials", 5).output
    assert len(started) == 3
    assert "Starting 2 processes instead of 100000: at most 1 for each core." in said


@pytest.mark.parametrize("source", ["a.db", "file:a.db?uri=true"])
@pytest.mark.parametrize("name", ["plain", "with space", "with {braces}", "with%percent"])
def test_a_relative_address_is_resolved_once(folder, monkeypatch, name, source):
    (folder / name).mkdir()
    monkeypatch.chdir(folder / name)
    address = resolved(f"sqlite:///{source}")
    monkeypatch.chdir(folder)
    check_may_be_tuned(address)
    storage_to_tune(address).engine.dispose()
    assert [path.name for path in (folder / name).iterdir()] == ["a.db"]


@pytest.mark.parametrize("work", [check_may_be_tuned, storage_to_tune])
def test_a_database_that_another_command_is_just_making_is_waited_for(folder, work):
    address = "sqlite:///new.db"
    engine = create_engine(address)
    StudyModel.__table__.create(engine)

    def finish():
        with contextlib.suppress(Exception):  # both may write the version
            optuna.storages.RDBStorage(address)

    rest = threading.Timer(0.5, finish)
    rest.start()
    made = work(address)
    rest.join()
    if made is not None:
        assert made.get_all_studies() == []
