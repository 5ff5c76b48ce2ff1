"""The search for the best action: exact over arms, by gradients over boxes."""

from typing import NamedTuple

import numpy as np
import pytest

import mixbandit as mb
from mixbandit import search
from mixbandit.search import QUICK, THOROUGH
from mixbandit.sets import Ellipsoid, Maximum, Searched
from tests.helpers.scores import linear, optimism, search_box


def pessimism(cs, alpha):
    return search.Pessimism(cs.moment.at(alpha))


def information_per_regret(oful, optimum):
    return search.InformationPerRegret(oful.moment.closed_form, optimum)


class BestArm(NamedTuple):
    arm: int
    value: float
    evaluated: int


def best_arm(score, phi, rng):
    """The best arm, ties broken as a policy breaks them."""
    found = search.best_arm(score, phi)
    return BestArm(search.Shares.even(len(phi), found.arms).draw(rng), found.value, found.evaluated)


def problem(seed, features=None, **options):
    """A sequence with data in which θ* is kept in the set by construction, and the generator that made it."""
    rng = np.random.default_rng([11, seed])
    d = int(rng.integers(2, 9)) if features is None else features.dim
    t = options.pop(
        "t", (0, int(rng.integers(1, d + 1)), int(rng.integers(1, 40)), int(rng.integers(100, 300)))[seed % 4]
    )
    make = options.pop("make", mb.MartingaleMixture)
    theta = rng.normal(size=d)
    theta *= 0.7 / np.linalg.norm(theta)
    cs = make(d if features is None else features, **{"sigma": 0.2, "norm_bound": 1.0, "delta": 0.05} | options)
    if t:
        actions = rng.normal(size=(t, d)) if features is None else rng.uniform(size=(t, features.dim_in))
        phi = cs.features(actions)
        cs.update(actions, phi @ theta + 0.2 * rng.uniform(-1.0, 1.0, size=t))
    return cs, rng


KINDS = {
    "standard": {},
    "scaled": {"mixture": mb.Scaled(0.05)},
    "grid": {"mixture": mb.Grid([0.01, 0.1, 1.0])},
    "misspecified": {"misspecification": 0.05},
    "misspecified grid": {"misspecification": 0.05, "mixture": mb.Grid([0.1, 1.0])},
    "OFUL": {"make": mb.OFULSequence},
}


def arms_of(cs, rng, n):
    """Arms of several kinds: generic, of very different lengths, or in few directions."""
    phi = rng.normal(size=(n, cs.features.dim))
    if rng.uniform() < 0.3:
        phi *= 10.0 ** rng.uniform(-3, 0, size=(n, 1))
    elif rng.uniform() < 0.3:
        phi[:, 1:] *= 1e-3
    return phi


@pytest.mark.parametrize("kind", KINDS)
def test_the_lazy_search_finds_the_largest_exact_bound(kind):
    # 170 problems of each of six kinds: 1,020 in all.
    for seed in range(170):
        cs, rng = problem(seed, **KINDS[kind])
        phi = arms_of(cs, rng, int(rng.integers(64, 300)))
        best = best_arm(optimism(cs, None), phi, rng)
        exact = cs.upper(phi) - getattr(cs, "misspecification", 0.0)
        assert best.value == pytest.approx(exact.max(), rel=1e-9), seed
        assert exact[best.arm] >= exact.max() - 2e-9 * abs(exact.max()), seed
        assert best.evaluated <= len(phi)


class Given(Searched):
    """A score with given values, and ceilings on them of which one near a direction is tighter."""

    screens_from = 64

    def __init__(self, values, loose=None, tight=None):
        self.given, self._loose, self._tight = values, loose, tight

    def maximum(self, phi):
        return self.given[phi[:, 0].astype(int)]

    def ceiling(self, near=None):
        return self._loose if near is None else self._tight


def ceilinged(rng, n, tighter):
    values = rng.normal(size=n)
    loose = Given(values + rng.exponential(size=n))
    return Given(values, loose, Given(values + tighter * rng.exponential(size=n)))


