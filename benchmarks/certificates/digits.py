"""Handwritten digits: C and gamma of a support vector machine, whose accuracy on a pool of rows is known exactly."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC

from mixbandit import Float, Space

from .accuracies import Task
from .functions import Configuration, value_at

# Of 1,797 rows in an order shuffled with seed 0 the first 797 train, and the other 1,000 are the pool.
TRAINING, SEED = 797, 0
C, GAMMA = Float(1e-2, 1e3, log=True), Float(1e-4, 10.0, log=True)
# The best accuracy is taken to be that on a grid of so many values of each parameter.
GRID = 21


@functools.cache
def digits() -> Task:
    """60 trials of 300 rows drawn from the pool with replacement: as many results that are 1 with its accuracy."""
    values = [[value_at(parameter, i / (GRID - 1)) for i in range(GRID)] for parameter in (C, GAMMA)]
    best, c, gamma = max((accuracy(c, gamma), c, gamma) for c, gamma in itertools.product(*values))
    space, best_at = Space({"C": C, "gamma": GAMMA}), {"C": c, "gamma": gamma}
    return Task("digits", space, _of, best, best_at, samples=300, trials=60)


def _of(configuration: Configuration) -> float:
    return accuracy(configuration["C"], configuration["gamma"])


@functools.cache
def accuracy(c: float, gamma: float) -> float:
    """The share of the pool that is classified correctly."""
    X, y, training, pool = rows()
    machine = make_pipeline(MinMaxScaler(), SVC(C=c, gamma=gamma)).fit(X[training], y[training])
    return float(machine.score(X[pool], y[pool]))


@functools.cache
def rows() -> tuple[Any, Any, Any, Any]:
    """Inputs, labels, and which rows train and which are the pool."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(SEED).permutation(len(y))
    return X, y, order[:TRAINING], order[TRAINING:]
