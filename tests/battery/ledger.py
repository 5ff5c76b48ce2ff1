"""An account of what a policy was told, kept apart from the policy: nothing may be lost, doubled or changed."""

from dataclasses import dataclass, field

import numpy as np


@dataclass
class Entry:
    """A choice, and the bounds on its reward when it was made, where they are known from elsewhere."""

    choice: object
    row: np.ndarray
    bounds: tuple[float, float] | None


@dataclass
class Ledger:
    """Which choices wait, which rewards are held back, and what has been learnt, in order."""

    strict: bool
    width: int  # of a row
    waiting: dict[int, Entry] = field(default_factory=dict)
    held: dict[int, tuple[float, float | None]] = field(default_factory=dict)
    learnt: list[tuple[np.ndarray, float, float | None]] = field(default_factory=list)
    played: int = 0
    rounds: int = 0

    def made(self, choices, bounds=lambda row: None):
        for choice in choices:
            row = choice.action if choice.context is None else np.concatenate((choice.context, choice.action))
            assert choice.number == self.rounds, "numbers count the choices"
            self.waiting[choice.number] = Entry(choice, row.copy(), bounds(row))
            self.rounds += 1

    def told(self, numbers, rewards, levels):
        if self.strict:
            self.held.update(zip(numbers, zip(rewards, levels, strict=True), strict=True))
            self._release()
        else:
            for number, reward, level in zip(numbers, rewards, levels, strict=True):
                self._learn(number, reward, level)

    def gone(self, number, played):
        del self.waiting[number]
        self.held.pop(number, None)
        self.played += played
        if self.strict:
            self._release()

    def _release(self):
        while self.waiting and min(self.waiting) in self.held:
            first = min(self.waiting)
            self._learn(first, *self.held.pop(first))

    def _learn(self, number, reward, level):
        self.learnt.append((self.waiting.pop(number).row, reward, level))
        self.played += 1

    def learnt_elsewhere(self, rows, rewards):
        self.learnt += [(row, float(reward), None) for row, reward in zip(rows, rewards, strict=True)]

    @property
    def pending(self):
        """The numbers of the choices that wait for rewards, in order."""
        return [number for number in sorted(self.waiting) if number not in self.held]

    def data(self, sigma):
        """All that was learnt, in order: rows, rewards, noise levels."""
        rows = np.array([row for row, _, _ in self.learnt]).reshape(len(self.learnt), self.width)
        rewards = np.array([reward for _, reward, _ in self.learnt])
        return rows, rewards, np.array([sigma if level is None else level for _, _, level in self.learnt])
