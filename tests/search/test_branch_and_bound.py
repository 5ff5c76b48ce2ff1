"""Branch and bound: its upper bound is one, and it is tight when there is time for it."""

import itertools

import numpy as np
import pytest

import mixbandit as mb
from mixbandit.models import FeatureModel
from mixbandit.search import Reach, branch_and_bound


def bound_over_box(h, reach, features, box, **options):
    return branch_and_bound.bound_over_box(h, reach, FeatureModel(features), box, **options)


def can_bound(features, box):
    return branch_and_bound.can_bound(FeatureModel(features), box)


def waves(actions):
    x, y = actions.T
    return np.stack((np.sin(3.0 * x), np.cos(2.0 * y), np.sin(x + y)), axis=1)


# Row norms of the Jacobian are at most 3, 2 and √2: together at most √15.
WAVES = mb.FromCallable(waves, dim_in=2, dim=3, lipschitz=np.sqrt(15.0))

# Each with the tolerance that it reaches, which is coarser where bounds close linearly.
MAPS = {
    "Fourier": (mb.RandomFourier(dim_in=2, dim=12, lengthscale=0.4, rng=0), 1e-4),
    "Fourier, vector of lengthscales": (mb.RandomFourier(dim_in=3, dim=8, lengthscale=[0.5, 2.0, 30.0], rng=1), 1e-3),
    "tanh": (mb.RandomLayer(dim_in=3, dim=10, rng=2), 1e-3),
    "sigmoid": (mb.RandomLayer(dim_in=2, dim=10, activation="sigmoid", rng=3), 1e-4),
    "relu": (mb.RandomLayer(dim_in=2, dim=6, activation="relu", rng=4), 3e-2),
    "identity": (mb.Identity(3), 1e-9),
    "function": (WAVES, 3e-2),
}
SMOOTH = ("Fourier", "Fourier, vector of lengthscales", "tanh", "sigmoid", "identity")


def points_of(box, n, rng):
    """Random points, and the corners."""
    corners = np.array(list(itertools.product(*zip(box.low, box.high, strict=True))))
    return np.vstack((box.sample(n, rng), corners))


def tasks(phi, seed):
    """A support function with how large its θ can be: of one θ, and of a confidence set."""
    rng = np.random.default_rng([17, seed])
    theta = rng.normal(size=phi.dim)
    yield (lambda rows: rows @ theta), Reach(float(np.linalg.norm(theta))), np.abs(theta)
    cs = mb.MartingaleMixture(phi, sigma=0.2, norm_bound=2.0, delta=0.05)
    actions = rng.uniform(size=(60, phi.dim_in))
    cs.update(actions, phi(actions) @ (theta / np.linalg.norm(theta)) + 0.1 * rng.normal(size=60))

    def upper(rows):
        return cs.moment.exact.maximum(rows)

    yield upper, Reach(2.0), np.maximum(upper(np.eye(phi.dim)), upper(-np.eye(phi.dim)))


@pytest.mark.parametrize("name", MAPS)
def test_the_bound_holds_and_closes(name):
    phi, tolerance = MAPS[name]
    assert can_bound(phi, mb.Box(np.zeros(phi.dim_in), np.ones(phi.dim_in)))
    for seed in range(3):
        rng = np.random.default_rng(seed)
        centre, width = rng.uniform(size=phi.dim_in), rng.uniform(0.2, 1.0, size=phi.dim_in)
        box = mb.Box(centre - 0.5 * width, centre + 0.5 * width)
        points = points_of(box, 20_000, rng)
        for h, reach, entries in tasks(phi, seed):
            most = float(h(phi(points)).max())
            found = bound_over_box(h, Reach(reach.norm, entries), phi, box, tolerance=tolerance)
            assert found.upper >= most
            assert found.attained <= found.upper <= found.attained + tolerance + 2e-9 * abs(found.upper)
            assert found.attained == pytest.approx(float(h(phi(found.action[None]))[0]), rel=1e-9, abs=1e-12)
            assert found.attained >= most - tolerance
            assert ((found.action >= box.low - 1e-12) & (found.action <= box.high + 1e-12)).all()
            assert found.evaluations < 200_000


@pytest.mark.parametrize("name", MAPS)
def test_a_bound_that_had_to_stop_early_still_holds(name):
    phi, _ = MAPS[name]
    box = mb.Box(np.full(phi.dim_in, -1.0), np.full(phi.dim_in, 2.0))
    points = points_of(box, 20_000, np.random.default_rng(0))
    for seed in range(5):
        for h, reach, entries in tasks(phi, seed):
            most, uppers = float(h(phi(points)).max()), []
            for evaluations in (1, 2, 10, 30, 100, 1000, 10_000):
                found = bound_over_box(h, Reach(reach.norm, entries), phi, box, max_evaluations=evaluations)
                assert found.upper >= most
                uppers.append(found.upper)
            assert (np.diff(uppers) <= 1e-12).all()


