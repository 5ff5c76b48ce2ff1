"""`mixbandit tune`: studies that are run, stopped, resumed and certified by processes."""

import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import optuna
import pytest
from optuna.trial import TrialState
from rich.console import Console
from typer.testing import CliRunner

from mixbandit import certify
from mixbandit.cli import app
from mixbandit.cli.storage import study_in
from mixbandit.cli.watching import LiveWatch, Standing
from mixbandit.cli.workers import Report, may_be_alive, this_process
from mixbandit.errors import STATEMENTS
from mixbandit.integrations.optuna.confirming import nomination_of
from mixbandit.integrations.optuna.storage import sign

MODULE = '''
import os, random, signal, sys, time
from pathlib import Path

def accuracy(parameters):
    """On 100 rows, new each time."""
    chance = 0.9 - 0.3 * (parameters["x"] - 0.3) ** 2 - (0.1 if parameters["kind"] == "b" else 0.0)
    assert ("depth" in parameters) == (parameters["kind"] == "b")
    return sum(random.random() < chance for _ in range(100)) / 100

def loss(trial):
    return (trial.suggest_float("x", -1.0, 1.0) - 0.3) ** 2

def prints(parameters):
    print("printed", parameters["x"])
    return parameters["x"]

def noted(parameters):
    with open("begun.txt", "a") as file:
        file.write("x\\n")
    time.sleep(0.3)
    return 0.5 + 0.3 * parameters["x"]

def stubborn(parameters):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    Path("begun.txt").write_text(str(os.getpid()))
    time.sleep(600)

def sleeps(parameters):
    Path("begun.txt").write_text(str(os.getpid()))
    time.sleep(600)

def starts(parameters):
    import subprocess
    child = subprocess.Popen(["sleep", "600"])
    Path("begun.txt").write_text(str(child.pid))
    child.wait()

def fails(parameters):
    raise ValueError("no data")

def sometimes(trial):
    x = trial.suggest_float("x", 0.0, 1.0)
    if trial.number == 1:
        raise ValueError("no data")
    if trial.number == 2:
        os._exit(3)
    if trial.number == 3:
        sys.exit("no more")
    if trial.number == 4:
        return float("nan")
    if trial.number == 5:
        return "text"
    if trial.number == 6:
        import optuna
        raise optuna.TrialPruned
    return x

def measured(trial):
    import optuna
    x, values = trial.suggest_float("x", 0.0, 1.0), []
    for step in range(12):
        values.append(x + 0.01 * random.random())
        trial.report(values[-1], step)
        if trial.should_prune():
            raise optuna.TrialPruned
    return sum(values) / len(values)

def beyond(parameters):
    return 7.0 if parameters["x"] == 0.0 else 0.5

class Holder:
    def method(self):
        pass

number = 3
'''
SPACE = """
[x]
type = "float"
low = -1.0
high = 1.0

[kind]
choices = ["a", "b"]

[depth]
type = "int"
low = 1
high = 3
when = { kind = "b" }
"""
STATED = ["--range", "0", "1", "--samples", "100", "--rows", "fresh"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(MODULE)
    (tmp_path / "broken.py").write_text("import json\n\njson.loads('{')\n")
    (tmp_path / "lacking.py").write_text("import a_package_that_is_not_there\n")
    (tmp_path / "leaving.py").write_text("import os\n\nos._exit(4)\n")
    (tmp_path / "space.toml").write_text(SPACE)
    return tmp_path


def tune(*arguments, code=0):
    result = CliRunner().invoke(app, ["tune", *map(str, arguments)])
    assert result.exit_code == code, result.output
    assert isinstance(result.exception, SystemExit | None)
    return result


def trials_of(source, states=None):
    return study_in(str(source), None).get_trials(states=states)


def count(source, state):
    return len(trials_of(source, states=(TrialState[state],)))


def test_a_function_of_parameters_is_tuned_certified_and_resumed(folder):
    command = ["train:accuracy", "--space", "space.toml", "--seed", 0, *STATED]
    said = tune(*command, "--trials", 8).output
    journal = folder / "train.accuracy.journal"
    assert "The study 'train:accuracy' is in train.accuracy.journal." in said
    lines = [line for line in said.splitlines() if line.startswith("trial ")]
    assert len(lines) == 8
    assert lines[-1].endswith("[8 of 8 trials]")
    assert (
        "mixbandit certify train.accuracy.journal --study train:accuracy --range 0 1 --rows fresh --samples 100" in said
    )
    assert (
        str(certify(study_in(str(journal), None), reward_range=(0, 1), samples=100, rows="fresh")).splitlines()[0]
        in said
    )
    assert len(trials_of(journal)) == 8
    tune(*command, "--trials", 8)
    assert len(trials_of(journal)) == 8
    tune(*command, "--trials", 10)
    assert {trial.state.name for trial in trials_of(journal)} == {"COMPLETE"}
    assert len(trials_of(journal)) == 10


@pytest.mark.heavy
def test_a_function_of_optunas_trial_is_tuned_without_a_certificate(folder):
    address = f"sqlite:///{folder}/study.db"
    said = tune("train:loss", "--trials", 5, "--direction", "minimize", "--storage", address, "--study", "a").output
    assert f"nothing is certified; {STATEMENTS}" in " ".join(said.split())
    assert "The best value seen is" in said
    assert "optuna-dashboard sqlite:///" in said
    assert "mixbandit certify" not in said
    study = study_in(address, "a")
    assert study.direction.name == "MINIMIZE"
    assert len(study.trials) == 5
    # The direction of a study that is there goes without saying.
    found = json.loads(tune("train:loss", "--trials", 6, "--storage", address, "--study", "a", "--json").stdout)
    assert found["value"] == min(trial.value for trial in study_in(address, "a").trials)
    assert (found["searched"], found["failed"], found["certified"]) == (6, 0, False)


@pytest.mark.heavy
def test_processes_share_trials_and_confirm_what_is_best(folder):
    options = ["--trials", 9, "--confirm", 4, "--jobs", 2, *STATED, "--json", "--storage", "a.journal"]
    result = tune("train:accuracy", "--space", "space.toml", *options)
    found = json.loads(result.stdout)
    assert (found["searched"], found["confirmed"], found["failed"]) == (9, 4, 0)
    trials = trials_of("a.journal")
    assert [nomination_of(trial) is not None for trial in trials] == [False] * 9 + [True] * 4
    assert "(confirmation)" in result.stderr
    assert found["certified"]
    assert found["parameters"]["x"] in {trial.params["x"] for trial in trials}
    assert found["storage"] == "a.journal"
    # All is done: nothing is run again.
    tune("train:accuracy", "--space", "space.toml", *options)
    assert len(trials_of("a.journal")) == 13


def test_what_an_objective_prints_is_passed_on():
    result = tune("train:prints", "--space", "space.toml", "--trials", 2, "--json")
    assert result.stderr.count("printed") == 2
    json.loads(result.stdout)


@pytest.mark.heavy
def test_failures_cost_a_trial_each_and_are_told(folder):
    said = tune("train:sometimes", "--trials", 6).output
    trials = trials_of("train.sometimes.journal")
    assert [trial.state.name for trial in trials] == ["COMPLETE", *["FAIL"] * 5, "PRUNED", *["COMPLETE"] * 4]
    for why in (
        "in sometimes",
        "ValueError: no data",
        "trial 2 failed: the process that ran it has ended",
        "SystemExit: no more",
        "the objective returned NaN",
        "the objective must return a number, got 'text'",
    ):
        assert why in said
    assert "6 of 6 trials, 5 failed." in said


def test_an_objective_that_always_fails_ends_the_study():
    said = tune("train:fails", "--space", "space.toml", "--trials", 20, code=1).output
    assert "all 3 trials failed, so the study was stopped" in said
    assert "ValueError: no data" in said
    assert count("train.fails.journal", "FAIL") == 3


def test_a_value_that_contradicts_what_was_stated_is_told_and_the_study_goes_on():
    # The first trial is the centre of the space.
    said = tune("train:beyond", "--space", "space.toml", "--trials", 5, *STATED, code=3).output
    assert "is left out, with a value outside reward_range: 7" in said
    assert "refute" in said
    assert "Look closer" in said
    assert count("train.beyond.journal", "COMPLETE") == 5


@pytest.mark.heavy
def test_trials_are_pruned_only_if_that_is_asked_for(folder):
    """Optuna's default would be its median pruner, which certificates do not allow for."""
    tune("train:measured", "--trials", 12, "--seed", 0)
    assert count("train.measured.journal", "PRUNED") == 0
    tune("train:measured", "--trials", 12, "--seed", 0, "--prune", "--study", "pruned")
    pruned = [t for t in study_in("train.measured.journal", "pruned").trials if t.state == TrialState.PRUNED]
    assert pruned
    assert all("worse than" in trial.user_attrs["mixbandit_pruned"] for trial in pruned)
    assert "only confirmations" in tune("train:measured", "--prune", *STATED, code=2).output
    assert "cannot report steps" in tune("train:accuracy", "--space", "space.toml", "--prune", code=2).output


@pytest.mark.heavy
def test_what_is_found_among_pruned_trials_is_confirmed_and_certified(folder):
    certified = tune("train:measured", "--trials", 12, "--prune", "--confirm", 3, "--study", "c", "--sigma", 0.1,
                     "--range", 0, 2)  # fmt: skip
    assert re.search(r"[12]?\d of 12 trials, 3 of 3 confirmations", certified.output)
    assert "its expected value is at least" in certified.output


def test_no_trial_begins_after_the_timeout():
    said = tune("train:loss", "--trials", 10_000, "--timeout", 0, code=1).output
    assert "No trial was completed." in said


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["train"], "must be module:objective, such as train:objective, got 'train'"),
        (["train:"], "must be module:objective"),
        (["train.py:loss"], "name the objective by its module, not its file: train:loss"),
        (["./train.py"], "name the objective by its module, not its file: train:objective"),
        (["nowhere:loss"], "there is no module nowhere in"),
        (["train:nothing"], "the module train has no nothing; it has accuracy, loss"),
        (["train:number"], "train:number must be a function, got 3"),
        (["broken:loss"], "json.loads('{')"),
        (["lacking:loss"], "No module named 'a_package_that_is_not_there'"),
        (["leaving:loss"], "importing leaving:loss ended the process (exit code 4)"),
        (["train:loss", "--space", "none.toml"], "there is no file none.toml"),
        (["train:loss", "--confirm", "3"], "--confirm needs a statement about values"),
        (["train:loss", "--samples", "3"], "--range LOW HIGH"),
        (["train:loss", "--storage", "."], "is a folder"),
        (["train:loss", "--storage", "none/a.journal"], "there is no folder none"),
        (["train:loss", "--storage", "train.py"], "train.py is not an Optuna journal. Nothing was changed"),
        (["train:loss", "--storage", "sqlite:///none/a.db"], "there is no folder none"),
        (["train:loss", "--storage", "sqlite://"], "a database in memory"),
        (["train:loss", "--storage", "mysql+nothing://me:secret@host/a"], "me:***@host"),
        (["train:loss", "--storage", "nothing://me:secret@host/a"], "me:***@host"),
        (["train:loss", "--direction", "up"], "--direction"),
        (["train:loss", "--trials", "0"], "--trials"),
        (["train:loss", "--jobs", "0"], "--jobs"),
    ],
)
def test_wrong_input_is_told_before_a_study_is_made(folder, arguments, says):
    before = sorted(path.name for path in folder.iterdir())
    result = tune(*arguments, code=2)
    text = " ".join(result.output.replace("│", " ").split())
    assert says in text
    assert "secret" not in text
    assert sorted(path.name for path in folder.iterdir() if path.name != "__pycache__") == before


