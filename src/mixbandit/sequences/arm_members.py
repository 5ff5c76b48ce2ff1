"""The beliefs of arms that have a parameter each, side by side, as one value.

An arm learns from its own rewards alone, at a part of δ of its own that is fixed when it arrives. Its e-process is
multiplied by 1 while others are played, so that the parts add up, whatever chose the arms (union bound).

Arms whose sets are the paper's with N(0, cΦΦᵀ) are kept as ridge regressions at α₀, in as much memory as the matrices
take: a decision measures all of them at once, and a reward costs O(d²). Other arms keep their own beliefs.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from collections.abc import Set as AbstractSet
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from mixbandit._checks import Array
from mixbandit.data import ArmDirections, ArmNumbers, Ridges, flat
from mixbandit.errors import InvalidInput
from mixbandit.models import PerArm
from mixbandit.sequences.belief import Belief
from mixbandit.sequences.examined import EMPTY
from mixbandit.sequences.refutation import is_due
from mixbandit.sequences.ridge_only import RidgeOnly
from mixbandit.spending import Spending

# The beliefs of this many arms are kept from one moment to the next, once they have been made.
_MOST_MADE = 64


class Shares(NamedTuple):
    """How the arms share δ: δ/(2K) for each of K arms known at the start, δ/(2j(j+1)) for the j-th that comes later.

    δ/K if none ever will.
    """

    whole: Spending
    known: int  # K
    growing: bool

    def of(self, arm: int) -> Spending:
        """The part of an arm, by its number."""
        if not self.growing:
            return self.whole.each(self.known)
        parts = self.whole.named(known=0.5, later=0.5)
        return parts["known"].each(self.known) if arm < self.known else parts["later"].nth(arm - self.known + 1)


class Starts:
    """The beliefs of arms before any reward."""

    def __init__(self, one: Any, shares: Shares) -> None:
        """`one` is a sequence without rewards, which each arm begins as, at its own part of δ."""
        self.one, self.shares = one, shares
        self.belief: Belief[Any] = one.moment
        self._sequences: dict[int, Any] = {}  # by arm; those known at the start are all alike
        self._rules: dict[int, RidgeOnly | None] = {}
        self._model: PerArm | None = None  # the last one

    def __getstate__(self) -> dict[str, Any]:
        # Caches are rebuilt on demand.
        return {
            "one": self.one,
            "shares": self.shares,
            "belief": self.belief,
            "_sequences": {},
            "_rules": {},
            "_model": None,
        }

    def sequence(self, arm: int) -> Any:
        """The sequence of an arm."""
        key = max(arm - self.shares.known + 1, 0)
        if key not in self._sequences:
            self._sequences[key] = self._begun(arm)
        return self._sequences[key]

    def _begun(self, arm: int) -> Any:
        return self.one.restated(delta=self.shares.of(arm).delta)

    def model(self, arms: int) -> PerArm:
        """The model of so many arms."""
        if self._model is None or self._model.arms != arms:
            self._model = PerArm(self.belief.model, arms)
        return self._model

    def ridge_only(self, arm: int) -> RidgeOnly | None:
        """The rule of an arm, where ridge regression is enough."""
        key = max(arm - self.shares.known + 1, 0)
        if key not in self._rules:
            # Not from `sequence`, which would be kept, with a matrix for each arm that was added.
            self._rules[key] = self._begun(arm).moment.ridge_only()
        return self._rules[key]


class Arms(NamedTuple):
    """All that changes."""

    labels: tuple[Hashable, ...] = ()  # of all arms that ever were, by number
    gone: frozenset[int] = frozenset()
    ridges: Ridges | None = None  # of all arms, where ridge regression is enough
    radii: Array = np.empty(0)  # of their closed forms at α₀
    own: Mapping[int, Belief[Any]] = MappingProxyType({})  # beliefs that are not made of `ridges`
    t: int = 0  # rewards
    refuted: str | None = None  # what was the first to refute the assumptions
    empty: bool = False  # whether the set of an arm has ever been seen to be empty
    undecided: frozenset[int] = frozenset()  # arms whose tests take a decomposition, which is made at some times only


class Members:
    """The arms at a moment; a value, whose `of` makes the belief of an arm when it is first needed.

    Sets hold on to this, and not to the belief that they belong to: in a circle all would wait for the garbage
    collector, with all their arrays.
    """

    def __init__(self, starts: Starts, arms: Arms, made: dict[int, Belief[Any]] | None = None) -> None:
        self.starts, self.arms = starts, arms
        self._made = {} if made is None else made

    @classmethod
    def start(cls, starts: Starts, labels: tuple[Hashable, ...]) -> Members:
        """Before any reward, with arms of these labels."""
        rules = [starts.ridge_only(arm) for arm in range(len(labels))]
        first = rules[0] if rules else starts.belief.ridge_only()
        if first is None:
            return cls(starts, Arms(labels))
        ridges = first.start(starts.belief.model.dim or 1, len(labels))
        radii = [rule.radius(ridges, arm) for arm, rule in enumerate(rules) if rule is not None]
        return cls(starts, Arms(labels, ridges=ridges, radii=np.array(radii)))

    def __getstate__(self) -> dict[str, Any]:
        # What was made is made again; views of dicts cannot be pickled.
        return {"starts": self.starts, "arms": self.arms._replace(own=dict(self.arms.own)), "_made": {}}

    def __len__(self) -> int:
        """How many arms there ever were."""
        return len(self.arms.labels)

    def of(self, arm: int) -> Belief[Any]:
        """The belief of an arm, by its number."""
        found = self.arms.own.get(arm)
        if found is None:
            found = self._made.get(arm)
        if found is None:
            found = self._made[arm] = self._recovered(arm)
        return found

    def _recovered(self, arm: int) -> Belief[Any]:
        blank: Belief[Any] = self.starts.sequence(arm).moment
        rule, ridges = self.starts.ridge_only(arm), self.arms.ridges
        if rule is None or ridges is None or not ridges.about(arm).rewards:
            return blank
        return blank.recovered(rule.data(ridges, arm))

    # Arms come and go.

    def with_arm(self, label: Hashable, own: Belief[Any] | None = None) -> Members:
        """With one more arm; `own` is its belief, if it does not begin as the others do."""
        known, arm = self.arms, len(self)
        rule, ridges, radii = self.starts.ridge_only(arm), known.ridges, known.radii
        if rule is not None and ridges is not None:
            ridges = ridges.extended(1)
            radii = np.append(radii, rule.radius(ridges, arm))
        beliefs = known.own if own is None else {**known.own, arm: own}
        return self._with(known._replace(labels=(*known.labels, label), ridges=ridges, radii=radii, own=beliefs))

    def without_arm(self, arm: int) -> Members:
        """Without an arm, whose rewards may still come, and which may come back."""
        return self._with(self.arms._replace(gone=self.arms.gone | {arm}))

    def with_arm_back(self, arm: int) -> Members:
        """With an arm that had gone."""
        return self._with(self.arms._replace(gone=self.arms.gone - {arm}))

    def having(self, beliefs: Mapping[int, Belief[Any]], own: AbstractSet[int]) -> Members:
        """With these beliefs of arms instead, of which those in `own` are not made of ridge regression alone."""
        known = self.arms
        ridges, radii, kept = known.ridges, known.radii.copy(), dict(known.own)
        for arm, belief in beliefs.items():
            rule: Any = None if ridges is None or arm in own else self.starts.ridge_only(arm)
            found = None if rule is None else rule.taken(belief.data)  # type: ignore[attr-defined]
            if found is None or ridges is None:
                kept[arm] = belief
            else:
                ridges = ridges.replaced(arm, *found)
                radii[arm] = rule.radius(ridges, arm)
        t = sum(belief.t for belief in beliefs.values())
        return self._with(known._replace(ridges=ridges, radii=radii, own=kept, t=t))

    def recalled(self, ridges: Ridges | None, own: dict[int, Belief[Any]]) -> Members:
        """With what a file has of these arms; InvalidInput if it does not fit."""
        known = self.arms
        if (ridges is None) != (known.ridges is None):
            raise InvalidInput("its ridges do not fit its sequence")
        t, radii = sum(belief.t for belief in own.values()), known.radii
        if ridges is not None and known.ridges is not None:
            found, wanted = ((len(each), each.dim, each.alpha) for each in (ridges, known.ridges))
            if found != wanted:
                raise InvalidInput(f"its ridges (arms, dimension, α) must be {wanted}, got {found}")
            rules = [self.starts.ridge_only(arm) for arm in range(len(self))]
            radii = np.array([rule.radius(ridges, arm) for arm, rule in enumerate(rules) if rule is not None])
            t += sum(ridges.about(arm).rewards for arm in range(len(self)) if arm not in own)
        return self._with(known._replace(ridges=ridges, radii=radii, own=own, t=t))

    # Learning.

    def learnt(
        self,
        directions: ArmDirections,
        rows: Array,
        rewards: Array,
        weights: Array | None,
        touched: list[tuple[int, ArmNumbers]],
    ) -> Members:
        """After rewards of rows (n, dim_in); `touched` has the places of each arm's."""
        known, t = self.arms, self.arms.t + len(rows)
        if known.ridges is None:
            new = {arm: self.of(arm).after(*_part(rows, rewards, weights, places)) for arm, places in touched}
            return self._moved(known._replace(own={**known.own, **new}, t=t), new)
        phi = flat(directions)
        if weights is not None:
            phi = weights[:, None] * phi
        own, common = dict(known.own), []
        for arm, places in touched:
            if arm in own or not self._keeps_digits(arm, phi[places]):
                # What comes is learnt from what was known before, while all digits of that are there.
                own[arm] = self.of(arm).after(*_part(rows, rewards, weights, places))
            else:
                common.append(arm)
        if len(common) < len(touched):
            places = np.flatnonzero(np.isin(directions.arms, common))
            phi, rewards, numbers = phi[places], rewards[places], directions.arms[places].tolist()
            weights = None if weights is None else weights[places]
        else:
            numbers = directions.arms.tolist()
        values = (rewards if weights is None else weights * rewards).tolist()
        ridges, radii = known.ridges.stepped(numbers, phi, values)[0], known.radii.copy()
        for arm in common:
            rule = self.starts.ridge_only(arm)
            assert rule is not None
            radii[arm] = rule.radius(ridges, arm)
        arms = known._replace(ridges=ridges, radii=radii, own=own, t=t)
        return self._moved(arms, {arm for arm, _ in touched})

    def learnt_one(self, arm: int, phi: Array, reward: float) -> Members | None:
        """After one reward of one arm, tests included; None where that is more than a step of its ridge regression."""
        known = self.arms
        if known.ridges is None or arm in known.own:
            return None
        ridges, rule = known.ridges.learnt(arm, phi, reward)[0], self.starts.ridge_only(arm)
        assert rule is not None
        radius, verdict, about = rule.examined(ridges, arm)
        if not rule.keeps_digits(about.size2):
            return None
        radii = known.radii.copy()
        radii[arm] = radius
        labels, gone, _, _, own, t, refuted, empty, undecided = known
        found = self._moved(Arms(labels, gone, ridges, radii, own, t + 1, refuted, empty, undecided), (arm,))
        return found if verdict == (False, False) and arm not in known.undecided else found.tested({arm: 1})

    def _keeps_digits(self, arm: int, phi: Array) -> bool:
        """Whether ridge regression of an arm still has enough digits of everything after these rows."""
        rule, ridges = self.starts.ridge_only(arm), self.arms.ridges
        assert rule is not None
        assert ridges is not None
        return rule.keeps_digits(ridges.about(arm).size2 + float(np.vdot(phi, phi)))

    def tested(self, latest: dict[int, int]) -> Members:
        """With the tests of arms that have just learnt so many rewards each."""
        known = self.arms
        if known.empty:  # which stands
            return self
        refuted, empty, undecided = known.refuted, False, set(known.undecided)
        for arm, more in latest.items():
            undecided.discard(arm)
            rule = None if arm in known.own else self.starts.ridge_only(arm)
            if rule is None or known.ridges is None:
                found = self.of(arm).refutation
            else:
                _, verdict, about = rule.examined(known.ridges, arm)
                # Whether a set is empty matters after any other refutation, too: its bounds are then no bounds.
                if verdict.is_empty is False and (verdict.noise_refuted is False or refuted is not None):
                    continue
                due = (verdict.noise_refuted and refuted is None) or is_due(about.rewards, more)
                found = self.of(arm).full_refutation if due else None
                if not due:
                    undecided.add(arm)
            if found is not None:
                refuted = refuted or f"{found}, for arm {known.labels[arm]!r}"
                empty = empty or found.startswith(EMPTY)
        if refuted == known.refuted and not empty and undecided == known.undecided:
            return self
        return self._with(known._replace(refuted=refuted, empty=empty, undecided=frozenset(undecided)))

    def _moved(self, arms: Arms, learnt: Collection[int]) -> Members:
        """Once some arms have learnt: what was made of the others is kept."""
        made = self._made if len(self._made) <= _MOST_MADE else {}
        return Members(self.starts, arms, {arm: each for arm, each in made.items() if arm not in learnt})

    def _with(self, arms: Arms) -> Members:
        """With other arms, or more of them, none of which has learnt anything else."""
        return self._moved(arms, ())


def _part(rows: Array, rewards: Array, weights: Array | None, places: ArmNumbers) -> tuple[Any, ...]:
    return rows[places, :-1], rewards[places], None if weights is None else weights[places]