def test_arms_are_left_out_only_below_their_ceilings():
    evaluated = {}
    for tighter in (1.0, 0.1, 0.01):
        evaluated[tighter] = []
        for seed in range(200):
            rng = np.random.default_rng(seed)
            score = ceilinged(rng, 300, tighter)
            best = best_arm(score, np.arange(300.0)[:, None], rng)
            assert best.arm == np.argmax(score.given)
            evaluated[tighter].append(best.evaluated)
    # A good guess spares nearly everything that the first ceilings could not.
    assert np.mean(evaluated[0.01]) < 5 < np.mean(evaluated[1.0])


def test_ceilings_are_upper_bounds_wherever_they_are_tight():
    for kind in ("standard", "scaled", "grid", "misspecified"):
        for seed in range(40):
            cs, rng = problem(seed, **KINDS[kind])
            phi, score = arms_of(cs, rng, 50), optimism(cs, None)
            exact = score.maximum(phi)
            for outer in (score.ceiling(), score.ceiling(phi[7:8]), score.ceiling(phi[:1])):
                assert outer is None or (outer.maximum(phi) >= exact - 1e-9 * np.abs(exact)).all()
            # Near a direction, its ceiling is its bound.
            if outer is not None:
                assert outer.maximum(phi)[0] == pytest.approx(exact[0], rel=1e-7, abs=1e-9)
    # Nothing is cheaper than a closed form but a ball around it, and half-widths have no such bound.
    oful, rng = problem(3, make=mb.OFULSequence)
    closed = optimism(oful, None)
    for score in (closed, optimism(cs, cs.alpha0), optimism(cs, None, 0.5), pessimism(cs, None)):
        assert score.ceiling() is None
    phi, shell = arms_of(oful, rng, 50), closed.shell()
    assert (shell.maximum(phi) >= closed.maximum(phi)).all()


@pytest.mark.parametrize("n", [1, 2, 63, 64, 65])
def test_any_number_of_arms_will_do(n):
    cs, rng = problem(3)
    phi = rng.normal(size=(n, cs.features.dim))
    assert best_arm(optimism(cs, None), phi, rng).arm == np.argmax(cs.upper(phi))


def test_few_arms_are_solved_exactly_when_data_are_many():
    shares = []
    for seed in range(3, 83, 4):
        cs, rng = problem(seed, t=400)
        shares.append(best_arm(optimism(cs, None), rng.normal(size=(2000, cs.features.dim)), rng).evaluated / 2000)
    assert np.mean(shares) < 0.02
    assert max(shares) < 0.1


@pytest.mark.parametrize("n", [12, 200])
def test_ties_are_broken_at_random_and_by_the_seed(n):
    cs, rng = problem(3)
    phi = 0.1 * rng.normal(size=(n, cs.features.dim))
    tied = np.array([2, 5, 7, 11])
    phi[tied] = 3.0 * phi[int(np.argmax(cs.upper(phi)))]
    # Rounding must not decide: the copies differ in the last digits.
    phi[tied] *= 1.0 + 1e-13 * np.arange(4)[:, None]
    picks = np.array([best_arm(optimism(cs, None), phi, np.random.default_rng(s)).arm for s in range(400)])
    assert set(picks) == set(tied)
    # 400 draws among four: five standard deviations around 100.
    assert np.abs(np.array([(picks == i).sum() for i in tied]) - 100).max() < 5 * np.sqrt(400 * 0.25 * 0.75)
    assert picks[17] == best_arm(optimism(cs, None), phi, np.random.default_rng(17)).arm


def test_a_tie_is_no_coarser_than_rounding():
    cs, rng = problem(3)
    phi = np.tile(rng.normal(size=cs.features.dim), (100, 1))
    if cs.upper(phi[0])[0] < 0.0:
        phi = -phi
    phi[40] *= 1.0 + 1e-6
    assert {best_arm(optimism(cs, None), phi, np.random.default_rng(s)).arm for s in range(20)} == {40}


def test_lower_bounds_and_parameters_are_maximised_over_arms_too():
    for seed in range(40):
        cs, rng = problem(seed)
        phi, theta = arms_of(cs, rng, 100), rng.normal(size=cs.features.dim)
        assert best_arm(pessimism(cs, None), phi, rng).value == pytest.approx(cs.lower(phi).max(), rel=1e-9)
        assert best_arm(linear(theta), phi, rng).arm == np.argmax(phi @ theta)


