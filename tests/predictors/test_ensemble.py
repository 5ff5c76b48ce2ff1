"""Ensembles, against Bayes' rule written out."""

import numpy as np
import pytest
from scipy.stats import norm

from mixbandit.errors import DamagedState, InvalidInput
from mixbandit.predictors import CosinesPerArm, Ensemble, Prediction, Predictor, RidgePerArm
from tests.predictors.test_cosines import ARMS, offer, world


class Fixed(Predictor):
    """Always expects the same."""

    def __init__(self, mean, spread):
        self.mean, self.own = mean, spread

    def predict(self, offer):
        return Prediction(np.full(len(offer), self.mean), np.full(len(offer), self.own))

    def after(self, offer, arm, reward):
        return self


def begun(**options):
    members = [RidgePerArm(1.0), RidgePerArm(10.0), CosinesPerArm(30)]
    return Ensemble(members, **options).for_arms(ARMS).rescaled(np.eye(3, 1), np.eye(1))


def taught(predictor, n=150):
    for context, arm, reward in zip(*world(n), strict=True):
        predictor = predictor.after(offer(context, [arm]), 0, float(reward))
    return predictor


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 1.0])
@pytest.mark.parametrize("prior", [None, [3.0, 1.0, 0.1]])
def test_weights_follow_bayes_rule(share, prior):
    members, rewards = [(0.2, 0.1), (0.5, 0.4), (0.9, 0.01)], np.random.default_rng(0).uniform(size=40)
    predictor = Ensemble([Fixed(*each) for each in members], noise=0.3, share=share, prior=prior)
    first = np.full(3, 1 / 3) if prior is None else np.array(prior) / np.sum(prior)
    weights, errors = first, 0.0
    for n, reward in enumerate(rewards):
        mean, spread = predictor.predict(offer([1.0]))
        np.testing.assert_allclose(mean, weights @ [m for m, _ in members], rtol=1e-12)
        np.testing.assert_array_equal(spread, 0.1)
        level2 = (0.3**2 + errors) / (1 + n)
        found = predictor.scored(offer([1.0], [1]), 0, reward)
        assert (found.mean, found.spread) == (pytest.approx(mean[0]), 0.1)
        predictor = found.after
        errors += (reward - mean[0]) ** 2 * level2 / (level2 + (weights @ [s for _, s in members]) ** 2)
        weights = weights * [norm.pdf(reward, m, np.sqrt(level2 + s * s)) for m, s in members]
        weights = (1.0 - share) * weights / weights.sum() + share * first
        np.testing.assert_allclose(predictor.weights, weights, rtol=1e-9)
    assert predictor.errors == pytest.approx(errors)


def test_it_weighs_what_predicts_best():
    predictor = taught(begun(), 400)
    assert predictor.weights[2] > 0.9  # rewards are far from linear
    x = world(450)[0][400]
    mean = sum(w * member.means(offer(x)) for w, member in zip(predictor.weights, predictor.members, strict=True))
    np.testing.assert_allclose(predictor.means(offer(x)), mean, rtol=1e-12)
    np.testing.assert_array_equal(predictor.predict(offer(x)).mean, predictor.means(offer(x)))
    np.testing.assert_array_equal(predictor.predict(offer(x)).spread, predictor.members[0].predict(offer(x)).spread)


def test_several_contexts_are_predicted_as_one_by_one():
    predictor, offers = taught(begun()), [offer(x) for x in world(9, seed=1)[0]]
    many = predictor.predict_many(offers)
    np.testing.assert_array_equal(many.mean, [predictor.predict(each).mean for each in offers])
    np.testing.assert_array_equal(many.spread, [predictor.predict(each).spread for each in offers])


def test_members_learn_as_they_do_alone():
    alone = RidgePerArm(1.0).for_arms(ARMS).rescaled(np.eye(3, 1), np.eye(1))
    x = offer(world(1, seed=3)[0][0])
    np.testing.assert_array_equal(taught(alone).predict(x), taught(begun()).members[0].predict(x))


def test_rewards_that_nothing_explains_leave_the_weights_finite():
    predictor = Ensemble([Fixed(0.0, 1e-9), Fixed(1.0, 1e-9)], noise=1e-9, share=0.0)
    for reward in (0.0, 0.0, 1.0, 1.0, 0.5, 1e6):
        predictor = predictor.after(offer([1.0], [0]), 0, reward)
        assert sum(predictor.weights) == pytest.approx(1.0)
    assert np.isfinite(predictor.predict(offer([1.0])).mean).all()


class Broken(Fixed):
    """Returns what no predictor may return."""

    def __init__(self, found):
        super().__init__(0.0, 0.0)
        self.found = found

    def predict(self, offer):
        return self.found


@pytest.mark.parametrize(
    "found",
    [
        (np.zeros(3), np.ones(3)),
        [0.0] * 3,
        None,
        Prediction(np.zeros(2), np.zeros(2)),
        Prediction([0.0] * 3, [0.0] * 3),
    ],
)
def test_members_that_return_nonsense_are_refused(found):
    for members in ([Broken(found), Fixed(0.0, 1.0)], [Fixed(0.0, 1.0), Broken(found)]):
        with pytest.raises(InvalidInput, match=r"must return a Prediction|must predict a mean"):
            Ensemble(members).predict(offer([1.0]))


def test_stored():
    predictor = taught(begun(share=0.1, prior=[1.0, 2.0, 3.0]))
    again = Predictor.family.load(predictor.state_dict())
    x = offer(world(1, seed=3)[0][0])
    np.testing.assert_array_equal(taught(again).predict(x), taught(predictor).predict(x))
    state = predictor.state_dict()
    for broken in ({"weights": [1.0]}, {"weights": [0.5, 0.1, 0.1]}, {"members": []}, {"share": 1.5}, {"errors": -1.0}):
        with pytest.raises(DamagedState):
            Predictor.family.load({**state, **broken})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Ensemble([]), "at least one member"),
        (lambda: Ensemble([RidgePerArm]), "a member must be a Predictor"),
        (lambda: Ensemble(RidgePerArm()), "members"),
        (lambda: Ensemble([RidgePerArm()], noise=0.0), "noise"),
        (lambda: Ensemble([RidgePerArm()], share=-0.1), "share"),
        (lambda: Ensemble([RidgePerArm()], prior=[0.5, 0.5]), "a weight for each of 1 members, got 2"),
        (lambda: Ensemble([RidgePerArm()], prior=[0.0]), "prior"),
    ],
)
def test_settings_are_checked(make, message):
    with pytest.raises(InvalidInput, match=message):
        make()
