"""Conditions: parameters that matter only for certain values of a categorical one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mixbandit._checks import as_text, shown
from mixbandit.errors import InvalidInput
from mixbandit.tuning.parameters import Categorical, Parameter

Stated = dict[str, tuple[str, tuple[Any, ...]]]


class Conditions:
    """Conditions of a space's parameters: name → (the parameter it depends on, the values for which it matters)."""

    def __init__(
        self, parameters: Mapping[str, Parameter], conditions: Mapping[str, tuple[str, Iterable[Any]]]
    ) -> None:
        self._parameters = parameters
        self.stated: Stated = _parents_first(_checked(parameters, conditions))
        # The indices of the choices for which a parameter matters, in order.
        self._openers = {
            child: dict.fromkeys(self._on(child).index(value, parent) for value in values)
            for child, (parent, values) in self.stated.items()
        }

    def openers(self, name: str) -> list[int]:
        """The indices of the choices for which a conditional parameter matters."""
        return list(self._openers[name])

    def is_active(self, name: str, given: Mapping[str, Any]) -> bool:
        """Whether a parameter matters, given the values of those it depends on."""
        chain = []
        while name in self.stated:
            chain.append(name)
            name = self.stated[name][0]
        return all(self._is_opened(conditional, given) for conditional in reversed(chain))

    def active(self, given: Mapping[str, Any]) -> set[str]:
        """All parameters that matter, given values."""
        active = {name for name in self._parameters if name not in self.stated}
        for name, (parent, _) in self.stated.items():
            if parent in active and self._is_opened(name, given):
                active.add(name)
        return active

    def _is_opened(self, name: str, given: Mapping[str, Any]) -> bool:
        parent = self.stated[name][0]
        return parent in given and self._on(name).index(given[parent], parent) in self._openers[name]

    def _on(self, name: str) -> Categorical:
        on = self._parameters[self.stated[name][0]]
        assert isinstance(on, Categorical)
        return on


def _checked(parameters: Mapping[str, Parameter], conditions: Mapping[str, tuple[str, Iterable[Any]]]) -> Stated:
    if not isinstance(conditions, Mapping):
        raise InvalidInput(
            f"conditions must be a dict such as {{'degree': ('kernel', ['poly'])}}; got {shown(conditions)}"
        )
    known: Stated = {}
    for child, condition in conditions.items():
        if not isinstance(condition, tuple | list) or len(condition) != 2:
            raise InvalidInput(f"the condition of {shown(child)} must be (name, values), got {shown(condition)}")
        parent = condition[0]
        values = tuple(condition[1]) if isinstance(condition[1], tuple | list) else ()
        for name in (child, parent):
            if as_text(name, "the name of a parameter in a condition") not in parameters:
                raise InvalidInput(f"there is no parameter {shown(name)}; the parameters are {', '.join(parameters)}")
        on = parameters[parent]
        if not isinstance(on, Categorical) or not values:
            raise InvalidInput(f"{child} must depend on a Categorical and a list of its values, got {shown(condition)}")
        for value in values:
            on.index(value, f"the condition of {child}: {parent}")
        known[child] = (parent, values)
    return known


def _parents_first(known: Stated) -> Stated:
    depth: dict[str, int] = {}
    for child in known:
        chain = [child]
        while (parent := known[chain[-1]][0]) in known and parent not in depth:
            chain.append(parent)
            if len(chain) > len(known):
                raise InvalidInput(f"conditions must not be circular, got {shown(known)}")
        for name in reversed(chain):
            depth[name] = depth.get(known[name][0], -1) + 1
    return {child: known[child] for child in sorted(known, key=lambda child: depth[child])}
