"""How often pruners give up a trial that is as good as the others, and how soon one that is worse.

    python benchmarks/pruners.py [--quick] [--out docs/results/pruners]

Trials are measured at 50 steps, each on an instance of its own that adds the same (of standard deviation 2) to all of
them; the noise of a measurement has standard deviation 1. The pruner looks after every step.

one: a challenger comes after one trial. best of 20: after 20 equally good ones, none of them pruned. study: 30 equally
good trials one after another, all of which may be pruned; the share is that of all trials but the first. Errors are
standard errors over runs. Runs are made anew each time, which takes some 20 minutes on one core.
"""

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.pruners import BasePruner, MedianPruner, WilcoxonPruner

from mixbandit._checks import Array
from mixbandit.integrations.optuna import CertifiedPruner
from mixbandit.paper.store import write_table

STEPS, BEFORE, STUDY, INSTANCES, SEED = 50, 20, 30, 2.0, 0
WORSE = (0.5, 1.0, 2.0)
Noise = Callable[[np.random.Generator, int], Array]


def accuracy(rng: np.random.Generator, n: int) -> Array:
    """The share of 100 rows that are right, 90 % of them in the mean, in standard deviations.

    Ties are broken at random: with ties scipy's Wilcoxon test takes some ten milliseconds, and this hours.
    """
    return (rng.binomial(100, 0.9, n).astype(np.float64) + rng.uniform(-0.5, 0.5, n) - 90.0) / 3.0


NOISES: dict[str, Noise] = {
    "Gaussian": lambda rng, n: rng.normal(size=n),
    "accuracy on 100 rows, ties broken": accuracy,
    "heavy tails (t, 3 degrees)": lambda rng, n: rng.standard_t(3, n) / np.sqrt(3.0),
    "skewed (exponential)": lambda rng, n: 1.0 - rng.exponential(size=n),
}
PRUNERS: dict[str, Callable[[], BasePruner]] = {
    "CertifiedPruner(0.05)": CertifiedPruner,
    "CertifiedPruner(0.05, sigma=1)": lambda: CertifiedPruner(sigma=1.0),
    "WilcoxonPruner(p_threshold=0.1)": WilcoxonPruner,
    "WilcoxonPruner(p_threshold=0.05)": lambda: WilcoxonPruner(p_threshold=0.05),
    "MedianPruner(n_startup_trials=1)": lambda: MedianPruner(n_startup_trials=1),
}


def empty_study(pruner: BasePruner) -> optuna.Study:
    """A study of one trial after another; what is suggested does not matter."""
    return optuna.create_study(direction="maximize", pruner=pruner, sampler=optuna.samplers.RandomSampler(seed=SEED))


def steps_of(study: optuna.Study, values: Array, *, may_prune: bool) -> int | None:
    """Run a trial with these values; after how many steps it was pruned, None if it was not."""
    trial = study.ask()
    for step, value in enumerate(values.tolist()):
        trial.report(value, step)
        if may_prune and trial.should_prune():
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
            return step + 1
    study.tell(trial, float(values.mean()))
    return None


def challenged(make: Callable[[], BasePruner], noise: Noise, before: int, worse: float, run: int) -> int | None:
    """After how many steps a challenger is pruned that comes after `before` equally good trials."""
    rng = np.random.default_rng((SEED, run, before))
    study, instances = empty_study(make()), INSTANCES * rng.normal(size=STEPS)
    for _ in range(before):
        steps_of(study, instances + noise(rng, STEPS), may_prune=False)
    return steps_of(study, instances + noise(rng, STEPS) - worse, may_prune=True)


def share_of_a_study(make: Callable[[], BasePruner], noise: Noise, run: int) -> float:
    """The share of equally good trials, one after another, that is pruned."""
    rng = np.random.default_rng((SEED, run))
    study, instances = empty_study(make()), INSTANCES * rng.normal(size=STEPS)
    pruned = [steps_of(study, instances + noise(rng, STEPS), may_prune=True) is not None for _ in range(STUDY)]
    return float(np.mean(pruned[1:]))


def percent(shares: Array) -> str:
    """The mean share and its standard error."""
    return f"{100 * shares.mean():.1f} ± {100 * shares.std(ddof=1) / np.sqrt(len(shares)):.1f} %"


def median_of(steps: list[int | None]) -> str:
    """The median number of steps; in words if most were never pruned."""
    middle = float(np.median([np.inf if n is None else n for n in steps]))
    return f"{middle:g}" if np.isfinite(middle) else f"more than {STEPS}"


def row_of(pruner: str, noise: str, runs: int) -> list[Any]:
    """All that is measured about a pruner under a noise."""
    make, draw = PRUNERS[pruner], NOISES[noise]
    equal = [
        np.array([challenged(make, draw, before, 0.0, run) is not None for run in range(count)])
        for before, count in ((1, runs), (BEFORE, max(runs // 2, 2)))
    ]
    study = np.array([share_of_a_study(make, draw, run) for run in range(max(runs // 10, 2))])
    soon = [median_of([challenged(make, draw, 1, worse, run) for run in range(max(runs // 2, 2))]) for worse in WORSE]
    return [noise, pruner, percent(equal[0]), percent(equal[1]), percent(study), *soon]


COLUMNS = [
    "noise", "pruner", "equal: after one", "equal: after the best of 20", "equal: in a study",
    *(f"steps, worse by {worse:g} sd" for worse in WORSE),
]  # fmt: skip


def main() -> None:
    """Measure every pruner under every noise."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few runs of one noise, to see that it works")
    parser.add_argument("--out", type=Path, default=None, help="a folder for pruners.csv")
    options = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
    runs, noises = (20, ["Gaussian"]) if options.quick else (1000, list(NOISES))
    rows = []
    for noise in noises:
        for pruner in PRUNERS:
            rows.append(row_of(pruner, noise, runs))
            print(*rows[-1], sep=", ", flush=True)
            if options.out is not None:
                command = f"python benchmarks/pruners.py --out {options.out}"
                write_table(options.out / "pruners.csv", COLUMNS, rows, command=command, optuna=optuna.__version__)


if __name__ == "__main__":
    main()
