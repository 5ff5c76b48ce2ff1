"""`best_guaranteed` chooses what scikit-learn's searches refit: by a stated rule, or by what is guaranteed."""

import pickle

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV, RandomizedSearchCV
from sklearn.tree import DecisionTreeClassifier

import mixbandit as mb
from mixbandit.tuning.fixed_rows import on_a_fixed_list
from mixbandit.tuning.searches import read_search

X, Y = make_classification(n_samples=240, n_features=6, flip_y=0.2, random_state=0)
GRID = {"max_depth": [1, 2, 4, 8], "min_samples_leaf": [1, 20]}
TREE = DecisionTreeClassifier(random_state=0)


def results(scores):
    scores = np.asarray(scores, dtype=float)
    columns = {f"split{k}_test_score": scores[:, k] for k in range(scores.shape[1])}
    return {"params": [{"i": i} for i in range(len(scores))], **columns}


@pytest.mark.parametrize("kind", [GridSearchCV, RandomizedSearchCV])
def test_the_rule_in_a_search(kind):
    options = {"n_iter": 5, "random_state": 0} if kind is RandomizedSearchCV else {}
    search = kind(TREE, GRID, cv=4, refit=mb.best_guaranteed, **options).fit(X, Y)
    assert search.best_index_ == np.argmax(search.cv_results_["mean_test_score"])
    assert search.predict(X).shape == (240,)


def test_with_samples_it_is_what_the_certificate_recommends():
    search = GridSearchCV(TREE, GRID, cv=4, refit=mb.best_guaranteed(samples=60)).fit(X, Y)
    certificate = mb.certify(search, samples=60, reward_range=(0, 1))
    assert search.best_params_ == certificate.parameters


def test_folds_that_agree_are_worth_more_than_the_same_mean():
    """Near an end results spread little: Chernoff's bound knows, the mean does not."""
    scores = [[0.8, 0.8, 0.8], [1.0, 1.0, 0.4]]
    known = {"samples": 50, "reward_range": (0, 1)}
    certificate = on_a_fixed_list(read_search(results(scores)), mb.Assumptions(**known))
    chosen = mb.best_guaranteed(**known)(results(scores))
    assert chosen == np.argmax(certificate.intervals[:, 0])
    assert certificate.intervals[0, 0] != pytest.approx(certificate.intervals[1, 0], abs=1e-3)


def test_few_rows_favour_folds_without_errors():
    """Two folds without an error say much even of few rows; with many rows the mean decides, as in the rule."""
    table = results([[1.0, 1.0, 0.6], [0.9, 0.9, 0.9]])
    assert [mb.best_guaranteed(samples=m)(table) for m in (5, 30, 1000)] == [0, 0, 1]
    assert mb.best_guaranteed(table) == 1


def test_a_failed_fit_is_never_chosen():
    scores = [[np.nan, 0.99, 0.99], [0.5, 0.5, 0.6], [0.7, 0.7, 0.7]]
    assert mb.best_guaranteed(results(scores)) == 2
    assert mb.best_guaranteed(samples=30)(results(scores)) == 2


def test_several_scorers():
    search = GridSearchCV(
        TREE, GRID, cv=3, scoring=["accuracy", "roc_auc"], refit=mb.best_guaranteed(samples=80, scorer="accuracy")
    ).fit(X, Y)
    assert (
        search.best_index_
        == read_search(search.cv_results_, "accuracy").places[
            np.argmax(mb.certify(search, value="accuracy", samples=80, reward_range=(0, 1)).intervals[:, 0])
        ]
    )
    with pytest.raises(mb.InvalidInput, match="several scorers"):
        mb.best_guaranteed(search.cv_results_)
    with pytest.raises(mb.InvalidInput, match="not a mean over rows"):
        mb.best_guaranteed(samples=80, scorer="roc_auc")(search.cv_results_)


def test_a_search_by_scores_has_no_guarantee():
    halving = HalvingGridSearchCV(TREE, GRID, cv=3, random_state=0).fit(X, Y)
    with pytest.raises(mb.InvalidInput, match="chose configurations by their scores"):
        mb.best_guaranteed(samples=80)(halving.cv_results_)
    ours = mb.MixBanditSearchCV(TREE, {"ccp_alpha": mb.Float(1e-4, 0.1, log=True)}, n_trials=12).fit(X, Y)
    with pytest.raises(mb.InvalidInput, match="chose configurations by their scores"):
        mb.best_guaranteed(samples=48)(ours.cv_results_)
    assert mb.best_guaranteed(ours.cv_results_) == ours.best_index_
    assert clone(ours).set_params(refit=mb.best_guaranteed, random_state=0).fit(X, Y).best_index_ >= 0


def test_settings_are_checked_before_any_fit():
    with pytest.raises(mb.InvalidInput, match="samples must be an integer"):
        mb.best_guaranteed(samples=0)
    with pytest.raises(mb.InvalidInput, match="delta"):
        mb.best_guaranteed(delta=2.0)
    with pytest.raises(mb.InvalidInput, match="reward_range"):
        mb.best_guaranteed(reward_range=(1, 0))
    with pytest.raises(mb.InvalidInput, match="split0_test"):
        mb.best_guaranteed({"params": []})


def test_it_is_copied_and_stored_with_its_search():
    rule = mb.best_guaranteed(samples=60, delta=0.1)
    assert pickle.loads(pickle.dumps(rule)) == rule
    search = clone(GridSearchCV(TREE, GRID, cv=4, refit=rule))
    assert search.refit == rule
    assert pickle.loads(pickle.dumps(search.fit(X, Y))).best_index_ == search.best_index_


def test_the_chosen_bound_holds_on_new_rows():
    """Configurations share rows, the chosen one is among the luckiest, and its floor holds all the same."""
    runs, folds, rows, delta, missed = 400, 3, 40, 0.1, 0
    truths = np.full(30, 0.7)
    for run in range(runs):
        rng = np.random.default_rng([11, run])
        shared = rng.random((folds, rows))  # every configuration is right on rows whose number is below its truth
        mixed = np.where(rng.random((30, folds, rows)) < 0.3, shared, rng.random((30, folds, rows)))
        table = results((mixed < truths[:, None, None]).mean(axis=2))
        chosen = mb.best_guaranteed(samples=rows, delta=delta)(table)
        known = mb.Assumptions(reward_range=(0, 1), samples=rows, delta=delta)
        floor = on_a_fixed_list(read_search(table), known).intervals[chosen, 0]
        missed += floor > truths[chosen]
    assert binomtest(missed, runs, delta, alternative="greater").pvalue > 1e-4, f"{missed} of {runs} runs missed"
