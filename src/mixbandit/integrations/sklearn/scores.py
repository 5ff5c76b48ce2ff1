"""Scores of folds: which of several counts, and the range that they lie in."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from sklearn.base import ClassifierMixin
from sklearn.pipeline import Pipeline

from mixbandit._checks import as_number
from mixbandit.errors import InvalidInput

Range = tuple[float, float]
# Scorers in [0, 1], by how their names begin.
_SHARES = (
    *("accuracy", "balanced_accuracy", "top_k_accuracy", "average_precision", "f1", "precision", "recall", "jaccard"),
    *("roc_auc", "rand_score", "homogeneity_score", "completeness_score", "v_measure_score", "normalized_mutual_info"),
    "fowlkes_mallows_score",
)


def range_of_scores(estimator: Any, scoring: Any, metric: str) -> Range | None:
    """The range of a scorer that is known by name, or that is the accuracy of a classifier; None if it is not known."""
    if isinstance(scoring, Mapping):
        scoring = scoring.get(metric)
    elif isinstance(scoring, list | tuple | set):
        scoring = metric
    if isinstance(scoring, str):
        return (0.0, 1.0) if scoring.startswith(_SHARES) else None
    while isinstance(estimator, Pipeline) and estimator.steps:  # its score is that of its last step
        estimator = estimator.steps[-1][1]
    own = getattr(type(estimator), "score", None)
    return (0.0, 1.0) if scoring is None and own is ClassifierMixin.score else None


def checked_score(given: Any, stated: Range | None, name: str = "the score of a fold") -> float:
    """The score as a float, if it is a failure or lies in the range that was stated."""
    score = as_number(given, name)  # scikit-learn lets complex numbers pass
    if stated is not None and math.isfinite(score) and not stated[0] <= score <= stated[1]:
        raise InvalidInput(
            f"{name} is {score:g}, outside reward_range=({stated[0]:g}, {stated[1]:g}), which must contain the score "
            "of every fold; note that scikit-learn's losses are negative"
        )
    return score
