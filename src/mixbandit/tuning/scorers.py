"""Which score a fitted search went by, read from its attributes: scikit-learn is never imported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mixbandit._checks import as_text, shown
from mixbandit.errors import STATEMENTS, InvalidInput
from mixbandit.tuning.measures import MEASURES
from mixbandit.tuning.searches import is_regressor, is_weighted

# scikit-learn's functions, by name: the measure, and the sign that a scorer must give it.
_FUNCTIONS = {
    "accuracy_score": ("accuracy", 1),
    "balanced_accuracy_score": ("balanced_accuracy", 1),
    "precision_score": ("precision", 1),
    "recall_score": ("recall", 1),
    "f1_score": ("f1", 1),
    "jaccard_score": ("jaccard", 1),
    "roc_auc_score": ("roc_auc", 1),
    "brier_score_loss": ("neg_brier_score", -1),
    "log_loss": ("neg_log_loss", -1),
    "mean_squared_error": ("neg_mean_squared_error", -1),
    "mean_absolute_error": ("neg_mean_absolute_error", -1),
}
# Settings of those functions that change nothing here.
_DEFAULTS: dict[str, Any] = {
    **{"normalize": True, "average": "binary", "adjusted": False, "sample_weight": None, "labels": None},
    **{"max_fpr": None, "multi_class": "raise", "scale_by_half": "auto", "multioutput": "uniform_average"},
}

Score = tuple[str, Any, tuple[str, ...] | None]
"""The name of a measure, the positive class, and the methods that answer, None for the usual ones."""


def score_of(scoring: Any) -> Score:
    """The measure of a scorer, or of its name."""
    if isinstance(scoring, str):
        name = as_text(scoring, "scoring")
        if name not in MEASURES:
            raise _unsupported(f"scoring={shown(scoring)}")
        return name, None, None
    function = getattr(scoring, "_score_func", None)
    name = getattr(function, "__name__", "")
    if name not in _FUNCTIONS or not str(getattr(function, "__module__", "")).startswith("sklearn."):
        raise _unsupported(f"the scorer {shown(scoring)}")
    if is_weighted(scoring):
        raise InvalidInput(f"no bound is known for scores of weighted rows, as {shown(scoring)}; state another score")
    measure, sign = _FUNCTIONS[name]
    if getattr(scoring, "_sign", sign) != sign:
        raise InvalidInput(f"the scorer {shown(scoring)} has the wrong sign: greater_is_better must be {sign > 0}")
    settings = dict(getattr(scoring, "_kwargs", None) or {})
    positive = settings.pop("pos_label", None)
    settings.pop("zero_division", None)
    if any(_DEFAULTS.get(key, value) is not value and _DEFAULTS.get(key) != value for key, value in settings.items()):
        raise _unsupported(f"the scorer {shown(scoring)}")
    unknown = settings.keys() - _DEFAULTS.keys()
    methods = getattr(scoring, "_response_method", "predict")
    methods = (methods,) if isinstance(methods, str) else tuple(methods)
    if unknown or not set(methods) <= set(MEASURES[measure].methods):
        raise _unsupported(f"the scorer {shown(scoring)}")
    return measure, positive, methods


def went_by(model: Any) -> Score | None:
    """What a search went by, None for a model that was not searched for."""
    while (steps := getattr(model, "steps", None)) and isinstance(steps, list):
        model = steps[-1][1]  # a pipeline's score is that of its last step
    scorer, scoring = getattr(model, "scorer_", None), getattr(model, "scoring", None)
    if isinstance(scorer, Mapping):
        refit = getattr(model, "refit", None)
        if not isinstance(refit, str) or refit not in scorer:
            raise InvalidInput(f"the {type(model).__name__} has several scorers: state one, as in scoring='accuracy'")
        scorer = scorer[refit]
    own = getattr(scorer, "_estimator", None) if scoring is None else None
    if scoring is None and (scorer is None or own is not None):
        return _own_score(getattr(model, "best_estimator_", own)) if hasattr(model, "best_params_") else None
    if not hasattr(model, "best_params_") and scoring == "loss":  # of early stopping
        return None
    return score_of(scorer if hasattr(scorer, "_score_func") or callable(scorer) else scoring)


def _own_score(estimator: Any) -> Score:
    """The default `score` of an estimator, which a search without `scoring` goes by."""
    if (nested := went_by(estimator)) is not None:
        return nested
    while (steps := getattr(estimator, "steps", None)) and isinstance(steps, list):
        estimator = steps[-1][1]
    refuse_regressor(estimator)
    method = getattr(type(estimator), "score", None)
    if method is not None and not str(getattr(method, "__module__", "")).startswith("sklearn."):
        raise _unsupported(f"the method score of {type(estimator).__name__}")
    return "accuracy", None, None


def refuse_regressor(model: Any) -> None:
    """Refuse to take the score of a regressor for accuracy."""
    if is_regressor(model):
        raise InvalidInput(
            f"{type(model).__name__} is a regressor, and R², its own score, is not a mean over rows and has no bound: "
            "state scoring='neg_mean_squared_error' or 'neg_mean_absolute_error', and reward_range=(0, high), which "
            f"contains every single loss; {STATEMENTS}"
        )


def _unsupported(what: str) -> InvalidInput:
    return InvalidInput(
        f"no bound is known for {what}; state another score, as in scoring='accuracy'. Supported are "
        f"{', '.join(map(repr, MEASURES))}, and scikit-learn's scorers of these; {STATEMENTS}"
    )
