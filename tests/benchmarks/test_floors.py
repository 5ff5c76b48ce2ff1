"""The benchmark of floors: truths, the oracle's floor, training noise and tables are what they are said to be."""

import dataclasses
import math

import numpy as np
import pytest
from benchmarks.certificates import audits, digits, floors, oracle, shortfalls
from benchmarks.certificates.accuracies import tasks
from benchmarks.certificates.functions import positions
from benchmarks.certificates.histories import uniform
from benchmarks.certificates.maxima import search

import mixbandit as mb


def test_two_tasks_for_each_best_accuracy():
    assert [task.best for task in tasks().values()] == [0.8, 0.8, 0.9, 0.9, 0.95, 0.95, 0.99, 0.99]
    assert all(list(tasks())[i].startswith(f"{100 * task.best:.0f}-") for i, task in enumerate(tasks().values()))


@pytest.mark.parametrize("name", tasks())
def test_the_best_accuracy_is_exact_and_not_at_the_centre(name):
    task = tasks()[name]
    assert task(task.best_at) == pytest.approx(task.best, abs=1e-12)
    assert task.space.decode(task.space.encode(task.best_at)) == pytest.approx(task.best_at)
    values = [task(configuration) for configuration in uniform(task.space, 2000, np.random.default_rng(0))]
    assert 0.1 <= min(values) < task.best - 0.2
    assert task.best - 0.05 < max(values) < task.best
    assert max(abs(u - 0.5) for u in positions(task.space, task.best_at).values()) > 0.15


@pytest.mark.parametrize("name", tasks())
def test_a_search_finds_no_better_accuracy(name):
    found, where = search(tasks()[name])
    assert found <= tasks()[name].best + 1e-12
    assert found == pytest.approx(tasks()[name].best, abs=1e-6), where


def test_digits_are_split_once_and_for_all():
    *_, training, pool = digits.rows()
    assert (len(training), len(pool)) == (797, 1000)
    assert not set(training) & set(pool)
    assert digits.accuracy(10.0, 0.1) > 0.97


def floor_by_brute_force(successes, n, delta):
    """The least p on a grid that is not rejected, with the mixture integrated by the midpoint rule: q = sin²φ."""
    phi = (np.arange(200_000) + 0.5) * (0.5 * math.pi / 200_000)
    exponents = 2.0 * (successes * np.log(np.sin(phi)) + (n - successes) * np.log(np.cos(phi)))
    mixed = exponents.max() + np.log(np.mean(np.exp(exponents - exponents.max())))
    p = (np.arange(1_000_000) + 0.5) / 1_000_000
    likelihood = successes * np.log(p) + (n - successes) * np.log1p(-p)
    return p[np.flatnonzero(mixed - likelihood < math.log(1.0 / delta))[0]]


@pytest.mark.parametrize(("successes", "n"), [(1979, 2000), (1800, 2000), (2000, 2000), (37, 40), (1, 30)])
@pytest.mark.parametrize("delta", [0.05, 0.001])
def test_the_oracle_floor_is_that_of_a_brute_force_inversion(successes, n, delta):
    assert oracle.floor(successes, n, delta) == pytest.approx(floor_by_brute_force(successes, n, delta), abs=2e-6)


def test_without_successes_the_oracle_knows_nothing():
    assert oracle.floor(0, 100, 0.05) == 0.0


def test_training_noise_has_the_stated_spread():
    rng, p, m = np.random.default_rng(0), 0.9, 100
    for spread in audits.SPREADS:
        values = np.array([audits.value(p, m, spread, rng) for _ in range(20_000)])
        assert values.mean() == pytest.approx(p, abs=5 * spread * 0.03 / math.sqrt(20_000))
        assert values.std() == pytest.approx(spread * math.sqrt(p * (1 - p) / m), rel=0.03)


def test_repeats_are_of_the_best_configuration_and_others_in_turn():
    task = tasks()["90-machine"]
    played = audits.repeated(task, audits.Job("90-machine", 3, 1.8, 0))
    assert len(played) == audits.TRIALS
    assert [c == task.best_at for c in played[:4]] == [True, False, False, True]
    assert len({tuple(c.items()) for c in played}) == 3


