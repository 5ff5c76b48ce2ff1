"""What is known of values decides how they become evidence: three kinds with one interface.

A kind is settings alone. The record keeps the values and running sums of what `terms` makes of each; all that a kind
answers is a function of the record.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from mixbandit._checks import Array

Range = tuple[float, float]
Interval = tuple[float, float]


class Record:
    """Values in the order in which they came, how many results each counts for, and running sums."""

    def __init__(self, width: int) -> None:
        self.t = 0
        self.sums: Array = np.zeros(width)
        self._rows: Array = np.empty((2, 4))  # values and samples, with room for more

    @property
    def values(self) -> Array:
        """(t,) the values."""
        return self._rows[0, : self.t]

    @property
    def samples(self) -> Array:
        """(t,) how many results each is the mean of, or how many values of level σ it counts for."""
        return self._rows[1, : self.t]

    def add(self, values: Array, samples: Array, terms: Array) -> None:
        """Append values with their samples, and add the rows of `terms`, one after another, to the sums."""
        t = self.t + len(values)
        if t > self._rows.shape[1]:
            rows = np.empty((2, max(t, 2 * self._rows.shape[1])))
            rows[:, : self.t] = self._rows[:, : self.t]
            self._rows = rows
        self._rows[0, self.t : t] = values
        self._rows[1, self.t : t] = samples
        # In order, so that values in one batch, or one by one, or read from a file make the same sums.
        self.sums = self.sums + terms[0] if len(terms) == 1 else np.cumsum(np.vstack((self.sums, terms)), axis=0)[-1]
        self.t = t

    def copy(self) -> Record:
        """An independent record of the same."""
        new = Record(len(self.sums))
        new.t, new.sums, new._rows = self.t, self.sums, self._rows.copy()
        return new


class Kind(Protocol):
    """How values become evidence."""

    width: int  # of the rows of `terms`
    counts_samples: bool  # whether `samples` mean anything
    multiplies: bool  # whether E is an e-process given the values of others too, so that two of them may be multiplied

    def check(self, values: Array, seen: Record) -> None:
        """Raise InvalidInput for values that contradict what is known of them."""
        ...

    def terms(self, values: Array, samples: Array) -> Array:
        """(n, width) what each value adds to the sums."""
        ...

    def mean(self, seen: Record) -> float:
        """The mean of all results."""
        ...

    def interval(self, seen: Record, level: float) -> Interval:
        """Hull of the means with ln E < level."""
        ...

    def log_evalue(self, seen: Record, mean: float) -> float:
        """The logarithm of E against this mean."""
        ...

    def log_path(self, seen: Record, mean: float) -> tuple[Array, Array]:
        """The logarithm of E after each value (t,), and the mean so far minus this one (t,)."""
        ...
