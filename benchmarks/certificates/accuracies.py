"""Eight tasks whose expected accuracy is known at every configuration, two each with a best of .80, .90, .95 and .99.

They were written down before any certificate of them was looked at. In every task parameters differ in how much they
matter, two of them interact, and one has a plateau, where changing it costs nearly nothing. z is where a number lies
relative to that of the best configuration, in positions: from 0 to 1 between the ends of its range, on its scale. The
penalty of a configuration is zero at the best one alone and positive elsewhere, so that the largest accuracy is exact.
"""

from __future__ import annotations

import functools
import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mixbandit import Categorical, Float, Int, Space

from .functions import Configuration, positions


@dataclass(frozen=True)
class Task:
    """An expected accuracy for every configuration, and how it is measured and tuned."""

    name: str
    space: Space
    of: Callable[[Configuration], float]
    best: float
    best_at: Configuration
    samples: int = 100  # results per value
    trials: int = 100
    confirmations: int = 20

    def __call__(self, configuration: Configuration) -> float:
        return self.of(configuration)

    def rng(self, seed: int, stream: int) -> np.random.Generator:
        """A stream of random numbers of this task and seed."""
        return np.random.default_rng((seed, stream, zlib.crc32(self.name.encode())))

    def measured(self, configuration: Configuration, rng: np.random.Generator) -> float:
        """The mean of fresh results that are 0 or 1."""
        return float(rng.binomial(self.samples, self(configuration))) / self.samples


@functools.cache
def tasks() -> dict[str, Task]:
    """All tasks by name, in the order of their best accuracies."""
    made = (_forest(), _text(), _boosting(), _machine(), _network(), _components(), _vectors(), _convolution())
    return {task.name: task for task in made}


def exponential(best: float, worst: float) -> Callable[[float], float]:
    """Accuracy falls off as exp(−penalty) does, quickly at first."""
    return lambda penalty: worst + (best - worst) * math.exp(-penalty)


def logistic(best: float, worst: float) -> Callable[[float], float]:
    """The log-odds of accuracy, between the worst and 1, fall with the penalty: slowly at first if the best is high."""
    odds = (best - worst) / (1.0 - best)
    return lambda penalty: worst + (1.0 - worst) * odds / (odds + math.exp(penalty))


def _task(
    name: str,
    space: Space,
    best_at: Configuration,
    best: float,
    accuracy: Callable[[float], float],
    penalty: Callable[[dict[str, float], Configuration], float],
) -> Task:
    there = positions(space, best_at)

    def of(configuration: Configuration) -> float:
        u = positions(space, configuration)
        return accuracy(penalty({name: u[name] - there[name] for name in u}, configuration))

    return Task(name, space, of, best, best_at)


# ---- best accuracy .80


def _forest() -> Task:
    space = Space({"trees": Int(10, 1000, log=True), "depth": Int(2, 20), "share": Float(0.1, 1.0)})

    def penalty(z: dict[str, float], _: Configuration) -> float:
        # More trees never hurt, and the last hundreds hardly help.
        return 1.2 * z["trees"] ** 4 + 2.5 * (z["depth"] + 0.5 * z["share"]) ** 2 + 0.4 * z["share"] ** 2

    best_at = {"trees": 1000, "depth": 15, "share": 0.3}
    return _task("80-forest", space, best_at, 0.80, exponential(0.80, 0.55), penalty)


def _text() -> Task:
    space = Space({"C": Float(1e-4, 1e4, log=True), "l1": Float(0.0, 1.0)})

    def penalty(z: dict[str, float], _: Configuration) -> float:
        return 0.5 * (z["C"] / 0.4) ** 4 + 0.7 * (z["l1"] - 0.5 * z["C"]) ** 2

    return _task("80-text", space, {"C": 0.05, "l1": 0.85}, 0.80, logistic(0.80, 0.4), penalty)


# ---- .90


def _boosting() -> Task:
    space = Space(
        {
            "rate": Float(1e-3, 1.0, log=True),
            "trees": Int(10, 2000, log=True),
            "depth": Int(1, 12),
            "subsample": Float(0.3, 1.0),
        }
    )

    def penalty(z: dict[str, float], _: Configuration) -> float:
        # Fewer trees need a higher rate.
        together = 4.0 * (z["rate"] + 0.7 * z["trees"]) ** 2 + 0.8 * z["trees"] ** 2
        return together + 1.2 * z["depth"] ** 2 + 0.6 * z["subsample"] ** 4

    best_at = {"rate": 0.02, "trees": 700, "depth": 4, "subsample": 0.8}
    return _task("90-boosting", space, best_at, 0.90, exponential(0.90, 0.6), penalty)


