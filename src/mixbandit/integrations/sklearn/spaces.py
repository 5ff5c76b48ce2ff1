"""What people pass to scikit-learn's searches, as a space that can be searched.

| given | the search sees |
|---|---|
| a list of numbers | their ranks: lists are mostly even on the scale that matters |
| any other list | a category |
| a frozen distribution of scipy | its quantiles, so that uniform ones follow the distribution |
| a discrete one | `randint` as an integer, others as the list of their values |
| another object with `rvs` | a list of draws |
| `mb.Float`, `mb.Int`, `mb.Categorical` | itself |

Several dictionaries are one space with a category that says which, on which all other parameters depend.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixbandit._checks import LARGEST_ENTRY, Array, is_integer, shown
from mixbandit.errors import InvalidInput
from mixbandit.tuning import Categorical, Float, Int, Parameter, Space
from mixbandit.tuning.space import enumerated

# The part of an unbounded distribution that is left out at each end.
_TAIL = 0.001
# How many quantiles stand for a discrete distribution, and how many draws for an object that only draws.
_QUANTILES, _DRAWS = 1000, 200
_MOST_LISTED = 100_000
# The name of the category that says which of several dictionaries a configuration is from.
_WHICH = "dictionary"
Configuration = dict[str, Any]


@dataclass(frozen=True, eq=False)
class _Dimension:
    """One parameter of the estimator."""

    parameter: Parameter | None  # what is searched; None if there is only one value
    value: Callable[[Any], Any]  # from a value of that parameter to what the estimator is given
    options: tuple[Any, ...] | None  # all values for the estimator, as listed; None if there are infinitely many


class SearchSpace:
    """Configurations of an estimator, as rows of a unit box.

    `space` is None if there is only one configuration. `size` is the number of configurations, or at least that; None
    if there are infinitely many.
    """

    def __init__(self, given: Any, random_state: np.random.RandomState) -> None:
        dictionaries = _as_dictionaries(given)
        self._dictionaries = [_dimensions(dictionary, random_state) for dictionary in dictionaries]
        self._conditions = [each.conditions if isinstance(each, Space) else {} for each in dictionaries]
        self.space = self._as_space()
        sizes = [_size(dimensions.values()) for dimensions in self._dictionaries]
        self.size = None if None in sizes else sum(size for size in sizes if size is not None)

    def configuration(self, row: Array) -> Configuration:
        """The parameters of the estimator that a row stands for."""
        if self.space is None:
            return next(iter(self.configurations()))
        decoded, which = self.space.decode(row), 0
        if len(self._dictionaries) > 1:
            which = decoded[_WHICH]
        found = {}
        for name, dimension in sorted(self._dictionaries[which].items()):
            inner = self._inner_name(which, name)
            if dimension.parameter is None:
                found[name] = dimension.value(None)
            elif inner in decoded:  # others do not matter
                found[name] = dimension.value(decoded[inner])
        return found

    def configurations(self) -> Iterable[Configuration]:
        """All of them, in the order of scikit-learn's ParameterGrid; only if they are finitely many."""
        assert self.size is not None
        for dimensions, conditions in zip(self._dictionaries, self._conditions, strict=True):
            names = sorted(dimensions)
            if conditions:
                parameters = {name: dimensions[name].parameter for name in names}
                space = Space({name: each for name, each in parameters.items() if each is not None}, conditions)
                rows = enumerated(space, self.size)
                yield from (space.decode(row) for row in (() if rows is None else rows))
                continue
            listed = [dimensions[name].options or () for name in names]
            yield from (dict(zip(names, values, strict=True)) for values in itertools.product(*listed))

    def _inner_name(self, which: int, name: str) -> str:
        return name if len(self._dictionaries) == 1 else f"{which}: {name}"

    def _as_space(self) -> Space | None:
        parameters: dict[str, Parameter] = {}
        conditions: dict[str, tuple[str, Iterable[Any]]] = {}
        if len(self._dictionaries) > 1:
            parameters[_WHICH] = Categorical(range(len(self._dictionaries)))
        for which, dimensions in enumerate(self._dictionaries):
            for name, dimension in dimensions.items():
                if dimension.parameter is None:
                    continue
                inner = self._inner_name(which, name)
                parameters[inner] = dimension.parameter
                if name in self._conditions[which]:
                    parent, values = self._conditions[which][name]
                    conditions[inner] = (self._inner_name(which, parent), values)
                elif len(self._dictionaries) > 1:
                    conditions[inner] = (_WHICH, [which])
        return Space(parameters, conditions) if parameters else None


def _as_dictionaries(given: Any) -> list[Mapping[str, Any]]:
    found = [given] if isinstance(given, Mapping) else given
    if not isinstance(found, list | tuple) or not found or not all(isinstance(each, Mapping) for each in found):
        raise InvalidInput(f"param_space must be a dict of parameters, or a list of such dicts, got {shown(given)}")
    return list(found)


