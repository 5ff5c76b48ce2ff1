"""What a user adds in modules of their own: one of each, storable because it states its `kind` and its `schema`.

Most of them are files of docs/how-to/extend.md, word for word. Others are here.
"""

import math

import numpy as np

import mixbandit as mb
from mixbandit.bandits import ActingRule
from mixbandit.models import feature_model
from mixbandit.search import Selection
from mixbandit.sequences import setting, shared
from mixbandit.sequences.rules import FixedMultiplier
from mixbandit.sets import SpectralEllipsoid
from mixbandit.storage import array, finite, nonnegative, positive, real, record
from tests.extending.outside.blocks import PerArm
from tests.extending.outside.boltzmann import Boltzmann
from tests.extending.outside.epsilon_greedy import EpsilonGreedy
from tests.extending.outside.least_squares import LeastSquares
from tests.extending.outside.powers import Powers
from tests.extending.outside.prices import Prices
from tests.extending.outside.running import Running
from tests.extending.outside.shop import Shop
from tests.extending.outside.wave import Wave

__all__ = [
    "Boltzmann",
    "Cautious",
    "EpsilonGreedy",
    "LeastSquares",
    "Patient",
    "PerArm",
    "Powers",
    "Prices",
    "Running",
    "Shop",
    "Sometimes",
    "Wave",
]


class Sometimes(ActingRule):
    """Play a random action in a share of all rounds, and the largest upper bound in the others."""

    kind = "Sometimes"
    schema = record({"share": real(nonnegative)})
    name = "sometimes at random"

    def __init__(self, share):
        self.share = share

    def select(self, view, offer, rng):
        best = offer.maximise(view.belief.exact, rng).probabilities.array()
        return Selection((1.0 - self.share) * best + self.share / len(offer))


class CautiousRule(FixedMultiplier):
    """An ellipsoid around the ridge estimate, whose radius remembers the largest reward so far."""

    kind = "cautious"

    def __init__(self, model, sigma, delta, caution):
        super().__init__(model, delta)
        self.sigma, self.caution = sigma, caution

    def start(self):
        return self.model.start(0.0)

    def learn(self, data, actions, phi, rewards, weights):
        return data.learn(phi, rewards, weights, max(data.memory, float(np.abs(rewards).max())))

    def memory(self, data):
        return {"largest": data.memory, "history": np.full(data.count, data.memory)}

    def recall(self, state, data):
        return state["largest"]

    def alpha0(self, data):
        return 1.0

    def outer(self, data, alpha):
        radius = self.caution * (1.0 + data.memory) * math.sqrt(-math.log(self.delta))
        return SpectralEllipsoid(data.spectrum, alpha, radius**2)

    def stated(self):
        return f"sigma={self.sigma:g}, caution={self.caution:g}"


class Cautious(mb.ConfidenceSequence):
    kind = "Cautious"
    schema = record({**shared("sigma", "delta"), "caution": real(positive)})
    memory = record({"largest": real(finite), "history": array(None)})
    advice = "state more caution"
    sigma = setting("moment.rule.sigma", "The stated noise level.")
    caution = setting("moment.rule.caution", "The factor on the radius.")

    def __init__(self, features, *, sigma, delta=0.05, caution=1.0):
        super().__init__(CautiousRule(feature_model(features, "Cautious"), sigma, delta, caution))


class Patient(mb.UCB):
    kind = "Patient"
