"""What can be stored: a class states its `kind` and its `schema`, and is saved, checked and loaded from then on.

    class Halving(ActingRule):
        kind = "Halving"                                # what files call it
        schema = record({"share": real(positive)})      # its settings: attributes, and keywords of its constructor

That is all for a class whose settings make it again; what also learns states the form of its `memory` (`Remembering`).
Files hold names of kinds and plain values: loading looks the name up among the classes that were defined, and never
imports or runs anything else. Import the module that defines your class before you load a file that has one.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from mixbandit._checks import as_text, finite, flag, nonnegative, positive, probability, shown
from mixbandit._files import from_line, to_line
from mixbandit._schema import (
    Fields,
    Since,
    array,
    check_type,
    checked,
    integer,
    list_of,
    mapping,
    one_of_these,
    optional,
    real,
    record,
)
from mixbandit.errors import DamagedState, InvalidInput, NotStorable

# What a class outside needs for its schema.
__all__ = [
    "Family",
    "Remembering",
    "Since",
    "Storable",
    "array",
    "as_text",
    "finite",
    "flag",
    "from_line",
    "integer",
    "list_of",
    "nonnegative",
    "one_of_these",
    "optional",
    "positive",
    "probability",
    "real",
    "record",
    "to_line",
]


class Family:
    """The kinds of one sort of thing, such as kernels, by name. As a schema it takes the state of any of them."""

    def __init__(self, what: str, where: str, within: Family | None = None) -> None:
        self.what = what  # with an article
        self.where = where  # the place of a state that is in no other
        self.within = within  # the kinds are also kinds of this family
        self.kinds: dict[str, type[Storable]] = {}

    def register(self, cls: type[Storable]) -> None:
        """Add a class; InvalidInput if another has its kind."""
        known = self.kinds.get(cls.kind)
        # A cell of a notebook that runs again defines the same class anew.
        if known is not None and _full_name(known) != _full_name(cls):
            raise InvalidInput(
                f"{_full_name(cls)} must state a kind of its own: {cls.kind!r} is the kind of {_full_name(known)}"
            )
        if self.within is not None:
            self.within.register(cls)
        self.kinds[cls.kind] = cls

    def find(self, state: Mapping[str, Any], where: str) -> type[Storable]:
        """The class of a state; DamagedState if its kind is unknown."""
        kind = as_text(state.get("type"), f"{where}.type")
        if kind not in self.kinds:
            raise DamagedState(f"{where} is {self.what} of unknown type {shown(kind)}{IMPORT_IT}")
        return self.kinds[kind]

    def __call__(self, value: Any, where: str) -> Stored:
        if isinstance(value, Stored) and value.of.family is self:  # checked already
            return value
        cls = self.find(mapping(value, where), where)
        return Stored(cls, {**cls.check_state(value, where), "type": value["type"]}, where)

    def load(self, state: Any, features: Any = None) -> Any:
        """The object that `state_dict` described."""
        return checked(self, state, self.where).build(features)


IMPORT_IT = "; if it is your own, import the module that defines it first"

FILES = Family("an object", "state")
"""The kinds that have files of their own: policies, sequences, tuners."""


CODE = record({})
"""The schema of what cannot be stored."""


class Storable:
    """Base of what can be stored. A class that states its `kind` registers in its family; others are code.

    The settings are attributes, and keywords of the constructor, by the names of `schema`. Where they are not,
    override `settings` and `restored`.
    """

    family: ClassVar[Family]
    kind: ClassVar[str]
    schema: ClassVar[record] = CODE

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if is_kind(cls):
            if cls.schema is CODE:
                raise InvalidInput(
                    f"{_full_name(cls)} states a kind, but no schema; without settings it is record({{}})"
                )
            cls.family.register(cls)

    def settings(self) -> dict[str, Any]:
        """What makes the object again, by the names of the schema."""
        return {name: getattr(self, name) for name in self.schema.fields}

    def state_dict(self) -> dict[str, Any]:
        """Everything needed to make it again, as plain values."""
        if not is_kind(type(self)):
            raise not_storable(self)
        return {"type": self.kind, **plain(self.settings())}

    @classmethod
    def check_state(cls, state: Mapping[str, Any], where: str) -> Fields:
        """The state of this kind, in the form of its schema."""
        return cls.schema(state, where)

    @classmethod
    def keywords(cls, stored: Mapping[str, Any]) -> dict[str, Any]:
        """The keywords of the constructor in a checked state."""
        return {name: built(stored[name]) for name in cls.schema.fields}

    @classmethod
    def restored(cls, stored: Stored, features: Any = None) -> Self:
        """The object of a checked state; `features` are given if they are a user's function, which is not stored."""
        keywords = cls.keywords(stored)
        try:
            return cls(**keywords)
        except InvalidInput as error:
            raise DamagedState(f"{stored.where}: {error}") from error

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any], features: Any = None) -> Self:
        """The object that `state_dict` described; pass `features` again if they are your own function."""
        check_type(state, cls.__name__, cls.reads())
        return cls.restored(checked(cls.family, state, cls.family.where), features)

    @classmethod
    def reads(cls) -> list[str]:
        """The kinds of states that `from_state_dict` takes."""
        return [cls.kind]