def _machine() -> Task:
    space = Space(
        {
            "kernel": Categorical(["rbf", "poly", "linear"]),
            "C": Float(1e-3, 1e3, log=True),
            "gamma": Float(1e-4, 10.0, log=True),
        }
    )
    costs = {"rbf": 0.0, "poly": 0.4, "linear": 0.9}
    relevances = {"rbf": 5.0, "poly": 3.0, "linear": 0.0}  # of gamma

    def penalty(z: dict[str, float], configuration: Configuration) -> float:
        kernel = configuration["kernel"]
        return float(costs[kernel] + relevances[kernel] * (z["gamma"] + 0.4 * z["C"]) ** 2 + 0.5 * (z["C"] / 0.6) ** 4)

    best_at = {"kernel": "rbf", "C": 30.0, "gamma": 0.004}
    return _task("90-machine", space, best_at, 0.90, logistic(0.90, 0.5), penalty)


# ---- .95


def _network() -> Task:
    space = Space(
        {
            "rate": Float(1e-5, 1.0, log=True),
            "batch": Int(16, 1024, log=True),
            "dropout": Float(0.0, 0.6),
            "decay": Float(1e-7, 1e-1, log=True),
            "width": Int(32, 1024, log=True),
        }
    )

    def penalty(z: dict[str, float], _: Configuration) -> float:
        # Larger batches need a higher rate; width is worth having up to a point.
        together = 4.0 * (z["rate"] - 0.5 * z["batch"]) ** 2 + 0.3 * z["batch"] ** 2
        return together + 0.8 * z["dropout"] ** 2 + 0.1 * z["decay"] ** 2 + 0.8 * z["width"] ** 4

    best_at = {"rate": 0.05, "batch": 64, "dropout": 0.15, "decay": 1e-5, "width": 768}
    return _task("95-network", space, best_at, 0.95, exponential(0.95, 0.5), penalty)


def _components() -> Task:
    space = Space({"C": Float(1e-5, 1e3, log=True), "components": Int(2, 60)})

    def penalty(z: dict[str, float], _: Configuration) -> float:
        return 1.5 * math.log(math.cosh(4.0 * z["C"])) + 12.0 * (z["components"] + 0.3 * z["C"]) ** 4

    return _task("95-components", space, {"C": 0.01, "components": 46}, 0.95, logistic(0.95, 0.2), penalty)


# ---- .99


def _vectors() -> Task:
    space = Space({"C": Float(1e-2, 1e4, log=True), "gamma": Float(1e-5, 1.0, log=True)})

    def penalty(z: dict[str, float], _: Configuration) -> float:
        return 12.0 * (z["gamma"] + 0.35 * z["C"]) ** 2 + 10.0 * z["C"] ** 4

    return _task("99-vectors", space, {"C": 200.0, "gamma": 4e-4}, 0.99, logistic(0.99, 0.1), penalty)


def _convolution() -> Task:
    space = Space(
        {
            "augmentation": Categorical(["none", "flip", "mix"]),
            "rate": Float(1e-5, 1.0, log=True),
            "decay": Float(1e-6, 1e-1, log=True),
            "layers": Int(2, 14),
        }
    )
    costs = {"none": 0.1, "flip": 0.04, "mix": 0.0}
    shifts = {"none": 0.1, "flip": 0.03, "mix": 0.0}  # of the best decay

    def penalty(z: dict[str, float], configuration: Configuration) -> float:
        which = configuration["augmentation"]
        deep = 3.0 * (z["rate"] + 0.3 * z["layers"]) ** 2 + 0.7 * z["layers"] ** 2
        return costs[which] + deep + 0.5 * (z["decay"] - shifts[which]) ** 4

    best_at = {"augmentation": "mix", "rate": 0.02, "decay": 3e-5, "layers": 10}
    return _task("99-convolution", space, best_at, 0.99, exponential(0.99, 0.3), penalty)
