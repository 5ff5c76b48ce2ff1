"""Who plays in a run: a policy of ours, or any object with `ask` and `tell`."""

from __future__ import annotations

from typing import Any, Protocol

from mixbandit._checks import Array, as_vector, is_integer, shown
from mixbandit.actions import Region, as_region
from mixbandit.bandits import Choice, Policy, State, persistent
from mixbandit.errors import InvalidInput


class Player(Protocol):
    """What `run` needs of an object of your own.

    `ask(arms, context=x)` returns anything with an `action`, perhaps also an `index` and a `label`; arms and context
    are passed if the round has them. `tell` gets back what `ask` returned, with its reward.
    """

    ask: Any
    tell: Any


class Seat(Protocol):
    """A player, as a run sees it: choices have numbers."""

    @property
    def actions(self) -> Region | None:
        """Its own, if it has any."""
        ...

    def ask(self, arms: Region | None, context: Array | None, n: int) -> list[Choice]: ...

    def bounds(self, choice: Choice) -> dict[str, Any]:
        """What the record of a choice says of its bounds."""
        ...

    def tell(self, numbers: list[int], rewards: list[float]) -> None: ...

    def lose(self, number: int) -> None:
        """The choice was played, and its reward never comes."""
        ...

    def waiting(self) -> set[int]:
        """The numbers of choices whose rewards are still to be told."""
        ...

    def mark(self) -> Any:
        """What `undo` goes back to."""
        ...

    def undo(self, mark: Any) -> None:
        """Take back choices that were never played."""
        ...


class PolicySeat:
    """A policy of ours."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    @property
    def actions(self) -> Region | None:
        return self._policy.actions

    def ask(self, arms: Region | None, context: Array | None, n: int) -> list[Choice]:
        return self._policy.ask(arms, context=context, n=n)

    def bounds(self, choice: Choice) -> dict[str, Any]:
        return {name: getattr(choice, name) for name in ("lower", "upper", "trusted")}

    def tell(self, numbers: list[int], rewards: list[float]) -> None:
        self._policy.tell([self._pending(number) for number in numbers], rewards)

    def lose(self, number: int) -> None:
        self._policy.cancel(self._pending(number), played=True)

    def waiting(self) -> set[int]:
        return {choice.number for choice in self._policy.pending}

    def mark(self) -> State:
        return self._policy.state

    def undo(self, mark: State) -> None:
        policy = self._policy
        if policy.journal is None:
            policy.state = mark._replace(refuted=policy.state.refuted)
            return
        for choice in policy.pending:  # a journal forgets nothing: its last words are that they were never played
            if choice.number >= mark.rounds:
                policy.cancel(choice)

    def _pending(self, number: int) -> Choice:
        found: Choice = persistent.get(self._policy.state.pending, number)
        return found


class GuestSeat:
    """Any other object with `ask` and `tell`: it has no bounds, and what it was asked cannot be taken back."""

    actions = None

    def __init__(self, guest: Player, first: int) -> None:
        self._guest, self._next = guest, first
        self._chosen: dict[int, Any] = {}  # what `ask` returned, by number

    def ask(self, arms: Region | None, context: Array | None, n: int) -> list[Choice]:
        region = None if arms is None else as_region(arms)
        offered = () if region is None else (region,)
        named = {} if context is None else {"context": context}
        return [self._made(self._guest.ask(*offered, **named), region, context) for _ in range(n)]

    def bounds(self, choice: Choice) -> dict[str, Any]:
        return {"lower": None, "upper": None, "trusted": False}

    def tell(self, numbers: list[int], rewards: list[float]) -> None:
        for number, reward in zip(numbers, rewards, strict=True):
            self._guest.tell(self._chosen.pop(number), reward)

    def lose(self, number: int) -> None:
        del self._chosen[number]

    def waiting(self) -> set[int]:
        return set(self._chosen)

    def mark(self) -> int:
        return self._next

    def undo(self, mark: int) -> None:
        self._chosen = {number: choice for number, choice in self._chosen.items() if number < mark}

    def _made(self, chosen: Any, arms: Region | None, context: Array | None) -> Choice:
        """What the environment is asked about."""
        if not hasattr(chosen, "action"):
            raise InvalidInput(f"ask must return an object with an `action`, got {shown(chosen)}")
        action = as_vector(chosen.action, None if arms is None else arms.dim, "the action that ask returned").copy()
        index: Any = getattr(chosen, "index", None)
        known = int(index) if is_integer(index) else None  # a tuple's own `index` is a method
        number, self._next = self._next, self._next + 1
        self._chosen[number] = chosen
        return Choice(number, action, getattr(chosen, "label", None), index=known, context=context)


def seat(player: Any, first: int) -> Seat:
    """The seat of a policy, or of an object with `ask` and `tell`, whose choices count from `first`."""
    if isinstance(player, Policy):
        return PolicySeat(player)
    if not all(callable(getattr(player, name, None)) for name in ("ask", "tell")):
        raise InvalidInput(f"policy must be a mixbandit policy, or an object with ask and tell, got {shown(player)}")
    return GuestSeat(player, first)


def ours(player: Any, why: str) -> Policy:
    """The player, if it is a policy of ours; InvalidInput, with the reason, otherwise."""
    if not isinstance(player, Policy):
        raise InvalidInput(f"{why}, got {shown(player)}")
    return player
