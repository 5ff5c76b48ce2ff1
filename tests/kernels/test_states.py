"""Stored kernels: those of version 0.1.0 load, damaged ones are named, huge rows and wrong lengths refused."""

import numpy as np
import pytest

import mixbandit as mb
from tests.kernels.cases import KERNELS, A, B


def test_states_of_the_first_version_load():
    old = {"type": "Matern", "lengthscale": np.array([1.0, 2.0]), "variance": 3.0, "nu": 1.5}
    assert mb.Kernel.family.load(old) == mb.Matern(1.5, [1.0, 2.0], 3.0)
    assert mb.Kernel.family.load({"type": "RBF", "lengthscale": np.array(0.5), "variance": 1.0}) == mb.RBF(0.5)
    state = mb.Matern(1.5, [1.0, 2.0], 3.0).state_dict()
    assert state.keys() == old.keys()
    np.testing.assert_array_equal(state["lengthscale"], old["lengthscale"])


CONSTANT = {"type": "ConstantKernel", "variance": 1.0}


@pytest.mark.parametrize(
    ("state", "says"),
    [
        ({"type": "Other"}, "unknown type 'Other'"),
        ({"type": "SklearnKernel"}, "unknown type"),
        ({}, "kernel.type must be text"),
        (None, "must be a mapping"),
        ({"type": "RBF", "variance": 1.0}, "lacks 'lengthscale'"),
        ({"type": "RBF", "lengthscale": [-1.0], "variance": 1.0}, "lengthscale must be positive"),
        ({"type": "Matern", "lengthscale": [1.0], "variance": 1.0, "nu": 3.0}, "nu must be"),
        ({"type": "ConstantKernel", "variance": True}, "variance must be a number"),
        ({"type": "PolynomialKernel", "degree": 0, "constant": 1.0, "variance": 1.0}, "degree"),
        ({"type": "PolynomialKernel", "degree": 10**9, "constant": 1.0, "variance": 1.0}, "degree"),
        ({"type": "PolynomialKernel", "degree": 2, "constant": -1.0, "variance": 1.0}, "constant"),
        ({"type": "SumKernel", "kernels": []}, "at least 1"),
        ({"type": "SumKernel", "kernels": [CONSTANT, {"type": "x"}]}, r"kernels\[1\] is a kernel of unknown type"),
        ({"type": "OnColumns", "kernel": CONSTANT, "columns": [1, 1]}, "distinct"),
        ({"type": "OnColumns", "kernel": CONSTANT, "columns": [0.5]}, r"columns\[0\] must be an integer"),
        ({"type": "OnColumns", "kernel": mb.RBF([1.0, 2.0]).state_dict(), "columns": [0]}, "length 2, got length 1"),
        ({"type": "OverlapKernel", "columns": [0], "similarity": 1.5, "variance": 1.0}, "similarity"),
        ({"type": "ConditionalKernel", "kernel": CONSTANT, "active": "01"}, "active must be a list"),
        ({"type": "ConditionalKernel", "kernel": 3.0, "active": [0]}, "kernel.kernel must be a mapping"),
    ],
)
def test_damaged_states_are_named(state, says):
    with pytest.raises(mb.DamagedState, match=says):
        mb.Kernel.family.load(state)
    with pytest.raises(mb.DamagedState, match=says):
        mb.Mixture.family.load({"type": "Gaussian", "mean": 0.0, "kernel": state})


def test_a_sequence_with_a_combined_kernel_goes_on_from_its_state():
    kernel = KERNELS["nested"][0]
    cs = mb.MartingaleMixture(5, sigma=0.1, norm_bound=2.0, mixture=mb.Adaptive(None, kernel)).update(A, A[:, 0])
    again = mb.MartingaleMixture.from_state_dict(cs.state_dict())
    np.testing.assert_array_equal(again.update(B, B[:, 0]).upper(A), cs.update(B, B[:, 0]).upper(A))


@pytest.mark.parametrize("kernel", [mb.LinearKernel(), mb.PolynomialKernel(3), mb.RBF() * mb.LinearKernel()])
def test_values_that_overflow_are_refused(kernel):
    with pytest.raises(mb.InvalidInput, match=r"no finite values for entries as large as 1e\+200"):
        kernel(np.full((1, 2), 1e200), np.full((1, 2), 1e200))


@pytest.mark.parametrize(
    ("kernel", "says"),
    [
        (mb.RBF([1.0, 2.0]), "rows of length 2, got length 5"),
        (mb.RBF().on([7]), "rows of length at least 8, got length 5"),
        (mb.OverlapKernel([5]) + 1.0, "rows of length at least 6, got length 5"),
    ],
)
def test_rows_of_another_length_are_refused(kernel, says):
    with pytest.raises(mb.InvalidInput, match=says):
        kernel(A, B)
    for mixture in (mb.Gaussian(0.0, kernel), mb.Adaptive(None, kernel)):
        with pytest.raises(mb.InvalidInput, match=says):
            mb.MartingaleMixture(5, sigma=0.1, norm_bound=2.0, mixture=mixture)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: mb.ConstantKernel(0.0), "variance"),
        (lambda: mb.LinearKernel(-1.0), "variance"),
        (lambda: mb.PolynomialKernel(0), "degree must be an integer ≥ 1"),
        (lambda: mb.PolynomialKernel(2.0), "degree must be an integer ≥ 1"),
        (lambda: mb.PolynomialKernel(101), "degree must be at most 100"),
        (lambda: mb.PolynomialKernel(2, -1.0), "constant must lie in"),
        (lambda: mb.PolynomialKernel(2, 1.0, 0.0), "variance"),
        (lambda: mb.RBF()(A, B[0]), r"shapes \(n, k\) and \(m, k\), got \(9, 5\) and \(5,\)"),
        (lambda: mb.RBF()(A, B[:, :4]), r"\(9, 5\) and \(7, 4\)"),
        (lambda: mb.LinearKernel()([[np.nan]], [[1.0]]), r"A\[0, 0\] must be finite"),
    ],
)
def test_bad_input_is_named(make, says):
    with pytest.raises(mb.InvalidInput, match=says):
        make()
