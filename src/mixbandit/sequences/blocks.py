"""Error bars for arms with a parameter each, which share δ: one confidence sequence per arm, seen as one.

The alternative, one set for all parameters together (`Disjoint` features in a sequence), pays in every bound for the
dimensions of all arms and for a norm bound of B√K: with 10 arms and 5 features it is three times as wide.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from mixbandit._checks import (
    Array,
    as_items,
    as_label,
    as_rows,
    as_text,
    as_vector,
    flag,
    instance_of,
    is_integer,
    listed,
    shown,
    underflowing,
)
from mixbandit._lazy import setting
from mixbandit._schema import Since, count, list_of, optional, record, scalar
from mixbandit.actions import storable_label
from mixbandit.data import RIDGES, ArmNumbers, Ridges
from mixbandit.errors import DamagedState, InvalidInput, NotMergeable, reading
from mixbandit.mixtures import Grid, Linear, Scaled
from mixbandit.sequences.arm_beliefs import ArmBeliefs
from mixbandit.sequences.arm_members import Arms, Members, Shares, Starts
from mixbandit.sequences.base import ConfidenceSequence, OwnHome
from mixbandit.sequences.belief import Belief
from mixbandit.sequences.own import BeliefSequence
from mixbandit.spending import IN_ORDER, Ledger, Spending, evenly
from mixbandit.storage import Stored

_MOST_ARMS = 10_000_000
# How much less spread the second guess about a new arm has than the other arms.
_NARROWER = 0.1
# The least spread of what others taught, as a share of the norm bound.
_LEAST_SPREAD = 0.01


class ArmIntervals(NamedTuple):
    """Bounds and estimates of expected rewards of several arms in one context, (K,) each."""

    lower: Array
    upper: Array
    estimate: Array


class Blocks(BeliefSequence):
    """One confidence sequence per arm, for expected rewards xᵀθ_k, or whatever `sequence` says of one arm.

    Every arm begins as `sequence`, which must be new, with a part of its δ: δ/(2K) for the K `arms` known at the start,
    given as a number or by their labels, and δ/(2j(j+1)) for the j-th that is added later. With `growing=False` no arm
    can be added, and each has δ/K. All bounds, of all arms and at all times, hold together with probability ≥ 1 − δ.

    Rows are (context, k), k the number of the arm in the order of arrival; policies choose among `Arms(range(K))`.
    A norm bound is that of each θ_k.
    """

    kind = "Blocks"
    schema = record({"sequence": ConfidenceSequence.family, "arms": count, "growing": flag})
    memory = record({
        "labels": list_of(scalar), "gone": list_of(count), "ridges": optional(RIDGES), "own": list_of(count),
        "beliefs": list_of(ConfidenceSequence.family), "refuted": optional(as_text), "empty": Since(flag, False),
        "undecided": list_of(count),
    })  # fmt: skip

    growing: bool = setting("_starts.shares.growing", "Whether arms can be added.")

    def __init__(
        self, sequence: ConfidenceSequence, arms: int | Iterable[Hashable] = 0, *, growing: bool = True
    ) -> None:
        instance_of(sequence, ConfidenceSequence, "sequence", "a confidence sequence such as MartingaleMixture")
        if sequence.t:
            raise InvalidInput(f"sequence must be new, got one with {sequence.t} rewards")
        if sequence.guarantee != "anytime":
            raise InvalidInput(f"the bounds of {type(sequence).__name__} do not hold at all times: δ cannot be shared")
        if sequence.dim_in is None and sequence.moment.model.dim_in is None:
            raise InvalidInput("the kernel takes contexts of any length: state dim_in, the length of a context")
        labels = _labels(arms)
        if not (flag(growing, "growing") or labels):
            raise InvalidInput("there must be at least one arm if none can be added, got none")
        self._starts = Starts(sequence.copy(), Shares(Spending(sequence.delta), len(labels), growing))
        super().__init__(ArmBeliefs.start(self._starts, labels), sequence.on_empty)

    def __repr__(self) -> str:
        one = self.sequence
        return f"Blocks({one!r}, {len(self.labels)} arm{'' if len(self.labels) == 1 else 's'}, t={self.t})"

    @property
    def sequence(self) -> ConfidenceSequence:
        """A copy of what every arm begins as, at all of δ."""
        one: ConfidenceSequence = self._starts.one
        return one.copy()

    @property
    def arms(self) -> int:
        """How many arms were known at the start."""
        known: int = self._starts.shares.known
        return known

    @property
    def labels(self) -> list[Hashable]:
        """The labels of the arms that are there now, in the order in which they came."""
        known = self.moment.arms
        return [label for arm, label in enumerate(known.labels) if arm not in known.gone]

    @property
    def ledger(self) -> Ledger:
        """How δ is divided between the arms."""
        shares, failure = self._starts.shares, "a bound for an arm is ever wrong"
        if not shares.growing:
            return shares.whole.ledger(failure, shares.whole.line("the arms", evenly(shares.known)))
        parts, later = shares.whole.named(known=0.5, later=0.5), len(self.moment.members) - shares.known
        lines = [parts["known"].line("the arms known at the start", evenly(shares.known))] if shares.known else []
        return shares.whole.ledger(failure, *lines, parts["later"].line(f"arms added, so far {later}", IN_ORDER))

    def of(self, arm: Hashable) -> ConfidenceSequence:
        """A copy of one arm's own sequence, by its label: for its audit, its part of δ, or anything else it has."""
        number = self._number(arm)
        one: ConfidenceSequence = self._starts.sequence(number)
        return one.copy().live_in(OwnHome(self.moment.members.of(number)))

    def add(self, label: Hashable = None, *, taught: bool = False) -> int:
        """Add an arm, or bring one back that was removed; returns its number.

        Its label is its number unless given; an arm comes back by its label only. With `taught` its mixture expects a
        parameter like those of the arms that have learnt something: narrower after some rewards if that is so, and
        valid if it is not.
        """
        with self._home.lock:
            members, number = self.moment.members, len(self.moment.members)
            name = number if label is None else as_label(label)
            if name in members.arms.labels:
                if label is None:
                    raise InvalidInput(f"another arm has the label {number}, the number of this one: give it a label")
                number = int(members.arms.labels.index(name))
                if number not in members.arms.gone:
                    raise InvalidInput(f"arm {shown(name)} is there already")
                self._put(members.with_arm_back(number))
                return number
            if not self.growing:
                raise InvalidInput("with growing=False all of δ is given to the first arms: none can be added")
            own = self._taught(number).moment if flag(taught, "taught") else None
            self._put(members.with_arm(name, own))
            return number

    def remove(self, label: Hashable) -> Self:
        """Take an arm away: `interval` no longer has it, and its part of δ is never used again.

        Rewards of it may still be learnt, and `add` brings it back with all that it knows.
        """
        with self._home.lock:
            self._put(self.moment.members.without_arm(self._number(label)))
        return self

    @underflowing
    def interval(
        self, context: ArrayLike, arms: Iterable[Hashable] | None = None, alpha: float | Sequence[float] | None = None
    ) -> ArmIntervals:
        """Bounds of all arms, or of some by their labels, in one context; with `alpha`, closed forms."""
        belief, known = self._asked(alpha)
        numbers = self._numbers(arms)
        width = belief.model.dim_in - 1
        vector = as_vector(context, width, "context")
        rows = np.column_stack((np.broadcast_to(vector, (len(numbers), width)), numbers))
        directions = belief.directions(rows)
        found = belief.interval(directions, belief.at(known))
        if found.contradicts:
            self.refute("a bound on an expected reward lies outside reward_range")
        estimate = np.clip(belief.response.reward(belief.estimate.maximum(directions)), found.lower, found.upper)
        return ArmIntervals(found.lower, found.upper, estimate)

    def advantage(self, context: ArrayLike, arm: Hashable, over: Iterable[Hashable] | None = None) -> Array:
        """Upper bounds on how much more each other arm, or each of `over`, earns than `arm` in one context."""
        belief, _ = self._asked(None)
        number, numbers = self._number(arm), self._numbers(over)
        vector = as_vector(context, belief.model.dim_in - 1, "context")
        both = np.append(numbers, number)
        directions = belief.directions(np.column_stack((np.tile(vector, (len(both), 1)), both)))
        most = belief.exact.maximum(directions[: len(numbers)] - directions[-1])
        return np.array([belief.response.difference(float(each)) for each in most])

    def contains(self, theta: ArrayLike, *, rtol: float = 1e-9) -> bool:
        """Whether the sets of all arms contain their parameters, the rows of θ (K, d), by number."""
        dim = self._starts.belief.model.dim
        if dim is None:
            raise InvalidInput("kernel models have no parameter vector: ask for bounds at actions instead")
        rows = as_rows(theta, dim, "theta")
        return not self.moment.is_empty and super().contains(rows, rtol=rtol)

    @underflowing
    def merge(self, other: Self) -> Self:
        """A new sequence with the rewards of both, arm by arm; see `ConfidenceSequence.merge` for what it may say."""
        if type(other) is not type(self):
            raise NotMergeable(f"a {type(self).__name__} cannot be merged with a {type(other).__name__}")
        mine, theirs = self.moment, other.moment
        if mine.arms.labels != theirs.arms.labels:
            raise NotMergeable("the arms of the sequences differ, or came in another order")
        difference = self.sequence.difference(other.sequence)
        if difference is not None or self._starts.shares != other._starts.shares:
            raise NotMergeable(f"the sequences differ in {difference or 'how they share δ'}")
        own = {*mine.arms.own, *theirs.arms.own}
        both = {
            number: self.of(label).merge(other.of(label)).moment
            for number, label in enumerate(mine.arms.labels)
            if number in own or mine.members.of(number).t or theirs.members.of(number).t
        }
        known = Members.start(self._starts, mine.arms.labels).having(both, own)
        arms = known.arms._replace(
            gone=mine.arms.gone & theirs.arms.gone,
            refuted=mine.arms.refuted or theirs.arms.refuted,
            empty=mine.arms.empty or theirs.arms.empty,
            undecided=frozenset(both),
        )
        new = self.copy()
        new._home = OwnHome(ArmBeliefs(Members(self._starts, arms)))
        new.merged = self.merged or other.merged or bool(self.t and other.t)
        return new

    def learnt(self) -> dict[str, Any]:
        belief = self.moment
        known: Arms = belief.arms
        return {
            "labels": [storable_label(label) for label in known.labels],
            "gone": sorted(known.gone),
            "ridges": None if known.ridges is None else known.ridges.state_dict(),
            "own": sorted(known.own),
            "beliefs": [self.of(known.labels[arm]) for arm in sorted(known.own)],
            "refuted": known.refuted,
            "empty": known.empty,
            "undecided": sorted(known.undecided),
        }

    def believing(self, memory: Mapping[str, Any]) -> Belief[Any]:
        labels, own = (
            tuple(map(as_label, memory["labels"])),
            dict(zip(memory["own"], memory["beliefs"], strict=True)),
        )
        fits = (
            len(labels) >= self.arms and (self.growing or len(labels) == self.arms) and len(set(labels)) == len(labels)
        )
        numbers = {*memory["gone"], *own, *memory["undecided"]}
        if not fits or any(number >= len(labels) for number in numbers):
            raise InvalidInput(f"{len(labels)} labels do not fit {self.arms} arms")
        for number, each in own.items():
            self._check_own(number, each)
        blank = Members.start(self._starts, labels)
        ridges = None if memory["ridges"] is None else Ridges.from_state_dict(memory["ridges"])
        arms = blank.arms._replace(
            gone=frozenset(memory["gone"]),
            refuted=memory["refuted"],
            empty=memory["empty"],
            undecided=frozenset(memory["undecided"]),
        )
        beliefs = {arm: each.moment for arm, each in own.items()}
        return ArmBeliefs(Members(self._starts, arms).recalled(ridges, beliefs))

    @classmethod
    def restored(cls, stored: Stored, features: Any = None) -> Self:
        with reading(cls.__name__):
            new = cls(stored["sequence"].build(features), arms=stored["arms"], growing=stored["growing"])
            memory = {name: stored[name] for name in cls.memory.fields}
            memory["beliefs"] = [each.build(features) for each in stored["beliefs"]]
            try:
                belief = new.believing(memory)
            except InvalidInput as error:
                raise DamagedState(f"{stored.where}: {error}") from error
        new.merged = stored["merged"]
        return new.live_in(OwnHome(belief))

    def _restated(self, settings: dict[str, Any]) -> Self:
        if settings["arms"] == self.arms:
            settings = {**settings, "arms": self.moment.arms.labels[: self.arms]}
        return super()._restated(settings)

    def _check_own(self, number: int, own: ConfidenceSequence) -> None:
        """InvalidInput unless this is how an arm may begin, which others may have taught its mixture."""
        start: ConfidenceSequence = self._starts.sequence(number)
        if type(own) is type(start) and "mixture" in start.schema.fields:
            start = start.restated(mixture=getattr(own, "mixture"))  # noqa: B009
        difference = start.difference(own)
        if difference is not None:
            raise InvalidInput(f"an arm differs from its sequence in {difference}")

    def _put(self, members: Members) -> None:
        home: Any = self._home
        home.moment = ArmBeliefs(members)

    def _number(self, label: Hashable) -> int:
        """The number of an arm by its label, there now or before."""
        name, labels = as_label(label), self.moment.arms.labels
        if name not in labels:
            raise InvalidInput(f"arm {shown(name)} is unknown; there are {listed(labels) or 'no arms'}")
        return int(labels.index(name))

    def _numbers(self, labels: Iterable[Hashable] | None) -> ArmNumbers:
        known = self.moment.arms
        if labels is None:
            return np.array([arm for arm in range(len(known.labels)) if arm not in known.gone], dtype=np.int64)
        given = as_items(labels, "arms", "a list of labels")
        return np.array([self._number(label) for label in given], dtype=np.int64)

    def _taught(self, number: int) -> ConfidenceSequence:
        """The sequence of a new arm whose mixture expects what the other arms taught."""
        members: Members = self.moment.members
        one, dim = self._starts.sequence(number), self.sequence.moment.model.dim
        bound = getattr(one, "norm_bound", None)
        if "mixture" not in one.schema.fields or dim is None or bound is None:
            raise InvalidInput(f"{type(one).__name__} has no mixture in features, which others could teach")
        taught = [each for each in map(members.of, range(number)) if each.t]
        estimates = [each.closed_form.centre for each in taught]  # type: ignore[attr-defined]
        scale = bound**2 / dim
        guesses: list[Any] = [Scaled(scale)]
        if len(estimates) > 1:
            spread = np.maximum(np.var(estimates, axis=0, ddof=1), _LEAST_SPREAD**2 * scale)
            centre = np.mean(estimates, axis=0)
            guesses = [Linear(centre, np.diag(spread)), Linear(centre, _NARROWER * np.diag(spread)), *guesses]
        found: ConfidenceSequence = one.restated(mixture=Grid(guesses))
        return found


def _labels(arms: Any) -> tuple[Hashable, ...]:
    """The labels of arms that are given by how many there are, or by their labels."""
    if is_integer(arms):
        if not 0 <= int(arms) <= _MOST_ARMS:
            raise InvalidInput(f"arms must be labels, or how many there are, up to {_MOST_ARMS:,}, got {shown(arms)}")
        return tuple(range(int(arms)))
    labels = tuple(map(as_label, as_items(arms, "arms", "labels, or how many there are")))
    if len(set(labels)) != len(labels):
        twice = next(label for i, label in enumerate(labels) if label in labels[:i])
        raise InvalidInput(f"labels of arms must differ, but {shown(twice)} occurs more than once")
    return labels
