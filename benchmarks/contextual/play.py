"""One player in one world: what it earned, and how long it took."""

from __future__ import annotations

import json
import time
import warnings
from collections import deque
from dataclasses import dataclass

import numpy as np

from .players import PLAYERS
from .worlds import make

COLUMNS = ("reward", "expected", "best", "last_quarter", "us")


@dataclass(frozen=True)
class Settings:
    """A player in a world. `options` are those of mixbandit's player, as JSON; rewards come `late` rounds later."""

    world: str
    player: str
    options: str = "{}"
    rounds: int = 2000
    late: int = 0

    @property
    def label(self) -> str:
        late = f", {self.late:,} late" if self.late else ""
        return f"{self.world}{late}, {self.player}{'' if self.options == '{}' else f' {self.options}'}"


def simulate(settings: Settings, repetition: int) -> tuple[str, ...]:
    """Play one repetition; the world does not depend on the player.

    Means per round: rewards, what was expected of the arms played, the most that could be expected, rewards of the
    last quarter; and microseconds of processor time.
    """
    world = make(settings.world, settings.rounds, repetition)
    waiting: deque[tuple[int, int, float]] = deque()
    earned, expected = np.empty(settings.rounds), np.empty(settings.rounds)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        player = PLAYERS[settings.player](world, repetition, **json.loads(settings.options))
        started = time.process_time()
        for t in range(settings.rounds):
            arm = player.choose(t)
            earned[t], expected[t] = world.rewards[t, arm], world.expected[t, arm]
            waiting.append((t, arm, float(earned[t])))
            if len(waiting) > settings.late:
                player.learn(*waiting.popleft())
        spent = 1e6 * (time.process_time() - started) / settings.rounds
    best = world.expected.max(axis=1).mean()
    last = earned[-(settings.rounds // 4) :].mean()
    return (*(f"{value:.6f}" for value in (earned.mean(), expected.mean(), best, last)), f"{spent:.4g}")
