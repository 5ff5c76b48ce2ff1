"""Which configuration to recommend, and the certificate that goes with it."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import numpy as np

from mixbandit._checks import Array
from mixbandit._rows import distinct_rows
from mixbandit.actions import Arms
from mixbandit.bandits.choosing import READING_SEED
from mixbandit.certificates import Certificate, certificate, reaches
from mixbandit.errors import InvalidInput
from mixbandit.models import box_model
from mixbandit.search import Pessimism, search_box
from mixbandit.tuning.default_model import in_words
from mixbandit.tuning.judgement import Ends, Judgement
from mixbandit.tuning.ledgers import ledgers
from mixbandit.tuning.possible import still_possible

# A tried configuration is preferred to an untried one whose floor is higher by no more than this share of its interval:
# about it the model cannot be wrong unnoticed. Among tried ones, the one that was tried more often, within less.
_TRIED_IS_WORTH, _OFTEN_IS_WORTH = 1.0, 0.1


def certificate_fields(
    judgement: Judgement,
    rng: np.random.Generator,
    *,
    warm: Array | None = None,
    among: Array | None = None,
    tried: bool = False,
) -> dict[str, Any]:
    """The fields of a `StudyCertificate`, about one of the rows `among`, or one that was `tried`, or any."""
    found = _by_model(judgement, rng, warm)
    top = _top(judgement, found)
    row, ends = _recommended(judgement, found.action, among, tried)
    same = np.array_equal(row, found.action)
    gap = min(found.gap if same else math.inf, top - ends.lower)
    seed = int(rng.integers(2**63))
    trusted = found.trusted and judgement.trusted
    known = {field.name: getattr(found, field.name) for field in dataclasses.fields(Certificate)}
    by_range = _is_end_of_range(judgement, top) and reaches(gap, top - ends.lower)
    vacuous = found.vacuous and ends.lower <= found.lower + judgement.shift  # trials of its own may say more
    return {
        **known,
        "action": judgement.given(row),
        "lower": ends.lower,
        "upper": ends.upper,
        "optimum_upper": top,
        "optimum_found": None if found.optimum_found is None else found.optimum_found + judgement.shift,
        "gap": max(gap, 0.0),
        "proof": "range" if by_range else found.proof,
        "t": judgement.moment.t,
        "delta": judgement.assumptions.delta,
        "ledgers": ledgers(judgement),
        "assumptions": _stated(judgement),
        "model": in_words(judgement.moment.model, judgement.space),
        "trusted": trusted,
        "vacuous": vacuous,
        "needs": found.needs if vacuous else None,
        "direction": judgement.assumptions.direction or "maximize",
        "evidence": ends.evidence,
        "tried": judgement.tried(row),
        "judgement": judgement,
        "search_possible": functools.partial(still_possible, judgement.bounding, judgement.space, row, seed)
        if trusted
        else None,
        "audit": judgement.audit(),
    }


def _stated(judgement: Judgement) -> str:
    """What is assumed of values, in words."""
    known, levels = judgement.assumptions, None if judgement.own is None else judgement.own.trials.levels
    if levels is None:
        return str(known)
    return f"{known} (noise levels told with single values: {levels.min():.4g} to {levels.max():.4g})"


def _by_model(judgement: Judgement, rng: np.random.Generator, warm: Array | None) -> Certificate:
    rows = judgement.everything
    return certificate(judgement.bounding, judgement.space.region if rows is None else Arms(rows), rng, warm=warm)


def _top(judgement: Judgement, found: Certificate) -> float:
    """No configuration is worth more: where each can be looked at, their own trials count as well."""
    top = found.optimum_upper + judgement.shift
    if judgement.everything is None or judgement.own is None or not judgement.trusted:
        return top
    return min(top, max(ends.upper for ends in judgement.ends(judgement.everything)))


def _is_end_of_range(judgement: Judgement, worth: float) -> bool:
    """Whether a bound on worths says no more than the stated range."""
    ends = judgement.assumptions.reward_range
    return ends is not None and reaches(worth, ends[1] if judgement.assumptions.sign > 0.0 else -ends[0])


def safest(judgement: Judgement, warm: Array | None, tried: bool = False, among: Array | None = None) -> Array:
    """The configuration with the best guaranteed worth: what a certificate recommends, of the same ones."""
    return _recommended(judgement, safest_by_model(judgement, warm), among, tried)[0]


def safest_by_model(judgement: Judgement, warm: Array | None = None) -> Array:
    """The configuration with the best lower bound of the model, tried or not."""
    # The same search as the certificate's, so that it is about the same configuration.
    rng = np.random.default_rng(READING_SEED)
    if judgement.everything is not None:
        return np.asarray(_by_model(judgement, rng, warm).action)
    score = Pessimism(judgement.bounding.exact)
    return search_box(score, box_model(judgement.bounding.model), judgement.space.region, rng, warm=warm).action


def likeliest(judgement: Judgement, tried: bool = False) -> Array:
    """The configuration with the best estimate."""
    if not tried:
        return judgement.best_estimate()
    rows = _tried_rows(judgement)
    return np.asarray(rows[int(np.argmax(judgement.estimates(rows)))])


def _tried_rows(judgement: Judgement) -> Array:
    if judgement.own is None:
        raise InvalidInput("tried=True needs the trials themselves, and this tuner kept only what it learnt from them")
    return judgement.own.distinct


def _recommended(judgement: Judgement, best: Array, among: Array | None, tried: bool) -> tuple[Array, Ends]:
    """The configuration with the best guaranteed worth, given the best by the model."""
    rows = [] if among is not None or tried else [judgement.space.snapped(best)[None]]
    if among is not None:
        rows.append(distinct_rows(among).rows)
    elif tried:
        rows.append(_tried_rows(judgement))
    elif judgement.own is not None:
        rows.append(judgement.own.promising())
    candidates = np.concatenate(rows)
    ends = judgement.ends(candidates)
    lower = np.array([each.lower for each in ends])
    tries = np.array([judgement.tried(row) for row in candidates])
    first = int(np.argmax(lower))
    if not tries[first] and tries.any():
        known = int(np.argmax(np.where(tries > 0, lower, -np.inf)))
        enough = lower[first] - _TRIED_IS_WORTH * (ends[first].upper - lower[first])
        first = known if lower[known] >= enough else first
    slack = _OFTEN_IS_WORTH * (ends[first].upper - lower[first]) if tries[first] else 0.0
    close = np.flatnonzero((lower >= lower[first] - slack) & (tries >= tries[first]))
    chosen = max(close.tolist(), key=lambda i: (tries[i], lower[i]))
    return candidates[chosen], ends[chosen]
