"""Searches of scikit-learn are read as they are: every configuration, every fold, and whether the list was fixed."""

import types

import numpy as np
import optuna
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy.stats import loguniform
from sklearn import metrics
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_classification
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV, KFold, RandomizedSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import mixbandit as mb
from mixbandit.tuning.searches import is_search, read_search

X, Y = make_classification(n_samples=240, n_features=6, flip_y=0.2, random_state=0)
GRID = [{"max_depth": [1, 2, 4]}, {"min_samples_leaf": [5, 10]}]
STATED = {"reward_range": (0, 1), "samples": 60}


def fitted(scoring=None, refit=True, grid=GRID, kind=GridSearchCV):
    return kind(DecisionTreeClassifier(random_state=0), grid, cv=KFold(4), scoring=scoring, refit=refit).fit(X, Y)


@pytest.fixture(scope="module")
def grid():
    return fitted()


def test_a_fitted_grid_search(grid):
    found = read_search(grid)
    assert list(found.configurations) == grid.cv_results_["params"]
    assert found.values.shape == (5, 4)
    np.testing.assert_array_equal(found.values.mean(axis=1), grid.cv_results_["mean_test_score"])
    assert found.fixed_list is True
    assert found.listed == 5
    certificate = mb.certify(grid, **STATED)
    assert certificate.about == "new rows"
    assert (certificate.tried, certificate.folds, certificate.t) == (5, 4, 20)
    assert certificate.proven
    assert certificate.proof == "enumerated"


@pytest.mark.parametrize("form", [lambda r: r, pd.DataFrame, lambda r: pd.DataFrame(r).drop(columns="params")])
def test_bare_results_say_nothing_about_the_list(grid, form):
    results = form(grid.cv_results_)
    assert is_search(results)
    found = read_search(results)
    assert found.fixed_list is None
    assert list(found.configurations) == grid.cv_results_["params"]
    cautious = mb.certify(results, **STATED)
    assert cautious.about == "these rows only"
    assert "fixed_list=True" in cautious.details()
    stated = mb.certify(results, fixed_list=True, **STATED).to_dict()
    known = mb.certify(grid, **STATED).to_dict()
    # Bare results do not say how rows were split.
    unknown, in_order = "folds that do not depend on the labels", "rows in an order that does not depend on the labels"
    assert stated.pop("assumptions").replace(unknown, in_order) == known.pop("assumptions")
    assert stated == known


def test_results_that_went_through_a_file(grid, tmp_path):
    pd.DataFrame(grid.cv_results_).to_csv(tmp_path / "x.csv")
    for frame in (pd.read_csv(tmp_path / "x.csv"), pl.read_csv(tmp_path / "x.csv")):
        found = read_search(frame)
        assert list(found.configurations) == grid.cv_results_["params"]
        np.testing.assert_allclose(found.values, read_search(grid).values)


def test_a_user_can_say_that_the_grid_was_chosen_by_values(grid):
    refined = mb.certify(grid, fixed_list=False, **STATED)
    assert refined.about == "these rows only"
    assert refined.adaptive
    assert "fixed_list" not in refined.details()


def test_a_random_search_over_distributions():
    search = RandomizedSearchCV(
        make_pipeline(StandardScaler(), LogisticRegression()),
        {"logisticregression__C": loguniform(1e-3, 1e3)},
        n_iter=6,
        cv=4,
        random_state=0,
    ).fit(X, Y)
    found = mb.certify(search, **STATED)
    assert found.about == "new rows"
    assert found.tried == 6
    assert found.action in search.cv_results_["params"]
    low, high = found.of(search.best_params_).interval
    assert low < search.best_score_ < high


def test_several_scorers():
    search = fitted(["accuracy", "neg_brier_score"], refit="accuracy")
    accuracy = mb.certify(search, **STATED)
    assert accuracy.to_dict() == mb.certify(search, value="accuracy", **STATED).to_dict()
    brier = mb.certify(search, value="neg_brier_score", reward_range=(-1, 0), samples=60)
    assert -1 < brier.interval[0] < brier.on_these_rows < brier.interval[1] < 0
    with pytest.raises(mb.InvalidInput, match="cv_results_ has no scorer 'f1'; it has 'accuracy', 'neg_brier"):
        mb.certify(search, value="f1", **STATED)
    with pytest.raises(mb.InvalidInput, match="several scorers, 'accuracy', 'neg_brier_score': name one"):
        mb.certify(fitted(["accuracy", "neg_brier_score"], refit=False), **STATED)
    with pytest.raises(mb.InvalidInput, match="value"):
        mb.certify(search, value=3, **STATED)


class Fails(ClassifierMixin, BaseEstimator):
    """A classifier that cannot be fitted with some settings."""

    def __init__(self, how="never"):
        self.how = how

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        if self.how == "always" or (self.how == "sometimes" and X[0, 0] == globals()["X"][0, 0]):
            raise ValueError(self.how)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