def _dimensions(dictionary: Mapping[str, Any], random_state: np.random.RandomState) -> dict[str, _Dimension]:
    for name in dictionary:
        if not isinstance(name, str) or not name:
            raise InvalidInput(f"parameter names must be non-empty text, got {shown(name)}")
    return {name: _dimension(name, given, random_state) for name, given in dictionary.items()}


def _dimension(name: str, given: Any, random_state: np.random.RandomState) -> _Dimension:
    if isinstance(given, Parameter):
        return _of_parameter(given)
    if callable(getattr(given, "ppf", None)):
        return _of_distribution(name, given)
    if callable(getattr(given, "rvs", None)):
        return _of_list([_drawn(name, given, random_state) for _ in range(_DRAWS)])
    return _of_list(_as_list(name, given))


def _of_parameter(stated: Parameter) -> _Dimension:
    given = copy.copy(stated)  # it remembers what it computed, and parameters of a search must not change
    options: tuple[Any, ...] | None = None
    if isinstance(given, Categorical):
        options = given.choices
    elif given.levels is not None:
        options = tuple(given.decode(level) for level in given.levels)
    return _Dimension(given, _same, options)


def _of_distribution(name: str, given: Any) -> _Dimension:
    try:
        low, high = (float(end) for end in given.support())
        if callable(getattr(given, "pmf", None)):
            if getattr(getattr(given, "dist", None), "name", None) == "randint":
                return _of_parameter(Int(int(low), int(high))) if low < high else _constant(int(low))
            quantiles = given.ppf((np.arange(_QUANTILES) + 0.5) / _QUANTILES)
            return _of_list([int(value) for value in np.unique(quantiles)])
        first, last = (0.0 if math.isfinite(low) else _TAIL), (1.0 if math.isfinite(high) else 1.0 - _TAIL)
        if not low < high or not all(math.isfinite(float(given.ppf(q))) for q in (first, last)):
            raise ValueError(f"its quantiles run from {given.ppf(first)} to {given.ppf(last)}")
    except Exception as error:  # the code of other libraries and of users
        raise InvalidInput(
            f"{name} must be a list, a distribution with finite quantiles, or a Float, Int or Categorical; "
            f"got {shown(given)} ({error})"
        ) from error
    return _Dimension(Float(first, last), _Quantile(given), None)


@dataclass(frozen=True, eq=False)
class _Quantile:
    """The value of a continuous distribution at a quantile."""

    distribution: Any

    def __call__(self, quantile: float) -> float:
        return float(self.distribution.ppf(quantile))


def _drawn(name: str, given: Any, random_state: np.random.RandomState) -> Any:
    try:
        return given.rvs(random_state=random_state)
    except Exception as error:
        raise InvalidInput(f"{name}: drawing from {shown(given)} failed ({error})") from error


def _of_list(values: list[Any]) -> _Dimension:
    if all(map(_is_number, values)):
        ranked = sorted({float(value): value for value in reversed(values)}.items())
        listed = tuple(value for _, value in ranked)
        if len(listed) == 1:
            return _constant(listed[0])
        in_order = tuple(dict.fromkeys(values))
        return _Dimension(Int(0, len(listed) - 1), listed.__getitem__, in_order)
    if len(values) == 1:
        return _constant(values[0])
    return _Dimension(Categorical(range(len(values))), values.__getitem__, tuple(values))


def _constant(value: Any) -> _Dimension:
    return _Dimension(None, lambda _: value, (value,))


def _as_list(name: str, given: Any) -> list[Any]:
    form = f"{name} must be a list of values, a distribution, or a Float, Int or Categorical"
    if isinstance(given, str | bytes | Mapping | Set) or getattr(given, "ndim", 1) != 1:
        raise InvalidInput(f"{form}; got {shown(given)}")
    try:
        found = list(itertools.islice(given, _MOST_LISTED + 1))  # some iterables never end
    except Exception as error:  # the code of users
        raise InvalidInput(f"{form}; got {shown(given)}") from error
    if not found:
        raise InvalidInput(f"{form}, and it must not be empty")
    if len(found) > _MOST_LISTED:
        raise InvalidInput(f"{name} must have at most {_MOST_LISTED:,} values; for more, state a distribution")
    return found


def _is_number(value: Any) -> bool:
    return (is_integer(value) or isinstance(value, float | np.floating)) and abs(value) <= LARGEST_ENTRY


def _same(value: Any) -> Any:
    return value


def _size(dimensions: Iterable[_Dimension]) -> int | None:
    options = [dimension.options for dimension in dimensions]
    return None if any(each is None for each in options) else math.prod(len(each) for each in options if each)
