"""Forecasters of the user's own."""

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor

import mixbandit as mb

SIGMA = 0.3


class Recorder:
    """Notes what it is asked and told, in order."""

    def __init__(self):
        self.seen = []

    def predict(self, x):
        self.seen.append(("predict", *x))
        return 0.5, 2.0

    def update(self, x, r):
        self.seen.append(("update", *x, r))


def test_it_is_asked_before_it_is_told_with_rows_as_given():
    phi = mb.RandomFourier(2, 5, rng=0)
    cs = mb.MartingaleMixture(phi, sigma=SIGMA, norm_bound=1.0, mixture=Recorder())
    cs.update([[1.0, 2.0], [3.0, 4.0]], [0.1, 0.2])
    assert cs.mixture.seen == [
        ("predict", 1.0, 2.0), ("update", 1.0, 2.0, 0.1), ("predict", 3.0, 4.0), ("update", 3.0, 4.0, 0.2),
    ]  # fmt: skip
    v = 1 + 2.0 / SIGMA**2
    expected = sum((r - 0.5) ** 2 / v + SIGMA**2 * np.log(v) for r in (0.1, 0.2)) + 2 * SIGMA**2 * np.log(100)
    assert cs.radius**2 == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("grid", [False, True])
def test_a_forecaster_that_fails_midway_leaves_everything_as_it_was(grid):
    class Brittle(Recorder):
        def update(self, x, r):
            super().update(x, r)
            if r < 0:
                raise RuntimeError("negative")

    mixture = mb.Grid([mb.Adaptive(), mb.Gaussian(0.0, mb.RBF()), Brittle()]) if grid else Brittle()
    phi = mb.RandomFourier(2, 5, rng=0)
    cs, undisturbed = (mb.MartingaleMixture(phi, sigma=SIGMA, norm_bound=1.0, mixture=mixture) for _ in range(2))
    for one in (cs, undisturbed):
        one.update([[1.0, 2.0]] * 20, [0.1] * 20)
    for _ in range(3):
        with pytest.raises(RuntimeError, match="negative"):
            cs.update([[1.0, 2.0], [3.0, 4.0]], [0.1, -0.2])
    assert cs.t == 20
    assert cs.radius == undisturbed.radius
    for one in (cs, undisturbed):
        one.update([[0.3, 0.1]] * 3, [0.1, 0.2, 0.3])
    assert cs.radius == undisturbed.radius
    np.testing.assert_array_equal(cs.upper([0.5, 0.5]), undisturbed.upper([0.5, 0.5]))


def test_one_forecaster_may_serve_several_sequences():
    """Each has a copy: told of a reward by one, it would know what it has yet to predict for the other."""
    memory = mb.FromRegressor(KNeighborsRegressor(1), SIGMA, refit_every=1)
    misses = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        theta = rng.normal(size=3) / 2
        first, second, both = (
            mb.MartingaleMixture(3, sigma=SIGMA, norm_bound=3.0, mixture=mixture)
            for mixture in (memory, memory, mb.Grid([memory, memory]))
        )
        for _ in range(30):
            x = rng.normal(size=3)
            r = x @ theta + SIGMA * rng.normal()
            for cs in (first, second, both):
                cs.update(x, r)
        assert first.radius == second.radius == pytest.approx(both.radius)
        misses += not second.contains(theta)
    assert misses == 0
    assert not memory._rewards  # the user's own object has learned nothing


def test_noise_levels_enter_error_and_spread():
    levels = np.array([0.1, 0.5])
    cs = mb.MartingaleMixture(2, sigma=SIGMA, norm_bound=1.0, mixture=Recorder())
    cs.update([[1.0, 2.0], [3.0, 4.0]], [0.1, 0.2], sigma=levels)
    v = 1 + 2.0 / levels**2
    weighted = (SIGMA / levels) ** 2 * (np.array([0.1, 0.2]) - 0.5) ** 2
    expected = np.sum(weighted / v + SIGMA**2 * np.log(v)) + 2 * SIGMA**2 * np.log(100)
    assert cs.radius**2 == pytest.approx(expected, rel=1e-12)


def test_a_forecaster_may_keep_the_row_it_is_given():
    class Keeper(Recorder):
        def update(self, x, r):
            self.seen.append(x)

        def predict(self, x):
            return 0.0, 1.0

    cs, buffer = mb.MartingaleMixture(2, sigma=SIGMA, norm_bound=1.0, mixture=Keeper()), np.zeros(2)
    for value in (1.0, 2.0):
        buffer[:] = value
        cs.update(buffer, 0.1)
    assert [x.tolist() for x in cs.mixture.seen] == [[1.0, 1.0], [2.0, 2.0]]


