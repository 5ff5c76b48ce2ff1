"""How δ is divided: the only code that divides it.

| division | each part has | whole |
|---|---|---|
| `named(model=0.4, own=0.6)` | the stated share | shares that sum to at most 1 |
| `weighted(0.9, 0.1)` | the same, in order and without names | |
| `each(n)` | δ/n, for a list of n fixed in advance | δ |
| `nth(j)`, j = 1, 2, … | δ/(j(j+1)), in order of arrival | δ, for any number: Σ 1/(j(j+1)) = 1 |
| `nth_square(j)`, j = 1, 2, … | 6δ/(πj)² | δ: Σ 1/j² = π²/6 |

A part is a `Spending` and can be divided further. What is said at one part each holds together with probability ≥ 1 − δ
(union bound), if each part is fixed before the data that it is spent on.

A `Ledger` says, for one claim, which part of δ is spent on what. Claims that hold with probability 1 − δ each, but not
together, have a ledger each.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from mixbandit._checks import as_number, as_text, positive_int, probability, shown
from mixbandit.errors import InvalidInput

# Shares are floats: 0.9 + 0.05 + 0.05 may differ from 1 in the last digit.
_ROUNDING = 1e-12
# What the ledger says of a part that is divided in order of arrival.
IN_ORDER = "the j-th has 1/(j(j+1)) of it"


def evenly(n: int) -> str:
    """The same of a part that is divided by `each(n)`."""
    return "all of it for one" if n == 1 else f"1/{n:,} of it for each of {n:,}"


@dataclass(frozen=True)
class Spending:
    """An error probability δ, or a part of one.

    `delta` is the part as a number, `level` is ln(1/δ) of it, right also where `delta` is too small for a float, and
    `path` names the divisions that led to it.
    """

    delta: float
    path: tuple[str, ...] = field(default=(), init=False)
    # The part is times·whole/over: so a part of a part is rounded once.
    _exact: tuple[float, float, float] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", probability(self.delta, "delta"))
        object.__setattr__(self, "_exact", (self.delta, 1.0, 1.0))

    @property
    def name(self) -> str:
        """The last name of the path; empty for a δ that was not divided."""
        return self.path[-1] if self.path else ""

    @property
    def level(self) -> float:
        """Ln(1/δ), computed without the quotient."""
        whole, times, over = self._exact
        return math.log(over) - math.log(times * whole)

    def named(self, **shares: float) -> Parts:
        """Parts by name, each with its share of this one; shares are positive and sum to at most 1."""
        return Parts(tuple(self._part(name, times=share) for name, share in _checked(shares).items()))

    def weighted(self, *shares: float) -> tuple[Spending, ...]:
        """The same without names, in order."""
        found = _checked({f"{i} of {len(shares)}": share for i, share in enumerate(shares, 1)})
        return tuple(self._part(name, times=share) for name, share in found.items())

    def each(self, n: int) -> Spending:
        """The part of each item of a list of n that was fixed in advance: δ/n."""
        return self._part(f"each of {positive_int(n, 'n'):,}", over=float(n))

    def nth(self, j: int) -> Spending:
        """The part of the j-th to come, j = 1, 2, …, of any number: δ/(j(j+1))."""
        return self._part(f"no. {positive_int(j, 'j'):,}", over=places(j))

    def nth_square(self, j: int) -> Spending:
        """The part of the j-th to come, by squares: 6δ/(πj)²."""
        return self._part(f"no. {positive_int(j, 'j'):,}", times=6.0, over=(j * math.pi) ** 2)

    def line(self, what: str = "", how: str = "") -> Line:
        """The entry of this part in a ledger; `how` says how it is divided further."""
        return Line(as_text(what, "what") or self.name, self.delta, as_text(how, "how"))

    def ledger(self, failure: str, *lines: Line) -> Ledger:
        """The ledger of one claim, which fails if `failure` happens."""
        return Ledger(as_text(failure, "failure"), self.delta, lines)

    def _part(self, name: str, times: float = 1.0, over: float = 1.0) -> Spending:
        whole, so_far, under = self._exact
        times, over = so_far * times, under * over
        part = copy.copy(self)  # which is not checked: it may be too small for a δ that is stated
        vars(part).update(delta=times * whole / over, path=(*self.path, name), _exact=(whole, times, over))
        return part


@dataclass(frozen=True)
class Parts:
    """Parts by name, `parts["model"]`; iterating gives the parts."""

    parts: tuple[Spending, ...] = ()

    def __getitem__(self, name: str) -> Spending:
        for part in self.parts:
            if part.name == name:
                return part
        raise InvalidInput(f"there is no part {shown(name)}, only {', '.join(part.name for part in self)}")

    def __contains__(self, name: str) -> bool:
        return any(part.name == name for part in self.parts)

    def __iter__(self) -> Iterator[Spending]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)


@dataclass(frozen=True)
class Line:
    """What a part of δ is spent on; a series counts with its total."""

    what: str
    delta: float
    how: str = ""

    def __str__(self) -> str:
        return f"{self.what} ({self.how})" if self.how else self.what


@dataclass(frozen=True)
class Ledger:
    """What is spent for one claim, whose failure has a probability of at most `delta`."""

    failure: str  # what may happen: "a bound is wrong"
    delta: float
    lines: tuple[Line, ...]
    reason: str = ""  # why it is more than what was stated, if it is

    @property
    def total(self) -> float:
        """The sum of all lines."""
        return math.fsum(line.delta for line in self.lines)

    def in_words(self) -> str:
        """All on one line."""
        return ", ".join(f"{line.delta:g} for {line}" for line in self.lines)

    def __str__(self) -> str:
        amounts = [f"{line.delta:.4g}" for line in self.lines]
        total = f"{self.total:.4g}"
        width = max(map(len, [*amounts, total]))
        entries = [f"  {amount:>{width}}  {line}" for amount, line in zip(amounts, self.lines, strict=True)]
        if len(self.lines) > 1:
            entries.append(f"  {total:>{width}}  in all")
        reason = f", because {self.reason}" if self.reason else ""
        return "\n".join([f"The probability that {self.failure} is at most {self.delta:.4g}{reason}:", *entries])


def together(failure: str, reason: str, *lines: Line) -> Ledger:
    """The ledger of all of several claims that have a δ of their own each."""
    return Ledger(failure, math.fsum(line.delta for line in lines), lines, reason)


def places(j: int) -> float:
    """What δ is divided by for the j-th to come: j(j+1)."""
    return j * (j + 1.0)


def level_of_each(level: float, log_count: float) -> float:
    """Ln(1/δ) for each of several equal parts, given ln(1/δ) of all and ln of how many there are."""
    return level + log_count


def _checked(shares: Mapping[str, float]) -> dict[str, float]:
    """Shares that are positive and sum to at most 1."""
    known = {name: as_number(share, name) for name, share in shares.items()}
    if not known or not all(0.0 < share <= 1.0 for share in known.values()):
        raise InvalidInput(f"shares must lie in (0, 1], at least one of them, got {shown(dict(shares))}")
    if math.fsum(known.values()) > 1.0 + _ROUNDING:
        raise InvalidInput(f"shares must sum to at most 1, got {math.fsum(known.values()):g}: {shown(dict(shares))}")
    return known
