"""Choices: what to play, and what was known about it when it was chosen."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mixbandit._checks import Array, as_number, as_text, finite, flag, is_integer, positive
from mixbandit._schema import Fields, Since, array, checked, count, optional, real, record, require, scalar
from mixbandit.actions import storable_label
from mixbandit.errors import InvalidInput
from mixbandit.search import SHARES, ArmsOffer, Shares
from mixbandit.sequences import Belief
from mixbandit.sets import ConfidenceSet

_MOST_DIGITS = 20


class Known(NamedTuple):
    """What was known about a choice."""

    lower: float
    upper: float
    trusted: bool
    width: float | None  # what it adds to the regret bound


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Choice:
    """What to play, with bounds from the rewards told when it was chosen.

    Bounds are computed when first read, unless given. Arrays are read-only.
    """

    number: int  # of choices made before it
    action: Array  # (dim,), without the context
    label: Hashable  # of the arm, None where arms have none
    index: int | None  # of the arm, None on a box
    context: Array | None
    moment: Belief[Any] | None  # what was known when it was chosen
    within: ConfidenceSet | None  # the set that its bounds come from
    direction: Any  # its feature vector, (1, d), while it is at hand; None for kernels
    optimum: float | None  # the largest upper bound of what could have been chosen, where regret is tracked
    refuted: bool  # whether the assumptions had been refuted by then
    given: Known | None  # what is known about it, once computed
    run: str | None  # makes its id unique; None for choices of version 0.2 and earlier
    time: float | None  # when it was chosen, in seconds since 1970 (UTC); None if unknown
    shares: Shares | None  # the probabilities of all arms; None where nobody knows them, as on a box
    whole: Array | None = None  # context and action, of which `context` and `action` are parts

    def __init__(
        self,
        number: int,
        action: Array,
        label: Hashable = None,
        lower: float | None = None,
        upper: float | None = None,
        *,
        index: int | None = None,
        context: Array | None = None,
        trusted: bool = True,
        width: float | None = None,
        moment: Belief[Any] | None = None,
        within: ConfidenceSet | None = None,
        direction: Any = None,
        optimum: float | None = None,
        refuted: bool = False,
        given: Known | None = None,
        run: str | None = None,
        time: float | None = None,
        shares: Shares | None = None,
        whole: Array | None = None,
    ) -> None:
        if lower is not None and upper is not None:
            given = Known(as_number(lower, "lower"), as_number(upper, "upper"), trusted, width)
        own = self.__dict__  # frozen to others
        own["number"], own["action"], own["label"], own["index"], own["context"] = number, action, label, index, context
        own["moment"], own["within"], own["direction"] = moment, within, direction
        own["optimum"], own["refuted"], own["given"], own["run"] = optimum, refuted, given, run
        own["time"], own["shares"], own["whole"] = time, shares, whole

    @property
    def id(self) -> str | int:
        """A name that is never given to another choice: text, or a number from files of version 0.2 or earlier."""
        return self.number if self.run is None else f"{self.run}-{self.number}"

    @property
    def probability(self) -> float | None:
        """The probability with which this arm was chosen, given everything before; None where nobody knows it."""
        return None if self.shares is None or self.index is None else self.shares.of_arm(self.index)

    @property
    def probabilities(self) -> Array | None:
        """The probabilities of all arms that could be chosen, (K,); None where nobody knows them."""
        return None if self.shares is None else self.shares.array()

    @property
    def lower(self) -> float:
        """Lower bound on its expected reward."""
        return self.known.lower

    @property
    def upper(self) -> float:
        """Upper bound on its expected reward."""
        return self.known.upper

    @property
    def trusted(self) -> bool:
        """False if the data had refuted the assumptions, so that nothing is guaranteed."""
        return self.known.trusted

    @property
    def row(self) -> Array:
        """Context and action, (dim_in,)."""
        if self.whole is not None:
            return self.whole
        return self.action if self.context is None else np.concatenate((self.context, self.action))

    def played(self) -> ArmsOffer:
        """The arm that was chosen, as an offer of one."""
        labels = None if self.label is None else (self.label,)
        return ArmsOffer(self.row[None], labels=labels, context=self.context)

    @property
    def known(self) -> Known:
        """Bounds and what follows from them, computed when first read."""
        moment, within = self.moment, self.within
        known = self.given  # read last: a thread that computes it sets it first
        if known is None:
            known = self._computed(moment, within)
            # The moment is no longer needed; choices live long, and moments are large.
            self.__dict__.update(given=known, moment=None, within=None)
        return known

    def __getstate__(self) -> dict[str, Any]:
        # Pickle the bounds as numbers, not the sets.
        self.close()
        return {**self.__dict__, "direction": None}

    def close(self) -> None:
        """Compute the bounds now, so that the moment need not be kept."""
        if self.moment is not None:
            _ = self.known

    def _computed(self, moment: Belief[Any] | None, within: ConfidenceSet | None) -> Known:
        if moment is None:
            raise InvalidInput(f"choice {self.id} has neither bounds nor a moment to compute them from")
        direction = moment.directions(self.row[None]) if self.direction is None else self.direction
        low, high, contradicts = moment.response.ends(*(within or moment.exact).ends(direction))
        width = None if self.optimum is None else max(moment.response.most(self.optimum), high) - low
        return Known(low, high, not (self.refuted or moment.is_refuted or contradicts), width)

    def __repr__(self) -> str:
        what = np.array2string(self.action, precision=4, threshold=8) if self.label is None else repr(self.label)
        flag = "" if self.trusted else ", NOT TRUSTED"
        return f"Choice(id={self.id!r}, {what}, expected reward in [{self.lower:.4g}, {self.upper:.4g}]{flag})"

    def state_dict(self) -> dict[str, Any]:
        return {
            "id": self.number,
            "run": self.run,
            "time": self.time,
            "shares": None if self.shares is None else self.shares.state_dict(),
            "row": self.row.copy(),
            "context": 0 if self.context is None else len(self.context),
            "label": storable_label(self.label),
            "index": self.index,
            **self.known._asdict(),
        }

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any]) -> Choice:
        stored = checked(CHOICE, state, "choice")
        row, split = fixed(stored["row"].copy()), stored["context"]
        return cls(
            stored["id"],
            row[split:],
            stored["label"],
            stored["lower"],
            stored["upper"],
            index=stored["index"],
            context=row[:split] if split else None,
            trusted=stored["trusted"],
            width=stored["width"],
            run=stored["run"],
            time=stored["time"],
            shares=None if stored["shares"] is None else Shares.from_state_dict(stored["shares"]),
        )


def fixed(array: Array) -> Array:
    """The same array, read-only: what was chosen is what will be learnt."""
    array.setflags(write=False)
    return array


def number_of(name: Any) -> int | None:
    """The number in an id; None if it cannot be one."""
    if not isinstance(name, str):
        return int(name) if is_integer(name) else None
    digits = name.rpartition("-")[2]
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < _MOST_DIGITS else None


def _share(shares: Fields, index: int) -> float:
    return Shares.from_state_dict(shares).of_arm(index)


def _check_choice(stored: Fields, where: str) -> None:
    fits = stored["context"] < len(stored["row"])
    require(fits, f"{where}.context", f"must be less than {len(stored['row'])}, got {stored['context']}")
    shares, index = stored["shares"], stored["index"]
    drawn = shares is None or (index is not None and index < shares["size"])
    require(drawn and (shares is None or _share(shares, index) > 0.0), f"{where}.shares", "must be those of its arm")
    known = stored["sigma"] is None or stored["reward"] is not None
    require(known, f"{where}.sigma", "must be None without a reward")


CHOICE = record(
    {
        "id": count,
        "run": Since(as_text),
        "time": Since(optional(real(finite))),
        "shares": Since(optional(SHARES)),
        "row": array(None),
        "context": count,
        "label": scalar,
        "index": optional(count),
        "lower": real(finite),
        "upper": real(finite),
        "trusted": flag,
        "width": optional(real(finite)),
        # If its reward has come, and waits for earlier ones:
        "reward": Since(real(finite)),
        "sigma": Since(real(positive)),
    },
    _check_choice,
)
"""A choice that is still open."""
