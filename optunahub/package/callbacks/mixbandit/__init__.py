"""mixbandit's callbacks, as a package of OptunaHub."""

from mixbandit.integrations.optuna import ConfirmFinalists, StopOnGap

__all__ = ["ConfirmFinalists", "StopOnGap"]
