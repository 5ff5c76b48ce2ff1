"""Optuna: a sampler that acts on confidence bounds, and callbacks that confirm finalists or stop a study."""

from mixbandit._extras import import_extra

import_extra("optuna", extra="optuna")  # import first, with a message that says what to install

from mixbandit.integrations.optuna.finalists import ConfirmFinalists  # noqa: E402
from mixbandit.integrations.optuna.sampler import LEFT_OUT, LOWER, REFUTED, UPPER, MixBanditSampler  # noqa: E402
from mixbandit.integrations.optuna.stopping import StopOnGap  # noqa: E402
from mixbandit.integrations.optuna.trials import as_distribution, suggest  # noqa: E402

__all__ = [
    "LEFT_OUT",
    "LOWER",
    "REFUTED",
    "UPPER",
    "ConfirmFinalists",
    "MixBanditSampler",
    "StopOnGap",
    "as_distribution",
    "suggest",
]
