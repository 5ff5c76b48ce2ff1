"""The stored state of a tuner, and what must agree in it."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixbandit._checks import finite, flag, nonnegative, positive
from mixbandit._schema import (
    Fields,
    Since,
    array,
    count,
    integer,
    list_of,
    mapping_of,
    optional,
    real,
    record,
    require,
    scalar,
)
from mixbandit.bandits import Policy, persistent
from mixbandit.errors import DamagedState, InvalidInput
from mixbandit.means import precisions
from mixbandit.tuning.assumptions import ASSUMPTIONS, Assumptions
from mixbandit.tuning.reports import TunerState
from mixbandit.tuning.space import SPACE, Space, same_row
from mixbandit.tuning.trials import Told


def check_trials(space: Space, assumptions: Assumptions, state: TunerState) -> None:
    """What a stored tuner says about trials must agree with its space, its assumptions and its pending choices."""
    history: list[Told] = list(persistent.values(state.history))
    given = [note.parameters for note in persistent.values(state.notes) if note.parameters is not None]
    levels = [told.sigma for told in history if told.sigma is not None]
    require(assumptions.sigma is not None or not levels, "tuner.history", "must have no sigma where none is stated")
    try:
        space.encode_all([*(told.parameters for told in history), *given])
        assumptions.reward(np.array([told.value for told in history]))
        if levels:
            precisions(assumptions.sigma or 0.0, np.array(levels))
    except InvalidInput as error:
        raise DamagedState(f"the trials of the tuner cannot be: {error}") from error
    most = len(state.nominated)
    for finalist in state.nominated:
        require(finalist.row.shape == (space.dim,), "tuner.nominated", f"must have {space.dim} coordinates each")
        inside = np.clip(finalist.row, space.region.low, space.region.high)
        require(same_row(finalist.row, inside), "tuner.nominated", "must lie in the space")
    for failed in state.failed:
        require(failed.row.shape == (space.dim,), "tuner.failed", f"must have {space.dim} coordinates each")
    numbers = [told.nomination for told in history] + [note.nomination for note in persistent.values(state.notes)]
    require(max(numbers, default=0) <= most, "tuner.nominated", f"must have all finalists, there are {most}")
    for number, note in persistent.items(state.notes):
        choice = persistent.get(state.bandit.pending, number)
        require(choice is not None, "tuner.notes", f"must be about pending trials, got {number}")
        known = note.parameters is None or same_row(space.encode(note.parameters), choice.action)
        require(known, "tuner.notes", f"must have the parameters of trial {number}")


def _interval(value: Any, where: str) -> tuple[float, float]:
    require(isinstance(value, list | tuple) and len(value) == 2, where, "must be a pair of numbers")
    return real(finite)(value[0], f"{where}[0]"), real(finite)(value[1], f"{where}[1]")


def _check_tuner(stored: Fields, where: str) -> None:
    sequence, asked = stored["policy"]["sequence"], stored["policy"]["ledger"]["next_id"]
    observed = sequence.get("observations")
    told = sequence["statistics"]["count"] if observed is None else len(observed["rewards"])
    values = len(stored["history"])
    require(values <= told, f"{where}.history", f"must not be longer than the {told} values learnt, got {values}")
    plain = not any(part["context"] for part in stored["policy"]["ledger"]["open"])
    require(plain, f"{where}.policy.ledger.open", "must have no context")
    used = stored["spread_used"]
    require(used <= told + asked, f"{where}.spread_used", f"must be at most {told + asked}, got {used}")
    places = [part["place"] for part in stored["errors"] or ()]
    require(len(set(places)) == len(places), f"{where}.errors", "must be of different values")
    require(max(places, default=-1) < told, f"{where}.errors", f"must be of the {told} values learnt")
    names = {part["name"] for part in stored["space"]["parameters"]}
    known = all(part["parameters"].keys() <= names for part in stored["history"])
    require(known, f"{where}.history", f"must be about the parameters {', '.join(sorted(names))}")


TUNER = record(
    {
        "space": SPACE,
        "objective": ASSUMPTIONS,
        "policy": Policy.family,
        "initial": count,
        "foresight": Since(flag, False),
        "spread_seed": integer(0, 2**64),
        "spread_used": count,
        "history": list_of(
            record(
                {
                    "parameters": mapping_of(scalar),
                    "value": real(finite),
                    "interval": optional(_interval),
                    "nomination": Since(count, 0),
                    "sem": Since(optional(real(nonnegative))),
                    "sigma": Since(optional(real(positive))),
                }
            )
        ),
        "ordered": Since(flag, True),
        "nominated": Since(list_of(array(None))),
        "errors": Since(list_of(record({"place": count, "sem": real(positive)}))),
        "failed": Since(list_of(record({"row": array(None), "told": count}))),
        "notes": Since(list_of(record({"id": count, "parameters": optional(mapping_of(scalar)), "nomination": count}))),
    },
    _check_tuner,
)
"""The state of a tuner."""