def test_an_audit_can_be_played():
    row = audits.play(audits.Job("80-text", 1, 1.0, 0))
    assert tuple(row) == audits.COLUMNS
    assert (row["refuted"], row["floor_wrong"]) == ("0", "0")


@pytest.fixture
def short(monkeypatch):
    """A task that is quick to play."""
    task = dataclasses.replace(tasks()["80-text"], trials=12, confirmations=3)
    monkeypatch.setattr(floors, "tasks", lambda: {task.name: task})
    return task


def test_a_run_is_checked_and_resumed(short, tmp_path):
    floors.play_all("floors", "now", [short.name], 1, way="repeat", out=tmp_path)
    comment, (row,) = floors.FORM.read(tmp_path / "now.csv")
    assert "--way repeat" in comment
    assert tuple(row) == floors.COLUMNS
    assert (row["floor_wrong"], row["unused"]) == ("0", "0")
    assert float(row["floor"]) <= float(row["truth"]) <= float(row["best"])
    floors.play_all("floors", "now", [short.name], 2, way="repeat", out=tmp_path)
    assert floors.FORM.read(tmp_path / "now.csv")[1][0] == row  # not played again
    with pytest.raises(SystemExit, match="other settings"):
        floors.play_all("floors", "now", [short.name], 1, way="confirm", out=tmp_path)


def test_confirm_is_used_and_may_stop_early(short):
    class Confirming(mb.Tuner):
        def confirm(self, n, finalists):
            assert (n, finalists) == (3, 3)
            yield self.adopt(short.best_at)

    tuner = Confirming(short.space, reward_range=(0, 1), samples=100, rng=0)
    trials = list(floors.confirmations(tuner, 3, "confirm"))
    assert [trial.parameters for trial in trials] == [short.best_at]


def made_up(task, seed, **known):
    row = dict.fromkeys(floors.COLUMNS, "0") | {"task": task, "seed": str(seed), "trusted": "1", "evidence": ""}
    numbers = {"best": "0.9", "oracle_floor": "0.88", "truth": "0.89", "floor": "0.85", "width": "0.1"}
    return row | numbers | known


def test_tables_compare_labels(tmp_path):
    before = [made_up("90-machine", seed, floor=f"0.8{seed}") for seed in (3, 5, 7)]
    after = [row | {"floor": "0.87", "truth": "0.895", "evidence": "own trials"} for row in before]
    for label, rows in (("before", before), ("after", after)):
        floors.FORM.write(tmp_path / f"{label}.csv", "made up", rows)
    assert shortfalls.median(shortfalls.shortfall(before)).mean == pytest.approx(0.04)
    assert shortfalls.difference(after, before).mean == pytest.approx(0.005)
    known = shortfalls.ratio(np.array([2.0, 4.0, 6.0]), np.array([1.0, 2.0, 3.0]))
    assert (known.mean, known.error) == pytest.approx((2.0, 0.0))
    text = shortfalls.summarise([tmp_path / "before.csv", tmp_path / "after.csv"])
    cells = text.split("\n\n")[1].splitlines()[-1].split(" | ")
    assert cells[:2] == ["| 90-machine", "3"]
    assert cells[2] == "0.0200 ± 0.0000"  # the oracle's
    assert cells[3].startswith("0.0400 ± 0.0")
    assert cells[4] == "0.0250 ± 0.0000"
    assert cells[8] == "1.25 ± 0.00"
    assert "own trials 3" in text


def test_the_bootstrap_error_of_a_median_is_that_of_theory():
    values = np.random.default_rng(0).normal(size=2000)
    assert shortfalls.median(values).error == pytest.approx(math.sqrt(math.pi / 2 / 2000), rel=0.25)


def test_tables_of_audits(tmp_path):
    rows = [
        dict.fromkeys(audits.COLUMNS, "0")
        | {"task": "80-text", "configurations": "1", "spread": "1.8", "seed": str(seed), "refuted": str(int(seed > 0))}
        for seed in range(4)
    ]
    audits.FORM.write(tmp_path / "audits_before.csv", "made up", rows)
    assert "| 80-text | 1 | 1.8 | 4 | 75 | 0 |" in shortfalls.summarise([tmp_path / "audits_before.csv"])
