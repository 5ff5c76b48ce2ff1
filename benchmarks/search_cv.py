"""`MixBanditSearchCV` beside scikit-learn's random and halving searches, at equal numbers of model fits.

    python benchmarks/search_cv.py [--quick] [--out docs/results/search_cv]

Five tasks, 20 seeds each. A seed draws the rows to search on, the folds and the search's random numbers. Every search
has 50 model fits in five-fold cross-validation: ten configurations at random; seven, and then the best three of them,
with halving, which spends the first fits on fewer rows; and one fold at a time with `MixBanditSearchCV`. `true` is the
score of the refitted model on rows that no search saw: accuracy, or R² for `friedman`. The folder has all runs
(runs.csv), written after each of them, and their differences in pairs of the same task and seed (gains.csv). A run that
is there is not repeated; delete the file to start again.
"""

import argparse
import csv
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import loguniform, randint, uniform
from sklearn.datasets import load_breast_cancer, load_digits, make_classification, make_friedman1, make_moons
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import HalvingRandomSearchCV, KFold, RandomizedSearchCV, StratifiedKFold, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.tree import DecisionTreeClassifier

import mixbandit as mb
from mixbandit.paper.store import write_table

FOLDS, CONFIGURATIONS, SEEDS = 5, 10, 20
FITS = FOLDS * CONFIGURATIONS
HALVED = 7  # configurations of the halving search, then three of them: also 50 fits
UNSEEN = 5_000  # rows that generated tasks are judged by
METHODS = ("MixBanditSearchCV", "RandomizedSearchCV", "HalvingRandomSearchCV")
COLUMNS = ["task", "seed", "method", "fits", "estimated", "true"]
DIFFERENCES = ["task", "other search", "pairs", "MixBanditSearchCV", "the other", "difference"]
Data = tuple[Any, Any, Any, Any]


class Task(NamedTuple):
    """Something to tune: rows to search on and to judge by, a model, and what can be chosen."""

    data: Callable[[int], Data]
    model: Callable[[], Any]
    space: dict[str, Any]
    classes: bool = True


def _drawn(made: Callable[..., Any], rows: int, **options: Any) -> Callable[[int], Data]:
    def data(seed: int) -> Data:
        X, y = made(n_samples=rows + UNSEEN, random_state=seed, **options)
        return X[:rows], X[rows:], y[:rows], y[rows:]

    return data


def _split(loaded: Callable[..., Any], rows: int) -> Callable[[int], Data]:
    def data(seed: int) -> Data:
        X, y = loaded(return_X_y=True)
        X, X_unseen, y, y_unseen = train_test_split(X, y, train_size=rows, stratify=y, random_state=seed)
        return X, X_unseen, y, y_unseen

    return data


KERNEL = {"C": loguniform(1e-2, 1e3), "gamma": loguniform(1e-5, 1e1)}
TASKS = {
    "digits": Task(_split(load_digits, 500), SVC, {"C": loguniform(1e-2, 1e3), "gamma": loguniform(1e-5, 1e-1)}),
    "cancer": Task(
        _split(load_breast_cancer, 250),
        lambda: make_pipeline(StandardScaler(), KNeighborsClassifier()),
        {
            "kneighborsclassifier__n_neighbors": randint(1, 60),
            "kneighborsclassifier__weights": ["uniform", "distance"],
            "kneighborsclassifier__p": uniform(1, 3),
        },
    ),
    "moons": Task(_drawn(make_moons, 300, noise=0.3), SVC, KERNEL),
    "classes": Task(
        _drawn(make_classification, 600, n_features=12, n_informative=5, n_classes=3, flip_y=0.05),
        lambda: DecisionTreeClassifier(random_state=0),
        {
            "max_depth": randint(1, 16),
            "min_samples_leaf": randint(1, 60),
            "ccp_alpha": loguniform(1e-4, 1e-1),
            "criterion": ["gini", "entropy"],
        },
    ),
    "friedman": Task(
        _drawn(make_friedman1, 300, noise=1.0),
        lambda: make_pipeline(StandardScaler(), SVR()),
        {"svr__C": loguniform(1e-2, 1e3), "svr__gamma": loguniform(1e-4, 1e1), "svr__epsilon": loguniform(1e-2, 1e0)},
        classes=False,
    ),
}


