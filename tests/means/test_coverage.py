"""In simulation: the e-process is one at the true mean, and intervals miss it in at most δ of runs, whoever stops."""

import itertools

import numpy as np
import pytest
from scipy.stats import binom, binomtest

import mixbandit as mb

DELTA, ROUNDS = 0.05, 60
SOURCES = {
    "p=.5": (0.5, lambda rng, n: (rng.random(n) < 0.5).astype(float)),
    "p=.95": (0.95, lambda rng, n: (rng.random(n) < 0.95).astype(float)),
    "p=.999": (0.999, lambda rng, n: (rng.random(n) < 0.999).astype(float)),
    "beta": (0.75, lambda rng, n: rng.beta(3, 1, n)),
    "two points": (0.3, lambda rng, n: np.where(rng.random(n) < 0.1, 0.75, 0.25)),
    "narrow": (0.94, lambda rng, n: 0.94 + 0.01 * rng.uniform(-np.sqrt(3), np.sqrt(3), n)),
}


def misses(make, source, mean, runs, rounds=ROUNDS):
    """Runs in which p(mean) ever fell to δ: the largest evidence decides, so stopping may chase the error."""
    found = 0
    for run in range(runs):
        values = source(np.random.default_rng([17, run]), rounds)
        found += make().update(values).pvalue(mean) <= DELTA
    return found


def judge(found, runs):
    assert binomtest(found, runs, DELTA, alternative="greater").pvalue > 1e-4, f"{found} of {runs} runs missed"


@pytest.mark.parametrize(
    ("values", "chances"),
    [
        ((0.0, 1.0), (0.5, 0.5)),
        ((0.0, 1.0), (0.001, 0.999)),
        ((0.25, 0.75), (0.9, 0.1)),
        ((0.0, 0.3, 0.95), (0.2, 0.3, 0.5)),
        ((0.93, 0.95), (0.5, 0.5)),
    ],
)
def test_the_evidence_at_the_true_mean_has_expectation_one(values, chances):
    """Over all outcomes of six values, none left to chance: it is a martingale, and nothing is given away."""
    mean = float(np.dot(values, chances))
    total = 0.0
    for outcome in itertools.product(range(len(values)), repeat=6):
        chance = np.prod([chances[i] for i in outcome])
        total += chance * np.exp(mb.MeanSequence().update([values[i] for i in outcome]).log_evalue(mean))
    assert total == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("p", [0.4, 0.95])
def test_means_of_yes_or_no_results_make_a_martingale_too(p):
    hits = range(6)
    total = sum(
        binom.pmf(i, 5, p) * binom.pmf(j, 5, p) * np.exp(mb.MeanSequence().update([i / 5, j / 5], 5).log_evalue(p))
        for i in hits
        for j in hits
    )
    assert total == pytest.approx(1.0, rel=1e-9)


def test_means_of_other_results_make_a_supermartingale():
    """Five results that are 0.25 or 0.75: their mean is treated as if they were further apart, which is safe."""
    hits = range(6)
    total = sum(
        binom.pmf(i, 5, 0.1)
        * binom.pmf(j, 5, 0.1)
        * np.exp(mb.MeanSequence().update([0.25 + i / 10, 0.25 + j / 10], 5).log_evalue(0.3))
        for i in hits
        for j in hits
    )
    assert 0.1 < total < 1.0


@pytest.mark.parametrize("name", ["beta", "narrow"])
def test_the_evidence_at_the_true_mean_averages_to_one(name):
    mean, source = SOURCES[name]
    rng = np.random.default_rng(5)
    evidence = np.exp([mb.MeanSequence().update(source(rng, 8)).log_evalue(mean) for _ in range(1000)])
    assert abs(evidence.mean() - 1.0) <= 4.0 * evidence.std() / np.sqrt(len(evidence))


@pytest.mark.heavy
@pytest.mark.parametrize("name", SOURCES)
def test_bounded_results_are_covered_at_all_times(name):
    mean, source = SOURCES[name]
    judge(misses(mb.MeanSequence, source, mean, 1000, 300), 1000)


@pytest.mark.parametrize("name", ["p=.5", "beta"])
def test_bounded_results_are_covered(name):
    mean, source = SOURCES[name]
    judge(misses(mb.MeanSequence, source, mean, 300), 300)


@pytest.mark.parametrize("level", [1e-4, 0.3])
def test_gaussian_values_of_unknown_level_are_covered_at_all_times(level):
    found = misses(
        lambda: mb.MeanSequence(None, noise="gaussian"), lambda rng, n: rng.normal(0.4, level, n), 0.4, 1000, 200
    )
    judge(found, 1000)
    assert found >= 10  # not far from δ: the test can see


def test_gaussian_values_of_known_level_are_covered_at_all_times():
    found = misses(lambda: mb.MeanSequence(None, sigma=0.3), lambda rng, n: rng.normal(0.4, 0.3, n), 0.4, 1000, 200)
    judge(found, 1000)
    assert found >= 5


def test_one_sided_pvalues_are_covered():
    """Where the null is true with room to spare, as well as at its edge."""
    for null in (0.5, 0.55):
        found = sum(
            mb.MeanSequence().update(np.random.default_rng([3, run]).random(80) < 0.5).pvalue(null, "greater") <= DELTA
            for run in range(500)
        )
        judge(found, 500)


def test_intervals_miss_when_pvalues_say_so():
    """Step by step: the interval excludes the mean exactly when the evidence now is at 1/δ."""
    x = (np.random.default_rng(2).random(150) < 0.75).astype(float)
    cs, excluded = mb.MeanSequence(), False
    for value in x:
        low, high = cs.update(value).interval()
        excluded |= not low <= 0.5 <= high
        assert excluded == (cs.pvalue(0.5) < DELTA * (1 - 1e-7))
    assert excluded