def scores(cs, oful, rng):
    yield linear(rng.normal(size=cs.features.dim))
    for alpha in (None, cs.alpha0, 3.0 * cs.alpha0):
        yield pessimism(cs, alpha)
        for exploration in (0.0, 0.3, 1.0, 2.0):
            yield optimism(cs, alpha, exploration)
    yield optimism(oful, None)
    # Once with an optimum that leaves every action some regret, once with the most that any can be worth.
    yield information_per_regret(oful, 5.0)
    yield information_per_regret(oful, 500.0)


@pytest.mark.parametrize("t", [1, 5, 200])
def test_slopes_agree_with_finite_differences(t):
    for seed in range(8):
        cs, rng = problem(seed, t=t)
        oful, _ = problem(seed, t=t, make=mb.OFULSequence)
        phi = rng.normal(size=(5, cs.features.dim))
        for score in scores(cs, oful, rng):
            value, slope, *_ = score.support(phi)
            np.testing.assert_allclose(value, score.maximum(phi), rtol=1e-9, atol=1e-12)
            h = 1e-5
            expected = np.stack(
                [(score.maximum(phi + h * e) - score.maximum(phi - h * e)) / (2 * h) for e in np.eye(phi.shape[1])],
                axis=1,
            )
            np.testing.assert_allclose(slope, expected, rtol=2e-4, atol=2e-6, err_msg=f"{seed} {score}")


def test_optimism_is_the_estimate_and_a_part_of_the_way_to_the_upper_bound():
    cs, rng = problem(3)
    phi = rng.normal(size=(20, cs.features.dim))
    alpha = cs.alpha0
    centre = 0.5 * (cs.upper(phi, alpha) + cs.lower(phi, alpha))  # of the closed form: ridge regression's
    for exploration in (0.0, 0.3, 1.0, 2.0):
        np.testing.assert_allclose(
            optimism(cs, None, exploration).maximum(phi), centre + exploration * (cs.upper(phi) - centre), rtol=1e-9
        )


def test_information_per_regret_follows_its_formula():
    oful, rng = problem(3, make=mb.OFULSequence)
    Phi = rng.normal(size=(7, oful.features.dim))
    fresh = mb.OFULSequence(oful.features, sigma=0.2, norm_bound=1.0, delta=0.05).update(Phi, 0.1 * Phi[:, 0])
    phi = rng.normal(size=(20, oful.features.dim))
    w = np.einsum("ni,ij,nj->n", phi, np.linalg.inv(Phi.T @ Phi + fresh.alpha * np.eye(Phi.shape[1])), phi)
    optimum = float(fresh.upper(phi).max())
    expected = np.log(np.log1p(w)) - 2.0 * np.log(optimum - fresh.lower(phi))
    np.testing.assert_allclose(information_per_regret(fresh, optimum).maximum(phi), expected, rtol=1e-9)
    # Nothing is learnt at φ = 0, and nothing is lost where the lower bound reaches the optimum.
    assert information_per_regret(fresh, optimum).maximum(np.zeros((1, Phi.shape[1])))[0] == -np.inf
    assert np.isposinf(information_per_regret(fresh, float(fresh.lower(phi).min()) - 1.0).maximum(phi)).all()


class Peak:
    """−‖φ − p‖², whose maximum over a box is the point of the box nearest to p."""

    def __init__(self, p, scale=1.0):
        self.p, self.scale, self.seen = np.asarray(p), np.asarray(scale), []

    def maximum(self, phi):
        self.seen.append(phi.copy())
        return -np.sum(((phi - self.p) / self.scale) ** 2, axis=1)

    def support(self, phi):
        return Maximum(self.maximum(phi), -2.0 * (phi - self.p) / self.scale**2, None, None)

    def ceiling(self, near=None):
        return None


BOXES = [
    # Here low + (high − low) is above high in floats.
    mb.Box([-0.4, 0.3], [0.7, 0.9]),
    mb.Box([0.0, 0.0, 0.0], [1.0, 1.0, 1.0]),
    mb.Box([-100.0, 1e-3], [3.0, 2e-3]),
    mb.Box([-1e6, 5.0, 0.0, -1e-7], [1e6, 5.0, 3.0, 1e-7]),
]


