"""How commands end: no traceback for anything that can be typed, exit codes that tell, and no process left behind."""

import hashlib
import importlib
import importlib.util
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import optuna
import pytest
from typer.testing import CliRunner

from mixbandit.cli import app, shared

STATED = ["--range", "0", "1", "--samples", "100", "--rows", "fresh"]


def certify(*arguments, stated=STATED):
    return CliRunner().invoke(app, ["certify", *map(str, arguments), *stated])


def refused(*arguments, says, code=2):
    result = certify(*arguments)
    assert result.exit_code == code, result.output
    assert result.output.startswith("mixbandit: ")
    assert says in result.output
    assert "Traceback" not in result.output
    assert isinstance(result.exception, SystemExit)
    return result.output


def module(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "mixbandit", *map(str, arguments)],
        text=True,
        check=False,
        stderr=subprocess.PIPE,
        **options,
    )


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text("lr,number,value\n0.1,0,0.5\n0.2,1,0.6\n0.3,2,0.7\n")
    return path


@pytest.fixture
def storage(tmp_path):
    path = tmp_path / "study{1}.db"
    storage = optuna.storages.RDBStorage(f"sqlite:///{tmp_path}/study{{{{1}}}}.db")
    study = optuna.create_study(storage=storage, study_name="a", direction="maximize")
    study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), n_trials=5)
    storage.engine.dispose()
    return path


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


# ---- files


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("lr,value\n1,2\n".encode("utf-16"), "UTF-16"),
        ("lr,value\n1,ü\n".encode("latin-1"), "Latin-1"),
        (bytes(range(256)) * 4, "NUL"),
        (b"lr,value\n" + b"x" * 200_000 + b",1\n2,3\n", "131072"),
        (b"lr,value\n" + b"9" * 400 + b",0.1\n2,0.3\n", "finite"),
        (b"lr,value\n1," + b"9" * 400 + b"\n2,0.3\n", "finite"),
        (b"", "header"),
        (b'lr,value\n"1,2\n', "quotation mark"),
        (b"lr,value\n\x1b[31m,high\n2,3\n", "must hold numbers"),
        (b"[bold],[/x]\n1,2\n", "there is no column 'value' of values; the columns are '[bold]', '[/x]'"),
    ],
)
def test_any_file_is_read_or_refused_without_a_traceback(tmp_path, content, says):
    path = tmp_path / "[red]runs[x].csv"
    path.write_bytes(content)
    assert "\x1b" not in refused(path, says=says)


def test_parameters_are_named_on_the_command_line(table):
    refused(table, says="--parameter")
    result = certify(table, "--parameter", "lr")
    assert result.exit_code == 0
    assert result.output.startswith("Use {'lr': ")
    assert certify(table, "--parameter", "lr", "--parameter", "number").exit_code == 0
    refused(table, "--parameter", "width", says="no column 'width'")
    refused(table, "--study", "a", says="--study")


def test_exit_codes_tell_kinds_apart(table, monkeypatch):
    assert certify(table, "--parameter", "lr").exit_code == 0
    assert certify(table, stated=[]).exit_code == 2
    assert certify(table, "--nonsense").exit_code == 2
    rng = np.random.default_rng(0)
    table.write_text("lr,value\n" + "".join(f"{i / 300},{rng.uniform()}\n" for i in range(300)))
    assert certify(table, stated=["--range", "0", "1", "--samples", "1000000", "--rows", "fresh"]).exit_code == 3

    def ends_with(error):
        def fail(*arguments, **options):
            raise error

        monkeypatch.setattr(importlib.import_module("mixbandit.cli.stating"), "certified", fail)
        return certify(table)

    for error, code, says in (
        (KeyError("x"), 1, "this is a bug in mixbandit"),
        (MemoryError(), 1, "out of memory"),
        (OSError(28, "No space left on device"), 1, "No space left"),
        (KeyboardInterrupt(), 130, ""),
    ):
        result = ends_with(error)
        assert result.exit_code == code
        assert says in result.output
        assert "Traceback" not in result.output
    monkeypatch.setenv("MIXBANDIT_DEBUG", "1")
    assert "Traceback" in ends_with(KeyError("x")).output


def test_slow_work_says_what_it_is_doing(table, monkeypatch, capsys):
    monkeypatch.setattr(shared, "_PATIENCE", 0.0)
    monkeypatch.setattr(shared, "_EVERY", 0.01)
    with shared.patiently("reading [/x]") as tell:
        seen = ""
        while "reading [/x]" not in seen:
            seen += capsys.readouterr().err
        tell("learnt 10 of 20 trials")
        while "learnt 10 of 20 trials" not in seen:
            seen += capsys.readouterr().err


@pytest.mark.heavy
def test_a_full_disk_and_a_closed_pipe_are_told(table):
    arguments = ("certify", table, "--parameter", "lr", *STATED)
    if Path("/dev/full").exists():
        for command in (arguments, ("--help",), ("--version",)):
            with open("/dev/full", "w") as full:
                result = module(*command, stdout=full)
            assert result.returncode == 1
            assert result.stderr.endswith("mixbandit: [Errno 28] No space left on device\n")
            assert "Traceback" not in result.stderr
    reading, writing = os.pipe()
    os.close(reading)
    result = module(*arguments, stdout=writing)
    os.close(writing)
    assert result.returncode == 141
    assert "Error" not in result.stderr


# ---- storages


