"""What the locks of shared objects cost: rounds of a policy, of `MixBanditMAB` and of a learner for coba.

    python -m benchmarks.locks [--quick]

Microseconds per round of 10 arms in 20 dimensions (22 for coba), ask and tell, in one thread, with the locks and
without: the same methods, without what `locked` adds. Blocks of rounds take turns; medians over blocks. Extras: coba.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import mixbandit as mb
from mixbandit.integrations.mabwiser import MixBanditMAB

DIM, ARMS, BLOCK = 20, 10, 50
_HOME = "mixbandit._locks"  # where the functions come from that `locked` puts around methods


@contextlib.contextmanager
def without_locks() -> Iterator[int]:
    """Every locked method of mixbandit as it would be without; gives their number."""
    modules = [module for name, module in sys.modules.items() if name.startswith("mixbandit")]
    kinds = {each for module in modules for each in vars(module).values() if inspect.isclass(each)}
    found = [
        (kind, name, method)
        for kind in kinds
        for name, method in vars(kind).items()
        if inspect.isfunction(method) and hasattr(method, "__wrapped__") and method.__globals__["__name__"] == _HOME
    ]
    for kind, name, method in found:
        setattr(kind, name, method.__wrapped__)
    try:
        yield len(found)
    finally:
        for kind, name, method in found:
            setattr(kind, name, method)


def policy(rng: np.random.Generator) -> Callable[[], object]:
    """A round of CMM-UCB."""
    sets = rng.normal(size=(16, ARMS, DIM)) / np.sqrt(DIM)
    bandit = mb.CMMUCB(DIM, sigma=0.1, norm_bound=5.0, delta=0.05, rng=0)
    theta, count = rng.normal(size=DIM), iter(range(10**9))

    def play() -> object:
        choice = bandit.ask(sets[next(count) % len(sets)])
        return bandit.tell(choice, float(choice.action @ theta) + 0.1 * rng.normal())

    return play


def mab(rng: np.random.Generator) -> Callable[[], object]:
    """A prediction and a partial fit, with a model for each arm."""
    found = MixBanditMAB(list(range(ARMS)), sigma=0.1, norm_bound=5.0, delta=0.05)
    contexts = rng.normal(size=(64, DIM)) / np.sqrt(DIM)
    found.fit(list(range(ARMS)), 0.1 * rng.normal(size=ARMS), contexts[:ARMS])
    count = iter(range(10**9))

    def play() -> object:
        context = contexts[[next(count) % len(contexts)]]
        return found.partial_fit([found.predict(context)], [0.1 * float(rng.normal())], context)

    return play


def coba(rng: np.random.Generator) -> Callable[[], object]:
    """A prediction and what is learnt from it."""
    from mixbandit.integrations.coba import MixBanditLearner

    learner = MixBanditLearner(sigma=0.1, norm_bound=5.0, delta=0.05)
    contexts, arms = (rng.normal(size=(64, 1))).tolist(), np.eye(ARMS).tolist()
    actions = [tuple(arm) for arm in arms]
    count = iter(range(10**9))

    def play() -> object:
        context = contexts[next(count) % len(contexts)]
        action, probability = learner.predict(context, actions)
        return learner.learn(context, action, 0.1 * float(rng.normal()), probability)

    return play


def seconds(play: Callable[[], object]) -> float:
    """Of a round, on average over a block."""
    started = time.perf_counter()
    for _ in range(BLOCK):
        play()
    return (time.perf_counter() - started) / BLOCK


def compare(begin: Callable[[np.random.Generator], Callable[[], object]], blocks: int) -> tuple[float, float]:
    """Microseconds per round with locks and without, medians over blocks that take turns."""
    plays: list[Any] = [begin(np.random.default_rng(0)) for _ in range(2)]
    for play in plays:
        seconds(play)
    spent: tuple[list[float], list[float]] = ([], [])
    for block in range(blocks):
        for free in (0, 1) if block % 2 else (1, 0):
            with without_locks() if free else contextlib.nullcontext():
                spent[free].append(seconds(plays[free]))
    return 1e6 * float(np.median(spent[0])), 1e6 * float(np.median(spent[1]))


def main() -> None:
    """Print the table."""
    blocks = 10 if "--quick" in sys.argv else 200
    print("| a round of | with locks, µs | without, µs | share of the lock, % |\n|---|---|---|---|")
    with threadpool_limits(1):
        for name, begin in (("CMM-UCB", policy), ("MixBanditMAB", mab), ("MixBanditLearner of coba", coba)):
            locked, free = compare(begin, blocks)
            print(f"| {name} | {locked:.1f} | {free:.1f} | {100 * (locked - free) / locked:.1f} |", flush=True)


if __name__ == "__main__":
    main()