@pytest.mark.parametrize("box", BOXES, ids=repr)
def test_a_linear_score_is_largest_at_a_vertex(box):
    rng = np.random.default_rng(0)
    for _ in range(20):
        theta = rng.normal(size=box.dim) / np.where(box.width > 0.0, box.width, 1.0)
        found = search_box(linear(theta), mb.Identity(box.dim), box, rng)
        np.testing.assert_array_equal(found.action, np.where(theta > 0.0, box.high, box.low))
        assert found.value == pytest.approx(float(found.action @ theta), rel=1e-12)


@pytest.mark.parametrize("box", BOXES, ids=repr)
def test_a_peak_is_found_inside_or_at_the_nearest_point(box):
    rng = np.random.default_rng(1)
    scale = np.where(box.width > 0.0, box.width, 1.0)
    for _ in range(20):
        peak = box.low + rng.uniform(-0.3, 1.3, size=box.dim) * box.width
        score = Peak(peak, scale)
        found = search_box(score, mb.Identity(box.dim), box, rng)
        nearest = np.clip(peak, box.low, box.high)
        assert np.abs((found.action - nearest) / scale).max() < 1e-4
        assert ((found.action >= box.low) & (found.action <= box.high)).all()
        assert found.value == pytest.approx(score.maximum(found.action[None])[0], rel=1e-9, abs=1e-12)


def test_the_curvature_of_a_narrow_ridge_is_learnt():
    # Plain gradients would zigzag: the axes of the ellipsoid differ by 100, and lie across those of the box.
    rng = np.random.default_rng(0)
    rotation = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    features = mb.FromCallable(
        lambda a: a @ rotation / [1.0, 0.3, 0.1, 0.01], 4, 4, vjp=lambda a, v: (v / [1.0, 0.3, 0.1, 0.01]) @ rotation.T
    )
    peak = np.array([0.4, 0.6, 0.3, 0.7])
    found = search_box(Peak(features(peak)[0]), features, mb.Box(np.zeros(4), np.ones(4)), rng)
    assert found.value > -1e-4
    assert found.evaluations < 1500


def test_fixed_coordinates_stay_to_the_bit_and_no_point_leaves_the_box():
    # A third is not a binary fraction, and 0.1 + 0.2 not 0.3: rounding would show.
    box = mb.Box([1 / 3, -2.0, 0.1 + 0.2], [1 / 3, 2.0, 7.0])
    score = Peak([9.0, 0.5, -1.0])
    found = search_box(score, mb.Identity(3), box, np.random.default_rng(0))
    looked_at = np.vstack(score.seen)
    assert ((looked_at >= box.low) & (looked_at <= box.high)).all()
    assert (looked_at[:, 0] == 1 / 3).all()
    assert found.action == pytest.approx([1 / 3, 0.5, 0.1 + 0.2], abs=1e-4)
    assert ((found.optima >= box.low) & (found.optima <= box.high)).all()


def test_a_box_without_width_has_one_action():
    box = mb.Box([0.3, -4.0], [0.3, -4.0])
    found = search_box(Peak([0.0, 0.0]), mb.Identity(2), box, np.random.default_rng(0))
    np.testing.assert_array_equal(found.action, box.low)
    assert (found.value, found.evaluations) == (-(0.3**2 + 16.0), 1)
    np.testing.assert_array_equal(found.optima, [box.low])


def cliff(actions):
    """Falls to the right, and at the very end rises above everything: random points miss that."""
    x = actions[:, :1]
    return np.where(x < 0.9999, -x, 1e5 * (x - 0.9999) - 5.0)


CLIFF = mb.FromCallable(cliff, 2, 1, vjp=lambda a, v: np.where(a < 0.9999, -1.0, 1e5) * v * [[1.0, 0.0]])


