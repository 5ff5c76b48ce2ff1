"""Sequential decisions with guarantees: error bars that hold at all times at once, and what acts on them."""

from mixbandit import regret
from mixbandit.actions import Arms, Box
from mixbandit.certificates import Certificate
from mixbandit.certify import StudyCertificate, certify
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
from mixbandit.datasets import Dataset, load_dataset
from mixbandit.environments import ChangingArms, Environment, FunctionEnvironment, LinearEnvironment, Offer
from mixbandit.errors import (
    AssumptionsMissing,
    AssumptionsRefuted,
    AssumptionsRefutedWarning,
    DamagedState,
    InvalidInput,
    MissingDependency,
    MixbanditError,
    NotMergeable,
    NotStorable,
)
from mixbandit.features import (
    Disjoint,
    FeatureMap,
    FromCallable,
    Identity,
    Interaction,
    RandomFourier,
    RandomLayer,
    WithConstant,
)
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
from mixbandit.policies import (
    AMMUCB,
    CMMUCB,
    IDS,
    OFUL,
    UCB,
    Choice,
    FreqTS,
    Greedy,
    InformationDirected,
    Policy,
    ThompsonSampling,
    Uniform,
    UniformSampling,
)
from mixbandit.records import Records
from mixbandit.regret import RegretBound
from mixbandit.runner import run, stop_when
from mixbandit.space import Categorical, Float, Int, Space
from mixbandit.state import load, save
from mixbandit.tuner import Recommendation, Told, Trial, Tuner

__version__ = "0.1.0"

__all__ = [
    "AMMUCB",
    "CMMUCB",
    "IDS",
    "OFUL",
    "RBF",
    "UCB",
    "Adaptive",
    "Arms",
    "AssumptionsMissing",
    "AssumptionsRefuted",
    "AssumptionsRefutedWarning",
    "Audit",
    "BayesCredible",
    "Box",
    "Categorical",
    "Certificate",
    "ChangingArms",
    "Choice",
    "ConfidenceSequence",
    "DamagedState",
    "Dataset",
    "Disjoint",
    "Environment",
    "FeatureMap",
    "Float",
    "Forecaster",
    "FreqTS",
    "FromCallable",
    "FromRegressor",
    "FunctionEnvironment",
    "Gaussian",
    "GeneralLambda",
    "Greedy",
    "Grid",
    "Identity",
    "InformationDirected",
    "Int",
    "Interaction",
    "InvalidInput",
    "Linear",
    "LinearEnvironment",
    "MartingaleMixture",
    "Matern",
    "MissingDependency",
    "MixbanditError",
    "Mixture",
    "NotMergeable",
    "NotStorable",
    "OFULSequence",
    "Offer",
    "Policy",
    "RandomFourier",
    "RandomLayer",
    "Recommendation",
    "Records",
    "RegretBound",
    "RunningIntersection",
    "Scaled",
    "Space",
    "Standard",
    "StudyCertificate",
    "Support",
    "ThompsonSampling",
    "Told",
    "Trial",
    "Tuner",
    "Uniform",
    "UniformSampling",
    "WithConstant",
    "__version__",
    "certify",
    "load",
    "load_dataset",
    "regret",
    "run",
    "save",
    "stop_when",
]
