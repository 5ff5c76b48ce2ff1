"""Policies to plain values, for files, and back, including those of version 0.1.0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from mixbandit._checks import stored_generator
from mixbandit.actions import Region, region_from_state_dict
from mixbandit.bandits import persistent
from mixbandit.bandits.choice import Choice
from mixbandit.bandits.history import history_from_state, history_state
from mixbandit.bandits.rules import ActingRule, LeastRegretPerInformation, Optimism, Thompson, Uniformly
from mixbandit.bandits.state import Held, State
from mixbandit.errors import DamagedState, NotStorable
from mixbandit.features import FeatureMap
from mixbandit.sequences import ConfidenceSequence, sequence_from_state_dict

_OPTIONS = ("strict", "keep_history", "track_regret", "quick")


class Storable(Protocol):
    """What is stored of a policy, besides its options."""

    rule: ActingRule
    state: State

    @property
    def sequence(self) -> ConfidenceSequence: ...

    @property
    def actions(self) -> Region | None: ...


def state_dict(policy: Storable) -> dict[str, Any]:
    """Everything about a policy."""
    state = policy.state
    return {
        "type": type(policy).__name__,
        "sequence": policy.sequence.state_dict(),
        "actions": None if policy.actions is None else policy.actions.state_dict(),
        **{name: getattr(policy, name) for name in _OPTIONS},
        "rule": _rule_state(policy.rule),
        "seed": state.seed,
        "ledger": {"next_id": state.rounds, "open": [_open(state, c) for c in persistent.values(state.pending)]},
        "history": history_state(state.history),
        "account": {"count": state.settled, "widths": state.widths, "searched": state.searched},
        "refuted": state.refuted,
        "warm": state.warm,
    }


def _open(state: State, choice: Choice) -> dict[str, Any]:
    held: Held | None = persistent.get(state.held, choice.id)
    waiting = {"reward": None, "sigma": None} if held is None else held._asdict()
    return {**choice.state_dict(), **waiting}


def settings(kind: type[Storable], stored: Mapping[str, Any], features: FeatureMap | int | None) -> dict[str, Any]:
    """The keywords of the policy that `state_dict` described."""
    if not is_state_of(kind, stored):
        raise DamagedState(f"this is the state of a {stored.get('type')!r}, not of a {kind.__name__}")
    return {
        "sequence": sequence_from_state_dict(stored["sequence"], features),
        "actions": None if stored["actions"] is None else region_from_state_dict(stored["actions"]),
        "rule": _rule_from_state(stored),
        "rng": 0,  # replaced by the stored seed
        # Older files have no `quick`.
        **{name: bool(stored[name]) for name in _OPTIONS if name != "quick" or name in stored},
    }


def is_state_of(kind: type[Storable], stored: Mapping[str, Any]) -> bool:
    """Whether a state is one of this kind of policy. Version 0.1.0 stored CMMUCB and its kin as plain UCB."""
    return stored.get("type") in [base.__name__ for base in kind.__mro__[:-1]]


def recalled(fresh: State, stored: Mapping[str, Any]) -> State:
    """The state of a stored policy, restored into a fresh one that has only its data."""
    account, ledger = stored["account"], stored["ledger"]
    rounds = int(ledger["next_id"])
    pending = held = persistent.EMPTY
    for part in ledger["open"]:
        choice = Choice.from_state_dict(part)
        if not 0 <= choice.id < rounds:
            raise DamagedState(f"choice {choice.id} is open, but only {rounds} were ever made")
        pending = persistent.put(pending, choice.id, choice)
        if part["reward"] is not None:
            held = persistent.put(held, choice.id, Held(float(part["reward"]), part["sigma"]))
    return fresh._replace(
        # Version 0.1.0 stored a generator; the seed is drawn from it.
        seed=int(stored["seed"]) if "seed" in stored else int(stored_generator(stored["rng"]).integers(2**63)),
        rounds=rounds,
        pending=pending,
        held=held,
        settled=int(account["count"]),
        widths=None if account["widths"] is None else float(account["widths"]),
        searched=bool(account["searched"]),
        refuted=bool(stored["refuted"]),
        history=history_from_state(stored["history"]),
        warm=None if stored["warm"] is None else np.array(stored["warm"], dtype=np.float64),
    )


def difference(one: Storable, other: Storable) -> str | None:
    """The first setting in which two policies differ, in words; None if only what they have seen differs."""
    for name in (*_OPTIONS, "actions"):
        if getattr(one, name) != getattr(other, name):
            return f"{name}: {getattr(one, name)!r} and {getattr(other, name)!r}"
    mine, theirs = ({"type": type(each.rule).__name__, **each.rule.settings()} for each in (one, other))
    return f"rule: {mine} and {theirs}" if mine != theirs else one.sequence.difference(other.sequence)


RULES: dict[str, type[ActingRule]] = {
    rule.__name__: rule for rule in (Optimism, LeastRegretPerInformation, Thompson, Uniformly)
}
# The rules of version 0.1.0, by the type of the policy.
_OF_POLICIES = {
    "UCB": "Optimism",
    "InformationDirected": "LeastRegretPerInformation",
    "ThompsonSampling": "Thompson",
    "UniformSampling": "Uniformly",
}


def _rule_state(rule: ActingRule) -> dict[str, Any]:
    """A rule as plain values."""
    if type(rule) not in RULES.values():
        raise NotStorable(f"the acting rule {type(rule).__name__} is code and cannot be stored by mixbandit")
    return {"type": type(rule).__name__, **rule.settings()}


def _rule_from_state(state: Mapping[str, Any]) -> ActingRule:
    """The rule of a stored policy."""
    stored = state.get("rule")
    if stored is None:
        known = {name: state[name] for name in ("alpha", "exploration") if name in state}
        stored = {"type": _OF_POLICIES[state["type"]], **known}
    if stored["type"] not in RULES:
        raise DamagedState(f"unknown acting rule {stored['type']!r}")
    return RULES[stored["type"]](**{name: value for name, value in stored.items() if name != "type"})
