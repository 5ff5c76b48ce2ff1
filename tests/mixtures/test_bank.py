"""The bank of forecasters against forecasts made one at a time, and against products of integrals."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta

import mixbandit as mb
from mixbandit.mixtures import Trials
from mixbandit.mixtures.bank import beta_law, fixed_share, log_predictive, one_step, stretched_kernels
from mixbandit.models import as_model


def trials(rng, t=12, m=20):
    x = rng.uniform(size=(t, 2))
    x[3] = x[1]  # a repeat
    return Trials(x, rng.binomial(m, 0.7, size=t) / m, np.full(t, float(m)))


def test_one_step_forecasts_are_those_of_a_process_that_learns_one_value_at_a_time():
    rng = np.random.default_rng(0)
    known = trials(rng)
    gram, noise = mb.RBF(0.5)(known.actions, known.actions), rng.uniform(0.01, 0.1, size=12)
    means, variances = one_step(gram, known.values - 0.5, noise)
    for j in range(12):
        inverse = np.linalg.inv(gram[:j, :j] + np.diag(noise[:j]))
        assert means[j] == pytest.approx(gram[j, :j] @ inverse @ (known.values[:j] - 0.5), abs=1e-7)
        assert variances[j] == pytest.approx(gram[j, j] - gram[j, :j] @ inverse @ gram[:j, j], abs=1e-7)


@pytest.mark.parametrize(
    ("mean", "variance", "m", "r"), [(0.7, 0.01, 10, 0.6), (0.2, 0.02, 1, 1.0), (0.5, 0.001, 5, 0.2)]
)
def test_predictives_are_integrals_over_a_beta_law_of_that_mean_and_variance(mean, variance, m, r):
    a, b = beta_law(np.array([mean]), np.array([variance]), np.array([float(m)]))
    law = beta(a[0], b[0])
    assert (law.mean(), law.var()) == pytest.approx((mean, variance), rel=1e-9)
    expected, _ = quad(lambda q: law.pdf(q) * q ** (m * r) * (1 - q) ** (m * (1 - r)), 0, 1, epsabs=1e-14)
    found = log_predictive(np.array([mean]), np.array([variance]), np.array([r]), np.array([float(m)]))
    assert np.exp(found[0]) == pytest.approx(expected, rel=1e-7)


def test_predictives_of_yes_or_no_results_sum_to_one():
    """Over all sequences of m results: binomial coefficients times the predictive of their mean."""
    from scipy.special import comb

    rng = np.random.default_rng(1)
    for m in (1, 3, 50):
        mean, variance = rng.uniform(-0.2, 1.2, size=6), rng.uniform(0.0, 0.3, size=6)
        k = np.arange(m + 1.0)
        logs = [log_predictive(mean, variance, np.full(6, x / m), np.full(6, float(m))) for x in k]
        np.testing.assert_allclose(comb(m, k) @ np.exp(logs), 1.0, rtol=1e-7)


def test_fixed_share_is_the_sum_over_all_paths_of_members():
    rng = np.random.default_rng(2)
    logs, share = rng.normal(size=(3, 5)), 0.2
    found = fixed_share(logs, share)
    total = np.full(3, 1 / 3)  # by brute force: the weight of all paths that end in each member
    for k in range(5):
        total = total * np.exp(logs[:, k])
        assert found[: k + 1].sum() == pytest.approx(np.log(total.sum()), rel=1e-12)
        total = (1 - share) * total + share / 3 * total.sum()
    np.testing.assert_allclose(fixed_share(logs, 0.0).sum(), np.logaddexp.reduce(logs.sum(axis=1)) - np.log(3))


def test_a_matrix_that_rounding_makes_indefinite_spoils_no_earlier_forecast():
    gram = np.array([[1.0, 0.5, 2.0], [0.5, 1.0, 2.0], [2.0, 2.0, 1.0]])  # not a kernel matrix, from the third row on
    errors, noise = np.array([0.1, 0.2, 0.3]), np.full(3, 0.01)
    means, variances = one_step(gram, errors, noise)
    np.testing.assert_array_equal(means[:2], one_step(gram[:2, :2], errors[:2], noise[:2])[0])
    assert (means[2], variances[2]) == (0.0, 0.25)


def test_members_that_fell_behind_can_come_back_without_sharing():
    logs = np.array([[-1000.0] * 3, [0.0, 0.0, -4000.0]])
    assert fixed_share(logs, 0.0).sum() == pytest.approx(-3000.0 - np.log(2))


def test_forecasts_do_not_depend_on_what_comes_later():
    known = trials(np.random.default_rng(3))
    first = Trials(*(part[:7] for part in known[:3]))
    for model, features in ((as_model(mb.RBF(0.3)), None), (as_model(2), known.actions)):
        whole = mb.Bank().log_predictives(model, known._replace(phi=features))
        part = mb.Bank().log_predictives(model, first._replace(phi=None if features is None else features[:7]))
        np.testing.assert_allclose(whole[:, :7], part, rtol=1e-9)


@pytest.mark.parametrize("zeros", [1, 3])
@pytest.mark.parametrize("later", [1e-8, 1e8, 1e30])
def test_forecasts_do_not_depend_on_what_comes_later_where_the_first_rows_are_zero(zeros, later):
    """They did: rows were divided by the largest of all, so that a large one changed forecasts made long before."""
    rng = np.random.default_rng(5)
    known = trials(rng)
    known.actions[:zeros] = 0.0
    other = known._replace(actions=known.actions.copy(), values=known.values.copy())
    other.actions[7:] *= later
    other.values[7:] = rng.uniform(size=5)
    banks = (mb.Bank(), as_model(2)), (mb.Bank([mb.LinearKernel(), mb.PolynomialKernel(2, constant=0.0)]), as_model(2))
    for bank, model in banks:
        one, two = (
            bank.log_predictives(model, each._replace(phi=each.actions if bank.kernels is None else None))
            for each in (known, other)
        )
        np.testing.assert_allclose(one[:, :7], two[:, :7], rtol=1e-9)
        assert np.isfinite(two).all()


@pytest.mark.parametrize("zeros", [0, 2])
def test_units_of_features_do_not_matter_to_the_bank(zeros):
    known = trials(np.random.default_rng(6))
    known.actions[:zeros] = 0.0
    found = [
        mb.Bank().log_density(as_model(2), known._replace(phi=unit * known.actions)) for unit in (1e-120, 1.0, 1e120)
    ]
    np.testing.assert_allclose(found, found[1], rtol=1e-9)


def test_length_scales_are_stretched_wherever_they_are():
    kernel = mb.RBF([0.1, 0.2]) * mb.Matern(1.5, 0.3).on([0]) + mb.ConstantKernel(2.0)
    half, same, *_ = stretched_kernels(kernel)
    assert same == kernel
    assert half == mb.RBF([0.05, 0.1]) * mb.Matern(1.5, 0.15).on([0]) + mb.ConstantKernel(2.0)
    assert stretched_kernels(mb.LinearKernel()) == [mb.LinearKernel()]


def test_settings_are_checked_stored_and_shown():
    bank = mb.Bank([mb.RBF(0.5)], scales=[0.1], noises=[0.2, 0.1], share=0.5)
    again = mb.Mixture.family.load(bank.state_dict())
    assert repr(again) == repr(bank)
    assert repr(mb.Mixture.family.load(mb.Bank().state_dict())) == repr(mb.Bank())
    for bad in ({"scales": []}, {"scales": [0.0]}, {"noises": "much"}, {"share": 1.5}, {"kernels": []}, {"kernels": 3}):
        with pytest.raises(mb.InvalidInput):
            mb.Bank(**bad)
    with pytest.raises(mb.InvalidInput, match="BoundedMixture"):
        mb.MartingaleMixture(2, sigma=0.1, norm_bound=1.0, mixture=bank)
