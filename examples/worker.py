"""One of many workers on a shared study

Start any number of them, wherever the storage can be reached. Without arguments it runs 20 trials on its own.
docs/how-to/machines.md has the commands that start many.

    python examples/worker.py study.journal svm 60  # processes on one machine
    python examples/worker.py postgresql+psycopg2://tuning@db.example.org/tuning svm 400  # or on many
"""

import sys
import warnings
from pathlib import Path

import numpy as np
import optuna
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState

from mixbandit.integrations.optuna import MixBanditSampler
from mixbandit.plots import COLOURS, figure, save

optuna.logging.set_verbosity(optuna.logging.WARNING)


def opened(address: str) -> optuna.storages.BaseStorage:
    """A database by its URL, or a journal by its path."""
    if "://" not in address:
        return optuna.storages.JournalStorage(JournalFileBackend(address))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        # A trial without a heartbeat for three minutes fails, and is run once more.
        retry = optuna.storages.RetryHeartbeatStaleTrialCallback(max_retry=1)
        return optuna.storages.RDBStorage(
            address, heartbeat_interval=60, grace_period=180, heartbeat_stale_trial_callback=retry
        )


def objective(trial: optuna.Trial) -> float:
    """Accuracy on 100 new validation rows in every trial; here a simulation. Put your training here."""
    C = trial.suggest_float("C", 1e-2, 1e2, log=True)
    off = 0.1 if trial.suggest_categorical("kernel", ["rbf", "poly"]) == "poly" else 0.0
    expected = 0.95 - off - 0.03 * (np.log10(C) - 0.5) ** 2
    return float(np.random.default_rng(trial.number).binomial(100, expected)) / 100


alone = len(sys.argv) == 1
if alone:
    journal = Path("out/examples/worker.journal")
    journal.parent.mkdir(parents=True, exist_ok=True)
    journal.unlink(missing_ok=True)  # of an earlier run of this example
address, name, trials = (str(journal), "svm", "20") if alone else sys.argv[1:]
sampler = MixBanditSampler(reward_range=(0, 1), samples=100, rows="fresh", seed=0 if alone else None)
study = optuna.create_study(
    storage=opened(address), study_name=name, direction="maximize", sampler=sampler, load_if_exists=True
)
# Stop once this many trials are completed or running, in all workers together.
enough = optuna.study.MaxTrialsCallback(int(trials), states=(TrialState.COMPLETE, TrialState.RUNNING))
study.optimize(objective, callbacks=[enough])
found = sampler.certificate(study)
print(found)

# The picture.
if alone:
    fig, (ax,) = figure(width=6.5, height=3.2)
    for position, kernel in enumerate(("rbf", "poly")):
        tried = [trial for trial in study.trials if trial.params["kernel"] == kernel]
        C, values = [trial.params["C"] for trial in tried], [trial.value for trial in tried]
        ax.plot(C, values, "os"[position], color=COLOURS[position], label=f"trials, kernel {kernel}")
    ax.axhline(found.lower, color="black", linestyle="--", label="certified floor of the recommended one")
    ax.set(xscale="log", xlabel="C", ylabel="accuracy on 100 rows", title="20 trials of a study, and their certificate")
    ax.legend(fontsize="small", loc="lower center")
    save(fig, Path("out/examples/worker.png"))
