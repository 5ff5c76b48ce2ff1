"""Other libraries with a parameter per arm: they see a context and name an arm.

A peer is made for a stream of contexts and answers two calls: choose an arm for the context at a place in the stream,
and learn the reward of an arm there. What can be prepared before the clock starts, such as dicts for river, is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mixbandit._checks import Array


@dataclass(frozen=True)
class Stream:
    """What a peer is made for."""

    contexts: Array  # (n, d)
    first: Array  # (K,), a reward of arm k for context k mod n, for peers that must be fitted before they choose
    sigma: float

    @property
    def arms(self) -> int:
        return len(self.first)

    def row(self, place: int) -> Array:
        """One context, (1, d)."""
        return self.contexts[place : place + 1]


class Peer(NamedTuple):
    """The two calls, by place in the stream."""

    choose: Callable[[int], int]
    learn: Callable[[int, int, float], object]


def river(stream: Stream) -> Peer:
    """River's LinUCBDisjoint."""
    from river import bandit

    policy: Any = bandit.LinUCBDisjoint(alpha=1.0, seed=0)
    contexts, arms = [dict(enumerate(row)) for row in stream.contexts.tolist()], list(range(stream.arms))
    return Peer(
        lambda place: int(policy.pull(arms, context=contexts[place])),
        lambda place, arm, reward: policy.update(arm, contexts[place], reward),
    )


def mabwiser(stream: Stream) -> Peer:
    """MABWiser's LinUCB."""
    from mabwiser.mab import MAB, LearningPolicy

    policy = MAB(arms=list(range(stream.arms)), learning_policy=LearningPolicy.LinUCB(alpha=1.0), seed=0)
    everything = np.arange(stream.arms)
    policy.fit(everything, stream.first, stream.contexts[everything % len(stream.contexts)])
    return Peer(
        lambda place: int(policy.predict(stream.row(place))),
        lambda place, arm, reward: policy.partial_fit([arm], [reward], stream.row(place)),
    )


def contextual_bandits(stream: Stream) -> Peer:
    """LinUCB of contextualbandits."""
    from contextualbandits.online import LinUCB

    policy = LinUCB(nchoices=stream.arms, alpha=1.0, beta_prior=None, random_state=1)
    return Peer(
        lambda place: int(policy.predict(stream.row(place))[0]),
        lambda place, arm, reward: policy.partial_fit(stream.row(place), np.array([arm]), np.array([reward])),
    )


def bayesian_bandits(policy_name: str) -> Callable[[Stream], Peer]:
    """A contextual agent of bayesianbandits with normal regressions."""

    def start(stream: Stream) -> Peer:
        import bayesianbandits as bb

        policy = bb.ThompsonSampling() if policy_name == "TS" else bb.UpperConfidenceBound(alpha=0.9)
        learners = [bb.NormalRegressor(alpha=1.0, beta=1.0 / stream.sigma**2) for _ in range(stream.arms)]
        arms = [bb.Arm(number, learner=learner) for number, learner in enumerate(learners)]
        agent = bb.ContextualAgent(arms, policy, random_seed=0)

        def learn(place: int, arm: int, reward: float) -> None:
            agent.select_for_update(arm).update(stream.row(place), np.array([reward]))

        return Peer(lambda place: int(agent.pull(stream.row(place))[0]), learn)

    return start


@dataclass(frozen=True)
class Library:
    """A peer, its name, and the package it comes from."""

    name: str
    package: str
    start: Callable[[Stream], Peer]


DISJOINT = (
    Library("river LinUCBDisjoint", "river", river),
    Library("MABWiser LinUCB", "mabwiser", mabwiser),
    Library("contextualbandits LinUCB", "contextualbandits", contextual_bandits),
    Library("bayesianbandits TS", "bayesianbandits", bayesian_bandits("TS")),
    Library("bayesianbandits UCB", "bayesianbandits", bayesian_bandits("UCB")),
)
