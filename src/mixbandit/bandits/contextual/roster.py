"""The arms of a contextual bandit, by label: who is there now, and everybody who ever was."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixbandit._checks import Array, as_items, as_label, is_integer, listed, shown
from mixbandit._lazy import lazy
from mixbandit.errors import InvalidInput
from mixbandit.features import Context, NamedContexts

Numbers = NDArray[np.int64]


class ArmFeatures(NamedTuple):
    """Features of arms, encoded as contexts are, but that no number is too far from others to count as it is."""

    encoder: NamedContexts
    given: tuple[Context, ...]  # by number

    @classmethod
    def of(cls, described: Mapping[Hashable, Any]) -> ArmFeatures:
        """Of what a user says about each arm, by label."""
        return cls._folded(described.items(), lambda encoder, arm: _read(encoder, *arm))

    @classmethod
    def unplain(cls, described: Iterable[Any]) -> ArmFeatures:
        """Of what `plain` returned."""
        return cls._folded(described, lambda encoder, value: encoder.unplain(value))

    @classmethod
    def _folded(cls, described: Iterable[Any], read: Callable[[NamedContexts, Any], Context]) -> ArmFeatures:
        encoder = NamedContexts(unknown="raise", reach=None)
        given = []
        for each in described:
            given.append(read(encoder, each))
            encoder = encoder.after(given[-1])
        return cls(encoder.settled(), tuple(given))

    def plain(self) -> list[Any]:
        """Of each arm as lists, dicts, texts and numbers."""
        return [self.encoder.plain(each) for each in self.given]

    def added(self, stored: Any) -> ArmFeatures:
        """With one more arm, in the form in which an event keeps it."""
        given = self.encoder.unplain(stored)
        return ArmFeatures(self.encoder.after(given), (*self.given, given))

    def rows(self) -> Array:
        """The features of all arms, (K, k)."""
        return np.array([self.encoder.row(each) for each in self.given])


class Roster:
    """Arms have numbers in the order in which they came, and keep them for good. An immutable value."""

    def __init__(
        self, labels: tuple[Hashable, ...] = (), active: tuple[int, ...] = (), features: ArmFeatures | None = None
    ) -> None:
        self.labels, self.active, self.features = labels, active, features

    @lazy
    def numbers(self) -> dict[Hashable, int]:
        """The number of every arm that ever was, by its label."""
        return {label: number for number, label in enumerate(self.labels)}

    @lazy
    def everyone(self) -> Numbers:
        """The numbers of the arms that are there now, in increasing order."""
        return _fixed(self.active)

    @lazy
    def _names(self) -> tuple[Hashable, ...]:
        return tuple(self.labels[number] for number in self.active)

    def names(self, numbers: Numbers) -> tuple[Hashable, ...]:
        """The labels of the arms with these numbers."""
        return self._names if numbers is self.everyone else tuple(self.labels[number] for number in numbers.tolist())

    @lazy
    def _alone(self) -> dict[int, tuple[Numbers, tuple[Hashable]]]:
        return {}

    def alone(self, arm: int) -> tuple[Numbers, tuple[Hashable]]:
        """The number and the label of one arm, as those of several are given."""
        found = self._alone.get(arm)
        if found is None:
            found = self._alone[arm] = _fixed((arm,)), (self.labels[arm],)
        return found

    @lazy
    def rows(self) -> Array | None:
        """The features of all arms that ever were, (K, k), if arms have features."""
        return None if self.features is None else self.features.rows()

    def eligible(self, arms: Sequence[Hashable] | None) -> Numbers:
        """The numbers of these arms, or of all that are there now."""
        if arms is None:
            if not self.active:
                raise InvalidInput("there are no arms to choose from: add_arm adds one")
            return self.everyone
        found = sorted({self.number_of(label) for label in arms})
        if not found:
            raise InvalidInput("arms must have at least one label, got an empty list")
        return self.everyone if len(found) == len(self.active) else _fixed(found)

    def number_of(self, label: Hashable) -> int:
        """The number of an arm that is there now; InvalidInput for others."""
        number = known(self.numbers, label)
        if number is None or number not in self._present:
            there = listed([self.labels[i] for i in self.active[:6]])
            what = "is unknown" if number is None else "was removed"
            raise InvalidInput(f"arm {shown(label)} {what}; there are {there or 'no arms'}")
        return number

    @lazy
    def _present(self) -> frozenset[int]:
        return frozenset(self.active)

    def added(self, label: Hashable, features: Any = None) -> Roster:
        """With one more arm, or with one that was removed back again."""
        number = known(self.numbers, label)
        if number in self._present:
            raise InvalidInput(f"arm {shown(label)} is there already")
        if features is not None and (self.features is None or number is not None):
            raise InvalidInput(f"arm {shown(label)} takes no features")
        if number is None:
            labels, place = (*self.labels, label), len(self.labels)
            described = None if self.features is None else self.features.added(features)
            return Roster(labels, (*self.active, place), described)
        return Roster(self.labels, tuple(sorted((*self.active, number))), self.features)

    def removed(self, label: Hashable) -> Roster:
        number = self.number_of(label)
        return Roster(self.labels, tuple(i for i in self.active if i != number), self.features)

    def checked_new(self, label: Any, features: Any) -> tuple[Hashable, Any]:
        """A label that can be added, and the arm's features as an event keeps them."""
        name = as_label(label)
        number = known(self.numbers, name)
        if number is not None and number in self._present:
            raise InvalidInput(f"arm {shown(name)} is there already")
        if number is not None:
            if features is not None:
                raise InvalidInput(f"arm {shown(name)} comes back with what it was: pass no features again")
            return name, None
        if self.features is None:
            if features is not None:
                raise InvalidInput("the arms have no features: state them for all arms, as arms={label: features}")
            return name, None
        if features is None:
            raise InvalidInput(f"arm {shown(name)} needs features, as the other arms have them")
        encoder = self.features.encoder
        return name, encoder.plain(_read(encoder, name, features))


