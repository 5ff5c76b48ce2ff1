"""What scikit-learn keeps to itself, behind one module: the base of its searches, and how they fit and score.

Other libraries' searches stand on the same names. Callbacks (`set_callbacks`) are there from scikit-learn 1.9 on.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Sequence
from typing import Any

from sklearn.base import _fit_context
from sklearn.model_selection._search import BaseSearchCV, _yield_masked_array_for_each_param
from sklearn.model_selection._validation import (
    _fit_and_score,
    _insert_error_scores,
    _warn_or_raise_about_fit_failures,
)
from sklearn.utils.validation import _check_method_params

__all__ = [
    "BaseSearchCV",
    "FitCallbacks",
    "Outcome",
    "checked_fit",
    "fit_and_score",
    "fit_parameters",
    "parameter_columns",
    "scorers_by_name",
    "settle_failures",
]

Outcome = dict[str, Any]
"""What one fit returned: `test_scores`, a number or a dict of them, `train_scores`, `fit_time`, `score_time`."""

checked_fit = _fit_context(prefer_skip_nested_validation=False)
"""Decorates `fit`: scikit-learn's own parameters are checked first, and callbacks end when it ends."""

fit_and_score = _fit_and_score
parameter_columns = _yield_masked_array_for_each_param
_TAKES_CALLBACKS = "callback_ctx" in inspect.signature(_fit_and_score).parameters


def fit_parameters(X: Any, given: dict[str, Any]) -> dict[str, Any]:
    """What was passed to `fit` beyond X and y, with lists that belong to rows made indexable."""
    checked: dict[str, Any] = _check_method_params(X, params=given)
    return checked


def settle_failures(outcomes: Sequence[Outcome], scoring: Any, error_score: Any) -> None:
    """Warn about failed fits, or raise if all of them failed, and give failures the form of other outcomes."""
    _warn_or_raise_about_fit_failures(list(outcomes), error_score)
    if callable(scoring):
        _insert_error_scores(outcomes, error_score)


def scorers_by_name(scorers: Any) -> Any:
    """Several scorers as a dict of them; a single one as it is."""
    return getattr(scorers, "_scorers", scorers)


class FitCallbacks:
    """Tells the callbacks of a search what happens; nothing where scikit-learn has no callbacks."""

    def __init__(self, search: BaseSearchCV, X: Any, y: Any, weights: Any) -> None:
        self._search, self._known = search, {"estimator": search, "X": X, "y": y}
        self._known["metadata"] = None if weights is None else {"sample_weight": weights}
        self._root: Any = None
        self._fits: Any = None

    def begin(self, fits: int) -> None:
        """A search of this many model fits at most begins."""
        if not _TAKES_CALLBACKS:
            return
        tasks = 1 + (self._search.refit is not False)
        self._root = self._search._init_callback_context(max_subtasks=tasks)
        self._root.call_on_fit_task_begin(**self._known)
        search = self._root.subcontext(task_name="search", max_subtasks=fits, sequential_subtasks=False)
        self._fits = search.call_on_fit_task_begin(estimator=self._search)

    def of_fit(self, number: int) -> dict[str, Any]:
        """Arguments of `fit_and_score` for one fit."""
        if self._fits is None:
            return {}
        context = self._fits.subcontext(task_name="candidate-split-evaluation", task_id=number)
        return {"caller": self._search, "callback_ctx": context}

    def searched(self) -> None:
        if self._fits is not None:
            self._fits.call_on_fit_task_end(estimator=self._search)

    @contextlib.contextmanager
    def refitting(self, estimator: Any) -> Any:
        """Around the fit of the best estimator."""
        if self._root is None:
            yield
            return
        context = self._root.subcontext(task_name="refit-with-best-params")
        with context.propagate_callback_context(estimator):
            context.call_on_fit_task_begin(**self._known)
            yield
        context.call_on_fit_task_end(**self._known)

    def end(self) -> None:
        if self._root is not None:
            self._root.call_on_fit_task_end(**self._known)
