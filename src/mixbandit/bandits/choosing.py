"""One decision: from a state and a region to choices and the next state."""

from __future__ import annotations

import itertools
import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixbandit._checks import Array
from mixbandit.actions import Region
from mixbandit.bandits import persistent
from mixbandit.bandits.choice import Choice, fixed
from mixbandit.bandits.crowd import Crowd
from mixbandit.bandits.history import Chosen
from mixbandit.bandits.rules import ActingRule, View, as_shares
from mixbandit.bandits.state import MOST_ROWS, Anticipated, Known, State
from mixbandit.errors import InvalidInput
from mixbandit.models import box_model
from mixbandit.search import THOROUGH, ArmsOffer, BoxOffer, Effort, Selection, Shares, Stream
from mixbandit.sequences import Belief, as_moment

# Read-only methods search with their own seed: looking must not change what is chosen next.
READING_SEED = 0
_ONE_BY_ONE = 64


class Turn(NamedTuple):
    """The input of a decision."""

    region: Region  # rows (context, action)
    context: Array | None
    directions: Any  # of arms; None on a box
    remembered: bool = False  # whether choices go into the history
    is_own: bool = True  # whether the region is the policy's own
    is_exact: bool = False  # whether each of the directions is, to the last digit, that of its row alone


class Picked(NamedTuple):
    """What was drawn from a selection."""

    row: Array
    arm: int | None = None  # its index, None on a box
    shares: Shares | None = None  # the probabilities of all arms; None on a box, and where nobody knows them


def offered(turn: Turn, belief: Belief[Any], warm: Array | None, effort: Effort) -> ArmsOffer | BoxOffer:
    """What can be chosen."""
    region = turn.region
    if region.is_box:
        return BoxOffer(region, box_model(as_moment(belief).model), warm, effort, turn.context)
    return ArmsOffer.of(region, turn.directions, turn.context)


def choose(
    state: State,
    rule: ActingRule,
    turn: Turn,
    effort: Effort,
    count: int,
    *,
    run: str,
    distinct: bool,
    track_regret: bool,
) -> tuple[list[Choice], State]:
    """`count` choices, and the state in which they are pending.

    Pending choices are treated as if they had returned their expected reward, so that the next one is something else
    worth trying.
    """
    belief, region, now = state.moment, turn.region, time.time()
    if count == 1 and not state.pending[1] and not region.is_box:
        return _choose_arm(state, rule, turn, run, now, track_regret=track_regret)
    rng, whole = Stream((state.seed, state.rounds)), offered(turn, belief, state.warm, effort)
    offer, left = whole, None  # left: the arms that may still be chosen, None for all
    taken = [choice.row for choice in persistent.values(state.pending)] if region.is_box else []
    state = crowded(state)
    anticipated = _anticipated(state)
    acting, expected = Known(belief, state.predictor) if anticipated is None else anticipated.known, anticipated
    choices: list[Choice] = []
    largest: float | None = None
    for number in range(state.rounds, state.rounds + count):
        found = rule.select(View(acting.belief, number + 1, acting.predictor), offer, rng)
        if track_regret:
            # From told rewards only: what the rule finds with anticipated ones does not count.
            largest = stated_optimum(rule, found) if acting.belief is belief else largest
            largest = largest_upper(state, rule, turn) if largest is None else largest
        picked = drawn(found, offer, rng, left, 0 if region.is_box else len(region))
        if region.is_box:
            picked = Picked(region.nudged(picked.row, taken, rng.generator))
            taken.append(picked.row)
        elif distinct and count > 1:
            # A box always has other actions nearby; arms may repeat once all are taken.
            left = np.arange(len(region)) if left is None else left
            left = left[left != picked.arm] if len(left) > 1 else np.arange(len(region))
            offer = whole.part(left)  # type: ignore[union-attr]
        choices.append(made(state, turn, number, picked, rule, largest, run, now))
        if number + 1 < state.rounds + count:
            expected = Anticipated(expecting(acting, choices[-1:]), number + 1)
            acting = expected.known
    return choices, with_choices(state, turn, choices, expected, whole.ends(state.warm))


def stated_optimum(rule: ActingRule, found: Selection) -> float | None:
    """The largest upper bound, if the rule is one whose word counts for that."""
    return found.optimum if rule.bounds_optimum else None


def _choose_arm(
    state: State, rule: ActingRule, turn: Turn, run: str, now: float, *, track_regret: bool
) -> tuple[list[Choice], State]:
    """The same for one arm while nothing is pending, in short."""
    region = turn.region
    offer = ArmsOffer.of(region, turn.directions, turn.context)  # type: ignore[arg-type]
    rng = Stream((state.seed, state.rounds))
    found = rule.select(View(state.moment, state.rounds + 1, state.predictor), offer, rng)
    optimum = None
    if track_regret:
        optimum = stated_optimum(rule, found)
        optimum = largest_upper(state, rule, turn) if optimum is None else optimum
    choice = made(state, turn, state.rounds, drawn(found, offer, rng), rule, optimum, run, now)
    return [choice], with_choices(state, turn, [choice], state.anticipated, state.warm)