def test_warm_starts_climb_whatever_the_screening_says():
    box, features, score = mb.Box(np.zeros(2), np.ones(2)), CLIFF, linear(np.ones(1))
    cold = search_box(score, features, box, np.random.default_rng(0))
    assert cold.value == pytest.approx(0.0, abs=1e-6)
    # Where it starts it is worse than every random point.
    warm = np.array([[0.99991, 0.5]])
    assert features(warm)[0, 0] == pytest.approx(-4.0)
    found = search_box(score, features, box, np.random.default_rng(0), warm=warm)
    assert found.value == pytest.approx(5.0)
    assert found.action[0] == 1.0
    # The next round starts from what this one found.
    again = search_box(score, features, box, np.random.default_rng(1), warm=found.optima)
    assert again.value >= found.value - 1e-12
    none = search_box(score, features, box, np.random.default_rng(0), warm=np.empty((0, 2)))
    assert none.value == pytest.approx(cold.value, abs=1e-6)


def test_the_same_seed_finds_the_same_action():
    cs, _ = problem(3, features=mb.RandomFourier(dim_in=3, dim=12, lengthscale=0.3, rng=0))
    box = mb.Box(np.zeros(3), np.ones(3))
    first, second = (search_box(optimism(cs, None), cs.features, box, np.random.default_rng(5)) for _ in range(2))
    np.testing.assert_array_equal(first.action, second.action)
    assert first.evaluations == second.evaluations


def test_local_optima_are_distinct_and_the_best_comes_first():
    cs, rng = problem(3, features=mb.RandomFourier(dim_in=2, dim=30, lengthscale=0.1, rng=0))
    box = mb.Box([-1.0, 0.0], [1.0, 10.0])
    found = search_box(optimism(cs, None), cs.features, box, rng)
    np.testing.assert_array_equal(found.optima[0], found.action)
    values = cs.upper(found.optima)
    assert len(values) > 1
    assert (np.diff(values) <= 1e-9).all()
    assert found.value == pytest.approx(values[0], rel=1e-9)
    apart = np.abs(found.optima[:, None] - found.optima[None]) / box.width
    assert apart.max(axis=2)[~np.eye(len(values), dtype=bool)].min() > 1e-4


