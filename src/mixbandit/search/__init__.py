"""Maximise a score over arms, exactly and lazily, or over a box, by gradients from many starts; prove a maximum.

A score is a function of directions: those of arms are computed once, and gradients in actions come from the model.
"""

from mixbandit.search.arms import TIE_TOLERANCE, BestArm, best_arm, best_arms, best_value
from mixbandit.search.box import QUICK, THOROUGH, BoxOptimum, Effort, search_box
from mixbandit.search.branch_and_bound import MOST_CORNERS, Reach, bound_over_box, can_bound, free_dimensions
from mixbandit.search.offers import SHARES, ArmsOffer, BoxOffer, Entropy, Offer, Selection, Selections, Shares, Stream
from mixbandit.search.scores import Advantage, InformationPerRegret, Pessimism, Score

__all__ = [
    "MOST_CORNERS",
    "QUICK",
    "SHARES",
    "THOROUGH",
    "TIE_TOLERANCE",
    "Advantage",
    "ArmsOffer",
    "BestArm",
    "BoxOffer",
    "BoxOptimum",
    "Effort",
    "Entropy",
    "InformationPerRegret",
    "Offer",
    "Pessimism",
    "Reach",
    "Score",
    "Selection",
    "Selections",
    "Shares",
    "Stream",
    "best_arm",
    "best_arms",
    "best_value",
    "bound_over_box",
    "can_bound",
    "free_dimensions",
    "search_box",
]
