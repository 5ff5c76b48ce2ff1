"""Stratified folds have the classes' shares of these rows: a model can learn those, and new rows have others."""

import math
import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    PredefinedSplit,
    RepeatedStratifiedKFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import mixbandit as mb
from mixbandit.tuning.fixed_rows import stratified_shift
from mixbandit.tuning.searches import Strata, read_search

GROUPS, ROWS = 400, 20_000


class MajorityOfTheGroup(ClassifierMixin, BaseEstimator):
    """Two classes in every group, by the flip of a coin; it predicts the one that was more frequent."""

    def __init__(self, option=0):
        self.option = option

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.majority_ = np.bincount(y, minlength=2 * GROUPS).reshape(GROUPS, 2).argmax(axis=1)
        return self

    def predict(self, X):
        group = X[:, 0].astype(int)
        return 2 * group + self.majority_[group]


def coin_flips(seed, cv):
    rng = np.random.default_rng(seed)
    group = rng.integers(GROUPS, size=ROWS)
    y = 2 * group + rng.integers(2, size=ROWS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn's, about classes with few rows
        search = GridSearchCV(MajorityOfTheGroup(), {"option": [1, 2]}, cv=cv).fit(group[:, None].astype(float), y)
    return mb.certify(search, samples=ROWS // 5, reward_range=(0, 1))


@pytest.mark.parametrize("cv", [5, np.int64(5), StratifiedKFold(5), KFold(5, shuffle=True, random_state=0)])
def test_no_floor_above_one_half_for_coin_flips(cv):
    for seed in range(3):
        assert coin_flips(seed, cv).interval[0] < 0.5


def test_kfold_is_as_before_and_the_splitter_is_named_otherwise():
    assert coin_flips(0, KFold(5, shuffle=True, random_state=0)).interval[0] > 0.45
    assert "stratified folds of 800 classes (StratifiedKFold)" in coin_flips(0, 5).details()


def test_the_shift_covers_the_shares_of_classes():
    rng, classes, rows = np.random.default_rng(0), 6, 500
    shares = rng.dirichlet(np.ones(classes))
    drawn = rng.multinomial(rows, shares, size=2000) / rows
    variation = 0.5 * np.abs(drawn - shares).sum(axis=1)
    without_rounding = stratified_shift(Strata("", classes, 5), rows // 5, 0.05) - classes / (2 * (rows // 5))
    assert (variation > without_rounding).mean() <= 0.05
    assert without_rounding == pytest.approx(math.sqrt(math.log((2**classes - 2) / 0.05) / (2 * rows)))
    assert stratified_shift(Strata("", None, 5), 100, 0.05) == 1.0


X = np.random.default_rng(0).normal(size=(200, 2))
Y = (X[:, 0] > 0).astype(int)


@pytest.mark.parametrize(
    ("cv", "folds"),
    [
        (None, 5),
        (4, 4),
        (np.int64(4), 4),  # an integer to scikit-learn, though none to Python
        (StratifiedKFold(3), 3),
        (StratifiedGroupKFold(3), 3),
        (RepeatedStratifiedKFold(n_splits=3, n_repeats=2), 3),
        (StratifiedShuffleSplit(3), 1),
        (KFold(3), None),
    ],
)
def test_stratified_splitters_are_recognised(cv, folds):
    groups = {"groups": np.arange(len(X))} if isinstance(cv, StratifiedGroupKFold) else {}
    strata = read_search(GridSearchCV(DecisionTreeClassifier(), {"max_depth": [1]}, cv=cv).fit(X, Y, **groups)).strata
    assert (None if strata is None else (strata.classes, strata.folds)) == (None if folds is None else (2, folds))


class Mine:
    """A user's own splitter, which stratifies without saying so."""

    def get_n_splits(self, *_, **__):
        return 3

    def split(self, X, y, groups=None):
        return StratifiedKFold(3).split(X, y)


class OwnKFold(KFold):
    """Nobody knows what it does with the labels."""


FOLD_OF_ROW = np.arange(len(X)) % 3
UNKNOWN = "if no fold depends on the labels, as stratified ones do."


@pytest.mark.parametrize(
    "cv", [list(StratifiedKFold(3).split(X, Y)), PredefinedSplit(FOLD_OF_ROW), Mine(), OwnKFold(3, shuffle=True)]
)
def test_folds_that_nobody_knows_are_a_condition_in_the_first_line(cv):
    search = GridSearchCV(DecisionTreeClassifier(), {"max_depth": [1, 2]}, cv=cv).fit(X, Y)
    found = mb.certify(search, samples=66, reward_range=(0, 1))
    assert str(found).splitlines()[0].endswith(UNKNOWN)
    assert "folds that do not depend on the labels" in found.details()
    bare = mb.certify(search.cv_results_, fixed_list=True, samples=66, reward_range=(0, 1))
    assert str(bare).splitlines()[0].endswith(UNKNOWN)


@pytest.mark.parametrize(
    ("cv", "model", "says"),
    [
        (KFold(3), DecisionTreeClassifier, True),  # of rows sorted by label it is as good as stratified
        (KFold(3, shuffle=True), DecisionTreeClassifier, False),
        (3, DecisionTreeRegressor, True),
        (3, DecisionTreeClassifier, False),
    ],
)
def test_folds_in_the_order_of_rows_rest_on_that_order(cv, model, says):
    scoring = None if model is DecisionTreeClassifier else "neg_mean_squared_error"
    search = GridSearchCV(model(), {"max_depth": [1, 2]}, cv=cv, scoring=scoring).fit(X, Y)
    found = mb.certify(search, samples=66, reward_range=(-1, 1))
    assert UNKNOWN not in str(found)
    assert ("rows in an order that does not depend on the labels" in found.details()) == says


def test_a_list_measured_on_one_split_rests_on_how_rows_were_set_aside():
    grid = [({"x": 1}, 0.6), ({"x": 2}, 0.7)]
    found = mb.certify(grid, rows="fixed", fixed_list=True, samples=50, reward_range=(0, 1))
    assert "set aside without a look at their labels" in found.details()


def test_without_the_number_of_classes_nothing_is_said_about_new_rows():
    search = GridSearchCV(DecisionTreeClassifier(), {"max_depth": [1, 2]}, refit=False).fit(X, Y)
    found = mb.certify(search, samples=40, reward_range=(0, 1))
    assert not found.proven
    assert "KFold(shuffle=True), or fresh rows" in str(found).splitlines()[0]


def test_gaussian_noise_is_refused_for_lists_by_its_own_reason():
    search = GridSearchCV(DecisionTreeClassifier(), {"max_depth": [1, 2]}, cv=KFold(3)).fit(X, Y)
    with pytest.raises(mb.InvalidInput, match="learns the noise level from repeated trials"):
        mb.certify(search, noise="gaussian", reward_range=(0, 1))
    with pytest.raises(mb.InvalidInput, match="learns the noise level from repeated trials"):
        mb.certify_finalists([({"x": 1}, 0.5)], noise="gaussian")


def test_of_a_list_that_was_not_all_measured_the_certificate_says_how_many_were():
    space = {"max_depth": list(range(1, 13)), "min_samples_leaf": [1, 2, 3, 4, 5]}
    search = mb.MixBanditSearchCV(
        DecisionTreeClassifier(random_state=0), space, n_trials=40, cv=KFold(2), reward_range=(0, 1), random_state=0
    ).fit(X, Y)
    found = mb.certify(search, samples=100, reward_range=(0, 1))
    assert found.listed == 60
    assert found.tried < 60
    assert f"({found.tried} of the 60 on the list)" in str(found)


class Fragile(DecisionTreeClassifier):
    """Fails for every depth but one."""

    def fit(self, X, y, **options):
        if self.max_depth != 1:
            raise ValueError("no")
        return super().fit(X, y, **options)


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")
def test_failed_fits_of_others_are_named():
    space = {"max_depth": [1, 2, 3, 4]}
    options = {"cv": KFold(2), "error_score": np.nan}
    search = mb.MixBanditSearchCV(Fragile(), space, n_iter=4, reward_range=(0, 1), random_state=0, **options).fit(X, Y)
    failed = 3
    assert "Nothing else was tried" not in str(search.certificate_)
    assert f"Not counted: {failed} with a failed fit." in str(search.certificate_)
    grid = mb.certify(GridSearchCV(Fragile(), space, **options).fit(X, Y), samples=100, reward_range=(0, 1))
    assert f"Not counted: {failed} with a failed fit." in str(grid)
