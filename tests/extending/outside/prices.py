import math
from dataclasses import dataclass

import numpy as np

import mixbandit as mb
from mixbandit.models import FeatureModel, feature_model
from mixbandit.sequences import MartingaleRule, ResidualBallSequence, Response, setting, shared
from mixbandit.storage import record


@dataclass(frozen=True)
class Exponential(Response):
    """Expected rewards are exp(φᵀθ), in a stated range."""

    range: tuple[float, float]

    def reward(self, index):
        return np.exp(index)

    def slope(self, index):
        return np.exp(index)

    def difference(self, index):  # e^i − e^(i − index) = e^i (1 − e^−index), and e^i is at most the end of the range
        return self.range[1] * (1.0 - math.exp(-max(index, 0.0)))


class OfLogarithms(FeatureModel):
    claim = "the logarithm of the expected reward is linear in the features"
    given = "a logarithm of expected rewards that is linear in the features"


class LogRule(MartingaleRule):
    """Learns ln r + σ²/2, whose mean is ln E r if ln r has Gaussian noise of standard deviation σ."""

    theories = ()

    def learn(self, data, actions, phi, rewards, weights):
        if not (rewards > 0.0).all():
            raise mb.InvalidInput(f"rewards must be positive, got {rewards.min()}")
        return super().learn(data, actions, phi, np.log(rewards) + 0.5 * self.sigma**2, weights)


class Prices(ResidualBallSequence):
    """Error bars for rewards whose noise multiplies them, such as prices and waiting times."""

    kind = "Prices"
    schema = record(shared("sigma", "norm_bound", "delta", "reward_range"))
    memory = mb.MartingaleMixture.memory
    sigma = setting("moment.rule.sigma", "The standard deviation of logarithms.")

    def __init__(self, features, *, sigma, norm_bound, reward_range, delta=0.05):
        model = OfLogarithms(feature_model(features, "Prices").features)
        rule = LogRule(model, sigma, norm_bound, delta, mb.Standard(), 0.0)
        super().__init__(rule, Exponential(reward_range), "raise")
