"""`certify_fitted`: names, labels and words; `test_fitted_scores` has the scores."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, binomtest, loguniform
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mixbandit as mb

X, y = load_breast_cancer(return_X_y=True)
X, X_FRESH, y, Y_FRESH = train_test_split(X, y, test_size=200, random_state=0)
PIPELINE = make_pipeline(StandardScaler(), LogisticRegression())


def exact(value, level):
    """SciPy's interval of Clopper and Pearson for a share of the fresh rows."""
    return tuple(binomtest(round(200 * value), 200).proportion_ci(level, method="exact"))


@pytest.fixture(scope="module")
def fitted():
    return PIPELINE.fit(X, y)


def test_a_search_is_certified_by_the_model_that_it_refitted():
    search = GridSearchCV(PIPELINE, {"logisticregression__C": [0.1, 1.0]}).fit(X, y)
    found = mb.certify_fitted(search, X_FRESH, Y_FRESH)
    value = search.score(X_FRESH, Y_FRESH)
    assert found.interval == pytest.approx(exact(value, 0.95))
    assert found.parameters == search.best_params_
    assert found.on_these_rows == value
    assert found.guaranteed == pytest.approx(exact(value, 0.9)[0])  # one-sided: δ is not halved
    majority = max(Y_FRESH.mean(), 1 - Y_FRESH.mean())
    beside = f"measured: {value:.4g}; always predicting the majority class scores {majority:.4g}"
    told = f"is at least {found.guaranteed:.4g} ({beside}), with probability at least 0.95"
    assert f"on new rows its accuracy {told}" in str(found)
    assert "Nothing else was measured" in str(found)


def test_several_models_share_delta(fitted):
    forest = RandomForestClassifier(random_state=0, n_estimators=10).fit(X, y)
    found = mb.certify_fitted({"linear": fitted, "forest": forest}, X_FRESH, Y_FRESH, delta=0.1)
    for name, model in (("linear", fitted), ("forest", forest)):  # half of δ each
        assert found.of({"model": name}).interval == pytest.approx(exact(model.score(X_FRESH, Y_FRESH), 0.95))
    better = max((fitted, forest), key=lambda model: model.score(X_FRESH, Y_FRESH))
    assert found.parameters == {"model": "linear" if better is fitted else "forest"}
    assert "No other finalist (2 in all) has an accuracy that is larger" in str(found)


def test_a_single_model_is_called_by_its_class(fitted):
    assert mb.certify_fitted(fitted, X_FRESH, Y_FRESH).parameters == {"model": "Pipeline"}


@pytest.mark.parametrize("truth", [0.5, 0.9, 0.99])
def test_the_floor_is_above_the_truth_in_at_most_delta_of_all_draws(truth):
    """Exactly, over all numbers of rows that a classifier can get right."""

    class Right:
        """Right on the first `hits` of 60 rows."""

        def __init__(self, hits):
            self.hits = hits

        def predict(self, rows):
            return (np.arange(len(rows)) < self.hits).astype(int)

    ones = np.ones(60, dtype=int)
    ends = [mb.certify_fitted({"m": Right(hits)}, ones, ones).interval if hits else (0.0, 1.0) for hits in range(61)]
    missed = sum(binom.pmf(hits, 60, truth) for hits, (low, high) in enumerate(ends) if not low <= truth <= high)
    assert missed <= 0.05
    assert ends[57][0] > 0.8


def test_text_labels(fitted):
    named = np.where(y == 1, "benign", "malignant")
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, named)
    found = mb.certify_fitted(model, X_FRESH, np.where(Y_FRESH == 1, "benign", "malignant"))
    assert found.interval == mb.certify_fitted(fitted, X_FRESH, Y_FRESH).interval


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": Ridge()}, "is a regressor"),
        ({"model": LogisticRegression}, "model must be a fitted classifier"),
        ({"model": {}}, "empty dict"),
        ({"model": {"a": 3}}, "model must be a fitted classifier"),
        ({"model": LogisticRegression()}, "cannot predict these rows: .*not fitted"),
        ({"X": X_FRESH[:, :3]}, "cannot predict these rows"),
        ({"y": Y_FRESH[:-1]}, "a prediction for every label"),
        ({"y": Y_FRESH[:, None]}, "y must be a vector"),
        ({"y": []}, "y must be a vector"),
        ({"y": np.where(Y_FRESH == 1, np.nan, 0.0)}, "missing labels"),
        ({"y": np.where(Y_FRESH == 1, "benign", "malignant")}, "no label in y is a class"),
        ({"delta": 0.7}, "delta"),
    ],
)
def test_what_cannot_be_certified(fitted, change, message):
    with pytest.raises(mb.InvalidInput, match=message):
        mb.certify_fitted(**{"model": fitted, "X": X_FRESH, "y": Y_FRESH, **change})


