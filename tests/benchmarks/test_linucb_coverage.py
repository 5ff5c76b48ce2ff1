"""The intervals of benchmarks/linucb_coverage.py are those that the libraries act on."""

import numpy as np
import pytest

pytest.importorskip("mabwiser", reason="needs mixbandit[bench]")
pytest.importorskip("river", reason="needs mixbandit[bench]")

from benchmarks import linucb_coverage as linucb
from mixbandit.paper.coverage import ARMS, CoverageSettings, World

DIM = 3


def seen(player, rounds=12):
    """The options of a last round after some rounds in which arms take turns, and what each arm has returned."""
    world, history = World(CoverageSettings(design="contexts", dim=DIM), run=0), [[] for _ in range(ARMS)]
    for t in range(1, rounds + 1):
        action, arm = world.options()[t % ARMS], t % ARMS
        reward = world.reward(action)
        player.learn(action, reward)
        history[arm].append((action.reshape(ARMS, DIM)[arm], reward))
    return world.options(), history


def ridge(options, history, noise):
    """Centre and variance of the ridge regression with unit prior, arm by arm."""
    for arm, pairs in enumerate(history):
        x = options[arm].reshape(ARMS, DIM)[arm]
        rows, rewards = np.array([row for row, _ in pairs]), np.array([reward for _, reward in pairs])
        covariance = np.linalg.inv(np.eye(DIM) + rows.T @ rows / noise)
        yield x @ covariance @ rows.T @ rewards / noise, x @ covariance @ x


def test_mabwiser():
    player = linucb.MABWiser(DIM, alpha=1.5)
    options, history = seen(player)
    centre, variance = np.array(list(ridge(options, history, 1.0))).T
    lower, upper = player.intervals(options)
    np.testing.assert_allclose(lower, centre - 1.5 * np.sqrt(variance))
    np.testing.assert_allclose(upper, centre + 1.5 * np.sqrt(variance))


def test_river():
    player = linucb.River(precision=4.0)
    options, history = seen(player)
    centre, variance = np.array(list(ridge(options, history, 0.25))).T
    lower, upper = player.intervals(options)
    np.testing.assert_allclose(lower, centre - np.sqrt(0.25 + variance))
    np.testing.assert_allclose(upper, centre + np.sqrt(0.25 + variance))
    context = linucb.named(linucb.parts(options[0])[1])
    assert player._policy.pull(list(range(ARMS)), context) == np.argmax(player.score(lower, upper))


@pytest.mark.parametrize("player", linucb.PLAYERS)
def test_a_run_can_be_repeated(player):
    match = linucb.Match(player, 0.5, "independent", rounds=25, seed=0)
    first_miss, missed, needed, width, last_width, regret = linucb.simulate(match, 3)
    assert (first_miss > 0) == (missed > 0) == (needed > 1)
    assert min(needed, width, last_width, regret) > 0
    assert linucb.simulate(match, 3) == (first_miss, missed, needed, width, last_width, regret)


def test_an_interval_that_never_moves_is_caught(monkeypatch):
    class Stubborn(linucb.Ours):
        def intervals(self, options):
            return np.full(ARMS, -0.01), np.full(ARMS, 0.01)

        def learn(self, action, reward):
            pass

    monkeypatch.setitem(linucb.PLAYERS, "stubborn", lambda settings, theta: Stubborn(None))
    first_miss, missed, needed, *_ = linucb.simulate(linucb.Match("stubborn", 0.5, "at once", rounds=10, seed=0), 0)
    assert first_miss == 1
    assert missed > 0.9
    assert needed > 10
