"""`best_guaranteed`: which configuration of a scikit-learn search to refit, as its argument `refit`.

| symbol | meaning |
|---|---|
| N, K | configurations, and folds that a configuration has a score of |
| x̄ | the mean of its K scores |
| w | half the width of `reward_range` |

Without `samples` it is the configuration with the largest x̄ − w·√(ln(N/δ)/(2K)). That is a rule and no guarantee:
scores of folds are not independent. With `samples`, it is the one with the largest lower bound on new rows
(`fixed_rows`, for a list that was fixed before any score was seen). These bounds hold for all configurations together
with probability ≥ 1−δ, and so for the chosen one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from mixbandit._checks import as_range, as_text, error_probability, positive_int
from mixbandit.errors import InvalidInput
from mixbandit.spending import Spending
from mixbandit.tuning.assumptions import FIXED, Assumptions
from mixbandit.tuning.fixed_rows import on_a_fixed_list
from mixbandit.tuning.searches import read_search


@dataclass(frozen=True)
class GuaranteedBest:
    """A function of `cv_results_` that returns an index, with its settings; it can be copied and pickled."""

    samples: int | None = None
    reward_range: tuple[float, float] = (0.0, 1.0)
    delta: float = 0.05
    scorer: str | None = None

    def __post_init__(self) -> None:
        if self.samples is not None:
            object.__setattr__(self, "samples", positive_int(self.samples, "samples"))
        if self.scorer is not None:
            as_text(self.scorer, "scorer")
        object.__setattr__(self, "reward_range", as_range(self.reward_range, "reward_range"))
        object.__setattr__(self, "delta", error_probability(self.delta, "delta"))

    def __call__(self, cv_results: Mapping[str, Any]) -> int:
        """The index of the configuration to refit. Configurations with a failed fit are never chosen."""
        found = read_search(cv_results, self.scorer)
        if self.samples is None:
            low, high = self.reward_range
            count, folds = found.values.shape
            penalty = 0.5 * (high - low) * math.sqrt(Spending(self.delta).each(count).level / (2.0 * folds))
            return int(found.places[np.argmax(found.values.mean(axis=1) - penalty)])
        if found.fixed_list is False:
            raise InvalidInput(
                "best_guaranteed(samples=…) needs a list that was fixed before any score was seen, such as that of "
                "GridSearchCV or RandomizedSearchCV; this search chose configurations by their scores"
            )
        known = Assumptions(reward_range=self.reward_range, samples=self.samples, rows=FIXED, delta=self.delta)
        certificate = on_a_fixed_list(found, known)
        return int(found.places[np.argmax(certificate.intervals[:, 0])])


@overload
def best_guaranteed(
    cv_results: None = None,
    *,
    samples: int | None = None,
    reward_range: tuple[float, float] = (0.0, 1.0),
    delta: float = 0.05,
    scorer: str | None = None,
) -> GuaranteedBest: ...
@overload
def best_guaranteed(
    cv_results: Mapping[str, Any],
    *,
    samples: int | None = None,
    reward_range: tuple[float, float] = (0.0, 1.0),
    delta: float = 0.05,
    scorer: str | None = None,
) -> int: ...
def best_guaranteed(
    cv_results: Mapping[str, Any] | None = None,
    *,
    samples: int | None = None,
    reward_range: tuple[float, float] = (0.0, 1.0),
    delta: float = 0.05,
    scorer: str | None = None,
) -> GuaranteedBest | int:
    """Choose the configuration that `GridSearchCV` or `RandomizedSearchCV` refits: `refit=mb.best_guaranteed`.

    By itself it is a fixed rule without a guarantee: the largest mean minus half the width of the range times
    √(ln(N/δ)/(2K)), with N configurations and K folds. `best_guaranteed(samples=m)` returns a function that chooses the
    best lower bound on new rows instead: m is the number of rows of the smallest fold, and a score must be the mean of
    m results in `reward_range`, as accuracies are. The expected score on new rows of the K models fitted with the
    chosen configuration is then at least its lower bound with probability 1 − δ; `mb.certify(search, samples=m,
    reward_range=…)` gives the bound. `scorer` names the scorer if there are several.
    """
    rule = GuaranteedBest(samples, reward_range, delta, scorer)
    return rule if cv_results is None else rule(cv_results)
