"""Searches and scores on feature maps and sequences, as the tests write them down."""

from mixbandit import search
from mixbandit.bandits import Optimism
from mixbandit.models import FeatureModel
from mixbandit.sets import Point


def linear(theta):
    return Point(theta)


def optimism(cs, alpha=None, exploration=1.0):
    """Estimate + exploration·(upper bound − estimate) of a sequence."""
    return Optimism(alpha, exploration).score(cs.moment)


def search_box(score, features, box, rng, **options):
    return search.search_box(score, FeatureModel(features), box, rng, **options)
