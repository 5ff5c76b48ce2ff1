"""Predictors: what a policy acts on. Nothing is proven about them, and nothing proven rests on them."""

from mixbandit.predictors.base import (
    Prediction,
    Predictor,
    Scored,
    checked_contributions,
    checked_prediction,
)
from mixbandit.predictors.cosines import CosinesPerArm
from mixbandit.predictors.ensemble import Ensemble
from mixbandit.predictors.ridge import RidgePerArm, SharedRidge

__all__ = [
    "CosinesPerArm",
    "Ensemble",
    "Prediction",
    "Predictor",
    "RidgePerArm",
    "Scored",
    "SharedRidge",
    "checked_contributions",
    "checked_prediction",
]
