"""Maximise a score over arms, exactly and lazily, or over a box, by gradients from many starts at once.

A score is a function of feature vectors, so that features of arms are computed once and gradients in actions
come from the feature map.
"""

from mixbandit.acquisition.arms import TIE_TOLERANCE, BestArm, best_arm
from mixbandit.acquisition.box import QUICK, THOROUGH, BoxOptimum, Effort, search_box
from mixbandit.acquisition.fields import ArmsField, BoxField, Field, Found
from mixbandit.acquisition.scores import Advantage, Linear, Optimism, Pessimism, Score

__all__ = [
    "QUICK",
    "THOROUGH",
    "TIE_TOLERANCE",
    "Advantage",
    "ArmsField",
    "BestArm",
    "BoxField",
    "BoxOptimum",
    "Effort",
    "Field",
    "Found",
    "Linear",
    "Optimism",
    "Pessimism",
    "Score",
    "best_arm",
    "search_box",
]
