"""Journals with a torn last line: nothing is appended to it, and what is set aside is kept and told."""

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import optuna
import pytest

from mixbandit.cli.journals import journal_to_write
from tests.test_cli_confirming import folder, states, tune  # noqa: F401

optuna.logging.set_verbosity(optuna.logging.WARNING)


def journal(path):
    """A journal with three trials, written by Optuna alone."""
    storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(path)))
    study = optuna.create_study(storage=storage, study_name="s", direction="maximize")
    study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), n_trials=3)
    return path


def trials(path):
    storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(path)))
    return optuna.load_study(study_name="s", storage=storage).trials


@pytest.mark.parametrize("cut", [1, 2, 10, 60])
def test_a_torn_line_is_ended_or_set_aside_before_anything_is_written(tmp_path, cut):
    path, said = journal(tmp_path / "a.journal"), []
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines)[:-cut])
    study = optuna.load_study(study_name="s", storage=journal_to_write(str(path), said.append))
    study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), n_trials=2)
    complete = [trial for trial in trials(path) if trial.state.is_finished()]
    kept = sorted(tmp_path.glob("a.journal.torn-*"))
    if cut == 1:  # only the end of the line was missing
        assert len(complete) == 5
        assert not kept
        assert not said
    else:
        assert len(complete) == 4
        (aside,) = kept
        assert aside.read_bytes() == lines[-1][:-cut]
        (told,) = said
        assert f"its {len(lines[-1]) - cut} bytes were moved to {aside}" in told


def test_a_line_that_another_process_tears_later_is_set_aside_too(tmp_path):
    path, said = journal(tmp_path / "a.journal"), []
    study = optuna.load_study(study_name="s", storage=journal_to_write(str(path), said.append))
    for _ in range(2):
        with path.open("ab") as file:
            file.write(b'{"op_code":4,"worker_id":"' + b"x" * 100_000)
        study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), n_trials=1)
    assert len(trials(path)) == 5
    assert len(said) == len(list(tmp_path.glob("a.journal.torn-*"))) == 2


def test_a_journal_is_not_changed_if_the_torn_line_cannot_be_kept(tmp_path, monkeypatch):
    path = journal(tmp_path / "a.journal")
    path.write_bytes(path.read_bytes()[:-10])
    before = path.read_bytes()

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("mixbandit.cli.journals._kept", full)
    with pytest.raises(OSError, match="No space left"):
        journal_to_write(str(path))
    assert path.read_bytes() == before
    assert not Path(f"{path}.lock").is_symlink()


@pytest.mark.heavy
def test_a_study_with_a_torn_journal_is_resumed(folder):  # noqa: F811
    command = ["train:accuracy", "--storage", "a.journal", "--json"]
    tune(*command, "--trials", 3)
    content = Path("a.journal").read_bytes()
    Path("a.journal").write_bytes(content[:-7])
    result = tune(*command, "--trials", 4)
    assert "a.journal was cut off" in " ".join(result.stderr.split())
    assert "a.journal.torn-" in result.stderr
    assert json.loads(result.stdout)["searched"] == 4
    searched, _ = states("a.journal")
    assert sorted(searched) == ["COMPLETE"] * 4 + ["FAIL"]  # the third trial was not known to have ended


WRITER = """
import sys
import optuna
from mixbandit.cli.journals import journal_to_write

optuna.logging.set_verbosity(optuna.logging.WARNING)
study = optuna.load_study(study_name="s", storage=journal_to_write(sys.argv[1]))
for i in range(40):
    trial = study.ask()
    trial.suggest_float("x", 0.0, 1.0)
    study.tell(trial, 0.5)
    print(trial.number, flush=True)
"""


@pytest.mark.heavy
def test_writers_at_once_set_nothing_of_each_other_aside(tmp_path):
    path = journal(tmp_path / "a.journal")
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE, text=True)
               for _ in range(4)]  # fmt: skip
    writers[0].stdout.readline()
    writers[0].send_signal(signal.SIGKILL)
    told = [int(number) for writer in writers for number in writer.communicate()[0].split()]
    assert [writer.returncode for writer in writers] == [-signal.SIGKILL, 0, 0, 0]
    complete = {trial.number for trial in trials(path) if trial.state.is_finished()}
    assert set(told) <= complete
    assert len(told) == len(set(told)) >= 120
