"""`mixbandit demo`: all that it says is computed, and is true."""

import importlib
import re

import numpy as np
import pytest
from sklearn.svm import SVC
from typer.testing import CliRunner

from mixbandit.cli import app
from mixbandit.paper.datasets import load_dataset

run = CliRunner().invoke
demo = importlib.import_module("mixbandit.cli.demo")  # the name in mixbandit.cli is the command


@pytest.fixture
def small(monkeypatch):
    for name, value in (("TRIALS", 12), ("CONFIRMATIONS", 6), ("ROUNDS", 8)):
        monkeypatch.setattr(demo, name, value)


def true_accuracy(parameters, seed):
    """Fitted and scored by scikit-learn alone."""
    data = load_dataset("raisin")
    order = np.random.default_rng(seed).permutation(len(data.y))
    X, y, half = data.X[order], data.y[order], len(data.y) // 2
    X = (X - X[:half].mean(axis=0)) / X[:half].std(axis=0)
    return SVC(**parameters, max_iter=20_000, tol=1e-2).fit(X[:half], y[:half]).score(X[half:], y[half:])


@pytest.mark.usefixtures("small")
def test_what_it_says_is_what_came_out_and_its_files_are_written(tmp_path):
    result = run(app, ["demo", "--out", str(tmp_path), "--seeds", "2", "--seed", "3"])
    assert result.exit_code == 0, result.output
    first = demo.tuned(3)
    assert f"The best trial has an accuracy of {first.claimed:.3f}" in result.output
    assert f"rows set aside, is {first.true_of_claimed:.3f}" in result.output
    assert str(first.before) in result.output
    assert str(first.after) in result.output
    assert re.search(r"On average the best trial claims -?[\d.]+ ± [\d.]+ more than the truth", result.output)
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")
    assert "seed 3" in (tmp_path / "report.html").read_text()


@pytest.mark.usefixtures("small")
def test_the_truth_is_the_accuracy_on_all_rows_set_aside():
    seen = demo.tuned(1)
    assert seen.true_of_recommended == pytest.approx(true_accuracy(seen.after.parameters, 1), abs=1e-12)
    assert seen.claimed == max(seen.values[:12])
    assert seen.floors[max(seen.floors)] == seen.after.lower
    assert len(seen.values) <= 18


@pytest.mark.usefixtures("small")
def test_seeds_differ():
    assert demo.tuned(0).values != demo.tuned(1).values
