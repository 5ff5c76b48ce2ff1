"""Trials: configurations to try, their values, and recommendations."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mixbandit.bandits import Choice
from mixbandit.tuning.assumptions import Assumptions

Interval = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Trial:
    """A configuration to try. Its interval is the one known when it was chosen."""

    id: int
    parameters: dict[str, Any]
    choice: Choice = field(repr=False)
    assumptions: Assumptions = field(repr=False)

    @property
    def interval(self) -> Interval:
        """An interval for its expected value, from the values told before it was chosen."""
        return self.assumptions.interval(self.choice.lower, self.choice.upper)

    @property
    def trusted(self) -> bool:
        """False if the values refute the assumptions, so that nothing is guaranteed."""
        return self.choice.trusted

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Trial):
            return NotImplemented
        mine, theirs = ((t.id, t.parameters, t.interval, t.trusted) for t in (self, other))
        return mine == theirs

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True)
class Told:
    """A value, with the interval of its trial; values learnt from another run have none."""

    parameters: dict[str, Any]
    value: float
    interval: Interval | None = None


@dataclass(frozen=True)
class Recommendation:
    """A configuration, and an interval for its expected value, with probability 1 − δ under the assumptions."""

    parameters: dict[str, Any]
    interval: Interval
    by: str
    trusted: bool = True  # False: the values refute the assumptions, and nothing is guaranteed
