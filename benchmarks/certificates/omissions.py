"""Attacks by what a certificate is not told: values that are left out, rows that were seen, folds, and other scores.

They are part of `attacks`, which says how a run can end.
"""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np
import optuna
from numpy.typing import NDArray

import mixbandit as mb

from .verdicts import DELTA, REFUSED, Verdict, judged, judged_if

_SCORES = ("accuracy", "balanced_accuracy", "precision", "recall", "f1", "roc_auc", "neg_brier_score", "neg_log_loss")
_POSITIVES = 0.15  # the share of positive rows: a constant classifier has an accuracy of .85
_MANY = 100_000  # rows that the truth is computed from


def _values(rng: np.random.Generator, trials: int) -> list[tuple[int, float]]:
    """Values of two configurations that are worth ½."""
    return [(int(rng.integers(2)), rng.binomial(100, 0.5) / 100) for _ in range(trials)]


def only_lucky_trials_end(rng: np.random.Generator) -> Verdict:
    """Trials with a value below ½ fail, as if something had gone wrong."""
    space: dict[str, optuna.distributions.BaseDistribution] = {"which": optuna.distributions.IntDistribution(0, 1)}
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=0))
    for which, value in _values(rng, 200):
        study.enqueue_trial({"which": which})
        lucky = value >= 0.5
        state = optuna.trial.TrialState.COMPLETE if lucky else optuna.trial.TrialState.FAIL
        study.tell(study.ask(space), value if lucky else None, state)
    found = mb.certify(study, reward_range=(0, 1), samples=100, rows="fresh", delta=DELTA)
    return judged_if(str(found), "ended without a value", [(found.interval[0], 0.5)])


def only_lucky_rows_are_kept(rng: np.random.Generator) -> Verdict:
    """A table of numbered trials, from which those with a value below ½ were deleted."""
    import pandas as pd

    rows = [{"number": i, "params_c": c, "value": value} for i, (c, value) in enumerate(_values(rng, 200))]
    table = pd.DataFrame([row for row in rows if row["value"] >= 0.5])
    found = mb.certify(table, reward_range=(0, 1), samples=100, rows="fresh", delta=DELTA)
    return judged_if(str(found), "trial numbers are missing", [(found.interval[0], 0.5)])


def misses_are_cancelled(rng: np.random.Generator) -> Verdict:
    """Clicks are told in order of play, and whatever is no click is cancelled."""
    rates, floors = np.array([0.5, 0.4, 0.3]), []
    seed = int(rng.integers(2**31))
    bandit = mb.CMMUCB(3, actions=np.eye(3), sigma=0.5, norm_bound=1.0, delta=DELTA, rng=seed, strict=True)
    for _ in range(200):
        choice = bandit.ask()
        if rng.random() < choice.action @ rates:
            bandit.tell(choice, 1.0)
        else:
            bandit.cancel(choice, played=True)
    found = bandit.certificate()
    floors.append((found.lower, float(found.action @ rates)))
    return judged_if(str(found), "decided that it is lost", floors) if found.trusted else Verdict(REFUSED)


def looks_around_a_change(rng: np.random.Generator) -> Verdict:
    """The sequence changes after 500 trials of a stated noise level: whoever looks goes by the luckier of both."""
    history: list[tuple[dict[str, Any], float]] = []
    for _ in range(501):
        which = "abcd"[rng.integers(4)]
        history.append(({"which": which}, 0.5 + 0.1 * float(rng.normal())))
    floors = []
    for trials in (499, 500, 501):
        found = mb.certify(history[:trials], sigma=0.1, reward_range=(0, 1), delta=DELTA)
        floors += [(found.of({"which": which}).lower, 0.5) for which in "abcd"] if found.trusted else []
    return judged(floors) if floors else Verdict(REFUSED)


def looks_around_the_first_pruning(rng: np.random.Generator) -> Verdict:
    """Four configurations of truth ½; whoever looks goes by the luckiest floor before and after a trial is pruned."""
    space: dict[str, optuna.distributions.BaseDistribution] = {
        "which": optuna.distributions.CategoricalDistribution("abcd")
    }
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=0))
    floors: list[tuple[float, float]] = []

    def play(which: str, nomination: int = 0, *, unlucky: bool = False) -> None:
        study.enqueue_trial({"which": which}, user_attrs={"mixbandit_nomination": nomination} if nomination else {})
        trial = study.ask(space)
        if unlucky:
            trial.report(0.4, 0)
            study.tell(trial, None, optuna.trial.TrialState.PRUNED)
        else:
            study.tell(trial, rng.binomial(100, 0.5) / 100)

    def look() -> None:
        found = mb.certify(study, reward_range=(0, 1), samples=100, rows="fresh", delta=DELTA)
        floors.extend((found.of({"which": which}).lower, 0.5) for which in "abcd" if found.trusted)

    for place in range(60):
        play("abcd"[place % 4])
        if place % 10 == 9:
            look()
    for number, which in enumerate("abc", 1):
        for _ in range(5):
            play(which, number)
        look()
    play("d", unlucky=True)
    for number, which in enumerate("abcd", 1):
        for _ in range(10):
            play(which, number)
        look()
    return judged(floors) if floors else Verdict(REFUSED)


