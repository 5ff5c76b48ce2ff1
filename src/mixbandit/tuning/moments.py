"""What a certificate would have guaranteed at earlier moments of the same run.

Bounds hold at all times at once. So everything here holds together with the certificate itself: no further δ is spent.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from mixbandit._checks import positive_int
from mixbandit.errors import InvalidInput
from mixbandit.sequences import learnt
from mixbandit.tuning.judgement import Judgement
from mixbandit.tuning.recommending import safest
from mixbandit.tuning.study_certificate import StudyCertificate


class Floor(NamedTuple):
    """What was guaranteed after the first `trials` values of a run, about what would have been recommended then."""

    trials: int
    interval: tuple[float, float]  # of the expected value
    guaranteed: float  # the end of it that is guaranteed: the lower one, or the upper one if the smallest value is best
    parameters: dict[str, Any]
    tried: int  # how often it had been tried
    trusted: bool  # False: by then the values had refuted the assumptions


def floors_over_time(
    certificate: StudyCertificate,
    *,
    looks: int = 12,
    progress: Callable[[int], None] = lambda trials: None,
) -> list[Floor]:
    """The guaranteed value after some prefixes of a certificate's run, in order of play; the last is the certificate's.

    `looks` is how many prefixes to look at, at most. Before the first trial that satisfies the constraints, if there
    are any, nothing is recommended, and there is no floor. `progress` is called with the number of trials after each
    look. If the order of play is not known, only the whole run is.
    """
    positive_int(looks, "looks")
    judgement = certificate.judgement
    if judgement is None or judgement.own is None:
        raise InvalidInput("this certificate was made by hand and knows nothing about its run")
    trials, known = judgement.own.trials, judgement.assumptions
    rewards = known.reward(trials.values)
    if judgement.moment.rule.value_range is not None:
        rewards = np.clip(rewards, *judgement.moment.rule.value_range)  # beyond it by rounding only
    # The same sequence as the certificate's, from its beginning: another kind of model would need a δ of its own.
    moment = judgement.moment.with_data(judgement.moment.rule.start())
    found: list[Floor] = []
    ends = _ends(len(rewards), looks) if trials.ordered else []
    for start, end in itertools.pairwise([0, *ends[:-1]]):
        levels = None if trials.levels is None else trials.levels[start:end]
        moment = learnt(moment, trials.rows[start:end], rewards[start:end], levels)
        seen = trials.first(end)
        if seen.feasible is None or seen.feasible.any():
            found.append(_floor(certificate, Judgement(judgement.space, known, moment, seen)))
        progress(end)
    return [*found, _last(certificate)]


def _ends(n: int, looks: int) -> list[int]:
    """Lengths of prefixes, the last of them n: denser at the beginning, where more changes and looks are cheap."""
    return sorted({int(np.ceil(n * (i / looks) ** 2)) for i in range(1, looks + 1)})


def _floor(certificate: StudyCertificate, before: Judgement) -> Floor:
    assert before.own is not None
    rows, feasible, n = before.own.trials.rows, before.own.trials.feasible, len(before.own.trials.values)
    best = rows[np.argsort(-before.assumptions.sign * before.own.trials.values, kind="stable")[:5]]
    row = safest(before, best, among=None if feasible is None else rows[feasible])
    worth = before.of_row(row)
    after = certificate.refuted_after
    unknown = after is None and not certificate.trusted  # since when is not known
    trusted = worth.trusted and not unknown and (after is None or n < after)
    guaranteed = worth.lower if before.assumptions.sign > 0.0 else worth.upper
    return Floor(n, worth.interval, guaranteed, before.given(row), worth.trials, trusted)


def _last(certificate: StudyCertificate) -> Floor:
    low, high = certificate.interval
    guaranteed = low if certificate.direction == "maximize" else high
    parameters = certificate.parameters
    return Floor(certificate.t, (low, high), guaranteed, parameters, certificate.tried, certificate.trusted)
