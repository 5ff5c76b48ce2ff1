"""MixBanditSearchCV is at home where GridSearchCV is, and counts and knows what it says."""

import contextlib
import doctest
import functools
import pickle
import sys

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy.sparse import csr_matrix
from scipy.stats import loguniform, uniform
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_iris, make_classification
from sklearn.decomposition import PCA
from sklearn.dummy import DummyClassifier
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    RandomizedSearchCV,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    cross_val_score,
)
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import mixbandit as mb
from mixbandit.integrations.sklearn import evaluation
from mixbandit.integrations.sklearn.spaces import SearchSpace
from tests.battery.odd_values import values

X, Y = make_classification(n_samples=150, n_features=6, flip_y=0.2, random_state=0)
DEPTHS = {"max_depth": mb.Int(1, 12), "min_samples_leaf": mb.Int(1, 40)}
TREE = DecisionTreeClassifier(random_state=0)
FITS: list[tuple] = []


class Counted(ClassifierMixin, BaseEstimator):
    """Predicts by a threshold; remembers which rows it was fitted to."""

    def __init__(self, threshold=0.0):
        self.threshold = threshold

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        FITS.append((self.threshold, hash(X.tobytes())))
        return self

    def predict(self, X):
        return self.classes_[(X[:, 0] > self.threshold).astype(int)]


class Failing(DummyClassifier):
    """Cannot be fitted beyond a limit."""

    def __init__(self, level=0.0, limit=0.5):
        super().__init__()
        self.level, self.limit = level, limit

    def fit(self, X, y, sample_weight=None):
        if self.level > self.limit:
            raise ValueError("level too high")
        return super().fit(X, y, sample_weight)


def searched(space=DEPTHS, estimator=TREE, n_trials=30, **options):
    return mb.MixBanditSearchCV(estimator, space, n_trials=n_trials, random_state=0, **options)


@pytest.fixture(scope="module")
def search():
    return searched().fit(X, Y)


# --- documentation examples of scikit-learn, with the class name changed


@pytest.mark.filterwarnings("ignore")  # of their estimators
@pytest.mark.parametrize("theirs", [GridSearchCV, RandomizedSearchCV])
def test_the_examples_in_their_docstrings_run(theirs):
    scope = {}
    examples = doctest.DocTestParser().get_examples(theirs.__doc__)
    for example in examples:
        line = example.source.replace(theirs.__name__, "MixBanditSearchCV")
        line = line.replace("sklearn.model_selection import MixBandit", "mixbandit import MixBandit")
        exec(compile(line, theirs.__name__, "exec"), scope)
    assert len(examples) >= 6
    fitted = [value for value in scope.values() if isinstance(value, mb.MixBanditSearchCV)]
    assert any(hasattr(value, "best_params_") for value in fitted)


def test_the_example_of_grid_search():
    iris = load_iris()
    parameters = {"kernel": ("linear", "rbf"), "C": [1, 10]}
    clf = mb.MixBanditSearchCV(SVC(), parameters)
    clf.fit(iris.data, iris.target)
    known = {"mean_fit_time", "mean_score_time", "mean_test_score", "param_C", "param_kernel", "params",
             "rank_test_score", "split0_test_score", "split2_test_score", "std_fit_time", "std_test_score"}  # fmt: skip
    assert known <= set(clf.cv_results_)
    assert clf.best_params_ == {"C": 1, "kernel": "linear"}


def test_the_example_of_randomized_search():
    iris = load_iris()
    logistic = LogisticRegression(solver="saga", tol=1e-2, max_iter=200, random_state=0)
    distributions = {"C": uniform(loc=0, scale=4), "l1_ratio": [0, 1]}
    found = mb.MixBanditSearchCV(logistic, distributions, random_state=0).fit(iris.data, iris.target)
    assert found.best_score_ > 0.95
    assert 0 <= found.best_params_["C"] <= 4
    assert found.n_fits_ == 50


