"""One worker of a study that many processes share. Start as many as you like, wherever the storage can be reached.

    python examples/worker.py study.journal svm 60  # processes on one machine
    python examples/worker.py postgresql+psycopg2://tuning@db.example.org/tuning svm 400  # or on many

Without arguments it runs 20 trials on its own. docs/how-to/machines.md has the commands to start many.
"""

import sys
import tempfile
import warnings

import numpy as np
import optuna
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState

from mixbandit.integrations.optuna import MixBanditSampler

optuna.logging.set_verbosity(optuna.logging.WARNING)


def opened(address: str) -> optuna.storages.BaseStorage:
    """A database by its URL, or a journal by its path."""
    if "://" not in address:
        return optuna.storages.JournalStorage(JournalFileBackend(address))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        # A trial without a sign of life for three minutes fails, and is run again, once.
        retry = optuna.storages.RetryHeartbeatStaleTrialCallback(max_retry=1)
        return optuna.storages.RDBStorage(
            address, heartbeat_interval=60, grace_period=180, heartbeat_stale_trial_callback=retry
        )


def objective(trial: optuna.Trial) -> float:
    """Accuracy on 100 validation rows, new in every trial. Put your training here."""
    C = trial.suggest_float("C", 1e-2, 1e2, log=True)
    off = 0.1 if trial.suggest_categorical("kernel", ["rbf", "poly"]) == "poly" else 0.0
    expected = 0.95 - off - 0.03 * (np.log10(C) - 0.5) ** 2
    return float(np.random.default_rng().binomial(100, expected)) / 100


default = (f"{tempfile.mkdtemp()}/study.journal", "svm", "20")
address, name, trials = sys.argv[1:] if len(sys.argv) > 1 else default
sampler = MixBanditSampler(reward_range=(0, 1), samples=100)
study = optuna.create_study(
    storage=opened(address), study_name=name, direction="maximize", sampler=sampler, load_if_exists=True
)
# Stop once this many trials have a value or are being run, whoever runs them.
enough = optuna.study.MaxTrialsCallback(int(trials), states=(TrialState.COMPLETE, TrialState.RUNNING))
study.optimize(objective, callbacks=[enough])
print(sampler.certificate(study))