def searches(task: Task, seed: int) -> dict[str, Any]:
    """The three searches, with the same folds."""
    kind = StratifiedKFold if task.classes else KFold
    known = {"cv": kind(FOLDS, shuffle=True, random_state=seed), "random_state": seed}
    return {
        "MixBanditSearchCV": mb.MixBanditSearchCV(task.model(), task.space, n_trials=FITS, **known),
        "RandomizedSearchCV": RandomizedSearchCV(task.model(), task.space, n_iter=CONFIGURATIONS, **known),
        "HalvingRandomSearchCV": HalvingRandomSearchCV(task.model(), task.space, n_candidates=HALVED, **known),
    }


def played(name: str, seed: int, method: str) -> list[Any]:
    """One run, as a row of the table."""
    task = TASKS[name]
    X, X_unseen, y, y_unseen = task.data(seed)
    search = searches(task, seed)[method]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scores of halving's smallest subsets are not always defined
        search.fit(X, y)
    results = search.cv_results_
    fits = int(np.sum(results["folds_evaluated"])) if "folds_evaluated" in results else FOLDS * len(results["params"])
    return [name, seed, method, fits, round(float(search.best_score_), 5), round(search.score(X_unseen, y_unseen), 5)]


def known_runs(path: Path | None) -> dict[tuple[str, str, str], list[str]]:
    """The runs in the table, by task, seed and method."""
    if path is None or not path.exists():
        return {}
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return {(row[0], row[1], row[2]): row for row in list(csv.reader(lines))[1:]}


def gains(rows: list[list[Any]]) -> list[list[Any]]:
    """How much better the recommended setting is on rows that no search saw, in pairs of the same task and seed."""
    true = {(row[0], int(row[1]), row[2]): float(row[5]) for row in rows}
    found: list[list[Any]] = []
    for other in ("RandomizedSearchCV", "HalvingRandomSearchCV"):
        for task in (*TASKS, "all"):
            pairs = [(t, s) for t, s, method in true if method == other and task in (t, "all")]
            mine, theirs = (
                np.array([true[(*pair, method)] for pair in pairs]) for method in ("MixBanditSearchCV", other)
            )
            error = (mine - theirs).std(ddof=1) / np.sqrt(len(pairs)) if len(pairs) > 1 else np.nan
            difference = f"{(mine - theirs).mean():+.4f} ± {error:.4f}"
            found.append([task, other, len(pairs), f"{mine.mean():.4f}", f"{theirs.mean():.4f}", difference])
    return found


def main() -> None:
    """Play what is missing, print and write what was seen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one seed, to see that it works")
    parser.add_argument("--out", type=Path, default=None, help="a folder for runs.csv and gains.csv")
    options = parser.parse_args()
    command = {"command": "python benchmarks/search_cv.py --out docs/results/search_cv"}
    known, rows = known_runs(None if options.out is None else options.out / "runs.csv"), list[list[Any]]()
    seeds = range(1 if options.quick else SEEDS)
    wanted = [(name, seed, method) for name in TASKS for seed in seeds for method in METHODS]
    for i, (name, seed, method) in enumerate(wanted, 1):
        done = known.get((name, str(seed), method))
        rows.append(done or played(name, seed, method))
        if done is None:
            print(f"[{i}/{len(wanted)}]", *rows[-1], flush=True)
            if options.out is not None:
                write_table(options.out / "runs.csv", COLUMNS, rows, **command)
    table = gains(rows)
    for row in table:
        print(*row, sep=", ")
    if options.out is not None:
        write_table(options.out / "gains.csv", DIFFERENCES, table, **command)


if __name__ == "__main__":
    main()