def test_examples_of_the_user_guide():
    """Lists of grids, keywords, estimators as values, several scorers, n_iter."""
    grids = [{"C": [1, 10, 100], "kernel": ["linear"]}, {"C": [1, 10], "gamma": [0.01, 0.001], "kernel": ["rbf"]}]
    found = mb.MixBanditSearchCV(estimator=SVC(), param_grid=grids, scoring="precision_macro", cv=3).fit(X, Y)
    assert found.n_fits_ == 21
    assert found.cv_results_["param_gamma"].mask[:3].all()
    drawn = mb.MixBanditSearchCV(
        SVC(), param_distributions={"C": loguniform(1e0, 1e3), "class_weight": ["balanced", None]}, n_iter=4, cv=3
    ).fit(X, Y)
    assert drawn.n_fits_ == 12
    pipe = Pipeline([("reduce", "passthrough"), ("classify", SVC())])
    options = [{"reduce": [PCA(), SelectKBest(k=3)], "classify__C": [1, 10]}]
    whole = mb.MixBanditSearchCV(pipe, param_grid=options, cv=2).fit(X, Y)
    assert len(whole.cv_results_["params"]) == 4
    several = {"AUC": "roc_auc", "Accuracy": make_scorer(accuracy_score)}
    both = mb.MixBanditSearchCV(
        DecisionTreeClassifier(random_state=42),
        param_grid={"min_samples_split": range(2, 103, 20)},
        scoring=several,
        refit="AUC",
        n_jobs=2,
        return_train_score=True,
    ).fit(X, Y)
    assert both.best_score_ == both.cv_results_["mean_test_AUC"].max()
    assert {"mean_train_Accuracy", "rank_test_AUC", "split4_train_AUC"} <= set(both.cv_results_)
    assert both.multimetric_


@pytest.mark.parametrize("cv", [3, KFold(4, shuffle=True, random_state=0), ShuffleSplit(3, random_state=1)])
def test_a_grid_within_the_budget_is_grid_search(cv):
    grid = [{"max_depth": [1, None, 4], "min_samples_leaf": [20, 5]}, {"ccp_alpha": [0.01]}]
    ours = mb.MixBanditSearchCV(TREE, grid, cv=cv, return_train_score=True).fit(X, Y)
    theirs = GridSearchCV(TREE, grid, cv=cv, return_train_score=True).fit(X, Y)
    assert set(ours.cv_results_) - set(theirs.cv_results_) == {"folds_evaluated"}
    assert not set(theirs.cv_results_) - set(ours.cv_results_)
    for name, column in theirs.cv_results_.items():
        if "time" not in name:
            np.testing.assert_array_equal(ours.cv_results_[name], column, err_msg=name)
            assert type(ours.cv_results_[name]) is type(column)
    assert (ours.best_params_, ours.best_score_, ours.best_index_) == (
        theirs.best_params_,
        theirs.best_score_,
        theirs.best_index_,
    )
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    assert ours.score(X, Y) == theirs.score(X, Y)


# --- what a pull is


@pytest.mark.parametrize(("n_trials", "confirm"), [(30, 3), (17, 1), (7, 2), (23, 0), (4, 3)])
def test_the_budget_counts_model_fits_and_no_fit_is_made_twice(n_trials, confirm):
    FITS.clear()
    found = searched({"threshold": uniform(-2, 4)}, Counted(), n_trials, confirm=confirm).fit(X, Y)
    in_search = FITS[:-1]  # the last one is the refit
    assert len(in_search) == len(set(in_search)) == found.n_fits_ == n_trials
    assert found.cv_results_["folds_evaluated"].sum() == n_trials


def test_the_recommended_mean_is_known(search):
    again = cross_val_score(clone(TREE).set_params(**search.best_params_), X, Y, cv=5)
    assert search.best_score_ == again.mean()
    assert search.best_interval_ == (search.best_score_, search.best_score_)
    assert search.cv_results_["folds_evaluated"][search.best_index_] == 5
    assert (search.cv_results_["folds_evaluated"] < 5).any()


def test_folds_that_were_not_evaluated_are_nan_and_ranked_last(search):
    results = search.cv_results_
    scores = np.stack([results[f"split{k}_test_score"] for k in range(5)], axis=1)
    evaluated = results["folds_evaluated"]
    np.testing.assert_array_equal((~np.isnan(scores)).sum(axis=1), evaluated)
    np.testing.assert_allclose(results["mean_test_score"], np.nanmean(scores, axis=1))
    np.testing.assert_allclose(results["std_test_score"], np.nanstd(scores, axis=1))
    complete = evaluated == 5
    assert results["rank_test_score"][complete].max() <= complete.sum()
    assert results["rank_test_score"][~complete].min() == complete.sum() + 1
    assert results["rank_test_score"][search.best_index_] == 1
    assert results["mean_test_score"][complete].max() == search.best_score_
    pd.DataFrame(results)


