"""The workloads, defined once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixbandit._checks import Array
from mixbandit.sequences import MartingaleMixture

SIGMA, DELTA = 0.1, 0.01
CONTEXT_SIGMA = 0.3
CONTEXT_SIZES = ((20, 10), (60, 10), (20, 1000), (361, 3))  # features, arms
ROUND_SIZES = ((20, 10), (20, 1000), (100, 10), (100, 1000))
BOUND_SIZES = ((100, 10), (500, 20), (1000, 100), (50, 100))
ACTIONS = 1000
_SETS = 20


@dataclass(frozen=True)
class Rounds:
    """Sets of arms in turn with one parameter; for peers that need it, contexts in turn with a parameter per arm.

    The norm bound is ‖θ*‖, so that it binds.
    """

    d: int
    arms: int
    sets: list[Array]  # of arms, (K, d) each, N(0, 1)/√d
    theta: Array  # (d,)
    contexts: Array  # (20, d), N(0, 1)/√d
    thetas: Array  # (K, d)
    noise: Array  # (rounds,)

    @property
    def norm_bound(self) -> float:
        return float(np.linalg.norm(self.theta))


def rounds(d: int, arms: int, count: int) -> Rounds:
    """The workload of whole rounds: choose, observe, update."""
    rng = np.random.default_rng(0)
    sets = [rng.normal(size=(arms, d)) / np.sqrt(d) for _ in range(_SETS)]
    theta = rng.normal(size=d)
    noise = SIGMA * rng.normal(size=count)
    contexts, thetas = rng.normal(size=(_SETS, d)) / np.sqrt(d), rng.normal(size=(arms, d))
    return Rounds(d, arms, sets, theta, contexts, thetas, noise)


@dataclass(frozen=True)
class Bounds:
    """The data of one moment, and the actions to bound."""

    t: int
    d: int
    norm_bound: float
    features: Array  # (t, d)
    rewards: Array  # (t,)
    actions: Array  # (1000, d)

    def sequence(self) -> MartingaleMixture:
        """A confidence sequence that has seen the data."""
        sequence = MartingaleMixture(self.d, sigma=SIGMA, norm_bound=self.norm_bound, delta=DELTA)
        return sequence.update(self.features, self.rewards)


def bounds(t: int, d: int, *, tight: bool) -> Bounds:
    """The workload of bounds at one moment, with a norm bound of ‖θ*‖ (`tight`) or 10, which rarely binds."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(t, d)) / np.sqrt(d)
    actions = rng.normal(size=(ACTIONS, d)) / np.sqrt(d)
    theta = rng.normal(size=d)
    theta *= min(1.0, 10.0 / float(np.linalg.norm(theta)))
    rewards = features @ theta + SIGMA * rng.normal(size=t)
    return Bounds(t, d, float(np.linalg.norm(theta)) if tight else 10.0, features, rewards, actions)


@dataclass(frozen=True)
class Contexts:
    """A new context in every round, a parameter per arm, and rewards from 0 to 1."""

    contexts: Array  # (n, d), N(0, 1)/√d
    rows: Array  # (n, d + 1), the same with an intercept in front
    thetas: Array  # (K, d + 1), N(0, 1)
    rewards: Array  # (n, K), of each arm in each round

    @property
    def d(self) -> int:
        return int(self.contexts.shape[1])

    @property
    def arms(self) -> int:
        return len(self.thetas)

    @property
    def norm_bound(self) -> float:
        """The largest ‖θ_k‖."""
        return float(np.linalg.norm(self.thetas, axis=1).max())


def contexts(d: int, arms: int, count: int, *, binary: bool) -> Contexts:
    """The workload of decisions in context. Rewards are θ_kᵀx + .3·N(0, 1) clipped to [0, 1], or 1 with probability
    θ_kᵀx clipped to [0, 1].
    """
    rng = np.random.default_rng(0)
    found, thetas = rng.normal(size=(count, d)) / np.sqrt(d), rng.normal(size=(arms, d + 1))
    rows = np.hstack([np.ones((count, 1)), found])
    means = rows @ thetas.T
    if binary:
        rewards = (rng.random(means.shape) < means).astype(float)
    else:
        rewards = np.clip(means + CONTEXT_SIGMA * rng.normal(size=means.shape), 0.0, 1.0)
    return Contexts(found, rows, thetas, rewards)
