"""Trials: configurations to try, their values, and recommendations."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Self

from mixbandit.bandits import Choice
from mixbandit.tuning.assumptions import Assumptions

Interval = tuple[float, float]


class TrustedInterval(tuple[float, float]):
    """(low, high), and whether it is guaranteed under the assumptions."""

    trusted: bool  # False: the values refute the assumptions, and nothing is guaranteed

    def __new__(cls, ends: Iterable[float], trusted: bool = True) -> Self:
        new = super().__new__(cls, ends)
        new.trusted = trusted
        return new

    def __repr__(self) -> str:
        return super().__repr__() if self.trusted else f"{super().__repr__()} NOT TRUSTED"


@dataclass(frozen=True, eq=False)
class Trial:
    """A configuration to try. Its interval is the one known when it was chosen."""

    id: str | int  # never given to another trial; a number only in files of version 0.2 or earlier
    parameters: dict[str, Any]
    choice: Choice = field(repr=False)
    assumptions: Assumptions = field(repr=False)

    @property
    def number(self) -> int:
        """The number of trials asked for before it."""
        return self.choice.number

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
    """A value, with the interval of its trial; values learnt from another run have no interval."""

    parameters: dict[str, Any]
    value: float
    interval: Interval | None = None
    nomination: int = 0  # the number of the finalist that it confirms; 0 if none
    sem: float | None = None  # its standard error, where one was told: for acting only
    sigma: float | None = None  # its noise level, where it is not the stated one


@dataclass(frozen=True)
class Recommendation:
    """A configuration and an interval for its expected value, with probability 1 − δ under the assumptions."""

    parameters: dict[str, Any]
    interval: Interval
    by: str
    trusted: bool = True  # False: the values refute the assumptions, and nothing is guaranteed
    tried: int = 0  # how often it was tried
    evidence: str = "model"  # what says that it is worth at least so much: the "model", or its "own trials"
