"""Every command on the pages runs, or, where that takes long, accepts its arguments."""

import functools
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.commands import TOLD, commands, make_problem, pip_problem, pytest_problem
from tests.docs.pages import DOCS, ROOT, blocks, name, outputs
from tests.docs.playing import play
from tests.helpers.outputs import differences

# Commands for other machines, or that change this one, and what stands for them.
ELSEWHERE = {
    "createdb -h db.example.org -U tuning tuning": "a server; tests/integrations/test_optuna_processes.py has one",
    "optuna create-study --storage $STORAGE --study-name svm --direction maximize --skip-if-exists": "the same server",
    "for i in $(seq 8); do python examples/worker.py $STORAGE svm 400 & done; wait": "the same; RUN has a journal",
    "sbatch --export=ALL worker.sh": "SLURM",
    'git tag -a v0.2.0 -m "mixbandit 0.2.0"': "a release",
    ".venv/bin/twine upload --repository testpypi out/dist/*": "the same; `make dist` has twine check the files",
    ".venv/bin/twine upload out/dist/*": "the same",
    "git push origin main v0.2.0": "the same",
    "optuna-dashboard journal.log": "serves until it is stopped; tests/integrations/test_optuna_dashboard.py reads it",
}  # fmt: skip
# Packages of others that pages tell to install.
PACKAGES = {"torch", "cvxpylayers", "smac", "optuna", "optunahub"}


def with_page(page):
    """The files and Python of a page."""
    return lambda folder: play(DOCS / page, folder)


def of_the_project(folder):
    """The folders of a clone."""
    for part in ("examples", "benchmarks", "docs"):
        (folder / part).symlink_to(ROOT / part)


def studies(folder):
    """A study in a database, one in a journal, and a table of trials."""
    import numpy as np
    import optuna
    from optuna.storages.journal import JournalFileBackend

    rng = np.random.default_rng(0)

    def objective(trial):
        C, kernel = trial.suggest_float("C", 1e-2, 1e2, log=True), trial.suggest_categorical("kernel", ["rbf", "poly"])
        return rng.binomial(100, 0.9 - 0.1 * (kernel == "poly") - 0.02 * np.log10(C) ** 2) / 100

    journal = optuna.storages.JournalStorage(JournalFileBackend(str(folder / "journal.log")))
    for storage in (f"sqlite:///{folder}/study.db", journal):
        sampler = optuna.samplers.RandomSampler(seed=0)
        study = optuna.create_study(storage=storage, study_name="tuning", direction="maximize", sampler=sampler)
        study.enqueue_trial({"C": 1.0, "kernel": "poly"})
        study.optimize(objective, n_trials=15)
    rows = [f"{10 ** rng.uniform(-4, -1)},{rng.integers(2, 9)},{rng.binomial(100, 0.8) / 100}" for _ in range(15)]
    (folder / "trials.csv").write_text("\n".join(("lr,depth,accuracy", *rows)))


