"""Past choices, what they were chosen from, and the regret bound in hindsight."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from mixbandit._checks import Array
from mixbandit._rows import distinct_rows
from mixbandit._schema import Fields, array, checked, count, list_of, record, require
from mixbandit.actions import REGIONS, Region
from mixbandit.bandits import persistent
from mixbandit.certificates import bound_optimum, largest_difference
from mixbandit.sequences import Belief, as_moment


class Chosen(NamedTuple):
    """A row (context, action), and the region it was chosen from unless that was the policy's own."""

    row: Array
    region: Region | None


def regret_in_hindsight(
    history: persistent.Map, moment: Belief[Any], own: Region | None, warm: Array | None
) -> tuple[float, str, bool]:
    """Σ_s of a bound on how much better than a_s the best action of A_s is, by today's set, and its proof.

    One event covers the sets of all times, so today's may judge all past choices. Also returns whether bounds
    contradict a known range.
    """
    total, proofs, contradicts = 0.0, {"enumerated"}, False
    chosen: list[Chosen] = list(persistent.values(history))
    shared = [part.row for part in chosen if part.region is None]
    if shared and own is not None:
        bound, proof, wrong = _regret(moment, own, np.array(shared), warm)
        total, proofs, contradicts = total + bound, proofs | {proof}, wrong
    for part in chosen:
        if part.region is not None:
            bound, proof, wrong = _regret(moment, part.region, part.row[None], warm)
            total, proofs, contradicts = total + bound, proofs | {proof}, contradicts or wrong
    # The weakest proof counts.
    return total, next(p for p in ("search", "range", "branch-and-bound", "enumerated") if p in proofs), contradicts


def _regret(moment: Belief[Any], region: Region, rows: Array, warm: Array | None) -> tuple[float, str, bool]:
    """The bound for rows (n, dim_in) that were all chosen from one region."""
    distinct, _, _, counts = distinct_rows(rows)
    own = moment.directions(distinct)
    lower, _, contradicts = moment.interval(own)
    if region.rows is not None:
        directions = moment.directions(region.rows)
        upper = moment.upper(directions)
        apart, contradicts = upper.values.max() - lower, contradicts or upper.contradicts
        together = np.array([largest_difference(moment, directions, own[i]) for i in range(len(distinct))])
        return float(counts @ np.maximum(np.minimum(apart, together), 0.0)), "enumerated", contradicts
    rng = np.random.default_rng(0)
    optimum = bound_optimum(as_moment(moment), region, rng, at_least=float(lower.max()), warm=warm)
    return float(counts @ np.maximum(optimum.upper - lower, 0.0)), optimum.proof, contradicts


def history_state(history: persistent.Map) -> dict[str, Any]:
    """The history as plain values."""
    chosen: list[tuple[int, Chosen]] = list(persistent.items(history))
    return {
        "ids": [number for number, _ in chosen],
        "rows": np.array([part.row for _, part in chosen]),
        "regions": [[number, part.region.state_dict()] for number, part in chosen if part.region is not None],
    }


def _numbered_region(value: Any, where: str) -> tuple[int, Fields]:
    require(isinstance(value, list | tuple) and len(value) == 2, where, "must be an id and a region")
    return count(value[0], f"{where}[0]"), REGIONS(value[1], f"{where}[1]")


def _check_history(stored: Fields, where: str) -> None:
    ids, rows = stored["ids"], stored["rows"]
    require(len(ids) == len(rows), f"{where}.rows", f"must be as many as ids, {len(ids)}, got {len(rows)}")
    require(ids == sorted(set(ids)), f"{where}.ids", "must increase")
    numbers = [number for number, _ in stored["regions"]]
    own = set(numbers) <= set(ids) and numbers == sorted(set(numbers))
    require(own, f"{where}.regions", "must have increasing ids that are in the history")


HISTORY = record(
    {"ids": list_of(count), "rows": array(None, None), "regions": list_of(_numbered_region)}, _check_history
)


def history_from_state(state: Mapping[str, Any]) -> persistent.Map:
    """What `history_state` described."""
    stored = checked(HISTORY, state, "history")
    regions = {number: part.build() for number, part in stored["regions"]}
    found = persistent.EMPTY
    for number, row in zip(stored["ids"], stored["rows"], strict=True):
        found = persistent.put(found, number, Chosen(row, regions.get(number)))
    return found
