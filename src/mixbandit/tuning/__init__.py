"""Tuning: named parameters, assumptions about their values, certificates for any run, and a tuner."""

from mixbandit.tuning.assumptions import Assumptions
from mixbandit.tuning.certification import Possible, StudyCertificate, certify
from mixbandit.tuning.parameters import Categorical, Float, Int, Parameter
from mixbandit.tuning.space import Space
from mixbandit.tuning.trials import Recommendation, Told, Trial
from mixbandit.tuning.tuner import Tuner

__all__ = [
    "Assumptions",
    "Categorical",
    "Float",
    "Int",
    "Parameter",
    "Possible",
    "Recommendation",
    "Space",
    "StudyCertificate",
    "Told",
    "Trial",
    "Tuner",
    "certify",
]