@pytest.mark.heavy
def test_another_space_or_direction_than_the_studys_is_refused(folder):
    tune("train:prints", "--space", "space.toml", "--trials", 1)
    (folder / "other.toml").write_text(SPACE.replace("high = 1.0", "high = 2.0"))
    assert "was begun with another space" in tune("train:prints", "--space", "other.toml", code=2).output
    assert "was begun with a space: give it as --space" in tune("train:prints", code=2).output
    said = tune("train:prints", "--space", "space.toml", "--direction", "minimize", code=2).output
    assert "is maximize, but --direction is minimize" in said
    assert len(trials_of("train.prints.journal")) == 1
    # The study of another tool says by its trials what its space is.
    storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend("theirs.journal"))
    study = optuna.create_study(study_name="a", storage=storage, direction="maximize")
    study.optimize(lambda trial: trial.suggest_float("x", 0.0, 5.0), n_trials=2)
    command = ["train:prints", "--space", "space.toml", "--storage", "theirs.journal", "--study", "a"]
    assert "has x from FloatDistribution" in tune(*command, code=2).output
    assert len(study.trials) == 2


def test_a_study_of_several_objectives_is_refused():
    storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend("theirs.journal"))
    optuna.create_study(study_name="a", storage=storage, directions=["maximize", "minimize"])
    said = tune("train:loss", "--storage", "theirs.journal", "--study", "a", code=2).output
    assert "has 2 objectives; only one can be tuned" in said


