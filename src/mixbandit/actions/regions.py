"""The arms or box that policies choose from, with or without a context."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from mixbandit._checks import Array, as_vector
from mixbandit._schema import array, checked, count, flag, list_of, optional, record, scalar, tagged
from mixbandit.actions.arms import Arms
from mixbandit.actions.box import Box
from mixbandit.actions.mixed import MixedBox
from mixbandit.errors import InvalidInput

Region: TypeAlias = Arms | Box


def as_region(actions: Region | ArrayLike, name: str = "actions") -> Region:
    """Arms or a Box as they are; anything else becomes Arms."""
    if isinstance(actions, Arms | Box):
        return actions
    try:
        return Arms(actions)
    except InvalidInput as error:
        raise InvalidInput(f"{name} must be Arms, a Box or rows of numbers: {error}") from error


def as_context(context: ArrayLike, length: int) -> Array:
    """A context as a vector of this length."""
    flat = np.ravel(np.asarray(context)) if np.ndim(context) == 2 and len(np.atleast_2d(context)) == 1 else context
    return as_vector(flat, length, "context").copy()


def offered(
    own: Region | None, given: Region | ArrayLike | None, context: ArrayLike | None, dim_in: int, name: str
) -> tuple[Region, Array | None]:
    """The choices as rows (context, action) of length `dim_in`, and the context; `given` overrides `own`."""
    region = own if given is None else as_region(given, name)
    if region is None:
        raise InvalidInput(f"this policy has no fixed actions: pass them as `{name}`")
    missing = dim_in - region.dim
    if context is None:
        if missing:
            advice = "" if missing < 0 else ": pass a context"
            if isinstance(region, Arms) and region.dim == 1 and len(region) == dim_in:
                advice += ", or, for a single arm, a list of one row"
            raise InvalidInput(f"{name}: actions have dimension {region.dim}, but the features take {dim_in}{advice}")
        return region, None
    if missing <= 0:
        raise InvalidInput(f"the features take {dim_in} inputs: actions of {region.dim} leave no room for a context")
    vector = as_context(context, missing)
    return region.given(vector), vector


_COLUMNS = list_of(count, least=1)
_BOX = {"low": array(None), "high": array(None)}
_LEVELS = {"columns": _COLUMNS, "values": array(None, None), "ordered": flag}
_PINS = {"columns": _COLUMNS, "where": _COLUMNS, "value": array(None)}
REGION = tagged(
    {
        "Arms": record({"actions": array(None, None), "labels": optional(list_of(scalar))}),
        "Box": record(_BOX),
        "MixedBox": record({**_BOX, "levels": list_of(record(_LEVELS)), "pins": list_of(record(_PINS))}),
    },
    "actions",
)


def region_from_state_dict(state: Mapping[str, Any]) -> Region:
    """The arms or box of a `state_dict`."""
    stored = checked(REGION, state, "actions")
    if stored["type"] == "Arms":
        return Arms(stored["actions"], stored["labels"])
    return Box(stored["low"], stored["high"]) if stored["type"] == "Box" else MixedBox.from_state_dict(stored)
