"""The test for noise larger than stated, against its definition and in simulation."""

import numpy as np
import pytest
from scipy.stats import binom

import mixbandit as mb
from mixbandit.sequences import refutation


def definition(Phi, r, sigma, scale, theta):
    """ln of the mean of E_κ(θ), with t×t matrices."""
    t = len(r)
    logs = []
    for inflation in refutation._INFLATIONS:
        T = scale * Phi @ Phi.T + (inflation - 1.0) * sigma**2 * np.eye(t)
        spread = np.eye(t) + T / sigma**2
        residual = Phi @ theta - r
        quadratic = (residual @ residual - r @ np.linalg.solve(spread, r)) / sigma**2
        logs.append(0.5 * (quadratic - np.linalg.slogdet(spread)[1]))
    return np.logaddexp.reduce(logs) - np.log(len(logs))


@pytest.mark.parametrize(("t", "d"), [(1, 1), (5, 3), (3, 5), (40, 4), (12, 12)])
@pytest.mark.parametrize("sigma", [0.1, 2.0])
def test_it_is_the_least_mean_of_the_mixtures(t, d, sigma):
    rng = np.random.default_rng(t)
    Phi, r = rng.normal(size=(t, d)), 3 * rng.normal(size=t)
    cs = mb.MartingaleMixture(d, sigma=sigma, norm_bound=1e3).update(Phi, r)
    spectrum = cs.moment.data.spectrum
    found = refutation.noise_log_evalue(spectrum, spectrum.residual(1e3), t, sigma, 0.7, 0.0)
    least_squares = np.linalg.lstsq(Phi, r, rcond=None)[0]
    assert found == pytest.approx(definition(Phi, r, sigma, 0.7, least_squares), rel=1e-8, abs=1e-8)
    for _ in range(5):  # no parameter has a smaller e-value
        assert found <= definition(Phi, r, sigma, 0.7, least_squares + rng.normal(size=d)) + 1e-9


def test_the_shortcut_never_hides_a_refutation():
    rng = np.random.default_rng(0)
    refuted = 0
    for i in range(400):
        t, d = int(rng.integers(1, 40)), int(rng.integers(1, 6))
        sigma, delta = float(10 ** rng.uniform(-1, 0.5)), 0.05
        if i % 2:  # near the border at a level that leaves the shortcut little room
            t, d, sigma, delta = 60, 1, float(rng.uniform(0.4, 0.55)), 1e-9
        Phi, r = rng.normal(size=(t, d)), rng.normal(size=t)
        cs = mb.MartingaleMixture(d, sigma=sigma, norm_bound=10.0, delta=delta).update(Phi, r)
        spectrum = cs.moment.data.spectrum
        evidence = refutation.noise_log_evalue(spectrum, spectrum.residual(10.0), t, sigma, 100.0 / d, 0.0)
        full = evidence >= -np.log(delta)
        assert full == cs.noise_refuted
        refuted += full
    assert 50 < refuted < 350


@pytest.mark.parametrize("make", [mb.MartingaleMixture, mb.OFULSequence], ids=["mixture", "OFUL"])
def test_noise_three_times_as_large_as_stated_is_refuted_soon(make):
    rng = np.random.default_rng(1)
    cs = make(4, sigma=0.1, norm_bound=100.0, delta=0.01)
    while not cs.is_refuted and cs.t < 60:
        cs.update(x := rng.normal(size=4), x.sum() + 0.3 * rng.normal())
    assert 5 < cs.t < 40
    assert not cs.is_empty


@pytest.mark.parametrize(("d", "extra"), [(5, 12), (20, 26), pytest.param(50, 62, marks=pytest.mark.heavy)])
def test_how_soon_noise_three_times_as_large_is_found_is_as_the_documentation_says(d, extra):
    found = []
    for run in range(25):
        rng = np.random.default_rng([d, run])
        theta = rng.normal(size=d) / np.sqrt(d)
        cs = mb.MartingaleMixture(d, sigma=0.1, norm_bound=2.0, delta=0.01)
        while not cs.noise_refuted:
            cs.update(x := rng.normal(size=d), x @ theta + 0.3 * rng.normal())
        found.append(cs.t - d)
    assert np.median(found) == pytest.approx(extra, rel=0.2)


def test_the_audit_says_so():
    rng = np.random.default_rng(1)
    Phi = rng.normal(size=(60, 4))
    cs = mb.MartingaleMixture(4, sigma=0.1, norm_bound=10.0).update(Phi, Phi.sum(axis=1) + 0.3 * rng.normal(size=60))
    audit = cs.audit()
    assert audit.noise_refuted
    assert not audit.refuted
    assert str(audit).startswith("REFUTED at level 0.01: residuals of every linear function")
    honest = mb.MartingaleMixture(4, sigma=0.3, norm_bound=10.0).update(Phi, Phi.sum(axis=1))
    assert not honest.audit().noise_refuted


def test_a_misspecified_function_refutes_unless_misspecification_is_stated():
    x = np.linspace(-1.0, 1.0, 80)[:, None]
    rewards = x[:, 0] + 0.5 * np.sign(np.sin(9 * x[:, 0]))
    assert mb.MartingaleMixture(1, sigma=0.1, norm_bound=2.0).update(x, rewards).noise_refuted
    assert not mb.MartingaleMixture(1, sigma=0.1, norm_bound=2.0, misspecification=0.5).update(x, rewards).noise_refuted


def test_stated_noise_levels_count():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(50, 2))
    levels = np.where(np.arange(50) % 2, 1.0, 0.1)
    rewards = x.sum(axis=1) + levels * rng.normal(size=50)
    cs = mb.MartingaleMixture(2, sigma=0.1, norm_bound=10.0)
    assert cs.copy().update(x, rewards).noise_refuted
    assert not cs.copy().update(x, rewards, sigma=levels).noise_refuted


def test_general_lambda_does_not_claim_to_know():
    cs = mb.GeneralLambda(1, sigma=0.1, norm_bound=10.0).update(np.ones((50, 1)), np.tile([-5.0, 5.0], 25))
    assert not cs.noise_refuted
    assert "noise is larger than stated is not tested" in str(cs.audit())
    assert "not tested" not in str(mb.MartingaleMixture(1, sigma=0.1, norm_bound=10.0).audit())


@pytest.mark.parametrize("law", ["gaussian", "rademacher"])
def test_true_noise_is_refuted_in_no_more_runs_than_delta(law):
    """At any of 80 times; adaptive actions would make no difference, as the theory does not look at them."""
    delta, alarms, runs = 0.1, 0, 300
    for run in range(runs):
        rng = np.random.default_rng([9, run])
        cs = mb.MartingaleMixture(3, sigma=0.5, norm_bound=3.0, delta=delta)
        for _ in range(80):
            x = rng.normal(size=3)
            draw = rng.normal() if law == "gaussian" else rng.choice((-1.0, 1.0))
            cs.update(x, x.sum() + 0.5 * draw)
            if cs.noise_refuted:
                alarms += 1
                break
    assert binom.sf(alarms - 1, runs, delta) > 0.001
