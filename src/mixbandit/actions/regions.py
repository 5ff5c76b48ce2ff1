"""The arms or box that policies choose from, with or without a context."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from numpy.typing import ArrayLike

from mixbandit._checks import Array, as_float_array, as_vector, flag
from mixbandit._schema import Fields, array, checked, count, list_of, optional, record, require, scalar, tagged
from mixbandit.actions.arms import Arms, borrowed
from mixbandit.actions.box import Box
from mixbandit.actions.mixed import MixedBox
from mixbandit.errors import InvalidInput

if TYPE_CHECKING:
    from typing_extensions import TypeIs

Region: TypeAlias = Arms | Box


def as_region(actions: Region | ArrayLike, name: str = "actions", *, borrow: bool = False) -> Region:
    """Arms or a Box as they are; anything else becomes Arms, without a copy of its rows if they are only borrowed."""
    if is_region(actions):
        return actions
    try:
        return borrowed(actions) if borrow else Arms(actions)
    except InvalidInput as error:
        raise InvalidInput(f"{name} must be Arms, a Box or rows of numbers: {error}") from error


def is_region(actions: Any) -> TypeIs[Region]:
    """Whether it is arms or a box already, and not rows of numbers."""
    return isinstance(actions, Arms | Box)


def as_context(context: ArrayLike, length: int) -> Array:
    """A context as a vector of this length."""
    vector = as_float_array(context, "context")
    return as_vector(vector[0] if vector.ndim == 2 and len(vector) == 1 else vector, length, "context").copy()


def offered(
    own: Region | None,
    given: Region | ArrayLike | None,
    context: ArrayLike | None,
    dim_in: int,
    name: str,
    *,
    borrow: bool = False,
) -> tuple[Region, Array | None]:
    """The choices as rows (context, action) of length `dim_in`, and the context; `given` overrides `own`."""
    region = own if given is None else as_region(given, name, borrow=borrow)
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
_VALUES = record({"columns": _COLUMNS, "values": array(None, None), "ordered": flag})
_PINS = {"columns": _COLUMNS, "where": _COLUMNS, "value": array(None)}


def _check_one_hot(stored: Fields, where: str) -> None:
    known = all(i < len(stored["columns"]) for i in stored["one_hot"])
    require(known, f"{where}.one_hot", f"must be indices below {len(stored['columns'])}")
    require(len(set(stored["one_hot"])) == len(stored["one_hot"]), f"{where}.one_hot", "must differ")


_ONE_HOT = record({"columns": _COLUMNS, "one_hot": _COLUMNS}, _check_one_hot)


def _levels(value: Any, where: str) -> Fields:
    found: Fields = (_ONE_HOT if isinstance(value, Mapping) and "one_hot" in value else _VALUES)(value, where)
    return found


REGION = tagged(
    {
        "Arms": record({"actions": array(None, None), "labels": optional(list_of(scalar))}),
        "Box": record(_BOX),
        "MixedBox": record({**_BOX, "levels": list_of(_levels), "pins": list_of(record(_PINS))}),
    },
    "actions",
)


def region_from_state_dict(state: Mapping[str, Any]) -> Region:
    """The arms or box of a `state_dict`."""
    stored = checked(REGION, state, "actions")
    if stored["type"] == "Arms":
        return Arms(stored["actions"], stored["labels"])
    return Box(stored["low"], stored["high"]) if stored["type"] == "Box" else MixedBox.from_state_dict(stored)