def linear_run(seed, mixture, t=60, d=5):
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=d) / np.sqrt(d)
    cs = mb.MartingaleMixture(d, sigma=SIGMA, norm_bound=2.5, delta=0.05, mixture=mixture(theta))
    missed = False
    for _ in range(t):
        x = rng.normal(size=d)
        cs.update(x, x @ theta + SIGMA * rng.normal())
        missed |= not cs.contains(theta)
    return missed, cs


class Oracle:
    """Knows the truth; the best forecaster there can be."""

    def __init__(self, theta):
        self.theta = theta

    def predict(self, x):
        return float(x @ self.theta), 0.0

    def update(self, x, r):
        pass


class Wrong(Oracle):
    """Predicts the opposite, and believes it."""

    def predict(self, x):
        return float(-x @ self.theta), 0.01


def test_a_good_forecaster_tightens_and_a_bad_one_only_widens():
    widths, misses = {}, {}
    for name, mixture in (("oracle", Oracle), ("standard", lambda theta: mb.Standard()), ("wrong", Wrong)):
        runs = [linear_run(seed, mixture) for seed in range(60)]
        misses[name] = sum(missed for missed, _ in runs)
        widths[name] = np.mean([cs.upper(np.eye(5)) - cs.lower(np.eye(5)) for _, cs in runs])
    assert widths["oracle"] < 0.9 * widths["standard"]
    assert widths["wrong"] > 1.1 * widths["standard"]
    assert max(misses.values()) <= 8  # 5 % of 60 runs is 3; more than 8 has probability 0.004


def test_peeking_at_the_reward_would_break_everything():
    """The interface asks before it tells. Were a forecaster to know the reward, the set would miss θ*."""

    class Peeking:
        def __init__(self, theta):
            self.rng = np.random.default_rng(0)

        def predict(self, x):
            return self.next_reward, 0.0

        def update(self, x, r):
            pass

    misses = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        theta = rng.normal(size=3)
        cs = mb.MartingaleMixture(3, sigma=SIGMA, norm_bound=5.0, mixture=Peeking(None))
        for _ in range(60):
            x = rng.normal(size=3)
            cs.mixture.next_reward = x @ theta + SIGMA * rng.normal()
            cs.update(x, cs.mixture.next_reward)
        misses += not cs.contains(theta)
    assert misses == 20


@pytest.mark.parametrize("regressor", [Ridge(), GradientBoostingRegressor(n_estimators=20, random_state=0)])
def test_a_regressor_becomes_a_valid_forecaster(regressor):
    forecaster = mb.FromRegressor(regressor, sigma=SIGMA, refit_every=15)
    missed, cs = linear_run(1, lambda theta: forecaster, t=80)
    assert not missed
    _, blind = linear_run(1, lambda theta: mb.FromRegressor(regressor, sigma=SIGMA, refit_every=1000), t=80)
    assert cs.radius < blind.radius  # learning pays


def test_a_regressor_learns_its_variance_from_its_errors():
    class Zero:
        def fit(self, X, y):
            return self

        def predict(self, X):
            return np.zeros(len(X))

    forecaster = mb.FromRegressor(Zero(), sigma=0.5, refit_every=2, window=3, variance=7.0)
    x = np.zeros(1)
    assert forecaster.predict(x) == (0.0, 7.0)
    for r in (1.0, 1.0, 2.0, 3.0, 4.0, 5.0):
        forecaster.update(x, r)
    assert forecaster.predict(x) == (0.0, pytest.approx((9 + 16 + 25) / 3 - 0.25))
    short = mb.FromRegressor(Zero(), sigma=0.5, refit_every=1, window=1)
    for r in (1.0, 1.0, 2.0, 3.0):
        short.update(x, r)
    assert short.predict(x) == (0.0, pytest.approx(9 - 0.25))
    with pytest.raises(mb.InvalidInput, match="mean must be finite"):
        mb.FromRegressor(Zero(), sigma=0.5, mean=np.nan)


def test_a_users_forecaster_is_copied_and_not_stored():
    _, cs = linear_run(0, Oracle)
    twin = cs.copy()
    twin.update(np.ones(5), 100.0)
    assert twin.mixture is not cs.mixture
    assert cs.radius == linear_run(0, Oracle)[1].radius
    with pytest.raises(mb.NotStorable, match="Oracle is code"):
        cs.state_dict()
    with pytest.raises(mb.NotStorable, match="Oracle is code"):
        mb.Grid([1.0, Oracle(np.ones(2))]).state_dict()
    with pytest.raises(mb.NotMergeable, match="order"):
        cs.merge(twin)
