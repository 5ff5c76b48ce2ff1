"""A randomised control: a share of the decisions plays a baseline, so that what the others gain over it is known."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import NamedTuple

from mixbandit._checks import as_label, probability, shown
from mixbandit.bandits.contextual.roster import Numbers, Roster, known, place_of
from mixbandit.errors import InvalidInput
from mixbandit.search import Shares

CONTROL, TREATMENT = "control", "treatment"


@dataclass(frozen=True)
class Control:
    """`share` of the decisions, drawn at random, play `arm` whatever the rule says.

    They are the group "control", all others the group "treatment". While the arm is not eligible there is no control,
    and decisions are in no group.
    """

    arm: Hashable
    share: float = 0.05

    def __post_init__(self) -> None:
        object.__setattr__(self, "arm", as_label(self.arm))
        object.__setattr__(self, "share", probability(self.share, "share"))


class Drawn(NamedTuple):
    """What a decision came to."""

    shares: Shares  # the probabilities of the eligible arms, over control and treatment
    place: int  # of the arm, among those
    group: str | None


class Mixing(NamedTuple):
    """How what a rule selects becomes a decision: with a floor, and with a control."""

    floor: float
    control: Control | None = None
    place: int | None = None  # of the control's arm among the eligible ones; None: no control

    def among(self, roster: Roster, numbers: Numbers) -> Mixing:
        """With these arms eligible."""
        assert self.control is not None
        return self._replace(place=place_of(known(roster.numbers, self.control.arm), numbers))

    def drawn(self, selected: Shares, u: float) -> Drawn:
        """The decision that a uniform number in [0, 1) draws."""
        floor, control, place = self
        if control is None or place is None:
            shares = selected.mixed(floor) if floor else selected
            return Drawn(shares, shares.at(u), None)
        share, rest = control.share, 1.0 - control.share
        # The treatment alone provides the floor, as the control has no choice.
        treated = selected.mixed(min(floor / rest, 1.0)) if floor else selected
        shares = treated.blended(place, share)
        if u < share:
            return Drawn(shares, place, CONTROL)
        return Drawn(shares, treated.at((u - share) / rest), TREATMENT)


def check_control(control: Control, roster: Roster, floor: float) -> None:
    """Refuse a control that cannot work with these arms and this floor."""
    if known(roster.numbers, control.arm) is None:
        raise InvalidInput(f"control must name one of the arms, got {shown(control.arm)}")
    if floor > 1.0 - control.share:
        raise InvalidInput(
            f"floor and the share of the control together must be at most 1, got {floor:g} and {control.share:g}"
        )
