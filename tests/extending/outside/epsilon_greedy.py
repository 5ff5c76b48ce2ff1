from typing import NamedTuple

import numpy as np


class Play(NamedTuple):
    action: np.ndarray
    arm: int


class EpsilonGreedy:
    """The best mean so far, and in a share of all rounds any arm."""

    def __init__(self, arms, epsilon, rng):
        self.epsilon, self.rng = epsilon, np.random.default_rng(rng)
        self.counts, self.sums = np.zeros(arms), np.zeros(arms)

    def ask(self, arms):
        means = np.divide(self.sums, self.counts, out=np.full(len(self.sums), np.inf), where=self.counts > 0)
        arm = self.rng.integers(len(means)) if self.rng.random() < self.epsilon else means.argmax()
        return Play(arms.actions[arm], arm)

    def tell(self, play, reward):
        self.counts[play.arm] += 1
        self.sums[play.arm] += reward
