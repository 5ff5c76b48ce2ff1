import numpy as np
import pytest
from scipy.special import gamma, kv

import mixbandit as mb
from mixbandit.kernels import kernel_from_state_dict

RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(6, 3)), RNG.normal(size=(4, 3))
DISTANCE = np.linalg.norm(A[:, None] - B[None], axis=2)


def test_rbf_follows_its_formula():
    expected = 2.0 * np.exp(-np.sum(((A[:, None] - B[None]) / [1.0, 2.0, 3.0]) ** 2, axis=2) / 2)
    np.testing.assert_allclose(mb.RBF([1.0, 2.0, 3.0], 2.0)(A, B), expected, rtol=1e-12)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_matern_follows_the_bessel_form(nu):
    x = np.sqrt(2 * nu) * DISTANCE / 0.7
    np.testing.assert_allclose(mb.Matern(nu, 0.7)(A, B), 2 ** (1 - nu) / gamma(nu) * x**nu * kv(nu, x), rtol=1e-10)


@pytest.mark.parametrize("kernel", [mb.RBF(0.3), mb.Matern(1.5, [1.0, 2.0, 3.0], 4.0)])
def test_kernels_are_positive_definite_and_storable(kernel):
    assert np.linalg.eigvalsh(kernel(A, A))[0] > 0
    np.testing.assert_array_equal(np.diag(kernel(A, A)), kernel.variance)
    np.testing.assert_array_equal(kernel_from_state_dict(kernel.state_dict())(A, B), kernel(A, B))


def test_nothing_is_shared_with_the_caller():
    scales = np.ones(3)
    kernel = mb.RBF(scales)
    before = kernel(A, B)
    scales[:] = 5.0
    kernel.state_dict()["lengthscale"][:] = 9.0
    np.testing.assert_array_equal(kernel(A, B), before)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: mb.RBF(0.0), "lengthscale must be positive"),
        (lambda: mb.RBF([[1.0]]), "shape"),
        (lambda: mb.RBF(1.0, -1.0), "variance"),
        (lambda: mb.Matern(2.0), r"0\.5, 1\.5 or 2\.5, got 2\.0"),
    ],
)
def test_bad_settings_are_named(make, says):
    with pytest.raises(mb.InvalidInput, match=says):
        make()


def test_an_unknown_kernel_is_refused():
    with pytest.raises(mb.DamagedState, match="Other"):
        kernel_from_state_dict({"type": "Other"})
