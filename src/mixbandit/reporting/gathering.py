"""What a page shows beyond the certificate: what was guaranteed after fewer trials, and slices of the bounds.

Bounds hold at all times and for all configurations together, so that earlier ones may be looked at, too, and so may
those of any configuration: nothing here spends any further δ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixbandit._checks import Array
from mixbandit.tuning import StudyCertificate
from mixbandit.tuning.judgement import Judgement
from mixbandit.tuning.moments import floors_over_time
from mixbandit.tuning.parameters import Categorical, Float, Int, Parameter

Progress = Callable[[str], None]
# How many moments of a run to compute guarantees for.
_LOOKS = 16
_POSITIONS = 61
_MOST_CHOICES = 10
# Parameters of up to this many numbers are drawn number by number.
_FEW = 8
# The most slices to draw, and the most trials in each.
MOST_SLICES, MOST_DOTS = 12, 1500


class Course(NamedTuple):
    """The values of a run, and what was guaranteed after some of them."""

    values: Array  # (t,)
    confirming: NDArray[np.bool_]  # (t,): whether a trial confirmed a finalist
    moments: NDArray[np.int64]  # (k,): numbers of trials
    guaranteed: Array  # (k,): at least this, or at most if the smallest is best
    ordered: bool  # whether the order of play is known


def course(certificate: StudyCertificate, progress: Progress) -> Course | None:
    """The course of a run; None if its trials are not known. Guarantees on the way need an order of play."""
    judgement = certificate.judgement
    if judgement is None or judgement.own is None:
        return None
    trials = judgement.own.trials
    t, confirming = len(trials.values), trials.nominations > 0
    if not (trials.ordered and certificate.trusted):
        return Course(trials.values, confirming, np.empty(0, dtype=np.int64), np.empty(0), trials.ordered)
    told = floors_over_time(
        certificate,
        looks=_LOOKS,
        progress=lambda n: progress(f"what was guaranteed after {n:,} of {t:,} trials"),
    )
    moments = np.array([floor.trials for floor in told], dtype=np.int64)
    return Course(trials.values, confirming, moments, np.array([floor.guaranteed for floor in told]), True)


def best_of(course: Course, upwards: bool) -> int:
    """The trial with the best value."""
    return int(np.argmax(course.values if upwards else -course.values))


class Slice(NamedTuple):
    """Bounds on expected values as one parameter changes and all others stay as recommended."""

    name: str
    parameter: Parameter
    positions: Array  # (m,): where, from 0 to 1 on the scale of the parameter; 0, 1, … for choices
    values: Sequence[Any]  # (m,): the values of the parameter
    low: Array  # (m,)
    high: Array  # (m,)
    at: float  # the position of the recommended value
    dots: tuple[Array, Array]  # positions and values of trials
    matters: float  # by how much estimates change along it
    omitted: int = 0  # choices that are not drawn

    @property
    def is_choice(self) -> bool:
        return isinstance(self.parameter, Categorical)

    @property
    def is_listed(self) -> bool:
        """Whether there are so few numbers that each is drawn."""
        return not self.is_choice and self.parameter.levels is not None and len(self.positions) <= _FEW


def slices(certificate: StudyCertificate, judgement: Judgement) -> list[Slice]:
    """A slice through the recommended configuration for every parameter that matters there."""
    row = judgement.space.encode(certificate.parameters)
    active = [name for name in judgement.space if judgement.space.is_active(name, certificate.parameters)]
    return [_slice(judgement, name, row) for name in active]


def _slice(judgement: Judgement, name: str, row: Array) -> Slice:
    space, parameter = judgement.space, judgement.space[name]
    columns = space.columns(name)
    omitted = 0
    if isinstance(parameter, Categorical):
        mine = int(np.argmax(row[columns.start : columns.stop]))
        order = [mine, *(i for i in range(parameter.width) if i != mine)]
        chosen, omitted = sorted(order[:_MOST_CHOICES]), max(parameter.width - _MOST_CHOICES, 0)
        coordinates = np.eye(parameter.width)[chosen]
        positions, at = np.arange(float(len(chosen))), float(chosen.index(mine))
    else:
        coordinates = _positions(parameter, float(row[columns.start]))
        positions, at = coordinates[:, 0], float(row[columns.start])
        chosen = []
    rows = np.repeat(row[None], len(coordinates), axis=0)
    rows[:, columns.start : columns.stop] = coordinates
    if any(parent == name for parent, _ in space.conditions.values()):
        # What only matters with another choice is set to the middle.
        rows = np.array([space.snapped(each) for each in rows])
    known = judgement.bounding.interval(judgement.bounding.directions(rows))
    worth = known.lower + judgement.shift, known.upper + judgement.shift
    low, high = worth if judgement.assumptions.sign > 0.0 else (-worth[1], -worth[0])
    estimates = judgement.estimates(rows)
    values = [parameter.decode(each) for each in coordinates]
    dots = _dots(judgement, name, chosen)
    return Slice(name, parameter, positions, values, low, high, at, dots, float(np.ptp(estimates)), omitted)


def _positions(parameter: Parameter, mine: float) -> Array:
    """Coordinates (m, 1) along a number: all of its values if they are few, else evenly spaced ones."""
    levels = parameter.levels
    if levels is not None and len(levels) <= _POSITIONS:
        return levels
    if levels is not None:
        return np.asarray(levels[np.unique(np.linspace(0, len(levels) - 1, _POSITIONS).round().astype(int))])
    return np.asarray(np.union1d(np.linspace(0.0, 1.0, _POSITIONS), [mine])[:, None])


def thinned(count: int, most: int = MOST_DOTS) -> NDArray[np.int64]:
    """Evenly spaced indices below `count`, at most `most` of them."""
    return np.arange(0, count, max(math.ceil(count / most), 1))


def _dots(judgement: Judgement, name: str, chosen: list[int]) -> tuple[Array, Array]:
    """Where trials lie along a parameter, and their values; those in which it does not matter are left out."""
    if judgement.own is None:
        return np.empty(0), np.empty(0)
    trials, space = judgement.own.trials, judgement.space
    some = thinned(len(trials.values))
    if name in space.conditions:
        some = np.array([i for i in some.tolist() if space.is_active(name, trials.configurations[i])], dtype=np.int64)
    part = trials.rows[some][:, list(space.columns(name))]
    if not isinstance(space[name], Categorical):
        return part[:, 0], trials.values[some]
    places = {choice: float(place) for place, choice in enumerate(chosen)}
    at = np.array([places.get(int(choice), math.nan) for choice in part.argmax(axis=1)])
    drawn = np.isfinite(at)
    return at[drawn], trials.values[some][drawn]


def position(parameter: Parameter, value: float) -> float:
    """Where a number lies on the scale of its parameter, from 0 to 1, whether it is one of its values or not."""
    assert isinstance(parameter, Float | Int)
    low, last = float(parameter.low), float(parameter.last)
    if parameter.log:
        return math.log(value / low) / math.log(last / low)
    return (value - low) / (last - low)
