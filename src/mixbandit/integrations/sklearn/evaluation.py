"""Running a search: fits in batches, progress, and everything that is known afterwards."""

from __future__ import annotations

import numbers
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import clone
from sklearn.utils.parallel import Parallel, delayed

from mixbandit.integrations.sklearn.base import BaseSearchCV, FitCallbacks, Outcome, fit_and_score, settle_failures
from mixbandit.integrations.sklearn.certificate import fold_certificate, fold_intervals
from mixbandit.integrations.sklearn.race import FoldRace, Pull
from mixbandit.integrations.sklearn.results import Results, complete_only, results_of
from mixbandit.integrations.sklearn.scores import Range, checked_score, range_of_scores
from mixbandit.spending import Spending

# Progress is shown about this often.
_LINES = 10


class Settings(NamedTuple):
    """The parameters of a search that are not scikit-learn's, checked."""

    trials: int | None  # the budget in model fits
    iterations: int  # in complete cross-validations, if that is None
    confirm: int
    reward_range: Range | None
    delta: float
    batch: int | None

    def fits(self, folds: int) -> int:
        """The budget in model fits."""
        return self.iterations * folds if self.trials is None else self.trials


class Evaluation:
    """The fits of one search, and what they say. The search itself is only read."""

    def __init__(
        self, search: BaseSearchCV, race: FoldRace, settings: Settings, check_refit: Callable[[dict[str, Any]], None]
    ) -> None:
        self._search, self._race, self._settings, self._check_refit = search, race, settings, check_refit
        self._pulls: list[Pull] = []
        self._outcomes: list[Outcome] = []
        self._metric = ""  # the scorer that is searched by; "score" if there is only one
        self._shown = 0

    def run(self, X: Any, y: Any, splits: Sequence[Any], work: dict[str, Any], callbacks: FitCallbacks) -> None:
        """Spend the budget. `work` is what `fit_and_score` takes besides data and parameters."""
        search, race = self._search, self._race
        size = self._settings.batch or max(effective_n_jobs(search.n_jobs), 1)
        estimator = clone(search.estimator)
        self._say(f"Fitting up to {race.budget} models, each on one of {len(splits)} folds")
        with Parallel(n_jobs=search.n_jobs, pre_dispatch=search.pre_dispatch) as parallel:
            while pulls := race.ask(size):
                outcomes = parallel(
                    delayed(fit_and_score)(
                        clone(estimator),
                        X,
                        y,
                        train=splits[pull.fold][0],
                        test=splits[pull.fold][1],
                        parameters=race.candidates[pull.candidate].configuration,
                        split_progress=(pull.fold, len(splits)),
                        **work,
                        **callbacks.of_fit(race.told + i),
                    )
                    for i, pull in enumerate(pulls)
                )
                for pull, outcome in zip(pulls, outcomes, strict=True):
                    race.tell(pull, checked_score(self._score(outcome), self._settings.reward_range))
                self._pulls += pulls
                self._outcomes += outcomes
                self._show_progress()
        settle_failures(self._outcomes, search.scoring, search.error_score)

    def _score(self, outcome: Outcome) -> Any:
        """The score that is searched by; a failure has error_score."""
        scores = outcome["test_scores"]
        if not isinstance(scores, dict):
            self._metric = self._metric or ("score" if outcome["fit_error"] is None else "")
            return scores
        if not self._metric:
            self._check_refit(scores)  # of scorers that one callable returns, only now
            self._metric = self._search.refit if isinstance(self._search.refit, str) else next(iter(scores))
        return scores[self._metric]

    def attributes(self, listed: int | None) -> dict[str, Any]:
        """The fitted attributes, but those of the refit."""
        search, race, folds = self._search, self._race, self._race.folds
        configurations = [candidate.configuration for candidate in race.candidates]
        results = results_of(configurations, folds, self._pulls, self._outcomes)
        several = isinstance(self._outcomes[0]["test_scores"], dict)
        metric = self._metric if several else "score"
        found: dict[str, Any] = {
            "cv_results_": results,
            "n_splits_": folds,
            "n_fits_": len(self._pulls),
            "n_listed_": listed,
            "multimetric_": several,
        }
        if several and not search.refit:
            return found
        best = _best_index(search.refit, metric, results, folds)
        known = self._settings.reward_range or self._known_range(metric)
        # However many configurations are tried, they are no more than this, which was fixed in advance.
        most = race.budget if listed is None else min(race.budget, listed)
        whole = Spending(self._settings.delta)
        intervals = fold_intervals(race.candidates, known, whole.each(most).delta)
        found |= {
            "best_index_": best,
            "best_params_": results["params"][best],
            "best_interval_": tuple(intervals[best].tolist()),
            "certificate_": fold_certificate(
                race.candidates, best, intervals, known=known, whole=whole, limit=most, listed=listed
            ),
        }
        if not callable(search.refit):
            found["best_score_"] = results[f"mean_test_{metric}"][best]
        return found

    def _known_range(self, metric: str) -> Range | None:
        """The range of the scorer, where its name says so and no score contradicts it; error_score counts as one."""
        known = range_of_scores(self._search.estimator, self._search.scoring, metric)
        seen = [score for candidate in self._race.candidates for score in candidate.scores.values()]
        if known is None or not seen or not known[0] <= min(seen) <= max(seen) <= known[1]:
            return None
        return known

    def _show_progress(self) -> None:
        race = self._race
        if self._search.verbose < 1 or (race.told - self._shown < race.budget / _LINES and race.left):
            return
        self._shown = race.told
        tried = [candidate for candidate in race.candidates if candidate.scores and not candidate.failed]
        complete = [candidate for candidate in tried if candidate.is_complete]
        best = max(complete or tried, key=lambda candidate: np.mean(list(candidate.scores.values())), default=None)
        leader = "no score yet"
        if best is not None:
            mean, count = float(np.mean(list(best.scores.values()))), len(best.scores)
            leader = f"best {mean:.4g} ({count} of {race.folds} folds) {best.configuration}"
        self._say(f"[{race.told}/{race.budget} fits, {len(race.candidates)} configurations] {leader}")

    def _say(self, text: str) -> None:
        if self._search.verbose > 0:
            sys.stdout.write(f"{text}\n")  # where scikit-learn's searches show theirs
            sys.stdout.flush()


def _best_index(refit: Any, metric: str, results: Results, folds: int) -> int:
    """The first of the configurations with the best mean, or what a callable chooses among the complete ones."""
    if not callable(refit):
        return int(np.argmin(results[f"rank_test_{metric}"]))
    rows, places = complete_only(results, folds)
    index = refit(rows)
    # The same errors as scikit-learn's.
    if not isinstance(index, numbers.Integral):
        raise TypeError("best_index_ returned is not an integer")
    if not 0 <= int(index) < len(places):
        raise IndexError("best_index_ index out of range")
    return int(places[index])