# ---- processes that are stopped and killed


def started(*arguments):
    command = [sys.executable, "-m", "mixbandit", "tune", *map(str, arguments)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )


def wait_for(condition, what, seconds=60.0):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, what
        time.sleep(0.02)


def lines_of(path):
    return len(path.read_text().splitlines()) if path.exists() else 0


@pytest.mark.parametrize(
    ("number", "jobs", "trials"),
    [
        (signal.SIGINT, 1, 6),
        pytest.param(signal.SIGINT, 2, 12, marks=pytest.mark.heavy),
        pytest.param(signal.SIGTERM, 2, 12, marks=pytest.mark.heavy),
    ],
)
def test_a_study_that_is_stopped_is_resumed_without_a_trial_lost_or_doubled(folder, number, jobs, trials):
    command = ["train:noted", "--space", "space.toml", "--trials", trials, "--jobs", jobs, *STATED]
    process, begun = started(*command), folder / "begun.txt"
    wait_for(lambda: lines_of(begun) >= trials // 2 - 1, "trials begin")
    # As Ctrl-C does, to the whole group of the terminal.
    os.killpg(process.pid, number)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 128 + number, said
    assert "Run the same command again to resume." in said
    assert "Traceback" not in said
    stopped = trials_of("train.noted.journal")
    assert {trial.state.name for trial in stopped} <= {"COMPLETE", "FAIL"}
    assert 1 <= sum(trial.state.name == "FAIL" for trial in stopped) <= jobs
    assert lines_of(begun) == len(stopped)
    tune(*command)
    assert count("train.noted.journal", "COMPLETE") == trials
    assert len(trials_of("train.noted.journal")) == lines_of(begun)


def test_a_second_ctrl_c_kills_what_does_not_end(folder):
    process, begun = started("train:stubborn", "--space", "space.toml", "--trials", 3), folder / "begun.txt"
    wait_for(lambda: begun.exists() and begun.read_text(), "the trial begins")
    process.send_signal(signal.SIGINT)
    assert any("Stopping: ending running trials." in line for line in iter(process.stdout.readline, ""))
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert is_gone(int(begun.read_text()))
    assert [trial.state.name for trial in trials_of("train.stubborn.journal")] == ["FAIL"]


def is_gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.heavy
def test_what_a_killed_command_was_running_is_failed_when_it_is_resumed(folder):
    command = ["--space", "space.toml", "--trials", 2, "--storage", "a.journal", "--study", "a"]
    process, begun = started("train:sleeps", *command), folder / "begun.txt"
    wait_for(lambda: begun.exists() and begun.read_text(), "the trial begins")
    process.kill()
    process.communicate(timeout=60)
    wait_for(lambda: is_gone(int(begun.read_text())), "the worker ends with its parent")
    assert [trial.state.name for trial in trials_of("a.journal")] == ["RUNNING"]
    said = tune("train:prints", *command).output
    assert "trial 0 failed: the process that ran it has ended" in said
    assert [trial.state.name for trial in trials_of("a.journal")] == ["FAIL", "COMPLETE", "COMPLETE"]


@pytest.mark.heavy
def test_what_an_objective_started_ends_with_it(folder):
    process, begun = started("train:starts", "--space", "space.toml", "--trials", 3), folder / "begun.txt"
    wait_for(lambda: begun.exists() and begun.read_text(), "the trial begins")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    wait_for(lambda: is_gone(int(begun.read_text())), "the process of the objective ends")


@pytest.mark.heavy
def test_trials_that_another_command_runs_are_not_run_twice():
    storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend("a.journal"))
    study = optuna.create_study(study_name="a", storage=storage, direction="maximize")
    sign(study, study.ask(), this_process())
    tune("train:loss", "--trials", 3, "--storage", "a.journal", "--study", "a", "--timeout", 5)
    assert [trial.state.name for trial in study.trials] == ["RUNNING", "COMPLETE", "COMPLETE"]
    # A process of another machine may be dead or alive: it is not waited for.
    sign(study, study.ask(), {**this_process(), "host": "another"})
    tune("train:loss", "--trials", 3, "--storage", "a.journal", "--study", "a", "--timeout", 1)
    assert [trial.state.name for trial in study.trials][3] == "RUNNING"


