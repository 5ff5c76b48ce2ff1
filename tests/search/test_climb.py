"""Compiled climbs take the steps of those with numpy, and end where the gradient allows no more."""

import numpy as np
import pytest

import mixbandit as mb
from mixbandit import _compiling
from mixbandit.models import FeatureModel
from mixbandit.search import InformationPerRegret
from mixbandit.search.climb import climbed
from mixbandit.sets import Point

pytest.importorskip("numba")

FEATURES = {
    "cosine": lambda k: mb.RandomFourier(k, 15, lengthscale=0.8, rng=3),
    "tanh": lambda k: mb.RandomLayer(k, 15, "tanh", rng=3),
    "sigmoid": lambda k: mb.RandomLayer(k, 15, "sigmoid", rng=3),
    "relu": lambda k: mb.RandomLayer(k, 15, "relu", rng=3),
}
BOXES = {
    "unit": mb.Box([0.0] * 4, [1.0] * 4),
    "wide": mb.Box([-2.0, 0.0, 1.0, -0.1], [1.0, 0.5, 4.0, 0.1]),
    "fixed": mb.Box([0.3, 0.0, 0.0, 0.7], [0.3, 1.0, 1.0, 0.7]),
}


def problem(name, box, t):
    """A model and a sequence that has seen t rewards; 12 starts in the box."""
    features, rng = FEATURES[name](box.dim), np.random.default_rng([5, t])
    rows = box.sample(max(t, 1), rng)[:t]
    theta = rng.normal(size=15)
    theta *= 1.5 / np.linalg.norm(theta)
    cs = mb.MartingaleMixture(features, sigma=0.1, norm_bound=2.0)
    cs.update(rows, features(rows) @ theta + 0.1 * rng.uniform(-1.0, 1.0, size=t))
    starts = rng.uniform(size=(12, box.dim))
    starts[:, box.width == 0.0] = 0.0
    return FeatureModel(features), cs, starts


def both(score, model, box, starts, **options):
    one = climbed(score, model, box, starts, **options)
    with _compiling.off():
        return one, climbed(score, model, box, starts, **options)


SCORES = {
    "exact": lambda moment: moment.exact,
    "closed form": lambda moment: moment.closed_form,
    "information": lambda moment: InformationPerRegret(moment.closed_form, 2.5),
    "point": lambda moment: Point(moment.closed_form.centre),
}


@pytest.mark.parametrize("kind", SCORES)
@pytest.mark.parametrize("t", [3, 14, 60, 400])  # fewer rewards than features, about as many, and more
@pytest.mark.parametrize("box", BOXES)
@pytest.mark.parametrize("name", FEATURES)
def test_compiled_and_numpy_climb_alike(name, box, t, kind):
    model, cs, starts = problem(name, BOXES[box], t)
    score = SCORES[kind](cs.moment)
    assert score.form() is not None
    # Few steps, so that roundings cannot have led to other hills: kinks of relu spread them fastest.
    one, other = both(score, model, BOXES[box], starts, steps=2 if name == "relu" else 5)
    np.testing.assert_allclose(one.value, other.value, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(one.y, other.y, atol=2e-5)
    assert one.evaluations == other.evaluations


@pytest.mark.parametrize("kind", SCORES)
@pytest.mark.parametrize("name", ["cosine", "tanh", "sigmoid"])
def test_a_climb_ends_where_no_coordinate_helps(name, kind):
    box = BOXES["unit"]
    model, cs, starts = problem(name, box, 60)
    score = SCORES[kind](cs.moment)
    one, other = both(score, model, box, starts)
    assert one.value.max() == pytest.approx(other.value.max(), rel=1e-6)
    best = one.y[one.value.argmax()]
    around = np.clip(best + 1e-3 * np.vstack((np.eye(4), -np.eye(4))), 0.0, 1.0)
    assert score.maximum(model.directions(around)).max() <= one.value.max() + 1e-7
    np.testing.assert_allclose(score.maximum(model.directions(best[None])), one.value.max(), rtol=1e-9)


def test_only_what_moves_is_moved():
    box = BOXES["unit"]
    model, cs, starts = problem("cosine", box, 60)
    moving = np.array([True, False, True, False])
    one, other = both(cs.moment.exact, model, box, starts, moving=moving)
    np.testing.assert_array_equal(one.y[:, ~moving], starts[:, ~moving])
    assert (one.y[:, moving] != starts[:, moving]).any()
    np.testing.assert_allclose(one.value.max(), other.value.max(), rtol=1e-6)


def test_directions_of_any_size_are_climbed():
    # Features of 1e-120: their squares leave the range of floats, and numpy takes over.
    features = mb.RandomLayer(2, 4, "relu", rng=0)
    features.weights, features.offset = 1e-120 * features.weights, 1e-120 * np.ones(4)
    cs = mb.MartingaleMixture(features, sigma=0.1, norm_bound=2.0).update([[0.1, 0.2]], [0.3])
    model, starts, box = FeatureModel(features), np.full((2, 2), 0.5), mb.Box([0.0, 0.0], [1.0, 1.0])
    one, other = both(cs.moment.exact, model, box, starts)
    np.testing.assert_array_equal(one.value, other.value)


def test_a_feature_map_that_only_looks_like_a_layer_is_not_taken_for_one():
    class Doubled(mb.RandomFourier):
        def evaluate(self, actions):
            return 2.0 * super().evaluate(actions)

    class Halved(mb.RandomLayer):
        def evaluate(self, actions):
            return 0.5 * super().evaluate(actions)

    assert Doubled(2, 4, rng=0).layer() is None
    assert Halved(2, 4, rng=0).layer() is None
    assert mb.Identity(3).layer() is None
    assert mb.RandomFourier(300, 4, rng=0).layer() is None


@pytest.mark.parametrize("name", FEATURES)
def test_a_layer_is_the_feature_map(name):
    features, rows = FEATURES[name](3), np.random.default_rng(0).normal(size=(5, 3))
    weights, offset, factor, activation = features.layer()
    at = rows @ weights.T + offset
    function = [np.cos, np.tanh, lambda h: np.maximum(h, 0.0), lambda h: 1.0 / (1.0 + np.exp(-h))][activation]
    np.testing.assert_allclose(factor * function(at), features(rows), rtol=1e-12, atol=1e-14)
