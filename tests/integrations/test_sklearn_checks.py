"""scikit-learn's own checks of estimators, and what its searches are excused from."""

import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import mixbandit as mb


def excused(search):
    """scikit-learn expects the same failures of GridSearchCV and RandomizedSearchCV."""
    if isinstance(search.estimator, Ridge):
        return {"check_supervised_y_2d": "searches do not warn that a column of targets was made a vector"}
    return {}


def search(estimator, space, **options):
    return mb.MixBanditSearchCV(estimator, space, cv=2, error_score="raise", random_state=0, **options)


# A regressor with a continuous space and classifiers with a list; the other way round they are heavy.
SEARCHES = [
    search(Ridge(), {"alpha": mb.Float(0.1, 10.0, log=True)}, n_trials=6),
    search(LogisticRegression(), {"C": [0.1, 1.0]}),
    search(make_pipeline(StandardScaler(), SVC()), {"svc__C": [0.1, 1.0]}),
]
MORE = [
    search(Ridge(), {"alpha": [0.1, 1.0]}),
    search(LogisticRegression(), {"C": mb.Float(0.1, 10.0, log=True)}, n_trials=6),
]


def wanted(check):
    """All but those that only run where SCIPY_ARRAY_API is set: the search does not claim to support array APIs."""
    return "array_api" not in getattr(check, "func", check).__name__


@pytest.mark.filterwarnings("ignore")  # the checks provoke warnings of the estimators inside
@parametrize_with_checks(SEARCHES, expected_failed_checks=excused)
def test_scikit_learns_checks(estimator, check):
    if wanted(check):
        check(estimator)


@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(MORE, expected_failed_checks=excused)
def test_scikit_learns_checks_the_other_way_round(estimator, check):
    if wanted(check):
        check(estimator)