def test_a_database_that_is_not_optunas_stays_as_it_is(tmp_path):
    path = tmp_path / "app.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE users (name TEXT)")
    connection.close()
    before = digest(path)
    told = refused(f"sqlite:///{path}", says="not an Optuna storage")
    assert "users" in told
    assert digest(path) == before
    assert os.listdir(tmp_path) == ["app.db"]
    empty = tmp_path / "empty.db"
    empty.touch()
    refused(f"sqlite:///{empty}", says="it is empty")
    assert empty.stat().st_size == 0


def test_a_study_is_read_and_not_changed(storage):
    before, folder = digest(storage), sorted(os.listdir(storage.parent))
    for address in (f"sqlite:///{storage}", f"sqlite:///file:{storage}?uri=true"):
        result = certify(address)
        assert result.exit_code == 0, result.output
        assert result.output.startswith("Use {")
    refused(f"sqlite:///{storage}", "--study", "b", says="the studies are a")
    assert digest(storage) == before
    assert sorted(os.listdir(storage.parent)) == folder


def change(path, *statements):
    with sqlite3.connect(path) as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()
    return digest(path)


@pytest.mark.parametrize(
    ("statements", "says"),
    [
        (["UPDATE alembic_version SET version_num = 'v2.6.0.a'"], "optuna storage upgrade"),
        (["DROP TABLE alembic_version"], "very old Optuna"),
        (["DELETE FROM studies"], "there is no study"),
        (["DROP TABLE trial_params"], "no such table"),
        (["UPDATE trial_params SET distribution_json = '{'"], "cannot be read as an Optuna storage"),
    ],
)
def test_old_and_damaged_storages_are_refused_and_not_changed(storage, statements, says):
    before = change(storage, *statements)
    refused(f"sqlite:///{storage}", says=says)
    assert digest(storage) == before


def test_a_file_that_is_no_database(tmp_path, storage):
    refused(f"sqlite:///{tmp_path}/none.db", says="there is no file")
    refused(f"sqlite:///{tmp_path}", says="is a folder")
    refused("sqlite://", says="in memory")
    content = storage.read_bytes()
    for name, damaged in (("cut.db", content[: len(content) // 2]), ("text.db", b"lr,value\n" * 100)):
        (tmp_path / name).write_bytes(damaged)
        refused(f"sqlite:///{tmp_path}/{name}", says="cannot be read as an Optuna storage")
    refused(storage, says="give its URL")


def test_a_journal_is_read_and_not_changed(tmp_path):
    path = tmp_path / "journal.log"
    journal = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(path)))
    study = optuna.create_study(storage=journal, study_name="a", direction="maximize")
    study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), n_trials=5)
    before = digest(path)
    assert certify(path).output.startswith("Use {")
    assert digest(path) == before
    assert os.listdir(tmp_path) == ["journal.log"]
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], "{", *lines[1:]]) + "\n")
    refused(path, says="cannot be read as an Optuna storage")


@pytest.mark.parametrize(
    "address",
    [
        "postgresql+psycopg2://me:{}@127.0.0.1:1/db",
        "postgresql+psycopg2://127.0.0.1:1/db?user=me&password={}",
        "mysql+nodriver://me:{}@127.0.0.1/db",
        "Oracle://me:{}@h/db",
        "nonsense://me:{}@h/db",
        "redis://:{}@h",
        "sqlite:///me:{}@h/none.db",
        "file:/me:{}@h",
    ],
)
@pytest.mark.parametrize("secret", ["s3cret-word", "s3cret%2Fword", "s3cret@word/x"])
def test_passwords_are_never_shown(address, secret, monkeypatch):
    monkeypatch.setenv("MIXBANDIT_DEBUG", "1")
    result = certify(address.format(secret))
    # A driver that is not installed is a failure; an address that leads nowhere is wrong input.
    lacking = "psycopg2" in address and importlib.util.find_spec("psycopg2") is None
    assert result.exit_code == (1 if lacking else 2), result.output
    assert "s3cret" not in result.output
    assert "word" not in result.output.replace("password", "")


def test_a_missing_driver_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg2", None)
    told = refused("postgresql+psycopg2://me:secret@h/db", says="pip install 'psycopg2-binary'", code=1)
    assert "secret" not in told


# ---- signals


def children(process):
    """The processes that a process has started."""
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process)], capture_output=True, text=True, check=False)
    return [int(pid) for pid in found.stdout.split()]


def is_alive(process):
    status = Path(f"/proc/{process}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes in /proc")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_stopped_command_leaves_no_process_behind_and_keeps_the_results(tmp_path, number):
    arguments = ["coverage", "-T", "200", "-n", "5000", "-j", "2", "--out", str(tmp_path)]
    said, errors = tmp_path / "stdout", tmp_path / "stderr"  # not pipes, which would stay open as long as a worker
    with said.open("w") as out, errors.open("w") as err:
        process = subprocess.Popen([sys.executable, "-m", "mixbandit", *arguments], stdout=out, stderr=err)
    while not any(len(path.read_text().splitlines()) > 3 for path in tmp_path.glob("coverage-*.csv")):
        assert process.poll() is None
        time.sleep(0.05)
    started = children(process.pid)
    assert len(started) >= 2
    process.send_signal(number)
    assert process.wait() == (143 if number == signal.SIGTERM else -signal.SIGKILL)
    if number == signal.SIGTERM:
        assert "resume from" in said.read_text()
    assert "Traceback" not in errors.read_text()
    for _ in range(200):  # they look for their parent once a second; without that they stay for minutes
        if not any(map(is_alive, started)):
            break
        time.sleep(0.1)
    left = [pid for pid in started if is_alive(pid)]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == []
    (results,) = tmp_path.glob("coverage-*.csv")
    assert 2 < len(results.read_text().splitlines()) < 5000
