"""Settings and data of any allowed size: bounds are honest numbers, and rounding excludes no truth."""

from collections import Counter

import mpmath as mp
import numpy as np
import pytest

import mixbandit as mb
from mixbandit.sets import ResidualBall, dual
from tests.helpers.exact_arithmetic import ExactSet
from tests.helpers.extremes import learn_and_ask, learn_the_truth

# Cases of seed 0 that once overflowed or divided by zero.
ONCE_WRONG = [504, 651, 725, 784, 1927, 2116, 2287, 2323, 2704, 2938]


def test_nothing_is_nan_and_every_error_is_ours():
    """A few of the 40,000 cases that were run when this was written."""
    outcomes = Counter(learn_and_ask(0, case) for case in [*ONCE_WRONG, *range(100)])
    assert outcomes["answered"] > 60


@pytest.mark.filterwarnings("ignore::mixbandit.AssumptionsRefutedWarning")
def test_rounding_excludes_no_truth():
    assert learn_the_truth(1, 2441) == "covered"  # once empty: a prior far away, with general weights
    outcomes = Counter(learn_the_truth(0, case) for case in range(200))
    assert outcomes["covered"] > 60
    assert outcomes["below rounding"] > 20


def small_noise(mixture, sigma=1e-20):
    return mb.MartingaleMixture(2, sigma=sigma, norm_bound=1.0, mixture=mixture, on_empty="inflate")


@pytest.mark.parametrize("sigma", [1e-20, 1e-12, 1e20])
@pytest.mark.parametrize(
    ("mixture", "n"),
    [
        (mb.Gaussian(0.0, mb.RBF(1.0, 1e20)), 40),
        (mb.Gaussian(1e50, mb.Matern(1.5)), 40),
        (mb.Adaptive(), 260),  # at the 256th it inverts its matrix anew
        (mb.Adaptive(1e-20), 260),
        (mb.Adaptive(1e20), 260),
        (mb.Adaptive(1e-20, mb.RBF()), 40),
        (mb.SemiAdaptive(1e20), 260),
        (mb.SemiAdaptive(1e20, mb.RBF()), 40),
        (mb.Grid([mb.Adaptive(), mb.Gaussian(0.0, mb.RBF()), 1e-20]), 40),
    ],
    ids=["kernel", "far mean", "adaptive", "sure", "unsure", "adaptive kernel", "semi", "semi kernel", "grid"],
)
@pytest.mark.filterwarnings("ignore::mixbandit.AssumptionsRefutedWarning")
def test_forecasters_whose_numbers_grow_without_limit_stay_honest(mixture, n, sigma):
    rng = np.random.default_rng(0)
    features, theta = rng.normal(size=(n, 2)), np.array([0.5, -0.25])
    cs = small_noise(mixture, sigma)
    for part in np.split(np.arange(n), 5):
        cs.update(features[part], features[part] @ theta + sigma * rng.choice([-1.0, 1.0], size=len(part)))
        ends = np.array([cs.lower(np.eye(2)), cs.upper(np.eye(2)), [cs.radius, cs.alpha0]])
        assert np.isfinite(ends).all()
        if not cs.is_empty:
            assert (ends[0] <= theta).all()
            assert (theta <= ends[1]).all()
    again = mb.MartingaleMixture.from_state_dict(cs.state_dict())
    np.testing.assert_array_equal(again.upper(np.eye(2)), cs.upper(np.eye(2)))


@pytest.mark.parametrize(("sigma", "beta", "variance"), [(1.0, 1e-20, 1e20), (1e-2, 1e-20, 1.0), (1e20, 1e-20, 1e20)])
@pytest.mark.filterwarnings("ignore::mixbandit.AssumptionsRefutedWarning")
def test_a_sure_process_that_sees_nearly_equal_actions_stays_finite(sigma, beta, variance):
    cs = small_noise(mb.Adaptive(beta, mb.RBF(1.0, variance)), sigma)
    for k in range(30):
        cs.update([[1.0 + 1e-9 * k, 0.0]], [(-1.0) ** k])
    assert np.isfinite(cs.radius)
    assert mb.MartingaleMixture.from_state_dict(cs.state_dict()).radius == cs.radius


@pytest.mark.filterwarnings("ignore::mixbandit.AssumptionsRefutedWarning")
def test_one_direction_seen_very_often_leaves_the_others_unknown():
    """At the 256th reward the adaptive mixture computes its matrix anew: next to 10⁴² its ridge of 4 vanishes."""
    cs = small_noise(mb.Adaptive(), sigma=2.0**-66).update(np.tile([1.0, 0.5], (260, 1)), np.full(260, 0.5))
    assert np.isfinite(cs.radius)
    assert cs.upper([[-0.5, 1.0]]) > 0.5


