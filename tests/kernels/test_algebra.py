"""Sums, products and columns of kernels: what the operators make, and what they refuse."""

from fractions import Fraction

import numpy as np
import pytest

import mixbandit as mb
from tests.kernels.cases import A, B

ONE, OTHER, THIRD = mb.RBF(0.5), mb.Matern(1.5), mb.LinearKernel()


def test_operators_make_flat_sums_and_products():
    assert mb.SumKernel([ONE, OTHER, THIRD]) == ONE + OTHER + THIRD
    assert mb.SumKernel([ONE, OTHER, THIRD]) == ONE + (OTHER + THIRD)
    assert mb.ProductKernel([ONE, OTHER, THIRD]) == ONE * (OTHER * THIRD)
    assert mb.ProductKernel([ONE, mb.SumKernel([OTHER, THIRD])]) == ONE * (OTHER + THIRD)
    assert sum([ONE, OTHER, THIRD]) == ONE + OTHER + THIRD


@pytest.mark.parametrize("number", [2, 2.0, np.float64(2.0), np.int32(2), np.array(2.0), Fraction(2)])
def test_numbers_may_stand_on_either_side(number):
    two = mb.ConstantKernel(2.0)
    assert number * ONE == two * ONE
    assert ONE * number == ONE * two
    assert number + ONE == two + ONE
    assert ONE + number == ONE + two


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: ONE * -1.0,
        lambda: 0.0 * ONE,
        lambda: ONE + 0.0,
        lambda: ONE * float("nan"),
        lambda: ONE * True,
        lambda: ONE * "x",
        lambda: ONE + None,
        lambda: ONE * np.ones(2),
        lambda: np.ones(2) * ONE,
        lambda: ONE + np.sin,
    ],
)
def test_operators_refuse_other_things(wrong):
    with pytest.raises(mb.InvalidInput, match="kernel"):
        wrong()


def test_equal_kernels_have_equal_settings():
    assert mb.RBF([1.0, 2.0]) == mb.RBF((1, 2))
    assert mb.RBF() != mb.Matern()
    assert mb.RBF(1.0) != mb.RBF(1.1)
    assert mb.RBF(1.0) != mb.RBF([1.0, 1.0])
    assert ONE + OTHER != OTHER + ONE
    assert ONE + OTHER != ONE * OTHER
    assert ONE.on([0, 1]) != ONE.on([1, 0])
    assert mb.PolynomialKernel(1, 0.0) != mb.LinearKernel()
    assert mb.RBF() != "RBF"
    assert len({mb.RBF(), mb.RBF(1.0), mb.RBF(2.0), ONE + 1.0, ONE + 1}) == 3


def test_reprs_are_short():
    assert repr(mb.RBF([1, 2])) == "RBF(lengthscale=[1.0, 2.0], variance=1.0)"
    kernel = 2 * mb.Matern(0.5).on([3])
    assert repr(kernel) == (
        "ProductKernel(kernels=[ConstantKernel(variance=2.0), "
        "OnColumns(kernel=Matern(nu=0.5, lengthscale=1.0, variance=1.0), columns=[3])])"
    )


def test_lengths_of_rows_are_merged():
    scaled = mb.RBF([1.0, 2.0])
    assert (scaled.dim_in, ONE.dim_in, (ONE * scaled).dim_in) == (2, None, 2)
    assert scaled.on([4, 0]).dim_in is None
    assert scaled.on([4, 0]).least_dim_in == (ONE + scaled.on([4, 0])).least_dim_in == 5
    assert mb.ConditionalKernel(ONE.on([1]), [3, 2]).least_dim_in == 4
    assert mb.ConditionalKernel(mb.RBF([1.0] * 5), [3]).dim_in == 5
    with pytest.raises(mb.InvalidInput, match="rows of length 3, got length 2"):
        scaled + mb.RBF([1.0, 2.0, 3.0])
    with pytest.raises(mb.InvalidInput, match="rows of length at least 3, got length 2"):
        scaled * ONE.on([2])
    with pytest.raises(mb.InvalidInput, match="rows of length 2, got length 1"):
        scaled.on([3])


@pytest.mark.parametrize("columns", [3, np.int64(3), [3], (3,), range(3, 4), np.array([3]), np.array([3], dtype="u1")])
def test_columns_are_given_in_many_ways(columns):
    assert mb.RBF().on(columns) == mb.RBF().on([3])


@pytest.mark.parametrize(
    "columns",
    [[], [1, 1], [-1], [0.0], [True, False], np.array([True, False]), [[1]], "12", None, [None], [10**7], {1}],
)
def test_other_columns_are_refused(columns):
    for make in (mb.RBF().on, mb.OverlapKernel, lambda columns: mb.ConditionalKernel(mb.RBF(), columns)):
        with pytest.raises(mb.InvalidInput, match=r"columns|active"):
            make(columns)


def test_a_member_without_derivatives_or_bounds_takes_them_from_the_whole():
    class Plain(mb.Kernel):
        def matrix(self, A, B):
            return A @ B.T

        def diagonal(self, A):
            return (A**2).sum(axis=1)

        def pullback(self, A, B, weights):
            return weights @ B

        def diagonal_pullback(self, A):
            return A.copy()

    plain = Plain()
    for kernel in (plain, plain + ONE, ONE * plain, plain.on([0]), mb.ConditionalKernel(plain, [1])):
        assert kernel.stray(A, np.ones(A.shape)) is None
        assert kernel.largest(A, np.ones(A.shape)) is None
    assert plain != Plain()
    assert plain == plain  # noqa: PLR0124
    assert len({plain, Plain()}) == 2
    assert "Plain object" in repr(plain)
    for kernel in (plain, plain + ONE, plain.on([0])):
        with pytest.raises(mb.NotStorable, match="Plain is code"):
            kernel.state_dict()
    np.testing.assert_allclose(plain.exchanged(A[0], np.array([1]), np.array([0.0]), B), [B @ (A[0] * [1, 0, 1, 1, 1])])
    rough = mb.Matern(0.5)
    assert not any(k.differentiable for k in (rough, ONE + rough, rough * ONE, rough.on([0]), 2 * rough.on([0]) + 1))
    assert not mb.ConditionalKernel(rough, [0]).differentiable


def test_members_must_be_kernels():
    for make in (mb.SumKernel, mb.ProductKernel):
        for wrong in ([], None, ONE, [ONE, 2.0], "x"):
            with pytest.raises(mb.InvalidInput, match="kernel"):
                make(wrong)
    with pytest.raises(mb.InvalidInput, match=r"kernels\[1\] must be a mixbandit kernel .*SklearnKernel.* got 2\.0"):
        mb.SumKernel([ONE, 2.0])
    for make in (mb.ConditionalKernel, mb.OnColumns):
        with pytest.raises(mb.InvalidInput, match=r"kernel must be a mixbandit kernel.* got None"):
            make(None, [0])
