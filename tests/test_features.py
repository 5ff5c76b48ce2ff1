import itertools

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
    mb.Interaction(2, mb.RandomFourier(dim_in=2, dim=5, rng=6)),
    mb.WithConstant(mb.RandomFourier(dim_in=2, dim=5, rng=8), value=2.0),
    mb.Interaction(mb.RandomLayer(dim_in=1, dim=3, rng=7), mb.Interaction(1, 2)),
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
def test_the_jacobian_agrees_with_vjp(phi):
    rng = np.random.default_rng(1)
    actions, v = rng.normal(size=(6, phi.dim_in)), rng.normal(size=(6, phi.dim))
    jacobian = phi.jacobian(actions)
    assert jacobian.shape == (6, phi.dim, phi.dim_in)
    np.testing.assert_allclose(np.einsum("ndi,nd->ni", jacobian, v), phi.vjp(actions, v), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("phi", MAPS, ids=IDS)
def test_single_inputs_give_what_whole_rows_give(phi):
    """Features of rows that differ in one input, maps of some inputs, derivatives by some of them."""
    rng = np.random.default_rng(3)
    base, columns, values = rng.normal(size=phi.dim_in), rng.integers(0, phi.dim_in, size=5), rng.normal(size=5)
    rows = np.tile(base, (5, 1))
    rows[np.arange(5), columns] = values
    np.testing.assert_allclose(phi.exchanged(base, columns, values), phi(rows), rtol=1e-12, atol=1e-12)
    some = np.unique(columns)
    inner = phi.restricted(base, some)
    assert (inner.dim_in, inner.dim) == (len(some), phi.dim)
    np.testing.assert_allclose(inner(rows[:, some]), phi(rows), rtol=1e-12, atol=1e-12)
    v = rng.normal(size=(5, phi.dim))
    np.testing.assert_allclose(inner.vjp(rows[:, some], v), phi.vjp(rows, v)[:, some], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(phi.jacobian_along(rows, some), phi.jacobian(rows)[:, :, some], rtol=1e-12, atol=1e-12)


def test_wide_rows_that_are_mostly_zero_have_the_features_of_all_others():
    phi, dense = mb.RandomFourier(600, 20, rng=0), np.random.default_rng(0).normal(size=(4, 600))
    rows = np.where(np.arange(600) % 7 == 0, dense, 0.0)
    for actions in (rows, dense, np.zeros((2, 600))):
        expected = np.sqrt(2.0 / 20) * np.cos(actions @ phi.weights.T + phi.offset)
        np.testing.assert_allclose(phi(actions), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("phi", MAPS, ids=IDS)
def test_features_and_gradients_at_once_are_those_one_after_the_other(phi):
    rng = np.random.default_rng(2)
    actions, v = rng.normal(size=(6, phi.dim_in)), rng.normal(size=(6, phi.dim))
    value, pullback = phi.linearised(actions)
    np.testing.assert_array_equal(value, phi(actions))
    np.testing.assert_array_equal(pullback(v), phi.vjp(actions, v))


@pytest.mark.parametrize("phi", MAPS, ids=IDS)
def test_shapes_and_single_actions(phi):
    actions = np.random.default_rng(1).normal(size=(5, phi.dim_in))
    assert phi(actions).shape == (5, phi.dim)
    np.testing.assert_allclose(phi(actions[2])[0], phi(actions)[2], rtol=1e-12)
    assert phi(np.empty((0, phi.dim_in))).shape == (0, phi.dim)


@pytest.mark.parametrize("phi", MAPS[:-2], ids=IDS[:-2])
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
    with pytest.raises(mb.InvalidInput, match="differ from the stored"):
        features_from_state_dict(state, other)
    with pytest.raises(mb.InvalidInput, match="map dimension 2 to 3, but the given ones map 2 to 2"):
        features_from_state_dict(state, mb.Identity(2))
    with pytest.raises(mb.InvalidInput, match="differ from the stored"):
        features_from_state_dict(MAPS[1].state_dict(), mb.RandomFourier(dim_in=3, dim=7, rng=99))


def test_an_interaction_multiplies_every_pair_of_features():
    context, action = mb.RandomFourier(dim_in=2, dim=3, rng=0), mb.RandomLayer(dim_in=1, dim=2, rng=1)
    rows = np.random.default_rng(2).normal(size=(4, 3))
    expected = [np.kron(c, a) for c, a in zip(context(rows[:, :2]), action(rows[:, 2:]), strict=True)]
    np.testing.assert_allclose(mb.Interaction(context, action)(rows), expected, rtol=1e-14)


def test_disjoint_gives_every_arm_a_block_of_its_own():
    context = mb.RandomFourier(dim_in=2, dim=3, rng=0)
    phi = mb.Disjoint(context, arms=4)
    rng = np.random.default_rng(2)
    x, k = rng.normal(size=(6, 2)), np.array([0, 1, 2, 3, 3, 0])
    rows, v = np.column_stack((x, k)), rng.normal(size=(6, 12))
    assert (phi.dim_in, phi.dim) == (3, 12)
    blocks = phi(rows).reshape(6, 4, 3)
    for i in range(6):
        np.testing.assert_array_equal(blocks[i, k[i]], context(x)[i])
        np.testing.assert_array_equal(np.delete(blocks[i], k[i], axis=0), 0.0)
    own = v.reshape(6, 4, 3)[np.arange(6), k]
    np.testing.assert_allclose(phi.vjp(rows, v)[:, :2], context.vjp(x, own), rtol=1e-14)
    np.testing.assert_array_equal(phi.vjp(rows, v)[:, 2], 0.0)
    np.testing.assert_allclose(np.einsum("ndi,nd->ni", phi.jacobian(rows), v), phi.vjp(rows, v), rtol=1e-12)
    assert phi(np.empty((0, 3))).shape == (0, 12)
    again = features_from_state_dict(phi.state_dict())
    np.testing.assert_array_equal(again(rows), phi(rows))
    assert features_from_state_dict(phi.state_dict(), phi) is phi


@pytest.mark.parametrize("number", [-1.0, 4.0, 1.5])
def test_a_wrong_arm_number_is_named(number):
    with pytest.raises(mb.InvalidInput, match=rf"arm numbers, 0 … 3, got {number:g}"):
        mb.Disjoint(1, arms=4)([[0.3, 2.0], [0.3, number]])


@pytest.mark.parametrize("make", [lambda part: mb.Interaction(2, part), lambda part: mb.Disjoint(part, arms=2)])
def test_a_map_that_contains_a_users_function_is_given_again_and_verified(make):
    phi = make(MAPS[-1])
    with pytest.raises(mb.InvalidInput, match=r"quadratic.*pass it again"):
        features_from_state_dict(phi.state_dict())
    same = make(mb.FromCallable(quadratic, dim_in=2, dim=3))
    assert features_from_state_dict(phi.state_dict(), same) is same
    for other, says in (
        (make(mb.FromCallable(lambda a: 1.1 * quadratic(a), dim_in=2, dim=3)), "differ from the stored"),
        (make(mb.RandomFourier(dim_in=2, dim=4, rng=0)), "map dimension"),
    ):
        with pytest.raises(mb.InvalidInput, match=says):
            features_from_state_dict(phi.state_dict(), other)


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


SIZES = (1e-6, 1e-3, 0.03, 0.3, 3.0)


def cells(phi, seed):
    """Centres, half-widths, and points in each cell: (n, dim_in) twice, (n, points, dim_in)."""
    rng = np.random.default_rng(seed)
    centres = rng.uniform(-0.5, 1.5, size=(200, phi.dim_in))
    halves = np.repeat(SIZES, 40)[:, None] * rng.uniform(size=centres.shape) * (rng.uniform(size=centres.shape) < 0.9)
    inside = rng.uniform(-1.0, 1.0, size=(200, 60, phi.dim_in))
    # Half of them at corners, where a deviation is largest.
    inside[:, ::2] = np.sign(inside[:, ::2])
    return centres, halves, centres[:, None] + inside * halves[:, None]


def test_differences_stay_where_a_function_is_defined():
    phi = mb.FromCallable(lambda a: np.hstack((np.sqrt(a), np.log(2.0 - a))), 1, 2)
    gradient = phi.vjp([[0.0], [0.5], [1.0]], [1.0, 1.0])
    exact = 0.5 / np.sqrt([0.5, 1.0]) - 1.0 / (2.0 - np.array([0.5, 1.0]))
    np.testing.assert_allclose(gradient[1:, 0], exact, rtol=1e-6)
    assert np.isfinite(gradient).all()
    assert gradient[0] > 100.0
    policy = mb.CMMUCB(phi, actions=mb.Box([0.0], [1.0]), sigma=0.1, norm_bound=1.0, rng=0)
    assert 0.0 <= policy.ask().action[0] <= 1.0


def test_a_function_that_knows_only_its_own_actions_cannot_be_stored():
    table = {0.0: [1.0], 1.0: [2.0]}
    phi = mb.FromCallable(lambda a: [table[float(x)] for x in a[:, 0]], 1, 1)
    np.testing.assert_array_equal(phi([[1.0]]), [[2.0]])
    with pytest.raises(mb.NotStorable, match="no values at the actions"):
        phi.state_dict()


BOUNDED = [phi for phi in MAPS if phi.lipschitz is not None]
BOUNDED_IDS = [name for name, phi in zip(IDS, MAPS, strict=True) if phi.lipschitz is not None]


@pytest.mark.parametrize("phi", BOUNDED, ids=BOUNDED_IDS)
@pytest.mark.parametrize("odd", [None, "x", np.nan, [], {}, 1j, object(), np.ones((2, 2, 2)), 10**400])
def test_the_remainder_of_odd_values_is_refused(phi, odd):
    rows = np.ones((1, phi.dim_in))
    for boxes in ((odd, rows), (rows, odd), (rows, -rows), (rows, np.ones((2, phi.dim_in)))):
        with pytest.raises(mb.InvalidInput):
            phi.remainder(*boxes)


def test_the_maps_that_are_one_layer_know_how_far_they_stray():
    assert len(BOUNDED) == 7
    for phi in BOUNDED:
        assert phi.remainder(np.zeros((1, phi.dim_in)), np.ones((1, phi.dim_in))).shape == (1, phi.dim)
    assert mb.FromCallable(quadratic, dim_in=2, dim=3, lipschitz=2.0).lipschitz == 2.0


@pytest.mark.parametrize("phi", BOUNDED, ids=BOUNDED_IDS)
def test_features_move_no_faster_than_their_lipschitz_constant(phi):
    rng = np.random.default_rng(3)
    a = rng.uniform(-1.0, 2.0, size=(20_000, phi.dim_in))
    b = a + 10.0 ** rng.uniform(-6, 0, size=(20_000, 1)) * rng.normal(size=a.shape)
    ratio = np.linalg.norm(phi(a) - phi(b), axis=1) / np.linalg.norm(a - b, axis=1)
    assert ratio.max() <= phi.lipschitz * (1 + 1e-7)
    # Not absurd either: all slopes would have to be steepest at once for the constant to be reached.
    assert ratio.max() >= phi.lipschitz / 5


INTERACTIONS = [phi for phi in MAPS if isinstance(phi, mb.Interaction)]


@pytest.mark.parametrize("phi", BOUNDED + INTERACTIONS, ids=[*BOUNDED_IDS, "Interaction-1", "Interaction-2"])
def test_features_stray_from_their_tangent_by_no_more_than_the_remainder(phi):
    for seed in range(5):
        centres, halves, points = cells(phi, seed)
        n, m, k = points.shape
        tangent = phi(centres)[:, None] + np.einsum("ndi,nmi->nmd", phi.jacobian(centres), points - centres[:, None])
        strays = np.abs(phi(points.reshape(n * m, k)).reshape(n, m, phi.dim) - tangent).max(axis=1)
        remainder = phi.remainder(centres, halves)
        assert remainder.shape == (n, phi.dim)
        assert (strays <= remainder * (1 + 1e-9) + 1e-14).all()


@pytest.mark.parametrize("phi", BOUNDED, ids=BOUNDED_IDS)
def test_the_remainder_is_not_absurdly_loose(phi):
    centres, halves, _ = cells(phi, 9)
    small = np.repeat(SIZES, 40) == 1e-3
    centres, halves = centres[small], halves[small]
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=phi.dim_in)))
    points = centres[:, None] + signs * halves[:, None]
    tangent = phi(centres)[:, None] + np.einsum("ndi,nmi->nmd", phi.jacobian(centres), points - centres[:, None])
    strays = np.abs(phi(points.reshape(-1, phi.dim_in)).reshape(tangent.shape) - tangent).max(axis=1)
    remainder = phi.remainder(centres, halves)
    if getattr(phi, "activation", None) == "relu":  # at worst a kink at the centre, with slope against slope
        assert (remainder <= phi.lipschitz * np.linalg.norm(halves, axis=1)[:, None] * np.sqrt(phi.dim_in)).all()
        return
    # Second order: a tenth of the size has a hundredth of the remainder, or less.
    assert (phi.remainder(centres, 0.1 * halves) <= 0.0101 * remainder).all()
    # Corners attain the largest change of a pre-activation, so that only the third derivative is lost: much of it
    # where the second vanishes, little of it summed over the features.
    assert remainder.sum() <= 1.5 * strays.sum() + 1e-14


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
