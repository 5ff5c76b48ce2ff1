"""Confidence sets as immutable values, known by their support functions."""

from mixbandit.sets.arms import Product, RidgeEllipsoids
from mixbandit.sets.base import CASES, INFORMATIVE, Ball, ConfidenceSet, Form, Maximum, Searched
from mixbandit.sets.convex import LikelihoodSet, LocalEllipsoid, Problem
from mixbandit.sets.ellipsoid import AffineImage, Ellipsoid, RidgeEllipsoid, SpectralEllipsoid
from mixbandit.sets.from_maximum import FromMaximum
from mixbandit.sets.krylov import typical_multiplier
from mixbandit.sets.krylov_ball import KrylovBall
from mixbandit.sets.likelihood import Likelihood, saturated
from mixbandit.sets.point import Point
from mixbandit.sets.projected import Near
from mixbandit.sets.residual_ball import ResidualBall, ridge_ball
from mixbandit.sets.tightest import Tightest
from mixbandit.sets.union import Union

__all__ = [
    "CASES",
    "INFORMATIVE",
    "AffineImage",
    "Ball",
    "ConfidenceSet",
    "Ellipsoid",
    "Form",
    "FromMaximum",
    "KrylovBall",
    "Likelihood",
    "LikelihoodSet",
    "LocalEllipsoid",
    "Maximum",
    "Near",
    "Point",
    "Problem",
    "Product",
    "ResidualBall",
    "RidgeEllipsoid",
    "RidgeEllipsoids",
    "Searched",
    "SpectralEllipsoid",
    "Tightest",
    "Union",
    "ridge_ball",
    "saturated",
    "typical_multiplier",
]
