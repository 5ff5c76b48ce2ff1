"""How an attack on certificates can end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

DELTA = 0.05
HELD, WRONG, CONDITIONAL, REFUSED = "held", "wrong", "conditional", "refused"
_ROUNDING = 1e-9


class Verdict(NamedTuple):
    """How a run ended; the floor and the truth where there was a floor."""

    outcome: str
    floor: float = math.nan
    truth: float = math.nan


def judged(floors: Sequence[tuple[float, float]]) -> Verdict:
    """The verdict on all (floor, truth) that one run stated: wrong if any is."""
    floor, truth = max(floors, key=lambda pair: pair[0] - pair[1])
    return Verdict(WRONG if floor > truth + _ROUNDING else HELD, floor, truth)


def judged_if(says: str, condition: str, floors: Sequence[tuple[float, float]]) -> Verdict:
    """The same, if what the certificate says does not name the condition that the attack violates."""
    return Verdict(CONDITIONAL) if condition in says else judged(floors)
