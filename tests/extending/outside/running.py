import numpy as np

import mixbandit as mb
from mixbandit.mixtures import SteppedCost
from mixbandit.storage import positive, real, record


class Running(mb.Mixture):
    """Forecasts the mean of all rewards so far, with variance c divided by how many there are."""

    kind = "Running"
    schema = record({"c": real(positive)})

    def __init__(self, c):
        self.c = c

    def cost(self, model, sigma):
        return RunningMeanCost(self.c, sigma)


class RunningMeanCost(SteppedCost):
    arrays = ("sums",)  # which files have, too

    def __init__(self, c, sigma):
        super().__init__(sigma)
        self.c, self.sums = c, np.zeros(1)

    def see(self, action, phi, reward, weight):
        mean, variance = self.sums[0] / (self.steps + 1), self.c / (self.steps + 1)
        spread = 1.0 + variance * (weight / self.sigma) ** 2
        self.add((weight * (reward - mean) / self.sigma) ** 2 / spread, spread)
        self.sums, self.steps = self.sums + reward, self.steps + 1
