"""The arms or box that policies choose from, with or without a context."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from numpy.typing import ArrayLike

from mixbandit._checks import Array, as_float_array, as_vector
from mixbandit.actions.arms import Arms, borrowed
from mixbandit.actions.box import Box
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
