"""Who plays: ours, a floor in plain numpy, and other libraries.

A player is made for a workload and plays one round at a time: choose, observe, update. It returns the expected reward
of what it chose. Whatever can be prepared before the rewards are known, such as text lines for VowpalWabbit, is
prepared before the clock starts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from mixbandit._compiling import off
from mixbandit.bandits import AMMUCB, CMMUCB, OFUL
from mixbandit.bench.peers import DISJOINT, Peer, Stream
from mixbandit.bench.workloads import DELTA, SIGMA, Rounds

Step = Callable[[int], float]


@dataclass(frozen=True)
class Player:
    """A way to play, and the package it comes from."""

    name: str
    package: str
    start: Callable[[Any], Step]  # from a workload
    compiled: bool = True  # whether ours may use compiled code

    @property
    def version(self) -> str | None:
        """The version of the package; None if it is not installed."""
        try:
            return version(self.package)
        except PackageNotFoundError:
            return None

    def play(self, step: Step, first: int, count: int) -> list[float]:
        """Rewards of some rounds."""
        if self.compiled:
            return [step(t) for t in range(first, first + count)]
        with off():
            return [step(t) for t in range(first, first + count)]


def floor(load: Rounds) -> Step:
    """OFUL in plain numpy with a Sherman–Morrison inverse: no checks, no bounds reported, no late rewards, and digits
    are lost as they are lost.
    """
    d, theta, sets, noise, bound = load.d, load.theta, load.sets, load.noise, load.norm_bound
    inverse, b, volume = np.eye(d) / SIGMA**2, np.zeros(d), [0.0]

    def step(t: int) -> float:
        arms = sets[t % len(sets)]
        radius = SIGMA * math.sqrt(volume[0] - 2.0 * math.log(DELTA)) + SIGMA * bound
        width = np.sqrt(np.einsum("nd,nd->n", arms @ inverse, arms))
        x = arms[np.argmax(arms @ (inverse @ b) + radius * width)]
        value = float(x @ theta)
        reward = value + noise[t % len(noise)]
        along = inverse @ x
        stretch = 1.0 + x @ along
        np.subtract(inverse, np.outer(along, along) / stretch, out=inverse)
        volume[0] += math.log(stretch)
        np.add(b, reward * x, out=b)
        return value

    return step


def ours(make: Callable[..., Any]) -> Callable[[Rounds], Step]:
    """A policy of this library."""

    def start(load: Rounds) -> Step:
        policy = make(load.d, sigma=SIGMA, norm_bound=load.norm_bound, delta=DELTA, rng=0)
        sets, theta, noise = load.sets, load.theta, load.noise

        def step(t: int) -> float:
            choice = policy.ask(sets[t % len(sets)])
            value = float(choice.action @ theta)
            policy.tell(choice, value + noise[t % len(noise)])
            return value

        return step

    return start


def vowpal_wabbit(options: str) -> Callable[[Rounds], Step]:
    """VowpalWabbit's contextual bandits with features of actions (--cb_explore_adf)."""

    def start(load: Rounds) -> Step:
        import vowpalwabbit

        workspace = vowpalwabbit.Workspace(f"--cb_explore_adf {options} --quiet --random_seed 1")
        rng, theta, noise = np.random.default_rng(0), load.theta, load.noise
        lines = [
            ["|a " + " ".join(f"f{i}:{value:.6g}" for i, value in enumerate(row)) for row in arms] for arms in load.sets
        ]

        def step(t: int) -> float:
            arms, text = load.sets[t % len(load.sets)], lines[t % len(lines)]
            chances = np.array(workspace.predict(text))
            chosen = int(rng.choice(len(chances), p=chances / chances.sum()))
            value = float(arms[chosen] @ theta)
            cost = -(value + noise[t % len(noise)])
            learnt = text.copy()
            learnt[chosen] = f"0:{cost:.6g}:{chances[chosen]:.6g} {text[chosen]}"
            workspace.learn(learnt)
            return value

        return step

    return start


def disjoint(peer: Callable[[Stream], Peer]) -> Callable[[Rounds], Step]:
    """A peer with a parameter per arm."""

    def start(load: Rounds) -> Step:
        everything = np.arange(load.arms)
        first = np.einsum("nd,nd->n", load.contexts[everything % len(load.contexts)], load.thetas)
        choose, learn = peer(Stream(load.contexts, first, SIGMA))

        def step(t: int) -> float:
            place = t % len(load.contexts)
            arm = choose(place)
            value = float(load.contexts[place] @ load.thetas[arm])
            learn(place, arm, value + load.noise[t % len(load.noise)])
            return value

        return step

    return start


FLOOR = Player("bare numpy loop", "numpy", floor)
OURS = (
    Player("CMM-UCB", "mixbandit", ours(CMMUCB)),
    Player("AMM-UCB", "mixbandit", ours(AMMUCB)),
    Player("OFUL", "mixbandit", ours(OFUL)),
    Player("CMM-UCB, numpy only", "mixbandit", ours(CMMUCB), compiled=False),
    Player("AMM-UCB, numpy only", "mixbandit", ours(AMMUCB), compiled=False),
)
PEERS = (
    Player("VowpalWabbit squarecb", "vowpalwabbit", vowpal_wabbit("--squarecb")),
    Player("VowpalWabbit regcb", "vowpalwabbit", vowpal_wabbit("--regcb")),
    *(Player(library.name, library.package, disjoint(library.start)) for library in DISJOINT),
)
