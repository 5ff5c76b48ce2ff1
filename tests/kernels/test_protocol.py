"""Every kernel against its definition, differences, sampled cells and its own stored state."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mixbandit as mb
from tests.kernels.cases import KERNELS, SMOOTH, A, B, rows, slow

every = pytest.mark.parametrize(("kernel", "k"), KERNELS.values(), ids=KERNELS)
smooth = pytest.mark.parametrize(("kernel", "k"), SMOOTH.values(), ids=SMOOTH)
STEP = 1e-6


@every
def test_values_follow_the_definition(kernel, k):
    np.testing.assert_allclose(kernel(A, B), slow(k, A, B), rtol=1e-12, atol=1e-13)
    np.testing.assert_array_equal(kernel.matrix(A, B), kernel(A, B))
    np.testing.assert_allclose(kernel.diagonal(A), [k(a, a) for a in A], rtol=1e-12)
    if kernel.constant_diagonal:
        assert np.ptp(kernel.diagonal(A)) == 0.0


@every
@pytest.mark.parametrize("n", [1, 7, 40])
def test_exchanging_the_arguments_transposes_the_matrix_to_the_last_bit(kernel, k, n):
    one, other = rows(n, 2), rows(23, 3)
    np.testing.assert_array_equal(kernel.matrix(one, other), kernel.matrix(other, one).T)
    np.testing.assert_array_equal(kernel.matrix(np.asfortranarray(one), other[::-1]), kernel.matrix(other[::-1], one).T)
    # Equal rows are at distance 0, exactly.
    np.testing.assert_array_equal(np.diag(kernel.matrix(one, one)), kernel.diagonal(one))


@every
def test_matrices_are_positive_semi_definite(kernel, k):
    many = rows(60, 4)
    many[40:] = many[:20]
    many[50:55, 2:] = np.random.default_rng(5).normal(size=(5, 3))
    values = np.linalg.eigvalsh(kernel.matrix(many, many))
    assert values[0] >= -1e-12 * values[-1]


@smooth
def test_gradients_are_those_of_differences(kernel, k):
    assert kernel.differentiable
    weights = np.random.default_rng(6).normal(size=(len(A), len(B)))
    gradient, halved = kernel.pullback(A, B, weights), kernel.diagonal_pullback(A)
    for i in range(A.shape[1]):
        ahead, behind = A.copy(), A.copy()
        ahead[:, i] += STEP
        behind[:, i] -= STEP
        expected = ((slow(k, ahead, B) - slow(k, behind, B)) * weights).sum(axis=1) / (2 * STEP)
        np.testing.assert_allclose(gradient[:, i], expected, rtol=1e-6, atol=1e-7 * (1 + np.abs(expected).max()))
        half = [(k(x, a) - k(y, a)) / (2 * STEP) for x, y, a in zip(ahead, behind, A, strict=True)]
        np.testing.assert_allclose(halved[:, i], half, rtol=1e-6, atol=1e-7 * (1 + np.abs(half).max()))


@every
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), width=st.sampled_from([0.0, 1e-9, 1e-5, 1e-3, 0.1, 1.0, 10.0]))
def test_bounds_over_cells_hold(kernel, k, seed, width):
    rng = np.random.default_rng(seed)
    centres = rows(4, seed)
    half_widths = width * rng.uniform(size=centres.shape) * (rng.uniform(size=centres.shape) < 0.8)
    stray, largest = kernel.stray(centres, half_widths), kernel.largest(centres, half_widths)
    assert stray.shape == largest.shape == (4,)
    for centre, half, far, most in zip(centres, half_widths, stray, largest, strict=True):
        corners = centre + half * rng.choice([-1.0, 0.0, 1.0], size=(100, 5))
        cell = np.vstack((corners, centre + half * rng.uniform(-1, 1, size=(50, 5))))
        sizes, own = kernel.diagonal(cell), kernel.diagonal(centre[None])[0]
        # The square root magnifies the rounding of the difference.
        apart = sizes + own - 2 * kernel.matrix(cell, centre[None])[:, 0]
        assert (apart <= far**2 + 1e-14 * (sizes + own)).all()
        assert (np.sqrt(sizes) <= most * (1 + 1e-12)).all()


@every
def test_bounds_over_cells_shrink_with_them(kernel, k):
    centres = rows(5, 8)
    wide, narrow = (kernel.stray(centres, np.full(centres.shape, h)) for h in (1e-2, 1e-6))
    rate = 1e-2 if kernel.differentiable else 1e-1  # of order h, or of its root
    assert (narrow <= rate * wide).all()
    np.testing.assert_array_equal(kernel.stray(centres, np.zeros(centres.shape)) <= 1e-9, True)


@every
def test_one_exchanged_value_is_a_row_of_its_own(kernel, k):
    rng = np.random.default_rng(9)
    columns, values = rng.integers(5, size=30), rng.uniform(size=30)
    values[3] = A[0][columns[3]]
    changed = np.tile(A[0], (30, 1))
    changed[np.arange(30), columns] = values
    others = np.vstack((B, changed[:2]))
    found = kernel.exchanged(A[0], columns, values, others)
    np.testing.assert_allclose(found, slow(k, changed, others), rtol=1e-12, atol=1e-13)
    general = mb.Kernel.exchanged(kernel, A[0], columns, values, others)
    np.testing.assert_array_equal(general, kernel.matrix(changed, others))


@every
def test_blocks_of_rows_make_no_difference(kernel, k):
    many, others = rows(150, 10), rows(700, 11)
    weights = np.random.default_rng(12).normal(size=(150, 700))
    together, gradient = kernel.matrix(many, others), kernel.pullback(many, others, weights)
    np.testing.assert_array_equal(together, np.vstack([kernel.matrix(row[None], others) for row in many]))
    np.testing.assert_array_equal(together, kernel.matrix(others, many).T)
    parts = [kernel.pullback(row[None], others, weight[None]) for row, weight in zip(many, weights, strict=True)]
    np.testing.assert_allclose(gradient, np.vstack(parts), rtol=1e-9, atol=1e-10 * (1 + np.abs(gradient).max()))


@every
def test_no_rows_are_no_problem(kernel, k):
    none, no_columns = np.empty((0, 5)), np.empty(0, dtype=np.int64)
    assert kernel(none, B).shape == (0, 7)
    assert kernel(A, none).shape == (9, 0)
    assert kernel.pullback(none, B, np.empty((0, 7))).shape == (0, 5)
    np.testing.assert_array_equal(kernel.pullback(A, none, np.empty((9, 0))), 0.0)
    assert kernel.diagonal(none).shape == kernel.stray(none, none).shape == kernel.largest(none, none).shape == (0,)
    assert kernel.exchanged(A[0], no_columns, np.empty(0), B).shape == (0, 7)


@every
def test_a_kernel_returns_from_its_state_its_repr_and_a_pickle(kernel, k):
    for again in (
        mb.Kernel.family.load(kernel.state_dict()),
        eval(repr(kernel), vars(mb) | {name: getattr(mb, name) for name in dir(mb)}),
        pickle.loads(pickle.dumps(kernel)),
    ):
        assert again == kernel
        assert hash(again) == hash(kernel)
        np.testing.assert_array_equal(again.matrix(A, B), kernel.matrix(A, B))
    assert sum(kernel == other for other, _ in KERNELS.values()) == 1


@every
def test_results_are_new_arrays(kernel, k):
    weights = np.ones((len(A), len(B)))
    calls = (
        lambda: kernel.matrix(A, B),
        lambda: kernel.diagonal(A),
        lambda: kernel.pullback(A, B, weights),
        lambda: kernel.diagonal_pullback(A),
        lambda: kernel.stray(A, np.abs(A)),
        lambda: kernel.exchanged(A[0], np.array([0, 1]), np.array([0.1, 0.2]), B),
    )
    for call in calls:
        before = call()
        call()[:] = 77.0
        np.testing.assert_array_equal(call(), before)
    assert (weights == 1.0).all()
