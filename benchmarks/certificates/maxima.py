"""Whether a heavy search finds more than the stored maxima."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import differential_evolution, minimize

from mixbandit import Categorical, Float, Int

from .functions import Configuration, Function, functions, value_at


def search(function: Function, seed: int = 0) -> tuple[float, Configuration]:
    """The largest value found, and where: differential evolution and a polish for every combination of categories."""
    space = function.space
    categories = {name: p.choices for name, p in space.items() if isinstance(p, Categorical)}
    found: list[tuple[float, Configuration]] = []
    for choices in itertools.product(*categories.values()):
        fixed = dict(zip(categories, choices, strict=True))
        free = {
            name: parameter
            for name, parameter in space.items()
            if isinstance(parameter, Float | Int) and space.is_active(name, fixed)
        }

        def configuration(
            u: NDArray[np.float64], fixed: dict[str, object] = fixed, free: dict[str, Float | Int] = free
        ) -> Configuration:
            numbers = {name: value_at(p, float(v)) for (name, p), v in zip(free.items(), u, strict=True)}
            return {**fixed, **numbers}

        def loss(u: NDArray[np.float64]) -> float:
            return -function(configuration(np.clip(u, 0.0, 1.0)))

        box = [(0.0, 1.0)] * len(free)
        start = differential_evolution(loss, box, rng=seed, popsize=20, maxiter=300, tol=1e-10)
        polished = minimize(loss, start.x, bounds=box, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-12})
        best = min((start, polished), key=lambda result: float(result.fun))
        found.append((-float(best.fun), configuration(np.clip(best.x, 0.0, 1.0))))
    return max(found, key=lambda pair: pair[0])


def compare(names: Sequence[str]) -> None:
    """Print the stored maximum, its value where it is said to be, and the largest value that a search finds."""
    for name in names:
        function = functions()[name]
        found, where = search(function)
        stated = f"stored {function.best:.9f}, there {function(function.best_at):.9f}"
        more = f"  MORE THAN STORED at {where}" if found > function.best + 1e-9 else ""
        print(f"{name}: {stated}, found {found:.9f}{more}", flush=True)