def drawn(
    found: Selection, offer: ArmsOffer | BoxOffer, rng: Stream, left: NDArray[np.int64] | None = None, arms: int = 0
) -> Picked:
    """One of what a rule selected, drawn by the decision's own random numbers; `left` of all `arms` were offered."""
    if isinstance(offer, BoxOffer):
        if found.row is None:
            raise InvalidInput("on a box a rule must select an action: Selection(None, row=…)")
        return Picked(found.row)
    shares = as_shares(found, len(offer))
    index = shares.draw(rng)
    if left is None:
        return Picked(offer.row(index), index, shares if found.marginal else None)
    arm = int(left[index])
    return Picked(offer.row(index), arm, shares.among(left, arms) if found.marginal else None)


def made(
    state: State,
    turn: Turn,
    number: int,
    picked: Picked,
    rule: ActingRule,
    optimum: float | None,
    run: str,
    time: float,
) -> Choice:
    """A choice, with what is needed to compute its bounds."""
    belief, context, labels, index = state.moment, turn.context, turn.region.labels, picked.arm
    row = fixed(picked.row if turn.is_exact else picked.row.copy())  # then nobody else has it
    if turn.is_exact and index is not None:
        direction = turn.directions[index : index + 1]
    else:
        direction = belief.directions(row[None])  # those of all arms at once may differ in the last digit
    if belief.model.dim is not None:
        direction = fixed(direction)
    belief.model.check_learnable(direction)  # larger ones could be chosen, but not learnt from
    return Choice(
        number,
        row if context is None else row[len(context) :],
        None if labels is None or index is None else labels[index],
        index=index,
        context=None if context is None else row[: len(context)],
        moment=belief,
        within=rule.reported(belief),
        direction=direction if belief.model.has_small_directions else None,  # sections of a kernel hold on to more
        optimum=optimum,
        refuted=state.refuted,
        run=run,
        time=time,
        shares=picked.shares,
        whole=row,
    )


def with_choices(
    state: State, turn: Turn, choices: list[Choice], anticipated: Anticipated | None, warm: Array | None
) -> State:
    """The state with these choices pending, and what is anticipated and where searches may start from then on."""
    pending, history, crowd = state.pending, state.history, state.crowd
    for choice in choices:
        pending = persistent.put(pending, choice.number, choice)
        if crowd is not None:
            crowd = crowd.with_row(choice.number, _feature_row(state.moment, choice))
        if turn.remembered:
            region = None if turn.is_own else turn.region
            history = persistent.put(history, choice.number, Chosen(choice.row, region))
    searched = state.searched or turn.region.is_box
    return State(
        state.moment, state.seed, state.rounds + len(choices), pending, state.held, state.settled, state.widths,
        searched, state.refuted, history, warm, anticipated, state.since, crowd, state.reordered, state.cancelled,
        state.predictor, state.seen,
    )  # fmt: skip


def largest_upper(state: State, rule: ActingRule, turn: Turn) -> float:
    """The largest upper bound over a region, from told rewards; on a box, the largest that a search finds."""
    offer = offered(turn, state.moment, state.warm, THOROUGH)
    return offer.maximise(rule.reported(state.moment), Stream(READING_SEED)).score


def crowded(state: State) -> State:
    """The state, with its pending choices summed up if there are many and the rule allows it."""
    moment = state.moment
    if state.crowd is not None or state.anticipated is not None or not moment.sums_up or state.predictor is not None:
        return state
    pending = list(itertools.islice(persistent.values(state.pending), MOST_ROWS + 1))
    if len(pending) <= MOST_ROWS:
        return state
    rows = ((choice.number, _feature_row(moment, choice)) for choice in persistent.values(state.pending))
    return state._replace(crowd=Crowd.of(rows))


def _feature_row(moment: Belief[Any], choice: Choice) -> Array:
    direction = moment.directions(choice.row[None]) if choice.direction is None else choice.direction
    return np.asarray(direction[0])


def _anticipated(state: State) -> Anticipated | None:
    """What is known as if all pending choices had returned their expected rewards; None if nothing is anticipated."""
    known = state.anticipated or Anticipated(Known(state.moment, state.predictor), 0)
    if known.up_to == 0 and state.crowd is not None:
        return Anticipated(Known(state.moment.summed_up(state.crowd.factor), None), state.rounds)
    if known.up_to == 0:
        open_ = list(persistent.values(state.pending))
    else:
        later = (persistent.get(state.pending, number) for number in range(known.up_to, state.rounds))
        open_ = [choice for choice in later if choice is not None]
    return Anticipated(expecting(known.known, open_), state.rounds) if open_ else state.anticipated


def expecting(known: Known, choices: list[Choice]) -> Known:
    """What is known after choices with their expected rewards; imagined rewards refute nothing.

    One at a time, as they were chosen, so that a policy that was loaded goes on to the last digit. Many at once differ
    from that by rounding, and are much faster.
    """
    belief, predictor = known
    step = 1 if len(choices) <= _ONE_BY_ONE else len(choices)
    for first in range(0, len(choices), step):
        belief = belief.expecting(np.array([choice.row for choice in choices[first : first + step]]))
    for choice in choices if predictor is not None else ():
        played = choice.played()
        predictor = predictor.after(played, 0, float(predictor.predict(played).mean[0]))  # type: ignore[union-attr]
    return Known(belief, predictor)
