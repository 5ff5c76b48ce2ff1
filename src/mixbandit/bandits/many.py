"""Many decisions at one moment, as arrays: no choices are registered, nothing is pending, nothing changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixbandit._checks import Array, as_float_array, as_rows, check_finite, shown
from mixbandit.actions import Arms, Box, Region, as_region
from mixbandit.bandits import persistent
from mixbandit.bandits.choice import Choice, Known, fixed
from mixbandit.bandits.history import Chosen
from mixbandit.bandits.rules import ActingRule
from mixbandit.bandits.state import State
from mixbandit.errors import InvalidInput
from mixbandit.models import Model
from mixbandit.search import best_arms
from mixbandit.sequences import Moment

# Features of this many entries are computed at once.
_CHUNK = 2_000_000


class Decisions(NamedTuple):
    """One decision per row."""

    indices: NDArray[np.int64]  # (n,), of the chosen arms
    lower: Array  # (n,), lower bounds on their expected rewards
    upper: Array  # (n,), upper bounds
    rows: Array  # (n, dim_in), contexts and actions, for `learn`
    optimum: Array | None  # (n,), the largest upper bounds of all arms, where the rule computed them
    trusted: bool  # False if the data refute the assumptions, now or before: nothing is guaranteed then


class Offer:
    """What each of n decisions chooses from: K rows (context, action) each, made when they are needed."""

    def __init__(self, contexts: Array | None, arms: Array) -> None:
        """With contexts (n, k) and the same arms (K, m) for all, or with arms (n, K, m)."""
        self._contexts, self._arms = contexts, arms
        self.count = len(arms) if contexts is None else len(contexts)
        self.arms = arms.shape[-2]
        self.action_width = arms.shape[-1]
        self.width = self.action_width + (0 if contexts is None else contexts.shape[1])

    def rows(self, first: int, last: int) -> Array:
        """The rows of some decisions, (last − first, K, width)."""
        arms = self._arms[first:last] if self._arms.ndim == 3 else self._arms
        if self._contexts is None:
            return arms
        before = self._contexts[first:last, None, :]
        shape = (len(before), self.arms)
        parts = (np.broadcast_to(before, (*shape, before.shape[2])), np.broadcast_to(arms, (*shape, arms.shape[-1])))
        return np.concatenate(parts, axis=2)

    def chunks(self, dim: int) -> Iterator[tuple[int, int]]:
        """Ranges of decisions whose features fit in memory."""
        size = max(_CHUNK // (self.arms * max(dim, self.width)), 1)
        return ((first, min(first + size, self.count)) for first in range(0, self.count, size))


def as_offer(model: Model, own: Region | None, contexts: ArrayLike | None, arms: Region | ArrayLike | None) -> Offer:
    """The arguments of `choose_many`, checked."""
    width = model.dim_in
    assert width is not None  # settled when the policy was made
    if arms is None or isinstance(arms, Arms | Box):
        region = own if arms is None else arms
        if not isinstance(region, Arms):
            raise InvalidInput(f"choose_many needs arms, got {shown(region)}")
        rows: Array = region.actions
    else:
        rows = as_float_array(arms, "arms")
        if rows.ndim != 3:
            region = as_region(rows, "arms")
            assert isinstance(region, Arms)
            rows = region.actions
        if not rows.size:
            raise InvalidInput(f"arms must have shape (n, K, dim) with no length 0, got {rows.shape}")
        check_finite(rows, "arms")
    missing = width - rows.shape[-1]
    if contexts is None:
        if missing:
            raise InvalidInput(f"arms have dimension {rows.shape[-1]}, but the features take {width}: pass contexts")
        return Offer(None, rows if rows.ndim == 3 else rows[None])
    if missing <= 0:
        raise InvalidInput(f"the features take {width} inputs: actions of {rows.shape[-1]} leave no room for contexts")
    before = as_rows(contexts, missing, "contexts")
    if rows.ndim == 3 and len(rows) != len(before):
        raise InvalidInput(
            f"there must be one set of arms per context, got {len(rows)} sets for {len(before)} contexts"
        )
    return Offer(before, rows)


def decide(
    moment: Moment, rule: ActingRule, offer: Offer, seed: tuple[int, int], *, refuted: bool, track_regret: bool = False
) -> Decisions:
    """The decisions of a rule at one moment."""
    rng, dim = np.random.default_rng(seed), moment.model.dim or 1
    nothing: Any = (np.empty(0, dtype=np.int64), np.empty(0), np.empty(0), np.empty((0, offer.width)), np.empty(0))
    parts, contradicts = [nothing], False
    for first, last in offer.chunks(dim):
        rows = offer.rows(first, last)
        flat = np.ascontiguousarray(rows).reshape(-1, offer.width)
        all_directions = moment.directions(flat)
        indices, optimum = rule.select_many(moment, flat, all_directions, offer.arms, seed[1] + 1, rng)
        if optimum is None and track_regret:
            optimum = best_arms(rule.reported(moment), all_directions, offer.arms, rng)[1]
        chosen = rows[np.arange(len(rows)), indices]
        directions = moment.directions(chosen)
        moment.model.check_learnable(directions)
        found = moment.interval(directions, rule.reported(moment))
        contradicts |= found.contradicts
        parts.append((indices, found.lower, found.upper, chosen, optimum))
    columns: list[Any] = list(zip(*parts, strict=True))
    largest = None if any(part is None for part in columns[4]) else np.concatenate(columns[4])
    trusted = not (refuted or contradicts or moment.is_refuted)
    played, low, high, taken = (np.concatenate(column) for column in columns[:4])
    return Decisions(played, low, high, taken, largest, trusted)


def registered(
    state: State, arms: Any, offer: Offer, found: Decisions, run: str, *, track_regret: bool, remembered: bool
) -> tuple[list[Choice], State]:
    """Decisions among arms as choices whose rewards will be told, and the state in which they are pending."""
    labels = arms.labels if isinstance(arms, Arms) else None
    before = offer.width - offer.action_width
    widths: list[float | None] = [None] * offer.count
    if track_regret and found.optimum is not None:
        most = state.moment.response.upper(found.optimum).values
        widths = (np.maximum(most, found.upper) - found.lower).tolist()
    pending, history, choices = state.pending, state.history, []
    fixed(found.rows)
    ends = zip(found.indices.tolist(), found.lower.tolist(), found.upper.tolist(), widths, found.rows, strict=True)
    for number, (index, low, high, width, row) in enumerate(ends, state.rounds):
        known = Known(low, high, found.trusted, width)
        label = None if labels is None else labels[index]
        context = row[:before] if before else None
        choice = Choice(number, row[before:], label, index=index, context=context, given=known, run=run)
        choices.append(choice)
        pending = persistent.put(pending, number, choice)
        if remembered:
            place = number - state.rounds
            history = persistent.put(history, number, Chosen(choice.row, Arms(offer.rows(place, place + 1)[0], labels)))
    # What is anticipated from now on starts with all of them.
    new = state._replace(
        pending=pending, history=history, rounds=state.rounds + offer.count, anticipated=None, crowd=None
    )
    return choices, new
