"""When do bounds hold if rewards come late, or never? Simulate it and count the runs in which they ever failed.

AMM-UCB plays on arms that change every round. A reward arrives after a delay, and what decides the delay matters:

- "at once";
- "independent": after a random number of rounds that has nothing to do with the reward;
- "by value": good news at once, bad news (noise below 0) late;
- "lost independently", "lost by value": the same for rewards that never arrive; their choices are cancelled.

Rewards count in order of arrival, or, with `strict`, in order of play. The first is valid if the noise is
independent given the actions and arrival does not depend on values. The second is valid whatever decides when a
reward arrives, but not whatever decides whether it does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mixbandit._checks import one_of
from mixbandit.bandits import AMMUCB, Choice
from mixbandit.paper.parallel import ALONE, Workers, gather
from mixbandit.paper.store import SIGNIFICANCE, binomial_pvalue
from mixbandit.simulate.environments import ChangingArms

FEEDBACKS = ("at once", "independent", "by value", "lost independently", "lost by value")
_LATE = 100
_LOST = 0.5


@dataclass(frozen=True)
class DelaySettings:
    """One way in which rewards arrive."""

    feedback: str = "at once"
    strict: bool = False
    dim: int = 4
    arms: int = 10
    rounds: int = 200
    sigma: float = 0.5
    delta: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        one_of(self.feedback, FEEDBACKS, "feedback")

    @property
    def label(self) -> str:
        return f"{self.feedback}, in order of {'play' if self.strict else 'arrival'}"

    @property
    def valid(self) -> bool:
        """Whether theory promises a miss rate of at most δ."""
        return self.feedback in ("at once", "independent", "lost independently") or (
            self.feedback == "by value" and self.strict
        )


def simulate(settings: DelaySettings, repetition: int) -> tuple[int]:
    """The round after which the set first misses θ*, or 0."""
    rng = np.random.default_rng([settings.seed, repetition])
    theta = rng.normal(size=settings.dim)
    theta /= np.linalg.norm(theta)
    environment = ChangingArms(
        settings.dim, theta, arms=settings.arms, sigma=settings.sigma, seed=int(rng.integers(2**31))
    )
    policy = AMMUCB(
        settings.dim,
        sigma=settings.sigma,
        norm_bound=1.0,
        delta=settings.delta,
        on_empty="inflate",
        strict=settings.strict,
        track_regret=False,
        rng=rng,
    )
    late: list[tuple[int, Choice, float]] = []
    for t in range(settings.rounds):
        if policy.sequence.is_empty:
            return (t,)  # an empty set misses θ*
        choice = policy.ask(environment.offer(t).arms)
        reward = environment.reward(t, choice)
        delay = wait(settings.feedback, reward - environment.expected(t, choice), rng, _LATE)
        if delay is None:
            policy.cancel(choice, played=True)
        else:
            late.append((t + delay, choice, reward))
        due = [part for part in late if part[0] <= t]
        late = [part for part in late if part[0] > t]
        for _, told, value in due:
            policy.tell(told, value)
            if not policy.sequence.contains(theta):
                return (t + 1,)
    return (0,)


def wait(feedback: str, noise: float, rng: np.random.Generator, late: int) -> int | None:
    """How many rounds a reward with this noise waits, 0 or `late`; None if it never arrives."""
    unlucky = noise < 0.0 if feedback.endswith("by value") else bool(rng.uniform() < _LOST)
    if feedback == "at once" or not unlucky:
        return 0
    return None if feedback.startswith("lost") else late


@dataclass(frozen=True)
class Delays:
    """The counts."""

    settings: DelaySettings
    first_misses: tuple[int, ...]  # per run, 0 for none

    @property
    def misses(self) -> int:
        return sum(time > 0 for time in self.first_misses)

    @property
    def holds(self) -> bool:
        """Whether the misses are compatible with a miss rate of at most δ."""
        return binomial_pvalue(self.misses, len(self.first_misses), self.settings.delta) >= SIGNIFICANCE


def measure(
    settings: DelaySettings,
    runs: int,
    *,
    folder: Path | None = None,
    workers: Workers = ALONE,
    progress: Callable[[int], None] = lambda done: None,
) -> Delays:
    """Simulate `runs` runs, resuming from those in `folder`."""
    columns = ("first_miss",)
    rows = gather("delays", simulate, settings, columns, runs, folder=folder, workers=workers, progress=progress)
    return Delays(settings, tuple(int(row["first_miss"]) for row in rows))
