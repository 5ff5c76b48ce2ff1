"""Functions from configurations to expected accuracies, six of each of seven kinds, with their maxima.

They were written down before any certificate of them was looked at. Shapes are stated in positions: where the value of
a number lies between the ends of its range, on its scale, from 0 to 1.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixbandit import Categorical, Float, Int, Space

Configuration = Mapping[str, Any]
Array = NDArray[np.float64]
KINDS = ("smooth", "cliff", "ridge", "plateau", "categorical", "high-dimensional", "needle")


@dataclass(frozen=True)
class Function:
    """An expected accuracy for every configuration, and the largest one: its supremum, up to 1e-6 at `best_at`."""

    name: str
    kind: str
    space: Space
    of: Callable[[Configuration], float]
    best: float
    best_at: Configuration
    hit_above: float | None = None  # of a needle: values above this are on it

    def __call__(self, configuration: Configuration) -> float:
        return self.of(configuration)


@functools.cache
def functions() -> dict[str, Function]:
    """All functions by name, kind by kind."""
    groups = (_smooth(), _cliffs(), _ridges(), _plateaus(), _categorical(), _high_dimensional(), _needles())
    return {function.name: function for group in groups for function in group}


# ---- positions


def positions(space: Space, configuration: Configuration) -> dict[str, float]:
    """The positions of the numbers that the configuration has."""
    found = {}
    for name, parameter in space.items():
        if name in configuration and isinstance(parameter, Float | Int):
            low, high, value = parameter.low, parameter.high, configuration[name]
            found[name] = (
                math.log(value / low) / math.log(high / low) if parameter.log else (value - low) / (high - low)
            )
    return found


def value_at(parameter: Float | Int, position: float) -> float | int:
    """The value at a position; of an integer the nearest."""
    low, high = parameter.low, parameter.high
    value = low * (high / low) ** position if parameter.log else low + position * (high - low)
    value = min(max(value, low), high)
    return round(value) if isinstance(parameter, Int) else float(value)


def _unit(dim: int) -> Space:
    return Space({f"x{i + 1}": Float(0.0, 1.0) for i in range(dim)})


def _on_box(
    kind: str,
    name: str,
    space: Space,
    shape: Callable[[Array], Any],  # a number
    best_at: Any,
    best: float,
    hit_above: float | None = None,
) -> Function:
    """A function of positions, for a space of numbers."""

    def of(configuration: Configuration) -> float:
        return float(shape(np.array(list(positions(space, configuration).values()))))

    best_at = {
        name: value_at(parameter, float(u))
        for (name, parameter), u in zip(space.items(), best_at, strict=True)
        if isinstance(parameter, Float | Int)
    }
    return Function(name, kind, space, of, best, best_at, hit_above)


def _bump(distance: Any) -> Any:
    """1 at distance 0; distances are in standard deviations."""
    return np.exp(-0.5 * np.square(distance))


def _distance(u: Array, centre: Any) -> float:
    return float(np.linalg.norm(u - np.asarray(centre)))


def _sigmoid(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x))


# ---- smooth


def _smooth() -> list[Function]:
    make = functools.partial(_on_box, "smooth")
    rng = np.random.default_rng(1)
    rotation = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    curvature = rotation @ np.diag([0.05, 0.2, 0.4]) @ rotation.T
    centre = rng.uniform(0.3, 0.7, 3)
    heights, centres = np.array([0.25, 0.2, 0.15, 0.1]), rng.random((4, 4))
    slopes = rng.uniform(0.3, 1.0, 5) * np.array([1, -1, 1, -1, 1])
    uphill = (slopes > 0).astype(float)
    network = {"rate": Float(1e-5, 1e-1, log=True), "dropout": Float(0.0, 0.8), "decay": Float(1e-6, 1e-2, log=True)}
    rate = Space({"rate": Float(1e-5, 1.0, log=True)})

    def sigmoid(u: Array) -> float:
        return 0.4 + 0.5 * _sigmoid(4.0 * float(slopes @ (u - 0.5)))

    return [
        make("smooth-hump", rate, lambda u: 0.25 + 0.65 * _bump((u[0] - 0.62) / 0.3), [0.62], 0.9),
        make(
            "smooth-branin",
            Space({"x": Float(-5.0, 10.0), "y": Float(0.0, 15.0)}),
            _branin,
            [(math.pi + 5.0) / 15.0, 2.275 / 15.0],
            0.95,
        ),
        make(
            "smooth-quadratic", Space(network), lambda u: 0.92 - (u - centre) @ curvature @ (u - centre), centre, 0.92
        ),
        make(
            "smooth-bumps",
            _unit(4),
            lambda u: 0.3 + heights @ _bump(np.linalg.norm(u - centres, axis=1) / 0.45),
            *_SEARCHED["smooth-bumps"],
        ),
        make("smooth-sigmoid", _unit(5), sigmoid, uphill, sigmoid(uphill)),
        make("smooth-hartmann", _unit(6), lambda u: 0.2 + 0.7 * _hartmann(u) / _HARTMANN_BEST, _HARTMANN_AT, 0.9),
    ]


# Maxima without a formula: where and how much, from `python -m benchmarks.certificates maxima`.
_SEARCHED: dict[str, tuple[list[float], float]] = {
    "smooth-bumps": ([0.33690851, 0.6190155, 0.29877503, 0.41355599], 0.7421338627347034),
}


def _branin(u: Array) -> float:
    """Three maxima in two dimensions, on a steep slope; between 0.1 and 0.95."""
    x, y = 15.0 * u[0] - 5.0, 15.0 * u[1]
    bent = y - 5.1 / (4 * math.pi**2) * x**2 + 5 / math.pi * x - 6
    value = bent**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10
    least, most = 0.39788735772973816, 308.12909601160663
    return 0.95 - 0.85 * float(value - least) / (most - least)


_HARTMANN_AT = (0.20168951, 0.15001069, 0.47687398, 0.27533243, 0.31165162, 0.65730053)
_HARTMANN_BEST = 3.322368011415515


def _hartmann(u: Array) -> float:
    weights = np.array([1.0, 1.2, 3.0, 3.2])
    scales = np.array(
        [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
    )
    centres = 1e-4 * np.array(
        [
            [1312, 1696, 5569, 124, 8283, 5886],
            [2329, 4135, 8307, 3736, 1004, 9991],
            [2348, 1451, 3522, 2883, 3047, 6650],
            [4047, 8828, 8732, 5743, 1091, 381],
        ]
    )
    return float(weights @ np.exp(-(scales * (u - centres) ** 2).sum(axis=1)))


# ---- cliffs: a jump inside the range of a parameter


def _cliffs() -> list[Function]:
    make = functools.partial(_on_box, "cliff")
    training = Space({"rate": Float(1e-5, 1.0, log=True), "momentum": Float(0.0, 0.99)})
    memory = Space({"batch": Int(16, 512, log=True), "width": Int(32, 1024, log=True)})

    def fits(configuration: Configuration) -> float:
        u = positions(memory, configuration)
        fits = configuration["batch"] * configuration["width"] <= 65536
        return 0.6 + 0.2 * u["batch"] + 0.15 * u["width"] if fits else 0.1

    def fenced(u: Array) -> float:
        off = (u[0] - 0.45) ** 2 + (u[1] - 0.6) ** 2 + 0.5 * (u[2] - 0.5) ** 2
        return 0.15 if u[0] > 0.5 and u[1] > 0.5 else 0.88 - 0.5 * off

    def stairs(u: Array) -> float:
        step = min(math.floor(5.0 * float(u[0])), 4)
        return 0.45 + 0.08 * step - 0.1 * float(np.sum((u[1:] - np.array([0.3, 0.5, 0.6])) ** 2))

    return [
        make(
            "cliff-line",
            Space({"x": Float(0.0, 1.0)}),
            lambda u: 0.7 + 0.25 * u[0] if u[0] < 0.7 else 0.1,
            [0.7 - 1e-7],
            0.875,
        ),
        make(
            "cliff-diverging",
            training,
            lambda u: 0.55 + 0.3 * u[0] + 0.1 * u[1] if u[0] + 0.5 * u[1] < 0.9 else 0.1,
            [0.9 - 1e-7, 0.0],
            0.82,
        ),
        Function("cliff-memory", "cliff", memory, fits, 0.86, {"batch": 512, "width": 128}),
        make(
            "cliff-step",
            _unit(3),
            lambda u: 0.5 + 0.1 * u[1] + 0.05 * math.sin(math.pi * u[2]) + 0.25 * (u[0] > 0.62),
            [0.8, 1.0, 0.5],
            0.9,
        ),
        make("cliff-fence", _unit(3), fenced, [0.45, 0.6, 0.5], 0.88),
        make("cliff-stairs", _unit(4), stairs, [0.9, 0.3, 0.5, 0.6], 0.77),
    ]


# ---- ridges and valleys, narrow and diagonal


def _ridges() -> list[Function]:
    make = functools.partial(_on_box, "ridge")
    rng = np.random.default_rng(2)
    across = rng.normal(size=6)
    across /= np.linalg.norm(across)
    centre = rng.uniform(0.3, 0.7, 6)
    scaling = Space({"rate": Float(1e-5, 1.0, log=True), "batch": Int(8, 4096, log=True)})

    def scaled(u: Array) -> float:
        return 0.3 + 0.55 * float(_bump((u[0] - 0.2 - 0.6 * u[1]) / 0.05) * _bump((u[1] - 5 / 9) / 0.4))

    return [
        make(
            "ridge-pair",
            _unit(2),
            lambda u: 0.4 + 0.5 * _bump((u[0] - u[1]) / 0.05) * (0.8 + 0.2 * u[0]),
            [1.0, 1.0],
            0.9,
        ),
        make(
            "ridge-valley",
            _unit(2),
            lambda u: 0.85 + 0.05 * u[0] - 0.6 * _bump((u[0] + u[1] - 1.0) / 0.04),
            [1.0, 1.0],
            0.9,
        ),
        make("ridge-scaling", scaling, scaled, [0.2 + 0.6 * 5 / 9, 5 / 9], 0.85),
        make(
            "ridge-curved",
            _unit(2),
            lambda u: 0.2 + 0.7 * _bump((u[1] - u[0] ** 2) / 0.06) - 0.1 * (1.0 - u[0]) ** 2,
            [1.0, 1.0],
            0.9,
        ),
        make(
            "ridge-three",
            _unit(3),
            lambda u: 0.45 + 0.35 * _bump((u[0] + u[1] - u[2] - 0.5) / 0.06) + 0.1 * u[0],
            [1.0, 0.25, 0.75],
            0.9,
        ),
        make(
            "ridge-six",
            _unit(6),
            lambda u: 0.35 + 0.5 * _bump(across @ (u - centre) / 0.08) - 0.05 * np.sum((u - centre) ** 2),
            centre,
            0.85,
        ),
    ]


# ---- plateaus with a bump


def _towards(top: float, base: float, bump: float) -> float:
    """From the base, where the bump is 0, to the top, where it is 1: the maximum is exactly the top."""
    return base + (top - base) * bump


def _plateaus() -> list[Function]:
    make = functools.partial(_on_box, "plateau")
    rate = Space({"rate": Float(1e-6, 1.0, log=True)})

    def dip(u: Array) -> float:
        base = 0.82 - 0.5 * _bump(_distance(u, [0.3, 0.3]) / 0.12)
        return _towards(0.92, base, _bump(_distance(u, [0.75, 0.6]) / 0.1))

    def mesa(u: Array) -> float:
        return 0.3 + 0.55 * _sigmoid((0.3 - _distance(u, [0.6, 0.4, 0.5])) / 0.05)

    return [
        make("plateau-line", rate, lambda u: 0.6 + 0.3 * _bump((u[0] - 0.37) / 0.08), [0.37], 0.9),
        make("plateau-pair", _unit(2), lambda u: 0.7 + 0.2 * _bump(_distance(u, [0.6, 0.35]) / 0.1), [0.6, 0.35], 0.9),
        make("plateau-corner", _unit(2), lambda u: 0.5 + 0.4 * _bump(_distance(u, [1.0, 0.0]) / 0.2), [1.0, 0.0], 0.9),
        make("plateau-dip", _unit(2), dip, [0.75, 0.6], 0.92),
        make(
            "plateau-three",
            _unit(3),
            lambda u: 0.55 + 0.35 * _bump(_distance(u, [0.3, 0.7, 0.4]) / 0.15),
            [0.3, 0.7, 0.4],
            0.9,
        ),
        make("plateau-mesa", _unit(3), mesa, [0.6, 0.4, 0.5], mesa(np.array([0.6, 0.4, 0.5]))),
    ]


# ---- categories: smooth in the numbers, but how depends on the category


def _categorical() -> list[Function]:
    return [_machine(), _optimiser(), _opposite(), _table(), _many(), _booster()]


def _machine() -> Function:
    space = Space(
        {
            "kernel": Categorical(["rbf", "poly", "linear"]),
            "C": Float(1e-3, 1e3, log=True),
            "gamma": Float(1e-4, 10.0, log=True),
            "degree": Int(2, 5),
        },
        {"gamma": ("kernel", ["rbf"]), "degree": ("kernel", ["poly"])},
    )

    def of(configuration: Configuration) -> float:
        u = positions(space, configuration)
        if configuration["kernel"] == "rbf":
            c, g = u["C"] - 0.6, u["gamma"] - 0.4
            return 0.92 - 0.3 * c**2 - 0.5 * g**2 - 0.4 * c * g
        if configuration["kernel"] == "poly":
            return float(0.86 - 0.35 * (u["C"] - 0.3) ** 2 - 0.05 * (configuration["degree"] - 3) ** 2)
        return 0.8 - 0.2 * (u["C"] - 0.5) ** 2

    best_at = {"kernel": "rbf", "C": 1e-3 * 1e6**0.6, "gamma": 1e-4 * 1e5**0.4}
    return Function("categorical-machine", "categorical", space, of, 0.92, best_at)


def _optimiser() -> Function:
    space = Space(
        {
            "optimiser": Categorical(["sgd", "adam", "rmsprop"]),
            "rate": Float(1e-5, 1.0, log=True),
            "momentum": Float(0.0, 0.99),
            "decay": Float(1e-6, 1e-2, log=True),
        },
        {"momentum": ("optimiser", ["sgd"])},
    )
    tops, rates = {"sgd": 0.9, "adam": 0.91, "rmsprop": 0.87}, {"sgd": 0.75, "adam": 0.45, "rmsprop": 0.35}

    def of(configuration: Configuration) -> float:
        u, which = positions(space, configuration), configuration["optimiser"]
        off = 0.8 * (u["rate"] - rates[which]) ** 2 + 0.1 * (u["decay"] - 0.5) ** 2
        off += 0.15 * (u["momentum"] - 0.9) ** 2 if which == "sgd" else 0.0
        return tops[which] - off

    best_at = {"optimiser": "adam", "rate": 1e-5 * 1e5**0.45, "decay": 1e-4}
    return Function("categorical-optimiser", "categorical", space, of, 0.91, best_at)


def _opposite() -> Function:
    space = Space({"way": Categorical(["up", "down"]), "x": Float(0.0, 1.0), "y": Float(0.0, 1.0)})

    def of(configuration: Configuration) -> float:
        x, y = configuration["x"], configuration["y"]
        return float(0.45 + 0.3 * x + 0.1 * y if configuration["way"] == "up" else 0.85 - 0.4 * x + 0.05 * y)

    return Function("categorical-opposite", "categorical", space, of, 0.9, {"way": "down", "x": 0.0, "y": 1.0})


def _table() -> Function:
    activations, norms = ("relu", "gelu", "tanh", "silu"), ("none", "batch", "layer")
    space = Space(
        {"activation": Categorical(activations), "norm": Categorical(norms), "width": Int(16, 1024, log=True)}
    )
    rng = np.random.default_rng(3)
    table = rng.uniform(0.5, 0.85, (4, 3))
    table[2, 1] = 0.9
    widths = (0.5, 2 / 3, 1 / 3, 5 / 6)  # of widths 128, 256, 64 and 512

    def of(configuration: Configuration) -> float:
        row, column = activations.index(configuration["activation"]), norms.index(configuration["norm"])
        return float(table[row, column] - 0.2 * (positions(space, configuration)["width"] - widths[row]) ** 2)

    best_at = {"activation": "tanh", "norm": "batch", "width": 64}
    return Function("categorical-table", "categorical", space, of, 0.9, best_at)


def _many() -> Function:
    choices = tuple("abcdefgh")
    space = Space({"choice": Categorical(choices), "x": Float(0.0, 1.0), "y": Float(0.0, 1.0)})
    rng = np.random.default_rng(4)
    tops, centres = rng.uniform(0.55, 0.75, len(choices)), rng.uniform(0.2, 0.8, (len(choices), 2))
    tops[5] = 0.9

    def of(configuration: Configuration) -> float:
        i = choices.index(configuration["choice"])
        return float(tops[i] - 0.3 * np.sum(([configuration["x"], configuration["y"]] - centres[i]) ** 2))

    best_at = {"choice": "f", "x": float(centres[5, 0]), "y": float(centres[5, 1])}
    return Function("categorical-many", "categorical", space, of, 0.9, best_at)


def _booster() -> Function:
    space = Space(
        {
            "booster": Categorical(["tree", "dart", "linear"]),
            "rate": Float(1e-3, 1.0, log=True),
            "depth": Int(2, 12),
            "drop": Float(0.0, 0.5),
        },
        {"depth": ("booster", ["tree", "dart"]), "drop": ("booster", ["dart"])},
    )

    def of(configuration: Configuration) -> float:
        u = positions(space, configuration)
        if configuration["booster"] == "linear":
            return 0.75 - 0.3 * (u["rate"] - 0.7) ** 2
        depth = 0.2 * (u["depth"] - 0.4) ** 2
        if configuration["booster"] == "tree":
            return 0.9 - 0.5 * (u["rate"] - 0.5) ** 2 - depth
        return 0.88 - 0.5 * (u["rate"] - 0.6) ** 2 - depth - 0.2 * (u["drop"] - 0.2) ** 2

    best_at = {"booster": "tree", "rate": 1e-3 * 1e3**0.5, "depth": 6}
    return Function("categorical-booster", "categorical", space, of, 0.9, best_at)


# ---- ten to twenty parameters


def _high_dimensional() -> list[Function]:
    make = functools.partial(_on_box, "high-dimensional")
    rng = np.random.default_rng(5)
    curvatures, centre = rng.uniform(0.02, 0.1, 10), rng.uniform(0.2, 0.8, 10)
    slopes, phases, peak = rng.normal(size=20), rng.random(12), rng.uniform(0.2, 0.8, 10)
    uphill = (slopes > 0).astype(float)
    two_matter = np.full(15, 0.5)
    two_matter[[3, 9]] = 0.7, 0.3
    pairs = np.full(20, 0.5)
    pairs[[1, 2, 5, 8]] = 1.0, 1.0, 0.0, 1.0

    def sigmoid(u: Array) -> float:
        return 0.3 + 0.6 * _sigmoid(1.2 * float(slopes @ (u - 0.5)))

    return [
        make("high-quadratic", _unit(10), lambda u: 0.9 - curvatures @ (u - centre) ** 2, centre, 0.9),
        make(
            "high-few",
            _unit(15),
            lambda u: 0.3 + 0.6 * _bump((u[3] - 0.7) / 0.25) * _bump((u[9] - 0.3) / 0.3),
            two_matter,
            0.9,
        ),
        make("high-sigmoid", _unit(20), sigmoid, uphill, sigmoid(uphill)),
        make(
            "high-waves",
            _unit(12),
            lambda u: 0.6 + 0.025 * np.sum(np.sin(2 * math.pi * (u + phases))),
            (0.25 - phases) % 1.0,
            0.9,
        ),
        make("high-bump", _unit(10), lambda u: 0.35 + 0.5 * _bump(_distance(u, peak) / 0.6), peak, 0.85),
        make("high-pairs", _unit(20), lambda u: 0.45 + 0.25 * u[1] * u[2] + 0.2 * (1.0 - u[5]) * u[8], pairs, 0.9),
    ]


# ---- needles: nearly constant, but for a peak that most histories miss


def _needle(name: str, space: Space, centre: list[float], width: float, low: float, top: float) -> Function:
    def shape(u: Array) -> float:
        return _towards(top, low + 0.02 * u[0], _bump(_distance(u, centre) / width))

    return _on_box("needle", name, space, shape, centre, top, hit_above=0.5 * (low + top))


def _needles() -> list[Function]:
    rate = Space({"rate": Float(1e-6, 1.0, log=True)})
    return [
        _needle("needle-line", rate, [0.6183], 0.0004, 0.6, 0.9),
        _needle("needle-pair", _unit(2), [0.2718, 0.5772], 0.01, 0.7, 0.95),
        _needle("needle-corner", _unit(2), [1.0, 1.0], 0.015, 0.5, 0.9),
        _needle("needle-three", _unit(3), [0.3, 0.62, 0.45], 0.03, 0.65, 0.92),
        _needle("needle-five", _unit(5), [0.4, 0.7, 0.3, 0.6, 0.5], 0.12, 0.6, 0.9),
        _needle_in_a_category(),
    ]


def _needle_in_a_category() -> Function:
    space = Space({"a": Categorical(["p", "q", "r"]), "b": Categorical(["s", "t", "u", "v"]), "x": Float(0.0, 1.0)})

    def of(configuration: Configuration) -> float:
        there = configuration["a"] == "q" and configuration["b"] == "v"
        bump = float(_bump((configuration["x"] - 0.4142) / 0.005)) if there else 0.0
        return _towards(0.9, 0.6 + 0.02 * configuration["x"], bump)

    return Function("needle-category", "needle", space, of, 0.9, {"a": "q", "b": "v", "x": 0.4142}, 0.75)
