"""A run to be certified: a space with a condition, a function on it, and its noisy values."""

import numpy as np
import optuna

import mixbandit as mb

SPACE = mb.Space(
    {"C": mb.Float(1e-2, 1e2, log=True), "kernel": mb.Categorical(["rbf", "poly"]), "degree": mb.Int(2, 5)},
    {"degree": ("kernel", ["poly"])},
)


def worth(parameters):
    penalty = 0.0 if parameters["kernel"] == "rbf" else 0.1 + 0.02 * abs(parameters["degree"] - 3)
    return 0.8 - 0.03 * (np.log10(parameters["C"]) - 0.5) ** 2 - penalty


def noisy(parameters, rng):
    return float(rng.binomial(100, worth(parameters))) / 100


def objective(trial, rng):
    parameters = {"C": trial.suggest_float("C", 1e-2, 1e2, log=True)}
    parameters["kernel"] = trial.suggest_categorical("kernel", ["rbf", "poly"])
    if parameters["kernel"] == "poly":
        parameters["degree"] = trial.suggest_int("degree", 2, 5)
    if trial.number % 10 == 7:
        raise optuna.TrialPruned
    return noisy(parameters, rng)
