"""Searches of scikit-learn, read as configurations and their scores per fold.

A search is known by its attributes: scikit-learn is never imported. All configurations are measured on the same folds.
Whether anything can be said about new rows depends on whether the list of configurations was fixed before any score was
seen: it was for a grid or a random search, it was not for halving or an Optuna search, and bare `cv_results_` do not
tell. `MixBanditSearchCV` chooses by its scores, but from a list fixed in advance if its space is finite.
"""

from __future__ import annotations

import numbers
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixbandit._checks import Array, as_float_array, as_text, shown
from mixbandit.errors import InvalidInput
from mixbandit.tuning.columns import Mask, missing
from mixbandit.tuning.runs import Run
from mixbandit.tuning.tables import Frame

_SPLIT = re.compile(r"split(\d+)_test_(.+)")
_PARAMETER = "param_"
_FIXED_LISTS = ("GridSearchCV", "RandomizedSearchCV")
_ROUND, _RESOURCES = "iter", "n_resources"  # of halving searches
_EVALUATED, _LISTED = "folds_evaluated", "n_listed_"  # of MixBanditSearchCV
_FAILED, _EARLIER = "with a failed fit", "from earlier rounds, measured on fewer rows"
_PARTIAL = "with folds that were not evaluated"
# Splitters of scikit-learn that never look at labels; those of the second line take rows in their order unless told
# otherwise.
_BLIND = (
    *("RepeatedKFold", "ShuffleSplit", "GroupShuffleSplit", "LeaveOneOut", "LeavePOut", "LeaveOneGroupOut"),
    *("LeavePGroupsOut", "KFold", "GroupKFold", "TimeSeriesSplit"),
)
_IN_ORDER = ("KFold", "TimeSeriesSplit")
# What must hold of folds where nobody knows how they were made, and where rows were taken in their order.
UNKNOWN_FOLDS = "folds that do not depend on the labels"
IN_ORDER = "rows in an order that does not depend on the labels"
_SET_ASIDE = "rows that were set aside without a look at their labels"
# Scorers that are not means over rows, by how their names begin; the `…_samples` ones are.
_NOT_MEANS = (
    *("roc_auc", "average_precision", "f1", "precision", "recall", "jaccard", "balanced_accuracy", "matthews_corrcoef"),
    *("r2", "explained_variance", "d2_", "max_error", "neg_max_error", "neg_median", "neg_root_mean", "positive_lik"),
    *("neg_negative_lik", "adjusted_", "mutual_info", "normalized_mutual", "rand_score", "homogeneity", "completeness"),
    *("v_measure", "fowlkes_mallows", "fbeta", "cohen_kappa", "root_mean", "median_absolute", "class_likelihood"),
    *("silhouette", "calinski", "davies", "consensus", "pair_confusion", "auc", "weighted"),
)


@dataclass(frozen=True)
class Strata:
    """Folds that have the same shares of classes as all rows."""

    splitter: str
    classes: int | None  # None: not known
    folds: int  # that make up all rows; 1 if a splitter does not say


@dataclass(frozen=True, eq=False)
class Measured:
    """Configurations that were all measured on the same rows, or on the same K folds of rows."""

    configurations: Sequence[Mapping[str, Any]]  # N of them
    values: Array  # (N, K)
    listed: int  # the length of the list, including configurations that were left out
    fixed_list: bool | None  # whether the list was fixed before any value was seen; None: not known
    direction: str = "maximize"
    scorer: str | None = None  # the name of scikit-learn's scorer, where it is known
    places: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, dtype=np.intp))  # (N,), rows of the results
    left_out: Mapping[str, int] = field(default_factory=dict)
    unused: Mapping[str, str] = field(default_factory=dict)
    feasible: Mask | None = None  # (N,), which are known to satisfy the constraints; None without constraints
    strata: Strata | None = None  # if folds are known to be stratified
    folds_given: str | None = None  # what must hold of how rows were split, if that is not known

    @property
    def is_a_mean(self) -> bool:
        """False if the scorer is known not to be a mean over rows."""
        name = self.scorer or ""
        return name.endswith("_samples") or not name.startswith(_NOT_MEANS)


def of_run(run: Run, fixed_list: bool | None) -> Measured:
    """A run whose trials were all measured on the same rows."""
    n = len(run.values)
    return Measured(
        run.configurations,
        run.values[:, None],
        n + sum(run.left_out.values()),
        fixed_list,
        run.direction,
        left_out=run.left_out,
        unused=run.unused,
        feasible=run.feasible,
        folds_given=_SET_ASIDE,
    )


def optuna_study_of(search: Any) -> Any:
    """The study of Optuna's `OptunaSearchCV` once it is fitted; None for anything else."""
    study = getattr(search, "study_", None)
    return study if hasattr(study, "get_trials") else None