class Stored(dict[str, Any]):
    """A state that was checked, the class that makes an object of it, and its place."""

    def __init__(self, of: type[Storable], fields: Fields, where: str) -> None:
        super().__init__(fields)
        self.of, self.where = of, where

    def build(self, features: Any = None) -> Any:
        """The object."""
        return self.of.restored(self, features)


def built(value: Any) -> Any:
    """A checked setting with all states in it turned into objects."""
    if isinstance(value, Stored):
        return value.build()
    return [built(part) for part in value] if isinstance(value, list) else value


def plain(value: Any) -> Any:
    """A setting as it is stored; NotStorable if it is code."""
    if isinstance(value, Storable):
        return value.state_dict()
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, Mapping):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, np.ndarray):
        return value.copy()
    if value is None or isinstance(value, bool | int | float | str | np.generic):
        return value
    raise not_storable(value)


def is_kind(cls: type) -> bool:
    """Whether the class itself can be stored, not only what it derives from."""
    return "kind" in cls.__dict__


def not_storable(what: object) -> NotStorable:
    """The error for code that a state cannot hold."""
    name = getattr(what, "__qualname__", type(what).__name__)
    advice = "; state its `kind` and `schema`" if isinstance(what, Storable) else ""
    return NotStorable(f"{name} is code and cannot be stored by mixbandit{advice}")


class Remembering(Storable):
    """Base of what also learns: `memory` is the form of what it has learnt, as `schema` is the form of its settings.

    What it has learnt are attributes, by the names of `memory`. Where they are not, override `learnt` and `recalled`.
    """

    memory: ClassVar[record] = record({})

    def learnt(self) -> dict[str, Any]:
        """What it has learnt, by the names of `memory`."""
        return {name: getattr(self, name) for name in self.memory.fields}

    def recalled(self, memory: Mapping[str, Any]) -> Self:
        """A copy that has learnt this instead; raise InvalidInput if it does not fit the settings."""
        new = copy.copy(self)
        vars(new).update(memory)
        return new

    def state_dict(self) -> dict[str, Any]:
        """Everything needed to make it again, with what it has learnt, as plain values."""
        return {**super().state_dict(), **plain(self.learnt())}

    @classmethod
    def check_state(cls, state: Mapping[str, Any], where: str) -> Fields:
        return {**super().check_state(state, where), **cls.memory(state, where)}

    @classmethod
    def restored(cls, stored: Stored, features: Any = None) -> Self:
        new = super().restored(stored, features)
        try:
            return new.recalled({name: built(stored[name]) for name in cls.memory.fields})
        except InvalidInput as error:
            raise DamagedState(f"{stored.where}: {error}") from error


def _full_name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"
