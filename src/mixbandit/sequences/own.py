"""The base of sequences that hold a belief of your own."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any, Self

from mixbandit._checks import flag, nonnegative
from mixbandit._schema import Fields, Since, one_of_these, record
from mixbandit.errors import DamagedState, InvalidInput, NotMergeable, reading
from mixbandit.sequences.base import STATE_VERSION, ConfidenceSequence, OwnHome
from mixbandit.sequences.belief import Belief
from mixbandit.storage import Stored, built

_COMMON = record({"version": Since(one_of_these(STATE_VERSION), STATE_VERSION), "merged": Since(flag, False)})


class BeliefSequence(ConfidenceSequence, abc.ABC):
    """Pass `super().__init__` the belief before any reward.

    To be stored the sequence states its `kind`, the `schema` of its settings, and the form of what it has learnt, its
    `memory`, which `learnt` gives and `believing` takes.
    """

    def __init__(self, belief: Belief[Any], on_empty: str = "raise") -> None:
        super().__init__(belief, on_empty=on_empty)

    @abc.abstractmethod
    def learnt(self) -> dict[str, Any]:
        """What the belief has learnt, by the names of `memory`."""

    @abc.abstractmethod
    def believing(self, memory: Mapping[str, Any]) -> Belief[Any]:
        """The belief that has learnt this instead; raise InvalidInput if it does not fit the settings."""

    def _restated(self, settings: dict[str, Any]) -> Self:
        return type(self)(**settings)

    def contains(self, theta: Any, *, rtol: float = 1e-9) -> bool:
        """Whether the set contains θ, given as its own `contains` takes it."""
        return bool(self.moment.exact.contains(theta, nonnegative(rtol, "rtol")))

    def merge(self, other: Self) -> Self:
        raise NotMergeable(f"{type(self).__name__} does not say how to merge two of its beliefs")

    @classmethod
    def check_state(cls, state: Mapping[str, Any], where: str) -> Fields:
        return {**_COMMON(state, where), **cls.schema(state, where), **cls.memory(state, where)}

    @classmethod
    def restored(cls, stored: Stored, features: Any = None) -> Self:
        with reading(cls.__name__):
            new = cls(**cls.keywords(stored))
            try:
                belief = new.believing({name: built(stored[name]) for name in cls.memory.fields})
            except InvalidInput as error:
                raise DamagedState(f"{stored.where}: {error}") from error
        new.merged = stored["merged"]
        return new.live_in(OwnHome(belief))
