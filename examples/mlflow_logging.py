"""Trials and their certificate in MLflow, in a local file: Optuna's callback logs the trials, two calls the rest.

It needs the extra `tracking`: pip install 'mixbandit[optuna,tracking]'.
"""

import tempfile
import warnings
from pathlib import Path

import mlflow
import numpy as np
import optuna
from optuna_integration import MLflowCallback

from mixbandit.integrations.optuna import MixBanditSampler

optuna.logging.set_verbosity(optuna.logging.WARNING)
folder = Path(tempfile.mkdtemp(prefix="mlflow-"))
tracking = f"sqlite:///{folder}/mlflow.db"  # or the address of your server
mlflow.set_tracking_uri(tracking)
mlflow.create_experiment("svm", artifact_location=folder.as_uri())  # a server has a place for artifacts of its own


def objective(trial: optuna.Trial) -> float:
    """Accuracy on 100 validation rows, new in every trial."""
    C = trial.suggest_float("C", 1e-2, 1e2, log=True)
    off = 0.1 if trial.suggest_categorical("kernel", ["rbf", "poly"]) == "poly" else 0.0
    expected = 0.95 - off - 0.03 * (np.log10(C) - 0.5) ** 2
    return float(np.random.default_rng(trial.number).binomial(100, expected)) / 100


sampler = MixBanditSampler(reward_range=(0, 1), samples=100, seed=0)
study = optuna.create_study(study_name="svm", direction="maximize", sampler=sampler)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)  # Optuna 6 is to drop the callback from optuna-integration
    log_trial = MLflowCallback(metric_name="accuracy")  # in the experiment of the study's name
study.optimize(objective, n_trials=30, callbacks=[log_trial])

found = sampler.certificate(study)
with mlflow.start_run(run_name="certificate"):
    mlflow.log_params(found.parameters)
    mlflow.log_metrics({"floor": found.lower, "gap": found.gap, "best_possible": found.best_possible})
    mlflow.set_tags({"trusted": found.trusted, "delta": found.delta})
    mlflow.log_text(found.details(), "certificate.txt")
    mlflow.log_dict(found.to_dict(), "certificate.json")

runs = mlflow.search_runs(experiment_names=["svm"], output_format="list")
logged = next(run for run in runs if run.info.run_name == "certificate")
print(f"{len(runs) - 1} trials and their certificate are in {tracking}")
print(f"metrics of the run 'certificate': {logged.data.metrics}")
print(f"its artifacts: {[artifact.path for artifact in mlflow.artifacts.list_artifacts(run_id=logged.info.run_id)]}")
print(found)
