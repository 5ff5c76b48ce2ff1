"""Whoever is asked for a statement about noise is shown the page that helps to choose one."""

import ast
import re
from pathlib import Path

import numpy as np
import optuna
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeClassifier
from typer.testing import CliRunner

import mixbandit as mb
from mixbandit.cli import app
from mixbandit.errors import STATEMENTS
from mixbandit.integrations.optuna import CertifiedPruner, MixBanditSampler

ROOT = Path(__file__).parents[1]
SPACE = {"x": mb.Float(0.0, 1.0)}
TABLE = pd.DataFrame({"x": [0.1, 0.2, 0.3], "value": [0.5, 1.0, 1.0]})
X, Y = np.arange(20.0)[:, None], np.arange(20) % 2
FIXED = {"rows": "fixed", "fixed_list": True}


def certify(**stated):
    return mb.certify(TABLE, ordered=True, **stated)


def searched(**options):
    return GridSearchCV(DecisionTreeClassifier(), {"max_depth": [1, 2]}, cv=2, **options).fit(X, Y)


def study():
    found = optuna.create_study()
    found.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), n_trials=2)
    return found


ASKED = {
    "tuner": lambda: mb.Tuner(mb.Space(SPACE)),
    "tuner, no range": lambda: mb.Tuner(mb.Space(SPACE), sigma=0.1),
    "certify": certify,
    "certify, no range": lambda: certify(sigma=0.1),
    "certify, outside": lambda: certify(reward_range=(0.0, 0.7), samples=10, rows="fresh"),
    "certify, piled up": lambda: certify(reward_range=(0.0, 1.0), noise="gaussian"),
    "fixed rows": lambda: mb.certify(TABLE, reward_range=(0.0, 1.0), **FIXED),
    "fixed rows, no range": lambda: mb.certify(TABLE, samples=10, **FIXED),
    "finalists": lambda: mb.certify_finalists([({"x": 1}, 0.5)], reward_range=(0.0, 1.0)),
    "search": lambda: mb.certify(searched(), reward_range=(0.0, 1.0)),
    "search, no mean": lambda: mb.certify(searched(scoring="roc_auc"), reward_range=(0.0, 1.0), samples=10),
    "regressor": lambda: mb.certify_fitted(LinearRegression().fit(X, Y), X, Y),
    "mean": lambda: mb.MeanSequence(None),
    "mean, outside": lambda: mb.MeanSequence((0.0, 1.0)).update([2.0]),
    "mean, piled up": lambda: mb.MeanSequence((0.0, 1.0), noise="gaussian").update([1.0, 1.0]),
    "mean, samples of Gaussian values": lambda: mb.MeanSequence(None, sigma=1.0).update([1.0], samples=10),
    "pairs": lambda: certify(sigma=0.1, norm_bound=1.0).compare({"x": 0.1}, {"x": 0.2}, pairs=[[0.1, 0.2]]),
    "sampler": lambda: MixBanditSampler().certificate(study()),
    "sampler, confirm": lambda: MixBanditSampler().confirm(study(), 3),
    "sampler, stop_on_gap": lambda: MixBanditSampler().stop_on_gap(0.1),
    "sampler, samples": lambda: MixBanditSampler(samples=10, rows="fresh"),
    "pruner": lambda: CertifiedPruner(samples=10),
    "search one fold at a time": lambda: mb.MixBanditSearchCV(
        DecisionTreeClassifier(), {"max_depth": [1, 2]}, cv=2, samples=10
    ).fit(X, Y),
}


@pytest.mark.parametrize("asked", ASKED)
def test_errors_name_the_page(asked):
    with pytest.raises(mb.InvalidInput, match=re.escape(STATEMENTS)):
        ASKED[asked]()


def test_the_warning_names_the_page():
    with pytest.warns(mb.SamplesMissingWarning, match=re.escape(STATEMENTS)):
        certify(reward_range=(0.0, 1.0))


@pytest.mark.parametrize(
    "command",
    [
        ["certify", "runs.csv"],
        ["confirm", "runs.csv"],
        ["report", "runs.csv", "--out", "report.html"],
        ["tune", "train:loss", "--confirm", "3"],
    ],
)
def test_commands_name_the_page_and_the_options(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    TABLE.to_csv("runs.csv", index_label="number")
    said = CliRunner().invoke(app, command)
    assert said.exit_code == 2
    assert STATEMENTS in said.output
    assert "on the command line: --range LOW HIGH and --samples N" in said.output


def test_every_missing_assumption_names_the_page():
    calls = [
        (path, call)
        for path in (ROOT / "src").rglob("*.py")
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "AssumptionsMissing"
    ]
    assert len(calls) > 4
    for path, call in calls:
        assert any(isinstance(part, ast.Name) and part.id == "STATEMENTS" for part in ast.walk(call)), (
            path,
            call.lineno,
        )


def test_the_page_exists():
    title, place = re.fullmatch(r'see "(.*)" in the documentation \((.*)\)', STATEMENTS).groups()
    assert f"\n# {title}\n" in (ROOT / "docs" / f"{place}.md").read_text()