def a_space_that_grows(rng: np.random.Generator) -> Verdict:
    """A flat function of truth ½ in a table without a stated space, which grows wherever a search was lucky."""
    history: list[tuple[dict[str, Any], float]] = []
    xs, floors = [0.4, 0.6], []
    for trial in range(48):
        x = xs[trial] if trial < len(xs) else float(rng.uniform(min(xs), max(xs)))
        value = rng.binomial(100, 0.5) / 100
        if trial >= len(xs):
            xs.append(x)
        if value > 0.55:  # lucky: a step beyond the end that is nearer
            step = 0.1 * (max(xs) - min(xs))
            xs.append(min(xs) - step if x - min(xs) < max(xs) - x else max(xs) + step)
        history.append(({"x": x}, value))
        if trial % 6 == 5:
            found = mb.certify(history, reward_range=(0, 1), samples=100, rows="fresh", ordered=True, delta=DELTA)
            if found.trusted:
                floors.append((found.interval[0], 0.5))
                floors += [(found.of({"x": seen["x"]}).lower, 0.5) for seen, _ in history[::6]]
    if not floors:
        return Verdict(REFUSED)
    return judged(floors)


def as_our_pages_did(rng: np.random.Generator, *, states_the_pool: bool) -> Verdict:
    """Every trial draws 100 rows from one validation set, as in our own tutorials, and the floor is about new rows."""
    labels = rng.random(300) < 0.5
    answers = rng.random((40, 300)) < 0.5  # forty models that know nothing

    def objective(trial: optuna.Trial) -> float:
        model, rows = trial.suggest_int("model", 0, 39), rng.integers(300, size=100)
        return float((answers[model, rows] == labels[rows]).mean())

    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=int(rng.integers(2**31))))
    study.optimize(objective, n_trials=150)
    stated: dict[str, Any] = {"pool": 300} if states_the_pool else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mb.RowsMissingWarning)
        found = mb.certify(study, reward_range=(0, 1), samples=100, delta=DELTA, **stated)
    if not found.trusted:
        return Verdict(REFUSED)
    own = (found.interval[0], float((answers[found.parameters["model"]] == labels).mean()))
    if states_the_pool:
        return judged([own, (found.on_new_rows[0], 0.5)])
    return judged_if(str(found), "assumed, not stated", [(found.interval[0], 0.5)])


def stratified_in_disguise(rng: np.random.Generator) -> Verdict:
    """Stratified folds, handed over as a list of splits."""
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.model_selection import GridSearchCV, StratifiedKFold

    class Majority(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
        """Predicts the class of a group that its training rows have more of."""

        def __init__(self, option: int = 0) -> None:
            self.option = option

        def fit(self, X: Any, y: Any) -> Majority:
            self.classes_, self.balance_ = np.unique(y), np.zeros(400)
            np.add.at(self.balance_, X[:, 0], np.where(y % 2 == 1, 1.0, -1.0))
            return self

        def predict(self, X: Any) -> Any:
            return 2 * X[:, 0] + (self.balance_[X[:, 0]] > 0)

    groups = np.repeat(np.arange(400), 10)
    labels = 2 * groups + rng.integers(2, size=len(groups))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the least populated class has too few members
        splits = list(StratifiedKFold(5).split(groups[:, None], labels))
        search = GridSearchCV(Majority(), {"option": [0, 1]}, cv=splits).fit(groups[:, None], labels)
    found = mb.certify(search, reward_range=(0, 1), samples=len(labels) // 5, delta=DELTA)
    return judged_if(str(found), "if no fold depends on the labels", [(found.interval[0], 0.5)])


def another_score(rng: np.random.Generator) -> Verdict:
    """Searches by a score drawn at random, of a logistic regression or of a constant classifier, on 300 fresh rows."""
    from sklearn.dummy import DummyClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import get_scorer
    from sklearn.model_selection import GridSearchCV, KFold

    score = str(rng.choice(_SCORES))
    model, grid = (LogisticRegression(), {"C": [0.01, 1.0]})
    if score != "precision" and rng.random() < 0.3:  # a constant answer of the majority has no precision
        model, grid = (DummyClassifier(strategy="prior"), {"random_state": [0, 1]})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # folds and models without a positive answer
        search = GridSearchCV(model, grid, scoring=score, cv=KFold(3)).fit(*_drawn(rng, 300))
        found = mb.certify_fitted(search, *_drawn(rng, 300), delta=DELTA)
        sign = 1.0 if found.direction == "maximize" else -1.0
        truth = float(get_scorer(score)(search.best_estimator_, *_truths()))
    if not found.measure.startswith(_words_of(score)):
        return Verdict("wrong", found.guaranteed, truth)
    return judged([(sign * found.guaranteed, truth)])


def _words_of(score: str) -> str:
    words = {"roc_auc": "area under", "neg_brier_score": "Brier", "neg_log_loss": "log-loss", "f1": "F1"}
    return words.get(score, score.replace("_", " "))


def _drawn(rng: np.random.Generator, rows: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    labels = (rng.random(rows) < _POSITIVES).astype(np.int64)
    return rng.normal(size=(rows, 2)) + 1.5 * labels[:, None], labels


@functools.cache
def _truths() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    return _drawn(np.random.default_rng(0), _MANY)
