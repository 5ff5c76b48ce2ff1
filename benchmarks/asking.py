"""How long a trial takes in Optuna: our sampler's ask and tell, and TPE's, around trial 200 and around trial 1,000.

    python benchmarks/asking.py [--quick]

Two spaces: a box of 7 dimensions, and a mixed one (two numbers, an integer, two categories). Both samplers play the
same noisy function in one process, one after the other, with one thread for linear algebra. Processor time, medians
over the 40 trials around it, and over runs.
"""

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import optuna
import scipy.linalg  # noqa: F401 - its linear algebra can only be limited once it is there
from threadpoolctl import threadpool_limits

from mixbandit.integrations.optuna import MixBanditSampler

DIM, WINDOW = 7, 40


def box(trial: optuna.Trial) -> float:
    """The expected value in a box."""
    return 0.9 - 0.1 * sum((trial.suggest_float(f"x{i}", 0.0, 1.0) - 0.3) ** 2 for i in range(DIM))


def mixed(trial: optuna.Trial) -> float:
    """The expected value in a mixed space."""
    rate, decay = trial.suggest_float("rate", 1e-4, 1.0, log=True), trial.suggest_float("decay", 0.0, 1.0)
    layers, kind = trial.suggest_int("layers", 1, 8), trial.suggest_categorical("kind", ["a", "b", "c"])
    bonus = {"a": 0.0, "b": 0.1, "c": 0.05}[kind] + 0.05 * (
        trial.suggest_categorical("average", ["no", "yes"]) == "yes"
    )
    return float(
        0.7 - 0.05 * (np.log10(rate) + 2.0) ** 2 - 0.1 * (decay - 0.4) ** 2 - 0.005 * (layers - 5) ** 2 + bonus
    )


def play(
    sampler: optuna.samplers.BaseSampler, objective: Callable[[optuna.Trial], float], last: int, seed: int
) -> float:
    """Milliseconds per trial, the median over those around `last`."""
    study, rng, spent = optuna.create_study(direction="maximize", sampler=sampler), np.random.default_rng(seed), []
    for _ in range(last + WINDOW // 2):
        started = time.process_time()
        trial = study.ask()
        expected = objective(trial)
        asked = time.process_time() - started
        value = float(rng.binomial(100, expected)) / 100
        started = time.process_time()
        study.tell(trial, value)
        spent.append(asked + time.process_time() - started)
    return 1e3 * float(np.median(spent[-WINDOW:]))


def main() -> None:
    """Print milliseconds per trial, and their ratio."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    samplers: dict[str, Callable[[int], Any]] = {
        "ours": lambda seed: MixBanditSampler(seed=seed, reward_range=(0.0, 1.0), samples=100, rows="fresh"),
        "TPE": lambda seed: optuna.samplers.TPESampler(seed=seed),
    }
    quick = "--quick" in sys.argv
    with threadpool_limits(1):
        play(samplers["ours"](0), box, 60, 0)  # compilation and imports at first use do not count
        for last, seeds in ((200, 1 if quick else 7), (1000, 0 if quick else 3)):
            for objective in (box, mixed) if seeds else ():
                runs = [
                    {name: play(make(seed), objective, last, seed) for name, make in samplers.items()}
                    for seed in range(seeds)
                ]
                ours, theirs = (float(np.median([run[name] for run in runs])) for name in ("ours", "TPE"))
                place = f"trial {last} of the {objective.__name__} space"
                print(f"ms at {place}: ours {ours:.2f}, TPE {theirs:.2f}; ours/TPE {ours / theirs:.2f}", flush=True)


if __name__ == "__main__":
    main()
