"""Confidence sequences: sets that contain the unknown parameter at all times, used via their support functions."""

from mixbandit._lazy import setting
from mixbandit.sequences.base import (
    ConfidenceSequence,
    OwnHome,
    ResidualBallSequence,
    Support,
    shared,
)
from mixbandit.sequences.bayes import BayesCredible
from mixbandit.sequences.belief import Belief, Multiplier
from mixbandit.sequences.blocks import ArmIntervals, Blocks
from mixbandit.sequences.bounded import BoundedMixture
from mixbandit.sequences.igp import IGPSequence
from mixbandit.sequences.intersection import RunningIntersection
from mixbandit.sequences.kernel import KernelMixture
from mixbandit.sequences.learning import Rewards, checked_again, checked_rewards, learnt
from mixbandit.sequences.martingale import MartingaleMixture, MartingaleRule
from mixbandit.sequences.moment import MERGED, Moment, as_moment
from mixbandit.sequences.oful import OFULSequence
from mixbandit.sequences.own import BeliefSequence
from mixbandit.sequences.refutation import Audit
from mixbandit.sequences.response import Affine, Response
from mixbandit.sequences.unknown_noise import UnknownNoise

__all__ = [
    "MERGED",
    "Affine",
    "ArmIntervals",
    "Audit",
    "BayesCredible",
    "Belief",
    "BeliefSequence",
    "Blocks",
    "BoundedMixture",
    "ConfidenceSequence",
    "IGPSequence",
    "KernelMixture",
    "MartingaleMixture",
    "MartingaleRule",
    "Moment",
    "Multiplier",
    "OFULSequence",
    "OwnHome",
    "ResidualBallSequence",
    "Response",
    "Rewards",
    "RunningIntersection",
    "Support",
    "UnknownNoise",
    "as_moment",
    "checked_again",
    "checked_rewards",
    "learnt",
    "setting",
    "shared",
]
