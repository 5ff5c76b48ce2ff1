"""The scores that can be certified on fresh rows: what each says about a model's answers, and its bounds.

A `Sample` is a score as measured on n fresh rows, with bounds for all rows. `score_bounds` has the mathematics.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mixbandit._checks import Array, shown
from mixbandit.errors import STATEMENTS, AssumptionsMissing, InvalidInput
from mixbandit.tuning.score_bounds import lowest_mean, lowest_mean_of_shares, lowest_ranking, lowest_share

Codes = NDArray[np.int64]
CLIP = 0.001


@dataclass(frozen=True)
class Stated:
    """What the user states about a score beyond its name."""

    pos_label: Any = None
    clip: float | None = None  # the least probability that log-loss counts
    reward_range: tuple[float, float] | None = None  # which contains every single loss


class Sample(Protocol):
    """A score on fresh rows. `level` is ln(1/δ) of one bound."""

    @property
    def measured(self) -> float: ...
    def lower(self, level: float) -> float: ...
    def upper(self, level: float) -> float: ...


@dataclass(frozen=True)
class Share:
    """A share of hits, or a rising function of it that maps 0 to 0 and 1 to 1."""

    hits: int
    rows: int
    of: Callable[[float], float] = float

    @property
    def measured(self) -> float:
        return self.of(self.hits / self.rows) if self.rows else math.nan

    def lower(self, level: float) -> float:
        return self.of(lowest_share(self.hits, self.rows, level))

    def upper(self, level: float) -> float:
        return self.of(1.0 - lowest_share(self.rows - self.hits, self.rows, level))


@dataclass(frozen=True)
class MeanOfShares:
    """The mean over classes of the shares of hits. A class without rows may have any share."""

    hits: Array
    rows: Array

    @property
    def measured(self) -> float:
        seen = self.rows > 0
        return float((self.hits[seen] / self.rows[seen]).mean())

    def lower(self, level: float) -> float:
        return lowest_mean_of_shares(self.hits, self.rows, level)

    def upper(self, level: float) -> float:
        return 1.0 - lowest_mean_of_shares(self.rows - self.hits, self.rows, level)


@dataclass(frozen=True)
class Mean:
    """The mean of results in a range."""

    results: Array
    low: float
    high: float

    @property
    def measured(self) -> float:
        return float(self.results.mean())

    def lower(self, level: float) -> float:
        span = self.high - self.low
        return self.low + span * lowest_mean((self.results - self.low) / span, level)

    def upper(self, level: float) -> float:
        span = self.high - self.low
        return self.high - span * lowest_mean((self.high - self.results) / span, level)


@dataclass(frozen=True)
class Ranking:
    """The share of pairs of a positive and a negative row that are ranked right; ties count one half."""

    measured: float
    pairs: int  # the rows of the smaller class

    def lower(self, level: float) -> float:
        return lowest_ranking(self.measured, self.pairs, level)

    def upper(self, level: float) -> float:
        return 1.0 - lowest_ranking(1.0 - self.measured, self.pairs, level)


@dataclass(frozen=True)
class Answers:
    """Labels of the fresh rows and what a model answers, both as numbers of `classes`, or as plain numbers."""

    truth: Codes | Array  # (n,)
    given: Codes | Array  # (n,) predictions or scores, (n, C) probabilities
    classes: list[Any] = field(default_factory=list)
    known: int = 0  # the first `known` classes are those of the model


@dataclass(frozen=True)
class Scored:
    """A measure as applied to one model."""

    sample: Sample
    words: str  # what is measured
    constant: str  # the best answer that is the same for all rows, in words
    baseline: float  # its score on the same rows
    given: str = ""  # what else is assumed


@dataclass(frozen=True)
class Measure:
    """One kind of score. `methods` are those of a model that answer, in order of preference."""

    score: Callable[[Answers, Stated], Scored]
    methods: tuple[str, ...] = ("predict",)
    is_loss: bool = False
    takes: frozenset[str] = frozenset()  # the fields of `Stated` that it has a use for

    @property
    def of_labels(self) -> bool:
        """Whether the rows have labels, not numbers."""
        return "reward_range" not in self.takes


# --- shares of hits


def _accuracy(answers: Answers, stated: Stated) -> Scored:
    hits = answers.truth == answers.given
    most = float(np.bincount(np.asarray(answers.truth, dtype=np.int64)).max()) / len(hits)
    return Scored(Share(int(hits.sum()), len(hits)), "accuracy", "always predicting the majority class", most)


def _precision(answers: Answers, stated: Stated) -> Scored:
    positive, label = _positive(answers, stated)
    truth, given = answers.truth == positive, answers.given == positive
    sample = Share(int((truth & given).sum()), int(given.sum()))
    return Scored(
        sample,
        f"precision for class {label}",
        f"always predicting {label}",
        float(truth.mean()),
        f"the number of rows that are predicted {label}: {sample.rows:,}",
    )


def _recall(answers: Answers, stated: Stated) -> Scored:
    positive, label = _positive(answers, stated)
    truth = answers.truth == positive
    sample = Share(int((truth & (answers.given == positive)).sum()), int(truth.sum()))
    given = f"the number of rows of class {label}: {sample.rows:,}"
    return Scored(sample, f"recall of class {label}", f"always predicting {label}", 1.0, given)


def _specificity(answers: Answers, stated: Stated) -> Scored:
    positive, label = _positive(answers, stated)
    truth = answers.truth != positive
    sample = Share(int((truth & (answers.given != positive)).sum()), int(truth.sum()))
    given = f"the number of rows of other classes: {sample.rows:,}"
    return Scored(sample, f"specificity for class {label}", f"never predicting {label}", 1.0, given)


def _overlap(answers: Answers, stated: Stated) -> tuple[Share, str, float]:
    positive, label = _positive(answers, stated)
    truth, given = answers.truth == positive, answers.given == positive
    return Share(int((truth & given).sum()), int((truth | given).sum())), label, float(truth.mean())


def _f1(answers: Answers, stated: Stated) -> Scored:
    share, label, prevalence = _overlap(answers, stated)
    sample = Share(share.hits, share.rows, f1_of_jaccard)
    given = f"the number of rows that are of class {label} or predicted to be: {share.rows:,}"
    return Scored(sample, f"F1 score for class {label}", f"always predicting {label}", f1_of_jaccard(prevalence), given)


def _jaccard(answers: Answers, stated: Stated) -> Scored:
    share, label, prevalence = _overlap(answers, stated)
    given = f"the number of rows that are of class {label} or predicted to be: {share.rows:,}"
    return Scored(share, f"Jaccard index for class {label}", f"always predicting {label}", prevalence, given)


def f1_of_jaccard(share: float) -> float:
    """F1 = 2J/(1 + J)."""
    return 2.0 * share / (1.0 + share)


def _balanced_accuracy(answers: Answers, stated: Stated) -> Scored:
    truth = np.asarray(answers.truth, dtype=np.int64)
    count = max(answers.known, int(truth.max()) + 1)
    rows = np.bincount(truth, minlength=count)
    hits = np.bincount(truth[truth == answers.given], minlength=count)
    there = (rows > 0) | (np.arange(count) < answers.known)
    sample = MeanOfShares(hits[there].astype(np.float64), rows[there].astype(np.float64))
    given = f"the number of rows of each of {len(sample.rows)} classes"
    if unseen := int((sample.rows == 0).sum()):
        given += f", {unseen} of which have none, so that nothing is known about their recalls"
    baseline = 1.0 / int((rows > 0).sum())
    return Scored(sample, "balanced accuracy", "always predicting the same class", baseline, given)


# --- means


def _brier(answers: Answers, stated: Stated) -> Scored:
    chances, truth = _chances(answers)
    actual = np.zeros_like(chances)
    inside = truth < chances.shape[1]  # a label that the model does not know has probability 0
    actual[np.flatnonzero(inside), truth[inside]] = 1.0
    losses = ((chances - actual) ** 2).sum(axis=1) + ~inside
    binary = chances.shape[1] == 2 and bool(inside.all())
    top = 1.0 if binary else 2.0  # halved for two classes, as in scikit-learn
    frequencies = np.bincount(truth) / len(truth)
    baseline = (0.5 if binary else 1.0) * float(1.0 - (frequencies**2).sum())
    sample = Mean(np.clip(losses * (0.5 if binary else 1.0), 0.0, top), 0.0, top)
    return Scored(sample, "Brier score", "always predicting the frequencies of the classes", baseline)


def _log_loss(answers: Answers, stated: Stated) -> Scored:
    chances, truth = _chances(answers)
    clip = CLIP if stated.clip is None else stated.clip
    if not 0.0 < clip < 1.0:
        raise InvalidInput(f"clip must lie strictly between 0 and 1, got {shown(stated.clip)}")
    own = np.zeros(len(truth))
    inside = truth < chances.shape[1]
    own[inside] = chances[np.flatnonzero(inside), truth[inside]]
    frequencies = np.bincount(truth) / len(truth)
    frequencies = frequencies[frequencies > 0.0]
    baseline = -float((frequencies * np.log(np.maximum(frequencies, clip))).sum())
    top = -math.log(clip)
    sample = Mean(np.clip(-np.log(np.maximum(own, clip)), 0.0, top), 0.0, top)
    words = f"log-loss, with probabilities below {clip:g} counted as {clip:g},"
    return Scored(sample, words, "always predicting the frequencies of the classes", baseline)


def _squared_error(answers: Answers, stated: Stated) -> Scored:
    losses = np.asarray((answers.given - answers.truth) ** 2, dtype=np.float64)
    return _regression(losses, stated, "mean squared error", "the mean", float(np.var(answers.truth)))


def _absolute_error(answers: Answers, stated: Stated) -> Scored:
    centre = float(np.median(answers.truth))
    baseline = float(np.abs(answers.truth - centre).mean())
    losses = np.asarray(np.abs(answers.given - answers.truth), dtype=np.float64)
    return _regression(losses, stated, "mean absolute error", "the median", baseline)


def _regression(losses: Array, stated: Stated, words: str, constant: str, baseline: float) -> Scored:
    if stated.reward_range is None:
        raise AssumptionsMissing(
            f"a {words} has no bound without a range: state reward_range=(0, high), where no single loss on new rows "
            f"can exceed high; {STATEMENTS}"
        )
    low, high = stated.reward_range
    outside = (losses < low) | (losses > high)
    if outside.any():
        at = int(np.argmax(outside))
        raise InvalidInput(
            f"the loss of row {at} is {losses[at]:g}, outside reward_range ({low:g}, {high:g}), which must contain "
            "every single loss; losses are ≥ 0, whatever the sign of the scorer"
        )
    given = f"that every single loss lies in [{low:g}, {high:g}]"
    return Scored(Mean(losses, low, high), words, f"always predicting {constant} of y", baseline, given)


# --- rankings


def _area(answers: Answers, stated: Stated) -> Scored:
    if len(answers.classes) != 2:
        raise InvalidInput(f"the area under the ROC curve is about two classes, got {shown(answers.classes)}")
    scores = np.asarray(answers.given, dtype=np.float64)
    if scores.ndim == 2 and scores.shape[1] == 2:
        scores = scores[:, 1]
    if scores.ndim != 1 or not np.isfinite(scores).all():
        raise InvalidInput(f"there must be one finite score per row, got {shown(answers.given)}")
    above = answers.truth == 1
    high, low = scores[above], np.sort(scores[~above])
    if not len(high) or not len(low):
        raise InvalidInput("the area under the ROC curve needs fresh rows of both classes")
    wins = np.searchsorted(low, high, "left") + np.searchsorted(low, high, "right")
    sample = Ranking(float(wins.sum()) / (2.0 * len(high) * len(low)), min(len(high), len(low)))
    given = f"the number of rows of the two classes: {len(low):,} and {len(high):,}"
    return Scored(sample, "area under the ROC curve", "giving all rows the same score", 0.5, given)


def _positive(answers: Answers, stated: Stated) -> tuple[int, str]:
    """The positive class, as a number and in words."""
    if stated.pos_label is None and len(answers.classes) > 2:
        raise InvalidInput(f"which of the {len(answers.classes)} classes is it about? State pos_label=…")
    label = 1 if stated.pos_label is None else stated.pos_label
    try:
        return answers.classes.index(label), shown(label)
    except ValueError:
        what = "state which class is the positive one, pos_label=…" if stated.pos_label is None else "no such class"
        raise InvalidInput(f"{what}: got pos_label={shown(stated.pos_label)} and {shown(answers.classes)}") from None


def _chances(answers: Answers) -> tuple[Array, Codes]:
    chances = np.asarray(answers.given, dtype=np.float64)
    if chances.ndim != 2 or chances.shape[1] != answers.known:
        raise InvalidInput(
            f"predict_proba must have one column for each of {answers.known} classes, got shape {chances.shape}"
        )
    if not ((chances >= 0.0) & (chances <= 1.0)).all() or np.abs(chances.sum(axis=1) - 1.0).max() > 1e-3:
        raise InvalidInput("the probabilities of a row must lie in [0, 1] and sum to 1")
    return chances, np.asarray(answers.truth, dtype=np.int64)


_POSITIVE = frozenset({"pos_label"})
_CHANCES = ("predict_proba",)
MEASURES: dict[str, Measure] = {
    "accuracy": Measure(_accuracy),
    "balanced_accuracy": Measure(_balanced_accuracy),
    "precision": Measure(_precision, takes=_POSITIVE),
    "recall": Measure(_recall, takes=_POSITIVE),
    "specificity": Measure(_specificity, takes=_POSITIVE),
    "f1": Measure(_f1, takes=_POSITIVE),
    "jaccard": Measure(_jaccard, takes=_POSITIVE),
    "roc_auc": Measure(_area, ("decision_function", "predict_proba")),
    "neg_brier_score": Measure(_brier, _CHANCES, is_loss=True),
    "neg_log_loss": Measure(_log_loss, _CHANCES, is_loss=True, takes=frozenset({"clip"})),
    "neg_mean_squared_error": Measure(_squared_error, is_loss=True, takes=frozenset({"reward_range"})),
    "neg_mean_absolute_error": Measure(_absolute_error, is_loss=True, takes=frozenset({"reward_range"})),
}
