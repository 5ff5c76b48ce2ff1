"""Choices: what to play, and what was known of it when it was chosen."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from mixbandit._checks import Array
from mixbandit.actions import storable_label
from mixbandit.sequences import Moment


class Known(NamedTuple):
    """What was known of a choice."""

    lower: float
    upper: float
    trusted: bool
    width: float | None  # what it adds to the regret bound


@dataclass(frozen=True, eq=False, repr=False)
class Choice:
    """What to play. Its bounds are those of the moment of choice, from the rewards told by then."""

    id: int
    action: Array  # (dim,), without the context
    label: Hashable = None  # of the arm, None where arms have none
    index: int | None = None  # of the arm, None on a box
    context: Array | None = None
    moment: Moment | None = field(default=None, compare=False)  # when it was chosen
    alpha: float | None = None  # the multiplier of its bounds; None for exact ones
    optimum: float | None = None  # the largest upper bound of what could have been chosen, where regret is tracked
    refuted: bool = False  # whether the assumptions had been refuted by then

    @property
    def lower(self) -> float:
        """What its expected reward is at least."""
        return self.known.lower

    @property
    def upper(self) -> float:
        """What its expected reward is at most."""
        return self.known.upper

    @property
    def trusted(self) -> bool:
        """False: the assumptions are refuted, and the bounds come from an inflated set."""
        return self.known.trusted

    @property
    def row(self) -> Array:
        """Context and action, (dim_in,)."""
        return self.action if self.context is None else np.concatenate((self.context, self.action))

    @cached_property
    def known(self) -> Known:
        """Bounds and what follows from them, computed when they are first read."""
        moment = self.moment
        assert moment is not None
        direction = moment.directions(self.row[None])
        lower, upper = moment.lower(direction, self.alpha), moment.upper(direction, self.alpha)
        low, high = float(lower.values[0]), float(upper.values[0])
        width = None
        if self.optimum is not None:
            width = max(float(moment.response.upper(np.array([self.optimum])).values[0]), high) - low
        trusted = not (self.refuted or moment.is_empty or lower.contradicts or upper.contradicts)
        return Known(low, high, trusted, width)

    def __repr__(self) -> str:
        what = np.array2string(self.action, precision=4, threshold=8) if self.label is None else repr(self.label)
        flag = "" if self.trusted else ", NOT TRUSTED"
        return f"Choice(id={self.id}, {what}, expected reward in [{self.lower:.4g}, {self.upper:.4g}]{flag})"

    def state_dict(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "row": self.row.copy(),
            "context": 0 if self.context is None else len(self.context),
            "label": storable_label(self.label),
            "index": self.index,
            **self.known._asdict(),
        }

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any]) -> Choice:
        row, split = np.array(state["row"], dtype=np.float64), int(state["context"])
        new = cls(
            id=int(state["id"]),
            action=row[split:],
            context=row[:split] if split else None,
            label=state["label"],
            index=state["index"],
        )
        width = None if state["width"] is None else float(state["width"])
        new.__dict__["known"] = Known(float(state["lower"]), float(state["upper"]), bool(state["trusted"]), width)
        return new
