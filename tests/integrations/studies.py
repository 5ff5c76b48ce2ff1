"""Studies and objectives that the tests of the sampler share."""

import numpy as np
import optuna

from mixbandit.integrations.optuna import MixBanditSampler

optuna.logging.set_verbosity(optuna.logging.ERROR)
STATED = {"reward_range": (0.0, 1.0), "samples": 100, "rows": "fresh"}
COMPLETE = (optuna.trial.TrialState.COMPLETE,)


def of_everything(parameters):
    value = 0.6 - (parameters["a"] - 0.7) ** 2 + 0.2 * (parameters["p"] == "x") - 0.01 * abs(parameters["i"] - 5)
    return value + 0.1 * parameters["q"] - 0.02 * abs(np.log2(parameters.get("j", 8)) - 3)


def simple(trial):
    """Two floats, without noise."""
    x, y = trial.suggest_float("x", -1.0, 1.0), trial.suggest_float("y", 0.01, 1.0, log=True)
    return 0.9 - 0.3 * (x - 0.3) ** 2 - 0.1 * (np.log10(y) + 1.0) ** 2


def make(direction="maximize", storage=None, **options):
    sampler = MixBanditSampler(**{"seed": 0, **options})
    return optuna.create_study(direction=direction, storage=storage, sampler=sampler)
