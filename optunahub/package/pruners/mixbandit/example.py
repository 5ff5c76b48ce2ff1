"""Prune trials that repeated measurements show to be worse."""

import optuna
import optunahub


def objective(trial: optuna.Trial) -> float:
    """The mean over 20 instances, each of which is harder or easier for every trial alike."""
    import numpy as np

    x = trial.suggest_float("x", -1.0, 1.0)
    rng, scores = np.random.default_rng(trial.number), []
    for step, instance in enumerate(np.random.default_rng(0).permutation(20)):  # the same order in every trial
        hardness = np.sin(instance)
        scores.append(float(1.0 - x**2 - hardness + 0.2 * rng.normal()))
        trial.report(scores[-1], step)
        if trial.should_prune():
            raise optuna.TrialPruned
    return sum(scores) / len(scores)


if __name__ == "__main__":
    module = optunahub.load_module(package="pruners/mixbandit")
    sampler = optuna.samplers.RandomSampler(seed=0)
    study = optuna.create_study(direction="maximize", sampler=sampler, pruner=module.CertifiedPruner(delta=0.05))
    study.optimize(objective, n_trials=30)
    pruned = [trial for trial in study.trials if trial.state == optuna.trial.TrialState.PRUNED]
    steps = sum(len(trial.intermediate_values) for trial in study.trials)
    print(f"{len(pruned)} of 30 trials were pruned: {steps} instead of {30 * 20} measurements")
    for trial in pruned[:3]:
        print(f"trial {trial.number} is {trial.user_attrs['mixbandit_pruned']}")
    print("best:", study.best_params)
