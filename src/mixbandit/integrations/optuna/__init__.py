"""Optuna: a sampler that acts on confidence bounds, a pruner, callbacks, and plots of certificates."""

from mixbandit._extras import import_extra

import_extra("optuna", extra="optuna")  # import first, with a message that says what to install

from mixbandit.integrations.optuna.dashboard import Publish, publish  # noqa: E402
from mixbandit.integrations.optuna.finalists import ConfirmFinalists  # noqa: E402
from mixbandit.integrations.optuna.pictures import plot_certificate, plot_worths  # noqa: E402
from mixbandit.integrations.optuna.pruning import CertifiedPruner  # noqa: E402
from mixbandit.integrations.optuna.sampler import LOWER, REFUTED, UPPER, MixBanditSampler  # noqa: E402
from mixbandit.integrations.optuna.stopping import StopOnGap  # noqa: E402
from mixbandit.integrations.optuna.trials import as_distribution, suggest  # noqa: E402
from mixbandit.tuning.selection import LEFT_OUT  # noqa: E402

__all__ = [
    "LEFT_OUT",
    "LOWER",
    "REFUTED",
    "UPPER",
    "CertifiedPruner",
    "ConfirmFinalists",
    "MixBanditSampler",
    "Publish",
    "StopOnGap",
    "as_distribution",
    "plot_certificate",
    "plot_worths",
    "publish",
    "suggest",
]
