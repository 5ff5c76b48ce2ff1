"""The certificate of a search over folds, as a value and in words: about means over folds of these rows, no others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixbandit._checks import Array
from mixbandit._words import confidence
from mixbandit.integrations.sklearn.race import Candidate
from mixbandit.means.finite import mean_of_finite_list
from mixbandit.spending import Ledger, Spending, evenly
from mixbandit.tuning.judgement import Worth
from mixbandit.tuning.list_certificate import SAME_ROWS, THESE_ROWS, ListCertificate

Range = tuple[float, float]


@dataclass(frozen=True)
class FoldCertificate(ListCertificate):
    """A certificate about K-fold means: the mean of a configuration's scores over all folds of the rows of `fit`.

    A K-fold mean is known once all folds are in: `lower` and `upper` are equal then. Otherwise the interval covers it,
    for all tried configurations together, with probability ≥ 1−δ, if scores lie in the range and training is not
    random: folds are drawn without replacement. `best_possible` and `gap` are about the configurations tried. Nothing
    is guaranteed about new rows, so `proven` is False; `details()` says how to certify them.
    """

    evaluated: int = 0  # the folds of `action` that were evaluated

    def of(self, parameters: Mapping[str, Any]) -> Worth:
        """What is known about the K-fold mean of a configuration that was tried."""
        return super().of(parameters)

    def _about_these_rows(self, configuration: str) -> list[str]:
        low, high = (end + 0.0 for end in self.interval)  # without −0
        mean, sure = f"{self.folds}-fold mean", f"with probability at least {confidence(self.delta)}"
        if self.evaluated == self.folds:
            what = f"its {mean} on these rows is {self.on_these_rows:.4g}"
        elif np.isfinite((low, high)).all():
            what = f"its {mean} on these rows lies in [{low:.4g}, {high:.4g}], {sure}"
        else:
            what = f"its {mean} on these rows is not known, and no reward_range bounds it"
        rest = self.tried - 1
        who = "The other configuration does not have" if rest == 1 else f"None of the {rest} others has"
        others = f"{who} a {mean} that is larger"
        if self.tried == 1:
            others = "Nothing else has a score." if self.left_out else "Nothing else was tried."
        elif not np.isfinite(self.gap):
            others = (
                f"Other configurations have folds that were not evaluated, and no reward_range bounds their {mean}s."
            )
        elif self.proof == "range":
            others = self._may_be_better("another one")
        elif self.gap > 0.0:
            others += f" by more than {self.gap:.4g}."
        else:
            others += "."
        lines = [f"Use {configuration}: {what}; nothing is guaranteed about new rows.", others + self._not_counted]
        if self.assumptions:
            lines.append(f"All of this holds together {sure}, given {self.assumptions}.")
        else:
            lines.append("No probability is involved: all folds of all configurations tried were evaluated.")
        lines.append("A K-fold mean is about the K models fitted for the folds, not about one refitted to all rows.")
        if self.listed is None:
            lines.append(
                "Configurations were chosen by their scores on these rows, and so partly by luck. Measure on rows "
                "that the search never saw: mb.certify_fitted(search, X, y) for the score of the refitted model, "
                "or mb.certify_finalists([(parameters, value), …], samples=…, reward_range=…)."
            )
        else:
            lines.append(
                f"The list of {self.listed:,} configurations was fixed before any score was seen, so "
                "mb.certify(search, samples=…, reward_range=…) gives intervals on new rows; samples is the number "
                "of rows of one fold."
            )
        return lines


def fold_intervals(candidates: Sequence[Candidate], known: Range | None, delta: float) -> Array:
    """Intervals for the K-fold means, (N, 2), that hold together if each holds at δ; nothing of failed ones."""
    nothing = (-np.inf, np.inf) if known is None else known
    ends = [
        nothing if candidate.failed else mean_of_finite_list(_drawn(candidate), len(candidate.order), known, delta)
        for candidate in candidates
    ]
    return np.array(ends, dtype=np.float64).reshape(-1, 2)


def _drawn(candidate: Candidate) -> Array:
    """The scores in the order of drawing; all of them in that of the folds, as their mean is computed elsewhere."""
    return np.array(candidate.in_order if candidate.is_complete else list(candidate.scores.values()))


def _ledger(whole: Spending, limit: int) -> Ledger:
    how = f"at most {limit:,} configurations are tried; {evenly(2 * limit)} ends"
    return whole.ledger("an interval for a K-fold mean is wrong", whole.line("intervals", how))


def fold_certificate(
    candidates: Sequence[Candidate],
    best: int,
    intervals: Array,
    *,
    known: Range | None,
    whole: Spending,
    limit: int,
    listed: int | None,
) -> FoldCertificate:
    """The certificate of a search that ended with these candidates, of at most `limit` that it could have tried."""
    counts = np.array([not candidate.failed for candidate in candidates])
    failed = int((~counts).sum())
    counts[best] = True
    others = np.delete(intervals[:, 1], best)[np.delete(counts, best)]
    lower, upper = (float(end) for end in intervals[best])
    winner = candidates[best]
    most = max(float(others.max()), upper) if len(others) else upper
    scores = winner.in_order
    # The mean of all folds of another one is known; that of some of them may end where the range does.
    ends = np.delete([not candidate.is_complete for candidate in candidates], best)[np.delete(counts, best)]
    by_range = known is not None and bool((others[ends] >= known[1]).any() and lower < known[1])
    complete = all(candidate.is_complete or candidate.failed for candidate in candidates)
    given = ""
    if not complete:
        given = "folds evaluated in a random order, and training that is not random itself"
        given = given if known is None else f"scores in [{known[0]:g}, {known[1]:g}], {given}"
    return FoldCertificate(
        action=winner.configuration,
        lower=lower,
        upper=upper,
        optimum_upper=most,
        optimum_found=most,
        gap=max(float(others.max()) - lower, 0.0) if len(others) else 0.0,
        proof="range" if by_range else "enumerated",
        guarantee="once",
        delta=whole.delta,
        ledgers=() if complete else (_ledger(whole, limit),),
        model="no model of the function",
        about=THESE_ROWS,
        evidence=SAME_ROWS,
        adaptive=listed is None,
        assumptions=given,
        t=sum(len(candidate.scores) for candidate in candidates),
        tried=int(counts.sum()),
        folds=len(winner.order),
        evaluated=len(scores),
        listed=listed,
        on_these_rows=float(np.mean(scores)) if scores else float("nan"),
        configurations=[candidate.configuration for candidate, does in zip(candidates, counts, strict=True) if does],
        intervals=intervals[counts],
        left_out={"with a failed fit": failed} if failed else {},
    )
