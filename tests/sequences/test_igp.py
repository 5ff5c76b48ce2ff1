"""The bounds of IGP-UCB, against the formulas of its paper."""

import numpy as np
import pytest
from scipy.stats import binom

import mixbandit as mb

KERNELS = {
    "RBF": mb.RBF(0.3),
    "Matern": mb.Matern(1.5, 0.3, variance=2.0),
    "features": mb.RandomFourier(dim_in=2, dim=6, rng=1),
}
STATED = {"sigma": 0.2, "norm_bound": 1.5, "delta": 0.05}


def gram(model, A, B):
    return model(A) @ model(B).T if isinstance(model, mb.FeatureMap) else model(A, B)


def of_the_paper(model, X, r, Z, eta, sigma=0.2, norm_bound=1.5, delta=0.05):
    """μ_t and the half-widths at Z."""
    K, k = gram(model, X, X), gram(model, Z, X)
    inverse = np.linalg.inv(K + (1 + eta) * np.eye(len(X)))
    deviation = np.sqrt(np.diag(gram(model, Z, Z)) - np.einsum("nt,ts,ns->n", k, inverse, k))
    log_det = np.linalg.slogdet((1 + eta) * np.eye(len(X)) + K)[1]
    return k @ inverse @ r, deviation * (norm_bound + sigma * np.sqrt(log_det + 2 * np.log(1 / delta)))


@pytest.mark.parametrize("t", [0, 1, 40])
@pytest.mark.parametrize("eta", [2 / 300, 0.5])
@pytest.mark.parametrize("model", KERNELS.values(), ids=KERNELS)
def test_it_follows_its_definition(model, eta, t):
    rng = np.random.default_rng(t)
    X, r, Z = rng.uniform(size=(t, 2)), rng.normal(size=t) / 5, rng.uniform(size=(9, 2))
    cs = mb.IGPSequence(model, **STATED, eta=eta).update(X, r)
    centre, half = of_the_paper(model, X, r, Z, eta)
    np.testing.assert_allclose(cs.upper(Z), centre + half, rtol=1e-6)
    np.testing.assert_allclose(cs.lower(Z), centre - half, rtol=1e-6)
    oful = mb.OFULSequence(model, **STATED, alpha=1 + eta).update(X, r)
    assert (oful.upper(Z) - oful.lower(Z) < 2 * half).all()


def test_the_inequality_between_the_two_norms_of_the_noise():
    """Theorem 1 speaks of (K + ηI)(K + λI)⁻¹, the error of the estimate of K(K + λI)⁻¹."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(30, 2))
    K, eta = KERNELS["RBF"](X, X), 0.01
    identity = np.eye(30)
    own = K @ np.linalg.inv(K + (1 + eta) * identity)
    theirs = np.linalg.inv(np.linalg.inv(K + eta * identity) + identity)
    assert np.linalg.eigvalsh(theirs - own).min() > -1e-12


def test_eta_comes_from_the_horizon_or_is_stated():
    assert mb.IGPSequence(2, **STATED).eta == 0.002
    assert mb.IGPSequence(2, **STATED, horizon=400).eta == 0.005
    assert mb.IGPSequence(2, **STATED, eta=0.3).alpha == 1.3
    with pytest.raises(mb.InvalidInput, match="horizon or eta, not both"):
        mb.IGPSequence(2, **STATED, horizon=400, eta=0.3)
    with pytest.raises(mb.InvalidInput, match="horizon must be an integer"):
        mb.IGPSequence(2, **STATED, horizon=0)
    with pytest.raises(mb.InvalidInput, match="eta must be positive"):
        mb.IGPSequence(2, **STATED, eta=0.0)


@pytest.mark.parametrize("model", KERNELS.values(), ids=KERNELS)
def test_it_is_stored_with_its_eta(model):
    rng = np.random.default_rng(3)
    X, Z = rng.uniform(size=(20, 2)), rng.uniform(size=(9, 2))
    cs = mb.IGPSequence(model, **STATED, horizon=250).update(X, rng.normal(size=20) / 5)
    again = mb.IGPSequence.from_state_dict(cs.state_dict())
    assert again.eta == 2 / 250
    np.testing.assert_array_equal(again.upper(Z), cs.upper(Z))


def test_the_regulariser_does_not_scale_with_sigma():
    assert mb.IGPSequence(2, sigma=0.001, norm_bound=1.0).alpha == mb.IGPSequence(2, sigma=10.0, norm_bound=1.0).alpha


def misses(runs, rounds, delta=0.2, sigma=2.0):
    """Runs in which a bound at a played or a fixed point is ever wrong, with ‖f*‖ = B and optimistic actions."""
    kernel, wrong = mb.RBF(0.4), 0
    for run in range(runs):
        rng = np.random.default_rng([5, run])
        centres, weights, arms = rng.uniform(size=(8, 1)), rng.normal(size=8), np.linspace(0, 1, 15)[:, None]
        weights *= 0.1 / np.sqrt(weights @ kernel(centres, centres) @ weights)
        truth = kernel(arms, centres) @ weights
        cs = mb.IGPSequence(kernel, sigma=sigma, norm_bound=0.1, delta=delta, horizon=rounds, on_empty="inflate")
        for _ in range(rounds):
            upper, lower = cs.upper(arms), cs.lower(arms)
            if ((truth > upper) | (truth < lower)).any():
                wrong += 1
                break
            arm = int(np.argmax(upper))
            cs.update(arms[arm], truth[arm] + sigma * rng.normal())
    return wrong


def test_bounds_fail_in_no_more_runs_than_delta():
    assert binom.sf(misses(100, 40) - 1, 100, 0.2) > 0.001
