"""Kernels of scikit-learn: ours agree with theirs, and theirs work as ours."""

import numpy as np
import pytest

import mixbandit as mb
from mixbandit.kernels import as_kernel
from tests.kernels.cases import SCALES, A, B

theirs = pytest.importorskip("sklearn.gaussian_process.kernels")

PAIRS = {
    "rbf": (mb.RBF(SCALES, 2.0), lambda: 2.0 * theirs.RBF(SCALES)),
    "matern 1/2": (mb.Matern(0.5, 0.7), lambda: theirs.Matern(0.7, nu=0.5)),
    "matern 3/2": (mb.Matern(1.5, SCALES), lambda: theirs.Matern(SCALES, nu=1.5)),
    "matern 5/2": (mb.Matern(2.5, SCALES), lambda: theirs.Matern(SCALES, nu=2.5)),
    "linear": (mb.LinearKernel() + 0.25, lambda: theirs.DotProduct(0.5)),
    "polynomial": (mb.PolynomialKernel(3, 4.0), lambda: theirs.DotProduct(2.0) ** 3),
    "constant": (mb.ConstantKernel(0.3), lambda: theirs.ConstantKernel(0.3)),
    "both": (mb.RBF(0.5) * mb.LinearKernel() + 1.0, lambda: theirs.RBF(0.5) * theirs.DotProduct(0.0) + 1.0),
}
pairs = pytest.mark.parametrize(("ours", "make"), PAIRS.values(), ids=PAIRS)


@pairs
def test_values_agree(ours, make):
    wrapped = as_kernel(make())
    np.testing.assert_allclose(ours(A, B), wrapped(A, B), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(ours.diagonal(A), wrapped.diagonal(A), rtol=1e-10)


@pairs
def test_gradients_agree(ours, make):
    apart = B + 0.01  # where the roughest has derivatives
    weights, wrapped = np.random.default_rng(0).normal(size=(len(A), len(B))), as_kernel(make())
    np.testing.assert_allclose(
        wrapped.pullback(A, apart, weights), ours.pullback(A, apart, weights), rtol=1e-6, atol=1e-6
    )
    np.testing.assert_allclose(wrapped.diagonal_pullback(A), ours.diagonal_pullback(A), rtol=1e-6, atol=1e-6)


def test_the_rest_of_the_protocol():
    kernel = mb.SklearnKernel(theirs.RationalQuadratic(0.5, 2.0))
    assert kernel.stray(A, A) is None
    assert kernel.largest(A, A) is None
    assert eval(repr(kernel), {"SklearnKernel": mb.SklearnKernel, **vars(theirs)}) == kernel
    assert hash(kernel) == hash(mb.SklearnKernel(theirs.RationalQuadratic(0.5, 2.0)))
    assert kernel != mb.SklearnKernel(theirs.RationalQuadratic(0.5, 3.0))
    assert kernel != mb.RBF()
    np.testing.assert_allclose((kernel.on([0, 1]) * 2)(A, B), 2 * kernel.kernel(A[:, :2], B[:, :2]))
    for part in (kernel, kernel + 1.0, kernel.on([0])):
        with pytest.raises(mb.NotStorable, match="SklearnKernel is code"):
            part.state_dict()


def test_later_changes_of_their_kernel_have_no_effect():
    kernel = theirs.RBF(0.5)
    wrapped = mb.SklearnKernel(kernel)
    before = wrapped(A, B)
    kernel.set_params(length_scale=9.0)
    np.testing.assert_array_equal(wrapped(A, B), before)


def test_a_mixture_with_a_wrapped_kernel_bounds_as_one_with_ours():
    uppers = []
    for kernel in (mb.Matern(2.5, 0.5), mb.SklearnKernel(theirs.Matern(0.5, nu=2.5))):
        cs = mb.MartingaleMixture(5, sigma=0.1, norm_bound=2.0, mixture=mb.Gaussian(0.0, kernel))
        uppers.append(cs.update(A, A[:, 0]).upper(B))
    np.testing.assert_allclose(*uppers)
    with pytest.raises(mb.NotStorable):
        cs.state_dict()


def test_as_kernel_takes_kernels_only():
    ours = mb.RBF()
    assert as_kernel(ours) is ours
    for wrong, says in ((None, "got None"), (np.sin, "scikit-learn"), (0.5, r"RBF\(0\.5\)"), (mb.RBF, "call it first")):
        with pytest.raises(mb.InvalidInput, match=says):
            as_kernel(wrong)
    for wrong in (None, theirs.RBF, ours, np.sin):
        with pytest.raises(mb.InvalidInput, match="scikit-learn kernel object"):
            mb.SklearnKernel(wrong)
    for noisy in (theirs.WhiteKernel(), theirs.RBF() + theirs.WhiteKernel(0.1)):
        with pytest.raises(mb.InvalidInput, match="sigma"):
            as_kernel(noisy)


def test_their_shapes_are_checked():
    class Odd:
        def __call__(self, X, Y):
            return np.ones(3)

        def diag(self, X):
            return np.ones(3)

        def get_params(self):
            return {}

    with pytest.raises(mb.InvalidInput, match=r"shape \(9, 7\), got \(3,\)"):
        mb.SklearnKernel(Odd())(A, B)
