"""How long a trial takes in Optuna at trial 200 of a box of 7 dimensions: our sampler's ask and tell, and TPE's.

    python benchmarks/asking.py [--quick]

Both play the same noisy function in one process, one after the other, with one thread for linear
algebra. Processor time.
"""

import sys
import time
from collections.abc import Callable

import numpy as np
import optuna
import scipy.linalg  # noqa: F401 - its linear algebra can only be limited once it is there
from threadpoolctl import threadpool_limits

from mixbandit.integrations.optuna import MixBanditSampler

DIM, LAST, WINDOW = 7, 220, 40


def play(sampler: optuna.samplers.BaseSampler, seed: int) -> float:
    """Milliseconds per trial, the median over the last ones, centred at the 200th."""
    study, rng, spent = optuna.create_study(direction="maximize", sampler=sampler), np.random.default_rng(seed), []
    for _ in range(LAST):
        started = time.process_time()
        trial = study.ask()
        x = np.array([trial.suggest_float(f"x{i}", 0.0, 1.0) for i in range(DIM)])
        asked = time.process_time() - started
        value = float(rng.binomial(100, 0.9 - 0.1 * ((x - 0.3) ** 2).sum())) / 100
        started = time.process_time()
        study.tell(trial, value)
        spent.append(asked + time.process_time() - started)
    return 1e3 * float(np.median(spent[-WINDOW:]))


def main() -> None:
    """Print milliseconds per trial, and their ratio."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    samplers: dict[str, Callable[[int], optuna.samplers.BaseSampler]] = {
        "ours": lambda seed: MixBanditSampler(seed=seed, reward_range=(0.0, 1.0), samples=100),
        "TPE": lambda seed: optuna.samplers.TPESampler(seed=seed),
    }
    with threadpool_limits(1):
        play(samplers["ours"](0), 0)  # compilation and imports at first use do not count
        runs = [
            {name: play(make(seed), seed) for name, make in samplers.items()}
            for seed in range(1 if "--quick" in sys.argv else 7)
        ]
    ours, theirs = (float(np.median([run[name] for run in runs])) for name in ("ours", "TPE"))
    print(f"ms per trial: ours {ours:.2f}, TPE {theirs:.2f}; ratio {theirs / ours:.2f}")


if __name__ == "__main__":
    main()
