"""Confidence sequences: sets that hold the unknown parameter, acting through their support functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mixbandit.confidence.audit import Audit
from mixbandit.confidence.base import ConfidenceSequence, Support
from mixbandit.confidence.bayes import BayesCredible
from mixbandit.confidence.general_lambda import GeneralLambda
from mixbandit.confidence.intersection import RunningIntersection
from mixbandit.confidence.martingale import MartingaleMixture
from mixbandit.confidence.oful import OFULSequence
from mixbandit.errors import DamagedState
from mixbandit.features import FeatureMap

__all__ = [
    "Audit",
    "BayesCredible",
    "ConfidenceSequence",
    "GeneralLambda",
    "MartingaleMixture",
    "OFULSequence",
    "RunningIntersection",
    "Support",
    "sequence_from_state_dict",
]

SEQUENCES: dict[str, type[ConfidenceSequence]] = {
    kind.__name__: kind for kind in (MartingaleMixture, GeneralLambda, OFULSequence, BayesCredible)
}


def sequence_from_state_dict(state: Mapping[str, Any], features: FeatureMap | int | None = None) -> ConfidenceSequence:
    """The sequence of whatever kind that `state_dict` described."""
    kind = SEQUENCES.get(str(state.get("type")))
    if kind is None:
        raise DamagedState(f"unknown kind of confidence sequence: {state.get('type')!r}")
    return kind.from_state_dict(state, features)
