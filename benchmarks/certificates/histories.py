"""Histories that are certified: trials of Optuna's TPE, or uniform ones, stored so that every label sees the same."""

from __future__ import annotations

import functools
import gzip
import json
import math
import os
import sys
import warnings
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mixbandit import Categorical, Float, Int, Space
from mixbandit.tuning.parameters import Parameter

from .functions import Function, functions, value_at

SAMPLERS = ("TPE", "uniform")
TRIALS = (100, 300)
SAMPLES = (100, 1000)
FOLDER = Path("out/certificates/histories")

History = list[tuple[dict[str, Any], float]]


@dataclass(frozen=True)
class Key:
    """What a history is of. Its first trials are the shorter history."""

    function: str
    sampler: str
    samples: int
    seed: int

    @property
    def file(self) -> str:
        return f"{self.function}-{self.sampler}-{self.samples}-{self.seed}.json.gz"

    def rng(self, stream: int) -> np.random.Generator:
        parts = (self.seed, self.samples, SAMPLERS.index(self.sampler), stream, zlib.crc32(self.function.encode()))
        return np.random.default_rng(parts)


def _filled(space: Space, draw: Callable[[str, Parameter], Any]) -> dict[str, Any]:
    """A configuration, conditional parameters last and only where they matter."""
    configuration: dict[str, Any] = {}
    for name in sorted(space, key=lambda name: name in space.conditions):
        if space.is_active(name, configuration):
            configuration[name] = draw(name, space[name])
    return configuration


def uniform(space: Space, n: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Independent configurations, uniform on the scales of the parameters."""
    found = []
    for row in rng.random((n, len(space))).tolist():
        quantiles = dict(zip(space, row, strict=True))
        found.append(_filled(space, functools.partial(_drawn, quantiles)))
    return found


def _drawn(quantiles: dict[str, float], name: str, parameter: Parameter) -> Any:
    quantile = quantiles[name]
    if isinstance(parameter, Categorical):
        return parameter.choices[int(quantile * len(parameter.choices))]
    assert isinstance(parameter, Float | Int)
    if isinstance(parameter, Int) and not parameter.log:
        return parameter.low + int(quantile * (parameter.high - parameter.low + 1))
    return value_at(parameter, quantile)


def make(key: Key, trials: int = TRIALS[-1]) -> History:
    """Play a sampler; the value of a trial is the mean of `samples` results that are 0 or 1."""
    function, noise = functions()[key.function], key.rng(0)

    def value(configuration: dict[str, Any]) -> float:
        return float(noise.binomial(key.samples, function(configuration))) / key.samples

    if key.sampler == "uniform":
        return [(configuration, value(configuration)) for configuration in uniform(function.space, trials, key.rng(1))]
    return _by_tpe(function.space, value, trials, int(key.rng(1).integers(2**31)))


def _by_tpe(space: Space, value: Callable[[dict[str, Any]], float], trials: int, seed: int) -> History:
    import optuna

    def suggested(trial: optuna.Trial, name: str, parameter: Parameter) -> Any:
        if isinstance(parameter, Categorical):
            return trial.suggest_categorical(name, parameter.choices)
        if isinstance(parameter, Int):
            return trial.suggest_int(name, parameter.low, parameter.high, log=parameter.log)
        assert isinstance(parameter, Float)
        return trial.suggest_float(name, parameter.low, parameter.high, log=parameter.log)

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
    history = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(trials):
            trial = study.ask()
            configuration = _filled(space, functools.partial(suggested, trial))
            history.append((configuration, value(configuration)))
            study.tell(trial, history[-1][1])
    return history


def _sum_of_truths(function: Function, history: History) -> float:
    return math.fsum(function(configuration) for configuration, _ in history)


def store(key: Key, history: History, folder: Path) -> None:
    """Write a history, all or nothing."""
    space = functions()[key.function].space
    text = json.dumps(
        {
            "names": list(space),
            "trials": [[configuration.get(name) for name in space] for configuration, _ in history],
            "values": [value for _, value in history],
            "sum_of_truths": _sum_of_truths(functions()[key.function], history),
        }
    )
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = folder / f"{key.file}.{os.getpid()}"
    unfinished.write_bytes(gzip.compress(text.encode(), mtime=0))
    unfinished.replace(folder / key.file)


def load(key: Key, folder: Path) -> History:
    """A stored history; one of another version of the function is an error."""
    path = folder / key.file
    if not path.exists():
        raise SystemExit(f"{path} is missing; make it with python -m benchmarks.certificates histories")
    stored = json.loads(gzip.decompress(path.read_bytes()))
    history = [
        ({name: cell for name, cell in zip(stored["names"], row, strict=True) if cell is not None}, value)
        for row, value in zip(stored["trials"], stored["values"], strict=True)
    ]
    if abs(_sum_of_truths(functions()[key.function], history) - stored["sum_of_truths"]) > 1e-6:
        raise SystemExit(f"{path} is of another version of {key.function}: remove it and make it again")
    return history


def keys(names: Sequence[str], seeds: int) -> list[Key]:
    """All histories of some functions, the first seeds first."""
    return [
        Key(name, sampler, samples, seed)
        for seed in range(seeds)
        for name in names
        for sampler in SAMPLERS
        for samples in SAMPLES
    ]


def make_all(names: Sequence[str], seeds: int, folder: Path) -> None:
    """Make the missing histories."""
    missing = [key for key in keys(names, seeds) if not (folder / key.file).exists()]
    for done, key in enumerate(missing, 1):
        store(key, make(key), folder)
        print(f"\r{done} of {len(missing)}: {key.file:60}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
