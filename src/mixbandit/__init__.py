"""Sequential decisions with guarantees: error bars that hold at all times at once, and what acts on them."""

from mixbandit.confidence import (
    Audit,
    BayesCredible,
    ConfidenceSequence,
    GeneralLambda,
    MartingaleMixture,
    OFULSequence,
    RunningIntersection,
    Support,
)
from mixbandit.errors import (
    AssumptionsRefuted,
    AssumptionsRefutedWarning,
    DamagedState,
    InvalidInput,
    MissingDependency,
    MixbanditError,
    NotMergeable,
    NotStorable,
)
from mixbandit.features import FeatureMap, FromCallable, Identity, RandomFourier, RandomLayer
from mixbandit.forecasters import (
    Adaptive,
    Forecaster,
    FromRegressor,
    Gaussian,
    Grid,
    Linear,
    Mixture,
    Scaled,
    Standard,
)
from mixbandit.kernels import RBF, Matern

__version__ = "0.1.0"

__all__ = [
    "RBF",
    "Adaptive",
    "AssumptionsRefuted",
    "AssumptionsRefutedWarning",
    "Audit",
    "BayesCredible",
    "ConfidenceSequence",
    "DamagedState",
    "FeatureMap",
    "Forecaster",
    "FromCallable",
    "FromRegressor",
    "Gaussian",
    "GeneralLambda",
    "Grid",
    "Identity",
    "InvalidInput",
    "Linear",
    "MartingaleMixture",
    "Matern",
    "MissingDependency",
    "MixbanditError",
    "Mixture",
    "NotMergeable",
    "NotStorable",
    "OFULSequence",
    "RandomFourier",
    "RandomLayer",
    "RunningIntersection",
    "Scaled",
    "Standard",
    "Support",
    "__version__",
]
