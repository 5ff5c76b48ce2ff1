"""What the data of a moment say about the assumptions."""

from __future__ import annotations

from mixbandit._lazy import lazy
from mixbandit.data import Data
from mixbandit.sequences.refutation import Audit
from mixbandit.sequences.response import Response
from mixbandit.sequences.rules import Rule
from mixbandit.sequences.suspects import is_time_to_test


class Examined:
    """The tests of a rule, each made once."""

    rule: Rule
    response: Response
    data: Data

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
        return self.is_empty or self.noise_refuted or (is_time_to_test(self.data.count) and self.suspect_refuted)

    @property
    def is_trusted(self) -> bool:
        """Whether no test refutes the assumptions, however long it takes."""
        return not (self.is_empty or self.noise_refuted or self.suspect_refuted)

    @property
    def refutation(self) -> str | None:
        """What refutes the assumptions, in words; None if nothing does."""
        if self.is_empty:
            return "the confidence set is empty"
        if self.noise_refuted:
            return self.rule.too_noisy
        return "functions that the model does not allow predict the rewards far better" if self.is_refuted else None

    def audit(self) -> Audit:
        """What the data say about the assumptions."""
        return self.rule.audit(self.data, self.response)
