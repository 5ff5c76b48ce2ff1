"""Confidence sets as immutable values, known by their support functions."""

from mixbandit.sets.base import CASES, ConfidenceSet, Maximum
from mixbandit.sets.directions import length
from mixbandit.sets.ellipsoid import AffineImage, Ellipsoid, RidgeEllipsoid, SpectralEllipsoid
from mixbandit.sets.point import Point
from mixbandit.sets.residual_ball import ResidualBall, ridge_ball

__all__ = [
    "CASES",
    "AffineImage",
    "ConfidenceSet",
    "Ellipsoid",
    "Maximum",
    "Point",
    "ResidualBall",
    "RidgeEllipsoid",
    "SpectralEllipsoid",
    "length",
    "ridge_ball",
]
