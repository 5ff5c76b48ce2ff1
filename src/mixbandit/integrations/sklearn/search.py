"""`MixBanditSearchCV`: hyperparameter search with scikit-learn's interface, one fold at a time."""

from __future__ import annotations

import numbers
import time
from typing import Any, Self

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state, indexable

from mixbandit._checks import as_range, error_probability, nonnegative_int, positive_int, shown
from mixbandit.errors import STATEMENTS, InvalidInput
from mixbandit.integrations.sklearn.base import (
    BaseSearchCV,
    FitCallbacks,
    checked_fit,
    fit_parameters,
    scorers_by_name,
)
from mixbandit.integrations.sklearn.evaluation import Evaluation, Settings
from mixbandit.integrations.sklearn.race import FoldRace
from mixbandit.integrations.sklearn.scores import checked_score
from mixbandit.integrations.sklearn.spaces import SearchSpace
from mixbandit.tuning.guaranteed import GuaranteedBest

# Complete cross-validations that the default budget would pay for, as in RandomizedSearchCV.
_DEFAULT_ITERATIONS = 10
_ALIASES = ("param_space", "param_grid", "param_distributions")


class MixBanditSearchCV(BaseSearchCV):  # type: ignore[misc]
    """Search for hyperparameters by cross-validation, one fold of one configuration at a time.

    A drop-in replacement for `GridSearchCV` and `RandomizedSearchCV`: the same methods, attributes and conventions.
    Most configurations are evaluated on one fold only. Those that may be the best get more folds, in a random order,
    and the finalists get all of them, so the K-fold mean of the recommended configuration is known.

    `param_space` (or `param_grid`, or `param_distributions`) is a dict of lists, scipy distributions, `mb.Float`,
    `mb.Int` or `mb.Categorical`, a list of such dicts, or an `mb.Space`. A finite space whose folds all fit into the
    budget is evaluated completely, as in `GridSearchCV`.

    - `n_trials`: the budget in model fits, each on one fold; the refit at the end is not counted. `n_iter` states it in
      complete cross-validations instead, as in `RandomizedSearchCV`: `n_iter=10`, the default, means 10·K fits.
    - `confirm`: how many finalists are completed at the end, at most; fewer if the budget is small, none if 0.
    - `reward_range`: contains the score of every fold. It is known for accuracy, F1, ROC AUC and the like. Without it,
      nothing bounds folds that were not evaluated.
    - `delta`: the probability that an interval for a K-fold mean is wrong.
    - `batch_size`: fits chosen at the same time; by default as many as run in parallel. The search depends on it.
    - `samples` is refused, because folds reuse the same rows: see how-to/sklearn in the documentation for new rows.
    - `estimator`, `scoring`, `n_jobs`, `refit`, `cv`, `verbose`, `pre_dispatch`, `random_state`, `error_score` and
      `return_train_score` are as in scikit-learn. With several scorers, `refit` names the one to search by; otherwise
      it is the first.

    Fitted attributes are those of `GridSearchCV`, plus `best_interval_`, an interval for the K-fold mean of
    `best_params_`; `certificate_`, which says in words what is known; `n_fits_`, the model fits spent; and `n_listed_`,
    the number of configurations if it is finite. In `cv_results_`, means are over the folds that were evaluated,
    `folds_evaluated` counts them, and ranks put configurations with all folds first.
    """

    def __init__(
        self,
        estimator: Any,
        param_space: Any = None,
        *,
        param_grid: Any = None,
        param_distributions: Any = None,
        n_trials: int | None = None,
        n_iter: int | None = None,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: int | str = "2*n_jobs",
        random_state: Any = None,
        error_score: Any = np.nan,
        return_train_score: bool = False,
        confirm: int = 3,
        reward_range: tuple[float, float] | None = None,
        delta: float = 0.05,
        batch_size: int | None = None,
        samples: int | None = None,
    ) -> None:
        super().__init__(
            estimator=estimator,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            error_score=error_score,
            return_train_score=return_train_score,
        )
        self.param_space = param_space
        self.param_grid = param_grid
        self.param_distributions = param_distributions
        self.n_trials = n_trials
        self.n_iter = n_iter
        self.random_state = random_state
        self.confirm = confirm
        self.reward_range = reward_range
        self.delta = delta
        self.batch_size = batch_size
        self.samples = samples

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = False  # as scikit-learn's halving searches: nobody has tried it
        return tags

    @checked_fit  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Search, and refit the best configuration to all rows.

        `params` go to the estimator's `fit`, to the scorer and to the splitter (`groups`), as in `GridSearchCV`.
        Nothing changes until everything is done: an error or an interrupt leaves the search as it was.
        """
        settings = self._settings()
        random_state = check_random_state(self.random_state)
        space = SearchSpace(self._given_space(), random_state)
        scorers, _ = self._get_scorers()
        X, y = indexable(X, y)
        params = fit_parameters(X, params)
        routed = self._get_routed_params_for_fit(params)
        cv = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        splits = list(cv.split(X, y, **routed.splitter.split))
        if not splits:
            raise InvalidInput(f"cv must yield at least one split, got none from {shown(self.cv)}")
        race = FoldRace(
            space,
            len(splits),
            settings.fits(len(splits)),
            finalists=settings.confirm,
            rng=np.random.default_rng(random_state.randint(np.iinfo(np.int32).max)),
        )
        callbacks = FitCallbacks(self, X, y, params.get("sample_weight"))
        callbacks.begin(race.budget)
        work = {
            "scorer": scorers,
            "fit_params": routed.estimator.fit,
            "score_params": routed.scorer.score,
            "return_train_score": self.return_train_score,
            "return_times": True,
            "error_score": self.error_score,
            "verbose": self.verbose,
        }
        evaluation = Evaluation(self, race, settings, self._check_refit_for_multimetric)
        evaluation.run(X, y, splits, work, callbacks)
        callbacks.searched()
        found = evaluation.attributes(space.size)
        if self.refit:
            best = clone(self.estimator).set_params(**clone(found["best_params_"], safe=False))
            with callbacks.refitting(best):
                start = time.time()
                best.fit(*((X,) if y is None else (X, y)), **routed.estimator.fit)
            found |= {"best_estimator_": best, "refit_time_": time.time() - start}
            if hasattr(best, "feature_names_in_"):
                found["feature_names_in_"] = best.feature_names_in_
        found["scorer_"] = scorers_by_name(scorers)
        kept = {name: value for name, value in vars(self).items() if name.startswith("_") or not name.endswith("_")}
        self.__dict__ = {**kept, **found}  # at once, so that an interrupt finds the old state or the new one
        callbacks.end()
        return self

    def _given_space(self) -> Any:
        given = [name for name in _ALIASES if getattr(self, name) is not None]
        if len(given) != 1:
            raise InvalidInput(f"state one of {', '.join(_ALIASES)}, got {' and '.join(given) or 'none of them'}")
        return getattr(self, given[0])

    def _settings(self) -> Settings:
        """The parameters that scikit-learn does not check, checked."""
        if self.samples is not None:
            raise InvalidInput(
                f"samples={shown(self.samples)} does not apply here: folds reuse the same rows, and a score counts "
                "as one result in reward_range. For new rows, pass samples to mb.certify (for a finite list of "
                f"configurations) or to mb.certify_finalists (on rows that the search never saw); {STATEMENTS}"
            )
        if self.n_trials is not None and self.n_iter is not None:
            raise InvalidInput("state n_trials, in model fits, or n_iter, in complete cross-validations, not both")
        if isinstance(self.refit, GuaranteedBest) and self.refit.samples is not None:
            raise InvalidInput(
                "best_guaranteed(samples=…) needs a list of configurations whose folds are all evaluated, as in "
                "GridSearchCV and RandomizedSearchCV; this search chooses by its scores"
            )
        stated = None if self.reward_range is None else as_range(self.reward_range, "reward_range")
        if isinstance(self.error_score, numbers.Real):
            checked_score(float(self.error_score), stated, "error_score")
        return Settings(
            trials=None if self.n_trials is None else positive_int(self.n_trials, "n_trials"),
            iterations=_DEFAULT_ITERATIONS if self.n_iter is None else positive_int(self.n_iter, "n_iter"),
            confirm=nonnegative_int(self.confirm, "confirm"),
            reward_range=stated,
            delta=error_probability(self.delta, "delta"),
            batch=None if self.batch_size is None else positive_int(self.batch_size, "batch_size"),
        )
