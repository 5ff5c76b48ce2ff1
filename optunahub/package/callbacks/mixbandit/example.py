"""Search with Optuna's default sampler, confirm what came out best, and read what it is worth."""

import optuna
import optunahub

import mixbandit


def objective(trial: optuna.Trial) -> float:
    """The share of 100 successes, whose chance depends on two parameters."""
    import numpy as np

    x = trial.suggest_float("x", -1.0, 1.0)
    y = trial.suggest_float("y", 0.01, 1.0, log=True)
    chance = 0.9 - 0.3 * (x - 0.3) ** 2 - 0.1 * (np.log10(y) + 1.0) ** 2
    return float(np.random.default_rng(trial.number).binomial(100, chance)) / 100


if __name__ == "__main__":
    module = optunahub.load_module(package="callbacks/mixbandit")
    known = mixbandit.Assumptions(reward_range=(0, 1), samples=100, rows="fresh")
    confirm = module.ConfirmFinalists(20, after=40, assumptions=known)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
    study.optimize(objective, n_trials=60, callbacks=[confirm])
    confirmed = sum("mixbandit_nomination" in trial.user_attrs for trial in study.trials)
    print(f"{len(study.trials)} trials, {confirmed} of which confirmed a finalist")
    print(mixbandit.certify(study, known))
