"""Confidence sequences: sets that hold the unknown parameter, acting through their support functions."""

from mixbandit.confidence.base import ConfidenceSequence, Support
from mixbandit.confidence.bayes import BayesCredible
from mixbandit.confidence.martingale import MartingaleMixture
from mixbandit.confidence.oful import OFULSequence

__all__ = ["BayesCredible", "ConfidenceSequence", "MartingaleMixture", "OFULSequence", "Support"]
