"""Policies to plain values, for files, and back, including those of version 0.1.0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

import numpy as np

from mixbandit._checks import (
    LARGEST_DATUM,
    Array,
    as_text,
    check_finite,
    check_within,
    finite,
    flag,
    multiplier,
    nonnegative,
    stored_generator,
)
from mixbandit._schema import (
    Fields,
    Since,
    array,
    count,
    integer,
    list_of,
    mapping,
    optional,
    real,
    record,
    require,
)
from mixbandit.actions import REGIONS, Region
from mixbandit.bandits import persistent
from mixbandit.bandits.choice import CHOICE, Choice
from mixbandit.bandits.history import HISTORY, history_from_state, history_state
from mixbandit.bandits.rules import ActingRule, LeastRegretPerInformation, Optimism, Thompson, Uniform
from mixbandit.bandits.state import Held, State
from mixbandit.features import FeatureMap
from mixbandit.predictors import Predictor
from mixbandit.sequences import ConfidenceSequence
from mixbandit.storage import built

_OPTIONS = ("strict", "keep_history", "track_regret", "quick")


class PolicyLike(Protocol):
    """What is stored of a policy, besides its options."""

    kind: ClassVar[str]
    rule: ActingRule
    state: State

    @property
    def sequence(self) -> ConfidenceSequence: ...

    @property
    def actions(self) -> Region | None: ...


def state_dict(policy: PolicyLike) -> dict[str, Any]:
    """Everything about a policy."""
    state = policy.state
    return {
        "type": policy.kind,
        "sequence": policy.sequence.state_dict(),
        "actions": None if policy.actions is None else policy.actions.state_dict(),
        **{name: getattr(policy, name) for name in _OPTIONS},
        "rule": policy.rule.state_dict(),
        "seed": state.seed,
        "ledger": {"next_id": state.rounds, "open": [_open(state, c) for c in persistent.values(state.pending)]},
        "history": history_state(state.history),
        "account": {"count": state.settled, "widths": state.widths, "searched": state.searched},
        "refuted": state.refuted,
        "warm": state.warm,
        "reordered": state.reordered,
        "cancelled": state.cancelled,
        "seen": state.seen,
        "predictor": None if state.predictor is None else state.predictor.state_dict(),
    }


def _open(state: State, choice: Choice) -> dict[str, Any]:
    held: Held | None = persistent.get(state.held, choice.number)
    waiting = {"reward": None, "sigma": None} if held is None else held._asdict()
    return {**choice.state_dict(), **waiting}


def keywords(stored: Mapping[str, Any], features: FeatureMap | int | None) -> dict[str, Any]:
    """The keywords of the policy that `state_dict` described, in the form of `POLICY`."""
    return {
        "sequence": stored["sequence"].build(features),
        "actions": built(stored["actions"]),
        "rule": _rule_from_state(stored),
        "predictor": built(stored["predictor"]),
        "rng": 0,  # replaced by the stored seed
        **{name: stored[name] for name in _OPTIONS},
    }


def recalled(fresh: State, stored: Mapping[str, Any], actions: Region | None) -> State:
    """The state of a stored policy, restored into a fresh one that has only its data."""
    account, ledger = stored["account"], stored["ledger"]
    pending = held = persistent.EMPTY
    for part in ledger["open"]:
        choice = Choice.from_state_dict(part)
        pending = persistent.put(pending, choice.number, choice)
        if part["reward"] is not None:
            held = persistent.put(held, choice.number, Held(part["reward"], part["sigma"]))
    state = fresh._replace(
        # Version 0.1.0 stored a generator; the seed is drawn from it.
        seed=int(stored_generator(stored["rng"]).integers(2**63)) if stored["seed"] is None else stored["seed"],
        rounds=ledger["next_id"],
        since=ledger["next_id"],  # stored choices have their bounds
        pending=pending,
        held=held,
        settled=account["count"],
        widths=account["widths"],
        searched=account["searched"],
        refuted=stored["refuted"],
        reordered=stored["reordered"],
        cancelled=stored["cancelled"],
        seen=stored["seen"],
        history=history_from_state(stored["history"]),
        warm=_inside(stored["warm"], actions),
    )
    _check_fit(state, actions)
    return state


def _inside(warm: Array | None, actions: Region | None) -> Array | None:
    """Where searches may start: in the box, whatever a file says."""
    if warm is None or actions is None or actions.rows is not None or warm.shape[1] != actions.dim:
        return warm
    return np.clip(warm, actions.low, actions.high)


def _check_fit(state: State, actions: Region | None) -> None:
    """Refuse choices, a history and starting points that these features could not have led to."""
    belief, width = state.moment, state.moment.model.dim_in
    for choice in persistent.values(state.pending):
        where = f"choice {choice.id}"
        require(len(choice.row) == width, where, f"must have {width} entries, got {len(choice.row)}")
        belief.model.check_learnable(belief.directions(choice.row[None]))
        waiting: Held | None = persistent.get(state.held, choice.number)
        if waiting is not None:
            weight = 1.0 if waiting.sigma is None else belief.weights(np.array(waiting.sigma))
            check_finite(np.asarray(weight * waiting.reward), f"the reward of {where}", LARGEST_DATUM)
            check_within(np.array([waiting.reward]), belief.value_range, f"the reward of {where}")
    for number, chosen in persistent.items(state.history):
        region = actions if chosen.region is None else chosen.region
        fits = region is not None and len(chosen.row) == region.dim == width
        require(
            fits, f"choice {number} of the history", f"must have {width} entries, and so must what it was chosen from"
        )
        belief.directions(chosen.row[None])
        if chosen.region is not None and chosen.region.rows is not None:
            belief.directions(chosen.region.rows)
    if state.warm is not None:
        fits = state.warm.shape[1] == width
        require(fits, "warm", f"must have {width} columns, got {state.warm.shape}")
    if actions is not None and actions.rows is not None and actions.dim == width:
        belief.directions(actions.rows)


def difference(one: PolicyLike, other: PolicyLike) -> str | None:
    """The first setting in which two policies differ, in words; None if only what they have seen differs."""
    for name in (*_OPTIONS, "actions"):
        if getattr(one, name) != getattr(other, name):
            return f"{name}: {getattr(one, name)!r} and {getattr(other, name)!r}"
    mine, theirs = ({"type": type(each.rule).__name__, **each.rule.settings()} for each in (one, other))
    return f"rule: {mine} and {theirs}" if mine != theirs else one.sequence.difference(other.sequence)


# The rules of version 0.1.0, by the type of the policy.
_OF_POLICIES: dict[str, type[ActingRule]] = {
    "UCB": Optimism,
    "InformationDirected": LeastRegretPerInformation,
    "ThompsonSampling": Thompson,
    "UniformSampling": Uniform,
}


def _rule_from_state(stored: Mapping[str, Any]) -> ActingRule:
    """The rule of a stored policy."""
    if stored["rule"] is not None:
        rule: ActingRule = stored["rule"].build()
        return rule
    require(stored["type"] in _OF_POLICIES, "policy", "lacks 'rule'")
    kind = _OF_POLICIES[stored["type"]]
    own = ("alpha", "exploration") if kind is Optimism else ()
    return kind(**{name: stored[name] for name in own if stored[name] is not None})


def _check_policy(stored: Fields, where: str) -> None:
    ledger, history = stored["ledger"], stored["history"]
    made, open_ids = ledger["next_id"], [part["id"] for part in ledger["open"]]
    require(open_ids == sorted(set(open_ids)), f"{where}.ledger.open", "must have increasing ids")
    for number in open_ids[-1:] + history["ids"][-1:]:
        require(number < made, where, f"has a choice {number}, but only {made} were ever made")
    settled = stored["account"]["count"]
    require(settled + len(open_ids) <= made, f"{where}.account.count", f"must fit {made} choices, got {settled}")
    held = any(part["reward"] is not None for part in ledger["open"])
    require(stored["strict"] or not held, f"{where}.ledger.open", "holds rewards back, although strict is false")
    require(stored["seed"] is not None or stored["rng"] is not None, where, "lacks 'seed'")


POLICY = record(
    {
        "type": as_text,
        "sequence": ConfidenceSequence.family,
        "actions": optional(REGIONS),
        # Older files have no `quick`.
        **{name: Since(flag, False) if name == "quick" else flag for name in _OPTIONS},
        "seed": Since(integer(0, 2**64)),
        "ledger": record({"next_id": count, "open": list_of(CHOICE)}),
        "history": HISTORY,
        "account": record({"count": count, "widths": optional(real(finite)), "searched": flag}),
        "refuted": flag,
        "warm": optional(array(None, None)),
        "reordered": Since(flag, False),
        "cancelled": Since(count, 0),
        "seen": Since(count, 0),
        "predictor": Since(Predictor.family),
        "rule": Since(ActingRule.family),
        # Of version 0.1.0, instead of the seed and the rule:
        "rng": Since(mapping),
        "alpha": Since(real(multiplier)),
        "exploration": Since(real(nonnegative)),
    },
    _check_policy,
)
"""The state of a policy."""
