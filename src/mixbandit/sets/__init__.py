"""Confidence sets as immutable values, known by their support functions."""

from mixbandit.sets.base import CASES, ConfidenceSet, Maximum
from mixbandit.sets.convex import LikelihoodSet, LocalEllipsoid, Problem
from mixbandit.sets.ellipsoid import AffineImage, Ellipsoid, RidgeEllipsoid, SpectralEllipsoid
from mixbandit.sets.likelihood import Likelihood, saturated
from mixbandit.sets.point import Point
from mixbandit.sets.residual_ball import ResidualBall, ridge_ball
from mixbandit.sets.tightest import Tightest
from mixbandit.sets.union import Union

__all__ = [
    "CASES",
    "AffineImage",
    "ConfidenceSet",
    "Ellipsoid",
    "Likelihood",
    "LikelihoodSet",
    "LocalEllipsoid",
    "Maximum",
    "Point",
    "Problem",
    "ResidualBall",
    "RidgeEllipsoid",
    "SpectralEllipsoid",
    "Tightest",
    "Union",
    "ridge_ball",
    "saturated",
]
