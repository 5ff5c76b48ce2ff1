"""Mixtures. Each is a forecaster: it predicts a mean and a variance for a reward before the reward is seen."""

from collections.abc import Mapping
from typing import Any

from mixbandit._checks import finite, nonnegative, positive
from mixbandit._schema import Schema, array, checked, deferred, list_of, optional, real, record, tagged
from mixbandit.kernels import KERNEL, kernel_from_state_dict
from mixbandit.mixtures.adaptive import Adaptive
from mixbandit.mixtures.bank import MOST_RESULTS, TRIALS, Bank, BoundedPrequential, Trials, log_predictive
from mixbandit.mixtures.base import COST, Cost, Forecaster, Mixture, not_storable
from mixbandit.mixtures.gaussian import Gaussian
from mixbandit.mixtures.grid import Grid, as_cost
from mixbandit.mixtures.linear import Linear, LinearCost, LinearMixture, Scaled, Standard, log_det
from mixbandit.mixtures.pooled import Pool, PooledCost
from mixbandit.mixtures.prequential import FromRegressor, Prequential
from mixbandit.mixtures.semi_adaptive import SemiAdaptive

__all__ = [
    "COST",
    "MIXTURE",
    "MOST_RESULTS",
    "TRIALS",
    "Adaptive",
    "Bank",
    "BoundedPrequential",
    "Cost",
    "Forecaster",
    "FromRegressor",
    "Gaussian",
    "Grid",
    "Linear",
    "LinearCost",
    "LinearMixture",
    "Mixture",
    "Pool",
    "PooledCost",
    "Prequential",
    "Scaled",
    "SemiAdaptive",
    "Standard",
    "Trials",
    "as_cost",
    "log_det",
    "log_predictive",
    "mixture_from_state_dict",
    "not_storable",
]


MIXTURE: Schema = tagged(
    {
        "Standard": record({}),
        "Scaled": record({"c": real(positive)}),
        "Linear": record({"theta0": array(None), "Sigma0": array(None, None)}),
        "Gaussian": record({"mean": real(finite), "kernel": KERNEL}),
        "Adaptive": record({"beta": optional(real(positive)), "kernel": optional(KERNEL)}),
        "SemiAdaptive": record({"c": real(positive), "kernel": optional(KERNEL)}),
        "Bank": record(
            {
                "kernels": optional(list_of(KERNEL, least=1)),
                "scales": array(None),
                "noises": array(None),
                "share": real(nonnegative),
            }
        ),
        "Grid": record({"members": list_of(deferred(lambda: MIXTURE), least=1), "weights": array(None)}),
    },
    "a mixture",
)


def mixture_from_state_dict(state: Mapping[str, Any]) -> Mixture:
    """The mixture of a `state_dict`."""
    stored = checked(MIXTURE, state, "mixture")
    return _bank(stored) if stored["type"] == "Bank" else _mixture(stored)


def _bank(stored: Mapping[str, Any]) -> Bank:
    kernels = None if stored["kernels"] is None else [kernel_from_state_dict(each) for each in stored["kernels"]]
    return Bank(kernels, scales=stored["scales"], noises=stored["noises"], share=stored["share"])


def _mixture(stored: Mapping[str, Any]) -> Mixture:
    match stored["type"]:
        case "Scaled":
            return Scaled(stored["c"])
        case "Linear":
            return Linear(stored["theta0"], stored["Sigma0"])
        case "Gaussian":
            return Gaussian(stored["mean"], kernel_from_state_dict(stored["kernel"]))
        case "Adaptive" | "SemiAdaptive":
            kernel = None if stored["kernel"] is None else kernel_from_state_dict(stored["kernel"])
            semi = stored["type"] == "SemiAdaptive"
            return SemiAdaptive(stored["c"], kernel) if semi else Adaptive(stored["beta"], kernel)
        case "Grid":
            return Grid([mixture_from_state_dict(member) for member in stored["members"]], stored["weights"])
    return Standard()