@pytest.mark.heavy
def test_two_commands_share_one_study(folder):
    command = ["train:noted", "--space", "space.toml", "--trials", 10, "--storage", "a.journal"]
    processes = [started(*command) for _ in range(2)]
    assert [process.communicate(timeout=120) and process.returncode for process in processes] == [0, 0]
    assert count("a.journal", "COMPLETE") in (10, 11)  # both may order the last one at the same moment


def test_a_process_is_known_by_more_than_its_number():
    me = this_process()
    assert may_be_alive(me)
    assert not may_be_alive({**me, "started": "1"})
    assert may_be_alive({**me, "host": "another", "pid": 1})
    assert may_be_alive({})


# ---- the page


@pytest.mark.heavy
def test_the_example_on_the_page_runs_as_written(folder):
    page = (Path(__file__).parent.parent / "docs" / "how-to" / "tuning.md").read_text()
    section = re.search(r"^## From the command line$(.*?)^## ", page, re.DOTALL | re.MULTILINE)[1]
    blocks = dict(re.findall(r"^```(\w+)\n(.*?)^```$", section, re.DOTALL | re.MULTILINE))
    (folder / "train.py").write_text(blocks["python"])
    (folder / "space.toml").write_text(blocks["toml"])
    program, command, *arguments = shlex.split(blocks["sh"])
    assert (program, command) == ("mixbandit", "tune")
    said = tune(*arguments).output
    assert "30 of 30 trials, " in said
    certify_again = blocks["text"].splitlines()[-2]
    assert certify_again in said
    assert CliRunner().invoke(app, shlex.split(certify_again)[1:]).exit_code == 0
    assert 30 < len(trials_of("train.accuracy.journal")) <= 40


# ---- the table


def test_the_live_table_has_trials_floors_and_gaps():
    out = io.StringIO()
    watch = LiveWatch(Console(file=out, force_terminal=True, width=100, height=20, color_system=None))
    watch.towards("minimize")
    with watch.shown():
        watch.ended(Report(0, "COMPLETE", 0.25, {"x": 0.123456, "kind": "[b]"}), Standing(1, 5))
        watch.certified(
            certify(
                [({"x": 0.1}, 0.5), ({"x": 0.9}, 0.6)],
                reward_range=(0, 1),
                samples=9,
                rows="fresh",
                direction="minimize",
            )
        )
        watch.ended(Report(1, "FAIL", None, {"x": 0.5}, error="ValueError: no data"), Standing(1, 5, failed=1))
        watch.ended(Report(2, "COMPLETE", 0.5, {"x": 0.5}, confirms=True), Standing(1, 5, 1, 3, failed=1))
        watch.say("[printed]")
    said = out.getvalue()
    for part in ("ceiling of the best", "x=0.1235 kind=[b]", "ValueError: no data", "2 ✓", "[printed]",
                 "1 of 5 trials, 1 of 3 confirmations, 1 failed", "as of 2 completed trials"):  # fmt: skip
        assert part in said
