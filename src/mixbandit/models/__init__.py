"""Models: from actions to the directions in which confidence sets are queried, and back.

A model holds settings only. Directions are opaque to the rest of the package, which indexes, negates and subtracts them
and passes them to sets; points, which sets return, go back through `linearised` to gradients in the action.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mixbandit._checks import positive_int, shown
from mixbandit._schema import Fields, Schema, Since, integer, list_of, optional, require
from mixbandit.data import OBSERVATIONS, STATISTICS
from mixbandit.errors import InvalidInput
from mixbandit.features import FEATURES, as_feature_map, features_from_state_dict
from mixbandit.kernels import KERNEL, as_kernel, is_kernel, kernel_from_state_dict
from mixbandit.models.base import BoxModel, DataModel, Directed, Model, Unlayered, box_model
from mixbandit.models.features import FeatureModel
from mixbandit.models.kernels import KernelListModel, KernelModel

__all__ = [
    "MODEL",
    "BoxModel",
    "DataModel",
    "Directed",
    "FeatureModel",
    "KernelListModel",
    "KernelModel",
    "Model",
    "Unlayered",
    "as_model",
    "box_model",
    "check_model",
    "feature_model",
    "model_from_state_dict",
    "single_model",
]


def as_model(given: Any, dim_in: int | None = None) -> DataModel:
    """The model of a feature map, of d-dimensional vectors taken as they are, of a kernel, or of a list of kernels."""
    if isinstance(given, DataModel):
        return given
    if isinstance(given, list | tuple) and given and all(map(is_kernel, given)):
        members = [as_model(kernel, dim_in) for kernel in given]
        width = next((member.dim_in for member in members if member.dim_in is not None), None)
        return KernelListModel(tuple(as_model(kernel, width) for kernel in given))  # type: ignore[misc]
    if is_kernel(given):
        kernel = as_kernel(given)
        width = None if dim_in is None else positive_int(dim_in, "dim_in")
        if width is not None:
            kernel.check_dim_in(width)
        return KernelModel(kernel, width)
    return FeatureModel(as_feature_map(given))


def single_model(given: Any) -> DataModel:
    """The same, for what does not work with a list of kernels."""
    model = as_model(given)
    if isinstance(model, KernelListModel):
        raise InvalidInput(f"a list of kernels needs a KernelMixture; got {len(model.members)} kernels")
    return model


def feature_model(given: Any, what: str) -> FeatureModel:
    """The model of features, for what does not work with a kernel."""
    model = as_model(given)
    if not isinstance(model, FeatureModel):
        raise InvalidInput(f"{what} needs features, not a kernel; got {model.kernel}")
    return model


MODEL: dict[str, Schema | Since] = {
    "features": Since(FEATURES),
    "kernel": Since(KERNEL),
    "kernels": Since(list_of(KERNEL, least=1)),
    "dim_in": Since(optional(integer(1))),
    "statistics": Since(STATISTICS),
    "observations": Since(OBSERVATIONS),
}
"""The parts of a sequence's state that its model describes: those of features, or those of a kernel."""


def check_model(stored: Fields, where: str) -> None:
    """Either features with their statistics, or a kernel with its observations."""
    kernel = next((name for name in ("kernel", "kernels") if stored[name] is not None), None)
    names = ("features", "statistics") if kernel is None else (kernel, "observations")
    for name in names:
        require(stored[name] is not None, where, f"lacks {name!r}")


def model_from_state_dict(state: Mapping[str, Any], features: Any = None) -> DataModel:
    """The model in a sequence's state, already checked; pass `features` again if they are a user's function."""
    if state["kernel"] is None and state["kernels"] is None:
        return FeatureModel(features_from_state_dict(state["features"], features))
    if features is not None:
        raise InvalidInput(f"the stored model is a kernel, which needs no features; got {shown(features)}")
    if state["kernels"] is not None:
        return as_model([kernel_from_state_dict(each) for each in state["kernels"]], state["dim_in"])
    return as_model(kernel_from_state_dict(state["kernel"]), state["dim_in"])