@pytest.mark.filterwarnings("ignore")
def test_failed_fits_are_left_out_and_counted():
    search = GridSearchCV(Fails(), {"how": ["never", "sometimes", "always"]}, cv=4).fit(X, Y)
    assert np.isnan(search.cv_results_["split3_test_score"]).any()
    found = mb.certify(search, **STATED)
    assert found.left_out == {"with a failed fit": 2}
    assert found.tried == 1
    assert "Not counted: 2 with a failed fit." in found.details()
    assert "nothing is known about alternatives" in str(found)
    # A fit may fail because of the rows: the list is as long as it was.
    alone = GridSearchCV(Fails(), {"how": ["never"]}, cv=4).fit(X, Y)
    assert found.interval[0] < mb.certify(alone, **STATED).interval[0]
    with pytest.raises(mb.InvalidInput, match="is not among the 1 configurations measured"):
        found.of({"how": "always"})
    results = {name: column[2:] for name, column in search.cv_results_.items()}
    with pytest.raises(mb.InvalidInput, match="none of the 1 configurations has a score in every fold"):
        mb.certify(results, **STATED)


def test_a_halving_search_is_adaptive():
    search = fitted(grid={"max_depth": [1, 2, 3, 4], "min_samples_leaf": [1, 5]}, kind=HalvingGridSearchCV)
    last = max(search.cv_results_["iter"])
    found = mb.certify(search, **STATED)
    assert found.about == "these rows only"
    assert not found.proven
    assert found.tried == sum(search.cv_results_["iter"] == last)
    assert found.action == search.best_params_
    assert found.on_these_rows == search.best_score_
    earlier = int(sum(search.cv_results_["iter"] != last))
    assert found.left_out == {"from earlier rounds, measured on fewer rows": earlier}
    with pytest.raises(mb.InvalidInput, match="fixed_list=True contradicts the HalvingGridSearchCV"):
        mb.certify(search, fixed_list=True, **STATED)


def test_other_searches_are_taken_to_be_adaptive(grid):
    """Such as BayesSearchCV, whose results look like those of a grid."""
    unknown = type("BayesSearchCV", (), {"cv_results_": grid.cv_results_})()
    assert mb.certify(unknown, **STATED).about == "these rows only"
    assert mb.certify(unknown, fixed_list=True, **STATED).about == "new rows"
    assert mb.certify(type("Own", (GridSearchCV,), {})(DecisionTreeClassifier(), GRID, cv=4).fit(X, Y), **STATED).proven


def test_a_search_by_optuna_is_adaptive():
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
    study.optimize(lambda trial: 1.0 - trial.suggest_float("x", 0.0, 1.0), n_trials=5)
    search = type("OptunaSearchCV", (), {"study_": study, "trials_": study.trials})()
    found = mb.certify(search, **STATED)
    assert found.about == "these rows only"
    assert found.action == study.best_params
    with pytest.raises(mb.InvalidInput, match="contradicts the OptunaSearchCV"):
        mb.certify(search, fixed_list=True, **STATED)


def test_scores_that_are_not_means_over_rows_need_sigma():
    for scoring in ("roc_auc", "f1", "balanced_accuracy", "precision_macro"):
        with pytest.raises(mb.InvalidInput, match=f"the scorer '{scoring}' is not a mean over rows"):
            mb.certify(fitted(scoring), **STATED)
    found = mb.certify(fitted("roc_auc"), sigma=0.05, reward_range=(0, 1))
    assert found.proven
    ridge = GridSearchCV(make_pipeline(StandardScaler(), Ridge()), {"ridge__alpha": [0.1, 1.0]}, cv=4).fit(X, Y)
    with pytest.raises(mb.InvalidInput, match="the scorer 'r2' is not a mean"):
        mb.certify(ridge, **STATED)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reward_range": (0, 1)}, "state samples, the number of rows that a value averages .*rows of one fold"),
        ({"samples": 60}, r"state reward_range=\(low, high\)"),
        ({"samples": 60, "reward_range": (0, 0.5)}, r"value .* lies outside reward_range=\(0, 0.5\)"),
        ({**STATED, "direction": "minimize"}, "scikit-learn's scores are maximised"),
        ({**STATED, "features": mb.RandomFourier(2, 4, rng=0)}, "features does not apply to fixed rows"),
        ({**STATED, "parameters": ["max_depth"]}, "parameters does not apply to fixed rows"),
        ({**STATED, "rows": "some"}, "rows=.some. contradicts the history"),
        ({**STATED, "fixed_list": "yes"}, "fixed_list must be True or False"),
    ],
)
def test_what_cannot_be_certified_is_refused_in_words(grid, options, message):
    with pytest.raises(mb.InvalidInput, match=message):
        mb.certify(grid, **options)


