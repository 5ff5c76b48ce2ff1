"""What a contextual bandit predicts with unless it is told. benchmarks/contextual chose it, on development tables."""

from __future__ import annotations

from mixbandit.predictors.base import Predictor
from mixbandit.predictors.cosines import CosinesPerArm
from mixbandit.predictors.ensemble import Ensemble
from mixbandit.predictors.ridge import RidgePerArm, SharedRidge

# A matrix of this size for each of more arms would take too much time and memory.
_MOST_ARMS = 100
_COSINES = 60
# Cosines must earn their weight: early on they predict as well as a line does, and rank arms worse.
_PRIOR = (0.4995, 0.4995, 0.001)


def default_predictor(arms: int, *, described: bool) -> Predictor:
    """For this many arms, which have features or not (`described`)."""
    if described:
        return SharedRidge()
    light = RidgePerArm(ridge=1.0)
    if arms > _MOST_ARMS:
        return light
    return Ensemble([light, RidgePerArm(ridge=30.0), CosinesPerArm(_COSINES)], prior=_PRIOR)
