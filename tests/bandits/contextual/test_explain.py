"""Explanations: what was expected when a choice was made, and which features said so."""

import io

import numpy as np
import pytest

import mixbandit as mb
from mixbandit.bandits.contextual.explanation import OTHER
from mixbandit.bandits.rules import Optimistic, Uniform
from mixbandit.errors import InvalidInput
from mixbandit.predictors import CosinesPerArm, Ensemble, Prediction, Predictor, RidgePerArm, SharedRidge
from tests.bandits.contextual.worlds import contexts, make

PREDICTORS = {
    "default": None,
    "ensemble": Ensemble([RidgePerArm(1.0), CosinesPerArm(20)]),
    "cosines": CosinesPerArm(20),
}


def played(n, predictor=None, **options):
    """A bandit, its choices, and what its predictor expected when it made each."""
    bandit, choices, expected = make(predictor=predictor, **options), [], []
    for t, context in enumerate(contexts(n)):
        state = bandit.state
        choice = bandit.ask(context, arms=["a", "c"] if t % 5 == 4 else None)
        features = state.features.after(state.features.read(context))
        now = state.seeing(features)
        numbers = np.array([0, 2] if t % 5 == 4 else [0, 1, 2])
        offer = now.offer(features.row(state.features.read(context)), numbers, tuple(choice.probabilities))
        expected.append(now.predictor.predict(offer))
        choices.append(choice)
        if t % 3:
            bandit.tell(choice, 0.8 if choice.arm == "b" else 0.3)
    return bandit, choices, expected


@pytest.mark.parametrize("name", PREDICTORS)
def test_estimates_are_those_of_the_moment(name):
    bandit, choices, expected = played(90, PREDICTORS[name])
    for t in (0, 1, 33, 34, 64, 88, 89):
        for given in (choices[t], choices[t].id):
            found = bandit.explain(given)
            np.testing.assert_array_equal(found.estimate, expected[t].mean)
            np.testing.assert_array_equal(found.spread, expected[t].spread)
        assert (found.id, found.arm) == (choices[t].id, choices[t].arm)
        assert list(found.arms) == list(choices[t].probabilities)
        np.testing.assert_array_equal(found.probabilities, np.asarray(choices[t].probabilities))
        assert found.probability == choices[t].probability
        for arm, estimate in zip(found.arms, found.estimate, strict=True):
            assert sum(found.contributions[arm].values()) == pytest.approx(estimate, abs=1e-12)
        others = [arm for arm in found.arms if arm != found.arm]
        best = max(others, key=lambda arm: found.estimate[found.arms.index(arm)])
        assert found.estimate[found.arms.index(found.runner_up)] == found.estimate[found.arms.index(best)]


def test_contributions_of_a_linear_model_are_coefficients_times_features():
    bandit, _, _ = played(60, RidgePerArm())
    choice = bandit.ask({"tokens": 900.0, "topic": "code", "urgent": True})
    state, found = bandit.state, bandit.explain(choice)
    row = state.features.row(state.features.read({"tokens": 900.0, "topic": "code", "urgent": True}))
    theta = state.predictor.ridges.of(0).theta
    for column, (weight, value) in enumerate(zip(theta, row, strict=True)):
        assert found.contributions["a"][state.features.name(column)] == pytest.approx(weight * value, abs=1e-14)
    assert OTHER not in found.contributions["a"]
    assert found.contributions["a"]["topic=code"] != 0.0 == found.contributions["a"]["topic=chat"]


def test_contributions_where_arms_have_features():
    arms = {"a": {"size": 1.0}, "b": {"size": 2.0}, "c": {"size": 4.0}}
    bandit = mb.ContextualBandit(arms, rng=0)
    assert isinstance(bandit.state.predictor, SharedRidge)
    for t, context in enumerate(contexts(40)):
        choice = bandit.ask(context)
        bandit.tell(choice, t % 2)
    found = bandit.explain(bandit.ask(context))
    for arm, estimate in zip(found.arms, found.estimate, strict=True):
        assert sum(found.contributions[arm].values()) == pytest.approx(estimate, abs=1e-12)
        assert OTHER not in found.contributions[arm]
    assert found.contributions["a"]["intercept"] != found.contributions["b"]["intercept"]


