"""The two sequences beside ours, against their definitions."""

import mpmath as mp
import numpy as np
import pytest

import mixbandit as mb


def chi2_tail_quantile(d, level):
    """The x with P(χ²(d) > x) = level."""
    return mp.findroot(
        lambda x: mp.log(mp.gammainc(mp.mpf(d) / 2, x / 2, regularized=True) / level),
        (1, 1000),
        solver="anderson",
    )


@pytest.fixture(params=[0, 3, 40], ids=lambda t: f"t={t}")
def data(request):
    rng = np.random.default_rng(request.param)
    Phi = rng.normal(size=(request.param, 5))
    return Phi, Phi @ np.ones(5) + 0.3 * rng.normal(size=request.param), rng.normal(size=(7, 5))


@pytest.mark.parametrize("alpha", [None, 0.7])
def test_oful_follows_its_definition(data, alpha):
    Phi, r, queries = data
    cs = mb.OFULSequence(5, sigma=0.3, norm_bound=2.5, delta=0.05, alpha=alpha).update(Phi, r)
    a = 0.09 if alpha is None else alpha
    V = Phi.T @ Phi + a * np.eye(5)
    centre = np.linalg.solve(V, Phi.T @ r)
    log_det = np.linalg.slogdet(Phi.T @ Phi / a + np.eye(5))[1]
    radius = 0.3 * np.sqrt(log_det + 2 * np.log(20)) + np.sqrt(a) * 2.5
    width = np.sqrt(np.einsum("nd,nd->n", queries, np.linalg.solve(V, queries.T).T))
    assert cs.ellipsoid_radius == pytest.approx(radius, rel=1e-12)
    np.testing.assert_allclose(cs.upper(queries), queries @ centre + radius * width, rtol=1e-10)
    np.testing.assert_allclose(cs.lower(queries), queries @ centre - radius * width, rtol=1e-10)


@pytest.mark.parametrize("prior", ["standard", "scaled", "linear"])
def test_bayes_follows_its_definition(data, prior):
    Phi, r, queries = data
    rng = np.random.default_rng(5)
    root = rng.normal(size=(5, 5))
    mean, covariance, mixture = {
        "standard": (np.zeros(5), np.eye(5), mb.Standard()),
        "scaled": (np.zeros(5), 0.2 * np.eye(5), mb.Scaled(0.2)),
        "linear": (np.ones(5), root @ root.T, mb.Linear(np.ones(5), root @ root.T)),
    }[prior]
    cs = mb.BayesCredible(5, sigma=0.3, delta=0.05, mixture=mixture).update(Phi, r)
    precision = np.linalg.inv(covariance)
    posterior = np.linalg.inv(Phi.T @ Phi / 0.09 + precision)
    centre = posterior @ (precision @ mean + Phi.T @ r / 0.09)
    level = 6 * 0.05 / ((len(r) + 1) ** 2 * np.pi**2)
    quantile = float(chi2_tail_quantile(5, mp.mpf(level)))
    width = np.sqrt(quantile * np.einsum("nd,de,ne->n", queries, posterior, queries))
    np.testing.assert_allclose(cs.upper(queries), queries @ centre + width, rtol=1e-8)
    np.testing.assert_allclose(cs.lower(queries), queries @ centre - width, rtol=1e-8)


def test_the_bayesian_quantile_survives_late_times():
    """1 − 6δ/((t+1)²π²) rounds to 1 here; the tail itself does not."""
    cs = mb.BayesCredible(3, sigma=0.1, delta=1e-6)
    level = 6e-6 / ((mp.mpf(10) ** 9 + 1) ** 2 * mp.pi**2)
    quantile = chi2_tail_quantile(3, level)
    assert cs.moment.rule.quantile(10**9) == pytest.approx(float(quantile), rel=1e-9)


def test_a_prior_must_be_gaussian_and_linear():
    class Other:
        def predict(self, x):
            return 0.0, 1.0

        def update(self, x, r):
            pass

    with pytest.raises(mb.InvalidInput, match="prior must be Standard, Scaled or Linear"):
        mb.BayesCredible(3, sigma=1.0, mixture=Other())
