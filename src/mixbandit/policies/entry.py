"""What is known of a choice at the time when it is made."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from mixbandit._validation import LARGEST_DATUM, Array, check_finite
from mixbandit.actions import Arms, Region
from mixbandit.confidence import ConfidenceSequence
from mixbandit.policies.choice import Choice, Open


@dataclass(frozen=True)
class Place:
    """What was chosen, and as which choice."""

    number: int
    row: Array  # (dim_in,): context and action
    index: int | None  # of the arm
    region: Region  # from which it was chosen
    context: Array | None

    @property
    def label(self) -> Hashable:
        labels = self.region.labels if isinstance(self.region, Arms) else None
        return labels[self.index] if labels and self.index is not None else None


def opened(
    sequence: ConfidenceSequence, place: Place, alpha: float | None, optimum: float | None, *, refuted: bool
) -> Open:
    """The choice with its bounds at multiplier `alpha`, and what it adds to regret bounds.

    `optimum` is the largest upper bound of what could have been chosen, None if nobody wants to know about regret.
    """
    phi = sequence._features(place.row[None])
    check_finite(phi, "features", LARGEST_DATUM)  # more could be chosen, but not be learnt from
    lower, upper = sequence._both_bounds(phi, alpha)
    low, high = float(lower.bounds[0]), float(upper.bounds[0])
    width = analytic = None
    if optimum is not None:
        optimum = max(float(sequence._reported(np.array([optimum]), 1.0).bounds[0]), high)
        width = optimum - low
        if sequence.alpha0 == alpha:
            analytic = width
        else:
            closed_low, closed_high = (part.bounds[0] for part in sequence._both_bounds(phi, sequence.alpha0))
            analytic = float(max(closed_high, optimum) - closed_low)
    split = 0 if place.context is None else len(place.context)
    choice = Choice(
        id=place.number,
        action=place.row[split:].copy(),
        label=place.label,
        lower=low,
        upper=high,
        index=place.index,
        context=place.context,
        trusted=lower.trusted and upper.trusted and not refuted,
    )
    return Open(choice, place.row.copy(), width, analytic)
