"""What is known of arms that have a parameter each, at a moment: the beliefs of all arms as one."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from mixbandit._checks import LARGEST_DATUM, Array
from mixbandit._lazy import lazy, setting
from mixbandit.data import ArmDirections
from mixbandit.sequences.arm_members import Arms, Members, Starts
from mixbandit.sequences.belief import Belief, Multiplier
from mixbandit.sequences.examined import EMPTY, SUSPECTED
from mixbandit.sets import ConfidenceSet, Product, RidgeEllipsoids


class ArmBeliefs(Belief[ArmDirections]):
    """The belief of `Blocks`."""

    kind = "blocks"
    arms: Arms = setting("members.arms", "All that changes.")
    t: int = setting("members.arms.t", "How many rewards have been seen.")

    def __init__(self, members: Members) -> None:
        self.members = members
        one = members.starts.belief
        self.model = members.starts.model(len(members))
        self.response, self.delta, self.guarantee = one.response, members.starts.shares.whole.delta, one.guarantee
        self.sigma, self.value_range, self.stationary = one.sigma, one.value_range, one.stationary

    @classmethod
    def start(cls, starts: Starts, labels: tuple[Hashable, ...]) -> ArmBeliefs:
        """Before any reward, with arms of these labels."""
        return cls(Members.start(starts, labels))

    def __getstate__(self) -> dict[str, Any]:
        # Caches are rebuilt on demand.
        kept = ("members", "model", "response", "delta", "guarantee", "sigma", "value_range", "stationary")
        return {name: self.__dict__[name] for name in kept}

    def stated(self) -> str:
        return f"{self.members.starts.belief.stated()} for each of {len(self.members)} arms"

    def after(self, rows: Array, rewards: Array, weights: Array | None = None) -> ArmBeliefs:
        if weights is None:
            directions = self.model.directions(rows, LARGEST_DATUM)
        else:
            directions = self.model.directions(rows)
            self.model.check_learnable(directions, weights)
        touched = directions.by_arm()
        found = self.members.learnt(directions, rows, rewards, weights, touched)
        return ArmBeliefs(found.tested({arm: len(places) for arm, places in touched}))

    def after_choice(self, row: Array, direction: ArmDirections, reward: Array) -> ArmBeliefs:
        found = self.members.learnt_one(int(direction.arms[0]), direction.own[0], float(reward[0]))
        return self.after(row, reward) if found is None else ArmBeliefs(found)

    def expecting(self, rows: Array) -> ArmBeliefs:
        directions = self.directions(rows)
        expected = self.response.reward(self.estimate.maximum(directions))
        return ArmBeliefs(self.members.learnt(directions, rows, expected, None, directions.by_arm()))

    # Tests of the assumptions.

    @property
    def refutation(self) -> str | None:
        return self.arms.refuted

    @lazy
    def is_empty(self) -> bool:
        """Whether the set of an arm is empty, or has ever been seen to be."""
        return self.arms.empty or any(self.members.of(arm).is_empty for arm in self._unsure)

    @lazy
    def noise_refuted(self) -> bool:
        """Whether rewards of an arm are noisier than stated, or have ever been seen to be."""
        seen = self.arms.refuted or EMPTY
        return not seen.startswith((EMPTY, SUSPECTED)) or any(
            self.members.of(arm).noise_refuted for arm in self._unsure
        )

    @lazy
    def suspect_refuted(self) -> bool:
        """Whether suspected functions predict the rewards of an arm too well, or have ever been seen to."""
        seen = self.arms.refuted or EMPTY
        return seen.startswith(SUSPECTED) or any(self.members.of(arm).suspect_refuted for arm in self._unsure)

    @lazy
    def is_trusted(self) -> bool:
        return self.arms.refuted is None and all(self.members.of(arm).is_trusted for arm in self._unsure)

    @property
    def seen_refuted(self) -> bool:
        return self.is_refuted or super().seen_refuted or vars(self).get("is_trusted") is False

    @property
    def _unsure(self) -> set[int]:
        """The arms whose tests were not all made when they learnt."""
        return {*self.arms.undecided, *self.arms.own}

    # Sets.

    @property
    def alpha0(self) -> float:
        return self.members.starts.belief.alpha0

    def check_multiplier(self, alpha: Any) -> Multiplier:
        return self.members.starts.belief.check_multiplier(alpha)

    def weights(self, levels: Array) -> Array:
        return self.members.starts.belief.weights(levels)

    def at(self, alpha: Multiplier | None) -> ConfidenceSet:
        if alpha is None:
            return self.exact
        if self.arms.ridges is not None and alpha == self.arms.ridges.alpha:
            return self.closed_form
        members = self.members
        return Product(lambda arm: members.of(arm).at(alpha), len(members))

    @lazy
    def exact(self) -> ConfidenceSet:
        outer: Any = self.closed_form if self.arms.ridges is not None else None
        members = self.members
        return Product(lambda arm: members.of(arm).exact, len(members), outer)

    @lazy
    def closed_form(self) -> ConfidenceSet:
        known, members = self.arms, self.members
        if known.ridges is None:
            return Product(lambda arm: members.of(arm).closed_form, len(members))
        others: Any = {arm: each.closed_form for arm, each in known.own.items()}
        return RidgeEllipsoids(known.ridges, known.radii, others, lambda arm: members.of(arm).closed_form)

    @lazy
    def estimate(self) -> Any:
        if self.arms.ridges is not None:
            return self.closed_form.scaled(0.0)  # type: ignore[call-arg]
        members = self.members
        return Product(lambda arm: members.of(arm).estimate, len(members))

    def blank(self) -> ArmBeliefs:
        return ArmBeliefs.start(self.members.starts, self.arms.labels)
