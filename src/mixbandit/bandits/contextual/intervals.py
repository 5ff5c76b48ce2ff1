"""Error bars for arms in a context, from a linear model that the user states: nothing that decisions wait for.

Rewards are folded into `Blocks`, one confidence set per arm, when somebody asks. All of them need one scale of the
features. The k-th scale is that of the contexts of the first 2^k decisions, and only rewards of later decisions count
with it: the scale is fixed before the first reward that counts is drawn, and a column that comes later, for a new
category, or for a number that had not varied, is fixed with the context that brings it, before its reward. So nothing
is assumed about how contexts come about. In use is the largest k with 2^k at most an eighth of all decisions. A context
that is asked about counts as the next one to come: what is new in it has columns that no reward was told for.
Statements with the k-th scale have a part of δ of their own, δ/((k+1)(k+2)), so that all of them hold together,
whenever and however often they are asked for.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixbandit._checks import Array
from mixbandit._words import confidence
from mixbandit.bandits.contextual.anchored import Anchored
from mixbandit.bandits.contextual.events import ArmAdded, DecidedInContext, RewardTold
from mixbandit.bandits.contextual.roster import Numbers
from mixbandit.bandits.contextual.state import State
from mixbandit.errors import InvalidInput
from mixbandit.features import ContextFeatures
from mixbandit.sequences import Blocks, MartingaleMixture
from mixbandit.spending import Ledger, Spending

# Rewards learnt at once.
_TOGETHER = 4096
# The scale may rest on at most one decision in this many.
_SHARE = 8


@dataclass(frozen=True, eq=False)
class Intervals:
    """Error bars for the expected rewards of arms in one context; print it to read it.

    `lower`, `upper` and `estimate` are numbers if one arm was asked about, else arrays in the order of `arms`;
    `found[arm]` has both ends for an arm. No other of these arms beats `best` by more than `shortfall`. `rewards`
    counts those that the bounds rest on, and `trusted` is False if they refute the `assumptions`.
    """

    arms: tuple[Hashable, ...]
    lower: Any
    upper: Any
    estimate: Any
    best: Hashable  # the arm that no other of these beats by much
    shortfall: float  # at most this much more is the expected reward of any other of these arms
    delta: float
    rewards: int  # how many count
    assumptions: str
    trusted: bool  # False: the rewards refute the assumptions
    ledger: Ledger

    def __len__(self) -> int:
        return len(self.arms)

    def __getitem__(self, arm: Hashable) -> tuple[float, float]:
        """The lower and the upper end for an arm."""
        if arm not in self.arms:
            raise InvalidInput(f"arm {arm!r} was not asked about")
        place = self.arms.index(arm)
        return float(np.atleast_1d(self.lower)[place]), float(np.atleast_1d(self.upper)[place])

    def __str__(self) -> str:
        ends = zip(self.arms, np.atleast_1d(self.lower), np.atleast_1d(self.upper), strict=True)
        width = max(len(str(arm)) for arm in self.arms)
        lines = [f"  {arm!s:<{width}}  {low:.4g} to {high:.4g}" for arm, low, high in ends]
        if len(self.arms) > 1:
            word, margin = ("Safest", f" by more than {self.shortfall:.4g}") if self.shortfall else ("Best", "")
            lines.append(f"{word}: {self.best}; no other of these arms is better{margin}.")
        if not self.trusted:
            lines.insert(0, "NOT TRUSTED: the rewards refute the assumptions, so nothing is guaranteed.")
        count = f"{self.rewards:,} reward{'' if self.rewards == 1 else 's'}"
        head = f"Expected rewards, from {count}, with probability ≥ {confidence(self.delta)} at all times at once:"
        return "\n".join([head, *lines, f"Given that {self.assumptions}."])


class ModelBased:
    """The confidence sets of all arms, and how much of the journal they know."""

    _anchored: Anchored
    _decided: int  # decisions seen
    _seen: int  # events seen
    _scaled: ContextFeatures  # those whose scale is used
    _first: list[Any]  # contexts while the scale is not fixed
    _early: NDArray[np.bool_]  # whether a column is not 0 in one of these
    _late: NDArray[np.bool_]  # and in a later one

    def __init__(self, bandit: Any, norm_bound: float, sigma: float | None) -> None:
        low, high = bandit.reward_range
        self._bandit, self._norm_bound = bandit, norm_bound
        # A variable between two ends is sub-Gaussian with half their distance (Hoeffding).
        self._is_range, self._sigma = sigma is None, (high - low) / 2.0 if sigma is None else sigma
        self._begin(-1, bandit.state.features.dim)

    def intervals(self, state: State, context: Any, numbers: Numbers, *, single: bool) -> Intervals:
        """The error bars of the arms with these numbers in a context."""
        self._learn(state, state.features.dim)
        read = self._anchored.features.read(context)
        asked = self._anchored.after(read)  # as if it came now, so that what is new in it has a column
        if asked.features.dim > self._width:
            self._learn(state, asked.features.dim)
        row = asked.row(read, self._width)
        found = self._blocks.interval(row, numbers.tolist())
        best, shortfall = _best(found.lower, found.upper)
        labels = state.roster.names(numbers)
        lower, upper, estimate = (part.item(0) if single else part for part in found)
        return Intervals(
            labels, lower, upper, estimate, labels[best], shortfall, self._bandit.delta, self._blocks.t,
            self._assumptions(state, asked, row), self._blocks.is_trusted, self._ledger(),
        )  # fmt: skip

    def _learn(self, state: State, width: int) -> None:
        """Fold in what led to the state; from the beginning if there is another scale, or rows are to be wider."""
        count = state.counts.decided
        power = max((count // _SHARE).bit_length() - 1, 0) if count else -1
        if power != self._power or width > self._width:
            self._begin(power, max(width, self._width))
        rows: list[Array] = []
        rewards: list[float] = []
        # Others may append to the journal meanwhile.
        for event in itertools.islice(self._bandit.journal.since(self._seen), state.seen - self._seen):
            self._seen += 1
            if isinstance(event, DecidedInContext):
                self._decide(event)
            elif isinstance(event, RewardTold):
                row = self._open.pop(event.id, None)
                if row is not None:
                    rows.append(row)
                    rewards.append(event.value)
            elif isinstance(event, ArmAdded) and event.label not in self._labels:
                self._labels.add(event.label)
                self._flush(rows, rewards)
                self._blocks.add()
            if len(rows) >= _TOGETHER:
                self._flush(rows, rewards)
        self._flush(rows, rewards)

    def _decide(self, event: DecidedInContext) -> None:
        """See a context; once the scale is set, its decision's reward will count."""
        self._decided += 1
        context = event.read_by(self._bandit, self._anchored.features)
        self._anchored = self._anchored.after(context)
        if self._decided <= 2**self._power:
            self._first.append(context)
        if self._decided == 2**self._power:
            self._scaled = self._anchored.features
            self._anchored = Anchored(self._scaled)
            for each in self._first:
                self._early |= self._anchored.row(each, self._width) != 0.0
            self._first = []
        elif self._decided > 2**self._power:
            row = self._anchored.row(context, self._width)
            self._late |= row != 0.0
            self._open[event.id] = np.append(row, event.arm)

    def _flush(self, rows: list[Array], rewards: list[float]) -> None:
        if rows:
            self._blocks.update(np.array(rows), np.array(rewards))
            rows.clear()
            rewards.clear()

    def _begin(self, power: int, width: int) -> None:
        """Start over, with the scale of the first 2^power contexts and rows of this width."""
        bandit, self._power, self._width = self._bandit, power, width
        roster, features, _ = bandit.origin
        self._anchored, self._scaled, self._seen, self._decided = Anchored(features), features, 0, 0
        self._open: dict[str, Array] = {}  # rows of decisions without a reward
        self._first, self._early, self._late = [], *np.zeros((2, width), dtype=np.bool_)
        self._labels = set(roster.labels)
        self._spending = Spending(bandit.delta).nth(max(power, 0) + 1)
        # What nothing was seen of has no part in the mixture N(0, ΦΦᵀ): columns that are still to come cost nothing.
        one = MartingaleMixture(
            width, sigma=self._sigma, norm_bound=self._norm_bound, delta=self._spending.delta,
            reward_range=bandit.reward_range, on_empty="inflate",
        )  # fmt: skip
        self._blocks = Blocks(one, arms=len(roster.labels))
        self._blocks.silent = True  # `trusted` says it

    def _ledger(self) -> Ledger:
        return Spending(self._bandit.delta).ledger(
            "a bound is ever wrong", self._spending.line(f"all arms, in the scale of {self._contexts()}")
        )

    def _contexts(self) -> str:
        first = 2 ** max(self._power, 0)
        return "the first context" if first == 1 else f"the first {first:,} contexts"

    def _assumptions(self, state: State, asked: Anchored, row: Array) -> str:
        noise = "rewards lie in reward_range" if self._is_range else f"rewards are {self._sigma:g}-sub-Gaussian"
        used = self._early | self._late | (row != 0.0)
        total, late = np.count_nonzero(used), np.count_nonzero(used & ~self._early)
        linear = (
            f"expected rewards of every arm are linear in {total} feature{'' if total == 1 else 's'} with ‖θ‖ ≤ "
            f"{self._norm_bound:g} in the scale of {self._contexts()}, whose rewards do not count"
        )
        if late:  # what no context had until then, such as a new category
            linear += (
                f" ({late} of them came later: in the scale of the first context with {'it' if late == 1 else 'each'})"
            )
        parts = [
            linear,
            *asked.features.provisos(self._scaled),
            f"{noise} and depend on the past only through context and arm",
        ]
        if state.reordered:
            parts.append("when a reward arrives does not depend on its value, nor does any context before that")
        if state.counts.cancelled:
            plural = "" if state.counts.cancelled == 1 else "s"
            parts.append(
                f"no value of a reward decided that it is lost ({state.counts.cancelled:,} cancelled choice{plural})"
            )
        return ", ".join(parts[:-1]) + ", and " + parts[-1]


def _best(lower: Array, upper: Array) -> tuple[int, float]:
    """The place of the arm that others beat by the least, and by how much at most they do.

    Every arm has a set of its own, so that the largest difference of two is that of their ends.
    """
    if len(upper) == 1:
        return 0, 0.0
    second, first = np.sort(upper)[-2:]
    others = np.full(len(upper), first)
    others[int(upper.argmax())] = second
    least = others - lower
    best = int(least.argmin())
    return best, max(float(least[best]), 0.0)
