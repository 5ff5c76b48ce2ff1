"""What users state about named contexts, and what is stored of them: checked at the boundary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mixbandit._checks import as_items, shown
from mixbandit._schema import Fields, count, list_of, one_of_these, require
from mixbandit.errors import InvalidInput
from mixbandit.features.columns import (
    CATEGORY,
    HASHED,
    INTERCEPT,
    MISSING,
    NUMBER,
    OTHER,
    ROLES,
    UNUSED,
    Column,
    as_category,
)
from mixbandit.features.contexts import Category, Name, is_missing, read_cell, read_name, read_names


def as_list(value: Any, what: str) -> list[Any]:
    """A list that a user states."""
    return as_items(value, what, "a list")


def as_categories(value: Any) -> dict[Name, tuple[Category, ...]]:
    """The categories that a user lists, by name."""
    if not isinstance(value, Mapping):
        raise InvalidInput(f"categories must be a mapping from names to lists of categories, got {shown(value)}")
    return {read_name(name): _as_listed(name, listed) for name, listed in value.items()}


def _as_listed(name: Any, listed: Any) -> tuple[Category, ...]:
    cells = [read_cell(cell, name) for cell in as_list(listed, f"categories[{shown(name)}]")]
    if not cells or any(map(is_missing, cells)):
        raise InvalidInput(f"categories[{shown(name)}] must be at least one text, truth value or number")
    found = tuple(as_category(cell) if isinstance(cell, float) else cell for cell in cells)
    if len(set(found)) < len(found):
        raise InvalidInput(f"categories[{shown(name)}] has one more than once, in {shown(list(found))}")
    return found


def _name(value: Any, where: str) -> Name:
    return read_name(value)


def _listing(value: Any, where: str) -> tuple[Name, tuple[Category, ...]]:
    """A name with the categories that were listed for it."""
    pair = list_of(_anything, least=2)(value, where)
    return read_name(pair[0]), _as_listed(pair[0], pair[1])


def _anything(value: Any, where: str) -> Any:
    return value


def _column(value: Any, where: str) -> Column:
    parts = list_of(_anything, least=3)(value, where)
    role, of, category = one_of_these(*ROLES)(parts[0], where), count(parts[1], where), parts[2]
    fits = isinstance(category, str | bool) if role == CATEGORY else category is None
    require(fits and len(parts) == 3, where, f"must be a column, got {shown(value)}")
    return Column(role, of, category)


def check_learnt(stored: Fields, where: str) -> None:
    """Refuse parts of what was learnt that do not fit each other."""
    n, columns = len(stored["names"]), stored["columns"]
    read_names(stored["names"], f"{where}.names")
    for name in ("kinds", "moments", "scale"):
        length = len(stored[name]) if name == "kinds" else stored[name].shape[1]
        require(length == n, f"{where}.{name}", f"must be one for each of {n} names, got {length}")
    require(len(set(columns) - {Column(UNUSED)}) == sum(c.role != UNUSED for c in columns), where, "has a column twice")
    require(columns[:1] == [Column(INTERCEPT)], f"{where}.columns", "must begin with the intercept")
    named = (NUMBER, MISSING, CATEGORY, OTHER)
    require(all(c.of < n for c in columns if c.role in named), f"{where}.columns", "has a column of no name")
    hashed = [j for j, column in enumerate(columns) if column.role == HASHED]
    together = not hashed or hashed[-1] - hashed[0] == len(hashed) - 1
    require(together, f"{where}.columns", "must have the hashed ones side by side")
    seen, _, squares, low, high = stored["moments"]
    fits = (seen >= 0.0).all() and (squares >= 0.0).all() and (low <= high).all()
    require(fits, f"{where}.moments", "must be counts, means, sums of squares and ranges")
    _, weight, low, high = stored["scale"]
    require((weight >= 0.0).all() and (low <= high).all(), f"{where}.scale", "must be means, weights and limits")
    require(all(len(row) <= n for row in stored["pending"]), f"{where}.pending", f"must have {n} numbers each")
    require(all(len(pair) == 2 for pair in stored["owners"]), f"{where}.owners", "must be pairs")


NAME, LISTED, COLUMN = _name, _listing, _column
"""The schemas of a name, of a name with its listed categories, and of a column."""