def test_intervals_cover_the_means_over_all_folds():
    """Of every configuration tried, by evaluating the folds that the search did not."""
    cv = RepeatedStratifiedKFold(n_splits=5, n_repeats=4, random_state=0)
    found = searched(n_trials=60, cv=cv, confirm=0).fit(X, Y)
    splits = list(cv.split(X, Y))
    partial = 0
    for parameters in found.cv_results_["params"]:
        low, high = found.certificate_.of(parameters).interval
        truth = cross_val_score(clone(TREE).set_params(**parameters), X, Y, cv=splits).mean()
        assert low - 1e-12 <= truth <= high + 1e-12
        partial += high > low
    assert partial


@pytest.mark.parametrize(
    ("space", "n_trials", "most"), [(DEPTHS, 30, 30), ({"max_depth": list(range(1, 13))}, 30, 12), (DEPTHS, 7, 7)]
)
def test_delta_is_divided_among_all_configurations_that_could_be_tried(space, n_trials, most, monkeypatch):
    given = []
    exact = evaluation.fold_intervals

    def spied(candidates, known, delta):
        given.append((known, delta))
        return exact(candidates, known, delta)

    monkeypatch.setattr(evaluation, "fold_intervals", spied)
    searched(space, n_trials=n_trials, delta=0.1).fit(X, Y)
    assert given == [((0.0, 1.0), pytest.approx(0.1 / most))]


def test_without_confirmation_the_interval_says_what_is_missing():
    found = searched(n_trials=3, confirm=0).fit(X, Y)
    low, high = found.best_interval_
    assert 0.0 < low < found.best_score_ < high <= 1.0
    assert "lies in [" in str(found.certificate_)
    unknown = searched({"alpha": uniform(0.1, 5)}, Ridge(), n_trials=3, confirm=0).fit(X, Y)  # R² has no range
    assert unknown.best_interval_ == (-np.inf, np.inf)
    assert "no reward_range bounds it" in str(unknown.certificate_)
    stated = searched({"alpha": uniform(0.1, 5)}, Ridge(), n_trials=3, confirm=0, reward_range=(-1, 1)).fit(X, Y)
    assert np.isfinite(stated.best_interval_).all()


# --- conventions


def test_delegated_methods(search):
    assert search.predict(X).shape == (150,)
    assert search.predict_proba(X).shape == (150, 2)
    np.testing.assert_array_equal(search.classes_, [0, 1])
    assert search.n_features_in_ == 6
    assert (search.n_splits_, search.multimetric_) == (5, False)
    assert search.refit_time_ > 0
    assert search.score(X, Y) == search.best_estimator_.score(X, Y) == search.scorer_(search, X, Y)
    assert not hasattr(search, "decision_function")
    logistic = searched({"C": [1, 2]}, LogisticRegression()).fit(X, Y)
    assert logistic.decision_function(X).shape == (150,)
    assert logistic.predict_log_proba(X).shape == (150, 2)
    reduced = searched({"n_components": [1, 2]}, PCA(), scoring=lambda fitted, X, y=None: fitted.score(X)).fit(X)
    assert reduced.inverse_transform(reduced.transform(X)).shape == X.shape
    assert searched({"bandwidth": [0.5, 1.0]}, KernelDensity()).fit(X).score_samples(X).shape == (150,)


def test_parameters_clones_pickles_and_nesting(search):
    assert clone(search).get_params()["n_trials"] == 30
    changed = clone(search).set_params(n_trials=12, estimator__criterion="entropy").fit(X, Y)
    assert changed.n_fits_ == 12
    assert changed.best_estimator_.criterion == "entropy"
    stored = pickle.loads(pickle.dumps(search))
    np.testing.assert_array_equal(stored.predict(X), search.predict(X))
    assert str(stored.certificate_) == str(search.certificate_)
    assert "MixBanditSearchCV" in search._repr_html_()
    assert len(cross_val_score(searched(n_trials=8), X, Y, cv=3)) == 3
    inside = searched({"decisiontreeclassifier__max_depth": [1, 3]}, make_pipeline(StandardScaler(), TREE))
    assert make_pipeline(PCA(4), inside).fit(X, Y).score(X, Y) > 0.6


def test_the_same_numbers_for_the_same_seed(search):
    again = clone(search).fit(X, Y)
    assert again.cv_results_["params"] == search.cv_results_["params"]
    other = clone(search).set_params(random_state=1).fit(X, Y)
    assert other.cv_results_["params"] != search.cv_results_["params"]
    generator = np.random.RandomState(0)
    assert searched().set_params(random_state=generator).fit(X, Y).n_fits_ == 30


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_backends_of_joblib_agree(backend):
    alone = searched(batch_size=4).fit(X, Y)
    with joblib.parallel_config(backend=backend, n_jobs=2):
        together = searched(batch_size=4).fit(X, Y)
    assert together.cv_results_["params"] == alone.cv_results_["params"]
    assert together.best_score_ == alone.best_score_


