"""What a part of the battery tried, and what came of it."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

Progress = Callable[[int], None]
"""Called with the number of cases done so far."""


def silent(done: int) -> None:
    """No progress."""


@dataclass
class Tally:
    """Counts by outcome, and a line per failure that says how to reproduce it.

    A failure is anything a user should never see: a foreign exception, a false answer, lost or doubled data, changed
    state after an error. A typed refusal is an outcome, not a failure.
    """

    name: str
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    @property
    def tried(self) -> int:
        return self.outcomes.total() + len(self.failures)

    def note(self, outcome: str) -> None:
        self.outcomes[outcome] += 1

    def fail(self, reproduction: str) -> None:
        self.failures.append(reproduction)

    def __str__(self) -> str:
        counts = ", ".join(f"{n} {outcome}" for outcome, n in self.outcomes.most_common())
        lines = "".join(f"\n  FAILED {line}" for line in self.failures[:20])
        return f"{self.name}: {self.tried} tried ({counts}), {len(self.failures)} failed{lines}"