def is_search(history: Any) -> bool:
    """Whether this is a search of scikit-learn, its `cv_results_`, or a DataFrame made of them."""
    if isinstance(history, type):
        return False
    if hasattr(history, "cv_results_") or _is_unfitted(history):
        return True
    names = Frame(history).names if Frame.is_one(history) else history if isinstance(history, Mapping) else ()
    return any(isinstance(name, str) and _SPLIT.fullmatch(name) for name in names)


def read_search(history: Any, value: str | None = None) -> Measured:
    """The configurations and scores of a search; `value` names the scorer if there are several.

    Configurations with a failed fit are left out. In a halving search, so are all but those of the last round: earlier
    ones were measured on fewer rows. In a `MixBanditSearchCV`, so are those with folds that were not evaluated.
    """
    if _is_unfitted(history):
        raise InvalidInput(f"the {type(history).__name__} has no cv_results_: fit it first")
    search = history if hasattr(history, "cv_results_") else None
    cells = _cells(history if search is None else search.cv_results_)
    metric = _metric(cells, value, getattr(search, "refit", None))
    scores = _scores(cells, metric)
    configurations = _configurations(cells, len(scores))
    left_out: dict[str, int] = {}
    fixed = True if any(name in _FIXED_LISTS for name in _kinds(search)) else None
    counts = np.ones(len(scores), dtype=np.bool_)
    if _ROUND in cells and _RESOURCES in cells:
        fixed, rounds = False, as_float_array(cells[_ROUND], _ROUND)
        counts = rounds == rounds.max()
        left_out |= _counted(_EARLIER, ~counts)
    listed = len(scores)
    if _EVALUATED in cells:
        # Of a finite list fixed in advance, bounds hold for all configurations, whichever of them were looked at.
        size = getattr(search, _LISTED, None)
        fixed, listed = size is not None, size or listed
        partial = as_float_array(cells[_EVALUATED], _EVALUATED) < scores.shape[1]
        left_out |= _counted(_PARTIAL, partial)
        counts &= ~partial
    failed = np.isnan(scores).any(axis=1)
    left_out |= _counted(_FAILED, counts & failed)
    counts &= ~failed
    if not counts.any():
        raise InvalidInput(f"none of the {len(scores)} configurations has a score in every fold: all fits failed")
    return Measured(
        [configurations[i] for i in np.flatnonzero(counts)],
        scores[counts],
        listed,
        fixed,
        scorer=_scorer(search, metric),
        places=np.flatnonzero(counts),
        left_out=left_out,
        strata=_strata(search, scores.shape[1]),
        folds_given=_folds_given(search),
    )


def _strata(search: Any, splits: int) -> Strata | None:
    """How folds are stratified, if they are: by the splitter, or by default for a classifier."""
    if search is None:
        return None
    cv = getattr(search, "cv", None)
    classes = _classes(search)
    if cv is None or isinstance(cv, numbers.Integral):
        # scikit-learn stratifies by default if the estimator is a classifier and y has classes.
        return (
            Strata("StratifiedKFold", classes, splits) if _is_classifier(getattr(search, "estimator", None)) else None
        )
    named = [kind for kind in _kinds(cv) if "Stratified" in kind]
    if not named:
        return None
    options = getattr(cv, "cvargs", {})  # of repeated splitters
    folds = options.get("n_splits", getattr(cv, "n_splits", 1)) if isinstance(options, Mapping) else 1
    return Strata(named[0], classes, 1 if "Shuffle" in named[0] else min(int(folds), splits))


def _folds_given(search: Any) -> str | None:
    """What must hold of the folds: a list of splits may have been made by the labels, as may a user's own splitter."""
    if search is None:
        return UNKNOWN_FOLDS
    cv = getattr(search, "cv", None)
    if cv is None or isinstance(cv, numbers.Integral):
        return None if _is_classifier(getattr(search, "estimator", None)) else IN_ORDER
    kind = type(cv)
    if not kind.__module__.startswith("sklearn."):
        return UNKNOWN_FOLDS
    if kind.__name__ in _IN_ORDER and not getattr(cv, "shuffle", False):
        return IN_ORDER
    return None if kind.__name__ in _BLIND or "Stratified" in kind.__name__ else UNKNOWN_FOLDS


def _classes(search: Any) -> int | None:
    """The number of classes that the refitted model knows; None without one."""
    found = getattr(getattr(search, "best_estimator_", None), "classes_", None)
    return len(found) if isinstance(found, np.ndarray) and found.ndim == 1 else None


def _is_classifier(estimator: Any) -> bool:
    tags = getattr(estimator, "__sklearn_tags__", None)
    kind = getattr(tags(), "estimator_type", None) if callable(tags) else None
    kind = kind or getattr(estimator, "_estimator_type", None)  # of older ones
    return kind == "classifier" or "ClassifierMixin" in _kinds(estimator)


