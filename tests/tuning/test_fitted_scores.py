"""`certify_fitted`: every score against scikit-learn's, its bounds against the truth, and scorers that are refused."""

import math

import numpy as np
import pytest
from scipy.stats import beta, binom, norm
from sklearn import metrics
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import mixbandit as mb
from mixbandit.tuning.fixed_rows import chernoff_ends
from mixbandit.tuning.score_bounds import lowest_mean, lowest_mean_of_shares

RNG = np.random.default_rng(0)
X = RNG.normal(size=(900, 3))
y = (X[:, 0] + RNG.normal(size=900) > 1.0).astype(int)
X_FRESH, Y_FRESH, X, y = X[:400], y[:400], X[400:], y[400:]
NUMBERS = X_FRESH[:, 0] + 0.1 * np.sin(9.0 * X_FRESH[:, 1])
LABELLED = [
    *("accuracy", "balanced_accuracy", "precision", "recall", "f1", "jaccard", "roc_auc"),
    *("neg_brier_score", "neg_log_loss"),
]


def searched(scoring, estimator=None, grid=None):
    return GridSearchCV(estimator or LogisticRegression(), grid or {"C": [0.1, 1.0]}, scoring=scoring, refit=True)


@pytest.mark.parametrize("scoring", LABELLED)
def test_the_search_says_what_is_certified(scoring):
    search = searched(scoring).fit(X, y)
    found = mb.certify_fitted(search, X_FRESH, Y_FRESH)
    sign = -1 if scoring.startswith("neg_") else 1
    assert found.on_these_rows == pytest.approx(sign * search.score(X_FRESH, Y_FRESH), rel=1e-6)
    assert found.direction == ("maximize" if sign > 0 else "minimize")
    outer, inner = (found.interval[0], found.guaranteed) if sign > 0 else (-found.interval[1], -found.guaranteed)
    assert outer < inner < sign * found.on_these_rows
    assert "accuracy" in str(found) or not scoring.endswith("accuracy")
    assert mb.certify_fitted(search.best_estimator_, X_FRESH, Y_FRESH, scoring).guaranteed == found.guaranteed
    assert mb.certify_fitted(search, X_FRESH, Y_FRESH, metrics.get_scorer(scoring)).guaranteed == found.guaranteed


@pytest.mark.parametrize(("scoring", "high"), [("neg_mean_squared_error", 20.0), ("neg_mean_absolute_error", 5.0)])
def test_losses_of_regressors(scoring, high):
    search = searched(scoring, Ridge(), {"alpha": [1.0]}).fit(X_FRESH[:200], NUMBERS[:200])
    found = mb.certify_fitted(search, X_FRESH[200:], NUMBERS[200:], reward_range=(0, high))
    assert found.on_these_rows == pytest.approx(-search.score(X_FRESH[200:], NUMBERS[200:]))
    assert found.on_these_rows < found.guaranteed < found.interval[1] < found.baseline
    assert f"error is at most {found.guaranteed:.4g}" in str(found)
    assert f"every single loss lies in [0, {high:g}]" in found.details()
    with pytest.raises(mb.AssumptionsMissing, match="reward_range"):
        mb.certify_fitted(search, X_FRESH[200:], NUMBERS[200:])
    with pytest.raises(mb.InvalidInput, match="outside reward_range"):
        mb.certify_fitted(search, X_FRESH[200:], NUMBERS[200:], reward_range=(-high, -1))


def test_the_baseline_stands_beside_the_score():
    dummy = DummyClassifier().fit(X, y)
    told = mb.certify_fitted(dummy, X_FRESH, Y_FRESH)
    assert told.baseline == told.on_these_rows == 1 - Y_FRESH.mean()
    assert f"always predicting the majority class scores {told.baseline:.4g}" in str(told)
    for scoring in ("balanced_accuracy", "roc_auc"):
        assert mb.certify_fitted(dummy, X_FRESH, Y_FRESH, scoring).baseline == 0.5
    dummy = DummyClassifier(strategy="prior").fit(X_FRESH, Y_FRESH)
    for scoring in ("neg_brier_score", "neg_log_loss"):
        told = mb.certify_fitted(dummy, X_FRESH, Y_FRESH, scoring)
        assert told.baseline == pytest.approx(told.on_these_rows)


