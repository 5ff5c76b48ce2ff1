"""What the tests of contextual bandits share."""

import numpy as np

import mixbandit as mb
from mixbandit._files import digest

TOPICS = ("code", "chat", "sums")


def contexts(n, seed=0):
    """Contexts with a number, a text, a truth value, and values that are missing."""
    rng = np.random.default_rng(seed)
    return [
        {
            "tokens": None if rng.random() < 0.1 else float(rng.lognormal(5.0)),
            "topic": TOPICS[int(rng.integers(3))],
            "urgent": bool(rng.random() < 0.2),
        }
        for _ in range(n)
    ]


def everything(bandit):
    """All that a bandit remembers, as one text."""
    stored, state = bandit.state_dict(), bandit.state
    learnt = {"predictor": state.predictor.state_dict(), "features": state.features.state_dict()}
    counts = [*state.counts, state.reordered, state.seen, *bandit.open]
    return digest({"stored": stored, "learnt": learnt, "counts": counts})


def behaviour(bandit):
    """The same without what names and times say: ids begin with a random token."""
    state = bandit.state
    learnt = {"predictor": state.predictor.state_dict(), "features": state.features.state_dict()}
    events = [
        {name: part for name, part in event.items() if name not in ("id", "time")}
        for event in bandit.state_dict()["events"]
    ]
    return digest({"events": events, "learnt": learnt, "counts": [*state.counts, state.reordered, state.seen]})


def lived(bandit, n=40, seed=0):
    """A life with everything that can happen to a bandit with arms a, b, c; returns it."""
    rng, late = np.random.default_rng(seed), []
    given = contexts(n, seed)
    for t, context in enumerate(given):
        late.append(bandit.ask(context, arms=["a", "b"] if t % 7 == 3 and "b" in bandit.arms else None))
        if t % 10 == 5:
            late += bandit.ask_many(given[: t // 4])
        if t % 3:
            choice = late.pop(int(rng.integers(len(late))))
            bandit.tell(choice if t % 2 else choice.id, float(rng.random()))
        if t % 10 == 9:
            told = [late.pop(int(rng.integers(len(late)))) for _ in range(3)]
            bandit.tell_many(told, rng.random(3))
            bandit.cancel(late.pop(0))
        if t == 12:
            bandit.add_arm("d")
        if t == 20:
            bandit.remove_arm("b")
        if t == 30:
            bandit.add_arm("b")
    return bandit


def make(**options):
    return mb.ContextualBandit(["a", "b", "c"], (0, 1), **{"rng": 3, "floor": 0.2, **options})
