"""Values of any kind and where they are in a list: by hash, so that long lists stay cheap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class Choices:
    """Where values are in a list of choices. 1, 1.0 and True, equal for Python, may be different choices.

    Values that cannot be hashed, such as lists, are compared one by one.
    """

    def __init__(self, choices: Sequence[Any]) -> None:
        self._choices = choices
        self._exact: dict[tuple[type, Any], int] = {}
        self._equal: dict[Any, int] = {}  # the first of those that Python considers equal
        self._nan: int | None = None  # NaN is not equal to itself
        self._unhashable: list[int] = []
        self.repeated: int | None = None  # the first choice that occurs before
        for i, choice in enumerate(choices):
            if self._occurs(choice):
                self.repeated = i
                return
            self._add(choice, i)

    def find(self, value: Any) -> int | None:
        """The index of a value: of the same type if possible, else of one that is equal; None if there is none."""
        if _is_nan(value):
            return self._nan
        try:
            found = self._exact.get((type(value), value), self._equal.get(value))
            others: Sequence[int] = self._unhashable
        except Exception:  # hashing runs the code of users
            found, others = None, range(len(self._choices))
        if found is not None or not others:
            return found
        same_type = (i for i in others if type(self._choices[i]) is type(value) and are_equal(self._choices[i], value))
        equal = (i for i in others if are_equal(self._choices[i], value))
        return next(same_type, next(equal, None))

    def _occurs(self, choice: Any) -> bool:
        if _is_nan(choice):
            return self._nan is not None
        try:
            return (type(choice), choice) in self._exact
        except Exception:  # hashing runs the code of users
            known = (self._choices[i] for i in self._unhashable)
            return any(type(other) is type(choice) and are_equal(other, choice) for other in known)

    def _add(self, choice: Any, i: int) -> None:
        if _is_nan(choice):
            self._nan = i
            return
        try:
            self._exact[type(choice), choice] = i
            self._equal.setdefault(choice, i)
        except Exception:  # hashing runs the code of users
            self._unhashable.append(i)


def are_equal(one: Any, other: Any) -> bool:
    """Whether two values are equal; those that cannot be compared, such as arrays, are not."""
    try:
        return bool(one == other)
    except Exception:  # the code of users and of other libraries
        return False


def _is_nan(value: Any) -> bool:
    try:
        return bool(value != value)  # noqa: PLR0124
    except Exception:
        return False