# Commands that are run as written (heavy), in a folder in which this was done before.
CERTIFIED = "--range 0 1 --samples 100 --rows fresh"
TABLE = f"trials.csv --value accuracy --parameter lr --parameter depth --ordered {CERTIFIED}"
STORED = f"sqlite:///study.db --study tuning {CERTIFIED}"
POOL = "--range 0 1 --samples 100 --pool 285"
TUNE = f"mixbandit tune train:accuracy --space space.toml --trials 30 --confirm 10 --jobs 2 {POOL}"
RUN = {
    f"mixbandit certify {STORED}": studies,
    f"mixbandit certify journal.log {CERTIFIED} --details": studies,
    f"mixbandit certify {TABLE} --json": studies,
    f"mixbandit report {STORED} -o report.html --default C=1 --default kernel=poly": studies,
    f"mixbandit confirm {TABLE} --n 20": studies,
    TUNE: with_page("how-to/tuning.md"),
    "mixbandit paper fig1": of_the_project,
    "mixbandit paper table1 --reps 2 --rounds 50": of_the_project,
    "for i in 1 2 3 4; do python examples/worker.py study.journal svm 60 & done; wait": of_the_project,
}
# Blocks of text that are the output of such a command, or of an example, which tests/docs/test_gallery.py runs: the
# page, their first line, the command, how near numbers are (None: the page says that they are random), and whether they
# are the whole output or its end.
PRINTED = {
    ("docs/how-to/mixtures.md", "standard mixture       mean width   4.28, contains the truth at 100% of the points"):
        ("python examples/forecasters.py", 1e-6, "all"),
    ("docs/how-to/tuning.md", "30 of 30 trials, 10 of 10 confirmations."): (TUNE, None, "end"),
    ("docs/tutorials/figure.md", "fig1 ━━━━━━━━━━━ 1/1 0:00:02"): ("mixbandit paper fig1", None, "all"),
}  # fmt: skip
CHANCE = re.compile(r"\{[^}]*\}|\([^)]*\)")  # the configuration that won, and the trials it had
# The columns of the terminal, where tables are as a page shows them.
COLUMNS = {"mixbandit paper fig1": "80"}

ALL = {}
for _page in TOLD:
    for _command in commands(_page):
        ALL.setdefault((_command.text, _command.mention), _command)


# Commands that would not work, to see that this is noticed.
BROKEN = ["make everything", "pip install '.[nothing]'", "pip install malice", "pytest tests/test_nothing.py",
          "mixbandit nothing", "mixbandit certify runs.csv --rang 0 1", "mixbandit certify … --rang",
          "python benchmarks/nothing.py", "python benchmarks/means.py --fast", "python benchmarks/svm.py --fast",
          "python -m benchmarks.tuning plai", "rm -rf out", "mixbandit regret | head -1"]  # fmt: skip


@functools.cache
def refusals():
    """Why commands do not accept their arguments, by their text; one process asks all."""
    asked = {one.text: one.words for one in ALL.values()} | {text: shlex.split(text) for text in BROKEN}
    asked = {text: words for text, words in asked.items() if words[0] in {"mixbandit", "python", "python3"}}
    answer = subprocess.run(
        [sys.executable, "-m", "tests.docs.parsing"],
        input=json.dumps([*asked.values()]), capture_output=True, text=True, cwd=ROOT, check=True,
    )  # fmt: skip
    return dict(zip(asked, json.loads(answer.stdout), strict=True))


def mention_problem(command):
    """Why a sentence that names a command is wrong, or nothing: the command and its options have to exist."""
    import typer.main

    from mixbandit.cli import app

    words = shlex.split(command.text.partition(" | ")[0])[1:]
    found = typer.main.get_command(app)
    for word in words:
        if not hasattr(found, "commands") or not re.fullmatch(r"[a-z][a-z0-9-]*", word):
            break
        if word not in found.commands:
            return f"no command {word}"
        found = found.commands[word]
    every = [found] if not hasattr(found, "commands") else [found, *found.commands.values()]
    known = {option for one in every for parameter in one.params for option in parameter.opts} | {"--help"}
    unknown = [word for word in words if word.startswith("-") and word not in known]
    return f"no option {', '.join(unknown)}" if unknown else ""


CHECKS = {
    "export": lambda command: "" if all("=" in word for word in command.words[1:]) else "exports nothing",
    "make": lambda command: make_problem(command.words[1:]),
    "pip": lambda command: pip_problem(command.words[1:], PACKAGES),
    "pytest": lambda command: pytest_problem(command.words[1:]),
    "bash": lambda command: "" if (ROOT / command.words[1]).is_file() else f"no {command.words[1]}",
    "mixbandit": lambda command: mention_problem(command) if command.mention else refusals()[command.text],
    "python": lambda command: refusals()[command.text],
    "python3": lambda command: refusals()[command.text],
}