def test_what_is_missing_is_an_error_of_its_own(grid):
    for options in ({}, {"samples": 60}, {"reward_range": (0, 1)}):
        with pytest.raises(mb.AssumptionsMissing):
            mb.certify(grid, **options)


@pytest.mark.parametrize(
    ("results", "message"),
    [
        ({"split1_test_score": [0.5], "params": [{}]}, "no column split0_test_"),
        ({"split0_test_score": [], "params": []}, "one length ≥ 1"),
        ({"split0_test_score": [0.5, 0.6], "split1_test_score": [0.5], "params": [{}, {}]}, r"got \[1, 2\]"),
        ({"split0_test_score": [0.5, 0.6], "params": [{}]}, "a column 'params' of 2 dicts"),
        ({"split0_test_score": ["a"], "params": [{}]}, "split0_test_score must be numbers"),
        ({"split0_test_score": [np.inf], "params": [{}]}, "must be finite"),
    ],
)
def test_damaged_results_are_refused(results, message):
    with pytest.raises(mb.InvalidInput, match=message):
        mb.certify(results, fixed_list=True, **STATED)


def test_a_search_must_be_fitted():
    with pytest.raises(mb.InvalidInput, match="the GridSearchCV has no cv_results_: fit it first"):
        mb.certify(GridSearchCV(DecisionTreeClassifier(), GRID), **STATED)
    odd = types.SimpleNamespace(cv_results_=3)
    with pytest.raises(mb.InvalidInput, match="cv_results_ must be a dict of columns"):
        mb.certify(odd, **STATED)
    with pytest.raises(mb.InvalidInput, match="history must be an Optuna study, a fitted scikit-learn search"):
        mb.certify({"a": 1}, **STATED)


def test_negated_losses_are_maximised():
    results = {"split0_test_neg_brier_score": [-0.2, -0.1], "params": [{"a": 1}, {"a": 2}]}
    stated = {"reward_range": (-1, 0), "samples": 100, "fixed_list": True}
    assert mb.certify(results, **stated).action == {"a": 2}
    with pytest.raises(mb.InvalidInput, match="scores are maximised"):
        mb.certify(results, direction="minimize", **stated)


ACCURACY, F1 = metrics.make_scorer(metrics.accuracy_score), metrics.make_scorer(metrics.f1_score)


@pytest.mark.parametrize(
    ("scoring", "name"),
    [
        (F1, "f1_score"),
        (metrics.make_scorer(metrics.f1_score, average="macro"), "f1_score"),
        (metrics.make_scorer(metrics.roc_auc_score, response_method="predict_proba"), "roc_auc_score"),
        (metrics.make_scorer(metrics.matthews_corrcoef), "matthews_corrcoef"),
        (metrics.make_scorer(metrics.fbeta_score, beta=2), "fbeta_score"),
        (metrics.make_scorer(metrics.root_mean_squared_error, greater_is_better=False), "root_mean_squared_error"),
        ({"accuracy": "roc_auc"}, "roc_auc"),  # whatever the user calls it
        ({"hits": F1, "accuracy": "accuracy"}, "f1_score"),
    ],
)
def test_scorers_that_are_no_means_over_rows_are_refused_in_any_form(scoring, name):
    refit = next(iter(scoring)) if isinstance(scoring, dict) else True
    search = GridSearchCV(DecisionTreeClassifier(), GRID, scoring=scoring, refit=refit, cv=KFold(3)).fit(X, Y)
    with pytest.raises(mb.InvalidInput, match=f"the scorer '{name}' is not a mean over rows"):
        mb.certify(search, **STATED)


@pytest.mark.parametrize("scoring", [ACCURACY, {"f1": "accuracy"}, {"f1": ACCURACY}])
def test_scorers_that_are_means_over_rows_are_certified_in_any_form(scoring):
    refit = "f1" if isinstance(scoring, dict) else True
    search = GridSearchCV(DecisionTreeClassifier(), GRID, scoring=scoring, refit=refit, cv=KFold(3)).fit(X, Y)
    assert mb.certify(search, **STATED).proven


def test_a_score_of_weighted_rows_is_no_mean_of_as_many_results():
    with sklearn.config_context(enable_metadata_routing=True):
        weighted = metrics.make_scorer(metrics.accuracy_score).set_score_request(sample_weight=True)
        model = DecisionTreeClassifier().set_fit_request(sample_weight=False)
        search = GridSearchCV(model, GRID, scoring=weighted, cv=KFold(3))
        search.fit(X, Y, sample_weight=np.arange(1.0, len(X) + 1.0))
    with pytest.raises(mb.InvalidInput, match="'weighted accuracy_score' is not a mean over rows"):
        mb.certify(search, **STATED)
    with pytest.raises(mb.InvalidInput, match="scores of weighted rows"):
        mb.certify_fitted(search, X, Y)
