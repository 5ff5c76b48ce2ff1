"""The mean of a finite list: bounds are valid over all orders of drawing, and a point in the end."""

import itertools

import numpy as np
import pytest
from scipy.stats import binomtest

from mixbandit.means import finite
from mixbandit.means.finite import mean_of_finite_list

DELTA = 0.05
LISTS = {
    "narrow": np.clip(0.93 + 0.02 * np.random.default_rng(0).normal(size=60), 0.0, 1.0),
    "yes or no": (np.arange(60) < 51).astype(float),
    "rare": (np.arange(60) < 58).astype(float),
    "uniform": np.random.default_rng(1).random(60),
    "one outlier": np.array([0.0, *np.full(29, 0.95)]),
}


@pytest.mark.parametrize("values", [(0.2, 0.5, 0.9, 0.9), (0.1, 0.01, 1.0, 1.0, 0.3), (0.93, 0.95, 0.94, 0.96)])
def test_the_evidence_at_the_true_mean_has_expectation_one(values):
    """Over all orders of drawing, none left to chance, and after any number of draws."""
    for drawn in range(1, len(values)):
        orders = list(itertools.permutations(values, drawn))
        wealth = [np.exp(finite._log_wealth(np.array(order), len(values), np.mean(values))) for order in orders]
        assert np.mean(wealth) == pytest.approx(1.0, rel=1e-9)


def test_where_only_zeros_are_left_the_evidence_falls():
    orders = itertools.permutations((0.0, 0.0, 1.0, 1.0, 0.3), 4)
    assert np.mean([np.exp(finite._log_wealth(np.array(order), 5, 0.46)) for order in orders]) < 1.0


def misses(name, runs):
    """Runs in which the true mean was ever outside: it is if the evidence against it reaches 2/δ on either side."""
    values, found = LISTS[name], 0
    for run in range(runs):
        order = np.random.default_rng([3, run]).permutation(values)
        found += any(
            finite._log_wealth(x[:n], len(x), x.mean()) >= np.log(2 / DELTA)
            for x in (order, 1.0 - order)
            for n in range(1, len(x), 2)
        )
    return found


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("runs", [150, pytest.param(600, marks=pytest.mark.heavy)])
def test_intervals_miss_in_at_most_delta_of_runs_whoever_stops(name, runs):
    """A run misses if any of its intervals does: whoever stops when it is wrong is covered, too."""
    missed = misses(name, runs)
    assert binomtest(missed, runs, DELTA, alternative="greater").pvalue > 1e-4, f"{missed} of {runs} runs missed"


@pytest.mark.parametrize("name", LISTS)
def test_ends_are_where_the_evidence_or_certainty_says(name):
    values = np.random.default_rng(5).permutation(LISTS[name])
    drawn, count = values[: len(values) // 2], len(values)
    low, high = mean_of_finite_list(drawn, count, (0.0, 1.0), DELTA)
    for x, end in ((drawn, low), (1.0 - drawn, 1.0 - high)):
        means = np.linspace(x.sum() / count, (x.sum() + count - len(x)) / count, 200)
        refuted = [mean for mean in means if finite._log_wealth(x, count, mean) >= np.log(2 / DELTA)]
        assert end == pytest.approx(max(refuted, default=means[0]), abs=means[1] - means[0])


def test_draws_help_beyond_what_is_certain():
    values = LISTS["narrow"]
    low, high = mean_of_finite_list(values[:30], 60, (0.0, 1.0), DELTA)
    assert high - low < 0.5 * 30 / 60
    assert low < values.mean() < high


def test_it_is_never_wider_than_what_is_certain():
    rng = np.random.default_rng(2)
    for _ in range(50):
        values, drawn = rng.random(10), int(rng.integers(1, 10))
        low, high = mean_of_finite_list(values[:drawn], 10, (0.0, 1.0), 1e-6)
        total = values[:drawn].sum()
        assert total / 10 - 1e-12 <= low <= high <= (total + 10 - drawn) / 10 + 1e-12


def test_all_of_them_are_a_point_without_any_range():
    assert mean_of_finite_list(np.array([0.25, 0.75]), 2, None, DELTA) == (0.5, 0.5)
    assert mean_of_finite_list(np.array([0.25]), 2, None, DELTA) == (-np.inf, np.inf)


def test_it_moves_with_the_range():
    unit = np.array(mean_of_finite_list(LISTS["narrow"][:40], 60, (0.0, 1.0), DELTA))
    moved = mean_of_finite_list(5.0 * LISTS["narrow"][:40] - 3.0, 60, (-3.0, 2.0), DELTA)
    np.testing.assert_allclose(moved, 5.0 * unit - 3.0, rtol=1e-9)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_numbers_at_an_end(value):
    low, high = mean_of_finite_list(np.full(50, value), 60, (0.0, 1.0), DELTA)
    assert low <= value <= high
    assert high - low < 10 / 60
