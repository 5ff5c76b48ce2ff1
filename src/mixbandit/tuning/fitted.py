"""Certificates for fitted models on fresh rows: the step from any search to the model that will be used.

Nothing here imports scikit-learn: a model is whatever has `predict`, and a search whatever also has `best_params_`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixbandit._checks import as_range, as_vector, finite, refuse_masked, shown
from mixbandit.errors import InvalidInput
from mixbandit.spending import Ledger, Spending, evenly, together
from mixbandit.tuning.assumptions import Assumptions
from mixbandit.tuning.columns import missing
from mixbandit.tuning.fitted_certificate import FittedCertificate
from mixbandit.tuning.list_certificate import FRESH_ROWS
from mixbandit.tuning.measures import MEASURES, Answers, Measure, Scored, Stated
from mixbandit.tuning.scorers import Score, refuse_regressor, score_of, went_by
from mixbandit.tuning.searches import is_regressor

# A bound that says more than the range of a score moves at this many times the level.
_SURER = 2.0
_GIVEN = (
    "fresh rows, on which neither training nor the choice of finalists depended, and which are independent draws of "
    "what the model will meet"
)


def certify_fitted(
    model: Any,
    X: Any,
    y: ArrayLike,
    scoring: Any = None,
    delta: float = 0.05,
    *,
    pos_label: Any = None,
    clip: float | None = None,
    reward_range: tuple[float, float] | None = None,
) -> FittedCertificate:
    """Certify the score of one or several fitted models on rows that were never used before.

    `model` is a fitted model, pipeline or search (GridSearchCV, MixBanditSearchCV, …), or a dict of these by name.
    `X` and `y` are fresh rows: independent draws of what the model will meet, used neither for training nor for
    choosing anything. Each of k models gets a bound at δ/k, and all hold together with probability ≥ 1 − `delta`.

    `scoring` is a name or a scorer of scikit-learn; by default, what the search went by, or accuracy for classifiers
    that nothing searched for. Supported, exactly or by bets: "accuracy", "balanced_accuracy", "precision", "recall",
    "specificity", "f1", "jaccard", "roc_auc", "neg_brier_score", "neg_log_loss" (probabilities below `clip` count as
    `clip`, by default 0.001), and "neg_mean_squared_error" and "neg_mean_absolute_error" with `reward_range`, which
    contains every single loss. `pos_label` is the positive class, by default that of the scorer, or 1.

    The bound of the first line is one-sided; `interval` is two-sided. Both hold with probability ≥ 1 − `delta`. The
    certificate is about the models as fitted now. Use a set of rows once: after a model was chosen on them, they are no
    longer fresh.
    """
    known = Assumptions(reward_range=(0.0, 1.0), delta=delta)
    models = _named(model)
    name, positive, methods = _score(scoring, [each for _, each in models])
    measure = MEASURES[name]
    stated = Stated(
        pos_label=positive if pos_label is None else pos_label,
        clip=None if clip is None else finite(clip, "clip"),
        reward_range=None if reward_range is None else as_range(reward_range, "reward_range"),
    )
    for option, value in (("pos_label", pos_label), ("clip", clip), ("reward_range", reward_range)):
        if value is not None and option not in measure.takes:
            raise InvalidInput(f"{option} does not apply to scoring={name!r}; got {shown(value)}")
    truth = _labels(y, "y") if measure.of_labels else as_vector(y, None, "y")
    if not len(truth):
        raise InvalidInput(f"y must be a vector with one label per row, got {shown(y)}")
    scored = [
        measure.score(_answers(each, X, truth, measure, methods or measure.methods), stated) for _, each in models
    ]
    return _certificate([parameters for parameters, _ in models], scored, name, known.delta, len(truth))


def _certificate(
    configurations: list[Mapping[str, Any]], scored: list[Scored], name: str, delta: float, rows: int
) -> FittedCertificate:
    sign = -1.0 if MEASURES[name].is_loss else 1.0
    whole = Spending(delta)
    both, one = whole.each(2 * len(scored)).level, whole.each(len(scored)).level  # two ends of every model, or one
    samples = [each.sample for each in scored]
    intervals = np.array([(sample.lower(both), sample.upper(both)) for sample in samples])
    bounds = [sample.lower(one) if sign > 0 else sample.upper(one) for sample in samples]
    worst, most = (intervals[:, 0], intervals[:, 1]) if sign > 0 else (-intervals[:, 1], -intervals[:, 0])
    best = max(range(len(scored)), key=lambda i: (sign * bounds[i], sign * np.nan_to_num(samples[i].measured)))
    others, about = np.delete(most, best), scored[best]
    # A bound that is the same at a higher level says no more than the range of the score.
    surer = [sample.upper(_SURER * both) if sign > 0 else -sample.lower(_SURER * both) for sample in samples]
    by_range = len(others) > 0 and others.max() > worst[best] and others.max() >= np.delete(surer, best).max()
    given = " and ".join(filter(None, (_GIVEN, about.given)))
    return FittedCertificate(
        action=configurations[best],
        lower=float(worst[best]),
        upper=float(most[best]),
        optimum_upper=float(most.max()),
        optimum_found=float(most.max()),
        gap=max(float(others.max() - worst[best]), 0.0) if len(others) else 0.0,
        proof="range" if by_range else "enumerated",
        guarantee="once",
        delta=delta,
        evidence=FRESH_ROWS,
        assumptions=f"{rows:,} {given}",
        intervals=intervals,
        ledgers=_ledgers(whole, len(scored)),
        configurations=configurations,
        model="no model of the function",
        direction="maximize" if sign > 0 else "minimize",
        t=len(scored),
        tried=len(scored),
        on_these_rows=samples[best].measured,
        measure=about.words,
        one_sided=bounds[best],
        scoring=name,
        baseline=about.baseline,
        constant=about.constant,
    )


def _ledgers(whole: Spending, count: int) -> tuple[Ledger, ...]:
    """Two claims, each at all of δ, and both together: one-sided bounds imply half of what intervals say."""
    one, both = evenly(count), f"{evenly(2 * count)} ends"
    other = whole.each(2).line("the other ends of intervals", evenly(count))
    return (
        whole.ledger("the bound of the first line is wrong", whole.line("one-sided bounds", one)),
        whole.ledger("another statement is wrong", whole.line("intervals", both)),
        together("anything is wrong", "the two have a delta each", whole.line("one-sided bounds", one), other),
    )


def _score(scoring: Any, models: list[Any]) -> Score:
    """What to certify: as stated, or what the searches among the models went by, or accuracy."""
    if scoring is not None:
        return score_of(scoring)
    found = [score for score in map(went_by, models) if score is not None]
    if any(score[:2] != found[0][:2] for score in found):
        named = ", ".join(dict.fromkeys(shown(score[0]) for score in found))
        raise InvalidInput(f"the searches went by different scores, {named}: state one, as in scoring={found[0][0]!r}")
    if found:
        return found[0]
    for model in models:
        refuse_regressor(model)
    return "accuracy", None, None


def _named(model: Any) -> list[tuple[Mapping[str, Any], Any]]:
    """Models and what to call them: by their names, the parameters that a search chose, or their class."""
    if isinstance(model, Mapping):
        if not model:
            raise InvalidInput("model must be a fitted classifier or a dict of them, got an empty dict")
        return [({"model": name}, _checked(each)) for name, each in model.items()]
    best = getattr(_checked(model), "best_params_", None)
    return [(dict(best) if isinstance(best, Mapping) else {"model": type(model).__name__}, model)]


def _checked(model: Any) -> Any:
    if isinstance(model, type) or not callable(getattr(model, "predict", None)):
        raise InvalidInput(
            f"model must be a fitted classifier, one with predict, or a dict of them; got {shown(model)}"
        )
    return model


def _labels(y: Any, name: str) -> list[Any]:
    """Labels as plain hashable values, none of them missing."""
    try:
        refuse_masked(y)
        labels: NDArray[Any] = np.asarray(y)
    except Exception as error:  # ragged lists, masked entries, and objects that raise anything
        raise InvalidInput(f"{name} must be a vector with one label per row: {error}") from error
    if labels.ndim != 1 or not len(labels):
        raise InvalidInput(f"{name} must be a vector with one label per row, got {shown(y)}")
    plain: list[Any] = labels.tolist()
    for row, label in enumerate(plain):
        if (not isinstance(label, str) and missing(label)) or np.ma.is_masked(label):
            raise InvalidInput(f"{name} must have no missing labels, got {shown(label)} in row {row}")
        try:
            hash(label)
        except TypeError:
            raise InvalidInput(f"{name} must have hashable labels, got {shown(label)} in row {row}") from None
    return plain


def _answers(model: Any, X: Any, truth: Any, measure: Measure, methods: tuple[str, ...]) -> Answers:
    """What the model answers on these rows."""
    if measure.of_labels and is_regressor(model):
        raise InvalidInput(f"{type(model).__name__} is a regressor: state scoring='neg_mean_squared_error'")
    method = next((name for name in methods if callable(getattr(model, name, None))), None)
    if method is None:
        raise InvalidInput(f"{type(model).__name__} has no method {' or '.join(methods)}")
    try:
        given = getattr(model, method)(X)
        refuse_masked(given)
        answered = np.asarray(given)
    except Exception as error:
        raise InvalidInput(f"{type(model).__name__} cannot predict these rows: {error}") from error
    if answered.shape[:1] != (len(truth),) or (method == "predict" and answered.ndim != 1):
        raise InvalidInput(
            f"there must be a prediction for every label: got predictions of shape {answered.shape} and {len(truth)} "
            "labels"
        )
    if not measure.of_labels:
        return Answers(truth, as_vector(answered, len(truth), "predictions"))
    predicted = _labels(answered, "predictions") if method == "predict" else []
    possible = getattr(model, "classes_", None)
    if possible is None and method != "predict":
        raise InvalidInput(f"{type(model).__name__} has no classes_, which say what {method} is about")
    classes = dict.fromkeys([] if possible is None else _labels(possible, "classes_"))
    if not set(truth) & set(classes or predicted):
        raise InvalidInput(f"no label in y is a class of {type(model).__name__}: y begins with {shown(truth[:3])}")
    known = len(classes)
    every = list(dict.fromkeys([*classes, *truth, *predicted]))
    code = {label: i for i, label in enumerate(every)}
    codes = np.array([code[label] for label in truth])
    return Answers(codes, np.array([code[label] for label in predicted]) if predicted else answered, every, known)
