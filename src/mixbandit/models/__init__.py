"""Models: from actions to the directions in which confidence sets are queried, and back.

A model holds settings only. Directions are opaque to the rest of the package, which indexes, negates and subtracts them
and passes them to sets; points, which sets return, go back through `linearised` to gradients in the action.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mixbandit.errors import InvalidInput
from mixbandit.features import as_feature_map
from mixbandit.kernels import as_kernel, is_kernel
from mixbandit.models.arms import PerArm
from mixbandit.models.base import BoxModel, DataModel, Directed, Model, Unlayered, box_model
from mixbandit.models.features import FeatureModel
from mixbandit.models.kernels import KernelListModel, KernelModel

__all__ = [
    "BoxModel",
    "DataModel",
    "Directed",
    "FeatureModel",
    "KernelListModel",
    "KernelModel",
    "Model",
    "PerArm",
    "Unlayered",
    "as_model",
    "box_model",
    "feature_model",
    "model_kind",
    "single_model",
]


def as_model(given: Any, dim_in: int | None = None) -> DataModel:
    """The model of a feature map, of d-dimensional vectors taken as they are, of a kernel, or of a list of kernels."""
    if isinstance(given, DataModel):
        return given
    if isinstance(given, list | tuple) and given and all(map(is_kernel, given)):
        return KernelListModel.of([as_kernel(kernel) for kernel in given], dim_in)
    return KernelModel.of(as_kernel(given), dim_in) if is_kernel(given) else FeatureModel(as_feature_map(given))


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


def model_kind(state: Mapping[str, Any]) -> type[DataModel]:
    """The class of the model in a sequence's state, which has a field of its kind; features, if there is none."""
    kinds: list[Any] = [kind for name, kind in DataModel.family.kinds.items() if state.get(name) is not None]
    return kinds[-1] if kinds else FeatureModel
