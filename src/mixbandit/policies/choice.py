"""Choices, and the ledger of those whose rewards have not been taken in yet."""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mixbandit._validation import LARGEST_DATUM, Array, as_number, check_finite, positive
from mixbandit.actions import storable_label
from mixbandit.errors import DamagedState, InvalidInput


@dataclass(frozen=True, eq=False)
class Choice:
    """What to play, and what was known of it when it was chosen."""

    id: int
    action: Array  # (dim,), without the context
    label: Hashable  # of the arm, None where arms have none
    lower: float  # bounds on its expected reward, from the rewards told so far
    upper: float
    index: int | None = None  # of the arm, None on a box
    context: Array | None = None
    trusted: bool = True  # False: the assumptions are refuted, and the bounds come from an inflated set

    def __repr__(self) -> str:
        what = np.array2string(self.action, precision=4, threshold=8) if self.label is None else repr(self.label)
        flag = "" if self.trusted else ", NOT TRUSTED"
        return f"Choice(id={self.id}, {what}, expected reward in [{self.lower:.4g}, {self.upper:.4g}]{flag})"


@dataclass
class Open:
    """A choice whose reward has not been taken in, with what it adds to the regret bounds."""

    choice: Choice
    row: Array  # (dim_in,): context and action
    width: float | None
    analytic: float | None
    reward: float | None = None  # told, and held back until earlier choices are done with
    sigma: float | None = None

    def state_dict(self) -> dict[str, Any]:
        choice = self.choice
        return {
            "id": choice.id,
            "row": self.row.copy(),
            "context": 0 if choice.context is None else len(choice.context),
            "label": storable_label(choice.label),
            "index": choice.index,
            "lower": choice.lower,
            "upper": choice.upper,
            "trusted": choice.trusted,
            "width": self.width,
            "analytic": self.analytic,
            "reward": self.reward,
            "sigma": self.sigma,
        }

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any]) -> Open:
        row, split = np.array(state["row"], dtype=np.float64), int(state["context"])
        choice = Choice(
            id=int(state["id"]),
            action=row[split:],
            context=row[:split] if split else None,
            **{name: state[name] for name in ("label", "index", "lower", "upper", "trusted")},
        )
        return cls(choice, row, *(state[name] for name in ("width", "analytic", "reward", "sigma")))


class Ledger:
    """Open choices by id, in the order in which they were made."""

    def __init__(self) -> None:
        self.next_id = 0
        self._open: dict[int, Open] = {}

    def __iter__(self) -> Iterator[Open]:
        return iter(self._open.values())

    def __len__(self) -> int:
        return len(self._open)

    def add(self, entries: list[Open]) -> None:
        for entry in entries:
            self._open[entry.choice.id] = entry
        self.next_id += len(entries)

    def find(self, choice: Choice | int, *, held: bool = False) -> Open:
        """The entry of a choice whose reward is awaited or, if `held`, held back; InvalidInput for any other."""
        number = choice.id if isinstance(choice, Choice) else choice
        if isinstance(number, bool) or not isinstance(number, int | np.integer):
            raise InvalidInput(f"a reward is told for a Choice or its id, got {choice!r}")
        entry = self._open.get(int(number))
        if entry is None:
            known = 0 <= number < self.next_id
            waiting = ", ".join(str(i) for i in list(self._open)[:5]) or "none"
            problem = "has been told or cancelled already" if known else "is unknown"
            raise InvalidInput(f"choice {number} {problem}; waiting for rewards: {waiting}")
        if entry.reward is not None and not held:
            raise InvalidInput(f"choice {number} has been told already; its reward waits for earlier choices")
        if isinstance(choice, Choice) and not np.array_equal(choice.action, entry.choice.action):
            raise InvalidInput(f"choice {number} was made by another bandit: its action is {choice.action}")
        return entry

    def told(
        self,
        choice: Choice | int | Sequence[Choice | int],
        reward: float | ArrayLike,
        sigma: float | ArrayLike | None,
    ) -> tuple[list[Open], Array, list[float | None]]:
        """What a call of `tell` says, checked: entries, rewards, and noise levels where they were given."""
        many = isinstance(choice, Sequence | np.ndarray) or hasattr(choice, "to_numpy")
        choices: list[Any] = list(choice) if many else [choice]  # type: ignore[arg-type]
        rewards = np.ravel(np.asarray(reward, dtype=object)) if many else [reward]
        if len(rewards) != len(choices):
            raise InvalidInput(f"{len(choices)} choices came with {len(rewards)} rewards")
        entries = [self.find(one) for one in choices]
        if len({entry.choice.id for entry in entries}) != len(entries):
            raise InvalidInput("a choice occurs twice in one call")
        # Clicks and successes come as truth values.
        values = np.array([float(r) if isinstance(r, bool | np.bool_) else as_number(r, "reward") for r in rewards])
        check_finite(values, "reward", LARGEST_DATUM)
        if sigma is None:
            return entries, values, [None] * len(entries)
        levels = np.ravel(np.asarray(sigma, dtype=object))
        if len(levels) not in (1, len(entries)):
            raise InvalidInput(f"sigma must be one number or {len(entries)}, got {len(levels)}")
        return entries, values, [positive(level, "sigma") for level in np.broadcast_to(levels, (len(entries),))]

    @contextlib.contextmanager
    def without(self, entries: list[Open]) -> Iterator[None]:
        """Take entries out, before what follows from that is done; if it fails, they are back in their places."""
        saved = dict(self._open)
        for entry in entries:
            del self._open[entry.choice.id]
        try:
            yield
        except BaseException:
            self._open = saved
            raise

    def snapshot(self) -> tuple[int, dict[int, Open]]:
        """What `restore` goes back to, as long as no entry is changed."""
        return self.next_id, dict(self._open)

    def restore(self, snapshot: tuple[int, dict[int, Open]]) -> None:
        self.next_id, self._open = snapshot

    def released(self) -> list[Open]:
        """The told choices before which nothing is waiting, in order of play."""
        ready = []
        for entry in self:
            if entry.reward is None:
                break
            ready.append(entry)
        return ready

    def state_dict(self) -> dict[str, Any]:
        return {"next_id": self.next_id, "open": [entry.state_dict() for entry in self]}

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any]) -> Ledger:
        new = cls()
        new.next_id = int(state["next_id"])
        for part in state["open"]:
            entry = Open.from_state_dict(part)
            if not 0 <= entry.choice.id < new.next_id:
                raise DamagedState(f"choice {entry.choice.id} is open, but only {new.next_id} were ever made")
            new._open[entry.choice.id] = entry
        return new
