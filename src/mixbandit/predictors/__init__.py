"""Predictors: what a policy acts on. Nothing is proven about them, and nothing proven rests on them."""

from mixbandit.predictors.base import Prediction, Predictor
from mixbandit.predictors.ridge import RidgePerArm, SharedRidge

__all__ = ["Prediction", "Predictor", "RidgePerArm", "SharedRidge"]
