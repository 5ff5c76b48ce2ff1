"""Tuning: named parameters, assumptions about their values, certificates for any run, and a tuner."""

from mixbandit.tuning.assumptions import Assumptions
from mixbandit.tuning.certification import certify
from mixbandit.tuning.fitted import certify_fitted
from mixbandit.tuning.fixed_rows import certify_finalists
from mixbandit.tuning.guaranteed import best_guaranteed
from mixbandit.tuning.list_certificate import ListCertificate
from mixbandit.tuning.parameters import Categorical, Float, Int, Parameter
from mixbandit.tuning.possible import Possible
from mixbandit.tuning.space import Space
from mixbandit.tuning.study_certificate import StudyCertificate
from mixbandit.tuning.trials import Recommendation, Told, Trial
from mixbandit.tuning.tuner import Tuner

__all__ = [
    "Assumptions",
    "Categorical",
    "Float",
    "Int",
    "ListCertificate",
    "Parameter",
    "Possible",
    "Recommendation",
    "Space",
    "StudyCertificate",
    "Told",
    "Trial",
    "Tuner",
    "best_guaranteed",
    "certify",
    "certify_finalists",
    "certify_fitted",
]
