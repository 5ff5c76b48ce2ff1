"""Rules on predictions, against their formulas."""

import numpy as np
import pytest
from scipy.stats import norm

from mixbandit.bandits import View
from mixbandit.bandits.rules import NO_BELIEF, ActingRule, Greedy, InverseGap, Optimistic, Thompson, as_shares
from mixbandit.errors import InvalidInput
from mixbandit.predictors import Prediction, Predictor
from mixbandit.search import ArmsOffer

MEAN = np.array([0.2, 0.5, 0.45, -0.1])
SPREAD = np.array([0.3, 0.05, 0.1, 0.4])
OFFER = ArmsOffer(np.eye(4))


class Given(Predictor):
    """Expects what it is given."""

    def __init__(self, mean, spread):
        self.given = Prediction(np.asarray(mean, dtype=float), np.asarray(spread, dtype=float))

    def predict(self, offer):
        places = np.flatnonzero(offer.rows.any(axis=0))
        return Prediction(self.given.mean[places], self.given.spread[places])

    def after(self, offer, arm, reward):
        return self


def shares(rule, mean=MEAN, spread=SPREAD, offer=OFFER, round_=1, seed=0):
    view = View(NO_BELIEF, round_, Given(mean, spread))
    return as_shares(rule.select(view, offer, np.random.default_rng(seed)), 4).array()


def test_greed_and_optimism():
    np.testing.assert_array_equal(shares(Greedy()), [0, 1, 0, 0])
    np.testing.assert_array_equal(shares(Optimistic(0.0)), [0, 1, 0, 0])
    np.testing.assert_array_equal(shares(Optimistic(1.0)), [0, 0.5, 0.5, 0])
    np.testing.assert_array_equal(shares(Optimistic(2.0)), [1, 0, 0, 0])
    np.testing.assert_array_equal(shares(Greedy(), [0.3, 0.3, 0.1, 0.3]), [1 / 3, 1 / 3, 0, 1 / 3])


@pytest.mark.parametrize("round_", [1, 16, 400])
def test_inverse_gap_weighting(round_):
    found = shares(InverseGap(30.0), round_=round_)
    other = [1 / (4 + 30.0 * round_**0.5 * (0.5 - m)) for m in MEAN]
    np.testing.assert_allclose(found[[0, 2, 3]], np.array(other)[[0, 2, 3]], rtol=1e-12)
    assert found.sum() == pytest.approx(1.0)
    assert found.argmax() == 1
    np.testing.assert_allclose(shares(InverseGap(30.0, exponent=0.0), round_=round_), shares(InverseGap(30.0)))


def test_arms_that_tie_are_as_probable():
    found = shares(InverseGap(30.0), [0.3, 0.3, 0.1, 0.3])
    assert found[0] == found[1] == found[3] > found[2] == pytest.approx(1 / (4 + 30 * 0.2))
    np.testing.assert_allclose(shares(Thompson(), [0.3, 0.3, 0.1, 0.3], np.zeros(4)), [1 / 3, 1 / 3, 0, 1 / 3])
    for rule in (Greedy(), Thompson(), InverseGap(30.0)):  # but for rounding
        found = shares(rule, [0.3, 0.1 + 0.2, -0.5, -0.9], np.zeros(4))
        assert found[0] == found[1] > 0.45


@pytest.mark.parametrize("scale", [0.3, 1.0, 2.0])
def test_thompson_plays_an_arm_as_often_as_it_is_the_best(scale):
    """Against an integral: the chance that arm k is x, and all others are below."""
    grid = np.linspace(-4.0, 4.0, 40001)
    spread = scale * SPREAD
    below = norm.cdf((grid[:, None] - MEAN) / spread)
    density = norm.pdf((grid[:, None] - MEAN) / spread) / spread
    exact = [np.trapezoid(density[:, k] * np.delete(below, k, axis=1).prod(axis=1), grid) for k in range(4)]
    np.testing.assert_allclose(shares(Thompson(scale, draws=100_000)), exact, atol=0.006)
    # With few draws the probabilities are coarse, and right on average.
    several = [shares(Thompson(scale, draws=7), seed=seed) for seed in range(3000)]
    np.testing.assert_allclose(np.mean(several, axis=0), exact, atol=0.015)
    np.testing.assert_allclose(np.array(several) * 7, np.round(np.array(several) * 7), atol=1e-9)


@pytest.mark.parametrize("rule", [Greedy(), Optimistic(), Thompson(), InverseGap()], ids=lambda rule: rule.name)
def test_of_a_restricted_offer_only_its_arms_have_a_chance(rule):
    found = shares(rule, offer=OFFER.restricted(np.array([True, False, False, True])))
    assert found[1] == found[2] == 0.0
    assert found.sum() == pytest.approx(1.0)
    assert found[0] > 0.0


@pytest.mark.parametrize("rule", [Greedy(), Optimistic(0.5), Thompson(0.5, 64), InverseGap(3.0, 0.2)])
def test_stored(rule):
    again = ActingRule.family.load(rule.state_dict())
    assert type(again) is type(rule)
    assert again.settings() == rule.settings()


def test_files_of_earlier_versions_have_thompson_sampling_without_settings():
    assert ActingRule.family.load({"type": "Thompson"}).settings() == {"scale": 1.0, "draws": 100}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Thompson(-1.0), "scale"),
        (lambda: Thompson(draws=0), "draws"),
        (lambda: InverseGap(0.0), "gamma"),
        (lambda: InverseGap(1.0, -0.5), "exponent"),
        (lambda: InverseGap(1.0, 1.5), "exponent"),
    ],
)
def test_settings_are_checked(make, message):
    with pytest.raises(InvalidInput, match=message):
        make()


def test_without_a_predictor_there_is_nothing_to_act_on():
    with pytest.raises(InvalidInput, match="give the policy arms and a predictor"):
        InverseGap().select(View(NO_BELIEF, 1), OFFER, np.random.default_rng(0))
