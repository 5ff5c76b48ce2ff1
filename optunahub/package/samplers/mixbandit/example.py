"""Tune under noise, and read what is guaranteed of the answer."""

import optuna
import optunahub


def objective(trial: optuna.Trial) -> float:
    """The share of 100 successes, whose chance depends on two parameters."""
    import numpy as np

    x = trial.suggest_float("x", -1.0, 1.0)
    y = trial.suggest_float("y", 0.01, 1.0, log=True)
    chance = 0.9 - 0.3 * (x - 0.3) ** 2 - 0.1 * (np.log10(y) + 1.0) ** 2
    return float(np.random.default_rng(trial.number).binomial(100, chance)) / 100


if __name__ == "__main__":
    module = optunahub.load_module(package="samplers/mixbandit")
    sampler = module.MixBanditSampler(seed=0, reward_range=(0, 1), samples=100, rows="fresh")
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.optimize(objective, n_trials=100)
    print(sampler.certificate(study))
