import numpy as np
import pytest

import mixbandit as mb
from mixbandit.mixtures import log_det
from tests.helpers.instances import draw, prior, radius2_by_definition

# What the t×t definition itself can be trusted for in double precision.
WELL_CONDITIONED = [seed for seed in range(200) if draw(seed).family not in ("huge features", "graded features")]


@pytest.mark.parametrize("seed", WELL_CONDITIONED)
def test_radius_equals_the_definition(seed):
    instance = draw(seed)
    assert instance.sequence().radius ** 2 == pytest.approx(radius2_by_definition(instance), rel=1e-9)


class BayesianRegression:
    """The linear mixture as a chain of one-step forecasts: the posterior of θ ~ N(θ₀, Σ₀) so far."""

    def __init__(self, instance):
        self.mean, self.covariance = prior(instance.mixture, instance.Phi.shape[1])
        self.noise = instance.sigma**2

    def predict(self, x):
        return x @ self.mean, x @ self.covariance @ x

    def update(self, x, r):
        gain = self.covariance @ x / (self.noise + x @ self.covariance @ x)
        self.mean = self.mean + gain * (r - x @ self.mean)
        self.covariance = self.covariance - np.outer(gain, x @ self.covariance)


@pytest.mark.parametrize("seed", WELL_CONDITIONED[:60])
def test_a_chain_of_forecasts_gives_the_same_radius(seed):
    instance = draw(seed)
    chain = mb.MartingaleMixture(
        instance.Phi.shape[1],
        sigma=instance.sigma,
        norm_bound=instance.norm_bound,
        delta=instance.delta,
        mixture=BayesianRegression(instance),
    )
    chain.update(instance.Phi, instance.r)
    assert chain.radius == pytest.approx(instance.sequence().radius, rel=1e-8)


def test_alpha0_follows_the_mixture():
    assert mb.Standard().alpha0(5, 0.1) == pytest.approx(0.01)
    assert mb.Scaled(4.0).alpha0(5, 0.1) == pytest.approx(0.0025)
    assert mb.Linear([0.0, 0.0], [[3.0, 0.0], [0.0, 5.0]]).alpha0(2, 0.1) == pytest.approx(2 * 0.01 / 8)


def test_linear_at_a_multiple_of_the_identity_is_scaled():
    rng = np.random.default_rng(0)
    Phi, r = rng.normal(size=(20, 3)), rng.normal(size=20)
    one, other = (
        mb.MartingaleMixture(3, sigma=0.5, norm_bound=3.0, mixture=m).update(Phi, r)
        for m in (mb.Scaled(2.5), mb.Linear(np.zeros(3), 2.5 * np.eye(3)))
    )
    assert one.radius == pytest.approx(other.radius, rel=1e-12)
    np.testing.assert_allclose(one.upper(Phi), other.upper(Phi), rtol=1e-10)


def test_log_det_is_right_for_tiny_and_for_huge_ratios():
    assert log_det(np.array([1e-9]), 1.0) == pytest.approx(1e-18, rel=1e-12)
    assert log_det(np.array([1e200]), 1e-100) == pytest.approx(2 * 300 * np.log(10.0), rel=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_a_singular_covariance_is_not_positive_definite(seed):
    half = np.random.default_rng(seed).normal(size=(4, 3))
    with pytest.raises(mb.InvalidInput, match="positive definite"):
        mb.Linear(np.zeros(4), half @ half.T)


@pytest.mark.parametrize("scale", [1e6, 1e12, 1e16, 1e18])
@pytest.mark.parametrize("kind", ["standard", "linear", "forecaster"])
def test_a_direction_lost_to_rounding_is_not_counted_as_noise(kind, scale):
    """One feature so large that the other is below its rounding error: the set widens, and is not empty."""

    class Knows:
        def predict(self, x):
            return x[1], 0.04

        def update(self, x, r):
            pass

    rng = np.random.default_rng(0)
    x = rng.normal(size=30)
    Phi = np.column_stack((scale * (1.7 + 0.1 * np.arange(30)), x))
    r = x + 0.1 * rng.normal(size=30)
    # A covariance may be graded as far as it is positive definite in double precision.
    linear = mb.Linear(np.zeros(2), np.diag([max(scale**-2.0, 1e-14), 1.0]))
    mixture = {"standard": mb.Standard(), "linear": linear, "forecaster": Knows()}[kind]
    cs = mb.MartingaleMixture(2, sigma=0.1, norm_bound=2.0, mixture=mixture).update(Phi, r)
    assert not cs.is_empty
    assert cs.contains([0.0, 1.0])
    assert cs.log_evalue([0.0, 1.0]) < np.log(100)
    assert cs.lower([0.0, 1.0])[0] <= 1.0 <= cs.upper([0.0, 1.0])[0]


class Peeking:
    """Not a forecaster: it lacks `update`."""

    def predict(self, x):
        return 0.0, 1.0


class Wrong:
    def __init__(self, *prediction):
        self.prediction = prediction

    def predict(self, x):
        return self.prediction

    def update(self, x, r):
        raise AssertionError("must not be reached")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: mb.Scaled(0.0), "c must be positive"),
        (lambda: mb.Linear([0.0, 0.0], np.eye(3)), r"got \(2,\) and \(3, 3\)"),
        (lambda: mb.Linear([0.0, np.inf], np.eye(2)), "finite"),
        (
            lambda: mb.Linear([0.0, 0.0], [[1.0, 2.0], [2.0, 1.0]]),
            "positive definite, got a smallest eigenvalue of -1",
        ),
        (lambda: mb.Linear([0.0, 0.0], [[1.0, 0.5], [0.0, 1.0]]), "symmetric"),
        (
            lambda: mb.MartingaleMixture(3, sigma=1, norm_bound=1, mixture=mb.Linear([0.0], [[1.0]])),
            "dimension 3",
        ),
        (lambda: mb.MartingaleMixture(3, sigma=1, norm_bound=1, mixture=Peeking()), "predict"),
        (lambda: mb.MartingaleMixture(3, sigma=1, norm_bound=1, mixture=mb.Standard), "mixture"),
    ],
)
def test_bad_mixtures_are_named(make, says):
    with pytest.raises(mb.InvalidInput, match=says):
        make()


@pytest.mark.parametrize(
    "prediction",
    [
        (np.nan, 1.0),
        (0.0, -1.0),
        (0.0, np.inf),
        (1e200, 1.0),
        (0.0, 1e308),
        (10**400, 1.0),
        ("a", 1.0),
        (1.0, 2.0, 3.0),
    ],
)
def test_a_forecaster_that_predicts_nonsense_is_named(prediction):
    cs = mb.MartingaleMixture(2, sigma=1.0, norm_bound=1.0, mixture=Wrong(*prediction))
    with pytest.raises(mb.InvalidInput, match="Wrong must predict"):
        cs.update([1.0, 2.0], 0.5)
    assert cs.t == 0
