"""What a user adds in a module of their own: one of each, storable because it states its `kind` and its `schema`."""

import math

import numpy as np

import mixbandit as mb
from mixbandit.bandits import ActingRule
from mixbandit.mixtures import SteppedCost
from mixbandit.models import feature_model
from mixbandit.search import Selection
from mixbandit.sequences import setting, shared
from mixbandit.sequences.rules import FixedMultiplier
from mixbandit.sets import SpectralEllipsoid
from mixbandit.storage import array, finite, integer, nonnegative, positive, real, record


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


class Wave(mb.Kernel):
    """cos(frequency·(a − b)), for actions that are one number."""

    kind = "Wave"
    schema = record({"frequency": real(positive)})
    dim_in = 1
    constant_diagonal = True

    def __init__(self, frequency):
        self.frequency = positive(frequency, "frequency")

    def matrix(self, A, B):
        return np.cos(self.frequency * (A - B.T))

    def diagonal(self, A):
        return np.ones(len(A))

    def pullback(self, A, B, weights):
        slope = -self.frequency * np.sin(self.frequency * (A - B.T))
        return (weights * slope).sum(axis=1, keepdims=True)

    def diagonal_pullback(self, A):
        return np.zeros(A.shape)


class Running(mb.Mixture):
    """Forecasts the mean of all rewards so far, with variance c divided by how many there are."""

    kind = "Running"
    schema = record({"c": real(positive)})

    def __init__(self, c):
        self.c = c

    def cost(self, model, sigma):
        return RunningMeanCost(self.c, sigma)


class RunningMeanCost(SteppedCost):
    _arrays = ("_sums",)  # which files have, too

    def __init__(self, c, sigma):
        super().__init__(sigma)
        self.c, self._sums = c, np.zeros(1)

    def _see(self, action, phi, reward, weight):
        mean, variance = self._sums[0] / (self._steps + 1), self.c / (self._steps + 1)
        spread = 1.0 + variance * (weight / self.sigma) ** 2
        self._add((weight * (reward - mean) / self.sigma) ** 2 / spread, spread)
        self._sums, self._steps = self._sums + reward, self._steps + 1


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
