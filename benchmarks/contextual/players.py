"""Who plays: ten lines of numpy, ours, and other libraries with the settings that their documentation suggests.

A player is made for a world and a seed. `choose(t)` names an arm for the context of round t, `learn(t, arm, reward)`
may come much later.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import mixbandit as mb
from mixbandit import predictors, rules
from mixbandit.bench.peers import DISJOINT, Stream

from .worlds import World


class Player(NamedTuple):
    """The two calls."""

    choose: Callable[[int], int]
    learn: Callable[[int, int, float], Any]


def with_intercept(world: World) -> np.ndarray:
    """Contexts with a 1 in front, (T, d + 1)."""
    return np.column_stack([np.ones(len(world.contexts)), world.contexts])


def linear(world: World, seed: int, *, alpha: float, sampled: bool = False, ridge: float = 0.1) -> Player:
    """LinUCB (Li et al. 2010) or LinTS (Agrawal & Goyal 2013) in ten lines: one ridge regression an arm."""
    x, rng, arms = with_intercept(world), np.random.default_rng(seed), world.rewards.shape[1]
    dim = x.shape[1]
    inverse, b, theta = np.tile(np.eye(dim) / ridge, (arms, 1, 1)), np.zeros((arms, dim)), np.zeros((arms, dim))

    def choose(t: int) -> int:
        width = np.sqrt(np.maximum(np.einsum("i,kij,j->k", x[t], inverse, x[t]), 0.0))
        scores = theta @ x[t] + alpha * width * (rng.normal(size=arms) if sampled else 1.0)
        return int(rng.choice(np.flatnonzero(scores == scores.max())))

    def learn(t: int, arm: int, reward: float) -> None:
        along = inverse[arm] @ x[t]
        inverse[arm] -= np.outer(along, along) / (1.0 + x[t] @ along)
        b[arm] += reward * x[t]
        theta[arm] = inverse[arm] @ b[arm]

    return Player(choose, learn)


def logistic_thompson(world: World, seed: int) -> Player:
    """Thompson sampling by logistic regression (Chapelle & Li 2011): a Newton step of Laplace's approximation a reward.

    Rewards are taken to [0, 1] by the range.
    """
    x, rng, arms = with_intercept(world), np.random.default_rng(seed), world.rewards.shape[1]
    dim, (low, high) = x.shape[1], world.reward_range
    covariance, mean = np.tile(np.eye(dim), (arms, 1, 1)), np.zeros((arms, dim))

    def choose(t: int) -> int:
        width = np.sqrt(np.maximum(np.einsum("i,kij,j->k", x[t], covariance, x[t]), 0.0))
        return int(np.argmax(mean @ x[t] + width * rng.normal(size=arms)))

    def learn(t: int, arm: int, reward: float) -> None:
        p = 1.0 / (1.0 + np.exp(-mean[arm] @ x[t]))
        along, weight = covariance[arm] @ x[t], p * (1.0 - p)
        covariance[arm] -= weight * np.outer(along, along) / (1.0 + weight * (x[t] @ along))
        mean[arm] += covariance[arm] @ x[t] * ((reward - low) / (high - low) - p)

    return Player(choose, learn)


def at_random(world: World, seed: int) -> Player:
    """No learning at all."""
    rng, arms = np.random.default_rng(seed), world.rewards.shape[1]
    return Player(lambda t: int(rng.integers(arms)), lambda t, arm, reward: None)


def ours(world: World, seed: int, **options: Any) -> Player:
    """A ContextualBandit; without options with its defaults.

    `members`, such as ["ridge 1", "cosines 60"], are those of an ensemble with a `prior`; `rule` is such as "Optimistic
    0.5".
    """
    if unknown := sorted(options.keys() - {"floor", "rule", "members", "prior"}):
        raise ValueError(f"unknown options: {', '.join(unknown)}")
    given: dict[str, Any] = {name: options[name] for name in ("floor",) if name in options}
    if "rule" in options:
        name, *numbers = options["rule"].split()
        given["rule"] = getattr(rules, name)(*map(json.loads, numbers))
    if "members" in options:
        members = [_member(*each.split()) for each in options["members"]]
        prior = options.get("prior")
        given["predictor"] = members[0] if len(members) == 1 else predictors.Ensemble(members, prior=prior)
    bandit = mb.ContextualBandit(world.rewards.shape[1], world.reward_range, rng=seed, **given)
    open_: dict[int, str] = {}

    def choose(t: int) -> int:
        choice = bandit.ask(world.contexts[t])
        open_[t] = choice.id
        arm: Any = choice.arm
        return int(arm)

    return Player(choose, lambda t, arm, reward: bandit.tell(open_.pop(t), reward))


def _member(kind: str, *numbers: str) -> predictors.Predictor:
    """`ridge 1` has a ridge, `cosines 60 1` a number of cosines and perhaps a ridge."""
    if kind == "ridge" and len(numbers) == 1:
        return predictors.RidgePerArm(ridge=float(numbers[0]))
    if kind == "cosines" and len(numbers) in (1, 2):
        return predictors.CosinesPerArm(int(numbers[0]), ridge=float((*numbers, "1")[1]))
    raise ValueError(f"unknown member: {' '.join((kind, *numbers))}")


def vowpal_wabbit(options: str) -> Callable[[World, int], Player]:
    """VowpalWabbit with features of the context times the arm; costs are in [0, 1]."""

    def start(world: World, seed: int) -> Player:
        import vowpalwabbit

        arms, (low, high) = world.rewards.shape[1], world.reward_range
        flags = f"--cb_explore_adf {options} -q sa --ignore_linear s --quiet --random_seed {seed + 1}"
        workspace, drawn = vowpalwabbit.Workspace(flags), random.Random(seed)
        lines, chances = [f"|a arm{k}" for k in range(arms)], {}

        def shared(t: int) -> str:
            return "shared |s one " + " ".join(f"x{i}:{v:.6g}" for i, v in enumerate(world.contexts[t].tolist()) if v)

        def choose(t: int) -> int:
            chances[t] = workspace.predict([shared(t), *lines])
            return drawn.choices(range(arms), weights=chances[t])[0]

        def learn(t: int, arm: int, reward: float) -> None:
            cost, told = (high - reward) / (high - low), [shared(t), *lines]
            told[arm + 1] = f"0:{cost:.6g}:{max(chances.pop(t)[arm], 1e-6):.6g} {lines[arm]}"
            workspace.learn(told)

        return Player(choose, learn)

    return start


def library(name: str) -> Callable[[World, int], Player]:
    """A library that keeps a parameter per arm, and is given the intercept as a feature."""
    (found,) = (each for each in DISJOINT if each.name == name)

    def start(world: World, seed: int) -> Player:
        arms = np.arange(world.rewards.shape[1])
        choose, learn = found.start(Stream(with_intercept(world), world.rewards[arms % len(world.rewards), arms], 0.3))
        return Player(choose, learn)

    return start


PLAYERS: dict[str, Callable[..., Player]] = {
    "mixbandit": ours,
    "LinUCB by hand": lambda world, seed: linear(world, seed, alpha=0.5),
    "LinTS by hand": lambda world, seed: linear(world, seed, alpha=0.5, sampled=True),
    "greedy by hand": lambda world, seed: linear(world, seed, alpha=0.0),
    "logistic TS by hand": logistic_thompson,
    "random": at_random,
    "VowpalWabbit squarecb": vowpal_wabbit("--squarecb"),
    "VowpalWabbit epsilon": vowpal_wabbit("--epsilon 0.05"),
    **{name: library(name) for name in ("river LinUCBDisjoint", "MABWiser LinUCB", "bayesianbandits TS")},
}
