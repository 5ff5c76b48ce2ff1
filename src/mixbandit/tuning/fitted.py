"""Certificates for fitted classifiers on fresh rows: the step from any search to the model that will be used.

Nothing here imports scikit-learn: a model is whatever has `predict`, and a search whatever also has `best_params_`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixbandit._checks import shown
from mixbandit.errors import STATEMENTS, InvalidInput
from mixbandit.tuning.assumptions import Assumptions
from mixbandit.tuning.fixed_rows import finalists_on_fresh_rows
from mixbandit.tuning.list_certificate import ListCertificate
from mixbandit.tuning.searches import is_regressor


def certify_fitted(model: Any, X: Any, y: ArrayLike, delta: float = 0.05) -> ListCertificate:
    """Certify the accuracy of one or several fitted classifiers on rows that were never used before.

    `model` is a fitted classifier, pipeline or search (GridSearchCV, MixBanditSearchCV, …), or a dict of these by name.
    `X` and `y` are fresh rows: independent draws of what the model will meet, used neither for training nor for
    choosing anything. Each of k models gets the exact binomial interval at δ/k, and all hold together with
    probability ≥ 1 − `delta`.

    The certificate is about the models as fitted now. Use a set of rows once: after a model was chosen on them, they
    are no longer fresh.
    """
    known = Assumptions(reward_range=(0.0, 1.0), delta=delta)
    models = _named(model)
    labels = _labels(y)
    measured = [(parameters, float(_hits(each, X, labels).mean()), len(labels)) for parameters, each in models]
    found = finalists_on_fresh_rows(measured, known, yes_or_no=True)
    went_by = getattr(model, "scoring", None)
    other = {} if went_by in (None, "accuracy") else {"scoring": f"{shown(went_by)}: this is about accuracy"}
    return dataclasses.replace(found, measure="accuracy", unused=other)


def _named(model: Any) -> list[tuple[Mapping[str, Any], Any]]:
    """Models and what to call them: by their names, the parameters that a search chose, or their class."""
    if isinstance(model, Mapping):
        if not model:
            raise InvalidInput("model must be a fitted classifier or a dict of them, got an empty dict")
        return [({"model": str(name)}, _checked(each)) for name, each in model.items()]
    best = getattr(_checked(model), "best_params_", None)
    return [(dict(best) if isinstance(best, Mapping) else {"model": type(model).__name__}, model)]


def _checked(model: Any) -> Any:
    if isinstance(model, type) or not callable(getattr(model, "predict", None)):
        raise InvalidInput(
            f"model must be a fitted classifier, one with predict, or a dict of them; got {shown(model)}"
        )
    if is_regressor(model):
        raise InvalidInput(
            f"{type(model).__name__} is a regressor, and R² is not a mean over rows: measure a score whose noise "
            f"level you know, and pass it to mb.certify_finalists([(parameters, value)], sigma=…); {STATEMENTS}"
        )
    return model


def _labels(y: ArrayLike) -> NDArray[Any]:
    try:
        labels = np.asarray(y)
    except Exception as error:  # ragged lists, and objects that raise anything
        raise InvalidInput(f"y must be a vector with one label per row: {error}") from error
    if labels.ndim != 1 or not len(labels):
        raise InvalidInput(f"y must be a vector with one label per row, got {shown(y)}")
    if labels.dtype.kind in "fc" and not np.isfinite(labels).all():
        raise InvalidInput(f"y must have no missing labels, got {shown(y)}")
    return labels


def _hits(model: Any, X: Any, labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Which rows the model gets right."""
    try:
        predicted = np.asarray(model.predict(X))
    except Exception as error:
        raise InvalidInput(f"{type(model).__name__} cannot predict these rows: {error}") from error
    if predicted.shape != labels.shape:
        raise InvalidInput(
            f"there must be a prediction for every label: got predictions of shape {predicted.shape} and {len(labels)} "
            "labels"
        )
    possible = getattr(model, "classes_", None)
    if not set(labels.tolist()) & set(np.asarray(predicted if possible is None else possible).tolist()):
        raise InvalidInput(f"no label in y is a class of {type(model).__name__}: y begins with {shown(labels[:3])}")
    return np.asarray(predicted == labels, dtype=np.bool_)
