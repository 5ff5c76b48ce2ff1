"""Sequential decisions with guarantees: error bars that hold at all times at once, and what acts on them."""

from mixbandit.confidence import (
    BayesCredible,
    ConfidenceSequence,
    MartingaleMixture,
    OFULSequence,
    Support,
)
from mixbandit.errors import (
    AssumptionsRefuted,
    AssumptionsRefutedWarning,
    DamagedState,
    InvalidInput,
    MissingDependency,
    MixbanditError,
)
from mixbandit.features import FeatureMap, FromCallable, Identity, RandomFourier, RandomLayer
from mixbandit.forecasters import Forecaster, Linear, Mixture, Scaled, Standard

__version__ = "0.1.0"

__all__ = [
    "AssumptionsRefuted",
    "AssumptionsRefutedWarning",
    "BayesCredible",
    "ConfidenceSequence",
    "DamagedState",
    "FeatureMap",
    "Forecaster",
    "FromCallable",
    "Identity",
    "InvalidInput",
    "Linear",
    "MartingaleMixture",
    "MissingDependency",
    "MixbanditError",
    "Mixture",
    "OFULSequence",
    "RandomFourier",
    "RandomLayer",
    "Scaled",
    "Standard",
    "Support",
    "__version__",
]
