"""What a policy keeps in memory, after few rounds and after many."""

from __future__ import annotations

import gc
import tracemalloc
from typing import Any

from mixbandit.bandits import AMMUCB, CMMUCB
from mixbandit.bench import workloads
from mixbandit.bench.timing import Say

_POLICIES = {"CMM-UCB": CMMUCB, "AMM-UCB": AMMUCB}


def measure(*, quick: bool, say: Say) -> list[dict[str, Any]]:
    """A row per policy, d and number of rounds played: kilobytes that Python and numpy hold for the policy."""
    rows = []
    for d in (20, 100):
        load = workloads.rounds(d, 10, 64)
        for name, make in _POLICIES.items():
            make(d, sigma=0.1, norm_bound=1.0, rng=0).ask(load.sets[0])  # imports and compilation
            gc.collect()
            tracemalloc.start()
            policy = make(d, sigma=workloads.SIGMA, norm_bound=load.norm_bound, delta=workloads.DELTA, rng=0)
            played = 0
            for rounds in (100, 1000) if quick else (100, 1000, 10_000):
                say(f"memory: {name}, d = {d}, {rounds:,} rounds")
                for k in range(played, rounds):
                    choice = policy.ask(load.sets[k % len(load.sets)])
                    policy.tell(choice, float(choice.action @ load.theta) + float(load.noise[k % 64]))
                played = rounds
                gc.collect()
                held = tracemalloc.get_traced_memory()[0]
                rows.append({"policy": name, "d": d, "rounds": rounds, "kilobytes": held / 1024.0})
            tracemalloc.stop()
    return rows
