"""The held-out tasks: three kinds of classifiers on three data sets of scikit-learn.

A table holds the accuracy of every configuration of a grid on the rows that were not trained on, as a mean over random
halves of the data. Fitting a classifier for every trial of every tuner and seed would take days; and a mean over
splits is what tuning is after, while a single split is part of the noise.

    python -m benchmarks.tuning.tables      fits what is missing in tables/
"""

from __future__ import annotations

import csv
import itertools
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mixbandit import Categorical, Float, Int, Space
from mixbandit.paper.store import write_table

FOLDER = Path(__file__).parent / "tables"
SPLITS = 4
DATASETS = ("breast_cancer", "wine", "digits")


@dataclass(frozen=True)
class Table:
    """A classifier's space, the values of each parameter that are tried, and how to make one."""

    dataset: str
    space: Space
    grid: Mapping[str, Sequence[Any]]
    classifier: Callable[[dict[str, Any], int], Any]


def _svm(parameters: dict[str, Any], seed: int) -> Any:
    from sklearn.svm import SVC

    return SVC(**parameters)


def _forest(parameters: dict[str, Any], seed: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(n_estimators=25, random_state=seed, **parameters)


def _boosting(parameters: dict[str, Any], seed: int) -> Any:
    from sklearn.ensemble import GradientBoostingClassifier

    return GradientBoostingClassifier(n_estimators=20, max_features="sqrt", random_state=seed, **parameters)


_KINDS: dict[str, tuple[Space, dict[str, Sequence[Any]], Callable[[dict[str, Any], int], Any]]] = {
    "svm": (
        Space(
            {
                "C": Float(1e-2, 1e3, log=True),
                "gamma": Float(1e-4, 1e1, log=True),
                "kernel": Categorical(["rbf", "poly", "sigmoid"]),
            }
        ),
        {
            "C": [1e-2 * 10 ** (5 * i / 12) for i in range(13)],
            "gamma": [1e-4 * 10 ** (5 * i / 12) for i in range(13)],
            "kernel": ["rbf", "poly", "sigmoid"],
        },
        _svm,
    ),
    "forest": (
        Space(
            {
                "max_features": Float(0.05, 1.0),
                "max_depth": Int(1, 12),
                "min_samples_leaf": Int(1, 32, log=True),
                "criterion": Categorical(["gini", "entropy"]),
            }
        ),
        {
            "max_features": [0.05, 0.1, 0.2, 0.4, 0.7, 1.0],
            "max_depth": [1, 2, 3, 4, 6, 8, 12],
            "min_samples_leaf": [1, 2, 4, 8, 16, 32],
            "criterion": ["gini", "entropy"],
        },
        _forest,
    ),
    "boosting": (
        Space({"learning_rate": Float(1e-2, 1.0, log=True), "max_depth": Int(1, 6), "subsample": Float(0.2, 1.0)}),
        {
            "learning_rate": [1e-2 * 10 ** (2 * i / 8) for i in range(9)],
            "max_depth": [1, 2, 3, 4, 5, 6],
            "subsample": [0.2, 0.4, 0.7, 1.0],
        },
        _boosting,
    ),
}
TABLES = {f"{kind}-{dataset}": Table(dataset, *parts) for dataset in DATASETS for kind, parts in _KINDS.items()}


def load_table(name: str) -> dict[tuple[Any, ...], float]:
    """Accuracies by configuration, its values in the order of the space."""
    table = TABLES[name]
    with (FOLDER / f"{name}.csv").open(newline="") as file:
        rows = csv.reader(line for line in file if not line.startswith("#"))
        header = next(rows)
        if header != [*table.space, "accuracy"]:
            raise ValueError(f"{name}.csv has the columns {header}")
        accuracies = [float(row[-1]) for row in rows]
    return dict(zip(itertools.product(*(table.grid[n] for n in table.space)), accuracies, strict=True))


def compute(name: str) -> None:
    """Fit every configuration of a table on every split."""
    from sklearn import datasets
    from threadpoolctl import threadpool_limits

    table = TABLES[name]
    X, y = getattr(datasets, f"load_{table.dataset}")(return_X_y=True)
    half, rows = len(y) // 2, []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for values in itertools.product(*(table.grid[n] for n in table.space)):
            parameters, accuracies = dict(zip(table.space, values, strict=True)), []
            for split in range(SPLITS):
                order = np.random.default_rng(split).permutation(len(y))
                train, rest = order[:half], order[half:]
                spread = X[train].std(axis=0)
                scaled = (X - X[train].mean(axis=0)) / np.where(spread > 0, spread, 1.0)
                model = table.classifier(parameters, split).fit(scaled[train], y[train])
                accuracies.append((model.predict(scaled[rest]) == y[rest]).mean())
            rows.append([*(f"{v:.6g}" if isinstance(v, float) else v for v in values), f"{np.mean(accuracies):.6f}"])
    columns = [*table.space, "accuracy"]
    write_table(FOLDER / f"{name}.csv", columns, rows, command="python -m benchmarks.tuning.tables", splits=SPLITS)


def main() -> None:
    """Compute the missing tables."""
    FOLDER.mkdir(exist_ok=True)
    for name in TABLES:
        if not (FOLDER / f"{name}.csv").exists():
            print(name, flush=True)
            compute(name)


if __name__ == "__main__":
    main()
