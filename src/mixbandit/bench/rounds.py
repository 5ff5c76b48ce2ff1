"""Whole rounds: choose, observe, update; ours, a bare numpy loop, and other libraries."""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np

from mixbandit.bench import workloads
from mixbandit.bench.players import FLOOR, OURS, PEERS, Player
from mixbandit.bench.timing import Say

# Rounds played before the clock starts, for imports and compilation: enough for every code path of ours.
_WARM = 80


def measure(*, quick: bool, peers: bool, say: Say) -> list[dict[str, Any]]:
    """A row per size and player: microseconds per round, and mean rewards of the first and the last quarter."""
    count, repeats, cap = (1000, 3, 0.12) if quick else (1000, 5, 2.0)
    players = [FLOOR, *OURS, *(peer for peer in PEERS if peers and peer.version is not None)]
    if peers:
        for peer in PEERS:
            if peer.version is None:
                say(f"{peer.name} is not installed and not measured: pip install 'mixbandit[bench]'")
    rows = []
    for d, arms in workloads.ROUND_SIZES:
        load = workloads.rounds(d, arms, count)
        times: dict[str, list[float]] = {player.name: [] for player in players}
        rewards: dict[str, list[float]] = {}
        for repeat in range(repeats):
            for player in players:
                say(f"rounds, d = {d}, {arms} arms, {repeat + 1} of {repeats}: {player.name}")
                if not repeat:  # ours until everything is compiled
                    _play(player, load, _WARM, 60.0 if player.package == "mixbandit" else cap / 4)
                duration, rewards[player.name] = _play(player, load, count, cap)
                times[player.name].append(duration / len(rewards[player.name]))
        floor = statistics.median(times[FLOOR.name])
        for player in players:
            median, got = statistics.median(times[player.name]), rewards[player.name]
            quarter = max(len(got) // 4, 1)
            rows.append({
                "d": d, "arms": arms, "player": player.name, "version": player.version,
                "microseconds": 1e6 * median, "times_floor": median / floor, "rounds": len(got),
                "first_quarter": float(np.mean(got[:quarter])), "last_quarter": float(np.mean(got[-quarter:])),
            })  # fmt: skip
    return rows


def _play(player: Player, load: workloads.Rounds, count: int, cap: float) -> tuple[float, list[float]]:
    """Play `count` rounds, or as many as `cap` seconds allow; how long that took, and the expected rewards."""
    step = player.start(load)
    got: list[float] = []
    start = time.perf_counter()
    while len(got) < count and time.perf_counter() - start < cap:
        got += player.play(step, len(got), min(20 if got else 1, count - len(got)))
    return time.perf_counter() - start, got