def _read(encoder: NamedContexts, label: Hashable, features: Any) -> Context:
    """The features of an arm; InvalidInput names the arm."""
    try:
        return encoder.read(features)
    except InvalidInput as error:
        raise InvalidInput(f"the features of arm {shown(label)} are read as a context is: {error}") from error


def _fixed(numbers: Sequence[int]) -> Numbers:
    """Numbers of arms as an array that nobody changes."""
    found = np.array(numbers, dtype=np.int64)
    found.setflags(write=False)
    return found


def known(numbers: dict[Hashable, int], label: Any) -> int | None:
    """The number of a label; True and 1 are not the same arm."""
    try:
        return None if isinstance(label, bool | np.bool_) else numbers.get(label)
    except Exception:  # a list, say, and hashing runs the code of users
        return None


def place_of(number: int | None, numbers: Numbers) -> int | None:
    """Where a number is among others, in increasing order; None if it is not there."""
    if number is None:
        return None
    place = int(np.searchsorted(numbers, number))
    return place if place < len(numbers) and numbers[place] == number else None


def as_roster(arms: Any) -> Roster:
    """The arms that a user names: labels, how many there are, or a mapping from labels to features."""
    if is_integer(arms):
        if not 1 <= int(arms) <= 10_000_000:
            raise InvalidInput(f"arms must be labels, or at least one of them, got {shown(arms)}")
        return Roster(tuple(range(int(arms))), tuple(range(int(arms))))
    given = arms.keys() if isinstance(arms, Mapping) else arms
    expected = "a list of labels, or a mapping from labels to features"
    labels = distinct(map(as_label, as_items(given, "arms", expected, ordered=given is arms)))
    features = ArmFeatures.of(arms) if isinstance(arms, Mapping) else None
    return Roster(labels, tuple(range(len(labels))), features)


def as_labels(arms: Any) -> list[Hashable]:
    """Labels as a user lists them."""
    return as_items(arms, "arms", "a list of labels", ordered=False)


def distinct(labels: Iterable[Hashable]) -> tuple[Hashable, ...]:
    """Labels, which must differ."""
    found = tuple(labels)
    if len(set(found)) != len(found):
        twice = next(label for label in found if found.count(label) > 1)
        raise InvalidInput(f"labels of arms must differ, but {shown(twice)} occurs more than once")
    return found
