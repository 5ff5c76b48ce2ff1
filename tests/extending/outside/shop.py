import numpy as np

import mixbandit as mb


class Shop(mb.Environment):
    """Customers who buy at a price with probability exp(−price); the reward is what they pay."""

    def __init__(self, prices, seed=0):
        self.actions, self.seed = mb.Arms(np.asarray(prices, dtype=float)[:, None]), seed

    def reward(self, t, choice):
        (price,) = choice.action
        return float(price * (np.random.default_rng([self.seed, t]).random() < np.exp(-price)))

    def expected(self, t, choice):
        (price,) = choice.action
        return float(price * np.exp(-price))

    def best(self, t):
        prices = self.actions.actions[:, 0]
        return float((prices * np.exp(-prices)).max())

    def fingerprint(self):  # a checkpoint continues in this environment only
        return {**super().fingerprint(), "seed": self.seed}
