"""Mixtures. Each is a forecaster: it predicts a mean and a variance for a reward before the reward is seen."""

from mixbandit.mixtures.adaptive import Adaptive
from mixbandit.mixtures.bank import MOST_RESULTS, TRIALS, Bank, BoundedPrequential, Trials, log_predictive
from mixbandit.mixtures.base import COST, Cost, Forecaster, Mixture, RunningCost, SteppedCost
from mixbandit.mixtures.gaussian import Gaussian
from mixbandit.mixtures.grid import Grid, as_cost
from mixbandit.mixtures.linear import Linear, LinearCost, LinearMixture, Scaled, Standard, log_det
from mixbandit.mixtures.pooled import Pool, PooledCost
from mixbandit.mixtures.prequential import FromRegressor, Prequential
from mixbandit.mixtures.semi_adaptive import SemiAdaptive

__all__ = [
    "COST",
    "MOST_RESULTS",
    "TRIALS",
    "Adaptive",
    "Bank",
    "BoundedPrequential",
    "Cost",
    "Forecaster",
    "FromRegressor",
    "Gaussian",
    "Grid",
    "Linear",
    "LinearCost",
    "LinearMixture",
    "Mixture",
    "Pool",
    "PooledCost",
    "Prequential",
    "RunningCost",
    "Scaled",
    "SemiAdaptive",
    "Standard",
    "SteppedCost",
    "Trials",
    "as_cost",
    "log_det",
    "log_predictive",
]
