"""Whole decisions in context: choose, observe, learn; ours, LinUCB in ten lines of numpy, and other libraries."""

from __future__ import annotations

from typing import Any

from mixbandit.bench import workloads
from mixbandit.bench.context_players import DICTS, FLOOR, OURS, PEERS
from mixbandit.bench.rounds import compare, installed
from mixbandit.bench.timing import Say

_COUNT = 2000
_REWARDS = {"σ = .3, clipped": False, "0 or 1": True}


def measure(*, quick: bool, peers: bool, say: Say) -> list[dict[str, Any]]:
    """A row per size, kind of rewards, and player: microseconds per round, and mean rewards of the first and the last
    quarter.
    """
    repeats, cap = (2, 0.12) if quick else (3, 0.8)
    players = [FLOOR, *OURS, *installed(PEERS, say)] if peers else [FLOOR, *OURS]
    rows = []
    for d, arms in workloads.CONTEXT_SIZES:
        playing = [*players, DICTS] if (d, arms) == workloads.CONTEXT_SIZES[0] else players
        for kind, binary in _REWARDS.items():
            load = workloads.contexts(d, arms, _COUNT, binary=binary)
            title = f"contexts, {d} features, {arms} arms, rewards {kind}"
            found = compare(playing, load, count=_COUNT, repeats=repeats, cap=cap, title=title, say=say)
            rows += [{"d": d, "arms": arms, "rewards": kind, **row} for row in found]
    return rows
