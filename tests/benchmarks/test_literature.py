"""The sets of benchmarks/literature.py are what they are said to be."""

import math

import numpy as np
import pytest

import mixbandit as mb
from benchmarks import literature

CUBE = (0.2, 0.9)


@pytest.fixture
def results():
    rng = np.random.default_rng(0)
    theta, x = rng.uniform(*CUBE, size=literature.DIM), rng.dirichlet(np.ones(literature.DIM), size=40)
    return x, (rng.random(40) < x @ theta).astype(np.float64), rng.uniform(*CUBE, size=(200, literature.DIM))


def loss(x, r, theta):
    return -np.log(np.where(r > 0.0, x @ theta, 1.0 - x @ theta)).sum()


@pytest.mark.parametrize("exact", [False, True])
def test_ours_is_bounded_mixture(results, exact):
    x, r, others = results
    cs = mb.BoundedMixture(literature.DIM, norm_bound=literature.norm_bound(CUBE), delta=0.05, exact=exact).update(x, r)
    found = literature.bounded(exact)(x, r, CUBE)
    low, high = found.interval(x[:3])
    np.testing.assert_allclose(np.clip(low, 0.0, 1.0), cs.lower(x[:3]))
    np.testing.assert_allclose(np.clip(high, 0.0, 1.0), cs.upper(x[:3]))
    assert [found.contains(theta) for theta in others] == [cs.contains(theta) for theta in others]


def test_the_set_of_a_point_forecast(results):
    """L(θ) − L of the forecasts ≤ ln(1/δ), and each forecast is made before its result."""
    x, r, others = results
    logs = [literature.log_forecasts(x[:k], r[:k], 1.0) for k in range(len(r) + 1)]
    changed = np.append(r[:-1], 1.0 - r[-1])
    last = math.exp(logs[-1] - logs[-2]), math.exp(literature.log_forecasts(x, changed, 1.0) - logs[-2])
    assert sum(last) == pytest.approx(1.0)
    found = literature.plug_in(1.0, exact=False)(x, r, CUBE)
    inside = [loss(x, r, theta) + logs[-1] <= math.log(1 / 0.05) for theta in others]
    assert [found.contains(theta) for theta in others] == inside
    assert 0 < sum(inside) < len(inside)


def test_the_constants_of_the_unified_sequence(results):
    x, r, others = results
    gradients = [x.T @ np.where(r > 0.0, -1.0 / (x @ theta), 1.0 / (1.0 - x @ theta)) for theta in others]
    assert max(np.linalg.norm(gradients, axis=1)) <= literature.lipschitz(x, r, 0.1)
    # One result: the gradient is largest in a corner, x/ε.
    assert literature.lipschitz(x[:1], np.ones(1), 0.1) == pytest.approx(np.linalg.norm(x[0]) / 0.1)
    assert literature.least_loss(x, r, 0.1) <= min(loss(x, r, theta) for theta in others)


def test_lofav_adapts_to_the_noise(results):
    """Without noise its intervals are narrower than with it."""
    x, r, _ = results
    rho, s = 0.5, 2.0
    (_, double, _), (_, matrix, radius2) = literature.weighted(x, r, rho, 3, s)
    np.testing.assert_allclose(double, 2.0 * matrix - rho**2 / s**2 * np.eye(literature.DIM))
    assert radius2 > 2.0 * math.log(6.0 / 0.05)
    theta = np.full(literature.DIM, 0.5)
    long = np.tile(x, (10, 1))
    quiet, loud = (literature.lofav(long, values, CUBE) for values in (long @ theta, np.tile(r, 10)))
    widths = [float((high - low).mean()) for low, high in (quiet.interval(x), loud.interval(x))]
    assert quiet.contains(theta)
    assert widths[0] < widths[1]
