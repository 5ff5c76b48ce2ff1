"""Log trials and their certificate in MLflow

Optuna's callback logs the trials; a few calls log the certificate as metrics, tags and artifacts. The tracking server
here is a local file. Needs the extra `tracking`.

See docs/how-to/machines.md.
"""

import shutil
import warnings
from pathlib import Path

import mlflow
import numpy as np
import optuna
from optuna_integration import MLflowCallback

from mixbandit.integrations.optuna import MixBanditSampler
from mixbandit.plots import COLOURS, figure, save

optuna.logging.set_verbosity(optuna.logging.WARNING)
out = Path("out/examples")
shutil.rmtree(out / "mlflow", ignore_errors=True)  # of an earlier run of this example
(out / "mlflow").mkdir(parents=True)
mlflow.set_tracking_uri("sqlite:///out/examples/mlflow/mlflow.db")  # or the address of your server
mlflow.create_experiment("svm", artifact_location=(out / "mlflow").resolve().as_uri())  # a server knows its own place


def objective(trial: optuna.Trial) -> float:
    """Accuracy on 100 new validation rows in every trial; here a simulation."""
    C = trial.suggest_float("C", 1e-2, 1e2, log=True)
    off = 0.1 if trial.suggest_categorical("kernel", ["rbf", "poly"]) == "poly" else 0.0
    expected = 0.95 - off - 0.03 * (np.log10(C) - 0.5) ** 2
    return float(np.random.default_rng(trial.number).binomial(100, expected)) / 100


sampler = MixBanditSampler(reward_range=(0, 1), samples=100, rows="fresh", seed=0)
study = optuna.create_study(study_name="svm", direction="maximize", sampler=sampler)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)  # Optuna 6 will drop the callback from optuna-integration
    log_trial = MLflowCallback(metric_name="accuracy")  # logs into the experiment named like the study
study.optimize(objective, n_trials=30, callbacks=[log_trial])
found = sampler.certificate(study)

# The picture.
fig, (ax,) = figure(width=6.5, height=3.2)
values = [trial.value for trial in study.trials]
ax.plot(range(1, len(values) + 1), values, "k.", label="accuracy of a trial")
ax.axhline(max(values), color=COLOURS[1], linestyle=":", label="best value")
ax.axhline(found.lower, color=COLOURS[0], label="certified floor of the recommended configuration")
ax.set(xlabel="trial", ylabel="accuracy on 100 rows", title="The best value is partly luck; the floor holds at 95 %")
ax.legend(fontsize="small", loc="lower right")
save(fig, out / "mlflow_logging.png")

with mlflow.start_run(run_name="certificate"):
    mlflow.log_params(found.parameters)
    mlflow.log_metrics({"floor": found.lower, "gap": found.gap, "best_possible": found.best_possible})
    mlflow.set_tags({"trusted": found.trusted, "delta": found.delta})
    mlflow.log_text(found.details(), "certificate.txt")
    mlflow.log_dict(found.to_dict(), "certificate.json")
    mlflow.log_figure(fig, "certificate.png")

runs = mlflow.search_runs(experiment_names=["svm"], output_format="list")
logged = next(run for run in runs if run.info.run_name == "certificate")
artifacts = mlflow.artifacts.list_artifacts(run_id=logged.info.run_id)
print(f"{len(runs) - 1} trials and their certificate are in {mlflow.get_tracking_uri()}")
print(f"Metrics of the run 'certificate': {dict(sorted(logged.data.metrics.items()))}")
print(f"Its artifacts: {sorted(artifact.path for artifact in artifacts)}")
print(found)
