"""`cv_results_`: the columns of scikit-learn's searches, for configurations of which some folds were not evaluated.

Means and standard deviations are over the folds that were evaluated; `folds_evaluated` says how many they are, and
other folds are NaN. Ranks put configurations with all folds first: only their means are known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from mixbandit._checks import Array
from mixbandit.integrations.sklearn.base import Outcome, parameter_columns
from mixbandit.integrations.sklearn.race import Pull

FOLDS = "folds_evaluated"
Results = dict[str, Any]


def results_of(
    configurations: Sequence[Mapping[str, Any]], folds: int, pulls: Sequence[Pull], outcomes: Sequence[Outcome]
) -> Results:
    """The table of all configurations; a pull and its outcome are at the same place."""
    shape = len(configurations), folds
    done = np.zeros(shape, dtype=np.bool_)
    for pull in pulls:
        done[pull] = True

    def table(values: Sequence[Any]) -> Array:
        cells = np.full(shape, np.nan)
        for pull, value in zip(pulls, values, strict=True):
            cells[pull] = float(value)
        return cells

    found: Results = {}
    for name in ("fit_time", "score_time"):
        found |= _summary(name, table([outcome[name] for outcome in outcomes]), done)
    found |= dict(parameter_columns(configurations))
    found["params"] = [dict(configuration) for configuration in configurations]
    found[FOLDS] = done.sum(axis=1)
    for kind in ("test", "train"):
        if f"{kind}_scores" not in outcomes[0]:
            continue
        for metric, values in _by_metric([outcome[f"{kind}_scores"] for outcome in outcomes]).items():
            cells, name = table(values), f"{kind}_{metric}"
            found |= {f"split{fold}_{name}": cells[:, fold] for fold in range(folds)}
            found |= _summary(name, cells, done)
            if kind == "test":
                found[f"rank_{name}"] = ranks(found[f"mean_{name}"], np.asarray(done.all(axis=1)))
    return found


def ranks(means: Array, complete: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Ranks by mean, complete configurations before others; those without a mean share the last place."""
    if np.isnan(means).all():
        return np.ones(len(means), dtype=np.int32)
    found = np.empty(len(means), dtype=np.int32)
    first = 0
    for which in (complete & ~np.isnan(means), ~complete & ~np.isnan(means), np.isnan(means)):
        found[which] = first + rankdata(-np.nan_to_num(means[which]), method="min")
        first += int(which.sum())
    return found


def complete_only(results: Results, folds: int) -> tuple[Results, NDArray[np.intp]]:
    """The rows of configurations with all folds, all rows if there are none, and where they are in the table."""
    complete = np.flatnonzero(results[FOLDS] == folds)
    places = complete if len(complete) else np.arange(len(results[FOLDS]))
    rows = {
        name: [column[i] for i in places] if isinstance(column, list) else column[places]
        for name, column in results.items()
    }
    return rows, places


def _by_metric(scores: Sequence[Any]) -> dict[str, list[Any]]:
    if isinstance(scores[0], dict):
        return {metric: [score[metric] for score in scores] for metric in scores[0]}
    return {"score": list(scores)}


def _summary(name: str, cells: Array, done: NDArray[np.bool_]) -> dict[str, Array]:
    """Mean and standard deviation over the evaluated folds; NaN if one of these failed."""
    means = np.mean(cells, axis=1, where=done)
    return {f"mean_{name}": means, f"std_{name}": np.std(cells, axis=1, where=done)}