class Careless(mb.Identity):
    """Vectors as they are, with remainders that are right and get worse in smaller cells."""

    lipschitz = None

    def remainder(self, centres, half_widths):
        return 1.0 / np.maximum(half_widths, 1e-3)


def test_a_part_is_never_worse_than_the_whole():
    box = mb.Box([0.0, 0.0], [1.0, 2.0])
    uppers = [
        bound_over_box(lambda rows: rows.sum(axis=1), Reach(np.sqrt(2.0)), Careless(2), box, max_evaluations=n).upper
        for n in (1, 10, 100, 1000)
    ]
    assert (np.diff(uppers) <= 1e-12).all()


@pytest.mark.parametrize("name", ["Fourier", "tanh", "function"])
def test_cells_that_wait_their_turn_are_not_forgotten(name, monkeypatch):
    # With few cells split at once nearly all of them wait, most of the time.
    monkeypatch.setattr(branch_and_bound, "_BATCH", 2)
    phi, _ = MAPS[name]
    box = mb.Box(np.full(phi.dim_in, -1.0), np.full(phi.dim_in, 2.0))
    points = points_of(box, 20_000, np.random.default_rng(0))
    for seed in range(4):
        h, reach, entries = next(tasks(phi, seed))
        most = float(h(phi(points)).max())
        uppers = [
            bound_over_box(h, Reach(reach.norm, entries), phi, box, max_evaluations=n).upper for n in (300, 1000, 4000)
        ]
        assert min(uppers) >= most
        assert (np.diff(uppers) <= 1e-12).all()


@pytest.mark.parametrize("name", SMOOTH)
def test_small_boxes_are_bounded_and_need_few_cells(name):
    # Random small boxes put the remainder itself to the test: nothing averages out.
    phi, _ = MAPS[name]
    rng = np.random.default_rng(5)
    for seed in range(10):
        for size in (1e-3, 1e-2, 0.1, 0.3):
            low = rng.uniform(size=phi.dim_in)
            box = mb.Box(low, low + size * rng.uniform(0.1, 1.0, size=phi.dim_in))
            points = points_of(box, 500, rng)
            for h, reach, entries in tasks(phi, seed):
                most = float(h(phi(points)).max())
                once = bound_over_box(h, Reach(reach.norm, entries), phi, box, max_evaluations=1)
                assert once.upper >= most
                # Of second order, with the curvature that these maps have.
                if size <= 1e-2:
                    assert once.upper - most <= 400 * reach.norm * size**2


def test_knowing_the_entries_of_theta_only_tightens():
    rng = np.random.default_rng(0)
    remainder, theta = rng.uniform(size=(200, 7)), rng.normal(size=7)
    loose, tight = Reach(float(np.linalg.norm(theta))), Reach(float(np.linalg.norm(theta)), np.abs(theta))
    assert (tight.times(remainder) <= loose.times(remainder)).all()
    assert (tight.times(remainder) < 0.99 * loose.times(remainder)).any()
    # What θ makes of any vector within the remainder.
    for _ in range(100):
        vector = remainder * rng.uniform(-1.0, 1.0, size=remainder.shape)
        assert (vector @ theta <= tight.times(remainder) + 1e-12).all()
    extreme = remainder * np.sign(theta)
    np.testing.assert_allclose(extreme @ theta, tight.times(remainder), rtol=1e-12)
    # Entries that say less than the norm change nothing.
    np.testing.assert_array_equal(Reach(1.0, np.full(7, 50.0)).times(remainder), Reach(1.0).times(remainder))


@pytest.mark.parametrize("name", ["Fourier", "tanh"])
def test_the_entries_of_theta_never_loosen_a_bound(name):
    phi, _ = MAPS[name]
    box = mb.Box(np.zeros(phi.dim_in), np.ones(phi.dim_in))
    most = np.ones((1, phi.dim_in))
    assert (phi.remainder(0 * most, most) >= 0.0).all()
    for seed in range(5):
        for h, reach, entries in tasks(phi, seed):
            without = bound_over_box(h, reach, phi, box, max_evaluations=1)
            with_entries = bound_over_box(h, Reach(reach.norm, entries), phi, box, max_evaluations=1)
            assert with_entries.upper <= without.upper


