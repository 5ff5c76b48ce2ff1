"""What is tuned. The value of a configuration is a mean of 100 results that are 0 or 1, as an accuracy is.

So its expectation is known exactly, the noise is 0.05-sub-Gaussian by Hoeffding's lemma, and whether an interval covers
can be checked.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mixbandit import Categorical, Float, Int, Space, load_dataset
from mixbandit.paper.svm import PAPER_DATASETS, SvmTask

from . import outside
from .tables import TABLES, load_table

SAMPLES = 100
Parameters = Mapping[str, Any]


@dataclass(frozen=True)
class Task:
    """A space, and for a configuration its expected value and its value on test data (or the same again)."""

    space: Space
    worth: Callable[[Parameters], tuple[float, float]]
    optimum: float | None = None  # the largest expected value, where it is known
    draw: Callable[[Parameters, np.random.Generator], float] | None = None  # a value; None: the mean of 100 results
    stated: Mapping[str, Any] = field(
        default_factory=lambda: {"reward_range": (0.0, 1.0), "samples": SAMPLES, "rows": "fresh"}
    )

    def value(self, parameters: Parameters, rng: np.random.Generator) -> float:
        """A noisy value."""
        if self.draw is not None:
            return self.draw(parameters, rng)
        return float(rng.binomial(SAMPLES, min(max(self.worth(parameters)[0], 0.0), 1.0))) / SAMPLES


def make(name: str, seed: int) -> Task:
    """The task of repetition `seed`."""
    if name in PAPER_DATASETS:
        return _svm_of_the_paper(name, seed)
    if name in SYNTHETIC:
        return SYNTHETIC[name]()
    if name in MADE_UP:
        return _made_up(MADE_UP[name], seed)
    if name in outside.NAMES:
        space, worth, draw, best = outside.make(name, seed)
        return Task(space, _of(worth), best, draw, outside.STATED)
    return _tabulated(name)


# ---- for development: the paper's three, with a split per repetition, and three functions


def _svm_of_the_paper(dataset: str, seed: int) -> Task:
    svm = SvmTask(load_dataset(dataset), np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0,))))
    names = ["C", *(f"lengthscale_{i}" for i in range(1, svm.dim))]
    ranges = [Float(1e-2, 1e2, log=True), *(Float(1e-2, 10.0, log=True) for _ in names[1:])]
    space = Space(dict(zip(names, ranges, strict=True)))

    def worth(parameters: Parameters) -> tuple[float, float]:
        right, right_on_test = svm.correct(space.encode(parameters))
        return float(right.mean()), float(right_on_test.mean())

    return Task(space, worth)


def _of(function: Callable[[Parameters], float]) -> Callable[[Parameters], tuple[float, float]]:
    return lambda parameters: (function(parameters),) * 2


def _branin() -> Task:
    """Three optima in two dimensions, on a steep slope; scaled to [0.05, 0.95]."""
    space = Space({"x": Float(-5.0, 10.0), "y": Float(0.0, 15.0)})

    def function(p: Parameters) -> float:
        x, y = p["x"], p["y"]
        bent = y - 5.1 / (4 * np.pi**2) * x**2 + 5 / np.pi * x - 6
        value = bent**2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x) + 10
        return float(0.95 - 0.9 * (value - 0.397887) / (308.1291 - 0.397887))

    return Task(space, _of(function), 0.95)


_HARTMANN_A = np.array(
    [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
)
_HARTMANN_P = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)


def _hartmann() -> Task:
    """Four bumps in six dimensions, most of the box flat; scaled to [0.1, 0.9]."""
    space = Space({f"x{i}": Float(0.0, 1.0) for i in range(6)})
    weights = np.array([1.0, 1.2, 3.0, 3.2])

    def function(p: Parameters) -> float:
        x = np.array([p[name] for name in space])
        bumps = weights * np.exp(-(_HARTMANN_A * (x - _HARTMANN_P) ** 2).sum(axis=1))
        return float(0.1 + 0.8 * bumps.sum() / 3.32237)

    return Task(space, _of(function), 0.9)


def _mixed() -> Task:
    """Three floats, two integers, two categoricals, one of which decides whether an integer matters."""
    space = Space(
        {
            "rate": Float(1e-4, 1.0, log=True),
            "momentum": Float(0.0, 1.0),
            "decay": Float(1e-6, 1e-1, log=True),
            "layers": Int(1, 8),
            "window": Int(2, 128, log=True),
            "optimizer": Categorical(["sgd", "adam", "lion"]),
            "smoothing": Categorical(["none", "average"]),
        },
        {"window": ("smoothing", ["average"])},
    )
    best_rate = {"sgd": -1.0, "adam": -2.5, "lion": -3.2}
    bonus = {"sgd": 0.0, "adam": 0.05, "lion": 0.02}

    def function(p: Parameters) -> float:
        off = (np.log10(p["rate"]) - best_rate[p["optimizer"]]) ** 2 / 2.0
        off += (p["momentum"] - 0.8) ** 2 * 1.5 + (np.log10(p["decay"]) + 4.0) ** 2 / 12.0 + (p["layers"] - 5) ** 2 / 24
        smooth = 0.06 - 0.03 * abs(np.log2(p["window"] / 24.0)) if p["smoothing"] == "average" else 0.0
        return float(0.1 + 0.7 * np.exp(-off) + bonus[p["optimizer"]] + smooth)

    best = 0.1 + 0.7 + 0.05 + 0.06
    return Task(space, _of(function), best)


# Numbers of choices, and of values of ordered parameters, which are negative: another function per seed.
MADE_UP = {"choices": (5,) * 6, "choices-and-levels": (3, -4, -6, -6, -6, -8, 3, -2, 4)}


def _made_up(sizes: tuple[int, ...], seed: int) -> Task:
    """Effects of single parameters and of pairs, through a hyperbolic tangent; noise of standard deviation 0.02."""
    rng = np.random.default_rng((seed, 5))
    space = Space(
        {f"p{i}": Int(0, -n - 1) if n < 0 else Categorical([f"v{k}" for k in range(n)]) for i, n in enumerate(sizes)}
    )
    single = []
    for n in sizes:
        size = np.exp(0.7 * rng.normal())
        steps = np.arange(abs(n)) / (abs(n) - 1.0)
        single.append(-3.0 * size * (steps - rng.uniform()) ** 2 if n < 0 else size * rng.normal(size=n))
    pairs = {(i, j): 0.5 * rng.normal(size=(abs(sizes[i]), abs(sizes[j]))) for i in range(len(sizes)) for j in range(i)}

    def total(at: list[int]) -> float:
        alone = sum(float(effects[k]) for effects, k in zip(single, at, strict=True))
        return alone + sum(float(effects[at[i], at[j]]) for (i, j), effects in pairs.items())

    some = np.array([total([int(rng.integers(abs(n))) for n in sizes]) for _ in range(3000)])
    middle, spread = float(np.median(some)), float(some.std())

    def worth(parameters: Parameters) -> float:
        at = [int(str(parameters[name]).removeprefix("v")) for name in space]
        return float(0.5 + 0.35 * np.tanh((total(at) - middle) / (2.0 * spread)))

    def draw(parameters: Parameters, noise: np.random.Generator) -> float:
        return worth(parameters) + 0.02 * float(noise.normal())

    return Task(space, _of(worth), None, draw, outside.STATED)


SYNTHETIC: dict[str, Callable[[], Task]] = {"branin": _branin, "hartmann": _hartmann, "mixed": _mixed}
DEVELOPMENT = (*PAPER_DATASETS, *SYNTHETIC)

# ---- held out: written down before any default of the tuner was chosen, and run once, at the end

HELD_OUT = tuple(TABLES)


@functools.lru_cache
def _tabulated(name: str) -> Task:
    """Accuracies on a grid, between its points by multilinear interpolation on the parameters' scales."""
    from scipy.interpolate import RegularGridInterpolator

    table = TABLES[name]
    space, values = table.space, load_table(name)
    numeric = [n for n in space if not isinstance(space[n], Categorical)]
    choices = [space[n] for n in space if isinstance(space[n], Categorical)]
    axes = [np.array([float(space[n].encode(v, n)[0]) for v in table.grid[n]]) for n in numeric]
    surfaces = {}
    for combination in itertools.product(*(c.choices for c in choices if isinstance(c, Categorical))):
        fixed = dict(zip([n for n in space if n not in numeric], combination, strict=True))
        points = itertools.product(*(table.grid[n] for n in numeric))
        accuracy = [values[tuple({**dict(zip(numeric, p, strict=True)), **fixed}[n] for n in space)] for p in points]
        surfaces[combination] = RegularGridInterpolator(axes, np.reshape(accuracy, [len(axis) for axis in axes]))

    def function(p: Parameters) -> float:
        surface = surfaces[tuple(p[n] for n in space if n not in numeric)]
        return float(surface([[float(space[n].encode(p[n], n)[0]) for n in numeric]])[0])

    return Task(space, _of(function), max(values.values()))
