"""Where the best configuration can still be, parameter by parameter, according to a search."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixbandit._checks import Array
from mixbandit.actions import Box, Levels, MixedBox, OneHot, mixed
from mixbandit.models import Directed, box_model
from mixbandit.search import THOROUGH, Advantage, search_box
from mixbandit.sequences import Moment
from mixbandit.tuning.parameters import Categorical
from mixbandit.tuning.space import Space

# Each parameter is split into this many slices.
_SLICES = 16
_EFFORT = THOROUGH.times(0.5)
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Possible:
    """The values of one parameter for which some configuration can still be the best."""

    name: str
    values: tuple[Any, ...]  # choices, or (low, high) intervals of numbers
    share: float  # of the parameter's range or choices
    of_choices: bool = False  # whether the values are choices, which may be tuples, too

    def __str__(self) -> str:
        shown = [f"{v!r}" if self.of_choices else _interval(v) for v in self.values]
        everything = " (everything)" if self.share >= 1.0 else f" ({self.share:.0%})"
        return f"{self.name}: {', '.join(shown) or 'nothing'}{everything}"


def _interval(ends: tuple[float, float]) -> str:
    low, high = (f"{end}" if isinstance(end, int) else f"{end:.4g}" for end in ends)
    return low if ends[0] == ends[1] else f"{low} to {high}"


def still_possible(
    moment: Moment, space: Space, recommended: Array, rng: int | np.random.Generator
) -> tuple[Possible, ...]:
    """Per parameter, the slices with a configuration that may be at least as good as the recommended one.

    This region is smaller than {a : UCB(a) ≥ max LCB} and holds on the same event: both configurations are compared
    under one function at a time. It is found by search: a slice left out may contain a configuration it missed.
    """
    region, generator = space.region, np.random.default_rng(rng)
    score = Advantage(moment.exact, moment.directions(recommended[None])[0])

    def is_enough(advantage: float) -> bool:
        return moment.response.difference(advantage) >= -_ROUNDING

    whole = box_model(moment.model)

    def reaches(part: Box, model: Directed = whole) -> bool:
        return is_enough(search_box(score, model, part, generator, effort=_EFFORT).value)

    def reaches_nearby(part: Box, column: int) -> bool:
        """At the ends of a slice, with everything else as recommended: where that is enough, nothing is searched."""
        rows = np.repeat(recommended[None], 2, axis=0)
        rows[:, column] = part.low[column], part.high[column]
        return is_enough(float(score.maximum(moment.directions(part.snapped(rows))).max()))

    def reaching(name: str, choices: NDArray[np.int64]) -> Iterator[int]:
        """Those of a category's choices, all of which make the same other coordinates matter."""
        columns = np.array(space.columns(name))
        part = mixed(_slice(region, space, name, choice=int(choices[0])))
        assert part is not None
        inner, row, free = part.reduced()
        # First with everything else as recommended, for all choices at once: where that is enough, nothing is searched.
        base = part.snapped(recommended[None])[0]
        base[columns] = 0.0
        advantages = score.maximum(whole.exchanged(base, columns[choices], np.ones(len(choices))))
        for choice, advantage in zip(choices, advantages, strict=True):
            row[columns], row[columns[choice]] = 0.0, 1.0
            if is_enough(float(advantage)) or (inner and reaches(inner, whole.restricted(row, free))):
                yield int(choice)

    found = []
    for name, parameter in space.items():
        if isinstance(parameter, Categorical):
            whole_region = mixed(region)
            assert whole_region is not None
            category = OneHot.of(tuple(space.columns(name)))
            kept = sorted(choice for group in whole_region.alike(category) for choice in reaching(name, group))
            values = tuple(parameter.choices[choice] for choice in kept)
            found.append(Possible(name, values, len(kept) / len(parameter.choices), of_choices=True))
            continue
        ends = _ends(parameter.levels)
        parts = [_slice(region, space, name, low=low, high=high) for low, high in ends]
        open_ = [reaches_nearby(part, space.columns(name).start) or reaches(part) for part in parts]
        values = tuple(
            (parameter.decode(np.array([ends[first][0]])), parameter.decode(np.array([ends[last][1]])))
            for first, last in _runs(open_)
        )
        found.append(Possible(name, values, sum(open_) / len(open_)))
    return tuple(found)


def _ends(levels: Array | None) -> list[tuple[float, float]]:
    """Slices of a coordinate, as (low, high): single values if there are few."""
    if levels is not None and len(levels) <= _SLICES:
        return [(float(v), float(v)) for v in levels[:, 0]]
    edges = np.linspace(0.0, 1.0, _SLICES + 1).tolist()
    if levels is None:
        return list(itertools.pairwise(edges))
    # Slices without a value are dropped; the others reach from their first value to their last.
    groups = [levels[(levels[:, 0] >= a) & (levels[:, 0] < b), 0] for a, b in itertools.pairwise([*edges[:-1], 1.1])]
    return [(float(group[0]), float(group[-1])) for group in groups if len(group)]


def _runs(flags: list[bool]) -> list[tuple[int, int]]:
    """First and last index of every run of True."""
    runs = []
    for flag, group in itertools.groupby(enumerate(flags), key=lambda pair: pair[1]):
        if flag:
            indices = [i for i, _ in group]
            runs.append((indices[0], indices[-1]))
    return runs


def _slice(
    region: Box, space: Space, name: str, *, choice: int | None = None, low: float = 0.0, high: float = 1.0
) -> Box:
    """The part of the region where a parameter matters, and has a given choice or lies between two positions."""
    columns = tuple(space.columns(name))
    lower, upper = region.low.copy(), region.high.copy()
    allowed = {}
    if choice is None:
        lower[columns[0]], upper[columns[0]] = low, high
    else:
        allowed[columns] = [choice]
    while name in space.conditions:  # its parents must have the values for which it matters
        parent, values = space.conditions[name]
        on = space[parent]
        assert isinstance(on, Categorical)
        allowed[tuple(space.columns(parent))] = list(dict.fromkeys(on.index(value, parent) for value in values))
        name = parent
    discrete = mixed(region)
    if discrete is None:
        return Box(lower, upper)
    levels: list[Levels | OneHot] = []
    for part in discrete.levels:
        if isinstance(part, OneHot):
            levels.append(OneHot(part.columns, np.array(allowed.get(part.columns, part.choices))))
        elif part.columns == columns:
            inside = part.values[(part.values[:, 0] >= low) & (part.values[:, 0] <= high)]
            levels.append(Levels(part.columns, inside, part.ordered))
        else:
            levels.append(part)
    return MixedBox(lower, upper, levels, discrete.pins)
