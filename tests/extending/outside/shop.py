import numpy as np

import mixbandit as mb


class Shop(mb.Environment):
    """Customers buy at one of several prices; the demand falls with the price, and falls off in winter."""

    def __init__(self, prices, seed=0):
        self.actions, self.seed = mb.Arms(np.asarray(prices, dtype=float)[:, None]), seed

    def _demand(self, t, price):
        return np.exp(-price) * (0.75 + 0.25 * np.cos(0.02 * t))

    def expected(self, t, choice):
        return float(choice.action[0] * self._demand(t, choice.action[0]))

    def reward(self, t, choice):
        sold = np.random.default_rng([self.seed, t]).random() < self._demand(t, choice.action[0])
        return float(choice.action[0] * sold)

    def best(self, t):
        prices = self.actions.actions[:, 0]
        return float((prices * self._demand(t, prices)).max())

    def fingerprint(self):
        return {**super().fingerprint(), "seed": self.seed}
