"""The certificate of fitted models on fresh rows, as a value and in words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from mixbandit._words import confidence, with_article
from mixbandit.tuning.list_certificate import ListCertificate


@dataclass(frozen=True)
class FittedCertificate(ListCertificate):
    """A certificate for fitted models: each has a bound on its score, given the same fresh rows.

    `guaranteed`, the bound of the first line, is one-sided: for all k models together it holds with probability ≥ 1−δ.
    `interval`, `of`, `gap` and `best_possible` are two-sided, and hold together with probability ≥ 1−δ as well, so that
    an end of `interval` is a little further out. Everything at once holds with probability ≥ 1 − 3δ/2: the one-sided
    bounds imply one end of every interval, and the other ends have δ/2.
    """

    one_sided: float = math.nan
    scoring: str = "accuracy"
    baseline: float = math.nan  # the score, on the same rows, of the best answer that is the same for all rows
    constant: str = ""  # that answer, in words

    @property
    def guaranteed(self) -> float:
        """The one-sided bound of the first line."""
        return self.one_sided

    def to_dict(self) -> dict[str, Any]:
        """Everything, in plain types; infinite ends, and values that cannot be measured, are None."""
        measured = self.on_these_rows if math.isfinite(self.on_these_rows) else None
        own = {"measure": self.measure, "scoring": self.scoring, "guaranteed": self.guaranteed}
        return {**super().to_dict(), "on_these_rows": measured, **own, "baseline": self.baseline}

    def _about_new_rows(self, configuration: str) -> list[str]:
        low, high = (end + 0.0 for end in self.interval)  # without −0
        upwards, sure = self.direction == "maximize", f"with probability at least {confidence(self.delta)}"
        at, better, most = ("at least", "larger", "at most") if upwards else ("at most", "smaller", "at least")
        measured = f"measured: {self.on_these_rows:.4g}" if math.isfinite(self.on_these_rows) else "no row measures it"
        second = "Nothing else was measured, so nothing is known about alternatives."
        best = ""
        if self.tried > 1:
            by = f" by more than {self.gap:.4g}" if self.gap > 0.0 else ""
            second = (
                f"No other finalist ({self.tried} in all) has {with_article(self.measure)} that is {better}{by}; "
                f"this, too, holds {sure}."
            )
            if self.proof == "range":
                second = self._may_be_better(f"another finalist ({self.tried} in all)")
            best = f"; the best one's is {most} {self.best_possible + 0.0:.4g}"
        return [
            f"Use {configuration}: on new rows its {self.measure} is {at} {self.guaranteed + 0.0:.4g} ({measured}; "
            f"{self.constant} scores {self.baseline:.4g}), {sure}, if nothing used these rows before.",
            second,
            f"The bound of the first line is one-sided. Two-sided, the {self.measure} lies in [{low:.4g}, {high:.4g}]"
            f"{best}.",
            f"The first line holds {sure}, and so do all other statements together; everything at once holds with "
            f"probability at least {confidence(float(f'{self.ledgers[-1].total:.12g}'))}, given {self.assumptions}.",
        ]
