"""mixbandit's pruner, as a package of OptunaHub."""

from mixbandit.integrations.optuna import CertifiedPruner

__all__ = ["CertifiedPruner"]
