"""Pictures of mixbandit's certificates, as a package of OptunaHub."""

from mixbandit.integrations.optuna import Publish, plot_certificate, plot_worths, publish

__all__ = ["Publish", "plot_certificate", "plot_worths", "publish"]
