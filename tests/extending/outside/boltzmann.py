import numpy as np

from mixbandit.bandits import ActingRule
from mixbandit.search import Selection
from mixbandit.storage import positive, real, record


class Boltzmann(ActingRule):
    """Play each arm with a probability that grows exponentially with its predicted mean."""

    kind = "Boltzmann"
    schema = record({"heat": real(positive)})
    name = "Boltzmann exploration"

    def __init__(self, heat):
        self.heat = heat

    def select(self, view, offer, rng):
        mean = view.predict(offer).mean
        weights = np.exp((mean - mean.max()) / self.heat)
        return Selection(weights / weights.sum())
