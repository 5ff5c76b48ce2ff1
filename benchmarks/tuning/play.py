"""One tuner on one task: its choices, their values, and its recommendation."""

from __future__ import annotations

import itertools
import json
import logging
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mixbandit import UCB, Assumptions, Categorical, Float, Int, OFULSequence, RandomFourier, Space, Tuner, certify
from mixbandit.features import WithConstant
from mixbandit.search import Pessimism, search_box
from mixbandit.tuning.default_model import FEATURES, LENGTHSCALE, default_features
from mixbandit.tuning.tuner import EXPLORATION, INITIAL

from . import tasks

PEERS = ("random", "TPE", "CMA-ES", "GP", "SMAC")
# What TPE found in this many trials is certified as well, so that floors can be compared.
CERTIFIED = 100
# The number of final trials over which the time of a late trial is measured.
LATE = 10


@dataclass(frozen=True)
class TuningSettings:
    """A tuner on a task. `options` are those of mixbandit's tuner, as JSON; peers use their defaults."""

    task: str
    tuner: str
    options: str = "{}"
    trials: int = 200

    @property
    def label(self) -> str:
        return f"{self.task}, {self.tuner}{'' if self.options == '{}' else f' {self.options}'}"


# The results of a run: means over its trials, its recommendation, milliseconds of processor time per trial, all trials.
COLUMNS = (
    "mean", "mean_test", "recommended", "recommended_test", "ms", "late_ms", "lower", "upper", "gap", "by_mean",
    "refuted", "recommendation", "expected", "values", "parameters",
)  # fmt: skip

Ask = Callable[[], tuple[Any, dict[str, Any]]]
Tell = Callable[[Any, float], None]


def simulate(settings: TuningSettings, repetition: int) -> tuple[Any, ...]:
    """Play one repetition; task and noise do not depend on the tuner."""
    task = tasks.make(settings.task, repetition)
    ours: dict[str, Callable[..., Any]] = {"mixbandit": _Ours, "OFUL": _Oful}
    kinds = {**dict.fromkeys(PEERS, _Peer), "SMAC": _Smac, **ours}
    player = kinds[settings.tuner](settings, task, repetition)
    story: list[tuple[dict[str, Any], float, float, float]] = []
    spent = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for noise in np.random.SeedSequence(repetition, spawn_key=(1,)).spawn(settings.trials):
            started = time.process_time()
            trial, parameters = player.ask()
            asked = time.process_time() - started
            expected, test = task.worth(parameters)
            value = task.value(parameters, np.random.default_rng(noise))
            started = time.process_time()
            player.tell(trial, value)
            spent.append(1e3 * (asked + time.process_time() - started))
            story.append((parameters, expected, test, value))
        found = player.recommend()
    worth, worth_on_test = task.worth(found["recommendation"])
    by_mean = task.worth(found["by_mean"])[0] if found.get("by_mean") else ""
    _, expected_values, tests, values = zip(*story, strict=True)
    return (
        f"{np.mean(expected_values):.6f}", f"{np.mean(tests):.6f}", f"{worth:.6f}", f"{worth_on_test:.6f}",
        f"{np.mean(spent):.4g}", f"{np.mean(spent[-LATE:]):.4g}",
        *(found.get(name, "") for name in ("lower", "upper", "gap")), by_mean, found.get("refuted", ""),
        json.dumps(found["recommendation"]), " ".join(f"{v:.4f}" for v in expected_values),
        " ".join(f"{v:g}" for v in values), json.dumps([s[0] for s in story]),
    )  # fmt: skip


class _Peer:
    """A sampler of Optuna with its own defaults; it recommends the trial with the best value, as Optuna does.

    What TPE found is certified as well: `lower` and `upper` are of the configuration `by_mean` that `certify` names.
    """

    def __init__(self, settings: TuningSettings, task: tasks.Task, seed: int) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        samplers: Mapping[str, Callable[[], Any]] = {
            "random": lambda: optuna.samplers.RandomSampler(seed=seed),
            "TPE": lambda: optuna.samplers.TPESampler(seed=seed),
            "CMA-ES": lambda: optuna.samplers.CmaEsSampler(seed=seed, warn_independent_sampling=False),
            "GP": lambda: optuna.samplers.GPSampler(seed=seed, deterministic_objective=False),
        }
        self._task, self._certified = task, settings.tuner == "TPE" and settings.trials == CERTIFIED
        self._study = optuna.create_study(direction="maximize", sampler=samplers[settings.tuner]())

    def ask(self) -> tuple[Any, dict[str, Any]]:
        trial = self._study.ask()
        return trial, suggest_all(trial, self._task.space)

    def tell(self, trial: Any, value: float) -> None:
        self._study.tell(trial, value)

    def recommend(self) -> dict[str, Any]:
        found = {"recommendation": dict(self._study.best_trial.params)}
        if not self._certified:
            return found
        known = certify(self._study, space=self._task.space, **self._task.stated)
        ends = {"lower": known.interval[0], "upper": known.interval[1], "refuted": int(not known.trusted)}
        return {**found, **ends, "by_mean": known.parameters}


def suggest_all(trial: Any, space: Space) -> dict[str, Any]:
    """The parameters of a space from an Optuna trial, conditional ones only where they matter."""
    parameters: dict[str, Any] = {}
    for name in sorted(space, key=lambda n: n in space.conditions):
        kind = space[name]
        if not space.is_active(name, parameters):
            continue
        if isinstance(kind, Categorical):
            parameters[name] = trial.suggest_categorical(name, kind.choices)
        elif isinstance(kind, Int):
            parameters[name] = trial.suggest_int(name, kind.low, kind.high, log=kind.log, step=kind.step)
        elif isinstance(kind, Float):
            parameters[name] = trial.suggest_float(name, kind.low, kind.high, log=kind.log, step=kind.step)
    return parameters


