"""Tune with any sampler, draw what is guaranteed of the answer, and put it into Optuna's dashboard."""

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
    module = optunahub.load_module(package="visualization/mixbandit")
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
    study.optimize(objective, n_trials=50)
    known = {"reward_range": (0, 1), "samples": 100, "rows": "fresh"}  # a value is the mean of 100 results in [0, 1]
    figure = module.plot_certificate(study, **known)
    figure.write_html("certificate.html")
    print(module.publish(study, **known))  # now look at the study in optuna-dashboard
