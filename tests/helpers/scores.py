"""Searches and scores on feature maps and sequences, as the tests write them down."""

from mixbandit import search
from mixbandit.models import FeatureModel
from mixbandit.sets import Point


def linear(theta):
    return Point(theta)


def optimism(cs, alpha=None, exploration=1.0):
    """Centre + exploration·half-width of the intervals of a sequence."""
    return cs.moment.at(alpha).scaled(exploration)


def search_box(score, features, box, rng, **options):
    return search.search_box(score, FeatureModel(features), box, rng, **options)