def problem(command):
    """Why a command on a page would not work, or nothing."""
    first, shell = command.words[0], re.search(r"[;&|<>]", re.sub(r"'[^']*'", "", command.text))
    if command.text in ELSEWHERE or (command.text in RUN and shell):
        return ""
    if first not in CHECKS or (shell and not command.mention):
        return "is of no kind that is checked: see tests/docs/test_commands.py"
    return CHECKS[first](command)


def test_commands_on_the_pages_work():
    wrong = [f"{one.page}:{one.line}: `{one.text}`: {found}" for one in ALL.values() if (found := problem(one))]
    assert wrong == []
    assert len(ALL) >= 60


@pytest.mark.parametrize("listed", [ELSEWHERE, RUN], ids=["elsewhere", "run"])
def test_what_is_listed_is_on_a_page(listed):
    assert listed.keys() - {text for text, _ in ALL} == set()


def test_paths_in_code_exist():
    for page in TOLD:
        text = re.sub(r"```python.*?```", "", page.read_text(), flags=re.DOTALL)
        told = "\n".join(re.findall(r"```.*?```|`[^`]+`", text, re.DOTALL))
        for path in re.findall(r"\b((?:examples|benchmarks|docs|tests|optunahub)/[\w/.-]*[\w/])", told):
            assert (ROOT / path).exists(), f"{name(page)}: {path}"


def test_shell_files_on_pages_can_be_read():
    for page in TOLD:
        for block in blocks(page):
            if block.language == "sh":
                subprocess.run(["bash", "-n", "-c", block.text], check=True)


def run(command, folder):
    """The output of a command in a shell of the reader's, with our Python first."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    own = {"PATH": path, "COLUMNS": COLUMNS.get(command, "200")}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=folder, env={**os.environ, **own}, capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.heavy
@pytest.mark.parametrize("command", RUN)
def test_short_commands_run_as_written(command, tmp_path):
    RUN[command](tmp_path)
    printed = run(command, tmp_path)
    compare(command, printed)


@pytest.mark.parametrize(
    "command", sorted({one for one, _, _ in PRINTED.values() if one.startswith("python examples/")})
)
def test_outputs_of_examples_are_those_of_the_gallery(command):
    compare(command, (DOCS / "gallery" / f"{Path(command).stem}.txt").read_text(encoding="utf-8"))


def compare(command, printed):
    """What a command printed with what pages show of it."""
    for (shown_on, first), (source, relative, part) in PRINTED.items():
        if source == command:
            told = next(b for b in blocks(ROOT / shown_on) if b.language == "text" and b.text.startswith(f"{first}\n"))
            seen = "\n".join(printed.splitlines()[-told.text.count("\n") if part == "end" else 0 :])
            both = (told.text, seen) if relative else (CHANCE.sub("…", told.text), CHANCE.sub("…", seen))
            assert differences(*both, relative) == "", f"{shown_on}:{told.line}"


def test_outputs_of_commands_are_listed():
    """Text right after a command is its output, and compared with it."""
    sources = {source for source, _, _ in PRINTED.values()}
    for page in TOLD:
        for block, text in outputs(page):
            if block.language == "sh":
                assert (name(page), text.text.splitlines()[0]) in PRINTED
    assert {source for source in sources if not source.startswith("python examples/")} <= RUN.keys()


@pytest.mark.heavy
@pytest.mark.parametrize("command", sorted({text for text, _ in ALL if text.startswith("pytest ")}))
def test_tests_named_on_pages_can_be_collected(command):
    words = next(one.words for (text, _), one in ALL.items() if text == command)
    subprocess.run([sys.executable, "-m", *words, "--collect-only", "-q"], cwd=ROOT, check=True, capture_output=True)


@pytest.mark.parametrize("text", BROKEN)
def test_this_check_notices(text, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"Try `{text}`.\n" if "…" in text else f"```sh\n{text}  # so\n```\n")
    found = commands(page)
    assert [one.text for one in found] == [text]
    assert problem(found[0])
