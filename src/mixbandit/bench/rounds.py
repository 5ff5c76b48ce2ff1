"""Whole rounds: choose, observe, update; ours, a bare numpy loop, and other libraries."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from mixbandit.bench import workloads
from mixbandit.bench.players import FLOOR, OURS, PEERS, Player
from mixbandit.bench.timing import Say

# Rounds played before the clock starts, for imports and compilation: enough for every code path of ours.
_WARM = 80
_COUNT = 1000


def measure(*, quick: bool, peers: bool, say: Say) -> list[dict[str, Any]]:
    """A row per size and player: microseconds per round, and mean rewards of the first and the last quarter."""
    repeats, cap = (3, 0.12) if quick else (5, 2.0)
    players = [FLOOR, *OURS, *installed(PEERS, say)] if peers else [FLOOR, *OURS]
    rows = []
    for d, arms in workloads.ROUND_SIZES:
        load, title = workloads.rounds(d, arms, _COUNT), f"rounds, d = {d}, {arms} arms"
        found = compare(players, load, count=_COUNT, repeats=repeats, cap=cap, title=title, say=say)
        rows += [{"d": d, "arms": arms, **row} for row in found]
    return rows


def installed(peers: Sequence[Player], say: Say) -> list[Player]:
    """The players whose packages are installed; the others are named."""
    for peer in peers:
        if peer.version is None:
            say(f"{peer.name} is not installed and not measured: pip install 'mixbandit[bench]'")
    return [peer for peer in peers if peer.version is not None]


def compare(
    players: Sequence[Player], load: Any, *, count: int, repeats: int, cap: float, title: str, say: Say
) -> list[dict[str, Any]]:
    """A row per player, the first of whom is the floor. They take turns, `repeats` times.

    A turn is `count` rounds, or as many as `cap` seconds allow. Times are medians over turns; rewards are those of the
    last turn.
    """
    times: dict[str, list[float]] = {player.name: [] for player in players}
    rewards: dict[str, list[float]] = {}
    for repeat in range(repeats):
        for player in players:
            say(f"{title}, {repeat + 1} of {repeats}: {player.name}")
            if not repeat:  # ours until everything is compiled
                _play(player, load, _WARM, 60.0 if player.package == "mixbandit" else cap / 4)
            duration, rewards[player.name] = _play(player, load, count, cap)
            times[player.name].append(duration)
    floor = statistics.median(times[players[0].name])
    rows = []
    for player in players:
        median, got = statistics.median(times[player.name]), rewards[player.name]
        quarter = max(len(got) // 4, 1)
        rows.append({
            "player": player.name, "version": player.version,
            "microseconds": 1e6 * median, "times_floor": median / floor, "rounds": len(got),
            "first_quarter": float(np.mean(got[:quarter])), "last_quarter": float(np.mean(got[-quarter:])),
        })  # fmt: skip
    return rows


def _play(player: Player, load: Any, count: int, cap: float) -> tuple[float, list[float]]:
    """Play `count` rounds, or as many as `cap` seconds allow; seconds per round after the first, and the rewards.

    The first round is not timed: some libraries set themselves up in it, which takes as long as fifteen others.
    """
    step = player.start(load)
    got = player.play(step, 0, 1)
    start = time.perf_counter()
    while True:
        got += player.play(step, len(got), min(len(got), 20, count - len(got)))
        elapsed = time.perf_counter() - start
        if len(got) >= count or elapsed >= cap:
            return elapsed / (len(got) - 1), got
