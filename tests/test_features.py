import numpy as np
import pytest

import mixbandit as mb
from mixbandit.features import as_feature_map, features_from_state_dict


def quadratic(actions):
    return np.stack((actions[:, 0], actions[:, 1] ** 2, actions[:, 0] * actions[:, 1]), axis=1)


def quadratic_vjp(actions, v):
    x, y = actions.T
    return np.stack((v[:, 0] + y * v[:, 2], 2 * y * v[:, 1] + x * v[:, 2]), axis=1)


MAPS = [
    mb.Identity(4),
    mb.RandomFourier(dim_in=3, dim=7, lengthscale=0.7, rng=1),
    mb.RandomFourier(dim_in=2, dim=5, lengthscale=[0.3, 2.0], rng=2),
    mb.RandomLayer(dim_in=3, dim=6, rng=3),
    mb.RandomLayer(dim_in=3, dim=6, activation="relu", rng=4),
    mb.RandomLayer(dim_in=3, dim=6, activation="sigmoid", rng=5),
    mb.FromCallable(quadratic, dim_in=2, dim=3),
    mb.FromCallable(quadratic, dim_in=2, dim=3, vjp=quadratic_vjp),
]
IDS = [f"{type(phi).__name__}-{i}" for i, phi in enumerate(MAPS)]


@pytest.mark.parametrize("phi", MAPS, ids=IDS)
def test_vjp_agrees_with_finite_differences(phi):
    rng = np.random.default_rng(0)
    actions, v = rng.normal(size=(6, phi.dim_in)), rng.normal(size=(6, phi.dim))
    h = 1e-6
    expected = np.empty_like(actions)
    for i in range(phi.dim_in):
        step = h * np.eye(phi.dim_in)[i]
        expected[:, i] = np.sum((phi(actions + step) - phi(actions - step)) * v, axis=1) / (2 * h)
    np.testing.assert_allclose(phi.vjp(actions, v), expected, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(phi.vjp(actions, v[0])[0], expected[0], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("phi", MAPS, ids=IDS)
def test_shapes_and_single_actions(phi):
    actions = np.random.default_rng(1).normal(size=(5, phi.dim_in))
    assert phi(actions).shape == (5, phi.dim)
    np.testing.assert_allclose(phi(actions[2])[0], phi(actions)[2], rtol=1e-12)
    assert phi(np.empty((0, phi.dim_in))).shape == (0, phi.dim)


@pytest.mark.parametrize("phi", MAPS[:6], ids=IDS[:6])
def test_state_dict_gives_the_same_map(phi):
    actions = np.random.default_rng(1).normal(size=(5, phi.dim_in))
    np.testing.assert_array_equal(features_from_state_dict(phi.state_dict())(actions), phi(actions))


def test_a_users_function_is_not_stored():
    with pytest.raises(mb.DamagedState, match="quadratic"):
        features_from_state_dict(MAPS[-1].state_dict())


def test_random_fourier_features_approximate_the_gaussian_kernel():
    phi = mb.RandomFourier(dim_in=2, dim=200_000, lengthscale=0.5, rng=0)
    x, y = np.array([0.1, 0.2]), np.array([0.4, -0.1])
    kernel = np.exp(-np.sum((x - y) ** 2) / (2 * 0.5**2))
    # A mean of 200,000 terms 2cos(·)cos(·), each in [−2, 2]: five standard errors.
    assert abs(float(phi(x)[0] @ phi(y)[0]) - kernel) < 5 * 2 / np.sqrt(200_000)


def test_random_layer_follows_its_formula():
    phi = mb.RandomLayer(dim_in=3, dim=6, rng=3)
    a = np.array([0.2, 0.9, 0.5])
    expected = np.tanh(phi.weights @ (2 * a - 1) + phi.offset) / np.sqrt(6)
    np.testing.assert_allclose(phi(a)[0], expected, rtol=1e-15)


def test_the_same_seed_gives_the_same_map():
    a, b = (mb.RandomFourier(dim_in=2, dim=3, rng=9) for _ in range(2))
    np.testing.assert_array_equal(a.weights, b.weights)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: mb.Identity(0), "integer ≥ 1, got 0"),
        (lambda: mb.RandomFourier(dim_in=2, dim=2.5), "integer ≥ 1, got 2.5"),
        (lambda: mb.RandomFourier(dim_in=2, dim=3, lengthscale=-1.0), "positive"),
        (lambda: mb.RandomFourier(dim_in=2, dim=3, lengthscale=[1.0, 2.0, 3.0]), "one number or 2"),
        (lambda: mb.RandomFourier(dim_in=2, dim=3, rng=-4), "seed"),
        (lambda: mb.RandomLayer(dim_in=2, dim=3, activation="gelu"), "tanh, relu, sigmoid; got 'gelu'"),
        (lambda: mb.FromCallable("no", dim_in=2, dim=3), "callable"),
        (lambda: as_feature_map(lambda a: a), "FromCallable"),
        (lambda: mb.Identity(3)([[1.0, 2.0]]), r"\(n, 3\) or \(3,\), got \(1, 2\)"),
        (lambda: mb.Identity(2)([1.0, np.nan]), r"actions\[0, 1\] must be finite .* got nan"),
        (lambda: mb.Identity(2)(["a", "b"]), "must be numbers"),
        (lambda: mb.Identity(2).vjp(np.ones((3, 2)), np.ones((2, 2))), r"\(3, 2\) or \(2,\)"),
        (lambda: mb.FromCallable(lambda a: a, dim_in=2, dim=3)([1.0, 2.0]), r"return shape \(1, 3\)"),
        (lambda: mb.FromCallable(lambda a: a * np.inf, 2, 2)([1.0, 2.0]), "finite"),
    ],
)
def test_bad_input_is_named(make, says):
    with pytest.raises(mb.InvalidInput, match=says):
        make()
