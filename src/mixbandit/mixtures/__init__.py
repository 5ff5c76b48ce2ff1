"""Mixtures, each a forecaster: before a reward is seen it predicts a mean and a variance for it."""

from collections.abc import Mapping
from typing import Any

from mixbandit.errors import DamagedState
from mixbandit.kernels import kernel_from_state_dict
from mixbandit.mixtures.adaptive import Adaptive
from mixbandit.mixtures.base import Cost, Forecaster, Mixture, not_storable
from mixbandit.mixtures.gaussian import Gaussian
from mixbandit.mixtures.grid import Grid, as_cost
from mixbandit.mixtures.linear import Linear, LinearCost, LinearMixture, Scaled, Standard, log_det
from mixbandit.mixtures.prequential import FromRegressor, Prequential

__all__ = [
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


def mixture_from_state_dict(state: Mapping[str, Any]) -> Mixture:
    """The mixture of a `state_dict`."""
    kind = state.get("type")
    try:
        match kind:
            case "Standard":
                return Standard()
            case "Scaled":
                return Scaled(state["c"])
            case "Linear":
                return Linear(state["theta0"], state["Sigma0"])
            case "Gaussian":
                return Gaussian(state["mean"], kernel_from_state_dict(state["kernel"]))
            case "Adaptive":
                kernel = None if state["kernel"] is None else kernel_from_state_dict(state["kernel"])
                return Adaptive(state["beta"], kernel)
            case "Grid":
                return Grid([mixture_from_state_dict(member) for member in state["members"]], state["weights"])
    except KeyError as error:
        raise DamagedState(f"the state of the mixture {kind} lacks {error}") from error
    raise DamagedState(f"unknown mixture {kind!r}")