def _kinds(search: Any) -> list[str]:
    return [kind.__name__ for kind in type(search).__mro__]


def _is_unfitted(history: Any) -> bool:
    is_kind = any(name.endswith("SearchCV") for name in _kinds(history))
    return is_kind and not hasattr(history, "cv_results_") and optuna_study_of(history) is None


def _cells(results: Any) -> dict[str, Any]:
    """The columns of `cv_results_`, given as a dict or a DataFrame."""
    if Frame.is_one(results):
        table = Frame(results)
        return {name: table.cells(name) for name in table.names}
    if not isinstance(results, Mapping):
        raise InvalidInput(f"cv_results_ must be a dict of columns or a DataFrame, got {shown(results)}")
    return {str(name): column for name, column in results.items()}


def _metric(cells: Mapping[str, Any], value: Any, refit: Any) -> str:
    found = [match[2] for name in cells if (match := _SPLIT.fullmatch(name)) and match[1] == "0"]
    listed = ", ".join(map(repr, found))
    if not found:
        raise InvalidInput("cv_results_ has no column split0_test_…: the scores of the folds are needed")
    if value is not None:
        if as_text(value, "value") not in found:
            raise InvalidInput(f"cv_results_ has no scorer {shown(value)}; it has {listed}")
        return str(value)
    if len(found) == 1:
        return found[0]
    if isinstance(refit, str) and refit in found:
        return refit
    raise InvalidInput(f"cv_results_ has several scorers, {listed}: name one, as in value={found[0]!r}")


def _scores(cells: Mapping[str, Any], metric: str) -> Array:
    """The scores (N, K)."""
    columns: list[Array] = []
    while (name := f"split{len(columns)}_test_{metric}") in cells:
        columns.append(np.ravel(as_float_array(cells[name], name)))
    lengths = {len(column) for column in columns}
    if lengths == {0} or len(lengths) > 1:
        raise InvalidInput(f"the columns split…_test_{metric} must be of one length ≥ 1, got {sorted(lengths)}")
    return np.stack(columns, axis=1)


def _configurations(cells: Mapping[str, Any], rows: int) -> list[dict[str, Any]]:
    """The parameters exactly as given, or by their columns where a file made text of them."""
    given = list(cells.get("params", ()))
    if len(given) == rows and all(isinstance(cell, Mapping) for cell in given):
        return [dict(cell) for cell in given]
    columns = {name.removeprefix(_PARAMETER): list(c) for name, c in cells.items() if name.startswith(_PARAMETER)}
    if not columns or any(len(column) != rows for column in columns.values()):
        raise InvalidInput(
            f"cv_results_ must have a column 'params' of {rows} dicts, or columns param_…; got {shown(given)}"
        )
    return [{name: c[i] for name, c in columns.items() if not _absent(c[i])} for i in range(rows)]


def _absent(cell: Any) -> bool:
    return cell is np.ma.masked or missing(cell)


def _scorer(search: Any, metric: str) -> str | None:
    """The scorer's name: that of scikit-learn's scorer or function, or what a regressor's own `score` is.

    Of `cv_results_` alone it is the metric's, which may be any word; of a user's own function it is not known.
    """
    scoring = getattr(search, "scoring", None)
    if search is None or isinstance(scoring, list | tuple | set):
        return metric
    if isinstance(scoring, Mapping):
        scoring = scoring.get(metric)
    if isinstance(scoring, str):
        return scoring
    if scoring is None:
        return "r2" if is_regressor(getattr(search, "estimator", None)) else None
    function = getattr(scoring, "_score_func", None)
    if not str(getattr(function, "__module__", "")).startswith("sklearn."):
        return None
    name = str(getattr(function, "__name__", ""))
    settings = getattr(scoring, "_kwargs", None)
    by_rows = isinstance(settings, Mapping) and settings.get("average") == "samples"
    return f"weighted {name}" if is_weighted(scoring) else f"{name}_samples" if by_rows else name


def is_weighted(scorer: Any) -> bool:
    """Whether a scorer asks for weights of rows: then its score is no mean of as many results as there are rows."""
    asked = getattr(getattr(scorer, "_metadata_request", None), "score", None)
    return (getattr(asked, "requests", None) or {}).get("sample_weight") not in (None, False)


def is_regressor(estimator: Any) -> bool:
    """Whether scikit-learn takes this for a regressor."""
    tags = getattr(estimator, "__sklearn_tags__", None)
    kind = getattr(tags(), "estimator_type", None) if callable(tags) else None
    return kind == "regressor" or "RegressorMixin" in _kinds(estimator)


def _counted(reason: str, which: Mask) -> dict[str, int]:
    return {reason: int(which.sum())} if which.any() else {}