def test_bounds_beyond_all_floats_are_infinite():
    cs = mb.MartingaleMixture(1, sigma=1e20, norm_bound=1.0, mixture=mb.Adaptive(), misspecification=1e20)
    cs.update([[1.0]], [1.0], sigma=1e-20)
    asked = np.array([[1e200], [-1e200], [0.0], [1.0]])
    np.testing.assert_array_equal(cs.upper(asked)[:3], [1e200 + 1e20, 1e200 + 1e20, 1e20])
    other = mb.MartingaleMixture(2, sigma=1e20, norm_bound=1.0, mixture=mb.Adaptive(), misspecification=1e20)
    other.update([[1.0, 0.0]], [1.0], sigma=1e-20)
    unseen = np.array([[0.0, 1e200], [0.0, 0.0]])
    np.testing.assert_array_equal(other.upper(unseen, 1e-100), [np.inf, 1e20])
    np.testing.assert_array_equal(other.lower(unseen, 1e-100), [-np.inf, -1e20])
    np.testing.assert_array_equal(other.support(unseen, 1e-100).value, [np.inf, 1e20])


@pytest.mark.parametrize(
    "kind", [mb.OFULSequence, mb.IGPSequence, mb.BayesCredible, mb.MartingaleMixture, mb.UnknownNoise]
)
def test_a_parameter_too_far_away_to_square_is_not_contained(kind):
    stated = {} if kind is mb.UnknownNoise else {"sigma": 1.0}
    cs = kind(2, norm_bound=1.0, **stated).update([[1e20, 0.0]], [1.0])
    assert not cs.contains([1e200, -1e200])


def test_rounding_beyond_the_norm_ball_leaves_the_norm_ball():
    spectrum = mb.MartingaleMixture(2, sigma=1.0, norm_bound=1.0).update(np.eye(2), [0.5, 0.0]).moment.data.spectrum
    ball = ResidualBall(spectrum, 1e-3, 1.0, start=1.0, rounding=1e300)
    np.testing.assert_array_equal(ball.maximum(np.array([[3.0, 4.0], [-1.0, 0.0]])), [5.0, 1.0])
    assert np.isfinite(ball.closed_form(1.0).radius)
    assert ball.maximum(np.array([[-1.0, 0.0]])) > ResidualBall(spectrum, 1e-3, 1.0, start=1.0).maximum(
        np.array([[-1.0, 0.0]])
    )


def test_a_kernel_is_zero_between_actions_that_are_too_far_apart_to_square():
    for kernel in (mb.RBF(1e-20), mb.Matern(0.5, 1e-20), mb.Matern(2.5, 1e-20)):
        values = kernel(np.array([[1e200], [0.0]]), np.array([[-1e200], [1e200]]))
        np.testing.assert_array_equal(values, [[0.0, 1.0], [0.0, 0.0]])


@pytest.mark.parametrize("compiled", [True, False])
def test_a_point_has_bounds(compiled, monkeypatch):
    """A set of one point, up to rounding: a Newton step towards the direction away from it divides by zero."""
    if not compiled:
        monkeypatch.setattr(dual, "_compiled_kernel", lambda: None)
    problem = dual.Problem(np.array([1.0]), np.array([57247863.38955859]), 3277317748173870.0)
    null = np.array([3.2631192689560996e-14])
    found = dual.solve(problem, np.array([[-1.0]]), null, 3.3503611030368756e-78, with_theta=False)
    assert found.value == pytest.approx(-1.0, abs=1e-4)


def test_a_ridge_whose_least_singular_values_vanish_next_to_others():
    cs = mb.MartingaleMixture(
        2, sigma=1e-19, norm_bound=1e-9, mixture=mb.Scaled(1e16), misspecification=1e-20, on_empty="inflate"
    )
    cs.update([[1e45, 0.0], [0.0, 1e-40]], [1e40, 1e-30])
    with pytest.warns(mb.AssumptionsRefutedWarning):
        assert np.isfinite(cs.upper(np.eye(2))).all()


@pytest.mark.parametrize("sigma", [1e-6, 1e-12, 1e-16, 1e-20])
@pytest.mark.parametrize("norm_bound", [1.5, 1e8])
def test_exact_bounds_are_never_below_those_of_60_digits(sigma, norm_bound):
    """Next to rounding the bound is wider than the true one, by little more than rounding, and never narrower."""
    rng = np.random.default_rng(0)
    for d in (1, 3):
        features = rng.integers(-8, 9, size=(6, d)).astype(np.float64)
        theta = rng.integers(-8, 9, size=d) / 16.0
        rewards = features @ theta  # exactly
        truth = ExactSet(features, rewards, sigma, norm_bound, 0.01)
        cs = mb.MartingaleMixture(d, sigma=sigma, norm_bound=norm_bound).update(features, rewards)
        asked = np.vstack((np.eye(d), -np.eye(d)))
        for phi, upper in zip(asked, cs.upper(asked), strict=True):
            error = float(mp.mpf(float(upper)) - truth.support(phi))
            rounding = 1e-13 * norm_bound
            assert -1e-9 * max(sigma - 1e-14, 0.0) <= error <= 1e-5 * sigma + rounding


