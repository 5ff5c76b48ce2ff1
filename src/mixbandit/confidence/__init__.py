"""Confidence sequences: sets that hold the unknown parameter, acting through their support functions."""

from mixbandit.confidence.audit import Audit
from mixbandit.confidence.base import ConfidenceSequence, Support
from mixbandit.confidence.bayes import BayesCredible
from mixbandit.confidence.general_lambda import GeneralLambda
from mixbandit.confidence.intersection import RunningIntersection
from mixbandit.confidence.martingale import MartingaleMixture
from mixbandit.confidence.oful import OFULSequence

__all__ = [
    "Audit",
    "BayesCredible",
    "ConfidenceSequence",
    "GeneralLambda",
    "MartingaleMixture",
    "OFULSequence",
    "RunningIntersection",
    "Support",
]