def test_sparse_frames_and_lists():
    assert searched({"C": [1, 2]}, LogisticRegression()).fit(csr_matrix(X), Y).best_score_ > 0.6
    frame = pd.DataFrame(X, columns=list("abcdef"))
    found = searched(n_trials=8).fit(frame, pd.Series(Y))
    assert list(found.feature_names_in_) == list("abcdef")
    assert searched(n_trials=8).fit(X.tolist(), Y.tolist()).n_features_in_ == 6


def test_groups_and_weights():
    groups = np.arange(150) % 10
    found = searched(n_trials=9, cv=GroupKFold(3)).fit(X, Y, groups=groups)
    assert found.n_splits_ == 3
    weighted = searched(n_trials=8).fit(X, Y, sample_weight=np.ones(150))
    assert weighted.best_score_ == searched(n_trials=8).fit(X, Y).best_score_


def test_metadata_routing():
    groups, weights = np.arange(150) % 10, np.linspace(0.1, 2, 150)
    with sklearn.config_context(enable_metadata_routing=True):
        tree = DecisionTreeClassifier(random_state=0).set_fit_request(sample_weight=True)
        scorer = make_scorer(accuracy_score).set_score_request(sample_weight=True)
        ours = searched({"max_depth": [1, 2, 3]}, tree, scoring=scorer, cv=GroupKFold(3))
        theirs = GridSearchCV(tree, {"max_depth": [1, 2, 3]}, scoring=scorer, cv=GroupKFold(3))
        ours.fit(X, Y, groups=groups, sample_weight=weights)
        theirs.fit(X, Y, groups=groups, sample_weight=weights)
        np.testing.assert_array_equal(ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"])
        with pytest.raises(TypeError, match="unexpected"):
            ours.fit(X, Y, nonsense=1)


def test_choosing_by_a_callable_among_those_that_are_known():
    def simplest(results):
        assert not np.isnan([results[f"split{k}_test_score"] for k in range(5)]).any()
        return int(np.argmin(results["param_max_depth"]))

    found = searched(refit=simplest).fit(X, Y)
    complete = found.cv_results_["folds_evaluated"] == 5
    assert found.best_params_["max_depth"] == found.cv_results_["param_max_depth"][complete].min()
    assert not hasattr(found, "best_score_")
    for wrong, kind in ((lambda _: "first", TypeError), (lambda _: 10_000, IndexError)):
        with pytest.raises(kind, match="best_index_"):
            searched(refit=wrong, n_trials=8).fit(X, Y)


def test_without_a_refit():
    found = searched(n_trials=10, refit=False).fit(X, Y)
    assert not hasattr(found, "best_estimator_")
    assert found.best_params_ in found.cv_results_["params"]
    with pytest.raises(AttributeError, match="has no attribute 'predict'"):
        found.predict(X)
    several = searched(n_trials=10, refit=False, scoring=["accuracy", "f1"]).fit(X, Y)
    assert not hasattr(several, "best_params_")
    assert {"mean_test_accuracy", "mean_test_f1"} <= set(several.cv_results_)
    with pytest.raises(ValueError, match="refit must be set to a scorer key"):
        searched(n_trials=10, scoring=["accuracy", "f1"]).fit(X, Y)


def test_a_callable_with_several_scores():
    def both(fitted, X, y):
        right = fitted.predict(X) == y
        return {"right": right.mean(), "wrong": -(~right).sum()}

    found = searched(n_trials=20, scoring=both, refit="right").fit(X, Y)
    assert found.best_score_ == found.cv_results_["mean_test_right"][found.best_index_]
    FITS.clear()
    with pytest.raises(ValueError, match="refit must be set to a scorer key"):
        searched({"threshold": uniform(-2, 4)}, Counted(), scoring=both).fit(X, Y)
    assert len(FITS) == 1  # it says so at once


# --- failures


def test_failing_fits_follow_error_score():
    space = {"level": uniform(0, 1)}
    with pytest.warns(sklearn.exceptions.FitFailedWarning, match="level too high"):
        found = searched(space, Failing(), cv=3).fit(X, Y)
    failed = np.isnan(found.cv_results_["mean_test_score"])
    np.testing.assert_array_equal(failed, found.cv_results_["param_level"] > 0.5)
    assert (found.cv_results_["folds_evaluated"][failed] == 1).all()  # a failure is not repeated
    assert found.best_params_["level"] <= 0.5
    assert found.certificate_.left_out == {"with a failed fit": failed.sum()}
    with pytest.raises(ValueError, match="level too high"):
        searched(space, Failing(), error_score="raise").fit(X, Y)
    with pytest.warns(sklearn.exceptions.FitFailedWarning):
        zero = searched(space, Failing(), cv=3, error_score=0.0).fit(X, Y)
    assert zero.cv_results_["mean_test_score"].min() == 0.0
    with pytest.raises(ValueError, match="All the 30 fits failed"):
        searched(space, Failing(limit=-1.0), cv=3).fit(X, Y)


def test_an_interrupt_leaves_the_search_as_it_was(search, monkeypatch):
    before = dict(vars(search))
    calls = []

    @functools.wraps(DecisionTreeClassifier.fit)
    def interrupted(self, *_, **__):
        calls.append(self)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return fit(self, *_, **__)

    fit = DecisionTreeClassifier.fit
    monkeypatch.setattr(DecisionTreeClassifier, "fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, 1 - Y)
    assert dict(vars(search)) == before
    assert not {name for name in vars(clone(search)) if name.endswith("_")}


def test_a_second_fit_leaves_nothing_of_the_first():
    found = searched(n_trials=8).fit(pd.DataFrame(X, columns=list("abcdef")), Y)
    found.set_params(refit=False).fit(X, Y)
    assert not {"best_estimator_", "feature_names_in_", "refit_time_"} & set(vars(found))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"samples": 100}, "samples=100 does not apply here: folds reuse the same rows"),
        ({"n_trials": 0}, "n_trials must be an integer ≥ 1, got 0"),
        ({"n_trials": 2.5}, "n_trials must be an integer"),
        ({"n_trials": None, "n_iter": -1}, "n_iter must be an integer ≥ 1"),
        ({"n_trials": 5, "n_iter": 5}, "not both"),
        ({"confirm": -1}, "confirm must be an integer ≥ 0"),
        ({"delta": 1.5}, "delta must lie strictly between 0 and 1"),
        ({"reward_range": (1, 0)}, "reward_range"),
        ({"reward_range": (0.9, 1.0)}, "outside reward_range"),
        ({"reward_range": (0, 1), "error_score": -1.0}, "error_score is -1, outside reward_range"),
        ({"batch_size": 0}, "batch_size must be an integer"),
        ({"space": None}, "state one of param_space, param_grid, param_distributions, got none"),
        ({"param_grid": {"max_depth": [1]}}, "got param_space and param_grid"),
        ({"space": "max_depth"}, "param_space must be a dict"),
        ({"space": []}, "param_space must be a dict"),
        ({"space": {"max_depth": "12"}}, "max_depth must be a list"),
        ({"space": {"max_depth": []}}, "must not be empty"),
        ({"space": {"max_depth": 3}}, "max_depth must be a list"),
        ({"space": {"max_depth": np.eye(2)}}, "max_depth must be a list"),
        ({"space": {1: [1, 2]}}, "parameter names must be non-empty text"),
        ({"refit": mb.best_guaranteed(samples=30)}, "chooses by its scores"),
    ],
)
def test_bad_input_is_named_and_changes_nothing(options, message):
    bad = searched(**{"n_trials": 6, **options})
    with pytest.raises(mb.InvalidInput, match=message.replace("(", r"\(")):
        bad.fit(X, Y)
    assert not {name for name in vars(bad) if name.endswith("_")}


