"""Evidence that a challenger is worse: no more than chance allows, by enumeration, and found where there is some."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binomtest

from mixbandit.means.challenge import Challenge, LevelBets, RangeBets, SymmetricBets

DELTA = 0.05


def wealth(differences, bets):
    """The wealth after these differences to one opponent."""
    challenge = Challenge(1, bets)
    for difference in differences:
        challenge.step(difference, np.zeros(1))
    return np.exp(np.logaddexp.reduce(challenge._log_wealth)) / len(challenge._log_wealth)


@pytest.mark.parametrize("sizes", [(1.0, 1.0, 1.0, 1.0), (0.3, 5.0, 0.0, 1e-3, 2.0), (1e200, 1e-200, 1.0, 1e150)])
def test_symmetric_differences_bring_nothing_whatever_their_sizes(sizes):
    signs = itertools.product((-1.0, 1.0), repeat=len(sizes))
    found = [wealth(np.multiply(sizes, sign), SymmetricBets()) for sign in signs]
    assert np.mean(found) == pytest.approx(1.0, rel=1e-12)
    assert max(found) > 1.5


@pytest.mark.parametrize("ahead", [1e-3, 0.4, 1.0, 3.0])
def test_symmetric_differences_around_more_than_zero_bring_a_loss(ahead):
    for sizes in [(1.0, 1.0, 1.0, 1.0, 1.0), (0.3, 5.0, 0.1, 2.0, 0.7)]:
        signs = itertools.product((-1.0, 1.0), repeat=len(sizes))
        assert np.mean([wealth(ahead + np.multiply(sizes, sign), SymmetricBets()) for sign in signs]) < 1.0


@pytest.mark.parametrize("low", [-0.9, -0.1, -0.01])
def test_bets_on_a_range_are_about_the_mean_whatever_the_shape(low):
    """A rare large difference against frequent small ones, of mean zero: symmetric bets would be wrong here."""
    high, count = 0.9, 6
    chance = -low / (high - low)  # of `high`
    found = {SymmetricBets: 0.0, RangeBets: 0.0}
    for drawn in itertools.product((low, high), repeat=count):
        share = math.prod(chance if d == high else 1.0 - chance for d in drawn)
        found[RangeBets] += share * wealth(drawn, RangeBets((0.0, 1.0)))
        found[SymmetricBets] += share * wealth(drawn, SymmetricBets())
    assert found[RangeBets] == pytest.approx(1.0, rel=1e-12)
    if high != -low:
        assert found[SymmetricBets] > 1.05


def test_bets_on_a_level_are_fair_for_gaussian_noise():
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    weights = weights / weights.sum()
    factors = np.exp(LevelBets(0.3).log_factors(0.3 * nodes))
    assert weights @ factors == pytest.approx(np.ones(factors.shape[1]), rel=1e-9)


def exchangeable(orders, bets, others):
    """The mean wealth over all ways in which each step deals its numbers out to the challenger and the others."""
    deals = [list(itertools.permutations(numbers)) for numbers in orders]
    found = []
    for dealt in itertools.product(*deals):
        challenge = Challenge(others, bets())
        for numbers in dealt:
            challenge.step(numbers[0], np.array(numbers[1:]))
        found.append(np.exp(np.logaddexp.reduce(challenge._log_wealth)) / len(challenge._log_wealth))
    return np.mean(found)


@pytest.mark.parametrize("bets", [SymmetricBets, lambda: RangeBets((0.0, 1.0))])
def test_the_leader_among_equals_has_no_more_luck_than_others(bets):
    """The opponent leads on the steps before: it was chosen without the number that it is compared by."""
    orders = [(0.1, 0.5, 0.6), (0.9, 0.2, 0.3), (0.0, 0.4, 1.0), (0.5, 0.5, 0.7)]
    assert exchangeable(orders, bets, 2) == pytest.approx(1.0, rel=1e-12)


def test_opponents_that_stop_by_what_they_see_are_fair():
    """One that ends as soon as it falls behind, as a pruned one does, leaves the next step fair."""
    deals = [list(itertools.permutations(numbers)) for numbers in [(0.1, 0.5, 0.6), (0.9, 0.2, 0.3), (0.0, 0.4, 1.0)]]
    found = []
    for dealt in itertools.product(*deals):
        challenge, ended = Challenge(2, SymmetricBets()), False
        for own, one, other in dealt:
            challenge.step(own, np.array([one, math.nan if ended else other]))
            ended |= other < one
        found.append(np.exp(np.logaddexp.reduce(challenge._log_wealth)) / len(challenge._log_wealth))
    assert np.mean(found) == pytest.approx(1.0, rel=1e-12)


NOISES = {
    "gaussian": lambda rng, n: rng.normal(size=n),
    "cauchy": lambda rng, n: rng.standard_cauchy(n),
    "skewed": lambda rng, n: -rng.exponential(size=n),
    "yes or no": lambda rng, n: (rng.random(n) < 0.9).astype(float),
}


def pruned_after(noise, others, worse, run, steps=60):
    """The first step at which the p-value is at most δ, or None."""
    rng = np.random.default_rng([7, run])
    challenge, instances = Challenge(others, SymmetricBets()), 3.0 * rng.normal(size=steps)
    before = instances + np.array([noise(rng, steps) for _ in range(others)])
    own = instances + noise(rng, steps) - worse
    for k in range(steps):
        challenge.step(own[k], before[:, k])
        if challenge.pvalue <= DELTA:
            return k + 1
    return None


@pytest.mark.parametrize("others", [pytest.param(1, marks=pytest.mark.heavy), 10])
@pytest.mark.parametrize("noise", NOISES)
def test_an_equal_challenger_is_given_up_in_at_most_delta_of_runs(noise, others):
    runs = 150
    wrong = sum(pruned_after(NOISES[noise], others, 0.0, run) is not None for run in range(runs))
    assert binomtest(wrong, runs, DELTA, alternative="greater").pvalue > 1e-4, f"{wrong} of {runs}"


@pytest.mark.parametrize("others", [1, 10])
def test_a_worse_challenger_is_found_soon_however_many_came_before(others):
    found = [pruned_after(NOISES["gaussian"], others, 1.0, run) or math.inf for run in range(100)]
    assert 10 <= np.median(found) <= 20  # some 3 nats, at .2 a step


def test_without_opponents_there_is_no_evidence():
    challenge = Challenge(2, SymmetricBets())
    for _ in range(5):
        challenge.step(-1.0, np.array([math.nan, math.nan]))
    assert (challenge.pvalue, challenge.steps, challenge.leader) == (1.0, 0, None)
    challenge.step(-1.0, np.array([math.nan, 2.0]))
    assert (challenge.steps, challenge.leader) == (1, 1)


def test_the_p_value_never_rises():
    challenge, seen = Challenge(1, SymmetricBets()), []
    for difference in [-1.0] * 6 + [1.0] * 6:
        challenge.step(difference, np.zeros(1))
        seen.append(challenge.pvalue)
    assert seen == sorted(seen, reverse=True)
    assert seen[-1] <= DELTA
