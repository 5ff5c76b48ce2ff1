"""mixbandit's sampler, as a package of OptunaHub."""

from mixbandit.integrations.optuna import MixBanditSampler, StopOnGap

__all__ = ["MixBanditSampler", "StopOnGap"]
