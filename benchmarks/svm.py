"""How long a support vector machine of Table 1 takes, with its kernel computed here and by scikit-learn.

    python benchmarks/svm.py [--quick]

Both fit and predict validation and test rows for the same random hyperparameters, one after the other.
"""

import sys
import time

import numpy as np
from sklearn.svm import SVC

from mixbandit import load_dataset
from mixbandit.paper.svm import PAPER_DATASETS, SvmTask


def main() -> None:
    """Print milliseconds per machine, and their ratio."""
    fits = 10 if "--quick" in sys.argv else 200
    print(f"{'data set':10s} {'ours':>8s} {'sklearn':>8s} ratio")
    for name in PAPER_DATASETS:
        data, rng = load_dataset(name), np.random.default_rng(0)
        task = SvmTask(data, np.random.default_rng(1))
        order = np.random.default_rng(1).permutation(len(data.y))
        train, rest = order[: len(order) // 2], order[len(order) // 2 :]
        X = (data.X - data.X[train].mean(axis=0)) / data.X[train].std(axis=0)
        ours = theirs = 0.0
        for _ in range(fits):
            action = rng.uniform(size=task.dim)
            started = time.perf_counter()
            task.correct(action)
            between = time.perf_counter()
            scaled = X / 10.0 ** (3.0 * action[1:] - 2.0)
            machine = SVC(C=10.0 ** (4.0 * action[0] - 2.0), gamma=0.5).fit(scaled[train], data.y[train])
            machine.predict(scaled[rest])
            ours, theirs = ours + between - started, theirs + time.perf_counter() - between
        print(f"{name:10s} {1e3 * ours / fits:8.2f} {1e3 * theirs / fits:8.2f} {theirs / ours:5.2f}")


if __name__ == "__main__":
    main()