def test_parameters_drawn_by_numpy_read_as_plain_numbers():
    search = RandomizedSearchCV(PIPELINE, {"logisticregression__C": loguniform(1e-2, 1e2)}, n_iter=2, random_state=0)
    found = mb.certify_fitted(search.fit(X, y), X_FRESH, Y_FRESH)
    assert isinstance(found.parameters["logisticregression__C"], np.floating)
    assert "np.float64" not in found.details() + mb.report(found)


def test_a_report_on_one_model_promises_nothing_about_others(fitted):
    page = mb.report(mb.certify_fitted(fitted, X_FRESH, Y_FRESH))
    assert "Left to gain" not in page
    assert "from 1 configuration." in page


class Constant:
    def __init__(self, answer):
        self.answer = answer

    def predict(self, rows):
        return np.full(len(rows), self.answer)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.ma.array([1, 1, 1, 0], mask=[0, 1, 1, 0]), "masked"),
        (np.array([1, None, 1, 0], dtype=object), "no missing labels, got None in row 1"),
        (pd.Series([1, pd.NA, 1, 0], dtype="Int64"), r"no missing labels, got .* in row 1"),
        (pd.Series(["a", pd.NA, "a", "b"], dtype=object), "no missing labels, got <NA> in row 1"),
        (pd.array([True, None, True, False], dtype="boolean"), "no missing labels"),
        (pd.Categorical(["a", None, "a", "b"]), "no missing labels"),
        (np.array([1, np.nan, 1, 0], dtype=object), "no missing labels"),
        (np.array([[1], {2}, [3], 4, 5], dtype=object)[1:], "hashable labels"),
        (np.array(["2026-01-01", "NaT", "2026-01-01", "2026-01-02"], dtype="datetime64[D]"), "no missing labels"),
    ],
)
def test_labels_that_are_missing_or_no_labels(labels, message):
    with pytest.raises(mb.InvalidInput, match=message):
        mb.certify_fitted(Constant(1), np.zeros((4, 1)), labels)


def test_predictions_that_are_missing():
    class Masked(Constant):
        def predict(self, rows):
            return np.ma.array(np.ones(len(rows)), mask=np.arange(len(rows)) == 0)

    for model, message in ((Masked(1), "masked"), (Constant(None), "predictions must have no missing labels")):
        with pytest.raises(mb.InvalidInput, match=message):
            mb.certify_fitted(model, np.zeros((4, 1)), [1, 1, 1, 0])


def test_names_that_read_alike_are_two_models():
    found = mb.certify_fitted({1: Constant(1), "1": Constant(0)}, np.zeros((30, 1)), [1] * 29 + [0])
    assert found.of({"model": 1}).lower > found.of({"model": "1"}).upper
    assert found.parameters == {"model": 1}


def test_the_sentences_say_what_holds_with_which_probability(fitted):
    found = mb.certify_fitted({"a": fitted, "b": Constant(1)}, X_FRESH, Y_FRESH, delta=0.1)
    told = found.details()
    assert found.interval[0] < found.guaranteed < found.on_these_rows
    assert "The bound of the first line is one-sided. Two-sided, the accuracy lies in" in told
    assert "everything at once holds with probability at least 0.85" in told
    assert f"at least {found.guaranteed:.4g}" in str(found)
    assert f"<dd>at least {found.guaranteed:.4g}" in mb.report(found)
    assert json.loads(json.dumps(found.to_dict()))["guaranteed"] == found.guaranteed


def test_two_perfect_models_do_not_rule_each_other_out():
    rows = np.random.default_rng(0).random((60, 1))
    labels = rows[:, 0] > 0.5

    class Sharp:
        classes_ = np.array([False, True])

        def __init__(self, at):
            self.at = at

        def predict(self, X):
            return X[:, 0] > self.at

    both = mb.certify_fitted({"one": Sharp(0.5), "two": Sharp(0.5)}, rows, labels)
    assert both.proof == "range"
    assert "Nothing rules out that another finalist (2 in all) is better" in str(both).splitlines()[1]
    assert "its accuracy may be 1, the end of its range." in str(both)
    worse = mb.certify_fitted({"one": Sharp(0.5), "two": Sharp(0.9)}, rows, labels)
    assert worse.proof == "enumerated"
    assert "No other finalist (2 in all) has" in str(worse)
