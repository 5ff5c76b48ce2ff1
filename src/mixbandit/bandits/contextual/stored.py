"""How a contextual bandit is stored: its settings, what it began with, and the events since, which lead to the rest."""

from __future__ import annotations

import dataclasses
from typing import Any

from mixbandit._checks import as_label, as_range, flag, nonnegative, probability
from mixbandit._schema import Since, checked, integer, list_of, mapping, one_of_these, optional, real, record, scalar
from mixbandit.bandits.contextual.control import Control, check_control
from mixbandit.bandits.contextual.events import ContextualEvent, RewardTold, Settings, anything, folded, label
from mixbandit.bandits.contextual.roster import ArmFeatures, Roster, distinct
from mixbandit.bandits.contextual.state import State
from mixbandit.bandits.rules import ActingRule
from mixbandit.errors import DamagedState, InvalidInput
from mixbandit.features import ContextFeatures, context_features_from
from mixbandit.predictors import Predictor
from mixbandit.storage import Stored

_VERSION = 1


def _control(value: Any, where: str) -> Control:
    return Control(**record({"arm": label, "share": real(probability)})(value, where))


BANDIT = record({
    "version": one_of_these(_VERSION),
    "labels": list_of(scalar),
    "arm_features": optional(list_of(anything)),
    "reward_range": as_range,
    "features": ContextFeatures.family,
    "predictor": Predictor.family,
    "rule": ActingRule.family,
    "floor": real(lambda value, where: nonnegative(value, where, 1.0)),
    "control": Since(optional(_control)),
    "delta": real(probability),
    "seed": integer(0, 2**64),
    "draws_by_id": flag,
    "events": list_of(mapping),
})  # fmt: skip


def state_dict(bandit: Any) -> dict[str, Any]:
    """Everything needed to resume."""
    roster, features, predictor = bandit.origin
    described = roster.features
    return {
        "type": bandit.kind,
        "version": _VERSION,
        "labels": list(roster.labels),
        "arm_features": None if described is None else described.plain(),
        "reward_range": list(bandit.reward_range),
        "features": features.state_dict(),
        "predictor": predictor.state_dict(),
        "rule": bandit.rule.state_dict(),
        "floor": bandit.floor,
        "control": None if bandit.control is None else dataclasses.asdict(bandit.control),
        "delta": bandit.delta,
        "seed": bandit.seed,
        "draws_by_id": bandit.draws_by_id,
        "events": [event.state_dict() for event in bandit.journal.since(0)],
    }


def beginning(fields: Stored, features: Any) -> tuple[Roster, ContextFeatures, Predictor]:
    """What a stored bandit began with."""
    return _roster(fields), context_features_from(fields["features"], features), fields["predictor"].build()


def replayed(stored: list[Any], settings: Settings, state: State) -> tuple[list[ContextualEvent], State]:
    """The events as code uses them, and the state that they lead to."""
    events: list[ContextualEvent] = []

    def step(batch: list[ContextualEvent], state: State) -> State:
        events.extend(batch)
        return folded(settings, state, batch)

    rewards: list[ContextualEvent] = []  # in a row: they are learnt together
    for number, each in enumerate(stored):
        where = f"bandit.events[{number}]"
        event = checked(ContextualEvent.family, each, where).build()
        if not isinstance(event, ContextualEvent):
            raise DamagedState(f"{where} is no event of a contextual bandit")
        if isinstance(event, RewardTold):
            rewards.append(event)
            continue
        state, rewards = step(rewards, state), []
        try:
            event = event.bound(settings, state)
        except InvalidInput as error:
            raise DamagedState(f"{where}: {error}") from error
        state = step([event], state)
    return events, step(rewards, state)


def _roster(fields: Stored) -> Roster:
    labels, described = fields["labels"], fields["arm_features"]
    if described is not None and len(described) != len(labels):
        raise DamagedState(f"bandit.arm_features must be as many as labels, {len(labels)}, got {len(described)}")
    try:
        features = None if described is None else ArmFeatures.unplain(described)
        roster = Roster(distinct(as_label(label) for label in labels), tuple(range(len(labels))), features)
        if fields["control"] is not None:
            check_control(fields["control"], roster, fields["floor"])
        return roster
    except InvalidInput as error:
        raise DamagedState(f"bandit: {error}") from error
