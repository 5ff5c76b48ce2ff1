import numpy as np
import pytest
from scipy.special import gamma, kv

import mixbandit as mb

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
    np.testing.assert_array_equal(mb.Kernel.family.load(kernel.state_dict())(A, B), kernel(A, B))


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
        mb.Kernel.family.load({"type": "Other"})


@pytest.mark.parametrize("kernel", [mb.RBF(), mb.Matern(0.5), mb.Matern(1.5), mb.Matern(2.5)])
def test_far_rows_have_no_covariance_and_no_gradient(kernel):
    far, row = np.array([[1e200, -1e200]]), np.array([[0.0, 0.0]])
    for scaled in (kernel, kernel.on([1, 0]), type(kernel)(lengthscale=1e-20)):
        assert scaled(far, row)[0, 0] == 0.0
        np.testing.assert_array_equal(scaled.pullback(row, far, np.ones((1, 1))), 0.0)
        assert scaled.exchanged(row[0], np.array([0]), np.array([1e200]), row)[0, 0] == 0.0
        assert scaled.stray(row, np.abs(far))[0] == pytest.approx(np.sqrt(2.0))


def test_the_roughest_kernel_has_derivatives_except_at_equal_rows():
    kernel, weights = mb.Matern(0.5, [1.0, 2.0, 3.0], 2.0), RNG.normal(size=(6, 5))
    others = np.vstack((B, A[2]))
    gradient, h = kernel.pullback(A, others, weights), 1e-6
    weights[2, 4] = 0.0  # the pair of equal rows
    for i in range(3):
        step = h * np.eye(3)[i]
        expected = ((kernel(A + step, others) - kernel(A - step, others)) * weights).sum(axis=1) / (2 * h)
        np.testing.assert_allclose(gradient[:, i], expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("kernel", [mb.RBF(0.5), mb.Matern(2.5, 0.5)])
def test_gradients_keep_their_digits_far_from_the_origin(kernel):
    weights = RNG.normal(size=(6, 4))
    moved = kernel.pullback(A + 2.0**20, B + 2.0**20, weights)
    np.testing.assert_allclose(moved, kernel.pullback(A, B, weights), atol=1e-8)


@pytest.mark.parametrize("kernel", [mb.RBF(0.5, 2.0), mb.Matern(0.5), mb.Matern(1.5), mb.Matern(2.5, [1.0, 2.0, 3.0])])
@pytest.mark.parametrize("width", [1e-6, 9e-4, 1.1e-3, 0.3, 20.0])
def test_the_bound_over_a_cell_is_attained_at_a_corner(kernel, width):
    mpmath = pytest.importorskip("mpmath")
    half = np.full((1, 3), width)
    with mpmath.workdps(60):
        r = mpmath.sqrt(sum(mpmath.mpf(width / s) ** 2 for s in np.broadcast_to(kernel.lengthscale, 3)))
        nu = getattr(kernel, "nu", None)
        s = mpmath.sqrt(2 * (nu or 1)) * r
        shapes = {0.5: mpmath.mpf(1), 1.5: 1 + s, 2.5: 1 + s + s**2 / 3}
        profile = mpmath.exp(-(r**2) / 2) if nu is None else shapes[nu] * mpmath.exp(-s)
        exact = float(mpmath.sqrt(2 * kernel.variance * (1 - profile)))
    (found,) = kernel.stray(A[:1], half)
    assert exact * (1 - 1e-15) <= found <= exact * (1 + 1e-6)
