"""The benchmark of contextual bandits: worlds, players, and what a summary says of known rewards."""

import csv

import numpy as np
import pytest
from benchmarks.contextual import tables, worlds
from benchmarks.contextual.play import COLUMNS, Settings, simulate
from benchmarks.contextual.players import PLAYERS, linear, logistic_thompson
from benchmarks.contextual.summary import Earned, shares, summarise, versus

pytest.importorskip("river", reason="needs mixbandit[bench]")


@pytest.mark.parametrize("player", PLAYERS)
@pytest.mark.parametrize("late", [0, 30])
def test_every_player_plays_and_all_but_one_learn(player, late):
    found = dict(zip(COLUMNS, map(float, simulate(Settings("wine", player, rounds=300, late=late), 0)), strict=True))
    assert found["best"] == 1.0
    assert found["reward"] == found["expected"]
    assert (found["last_quarter"] > 0.6) == (player != "random")


def test_settings_of_ours_are_those_that_are_asked_for():
    options = '{"members": ["ridge 2", "cosines 20 3"], "rule": "InverseGap 30", "floor": 0.1}'
    found = simulate(Settings("wine", "mixbandit", options, rounds=100), 0)
    assert found != simulate(Settings("wine", "mixbandit", rounds=100), 0)


@pytest.mark.parametrize("name", [*worlds.SIMULATORS, "wine"])
def test_worlds_pay_what_they_promise(name):
    one, again, other = (worlds.make(name, 4000, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.rewards, again.rewards)
    assert not np.array_equal(one.contexts, other.contexts)
    assert one.rewards.min() >= one.reward_range[0]
    assert one.rewards.max() <= one.reward_range[1]
    errors = (one.rewards - one.expected).mean(axis=0) / np.maximum(one.rewards.std(axis=0) / np.sqrt(4000), 1e-12)
    assert np.abs(errors).max() < 5.0


def test_small_tables_come_again_in_another_order():
    table, world = tables.load("wine"), worlds.make("wine", 500, 0)
    n = len(table.classes)
    for first in (0, n):
        assert sorted(map(tuple, world.contexts[first : first + n])) == sorted(map(tuple, table.contexts))
    assert not np.array_equal(world.contexts[:n], world.contexts[n : 2 * n])


@pytest.mark.parametrize("name", [*tables.LEFT_ALONE, "nothing"])
def test_tables_of_the_judges_are_not_read(name):
    assert not set(tables.LEFT_ALONE) & {*tables.DEVELOPMENT, *tables.HELD_OUT}
    with pytest.raises(ValueError, match="no table"):
        tables.load(name)


def test_linear_players_are_ridge_regressions():
    world, rng = worlds.make("wide", 60, 0), np.random.default_rng(0)
    x = np.column_stack([np.ones(60), world.contexts])
    player, greedy = linear(world, 0, alpha=0.5), linear(world, 0, alpha=0.0)
    arms, rewards = rng.integers(10, size=50), rng.random(50)
    for t in range(50):
        player.learn(t, int(arms[t]), rewards[t])
        greedy.learn(t, int(arms[t]), rewards[t])
    for t in range(50, 60):
        scores = []
        for arm in range(10):
            rows = x[:50][arms == arm]
            gram = rows.T @ rows + 0.1 * np.eye(31)
            mean = x[t] @ np.linalg.solve(gram, rows.T @ rewards[arms == arm])
            scores.append((mean + 0.5 * np.sqrt(x[t] @ np.linalg.solve(gram, x[t])), mean))
        assert player.choose(t) == int(np.argmax([score for score, _ in scores]))
        assert greedy.choose(t) == int(np.argmax([mean for _, mean in scores]))


def test_logistic_thompson_sampling_comes_close_to_the_rates():
    world = worlds.World(np.zeros((4000, 1)), np.zeros((4000, 2)), np.zeros((4000, 2)), (0.0, 1.0))
    player, rng = logistic_thompson(world, 0), np.random.default_rng(0)
    for t in range(2000):
        player.learn(t, 0, float(rng.random() < 0.3))
        player.learn(t, 1, float(rng.random() < 0.6))
    assert np.mean([player.choose(t) for t in range(2000, 2200)]) > 0.98


def test_a_summary_of_known_rewards(tmp_path):
    rewards = np.array([[[0.5, 1.0], [0.8, 0.4]], [[0.6, 0.3], [0.6, 0.6]]])  # worlds, seeds, players
    earned = Earned(["one", "two"], ["a", "b"], rewards, np.ones((2, 2)))
    np.testing.assert_allclose(shares(earned)[0], [[0.5, 1.0], [1.0, 0.5]])
    assert versus(earned, 0, 1) == {"pairs": 2 / 3, "worlds_ahead": 1, "worlds_behind": 1, "p": 1.0}
    text = summarise(earned, tmp_path, "mixbandit: 1; command: this")
    assert text.splitlines()[0] == "0.875 ± 0.125  a"
    made_by, *lines = (tmp_path / "shares.csv").read_text().splitlines()
    assert made_by == "# mixbandit: 1; command: this"
    table = list(csv.reader(lines))
    assert table[0] == ["world", "a", "b"]
    assert table[3] == ["mean share", "0.8750", "0.7500"]
    assert (tmp_path / "shares.png").stat().st_size > 5000
