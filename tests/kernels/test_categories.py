"""What kernels of categories say about real categories, and about blocks between them."""

import numpy as np
import pytest

import mixbandit as mb


def test_overlap_has_two_values_for_categories():
    np.testing.assert_allclose(
        mb.OverlapKernel(range(4), 0.25, 2.0)(np.eye(4), np.eye(4)), 1.5 * np.eye(4) + 0.5, rtol=1e-15
    )


def test_products_of_overlaps_count_the_categories_that_differ():
    kernel = mb.OverlapKernel([0, 1], 0.5) * mb.OverlapKernel([2, 3], 0.5)
    rows = np.array([[1.0, 0, 1, 0], [1, 0, 0, 1], [0, 1, 0, 1]])
    np.testing.assert_allclose(kernel(rows[:1], rows), [[1.0, 0.5, 0.25]])


def test_a_condition_compares_only_rows_that_meet_it():
    kernel = mb.ConditionalKernel(mb.RBF(0.5, 3.0).on([0]), [1, 3])
    rows = np.array([[0.2, 1, 0, 0], [0.4, 0, 0, 1], [0.2, 0, 1, 0], [0.9, 0, 1, 0]])
    near = 3.0 * np.exp(-(0.4**2) / 2)
    expected = [[3.0, near, 0, 0], [near, 3.0, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]]
    np.testing.assert_allclose(kernel(rows, rows), expected, atol=1e-15)


@pytest.mark.parametrize("similarity", [1.0, -0.1, float("nan"), "x", 1e-30])
def test_similarity_lies_between_0_and_1(similarity):
    with pytest.raises(mb.InvalidInput, match="similarity must"):
        mb.OverlapKernel([0], similarity)


def test_settings_at_the_edge_work():
    rows = np.eye(2)
    for kernel in (mb.OverlapKernel([0, 1], 1e-20, 1e-20), mb.OverlapKernel([0, 1], 1.0 - 2**-53, 1e20)):
        assert np.isfinite(kernel(rows, rows)).all()
        assert kernel.diagonal(rows) == pytest.approx(kernel.variance)


def test_the_cell_of_all_categories_holds_every_row():
    # Relaxed blocks: half-widths of 1/2 about 1/2, and more.
    kernel = mb.OverlapKernel(range(3), 0.4)
    centre, half = np.full((1, 3), 0.5), np.full((1, 3), 0.5)
    assert kernel.stray(centre, half)[0] == pytest.approx(np.sqrt(0.6 * 0.75))
    assert kernel.largest(centre, half)[0] == pytest.approx(np.sqrt(0.4 + 0.6 * 3))
