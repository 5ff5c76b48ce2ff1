"""One decision: from a state and a region to choices and the next state."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

from mixbandit._checks import Array
from mixbandit.actions import Arms, Box, MixedBox, Region
from mixbandit.bandits import persistent
from mixbandit.bandits.choice import Choice, fixed
from mixbandit.bandits.crowd import Crowd
from mixbandit.bandits.history import Chosen
from mixbandit.bandits.rules import ActingRule
from mixbandit.bandits.state import MOST_ROWS, Anticipated, State
from mixbandit.search import THOROUGH, ArmsField, BoxField, Effort, Entropy
from mixbandit.sequences import Moment

# Read-only methods search with their own seed: looking must not change what is chosen next.
READING_SEED = 0
# A choice on a box that repeats a pending one is moved by about this share of the width.
_NUDGE = 1e-3
_SAME_ACTION = 1e-9
_ONE_BY_ONE = 64


class Turn(NamedTuple):
    """The input of a decision."""

    region: Region  # rows (context, action)
    context: Array | None
    directions: Any  # of arms; None on a box
    remembered: bool = False  # whether choices go into the history
    is_own: bool = True  # whether the region is the policy's own


def field(turn: Turn, moment: Moment, entropy: Entropy, warm: Array | None, effort: Effort) -> ArmsField | BoxField:
    """Where to maximise scores."""
    if isinstance(turn.region, Arms):
        return ArmsField(turn.region.actions, turn.directions, entropy)
    return BoxField(turn.region, moment.model, entropy, warm, effort)


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
    moment, region = state.moment, turn.region
    if count == 1 and not state.pending[1] and isinstance(region, Arms):
        return _choose_arm(state, rule, turn, run, track_regret=track_regret)
    place = field(turn, moment, (state.seed, state.rounds), state.warm, effort)
    taken = [choice.row for choice in persistent.values(state.pending)] if isinstance(region, Box) else []
    state = crowded(state)
    anticipated = _anticipated(state)
    acting, expected = moment if anticipated is None else anticipated.moment, anticipated
    choices: list[Choice] = []
    largest: float | None = None
    for number in range(state.rounds, state.rounds + count):
        found, met = rule.select(acting, place, number + 1)
        if track_regret:
            # From told rewards only: what the rule finds with anticipated ones does not count.
            largest = met if acting is moment else largest
            largest = largest_upper(state, rule, turn) if largest is None else largest
        row = found.row
        if isinstance(region, Box):
            row = nudged(row, region, taken, place.rng)
            taken.append(row)
        elif distinct and count > 1:
            place.exclude(found)
        choices.append(made(state, turn, number, row, found.arm, rule, largest, run))
        if number + 1 < state.rounds + count:
            expected = Anticipated(expecting(acting, [row]), number + 1)
            acting = expected.moment
    warm = np.vstack(place.optima) if isinstance(place, BoxField) and place.optima else state.warm
    return choices, with_choices(state, turn, choices, anticipated=expected, warm=warm)


def _choose_arm(
    state: State, rule: ActingRule, turn: Turn, run: str, *, track_regret: bool
) -> tuple[list[Choice], State]:
    """The same for one arm while nothing is pending, in short."""
    place = ArmsField(turn.region.actions, turn.directions, (state.seed, state.rounds))  # type: ignore[union-attr]
    found, largest = rule.select(state.moment, place, state.rounds + 1)
    if track_regret and largest is None:
        largest = largest_upper(state, rule, turn)
    optimum = largest if track_regret else None
    choices = [made(state, turn, state.rounds, found.row, found.arm, rule, optimum, run)]
    return choices, with_choices(state, turn, choices)


def made(
    state: State,
    turn: Turn,
    number: int,
    row: Array,
    index: int | None,
    rule: ActingRule,
    optimum: float | None,
    run: str,
) -> Choice:
    """A choice, with what is needed to compute its bounds."""
    moment, region, context, labels = state.moment, turn.region, turn.context, None
    if isinstance(region, Arms) and index is not None:
        labels = region.labels
    row = fixed(row.copy())
    direction = moment.directions(row[None])  # on its own: those of all arms at once may differ in the last digit
    if moment.model.dim is not None:
        direction = fixed(direction)
    moment.model.check_learnable(direction)  # larger ones could be chosen, but not learnt from
    return Choice(
        number,
        row if context is None else row[len(context) :],
        None if labels is None or index is None else labels[index],
        index=index,
        context=None if context is None else row[: len(context)],
        moment=moment,
        within=rule.reported(moment),
        direction=None if moment.model.dim is None else direction,  # sections of a kernel hold on to more
        optimum=optimum,
        refuted=state.refuted,
        run=run,
    )


def with_choices(state: State, turn: Turn, choices: list[Choice], **others: Any) -> State:
    """The state with these choices pending and the fields in `others` replaced."""
    pending, history, crowd = state.pending, state.history, state.crowd
    for choice in choices:
        pending = persistent.put(pending, choice.number, choice)
        if crowd is not None:
            crowd = crowd.with_row(choice.number, _feature_row(state.moment, choice))
        if turn.remembered:
            region = None if turn.is_own else turn.region
            history = persistent.put(history, choice.number, Chosen(choice.row, region))
    searched, rounds = state.searched or isinstance(turn.region, Box), state.rounds + len(choices)
    return state._replace(pending=pending, rounds=rounds, searched=searched, history=history, crowd=crowd, **others)


def largest_upper(state: State, rule: ActingRule, turn: Turn) -> float:
    """The largest upper bound over a region, from told rewards; on a box, the largest that a search finds."""
    place = field(turn, state.moment, READING_SEED, state.warm, THOROUGH)
    return place.maximise(rule.reported(state.moment)).value


def crowded(state: State) -> State:
    """The state, with its pending choices summed up if there are many and the rule allows it."""
    moment = state.moment
    if state.crowd is not None or state.anticipated is not None or not moment.rule.sums_up:
        return state
    pending = list(itertools.islice(persistent.values(state.pending), MOST_ROWS + 1))
    if len(pending) <= MOST_ROWS:
        return state
    rows = ((choice.number, _feature_row(moment, choice)) for choice in persistent.values(state.pending))
    return state._replace(crowd=Crowd.of(rows))


def _feature_row(moment: Moment, choice: Choice) -> Array:
    direction = moment.directions(choice.row[None]) if choice.direction is None else choice.direction
    return np.asarray(direction[0])


def _anticipated(state: State) -> Anticipated | None:
    """The moment as if all pending choices had returned their expected rewards; None if nothing is anticipated."""
    known = state.anticipated or Anticipated(state.moment, 0)
    if known.up_to == 0 and state.crowd is not None:
        moment, factor = state.moment, state.crowd.factor
        data = moment.rule.learn(moment.data, factor, factor, factor @ moment.closed_form.centre, None)
        return Anticipated(moment.with_data(data), state.rounds)
    if known.up_to == 0:
        rows = [choice.row for choice in persistent.values(state.pending)]
    else:
        later = (persistent.get(state.pending, number) for number in range(known.up_to, state.rounds))
        rows = [choice.row for choice in later if choice is not None]
    return Anticipated(expecting(known.moment, rows), state.rounds) if rows else state.anticipated


def expecting(moment: Moment, rows: list[Array]) -> Moment:
    """The moment after rows with rewards in the middle of their intervals; imagined rewards refute nothing.

    One at a time, as they were chosen, so that a policy that was loaded goes on to the last digit. Many at once differ
    from that by rounding, and are much faster.
    """
    step = 1 if len(rows) <= _ONE_BY_ONE else len(rows)
    for first in range(0, len(rows), step):
        actions = np.array(rows[first : first + step])
        directions, closed = moment.directions(actions), moment.closed_form
        moment = moment.after(actions, 0.5 * (closed.maximum(directions) - closed.maximum(-directions)))
    return moment


def nudged(row: Array, box: Box, taken: list[Array], rng: np.random.Generator) -> Array:
    """The row, moved a little if it repeats a taken one: on a box there is always something new to learn."""
    if not taken or not box.continuous.any():
        return row
    y = box.unit(row)
    if not (np.abs(box.unit(np.array(taken)) - y) <= _SAME_ACTION).all(axis=1).any():
        return row
    step = _NUDGE * rng.uniform(0.5, 1.0, size=box.dim) * rng.choice((-1.0, 1.0), size=box.dim)
    step[~box.continuous] = 0.0
    # At a border the step goes inwards.
    moved = box.at(y + np.where((y + step < 0.0) | (y + step > 1.0), -step, step))
    return box.pinned(moved[None])[0] if isinstance(box, MixedBox) else moved