@pytest.mark.parametrize("power", [-30, -15, 15, 30])
@pytest.mark.parametrize(
    "make",
    [
        lambda c: mb.Scaled(0.5),
        lambda c: mb.Linear([0.1, 0.2], 0.5 * np.eye(2)),
        lambda c: mb.Gaussian(0.25 * c, mb.RBF(1.0, 0.5 * c**2)),
        lambda c: mb.Adaptive(0.04 * c**2),
        lambda c: mb.Adaptive(None, mb.Matern(2.5, 1.0, c**2)),
        lambda c: mb.SemiAdaptive(0.1),
        lambda c: mb.Grid([0.1, 1.0, mb.Adaptive()]),
    ],
    ids=["Scaled", "Linear", "Gaussian", "Adaptive", "Adaptive with a kernel", "SemiAdaptive", "Grid"],
)
def test_units_do_not_matter(make, power):
    """Features, rewards and σ in other units: the same parameters, to the last digits."""

    def bounds(c):
        rng = np.random.default_rng(0)
        actions = rng.normal(size=(20, 2))
        rewards = actions @ [0.5, -1.0] + 0.1 * rng.normal(size=20)
        phi = mb.FromCallable(lambda a: c * a, 2, 2)
        cs = mb.MartingaleMixture(phi, sigma=0.1 * c, norm_bound=2.0, mixture=make(c)).update(actions, c * rewards)
        return np.array([cs.lower(np.eye(2)), cs.upper(np.eye(2)), cs.upper(np.eye(2), cs.alpha0)]) / c

    np.testing.assert_allclose(bounds(2.0**power), bounds(1.0), rtol=1e-9)


def test_settings_beyond_what_arithmetic_can_hold_are_refused():
    for make in (
        lambda: mb.Linear([1e60], [[1.0]]),
        lambda: mb.Linear([0.0], [[1e50]]),
        lambda: mb.Linear([0.0], [[1e-50]]),
        lambda: mb.Gaussian(1e60, mb.RBF()),
    ):
        with pytest.raises(mb.InvalidInput):
            make()
    steep = small_noise(mb.Gaussian(0.0, lambda a, b: 1e150 * a @ b.T), 1.0)
    with pytest.raises(mb.InvalidInput, match="kernel's values"):
        steep.update([[1.0, 0.0]], [0.0])
    cs = small_noise(mb.Gaussian(lambda rows: 1e60 * rows[:, 0], mb.RBF()), 1.0)
    before = cs.moment
    with pytest.raises(mb.InvalidInput, match="mean function"):
        cs.update([[1.0, 0.0]], [0.0])
    assert cs.moment is before


def test_a_prior_far_from_the_norm_ball_does_not_empty_the_set_by_rounding():
    """The posterior mean is a small difference of the prior's mean and what the data say."""
    prior = mb.Linear([-0.36875999, 0.16826419], [[4.13494433, 1.45474663], [1.45474663, 1.93263926]])
    theta = np.array([-1.0, -0.5]) * 2.0**-59
    features = np.array([[-1.0, 0.0], [1.0, 1.0], [-2.0, 0.0]])
    cs = mb.GeneralLambda(2, sigma=2.0**-64, norm_bound=2.0**-58, mixture=prior).update(features, features @ theta)
    assert not cs.is_empty
    assert (cs.lower(features) <= features @ theta).all()
    assert (cs.upper(features) >= features @ theta).all()


def test_a_sure_prior_far_away_whose_squares_vanish_does_not_empty_the_set():
    """The features times the prior's root count as nothing, and the prior's mean is 10⁶⁸ norm bounds away."""
    rng = np.random.default_rng(0)
    features = rng.integers(-8, 9, size=(3, 4)) * 2.0**-88
    theta = rng.integers(-16, 17, size=4) * 2.0**-74
    prior = mb.Linear(np.full(4, 5e48), 1e-39 * np.eye(4))
    cs = mb.GeneralLambda(4, sigma=1e13, norm_bound=1e-20, mixture=prior).update(features, features @ theta)
    assert not cs.is_empty
    assert (cs.lower(features) <= features @ theta).all()
    assert (cs.upper(features) >= features @ theta).all()


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("phi", [2, mb.RBF(0.1)], ids=["features", "kernel"])
def test_programs_that_raise_on_underflow_get_the_same_bounds(exact, phi):
    rng = np.random.default_rng(0)
    actions = np.abs(rng.normal(size=(20, 2)))
    values = rng.choice([0.0, 1.0, 1e-300, 1.0 - 1e-16], size=20)
    made = {
        "bounded": lambda: mb.BoundedMixture(phi, norm_bound=2.0, exact=exact),
        "stated level": lambda: mb.KernelMixture(mb.RBF(0.1), sigma=0.5, norm_bound=2.0),
    }
    for make in made.values():
        expected = make().update(actions, values).upper(actions)
        with np.errstate(all="raise"):
            np.testing.assert_array_equal(make().update(actions, values).upper(actions), expected)
    for options in ({}, {"sigma": 0.1}, {"noise": "gaussian"}):
        inner = np.clip(values, 1e-200, 0.9) + 0.01 * rng.random(20)
        expected = mb.MeanSequence(**options).update(inner)
        known = expected.interval(), expected.pvalue(0.3)
        with np.errstate(all="raise"):
            again = mb.MeanSequence(**options).update(inner)
            assert (again.interval(), again.pvalue(0.3)) == known
