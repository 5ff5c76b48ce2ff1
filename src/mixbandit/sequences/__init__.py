"""Confidence sequences: sets that contain the unknown parameter at all times, used via their support functions."""

from mixbandit.sequences.base import (
    SEQUENCE,
    ConfidenceSequence,
    ResidualBallSequence,
    Support,
    sequence_from_state_dict,
    sequence_kinds,
    setting,
)
from mixbandit.sequences.bayes import BayesCredible
from mixbandit.sequences.bounded import BoundedMixture
from mixbandit.sequences.igp import IGPSequence
from mixbandit.sequences.intersection import RunningIntersection
from mixbandit.sequences.kernel import KernelMixture
from mixbandit.sequences.martingale import MartingaleMixture
from mixbandit.sequences.moment import MERGED, Moment, seen_refuted
from mixbandit.sequences.oful import OFULSequence
from mixbandit.sequences.refutation import Audit
from mixbandit.sequences.unknown_noise import UnknownNoise

__all__ = [
    "MERGED",
    "SEQUENCE",
    "Audit",
    "BayesCredible",
    "BoundedMixture",
    "ConfidenceSequence",
    "IGPSequence",
    "KernelMixture",
    "MartingaleMixture",
    "Moment",
    "OFULSequence",
    "ResidualBallSequence",
    "RunningIntersection",
    "Support",
    "UnknownNoise",
    "seen_refuted",
    "sequence_from_state_dict",
    "sequence_kinds",
    "setting",
]