def against_random_points(seeds, points):
    """How far, relative to the best of many random points, the search falls short; and how much it evaluates."""
    shortfalls, evaluations = [], []
    for seed in seeds:
        rng = np.random.default_rng([13, seed])
        features = mb.RandomFourier(dim_in=8, dim=20, lengthscale=float(rng.choice([0.5, 1.0])), rng=rng)
        cs, rng = problem(seed, features=features, t=int(rng.integers(0, 151)))
        box = mb.Box(np.zeros(8), np.ones(8))
        score = optimism(cs, None)
        found = search_box(score, features, box, rng)
        most = max(float(score.maximum(features(box.sample(points // 10, rng))).max()) for _ in range(10))
        shortfalls.append((most - found.value) / abs(most))
        evaluations.append(found.evaluations)
    return np.array(shortfalls), np.array(evaluations)


def test_a_kink_that_makes_the_curvature_singular_stops_nobody():
    rng = np.random.default_rng(3)
    theta = rng.normal(size=3)
    theta /= np.linalg.norm(theta)
    policy = mb.Greedy(3, actions=mb.Box([-1] * 3, [1] * 3), sigma=0.2, norm_bound=1.1, rng=3, on_empty="inflate")
    for _ in range(8):
        choice = policy.ask()
        policy.tell(choice, float(choice.action @ theta) + 0.2 * rng.normal())
    assert policy.certificate().proven


@pytest.mark.parametrize("width", [1e-150, 1e-30, 1e30, 1e45])
def test_boxes_of_extreme_size_are_searched(width):
    policy = mb.CMMUCB(2, actions=mb.Box([-width] * 2, [width] * 2), sigma=0.1, norm_bound=1.0, rng=0)
    for _ in range(5):
        choice = policy.ask()
        assert np.abs(choice.action).max() <= width
        policy.tell(choice, 0.0)


def test_an_optimum_is_not_kept_twice():
    # Few hills, so that many starts end on the same one, up to what a search leaves.
    for seed in range(20):
        cs, rng = problem(seed, features=mb.RandomFourier(dim_in=2, dim=10, lengthscale=1.0, rng=seed), t=20)
        optima = search_box(optimism(cs, None), cs.features, mb.Box([-3.0, -3.0], [3.0, 3.0]), rng).optima
        apart = np.abs(optima[:, None] - optima[None]).max(axis=2) / 6.0
        assert (apart[~np.eye(len(optima), dtype=bool)] > 0.99e-4).all()


def test_among_many_hills_the_search_comes_near_what_eight_times_the_effort_finds():
    shares = []
    for seed in range(40):
        features = mb.RandomFourier(dim_in=4, dim=20, lengthscale=0.3, rng=seed)
        cs, rng = problem(seed, features=features, t=30)
        score, box = optimism(cs, None), mb.Box(np.zeros(4), np.ones(4))
        thorough = search_box(score, features, box, rng, effort=THOROUGH.times(8.0)).value
        shares.append(search_box(score, features, box, rng).value / thorough)
    # To climb from the best random point alone gives 96 %.
    assert np.mean(shares) > 0.98


def test_the_search_beats_random_points_in_dimension_eight():
    shortfalls, evaluations = against_random_points(range(5), 20_000)
    assert (shortfalls <= 0.0).all()
    assert evaluations.mean() < 1500


@pytest.mark.heavy
def test_the_search_beats_very_many_random_points_in_dimension_eight():
    shortfalls, evaluations = against_random_points(range(50), 200_000)
    assert (shortfalls <= 0.0).all(), shortfalls
    assert evaluations.mean() < 1500


def test_an_optimum_is_not_kept_twice_where_a_context_is_fixed():
    rng = np.random.default_rng(0)
    features = mb.RandomFourier(dim_in=3, dim=30, lengthscale=0.3, rng=0)
    cs = mb.MartingaleMixture(features, sigma=0.2, norm_bound=1.0, delta=0.05)
    x = rng.uniform(size=(50, 3))
    cs.update(x, features(x) @ np.full(30, 0.1) + 0.1 * rng.normal(size=50))
    optima = search_box(optimism(cs, None), features, mb.Box([0.3, 0, 0], [0.3, 1, 1]), rng).optima
    apart = np.abs(optima[:, None] - optima[None]).max(axis=2)
    assert (apart[~np.eye(len(optima), dtype=bool)] > 0.99e-4).all()


@pytest.mark.parametrize("exploration", [0.0, 0.05, 0.7, 2.0])
def test_where_bounds_have_a_centre_one_of_them_gives_the_scaled_score(exploration):
    rng = np.random.default_rng(3)
    cs = mb.MartingaleMixture(6, sigma=0.1, norm_bound=2.0, mixture=mb.Scaled(0.3))
    X = rng.normal(size=(9, 6))
    cs.update(X, X @ rng.normal(size=6) * 0.3)
    phi = rng.normal(size=(5, 6))
    score = optimism(cs, cs.alpha0, exploration)
    assert isinstance(score, Ellipsoid)
    upper, lower = cs.upper(phi, alpha=cs.alpha0), cs.lower(phi, alpha=cs.alpha0)
    expected = 0.5 * (upper + lower) + exploration * 0.5 * (upper - lower)
    np.testing.assert_allclose(score.maximum(phi), expected, rtol=1e-10)
    value, slope, *_ = score.support(phi)
    np.testing.assert_allclose(value, expected, rtol=1e-10)
    step = 1e-6
    for j in range(6):
        moved = phi.copy()
        moved[:, j] += step
        np.testing.assert_allclose((score.maximum(moved) - value) / step, slope[:, j], rtol=1e-3, atol=1e-4)
    assert not isinstance(optimism(cs, None, exploration), Ellipsoid)  # exact intervals have no linear centre


def test_a_quick_search_comes_near_what_a_thorough_one_finds():
    phi = mb.RandomFourier(4, 60, 0.5, rng=0)
    losses = []
    for seed in range(20):
        score = linear(np.random.default_rng(seed).normal(size=60))
        box, rng = mb.Box(np.zeros(4), np.ones(4)), np.random.default_rng(seed)
        thorough = search_box(score, phi, box, rng).value
        quick = search_box(score, phi, box, rng, effort=QUICK)
        losses.append((thorough - quick.value) / abs(thorough))
        assert quick.evaluations < 700
    assert np.mean(losses) < 0.15
