"""Worlds to play in: a context in every round, and a reward for every arm, the same for all players with one seed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from . import tables


class World(NamedTuple):
    """A world, drawn."""

    contexts: np.ndarray  # (T, d)
    rewards: np.ndarray  # (T, K), what each arm would pay
    expected: np.ndarray  # (T, K), what it would pay on average
    reward_range: tuple[float, float]


def make(name: str, rounds: int, seed: int) -> World:
    """A world by its name: one of the simulators, or a table."""
    rng = np.random.default_rng([seed, 7])
    if name in SIMULATORS:
        return SIMULATORS[name](rng, rounds)
    table = tables.load(name)
    order: list[int] = []
    while len(order) < rounds:  # small tables come again, in another order
        order.extend(rng.permutation(len(table.classes)).tolist())
    places = np.array(order[:rounds])
    rewards = (table.classes[places][:, None] == np.arange(table.arms)).astype(float)
    return World(table.contexts[places], rewards, rewards, (0.0, 1.0))


def wide(rng: np.random.Generator, rounds: int) -> World:
    """Thirty features, ten arms, and clicks at a rate of about 5 %."""
    weights, base = 0.12 * rng.normal(size=(10, 30)), -3.2 + 0.2 * rng.normal(size=10)
    contexts = rng.normal(size=(rounds, 30))
    rates = _logistic(base + contexts @ weights.T)
    return World(contexts, (rng.random(rates.shape) < rates).astype(float), rates, (0.0, 1.0))


def router(rng: np.random.Generator, rounds: int) -> World:
    """Prompts as unit vectors of 64 numbers, and five models: quality of 0 or 1, less .08 times the cost."""
    contexts = rng.normal(size=(rounds, 64))
    contexts /= np.linalg.norm(contexts, axis=1, keepdims=True)
    base, costs = np.array([-0.2, 0.4, 0.9, 1.4, 2.2]), np.geomspace(0.1, 3.0, 5)
    weights = np.linspace(1.5, 0.8, 5)[:, None] * rng.normal(size=(5, 64))
    quality = _logistic(base + contexts @ weights.T)
    drawn = (rng.random(quality.shape) < quality).astype(float)
    return World(contexts, drawn - 0.08 * costs, quality - 0.08 * costs, (-0.25, 1.0))


def _logistic(z: np.ndarray) -> np.ndarray:
    return np.asarray(1.0 / (1.0 + np.exp(-z)))


SIMULATORS = {"wide": wide, "router": router}
