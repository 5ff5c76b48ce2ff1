"""Who decides in context: ours, LinUCB in ten lines of numpy, and other libraries.

A player sees a new context in every round and names an arm. It returns the reward. Contexts are drawn before the clock
starts, as vectors, and as dicts for those who take dicts. VowpalWabbit's lines of text are written while it runs,
because its users have to write them, too.
"""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable
from typing import Any

import numpy as np

from mixbandit.bench.peers import DISJOINT, Peer, Stream
from mixbandit.bench.players import Player, Step
from mixbandit.bench.workloads import CONTEXT_SIGMA, Contexts


def linucb(load: Contexts) -> Step:
    """The ten lines: a ridge regression per arm, kept as an inverse by Sherman–Morrison; no checks, no late rewards."""
    rows, rewards, dim = load.rows, load.rewards, load.d + 1
    inverse = np.tile(np.eye(dim) / 0.1, (load.arms, 1, 1))
    b, theta = np.zeros((load.arms, dim)), np.zeros((load.arms, dim))

    def step(t: int) -> float:
        x = rows[t % len(rows)]
        k = int(np.argmax(theta @ x + 0.5 * np.sqrt(np.einsum("i,kij,j->k", x, inverse, x))))
        reward = float(rewards[t % len(rows), k])
        along = inverse[k] @ x
        inverse[k] -= np.outer(along, along) / (1.0 + x @ along)
        b[k] += reward * x
        theta[k] = inverse[k] @ b[k]
        return reward

    return step


def contextual_bandit(load: Contexts) -> Step:
    """Our front with its defaults, from vectors."""
    return _front(load, list(load.contexts))


def ensemble(load: Contexts) -> Step:
    """Our front with three regressions per arm, one of them not linear."""
    given: Any = importlib.import_module("mixbandit.predictors")
    members = [given.RidgePerArm(ridge=1), given.RidgePerArm(ridge=30), given.CosinesPerArm(cosines=60)]
    return _front(load, list(load.contexts), predictor=given.Ensemble(members, prior=[0.4995, 0.4995, 0.001]))


def contextual_bandit_dicts(load: Contexts) -> Step:
    """Our front with its defaults, from dicts."""
    names = [f"x{i}" for i in range(load.d)]
    return _front(load, [dict(zip(names, row, strict=True)) for row in load.contexts.tolist()])


def _front(load: Contexts, contexts: list[Any], **options: Any) -> Step:
    labels = [f"arm {k}" for k in range(load.arms)]
    bandit = importlib.import_module("mixbandit").ContextualBandit(arms=labels, reward_range=(0, 1), rng=0, **options)
    rewards, numbers = load.rewards, {label: k for k, label in enumerate(labels)}

    def step(t: int) -> float:
        place = t % len(contexts)
        choice = bandit.ask(contexts[place])
        reward = float(rewards[place, numbers[choice.arm]])
        bandit.tell(choice, reward)
        return reward

    return step


def on_blocks(*, closed_form: bool) -> Callable[[Contexts], Step]:
    """AMM-UCB (`closed_form`) or CMM-UCB with a belief per arm."""

    def start(load: Contexts) -> Step:
        mb: Any = importlib.import_module("mixbandit")
        belief = mb.MartingaleMixture(load.d + 1, sigma=0.5, norm_bound=load.norm_bound, delta=0.05)
        blocks, arms = mb.Blocks(belief, arms=load.arms), mb.Arms(range(load.arms))
        policy = mb.UCB(blocks, arms, alpha=blocks.alpha0) if closed_form else mb.UCB(blocks, arms)
        rows, rewards = load.rows, load.rewards

        def step(t: int) -> float:
            place = t % len(rows)
            choice = policy.ask(context=rows[place])
            reward = float(rewards[place, choice.index])
            policy.tell(choice, reward)
            return reward

        return step

    return start


def vowpal_wabbit(options: str) -> Callable[[Contexts], Step]:
    """VowpalWabbit's contextual bandits: a shared line and one per arm, whose products are the features.

    A cost is 1 − reward: VowpalWabbit expects costs in [0, 1], and its regcb learns nothing from negative ones.
    """

    def start(load: Contexts) -> Step:
        import vowpalwabbit

        flags = f"--cb_explore_adf {options} -q sa --ignore_linear s --quiet --random_seed 1"
        workspace = vowpalwabbit.Workspace(flags)
        contexts, rewards, drawn = load.contexts, load.rewards, random.Random(0)  # noqa: S311
        lines, numbers = [f"|a arm{k}" for k in range(load.arms)], range(load.arms)

        def step(t: int) -> float:
            place = t % len(contexts)
            shared = "shared |s " + " ".join(f"x{i}:{value:.6g}" for i, value in enumerate(contexts[place].tolist()))
            chances = workspace.predict([shared, *lines])
            k = drawn.choices(numbers, weights=chances)[0]
            reward = float(rewards[place, k])
            learnt = [shared, *lines]
            learnt[k + 1] = f"0:{1.0 - reward:.6g}:{chances[k]:.6g} {lines[k]}"
            workspace.learn(learnt)
            return reward

        return step

    return start


def disjoint(peer: Callable[[Stream], Peer]) -> Callable[[Contexts], Step]:
    """A library that keeps a parameter per arm. It is given the intercept as a feature."""

    def start(load: Contexts) -> Step:
        rewards, everything = load.rewards, np.arange(load.arms)
        choose, learn = peer(Stream(load.rows, rewards[everything % len(rewards), everything], CONTEXT_SIGMA))

        def step(t: int) -> float:
            place = t % len(rewards)
            arm = choose(place)
            reward = float(rewards[place, arm])
            learn(place, arm, reward)
            return reward

        return step

    return start


FLOOR = Player("ten-line LinUCB", "numpy", linucb)
AMM = Player("AMM-UCB on Blocks", "mixbandit", on_blocks(closed_form=True))
OURS = (
    Player("ContextualBandit", "mixbandit", contextual_bandit),
    Player("ContextualBandit, ensemble", "mixbandit", ensemble),
    AMM,
    Player("CMM-UCB on Blocks", "mixbandit", on_blocks(closed_form=False)),
)
DICTS = Player("ContextualBandit, dicts", "mixbandit", contextual_bandit_dicts)
PEERS = (
    Player("VowpalWabbit squarecb", "vowpalwabbit", vowpal_wabbit("--squarecb")),
    Player("VowpalWabbit regcb", "vowpalwabbit", vowpal_wabbit("--regcb")),
    *(Player(library.name, library.package, disjoint(library.start)) for library in DISJOINT),
)