def test_shares_are_exact_binomial_bounds_given_their_number():
    model = LogisticRegression().fit(X, y)
    predicted = model.predict(X_FRESH)
    hits = int((predicted & Y_FRESH).sum())
    rows = {"precision": predicted.sum(), "recall": Y_FRESH.sum(), "jaccard": (predicted | Y_FRESH).sum()}
    for scoring, n in rows.items():
        found = mb.certify_fitted(model, X_FRESH, Y_FRESH, scoring)
        assert found.guaranteed == pytest.approx(beta.ppf(0.05, hits, n - hits + 1))
    j = mb.certify_fitted(model, X_FRESH, Y_FRESH, "jaccard").guaranteed
    assert mb.certify_fitted(model, X_FRESH, Y_FRESH, "f1").guaranteed == pytest.approx(2 * j / (1 + j))
    zero = mb.certify_fitted(model, X_FRESH, Y_FRESH, "specificity")
    assert zero.guaranteed == mb.certify_fitted(model, X_FRESH, Y_FRESH, "recall", pos_label=0).guaranteed


def test_a_scorer_has_its_own_positive_class():
    named = np.where(y == 1, "ill", "well")
    search = searched(metrics.make_scorer(metrics.f1_score, pos_label="ill")).fit(X, named)
    found = mb.certify_fitted(search, X_FRESH, np.where(Y_FRESH == 1, "ill", "well"))
    assert found.measure == "F1 score for class 'ill'"
    with pytest.raises(mb.InvalidInput, match="which class is the positive one"):
        mb.certify_fitted(search.best_estimator_, X_FRESH, np.where(Y_FRESH == 1, "ill", "well"), "f1")


def test_several_scorers_and_several_searches():
    several = GridSearchCV(LogisticRegression(), {"C": [1.0]}, scoring=["accuracy", "f1"], refit="f1").fit(X, y)
    assert mb.certify_fitted(several, X_FRESH, Y_FRESH).scoring == "f1"
    ranked, plain = searched("roc_auc").fit(X, y), LogisticRegression().fit(X, y)
    assert mb.certify_fitted({"a": ranked, "b": plain}, X_FRESH, Y_FRESH).scoring == "roc_auc"
    assert mb.certify_fitted(make_pipeline(ranked).fit(X, y), X_FRESH, Y_FRESH).scoring == "roc_auc"
    with pytest.raises(mb.InvalidInput, match="different scores, 'roc_auc', 'f1'"):
        mb.certify_fitted({"a": ranked, "b": several}, X_FRESH, Y_FRESH)
    assert mb.certify_fitted({"a": ranked, "b": several}, X_FRESH, Y_FRESH, "accuracy").scoring == "accuracy"


@pytest.mark.parametrize(
    "scoring",
    [
        *("f1_macro", "average_precision", "r2", "matthews_corrcoef", "roc_auc_ovr", 3),
        lambda model, X, y: 1.0,
        metrics.make_scorer(metrics.log_loss, response_method="predict_proba"),
        metrics.make_scorer(metrics.balanced_accuracy_score, adjusted=True),
        metrics.make_scorer(metrics.f1_score, average="macro"),
        metrics.make_scorer(metrics.roc_auc_score, response_method="predict"),
        metrics.make_scorer(lambda y, p: 1.0),
    ],
)
def test_scores_without_a_bound_are_refused(scoring):
    model = LogisticRegression().fit(X, y)
    with pytest.raises(mb.InvalidInput, match=r"no bound is known.*scoring='accuracy'.*'roc_auc'|wrong sign"):
        mb.certify_fitted(model, X_FRESH, Y_FRESH, scoring)
    if callable(scoring):
        with pytest.raises(mb.InvalidInput, match=r"no bound is known|wrong sign"):
            mb.certify_fitted(searched(scoring).fit(X, y), X_FRESH, Y_FRESH)


