"""Sequential decisions with guarantees: anytime-valid error bars for linear models, and policies that act on them.

What users need first is here; the rest is in the submodules `features`, `means`, `mixtures`, `sequences`, `bandits`,
`tuning`, `simulate`, `regret` and `errors`. Names that version 0.1.0 exported here still work.
"""

import importlib
from typing import Any

from mixbandit import regret
from mixbandit.actions import Arms, Box
from mixbandit.bandits import AMMUCB, CMMUCB, IDS, OFUL, UCB, FreqTS, rules
from mixbandit.bandits.contextual import ContextualBandit, Control
from mixbandit.certificates import Certificate
from mixbandit.errors import (
    AssumptionsMissing,
    AssumptionsRefuted,
    AssumptionsRefutedWarning,
    InvalidInput,
    MixbanditError,
    RowsMissingWarning,
    SamplesMissingWarning,
)
from mixbandit.features import RandomFourier
from mixbandit.means import MeanComparison, MeanSequence, compare_means
from mixbandit.mixtures import Adaptive, Gaussian, Grid, Linear, Scaled, SemiAdaptive, Standard
from mixbandit.paper.general_lambda import GeneralLambda
from mixbandit.reporting import report
from mixbandit.saving import load, save
from mixbandit.sequences import (
    BayesCredible,
    Blocks,
    BoundedMixture,
    IGPSequence,
    KernelMixture,
    MartingaleMixture,
    OFULSequence,
    UnknownNoise,
)
from mixbandit.sharding import learn_in_shards
from mixbandit.simulate import run
from mixbandit.tuning import (
    Assumptions,
    Categorical,
    Float,
    Int,
    Space,
    Tuner,
    best_guaranteed,
    certify,
    certify_finalists,
    certify_fitted,
)

__version__ = "0.2.0.dev0"

__all__ = [
    "AMMUCB",
    "CMMUCB",
    "IDS",
    "OFUL",
    "UCB",
    "Adaptive",
    "Arms",
    "Assumptions",
    "AssumptionsMissing",
    "AssumptionsRefuted",
    "AssumptionsRefutedWarning",
    "BayesCredible",
    "Blocks",
    "BoundedMixture",
    "Box",
    "Categorical",
    "Certificate",
    "ContextualBandit",
    "Control",
    "Float",
    "FreqTS",
    "Gaussian",
    "GeneralLambda",
    "Grid",
    "IGPSequence",
    "Int",
    "InvalidInput",
    "KernelMixture",
    "Linear",
    "MartingaleMixture",
    "MeanComparison",
    "MeanSequence",
    "MixbanditError",
    "OFULSequence",
    "RandomFourier",
    "RowsMissingWarning",
    "SamplesMissingWarning",
    "Scaled",
    "SemiAdaptive",
    "Space",
    "Standard",
    "Tuner",
    "UnknownNoise",
    "__version__",
    "best_guaranteed",
    "certify",
    "certify_finalists",
    "certify_fitted",
    "compare_means",
    "learn_in_shards",
    "load",
    "regret",
    "report",
    "rules",
    "run",
    "save",
]

# Where to find other names, among them all that version 0.1.0 exported here.
_ELSEWHERE = {
    "errors": ("DamagedState", "MissingDependency", "NoTheory", "NotMergeable", "NotStorable"),
    "features": (
        "Disjoint",
        "FeatureMap",
        "FromCallable",
        "Identity",
        "Interaction",
        "NamedContexts",
        "RandomLayer",
        "TransformedContexts",
        "WithConstant",
    ),
    "kernels": (
        "RBF",
        "ConditionalKernel",
        "ConstantKernel",
        "Kernel",
        "LinearKernel",
        "Matern",
        "OnColumns",
        "OverlapKernel",
        "PolynomialKernel",
        "ProductKernel",
        "SklearnKernel",
        "SumKernel",
    ),
    "mixtures": ("Bank", "Forecaster", "FromRegressor", "Mixture"),
    "sequences": ("Audit", "ConfidenceSequence", "RunningIntersection", "Support"),
    "regret": ("RegretBound",),
    "spending": ("Spending",),
    "bandits": (
        "Choice",
        "Greedy",
        "InformationDirected",
        "Policy",
        "ThompsonSampling",
        "Uniform",
        "UniformSampling",
    ),
    "tuning": ("ListCertificate", "Recommendation", "StudyCertificate", "Told", "Trial"),
    "integrations.sklearn": ("MixBanditSearchCV",),
    "simulate": (
        "ChangingArms",
        "Environment",
        "FunctionEnvironment",
        "LinearEnvironment",
        "Offer",
        "Records",
        "stop_when",
    ),
    "paper.datasets": ("Dataset", "load_dataset"),
}
_MODULES = {name: module for module, names in _ELSEWHERE.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'mixbandit' has no attribute {name!r}")
    return getattr(importlib.import_module(f"mixbandit.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