def test_the_words_say_why():
    bandit, choices, _ = played(120, rule=Optimistic(0.0), floor=0.0)
    text = str(bandit.explain(choices[-2]))
    assert "was chosen with probability 1, after 78 rewards. Its estimate was the highest, by" in text
    assert "adds up from" in text
    assert text.endswith("Nothing about them is proven.")
    bandit, choices, _ = played(120, rule=Uniform())
    lower = next(c for c in choices[60:] if bandit.explain(c).margin < 0.0)
    assert "The estimate for" in str(bandit.explain(lower))
    bandit, choices, _ = played(60, control=mb.Control("a", share=0.5))
    control = next(choice for choice in choices if choice.group == "control")
    assert "as the control, whatever was expected" in str(bandit.explain(control))
    alone = bandit.explain(bandit.ask(contexts(1)[0], arms=["b"]))
    assert (alone.runner_up, alone.margin) == (None, None)
    assert "No other arm was eligible" in str(alone)
    first = make()
    assert "were equal" in str(first.explain(first.ask({"x": 1.0})))


def test_many_arms_and_features_are_cut_short():
    bandit = mb.ContextualBandit(50, rng=0)
    rng = np.random.default_rng(0)
    for _ in range(300):
        choice = bandit.ask(rng.normal(size=30))
        bandit.tell(choice, rng.random())
    text = str(bandit.explain(choice))
    assert "and 42 more" in text
    assert "other features" in text
    assert len(text) < 2000


def test_pictures():
    bandit, choices, _ = played(60, PREDICTORS["ensemble"])
    for choice in (choices[-1], bandit.ask(contexts(1)[0], arms=["b"])):
        left, right = bandit.explain(choice).plot().axes
        assert left.get_title() == f"{choice.arm} was chosen"
        assert right.get_xlabel() == "contribution to the estimate"


def test_a_loaded_bandit_explains_what_was_decided_before(tmp_path):
    bandit, choices, expected = played(50)
    bandit.save(tmp_path / "bandit")
    again = mb.load(tmp_path / "bandit")
    for t in (3, 49):
        np.testing.assert_array_equal(again.explain(choices[t].id).estimate, expected[t].mean)
        assert str(again.explain(choices[t])) == str(bandit.explain(choices[t]))


def test_batches_and_arms_that_came_and_went():
    bandit = make()
    many = bandit.ask_many(contexts(20))
    bandit.tell_many(many, np.linspace(0.0, 1.0, 20))
    last = bandit.ask(contexts(1)[0])
    bandit.add_arm("d").remove_arm("a")
    assert bandit.explain(many[7]).rewards == 0
    assert bandit.explain(last).arms == ("a", "b", "c")
    assert bandit.explain(last).rewards == 20


def test_columns_of_one_name_add_up():
    bandit = mb.ContextualBandit(["a", "b"], rng=0)
    for i in range(40):
        choice = bandit.ask({"intercept": float(i % 3), "a=b": 1.0 * i, "a": "b" if i % 2 else "c"})
        bandit.tell(choice, float(i % 3 == 0))
    found = bandit.explain(choice)
    for arm, estimate in zip(found.arms, found.estimate, strict=True):
        assert sum(found.contributions[arm].values()) == pytest.approx(estimate, abs=1e-12)


def test_pictures_of_labels_that_mean_something_to_matplotlib():
    bandit = mb.ContextualBandit(["$5_$", "_b", r"\foo$"], rng=0)
    for _ in range(9):
        choice = bandit.ask({"price $ in_": 1.0, r"$\foo$": "x", "_c": True})
        bandit.tell(choice, 0.5)
        bandit.explain(choice).plot().savefig(io.BytesIO())


class Opaque(Predictor):
    """Says nothing about features."""

    def predict(self, offer):
        return Prediction(np.array([0.1, 0.3, 0.2]), np.zeros(3))

    def after(self, offer, arm, reward):
        return self


def test_a_predictor_that_says_nothing_about_features():
    bandit = make(predictor=Opaque())
    found = bandit.explain(bandit.ask({"x": 1.0}))
    assert found.contributions["b"][OTHER] == pytest.approx(0.3)
    assert f"{OTHER} +0.3" in str(found)


def test_unknown_choices_are_refused():
    bandit = make()
    bandit.ask({"x": 1.0})
    for wrong in (make().ask({"x": 1.0}), "0123-0", 3):
        with pytest.raises(InvalidInput, match=r"unknown|a choice, or the id"):
            bandit.explain(wrong)
