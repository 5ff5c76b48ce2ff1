"""Everything measured, as one value; a picture over t and d."""

from __future__ import annotations

from typing import Any

from mixbandit import plots
from mixbandit.bench import bounds, busy, contexts, first_decision, growth, memory, rounds
from mixbandit.bench.timing import Say, facts, one_thread

PARTS = ("rounds", "contexts", "bounds", "gradients", "growth", "memory")


def measure(parts: list[str], *, quick: bool, peers: bool, say: Say) -> dict[str, Any]:
    """The parts asked for, each as a list of rows, with the machine and the versions."""
    found: dict[str, Any] = {"facts": facts(), "quick": quick}
    with one_thread():
        if "rounds" in parts:
            found["rounds"] = rounds.measure(quick=quick, peers=peers, say=say)
        if "contexts" in parts:
            found["contexts"] = contexts.measure(quick=quick, peers=peers, say=say)
            found["busy"] = busy.measure(quick=quick, say=say)
            found["first_decision"] = first_decision.measure(quick=quick, say=say)
        if "bounds" in parts:
            found["bounds"] = bounds.measure(quick=quick, peers=peers, say=say)
        if "gradients" in parts and peers:
            found["gradients"] = bounds.gradients(quick=quick, say=say)
        if "growth" in parts:
            found["over_time"] = growth.over_time(quick=quick, say=say)
            found["over_dimension"] = growth.over_dimension(quick=quick, say=say)
            found["slopes"] = {
                policy: growth.slope(found["over_dimension"], policy, "d") for policy in ("CMM-UCB", "AMM-UCB")
            }
        if "memory" in parts:
            found["memory"] = memory.measure(quick=quick, say=say)
            found["blocks"] = memory.blocks(quick=quick, say=say)
    return found


def draw(found: dict[str, Any]) -> Any:
    """The median round over t and over d, on logarithmic scales."""
    figure, axes = plots.figure(columns=2, width=4.2)
    for ax, rows, by, title in (
        (axes[0], found["over_time"], "t", "d = 20, 10 arms"),
        (axes[1], found["over_dimension"], "d", "10 arms, after 10·d rewards"),
    ):
        for policy in ("CMM-UCB", "AMM-UCB"):
            points = [(row[by], row["median_microseconds"]) for row in rows if row["policy"] == policy]
            ax.loglog(*zip(*points, strict=True), marker="o", label=policy)
        # From 10 µs to 10 ms: what is flat should look flat.
        ax.set(xlabel={"t": "rewards seen, t", "d": "dimension, d"}[by], ylabel="µs per round", ylim=(10.0, 1e4))
        ax.set_title(title)
        ax.legend()
    return figure
