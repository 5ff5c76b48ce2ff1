"""Mixtures, each a forecaster: before a reward is seen it predicts a mean and a variance for it."""

from collections.abc import Mapping
from typing import Any

from mixbandit._checks import finite, positive
from mixbandit._schema import Schema, array, checked, deferred, list_of, optional, real, record, tagged
from mixbandit.kernels import KERNEL, kernel_from_state_dict
from mixbandit.mixtures.adaptive import Adaptive
from mixbandit.mixtures.base import COST, Cost, Forecaster, Mixture, not_storable
from mixbandit.mixtures.gaussian import Gaussian
from mixbandit.mixtures.grid import Grid, as_cost
from mixbandit.mixtures.linear import Linear, LinearCost, LinearMixture, Scaled, Standard, log_det
from mixbandit.mixtures.prequential import FromRegressor, Prequential

__all__ = [
    "COST",
    "MIXTURE",
    "Adaptive",
    "Cost",
    "Forecaster",
    "FromRegressor",
    "Gaussian",
    "Grid",
    "Linear",
    "LinearCost",
    "LinearMixture",
    "Mixture",
    "Prequential",
    "Scaled",
    "Standard",
    "as_cost",
    "log_det",
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
        "Grid": record({"members": list_of(deferred(lambda: MIXTURE), least=1), "weights": array(None)}),
    },
    "a mixture",
)


def mixture_from_state_dict(state: Mapping[str, Any]) -> Mixture:
    """The mixture of a `state_dict`."""
    stored = checked(MIXTURE, state, "mixture")
    match stored["type"]:
        case "Scaled":
            return Scaled(stored["c"])
        case "Linear":
            return Linear(stored["theta0"], stored["Sigma0"])
        case "Gaussian":
            return Gaussian(stored["mean"], kernel_from_state_dict(stored["kernel"]))
        case "Adaptive":
            kernel = None if stored["kernel"] is None else kernel_from_state_dict(stored["kernel"])
            return Adaptive(stored["beta"], kernel)
        case "Grid":
            return Grid([mixture_from_state_dict(member) for member in stored["members"]], stored["weights"])
    return Standard()