@pytest.mark.parametrize("name", ["Fourier", "tanh", "relu", "function"])
def test_fixed_coordinates_stay_where_they_are(name):
    phi, tolerance = MAPS[name]
    low, high = np.full(phi.dim_in, 0.1), np.full(phi.dim_in, 0.9)
    low[0] = high[0] = 1 / 3
    box = mb.Box(low, high)
    points = points_of(box, 20_000, np.random.default_rng(0))
    for h, reach, entries in tasks(phi, 0):
        most = float(h(phi(points)).max())
        found = bound_over_box(h, Reach(reach.norm, entries), phi, box, tolerance=tolerance)
        assert most <= found.upper <= found.attained + tolerance + 2e-9 * abs(found.upper)
        assert found.action[0] == 1 / 3


def test_a_start_is_attained_and_spares_work():
    phi, _ = MAPS["Fourier"]
    box = mb.Box(np.zeros(2), np.ones(2))
    for h, reach, entries in tasks(phi, 1):
        cold = bound_over_box(h, Reach(reach.norm, entries), phi, box, tolerance=1e-6)
        warm = bound_over_box(h, Reach(reach.norm, entries), phi, box, tolerance=1e-6, start=cold.action)
        assert warm.attained >= cold.attained - 1e-12
        assert warm.evaluations <= cold.evaluations
        assert warm.upper == pytest.approx(cold.upper, abs=2e-6)
        once = bound_over_box(h, reach, phi, box, start=cold.action, max_evaluations=1)
        assert once.attained == pytest.approx(cold.attained, rel=1e-12)


def test_a_maximum_of_any_sign_and_size_is_bounded():
    phi, _ = MAPS["Fourier"]
    box = mb.Box(np.zeros(2), np.ones(2))
    features = phi(points_of(box, 20_000, np.random.default_rng(0)))
    theta = np.random.default_rng(1).normal(size=phi.dim)
    for factor, shift in ((1.0, -50.0), (1e-8, 0.0), (1e8, 0.0), (1.0, 50.0)):

        def h(rows, factor=factor, shift=shift):
            return factor * (rows @ theta) + shift

        found = bound_over_box(
            h, Reach(factor * np.linalg.norm(theta)), phi, box, tolerance=1e-4 * factor, max_evaluations=100_000
        )
        assert found.upper >= h(features).max()
        assert found.upper - found.attained <= 1e-4 * factor + 2e-9 * abs(found.upper)


def test_many_coordinates_leave_only_the_lipschitz_constant():
    phi = mb.RandomFourier(dim_in=8, dim=6, lengthscale=2.0, rng=0)
    box = mb.Box(np.zeros(8), np.ones(8))
    theta = np.ones(6)
    points = points_of(box, 5000, np.random.default_rng(0))
    found = bound_over_box(lambda rows: rows @ theta, Reach(np.sqrt(6.0)), phi, box, max_evaluations=2000)
    assert can_bound(phi, box)
    assert (phi(points) @ theta).max() <= found.upper < 0.5 * np.sqrt(8.0) * np.sqrt(6.0) * phi.lipschitz + 2.0
    assert found.evaluations < 2000 + 2 * 128
    # Six free ones among eight have tangents, which are worth a lot in a small box.
    small = mb.Box(np.full(8, 0.5), np.where(np.arange(8) < 6, 0.51, 0.5))
    found = bound_over_box(lambda rows: rows @ theta, Reach(np.sqrt(6.0)), phi, small, max_evaluations=1)
    values = phi(points_of(small, 5000, np.random.default_rng(0))) @ theta
    assert values.max() <= found.upper <= values.max() + 1e-2


def test_without_tangents_or_a_constant_nothing_is_proven():
    box = mb.Box(np.zeros(2), np.ones(2))
    unknown = mb.FromCallable(np.sin, dim_in=1, dim=1)
    for phi in (mb.FromCallable(waves, dim_in=2, dim=3), mb.Interaction(1, unknown), mb.Interaction(unknown, 1)):
        assert not can_bound(phi, box)
        found = bound_over_box(lambda rows: rows.sum(axis=1), Reach(2.0), phi, box, max_evaluations=500)
        assert found.upper == np.inf
        assert found.attained == pytest.approx(phi(found.action).sum())


def test_a_context_times_an_action_is_bounded():
    phi = mb.Interaction(mb.RandomLayer(dim_in=2, dim=3, rng=0), mb.RandomFourier(dim_in=2, dim=4, rng=1))
    theta = np.random.default_rng(0).normal(size=12)
    reach = Reach(float(np.linalg.norm(theta)), np.abs(theta))
    for box in (mb.Box([0.3, 0.6, 0.0, 0.0], [0.3, 0.6, 1.0, 1.0]), mb.Box(np.zeros(4), np.full(4, 0.5))):
        found = bound_over_box(lambda rows: rows @ theta, reach, phi, box, tolerance=1e-2)
        best = (phi(points_of(box, 50_000, np.random.default_rng(0))) @ theta).max()
        assert best <= found.upper <= best + 3e-2
