from mixbandit.bandits import ActingRule
from mixbandit.search import Selection
from mixbandit.storage import positive, real, record


class InverseGap(ActingRule):
    """Play each arm with probability 1/(K + gamma·gap) by its predicted gap, and the best arm otherwise."""

    kind = "InverseGap"
    schema = record({"gamma": real(positive)})
    name = "inverse-gap weighting"

    def __init__(self, gamma):
        self.gamma = gamma

    def select(self, view, offer, rng):
        mean = view.predict(offer).mean
        shares = 1.0 / (len(mean) + self.gamma * (mean.max() - mean))
        shares[mean.argmax()] += 1.0 - shares.sum()
        return Selection(shares)
