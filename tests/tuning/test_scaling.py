"""What many choices cost: memory that grows with their number, not with its square."""

import tracemalloc

import numpy as np
import pytest

import mixbandit as mb
from mixbandit.search import Advantage


def tuner(choices):
    space = mb.Space({"x": mb.Float(0, 1), "c": mb.Categorical([f"c{i}" for i in range(choices)])})
    tuner = mb.Tuner(space, reward_range=(0, 1), samples=100, rows="fresh", initial=0, rng=0)
    worth = np.random.default_rng(0).uniform(size=choices)
    for parameters in space.sample(8, rng=1):
        value = 0.3 * parameters["x"] + 0.6 * worth[int(parameters["c"][1:])]
        tuner.tell(tuner.adopt(parameters), float(value))
    return tuner


def peak(do, choices):
    """The most memory, in bytes, that a tuner with so many choices takes to do something."""
    ready = tuner(choices)
    tracemalloc.start()
    try:
        do(ready)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "do",
    [mb.Tuner.ask, pytest.param(mb.Tuner.recommend, marks=pytest.mark.heavy), mb.Tuner.state_dict],
    ids=["ask", "recommend", "state_dict"],
)
def test_memory_grows_with_the_number_of_choices(do):
    do(tuner(10))  # what is only imported or compiled on first use
    # Above 256, where combinations are no longer listed. Squares would give 4.
    assert peak(do, 520) < 2.5 * peak(do, 260)


def test_the_best_of_many_choices_is_found():
    """Choices that were never tried are not better than the best that was; all are looked at."""
    m = 1000
    phi = mb.FromCallable(lambda rows: rows @ np.arange(m, dtype=float)[:, None] / m, m, 1)
    box = mb.Space({"c": mb.Categorical(range(m))}).region
    cs = mb.MartingaleMixture(phi, sigma=0.1, norm_bound=2.0).update(np.eye(m)[[0, 500]], [0.0, 0.5])
    bandit = mb.UCB(cs, actions=box, rng=0)
    assert int(bandit.ask().action.argmax()) == m - 1


def test_possible_choices_are_those_of_a_search_one_by_one():
    """Choices fixed by leaving their coordinates out, against whole rows of a map that cannot do that."""
    space = mb.Space(
        {
            "x": mb.Float(0, 1),
            "c": mb.Categorical(["a", "b", "d", "e"]),
            "y": mb.Float(0, 1),
            "k": mb.Categorical(["u", "v", "w"]),
        },
        {"y": ("c", ["a", "b"]), "k": ("c", ["d"])},
    )
    layer = mb.RandomLayer(space.dim, 20, rng=0)
    opaque = mb.FromCallable(layer.evaluate, space.dim, 20, layer.pullback, layer.lipschitz)
    found = []
    for features in (layer, opaque):
        tuner = mb.Tuner(space, sigma=0.01, reward_range=(-1, 1), norm_bound=8.0, features=features, rng=0)
        for parameters in space.sample(60, rng=0):
            value = {"a": 0.5, "b": 0.4, "d": -0.5, "e": -0.6}[parameters["c"]] - 0.2 * (parameters["x"] - 0.5) ** 2
            tuner.tell(tuner.adopt(parameters), value)
        found.append(tuner.certificate().possible)
    assert [part.values for part in found[0] if part.name in "ck"] == [p.values for p in found[1] if p.name in "ck"]
    assert found[0][1].share < 1.0


def test_a_choice_that_is_good_only_elsewhere_is_still_possible():
    """The other parameters of the recommended configuration do not suit it: only a search finds that it may be best."""
    space = mb.Space({"x": mb.Float(0, 1), "c": mb.Categorical(["a", "b", "c"])})
    tuner = mb.Tuner(space, sigma=0.001, reward_range=(-1, 1), norm_bound=4.0, rng=0)
    best = {"a": 0.1, "b": 0.9, "c": 0.5}
    for parameters in space.sample(150, rng=0):
        far = abs(parameters["x"] - best[parameters["c"]])
        tuner.tell(tuner.adopt(parameters), 0.5 - far**2 - (parameters["c"] == "c"))
    found = tuner.certificate()
    assert found.action["c"] in ("a", "b")
    values = {part.name: part.values for part in found.possible}
    assert set(values["c"]) == {"a", "b"}
    advantage = Advantage(tuner.moment.exact, tuner.moment.directions(space.encode(found.action)[None])[0])
    other = {**found.action, "c": "b" if found.action["c"] == "a" else "a"}
    assert advantage.maximum(tuner.moment.directions(space.encode(other)[None])) < 0.0