class _Smac:
    """SMAC's facade for hyperparameters, told that values are noisy and how many there will be.

    It recommends its incumbent. It repeats configurations itself; that its model of the noise goes by seeds does not
    matter here, where every value has noise of its own.
    """

    def __init__(self, settings: TuningSettings, task: tasks.Task, seed: int) -> None:
        import ConfigSpace
        from smac import HyperparameterOptimizationFacade, Scenario

        space = ConfigSpace.ConfigurationSpace(seed=seed)
        for name, kind in task.space.items():
            if isinstance(kind, Categorical):
                space.add(ConfigSpace.Categorical(name, list(kind.choices)))
            elif isinstance(kind, Int):
                space.add(ConfigSpace.Integer(name, (kind.low, kind.high), log=kind.log))
            elif isinstance(kind, Float):
                space.add(ConfigSpace.Float(name, (kind.low, kind.high), log=kind.log))
        self._folder = tempfile.TemporaryDirectory()  # goes with the tuner
        folder = Path(self._folder.name)
        scenario = Scenario(space, deterministic=False, n_trials=settings.trials, seed=seed, output_directory=folder)
        self._smac = HyperparameterOptimizationFacade(
            scenario, lambda config, seed=0: 0.0, overwrite=True, logging_level=logging.CRITICAL
        )

    def ask(self) -> tuple[Any, dict[str, Any]]:
        trial = self._smac.ask()
        return trial, dict(trial.config)

    def tell(self, trial: Any, value: float) -> None:
        from smac.runhistory.dataclasses import TrialValue

        self._smac.tell(trial, TrialValue(cost=-value))

    def recommend(self) -> dict[str, Any]:
        return {"recommendation": dict(self._smac.intensifier.get_incumbent())}


class _Ours:
    """mixbandit's tuner, told what is known of the task's values, and how many trials there will be.

    Benchmark options in addition to those of the tuner: the length-scale and the number of random features; `batch`,
    trials that are asked for together; `budget`: false for a tuner that does not know how many trials there will be.
    """

    def __init__(self, settings: TuningSettings, task: tasks.Task, seed: int) -> None:
        options, space = json.loads(settings.options), task.space
        self._proven = not options and task.draw is None
        self._batch, budget = options.pop("batch", 1), options.pop("budget", True)
        lengthscale, number = options.pop("lengthscale", LENGTHSCALE), options.pop("number", FEATURES)
        if (lengthscale, number) != (LENGTHSCALE, FEATURES):
            fourier = RandomFourier(space.dim, number, lengthscale * np.sqrt(len(space)), rng=0)
            options["features"] = WithConstant(fourier)
        self._tuner = Tuner(space, **task.stated, rng=seed, **options)
        self._trials = self._tuner.trials(settings.trials) if budget else iter(self._tuner.ask, None)
        self._waiting: list[Any] = []
        self._told: list[tuple[Any, float]] = []

    def ask(self) -> tuple[Any, dict[str, Any]]:
        if not self._waiting:
            self._waiting = list(itertools.islice(self._trials, self._batch))
        trial = self._waiting.pop(0)
        return trial, trial.parameters

    def tell(self, trial: Any, value: float) -> None:
        self._told.append((trial, value))
        if not self._waiting:  # a batch is told when all of it has ended
            for each in self._told:
                self._tuner.tell(*each)
            self._told = []

    def recommend(self) -> dict[str, Any]:
        found = self._tuner.recommend("lower")
        # The proof of the gap takes longer than all trials; variants are compared without it.
        certificate = self._tuner.certificate() if self._proven else None
        return {
            "recommendation": found.parameters,
            "by_mean": self._tuner.recommend("mean").parameters,
            "lower": found.interval[0],
            "upper": found.interval[1],
            "gap": "" if certificate is None else certificate.gap,
            "refuted": int(not found.trusted),
        }


class _Oful:
    """The same as ours, on the ellipsoids of OFUL with its own α = σ²; for comparison only."""

    def __init__(self, settings: TuningSettings, task: tasks.Task, seed: int) -> None:
        stated, space = Assumptions(**task.stated), task.space
        sequence = OFULSequence(
            default_features(space), sigma=stated.level, norm_bound=stated.norm, delta=stated.delta, on_empty="inflate"
        )
        options = {"exploration": EXPLORATION, **json.loads(settings.options)}
        self._space, self._spread = space, space.spread(INITIAL, rng=seed)
        self._policy = UCB(sequence, space.region, rng=seed, track_regret=False, quick=True, **options)

    def ask(self) -> tuple[Any, dict[str, Any]]:
        first = self._policy.rounds < INITIAL
        choice = (
            self._policy.adopt(self._space.encode(self._spread[self._policy.rounds])) if first else self._policy.ask()
        )
        return choice, self._space.decode(choice.action)

    def tell(self, trial: Any, value: float) -> None:
        self._policy.tell(trial, value - 0.5)

    def recommend(self) -> dict[str, Any]:
        sequence, moment = self._policy.sequence, self._policy.moment
        score, rng = Pessimism(moment.exact), np.random.default_rng(0)
        found = search_box(score, moment.model, self._space.region, rng).action
        lower, upper = float(sequence.lower(found)[0]) + 0.5, float(sequence.upper(found)[0]) + 0.5
        return {"recommendation": self._space.decode(found), "lower": lower, "upper": upper}
