"""Certificates: a lower bound for the recommended action, an upper bound on the optimum, and the proof of both."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mixbandit._checks import Array, one_of, shown
from mixbandit._words import confidence
from mixbandit.actions import Box, Region
from mixbandit.errors import InvalidInput
from mixbandit.models import box_model
from mixbandit.search import (
    MOST_CORNERS,
    Advantage,
    Pessimism,
    Reach,
    bound_over_box,
    can_bound,
    free_dimensions,
    search_box,
)
from mixbandit.sequences import Belief, Moment, as_moment
from mixbandit.spending import Ledger, Spending

PROOFS = ("enumerated", "branch-and-bound", "range", "search")
# Branch and bound stops when it adds no more than this share to the gap.
_SHARE_OF_GAP = 0.05
_MAX_EVALUATIONS = 200_000
# An evaluation takes about as many steps as a decomposition has entries; this limit on all of them is a few seconds.
_MOST_STEPS = 2_000_000_000
# Differences of this many directions are bounded at once.
_CHUNK = 10_000
# Lower bounds that differ by less than this, relative to their size, tie.
TIE_TOLERANCE = 1e-9
# A rough guide says how many rewards make the interval this share of what is known without any.
_WORTH_HAVING = 0.5


@dataclass(frozen=True)
class Certificate:
    """With probability ≥ 1−δ, for all certificates of a sequence at once: `action` is worth at least `lower`, and
    no action is worth more than `optimum_upper`, or more than `gap` above `action`.

    This holds under `assumptions`. The statement about other actions holds only if `proven`: a search over a box may
    miss the largest upper bound, so its certificate says what is likely and is never a reason to stop.
    """

    action: Any  # the recommended action: a row, or a dict of parameters
    lower: float
    upper: float
    optimum_upper: float
    gap: float
    proof: str  # "enumerated", "branch-and-bound", "range" or "search"
    label: Hashable = None
    t: int = 0  # the number of rewards it is based on
    delta: float = 0.0
    optimum_found: float | None = None  # the largest upper bound a search found: how loose the proof may be
    guarantee: str = "anytime"
    trusted: bool = True  # False: the data refute the assumptions, and nothing is guaranteed
    assumptions: str = ""  # the stated assumptions, which are not proven
    model: str = "expected rewards linear in the features"  # what is assumed of the function, in words
    vacuous: bool = False  # True: neither `lower` nor `gap` says more than was known without any reward
    needs: int | None = None  # if vacuous, roughly how many more rewards halve what was known; None without rewards
    ledgers: tuple[Ledger, ...] = field(default=(), repr=False)  # how δ is divided, for each claim

    @property
    def interval(self) -> tuple[float, float]:
        """An interval for the expected reward of `action`."""
        return self.lower, self.upper

    @property
    def proven(self) -> bool:
        """Whether the statement about the optimum holds with probability ≥ 1−δ under the stated assumptions."""
        return self.trusted and self.guarantee == "anytime" and self.proof != "search"

    def __str__(self) -> str:
        name = f"{self.label!r}" if self.label is not None else _shown(self.action)
        how = {
            "enumerated": "every arm was checked",
            "branch-and-bound": "by branch and bound over the box",
            "range": "by the stated range of rewards",
            "search": "NOT PROVEN: the largest a search found; some action may be worth more",
        }[self.proof]
        if self.proven:
            how = f"proven: {how}" if self.proof == "enumerated" else f"proven {how}"
        lines = [
            f"Worth at least {self.lower:.4g}: {name}, based on {self.t} reward{'' if self.t == 1 else 's'}.",
            f"Its expected reward lies in [{self.lower:.4g}, {self.upper:.4g}].",
            f"No action is worth more than {self.optimum_upper:.4g} ({how}).",
            "Nothing rules out a better one."
            if self.proof == "range" and reaches(self.gap, self.optimum_upper - self.lower)
            else f"Compared directly, no action beats this one by more than {self.gap:.4g}.",
        ]
        if self.vacuous and self.trusted:
            lines.insert(0, f"Vacuous: as much was known without any reward. {_outlook(self)}")
        if not self.trusted:
            return "\n".join(["WARNING: the data refute the stated assumptions; none of this is guaranteed:", *lines])
        if self.guarantee != "anytime":
            lines.append("The bounds are Bayesian: right on average over the prior, not guaranteed for this problem.")
            return "\n".join(lines)
        what = "The first two lines hold" if self.proof == "search" else "All of this holds"
        lines.append(f"{what} at all times at once with probability at least {confidence(self.delta)},")
        lines.append(f"given {self.assumptions or 'all that was stated'}, and {self.model}.")
        return "\n".join(lines)


def certificate(
    moment: Belief[Any],
    region: Region,
    rng: np.random.Generator,
    *,
    proof: str | None = None,
    warm: Array | None = None,
) -> Certificate:
    """Certify the action of `region` with the largest lower bound.

    `proof` requires one kind of proof for a box: "branch-and-bound", "range" or "search". `warm`, actions (m, dim_in),
    are additional starting points of the search.
    """
    if proof is not None:
        one_of(proof, PROOFS, "proof")
    if region.rows is not None:
        found = _over_arms(moment, region.rows, region.labels)
    else:
        found = _over_box(as_moment(moment), region, rng, proof, warm)
    if proof not in (None, found.proof) and not (proof == "enumerated" and region.rows is not None):
        raise InvalidInput(f"over {shown(region)} the optimum is bounded by {found.proof}, not by {proof}")
    return found


def _over_arms(moment: Belief[Any], rows: Array, labels: Sequence[Hashable] | None) -> Certificate:
    directions = moment.directions(rows)
    parts = [moment.interval(directions[i : i + _CHUNK]) for i in range(0, len(directions), _CHUNK)]
    lower, upper = (np.concatenate([getattr(part, end) for part in parts]) for end in ("lower", "upper"))
    contradicts = any(part.contradicts for part in parts)
    best = _first(moment, directions, lower)
    at_least, optimum = float(lower[best]), float(upper.max())
    gap = min(largest_difference(moment, directions, directions[best]), optimum - at_least)
    high = moment.response.highest
    by_range = high is not None and reaches(optimum, high) and reaches(gap, optimum - at_least)
    own = directions[best : best + 1]

    def known(blank: Belief[Any]) -> float:
        return largest_difference(blank, directions, own[0])

    return Certificate(
        action=rows[best].copy(),
        label=None if labels is None else labels[best],
        lower=at_least,
        upper=float(upper[best]),
        optimum_upper=optimum,
        optimum_found=optimum,
        gap=max(gap, 0.0),
        proof="range" if by_range else "enumerated",
        trusted=moment.is_trusted and not contradicts,
        **_stamp(moment),
        **_vacuity(moment, own, at_least, gap, known),
    )


def _over_box(moment: Moment, box: Box, rng: np.random.Generator, proof: str | None, warm: Array | None) -> Certificate:
    best = search_box(Pessimism(moment.exact), box_model(moment.model), box, rng, warm=warm).action
    own = moment.directions(best[None])
    lower, upper, contradicts = moment.interval(own)
    at_least, low = float(lower[0]), moment.response.lowest
    if moment.t and low is not None and at_least <= low:
        # The floors of all actions tie at the end of the range; the action that looks best has as good a one.
        best = search_box(moment.closed_form.scaled(0.0), box_model(moment.model), box, rng, warm=warm).action
        own = moment.directions(best[None])
        lower, upper, contradicts = moment.interval(own)
        at_least = float(lower[0])
    optimum = bound_optimum(moment, box, rng, at_least=at_least, proof=proof, warm=warm)
    gap = optimum.upper - at_least
    if _branches(moment, box, proof):
        proven = _branch(moment, box, own[0], optimum.action, optimum.tolerance)
        gap = min(gap, moment.response.difference(proven))

    def known(blank: Moment) -> float:
        found = search_box(Advantage(blank.exact, own[0]), box_model(blank.model), box, rng)
        return blank.response.difference(found.value)

    return Certificate(
        action=best,
        lower=at_least,
        upper=float(upper[0]),
        optimum_upper=optimum.upper,
        optimum_found=optimum.found,
        gap=max(gap, 0.0),
        proof=optimum.proof,
        trusted=moment.is_trusted and not contradicts,
        **_stamp(moment),
        **_vacuity(moment, own, at_least, gap, known),
    )


def reaches(bound: float, end: float) -> bool:
    """Whether a bound says no more than this end, up to rounding."""
    return bound >= end - TIE_TOLERANCE * max(abs(end), abs(bound))


def _first(moment: Belief[Any], directions: Any, lower: Array) -> int:
    """The arm with the largest lower bound; of those that tie, as at the end of a range, the one that looks best."""
    most = float(lower.max())
    tied = np.flatnonzero(lower >= most - TIE_TOLERANCE * abs(most))
    if len(tied) == 1:
        return int(tied[0])
    return int(tied[np.argmax(moment.estimate.maximum(directions[tied]))])


def _vacuity(
    moment: Belief[Any], own: Any, lower: float, gap: float, known_gap: Callable[[Any], float]
) -> dict[str, Any]:
    """Whether `lower` and `gap` of the direction `own` (1, d) say no more than was known without any reward.

    If so, and if there are rewards, also how many more are needed by the law 1/√t: those that make the interval of the
    closed form, which nothing limits, half of what was known.
    """
    if not moment.t:
        return {"vacuous": True}
    blank = moment.blank()
    low, high = (float(end[0]) for end in blank.interval(own)[:2])
    slack = TIE_TOLERANCE * (high - low)
    if not high > low or not lower <= low + slack:
        return {}
    most, limits = known_gap(blank), blank.response.range
    if limits is not None:
        most = min(most, limits[1] - low)
    if not gap >= most - slack:
        return {}
    minimum, maximum = moment.closed_form.interval(own)
    excess = float(maximum[0] - minimum[0]) / (_WORTH_HAVING * (high - low))
    more = moment.t * (max(excess, 1.0 / _WORTH_HAVING) ** 2 - 1.0)
    return {"vacuous": True, "needs": math.ceil(more) if math.isfinite(more) else None}


def _outlook(vacuous: Certificate) -> str:
    if vacuous.needs is None:
        return "No reward has been told yet." if not vacuous.t else "How many more rewards it needs is not known."
    return f"As a rough guide, about {float(f'{vacuous.needs:.1g}'):,.0f} more rewards would halve its interval."


def largest_difference(moment: Belief[Any], directions: Any, own: Any) -> float:
    """A bound on how much more any direction is worth than `own`.

    The maximum of (φ' − φ)ᵀθ over one θ, which never exceeds the difference of an upper and a lower bound.
    """
    parts = (directions[i : i + _CHUNK] for i in range(0, len(directions), _CHUNK))
    return moment.response.difference(max(float(moment.exact.maximum(part - own).max()) for part in parts))


@dataclass(frozen=True)
class Optimum:
    """An upper bound on the expected reward of any action of a box."""

    upper: float
    proof: str
    found: float  # the largest upper bound a search found, at `action`
    action: Array
    tolerance: float  # how much larger than necessary the bound may be


def bound_optimum(
    moment: Moment,
    box: Box,
    rng: np.random.Generator,
    *,
    at_least: float,
    proof: str | None = None,
    warm: Array | None = None,
) -> Optimum:
    """Bound the expected reward of every action of the box, given that some action is worth `at_least`."""
    top = search_box(moment.exact, box_model(moment.model), box, rng, warm=warm).action
    found = float(moment.upper(moment.directions(top[None])).values[0])
    tolerance = _SHARE_OF_GAP * max(found - at_least, 1e-9 * (1.0 + abs(found)))
    high = moment.response.highest if proof in (None, "range") else None
    if high is not None and found >= high:  # nothing smaller can be proven
        return Optimum(high, "range", found, top, tolerance)
    if _branches(moment, box, proof):
        maximum = _branch(moment, box, None, top, tolerance)
        upper = moment.response.most(maximum)
        how = "range" if high is not None and upper >= high else "branch-and-bound"
        return Optimum(upper, how, found, top, tolerance)
    if high is not None:
        return Optimum(high, "range", found, top, tolerance)
    return Optimum(found, "search", found, top, tolerance)


def _branches(moment: Moment, box: Box, proof: str | None) -> bool:
    """Whether to prove the optimum by branch and bound: if it is possible, and either requested or cheap."""
    possible = moment.rule.reach is not None and can_bound(box_model(moment.model), box)
    low_dimensional = free_dimensions(box) <= MOST_CORNERS
    return possible and (proof == "branch-and-bound" or (proof is None and low_dimensional))


def _branch(moment: Moment, box: Box, own: Any, start: Array, tolerance: float) -> float:
    """A proven bound on (φ(a) − own)ᵀθ* over the box; without `own`, on φ(a)ᵀθ*."""
    assert moment.rule.reach is not None
    axes = box_model(moment.model).axes()
    entries = None if axes is None else np.maximum(moment.exact.maximum(axes), moment.exact.maximum(-axes))
    score = moment.exact if own is None else Advantage(moment.exact, own)
    entries_seen = max(moment.data.spectrum.width, 1) * max(moment.data.spectrum.rank, 1)
    return bound_over_box(
        score.maximum,
        Reach(moment.rule.reach, entries),
        box_model(moment.model),
        box,
        start=start,
        tolerance=tolerance,
        max_evaluations=min(_MAX_EVALUATIONS, _MOST_STEPS // entries_seen),
    ).upper


def _stamp(moment: Belief[Any]) -> dict[str, Any]:
    known = {"t": moment.t, "delta": moment.delta, "guarantee": moment.guarantee, "assumptions": moment.stated()}
    whole = Spending(moment.delta)
    how = "at all times at once" if moment.guarantee == "anytime" else "6/(π(t+1))² of it after t rewards"
    ledger = whole.ledger("a bound is ever wrong", whole.line("the set of parameters", how))
    return {**known, "model": moment.model.given, "ledgers": (ledger,)}


def _shown(action: Any) -> str:
    return np.array2string(action, precision=4, threshold=8) if isinstance(action, np.ndarray) else f"{action}"
