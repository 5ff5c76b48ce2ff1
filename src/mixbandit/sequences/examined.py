"""What the data of a moment say about the assumptions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mixbandit._lazy import lazy
from mixbandit.data import Data
from mixbandit.errors import InvalidInput
from mixbandit.sequences.refutation import Audit, is_due
from mixbandit.sequences.response import Response
from mixbandit.sequences.rules import Rule
from mixbandit.sequences.suspects import is_time_to_test

if TYPE_CHECKING:
    from mixbandit.sets import ConfidenceSet


EMPTY = "the confidence set is empty"
SUSPECTED = "functions that the model does not allow predict the rewards far better"


class Tested:
    """What refutes the assumptions: that no parameter is left, unless there are other tests."""

    exact: ConfidenceSet
    noise_refuted: bool = False  # whether rewards are noisier than stated, by a test at level δ
    suspect_refuted: bool = False  # whether suspected functions predict the rewards too well for the model to hold

    @lazy
    def is_empty(self) -> bool:
        """Whether no parameter is left."""
        return self.exact.is_empty

    @property
    def is_refuted(self) -> bool:
        """Whether the data refute the assumptions, by any test that is made at this time."""
        return self.refutation is not None

    @property
    def is_trusted(self) -> bool:
        """Whether no test refutes the assumptions, however long it takes."""
        return not self.is_refuted

    @property
    def refutation(self) -> str | None:
        """What refutes the assumptions, in words; None if nothing does, by any test that is made at this time."""
        return EMPTY if self.is_empty else None

    @property
    def full_refutation(self) -> str | None:
        """The same by all tests, however long they take."""
        return self.refutation

    @property
    def seen_refuted(self) -> bool:
        """Whether a test has been made already, and refutes the assumptions."""
        known = vars(self)
        return any(known.get(test) for test in ("is_empty", "noise_refuted", "_too_noisy", "suspect_refuted"))

    def audit(self) -> Audit:
        """What the data say about the assumptions."""
        raise InvalidInput(f"{type(self).__name__} has no audit; MartingaleMixture has one")


class Examined(Tested):
    """The tests of a rule, each made once."""

    rule: Rule
    response: Response
    data: Data
    latest: int = 1  # how many rewards came last, all at once

    @lazy
    def is_empty(self) -> bool:
        """Whether no parameter is left."""
        return self.rule.is_empty(self.data)

    @lazy
    def noise_refuted(self) -> bool:
        """Whether rewards are noisier than stated, by a test at level δ."""
        return self.rule.noise_refuted(self.data)

    @lazy
    def suspect_refuted(self) -> bool:
        """Whether suspected functions predict the rewards too well for the model to hold, by a test at level δ.

        It takes longer than the others, so that policies that act make it at some times only.
        """
        return self.rule.suspect_refuted(self.data)

    @property
    def is_refuted(self) -> bool:
        """Whether the data refute the assumptions, by any test that is made at this time."""
        return self.is_empty or self._too_noisy or (is_time_to_test(self.data.count) and self.suspect_refuted)

    @lazy
    def _too_noisy(self) -> bool:
        """The noise test as rounds make it: a decomposition is made at some times only."""
        known = self.rule.noise_glance(self.data)
        if known is None:
            known = is_due(self.data.count, self.latest) and self.noise_refuted
        return known

    @property
    def is_trusted(self) -> bool:
        """Whether no test refutes the assumptions, however long it takes."""
        return not (self.is_empty or self.noise_refuted or self.suspect_refuted)

    @property
    def refutation(self) -> str | None:
        if self._too_noisy and not self.is_empty:
            return self.rule.too_noisy
        return self.full_refutation if self.is_refuted else None

    @property
    def full_refutation(self) -> str | None:
        if self.is_empty:
            return EMPTY
        if self.noise_refuted:
            return self.rule.too_noisy
        return SUSPECTED if self.suspect_refuted else None

    def audit(self) -> Audit:
        """What the data say about the assumptions."""
        return self.rule.audit(self.data, self.response)
