"""`mixbandit bench` measures what it says, without its peers and with little of everything."""

import json

import pytest
from typer.testing import CliRunner

from mixbandit.bench import bounds, growth, memory, players, report, rounds, workloads
from mixbandit.bench.timing import facts, medians
from mixbandit.cli import app


def quiet(message):
    pass


def test_the_floor_and_our_oful_choose_alike():
    load = workloads.rounds(8, 6, 120)
    ours = next(player for player in players.OURS if player.name == "OFUL")
    floor = players.FLOOR
    assert ours.play(ours.start(load), 0, 120) == pytest.approx(floor.play(floor.start(load), 0, 120), rel=1e-12)


def test_every_size_and_player_has_a_row(monkeypatch):
    monkeypatch.setattr(workloads, "ROUND_SIZES", ((5, 4), (9, 70)))
    found = rounds.measure(quick=True, peers=False, say=quiet)
    assert {(row["d"], row["arms"]) for row in found} == {(5, 4), (9, 70)}
    assert all(row["microseconds"] > 0.0 for row in found)
    assert all(row["times_floor"] == 1.0 for row in found if row["player"] == players.FLOOR.name)
    assert all(row["last_quarter"] > row["first_quarter"] - 0.2 for row in found)


def test_bounds_are_measured_with_their_new_moment(monkeypatch):
    monkeypatch.setattr(workloads, "BOUND_SIZES", ((30, 9),))
    found = bounds.measure(quick=True, peers=False, say=quiet)
    assert {row["norm_bound"] for row in found} == {"‖θ*‖", "10"}
    assert all(row["times_faster_than_cvxpy"] is None for row in found)


@pytest.mark.heavy
def test_growth_and_memory(monkeypatch):
    monkeypatch.setattr(growth, "_ROUNDS", 4)
    found = growth._measured([(3, 20), (6, 40)], 1, quiet)
    assert {(row["policy"], row["d"], row["t"]) for row in found} == {
        (policy, d, t) for policy in ("CMM-UCB", "AMM-UCB") for d, t in ((3, 20), (6, 40))
    }
    rows = [{"policy": "x", "d": d, "median_microseconds": 3.0 * d**2} for d in (1, 10, 100)]
    assert growth.slope(rows, "x", "d") == pytest.approx(2.0)
    held = {(row["policy"], row["d"], row["rounds"]): row["kilobytes"] for row in memory.measure(quick=True, say=quiet)}
    for policy in ("CMM-UCB", "AMM-UCB"):
        assert held[policy, 20, 1000] < 1.5 * held[policy, 20, 100]


def test_the_command_writes_numbers_and_a_picture(tmp_path, monkeypatch):
    monkeypatch.setattr(report.growth, "over_time", lambda **_: growth._measured([(3, 20), (3, 40)], 1, quiet))
    monkeypatch.setattr(report.growth, "over_dimension", lambda **_: growth._measured([(3, 20), (6, 40)], 1, quiet))
    monkeypatch.setattr(growth, "_ROUNDS", 4)
    done = CliRunner().invoke(app, ["bench", "growth", "--quick", "--no-peers", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert json.loads((tmp_path / "bench.json").read_text())["slopes"].keys() == {"CMM-UCB", "AMM-UCB"}
    assert (tmp_path / "growth.png").stat().st_size > 1000
    assert CliRunner().invoke(app, ["bench", "nothing"]).exit_code != 0


def test_medians_and_facts():
    assert medians({"a": lambda: None}, 3)["a"] >= 0.0
    known = facts()
    assert known["threads"] == 1
    assert known["versions"]["mixbandit"]
