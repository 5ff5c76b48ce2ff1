import numpy as np

import mixbandit as mb
from mixbandit.storage import integer, record


class Powers(mb.FeatureMap):
    """(a, a², …) of one number."""

    kind = "Powers"
    schema = record({"dim": integer(1, 10)})
    dim_in = 1

    def __init__(self, dim):
        self.dim = dim

    def evaluate(self, actions):
        return actions ** np.arange(1, self.dim + 1)

    def pullback(self, actions, v):
        n = np.arange(1, self.dim + 1)
        return (v * n * actions ** (n - 1)).sum(axis=1, keepdims=True)
