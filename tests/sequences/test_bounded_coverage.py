"""How often bounded values ever leave the truth out, with actions chosen where the bounds are nearest to missing it."""

import numpy as np
import pytest
from scipy.stats import binom

import mixbandit as mb

DELTA = 0.1
RESULTS = ("yes or no", "beta", "two points")
CELLS = [(kind, m, level) for kind in RESULTS for m in (1, 100) for level in (0.5, 0.99)]
ARMS = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.4], [0.3, 0.7]])


def value(rng, kind, p, m):
    """The mean of m independent results of mean p."""
    if kind == "yes or no":
        return rng.binomial(m, p) / m
    if kind == "beta":
        return float(rng.beta(2.0 * p, 2.0 * (1.0 - p), size=m).mean())
    low = p - 0.5 * min(p, 1.0 - p)  # the two points lie around the mean, and one of them far from it
    return float(np.where(rng.uniform(size=m) < (1.0 - p) / (1.0 - low), low, 1.0).mean())


def missed(kind, m, level, run, rounds):
    """Whether θ* ever left the set in one run."""
    rng = np.random.default_rng([run, m, RESULTS.index(kind), int(100 * level)])
    theta = np.array([level, level]) + (
        0.3 * rng.uniform(-1, 1, size=2) if level == 0.5 else 0.009 * rng.uniform(size=2)
    )
    truth = ARMS @ theta
    cs = mb.BoundedMixture(2, norm_bound=2.0, delta=DELTA, samples=m, on_empty="inflate")
    arm = 0
    for _ in range(rounds):
        cs.update(ARMS[arm], value(rng, kind, truth[arm], m))
        if not cs.contains(theta):
            return True
        lower, upper = cs.lower(ARMS), cs.upper(ARMS)
        assert (lower <= truth + 1e-9).all()  # the ellipsoids contain the set
        assert (upper >= truth - 1e-9).all()
        arm = int(np.argmin(np.minimum(truth - lower, upper - truth)))
    return False


def ever_missed(kind, m, level, runs, rounds):
    return sum(missed(kind, m, level, run, rounds) for run in range(runs))


@pytest.mark.parametrize(
    ("kind", "m", "level"),
    [cell if (cell[1] == 1) == (cell[2] == 0.99) else pytest.param(*cell, marks=pytest.mark.heavy) for cell in CELLS],
)
def test_the_truth_is_rarely_missed(kind, m, level):
    runs = 8
    assert ever_missed(kind, m, level, runs, rounds=10) <= binom.isf(1e-4, runs, DELTA)


@pytest.mark.heavy
@pytest.mark.parametrize(("kind", "m", "level"), CELLS)
def test_the_truth_is_missed_less_often_than_stated(kind, m, level):
    runs = 100  # docs/results/coverage.md has more
    assert ever_missed(kind, m, level, runs, rounds=15) <= binom.isf(1e-3, runs, DELTA)
