"""Many decisions at one moment, as arrays: no choices are registered, nothing is pending, nothing changes."""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixbandit._checks import Array, as_float_array, as_rows, check_finite, shown
from mixbandit.actions import Arms, Region, as_region, is_region
from mixbandit.bandits import persistent
from mixbandit.bandits.choice import Choice, Known, fixed
from mixbandit.bandits.history import Chosen
from mixbandit.bandits.rules import ActingRule, View
from mixbandit.bandits.state import State
from mixbandit.errors import InvalidInput
from mixbandit.search import Shares, Stream, best_arms

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
    probability: Array | None = None  # (n,), with which each arm was chosen; None where nobody knows it


class Offers:
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

    def arms_of(self, decision: int) -> Array:
        """The arms of one decision, without its context, (K, m)."""
        found: Array = self._arms[decision] if self._arms.ndim == 3 else self._arms
        return found

    def chunks(self, dim: int) -> Iterator[tuple[int, int]]:
        """Ranges of decisions whose features fit in memory."""
        size = max(_CHUNK // (self.arms * max(dim, self.width)), 1)
        return ((first, min(first + size, self.count)) for first in range(0, self.count, size))


def as_offers(
    width: int | None, own: Region | None, contexts: ArrayLike | None, arms: Region | ArrayLike | None
) -> Offers:
    """The arguments of `choose_many`, checked; rows are `width` long."""
    assert width is not None  # settled when the policy was made
    region = own if arms is None else arms if is_region(arms) else None
    if arms is None or region is not None:
        if region is None or region.rows is None:
            raise InvalidInput(f"choose_many needs arms, got {shown(region)}")
        rows: Array = region.rows
    else:
        rows = as_float_array(arms, "arms")  # type: ignore[arg-type]
        if rows.ndim != 3:
            rows = as_region(rows, "arms").rows  # type: ignore[assignment]
        if not rows.size:
            raise InvalidInput(f"arms must have shape (n, K, dim) with no length 0, got {rows.shape}")
        check_finite(rows, "arms")
    missing = width - rows.shape[-1]
    if contexts is None:
        if missing:
            raise InvalidInput(f"arms have dimension {rows.shape[-1]}, but the features take {width}: pass contexts")
        return Offers(None, rows if rows.ndim == 3 else rows[None])
    if missing <= 0:
        raise InvalidInput(f"the features take {width} inputs: actions of {rows.shape[-1]} leave no room for contexts")
    before = as_rows(contexts, missing, "contexts")
    if rows.ndim == 3 and len(rows) != len(before):
        raise InvalidInput(
            f"there must be one set of arms per context, got {len(rows)} sets for {len(before)} contexts"
        )
    return Offers(before, rows)


def decide(
    state: State, rule: ActingRule, offers: Offers, *, track_regret: bool = False, recorded: bool = False
) -> tuple[Decisions, list[Shares | None]]:
    """The decisions of a rule at one moment; and, if they are to be recorded, the probabilities of all arms."""
    moment, dim = state.moment, state.moment.model.dim or 1
    # What is not recorded leaves no trace but the rewards learnt from it, which so decide on new random numbers.
    entropy = (state.seed, state.rounds) if recorded else (state.seed, state.rounds, moment.t, 1)
    rng, number = Stream(entropy), state.rounds if recorded else max(state.rounds, moment.t)
    view = View(moment, number + 1, state.predictor)
    some = np.empty(0)
    nothing: Any = (np.empty(0, dtype=np.int64), some, some, np.empty((0, offers.width)), some, some)
    parts, contradicts = [nothing], False
    shares: list[Shares | None] = []
    for first, last in offers.chunks(dim):
        rows = offers.rows(first, last)
        flat = np.ascontiguousarray(rows).reshape(-1, offers.width)
        all_directions = moment.directions(flat)
        selected = rule.select_many(view, flat, all_directions, offers.arms, rng)
        selected = selected.fitting(last - first, offers.arms)
        optimum = selected.optimum if rule.bounds_optimum else None
        if optimum is None and track_regret:
            optimum = best_arms(rule.reported(moment), all_directions, offers.arms)[1]
        if recorded:
            shares += selected.shares()
        indices = selected.drawn(rng)
        chosen = rows[np.arange(len(rows)), indices]
        directions = moment.directions(chosen)
        moment.model.check_learnable(directions)
        found = moment.interval(directions, rule.reported(moment))
        contradicts |= found.contradicts
        parts.append((indices, found.lower, found.upper, chosen, optimum, selected.probability(indices)))
    columns: list[Any] = list(zip(*parts, strict=True))
    trusted = not (state.refuted or contradicts or moment.is_refuted)
    played, low, high, taken = (np.concatenate(column) for column in columns[:4])
    largest, probability = (
        None if any(part is None for part in column) else np.concatenate(column) for column in columns[4:]
    )
    return Decisions(played, low, high, taken, largest, trusted, probability), shares


def registered(
    state: State,
    labels: Sequence[Hashable] | None,
    offers: Offers,
    decided: tuple[Decisions, list[Shares | None]],
    run: str,
    *,
    track_regret: bool,
    remembered: bool,
) -> tuple[list[Choice], State]:
    """Decisions among arms as choices whose rewards will be told, and the state in which they are pending."""
    (found, shares), before, now = decided, offers.width - offers.action_width, time.time()
    widths: list[float | None] = [None] * offers.count
    if track_regret and found.optimum is not None:
        most = state.moment.response.upper(found.optimum).values
        widths = (np.maximum(most, found.upper) - found.lower).tolist()
    pending, history, choices = state.pending, state.history, []
    fixed(found.rows)
    ends = zip(found.indices.tolist(), found.lower.tolist(), found.upper.tolist(), widths, found.rows, strict=True)
    for place, (index, low, high, width, row) in enumerate(ends):
        choice = Choice(
            state.rounds + place,
            row[before:],
            None if labels is None else labels[index],
            index=index,
            context=row[:before] if before else None,
            given=Known(low, high, found.trusted, width),
            optimum=None if found.optimum is None else float(found.optimum[place]),
            run=run,
            time=now,
            shares=shares[place],
        )
        choices.append(choice)
        pending = persistent.put(pending, choice.number, choice)
        if remembered:
            chosen = Chosen(choice.row, Arms(offers.rows(place, place + 1)[0], labels))
            history = persistent.put(history, choice.number, chosen)
    # What is anticipated from now on starts with all of them.
    new = state._replace(
        pending=pending, history=history, rounds=state.rounds + offers.count, anticipated=None, crowd=None
    )
    return choices, new