def test_options_without_a_use():
    model = LogisticRegression().fit(X, y)
    for option in ({"pos_label": 1}, {"clip": 0.1}, {"reward_range": (0, 1)}):
        with pytest.raises(mb.InvalidInput, match="does not apply to scoring='accuracy'"):
            mb.certify_fitted(model, X_FRESH, Y_FRESH, **option)
    told = mb.certify_fitted(model, X_FRESH, Y_FRESH, "neg_log_loss", clip=0.01)
    assert "probabilities below 0.01 counted as 0.01" in str(told)


def test_the_bound_of_equal_classes_is_that_of_all_their_rows():
    """By Jensen the worst p are equal: Chernoff's bound of C·n rows."""
    found = lowest_mean_of_shares(np.array([55.0, 57.0, 50.0]), np.full(3, 60.0), math.log(20))
    assert found == pytest.approx(chernoff_ends(np.array(0.9), np.array(180.0), math.log(20))[0], abs=1e-3)


def judged(misses, runs, delta):
    assert binom.sf(misses - 1, runs, delta) > 1e-3, misses


def test_a_wrong_bound_would_be_seen():
    """A bound too near to what was measured is found out by the same judgement."""
    rng = np.random.default_rng(0)
    runs, truth = 400, 1 / 3
    draws = [rng.choice([0.0, 1.0, 0.5], p=[0.5, 1 / 6, 1 / 3], size=20) for _ in range(runs)]
    judged(sum(lowest_mean(draw, math.log(20)) > truth for draw in draws), runs, 0.05)
    bounds = [0.3 * lowest_mean(draw, math.log(20)) + 0.7 * draw.mean() for draw in draws]
    with pytest.raises(AssertionError):
        judged(sum(bound > truth for bound in bounds), runs, 0.05)


@pytest.mark.heavy
@pytest.mark.parametrize("scoring", [*LABELLED, "specificity", "neg_mean_squared_error", "neg_mean_absolute_error"])
def test_bounds_exceed_the_truth_in_at_most_delta_of_all_draws(scoring):
    """A fixed model on 60 fresh rows, against the same score on a million; δ is large so that errors would show."""
    rng, delta, runs = np.random.default_rng(1), 0.3, 300

    class Model:
        classes_ = np.array([0, 1])

        def decision_function(self, rows):
            return rows[:, 0] - 0.8

        def predict(self, rows):
            return (rows[:, 0] > 0.8).astype(int)

        def predict_proba(self, rows):
            p = norm.cdf(rows[:, 0] - 0.8)
            return np.stack((1 - p, p), axis=1)

    class Regressor:
        def predict(self, rows):
            return np.clip(rows[:, 0], -1, 1)

    number = "error" in scoring
    model = Regressor() if number else Model()

    def draw(n):
        rows = rng.normal(size=(n, 2))
        noisy = rows[:, 0] + rows[:, 1]
        return rows, np.clip(noisy, -1, 1) if number else (noisy > 1).astype(int)

    stated = {"reward_range": (0, 4)} if number else {}
    truth = mb.certify_fitted(model, *draw(10**6), scoring, delta, **stated).on_these_rows
    sides = np.zeros(2)
    for _ in range(runs):
        found = mb.certify_fitted(model, *draw(60), scoring, delta, **stated)
        above = found.guaranteed > truth if found.direction == "maximize" else found.guaranteed < truth
        sides += above, not found.interval[0] <= truth <= found.interval[1]
    for misses in sides:
        judged(int(misses), runs, delta)
