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
    with pytest.raises(mb.InvalidInput, match=r"quadratic.*pass it again"):
        features_from_state_dict(MAPS[-1].state_dict())


def test_a_users_function_is_given_again_and_verified():
    state = MAPS[-1].state_dict()
    assert features_from_state_dict(state, MAPS[-2]) is MAPS[-2]
    other = mb.FromCallable(lambda a: quadratic(a) + 0.1, dim_in=2, dim=3)
    with pytest.raises(mb.InvalidInput, match="other values"):
        features_from_state_dict(state, other)
    with pytest.raises(mb.InvalidInput, match="from dimension 2 to 3"):
        features_from_state_dict(state, mb.Identity(2))
    with pytest.raises(mb.InvalidInput, match="other values"):
        features_from_state_dict(MAPS[1].state_dict(), mb.RandomFourier(dim_in=3, dim=7, rng=99))


def test_a_map_of_ones_own_needs_two_methods():
    class Square(mb.FeatureMap):
        dim_in = dim = 1

        def _evaluate(self, actions):
            return actions**2

        def _vjp(self, actions, v):
            return 2 * actions * v

    phi = Square()
    np.testing.assert_array_equal(phi([[3.0]]), [[9.0]])
    assert features_from_state_dict(phi.state_dict(), phi) is phi
    with pytest.raises(mb.InvalidInput, match="Square"):
        features_from_state_dict(phi.state_dict())


@pytest.mark.parametrize("phi", MAPS, ids=IDS)
def test_nothing_is_shared_with_the_caller(phi):
    actions = np.random.default_rng(1).normal(size=(5, phi.dim_in))
    before, features = actions.copy(), phi(actions)
    features[:] = 7.0
    phi.vjp(actions, np.ones(phi.dim))[:] = 7.0
    for value in phi.state_dict().values():
        if isinstance(value, np.ndarray):
            value[:] = 7.0
    np.testing.assert_array_equal(actions, before)
    assert not np.array_equal(phi(actions), features)


def test_a_function_that_changes_its_argument_does_no_harm():
    def rude(actions):
        actions -= 0.5
        return actions

    actions = np.ones((2, 2))
    mb.FromCallable(rude, 2, 2)(actions)
    np.testing.assert_array_equal(actions, 1.0)


@pytest.mark.parametrize(
    "spoil",
    [{"weights": np.ones(3)}, {"offset": np.ones(2)}, {"weights": np.full((7, 3), np.nan)}, {"offset": ["a"] * 7}],
)
def test_a_damaged_map_is_refused(spoil):
    with pytest.raises((mb.DamagedState, ValueError)):
        features_from_state_dict(MAPS[1].state_dict() | spoil)


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
        (lambda: mb.FromCallable(None, dim_in=2, dim=3), "callable"),
        (lambda: mb.FromCallable(quadratic, dim_in=2, dim=3, vjp=3), "vjp must be callable"),
        (lambda: mb.Identity(2)(np.ma.array([[1.0, 9.0]], mask=[[0, 1]])), "masked"),
        (lambda: mb.Identity(1)(np.array(["2020-01-01"], dtype="datetime64[D]")), "must be numbers"),
        (lambda: mb.Identity(2)(["1", "2"]), "must be numbers"),
        (lambda: mb.Identity(2)(np.array([1.0, "2"], dtype=object)), "must be numbers"),
        (lambda: mb.Identity(2)([1.0, 10**400]), "must be numbers"),
        (lambda: mb.Identity(2)([1.0, 1j]), "must be numbers"),
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
