"""`mixbandit report`: what is typed, what is written, and how it ends."""

import json
import os

import optuna
import pytest
from typer.testing import CliRunner

import mixbandit as mb
from mixbandit.cli import app
from tests.helpers.pages import EVIL, KNOWN, Page, noisy, svm_history

STATED = ["--range", "0", "1", "--samples", "100", "--rows", "fresh"]


def report(*arguments, stated=STATED):
    return CliRunner().invoke(app, ["report", *stated, *map(str, arguments)])


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "runs.csv"
    lines = [f"{p['C']},{p['kernel']},{i % 2},{value}" for i, (p, value) in enumerate(svm_history()[:12])]
    path.write_text("\n".join(["C,kernel,flag,value", *lines]) + "\n")
    return path


@pytest.fixture
def out(tmp_path):
    return tmp_path / "new" / "report.html"


def test_a_file_becomes_a_page(table, out):
    result = report(table, "--ordered", "-o", out)
    assert result.exit_code == 0, result.output
    certificate = mb.certify(table, KNOWN, ordered=True)
    assert result.stdout.splitlines() == [*str(certificate).splitlines(), f"Report: {out}"]
    assert out.read_text() == mb.report(certificate, title="runs.csv")


def test_a_study_becomes_a_page(tmp_path, out):
    address = f"sqlite:///{tmp_path}/studies.db"
    for name in ("a", EVIL):
        study = optuna.create_study(storage=address, study_name=name, direction="maximize")
        study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), n_trials=4)
    assert report(address, "--study", EVIL, "-o", out, "--default", "first").exit_code == 0
    page = Page(out.read_text())
    assert page.of("h1") == [EVIL]
    assert "The recommended configuration against the first trial" in page.of("h2")
    ambiguous = report(address, "-o", tmp_path / "b.html")
    assert ambiguous.exit_code == 2
    assert not (tmp_path / "b.html").exists()


def test_the_page_goes_to_the_current_folder_unless_said_otherwise(table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert report(table, "--ordered", "--title", "T").exit_code == 0
    assert Page((tmp_path / "report.html").read_text()).of("h1") == ["T"]


@pytest.mark.parametrize(
    "default",
    [
        ["--default", "C=1", "--default", "kernel=rbf", "--default", "flag=0"],
        ["--default", json.dumps({"C": 1.0, "kernel": "rbf", "flag": 0})],
    ],
)
def test_the_default_is_typed_by_name_or_as_json(table, out, default):
    result = report(table, "--ordered", "-o", out, *default)
    assert result.exit_code == 0, result.output
    expected = mb.report(
        mb.certify(table, KNOWN, ordered=True), title="runs.csv", default={"C": 1.0, "kernel": "rbf", "flag": 0}
    )
    assert Page(out.read_text()).of("p") == Page(expected).of("p")
    assert "The recommended configuration against the default" in Page(out.read_text()).of("h2")


def test_a_typed_value_is_a_number_or_a_choice_as_needed(tmp_path, out):
    study = optuna.create_study(storage=f"sqlite:///{tmp_path}/a.db", study_name="a", direction="maximize")

    def objective(trial):
        trial.suggest_categorical("text", ["1", "True", "a=b"])
        trial.suggest_categorical("flag", [True, False, None])
        return trial.suggest_float("x", 0.0, 1.0)

    study.optimize(objective, n_trials=3)
    for text, flag in (("1", "True"), ("True", "None"), ("a=b", "false")):
        typed = ["--default", f"text={text}", "--default", f"flag={flag}", "--default", "x=0.5"]
        result = report(f"sqlite:///{tmp_path}/a.db", "-o", out, *typed)
        assert result.exit_code == 0, result.output
        assert text in Page(out.read_text()).of("td")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--default", "C"], "NAME=VALUE"),
        (["--default", "=1"], "NAME=VALUE"),
        (["--default", "{C: 1}"], "not valid JSON"),
        (["--default", "C=1", "--default", "C=2"], "twice"),
        (["--default", "C=1"], "'kernel', 'flag' missing"),
        (["--default", "C=1", "--default", "kernel=linear", "--default", "flag=0"], "kernel must be one of"),
        (["--out", "report.pdf"], ".html"),
        (["--out", "."], ".html"),
        (["--rows", "old"], "rows"),
        (["--study", "a"], "--study"),
    ],
)
def test_wrong_input_writes_nothing(table, out, arguments, says):
    result = report(table, "--ordered", "-o", out, *arguments)
    assert result.exit_code == 2, result.output
    assert says in result.output
    assert "Traceback" not in result.output
    assert not out.exists()


def test_missing_assumptions_and_files(table, out, tmp_path):
    assert report(table, "-o", out, stated=[]).exit_code == 2
    assert report(tmp_path / "none.csv", "-o", out).exit_code == 2
    assert not out.exists()


def test_a_page_that_cannot_be_written_is_a_failure(table, tmp_path):
    (tmp_path / "file").write_text("")
    result = report(table, "--ordered", "-o", tmp_path / "file" / "report.html")
    assert result.exit_code == 1
    assert "Traceback" not in result.output
    assert sorted(os.listdir(tmp_path)) == ["file", "runs.csv"]


def test_refuted_assumptions_are_a_page_with_a_warning_and_an_exit_code(tmp_path, out):
    table = tmp_path / "noisy.csv"
    table.write_text("lr,value\n" + "".join(f"{c['lr']},{value}\n" for c, value in noisy()))
    result = report(
        table, "--ordered", "-o", out, stated=["--range", "0", "1", "--samples", "100000", "--rows", "fresh"]
    )
    assert result.exit_code == 3
    assert result.stdout.startswith("WARNING: ")
    assert "Nothing on this page is guaranteed." in out.read_text()


def test_values_on_fixed_rows(table, out):
    result = report(table, "-o", out, "--rows", "fixed", "--fixed-list", "--default", "C=1", "--default", "flag=0")
    assert result.exit_code == 2
    assert "is not among the 12 configurations measured" in result.output
    assert report(table, "-o", out, "--rows", "fixed", "--fixed-list").exit_code == 0
    assert "The configurations measured" in Page(out.read_text()).of("h2")
