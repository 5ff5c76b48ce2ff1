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
from mixbandit.features.contexts import Context, ContextFeatures, contexts_of
from mixbandit.features.named import NamedContexts
from mixbandit.features.random import RandomFourier, RandomLayer
from mixbandit.features.transformed import (
    MappedContexts,
    TransformedContexts,
    as_context_features,
    context_features_from,
)

__all__ = [
    "ACTIVATIONS",
    "COSINE",
    "RELU",
    "TANH",
    "Context",
    "ContextFeatures",
    "Disjoint",
    "FeatureMap",
    "FromCallable",
    "Identity",
    "Interaction",
    "Layer",
    "MappedContexts",
    "NamedContexts",
    "RandomFourier",
    "RandomLayer",
    "TransformedContexts",
    "WithConstant",
    "as_context_features",
    "as_feature_map",
    "context_features_from",
    "contexts_of",
    "features_from_state_dict",
]
