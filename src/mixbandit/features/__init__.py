"""Feature maps φ: they turn an action, and a context, into the vector in which expected rewards are linear."""

from mixbandit.features.base import (
    ACTIVATIONS,
    COSINE,
    RELU,
    TANH,
    FeatureMap,
    FromCallable,
    Identity,
    Layer,
    as_feature_map,
)
from mixbandit.features.context import Disjoint, Interaction, WithConstant, features_from_state_dict
from mixbandit.features.random import RandomFourier, RandomLayer

__all__ = [
    "ACTIVATIONS",
    "COSINE",
    "RELU",
    "TANH",
    "Disjoint",
    "FeatureMap",
    "FromCallable",
    "Identity",
    "Interaction",
    "Layer",
    "RandomFourier",
    "RandomLayer",
    "WithConstant",
    "as_feature_map",
    "features_from_state_dict",
]