def test_without_scikit_learn_it_says_what_to_install(monkeypatch):
    for module in [name for name in sys.modules if name.startswith("mixbandit.integrations.sklearn")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(mb.MissingDependency, match=r"pip install 'mixbandit\[sklearn\]'"):
        _ = mb.MixBanditSearchCV
    assert mb.best_guaranteed(samples=30).samples == 30  # needs no more than numpy


def test_a_wrong_parameter_name_is_scikit_learns_error():
    with pytest.raises(ValueError, match="Invalid parameter"):
        searched({"depth": [1, 2]}).fit(X, Y)


# --- progress, callbacks, certificates


def test_progress(capsys):
    searched(n_trials=20, verbose=1).fit(X, Y)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Fitting up to 20 models, each on one of 5 folds"
    assert lines[-1].startswith("[20/20 fits, ")
    assert 5 <= len(lines) <= 12
    searched(n_trials=20).fit(X, Y)
    assert capsys.readouterr().out == ""


class Listening:
    """Writes down what a callback is told."""

    def __init__(self):
        self.heard = []

    def setup(self, estimator, context):
        self.heard.append("setup")

    def on_fit_task_begin(self, estimator, context, **_):
        self.heard.append(context.task_name)

    def on_fit_task_end(self, estimator, context, **_):
        return False

    def teardown(self, estimator, context):
        self.heard.append("teardown")


@pytest.mark.skipif(not hasattr(mb.MixBanditSearchCV, "set_callbacks"), reason="scikit-learn has them from 1.9 on")
def test_callbacks_hear_of_every_fit():
    callback = Listening()
    searched(n_trials=12).set_callbacks(callback).fit(X, Y)
    assert callback.heard[0] == "setup"
    assert callback.heard[-1] == "teardown"
    assert callback.heard.count("candidate-split-evaluation") == 12
    assert callback.heard.count("refit-with-best-params") == 1


def test_the_certificate_says_what_it_is_about(search):
    certificate = search.certificate_
    first, second = str(certificate).split("\n")
    assert first == (
        f"Use {search.best_params_}: its 5-fold mean on these rows is {search.best_score_:.4g}; "
        "nothing is guaranteed about new rows."
    )
    assert second.startswith(f"None of the {len(search.cv_results_['params']) - 1} others has a 5-fold mean")
    assert not certificate.proven
    assert certificate.interval == search.best_interval_
    assert "certify_finalists" in certificate.details() or "mb.certify(search" in certificate.details()
    assert certificate.to_dict()["about"] == "these rows only"
    assert certificate.to_html()


def test_what_holds_on_new_rows_depends_on_the_list():
    """A finite space is a list fixed in advance, of which a part is looked at; others are not."""
    stated = {"samples": 30, "reward_range": (0, 1)}
    grid = {"max_depth": list(range(1, 13)), "min_samples_leaf": [1, 5, 10, 20]}
    listed = searched(grid).fit(X, Y)
    assert (listed.n_listed_, len(listed.cv_results_["params"]) < 48) == (48, True)
    found = mb.certify(listed, **stated)
    assert found.about == "new rows"
    assert found.left_out["with folds that were not evaluated"] > 0
    whole = GridSearchCV(TREE, grid).fit(X, Y)
    same = mb.certify(whole, **stated).of(listed.best_params_)
    assert found.of(listed.best_params_).interval == pytest.approx(same.interval)
    searching = searched({"ccp_alpha": loguniform(1e-4, 1e-1)}).fit(X, Y)
    assert searching.n_listed_ is None
    assert mb.certify(searching, **stated).about == "these rows only"
    with pytest.raises(mb.InvalidInput, match="chooses configurations by their scores"):
        mb.certify(searching, fixed_list=True, **stated)
    assert mb.certify(pd.DataFrame(listed.cv_results_), **stated).about == "these rows only"


@pytest.mark.filterwarnings("ignore")  # of numpy about its own matrices
@pytest.mark.parametrize("name", ["n_trials", "n_iter", "confirm", "reward_range", "delta", "batch_size", "samples"])
def test_odd_values_work_or_are_refused(name):
    """Everything that the battery tries elsewhere; a grid of two caps any budget."""
    for value in values().values():
        search = mb.MixBanditSearchCV(DummyClassifier(), {"strategy": ["prior", "uniform"]}, cv=2)
        search.set_params(**{name: value()})
        try:
            search.fit(X, Y)
        except mb.MixbanditError:
            assert not {attribute for attribute in vars(search) if attribute.endswith("_")}
        else:
            assert search.n_fits_ <= 4


@pytest.mark.filterwarnings("ignore")  # of numpy about its own matrices
def test_odd_spaces_work_or_are_refused():
    for given in (lambda value: value, lambda value: {"strategy": value}, lambda value: [value]):
        for value in values().values():
            with contextlib.suppress(mb.MixbanditError):
                SearchSpace(given(value()), np.random.RandomState(0))


@pytest.mark.parametrize("score", [1j, np.complex128(0.5), np.complex64(0.5 + 1j)])
def test_complex_scores_are_refused(score):
    search = searched({"alpha": uniform(0.1, 5)}, Ridge(), n_trials=3, confirm=0, scoring=lambda *given: score)
    with pytest.raises(mb.InvalidInput, match="the score of a fold must be a number"):
        search.fit(X, Y)
