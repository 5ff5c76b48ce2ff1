"""The comparison of bounds for functions of a kernel: what it draws, counts and shows."""

import numpy as np
import pytest

import mixbandit as mb
from mixbandit.paper import kernels
from mixbandit.paper.kernels import KERNELS, METHODS, KernelComparison, KernelSettings

SMALL = {"arms": 30, "rounds": 12, "lengthscale": 0.4, "norm_bound": 2.0}


@pytest.fixture(scope="module")
def results():
    return [kernels.measure(KernelSettings(name, **SMALL), 3) for name in KERNELS]


@pytest.mark.parametrize("name", KERNELS)
def test_functions_have_exactly_the_stated_norm(name):
    settings = KernelSettings(name, **SMALL | {"arms": 400})
    found = kernels.problem(settings, 1)
    other = kernels.problem(settings, 2)
    assert found.noise.std() == pytest.approx(settings.sigma, rel=0.6)
    assert not np.array_equal(found.expected, other.expected)
    # The smallest norm of a function with these values: at most that of f*, and near it with many arms.
    gram = found.kernel(found.arms, found.arms) + 1e-9 * np.eye(400)
    norm = np.sqrt(found.expected @ np.linalg.solve(gram, found.expected))
    assert 0.8 * settings.norm_bound < norm < settings.norm_bound * (1 + 1e-6)


def test_the_methods_are_what_they_are_called():
    settings = KernelSettings(scale=0.25, sigma=0.2, rounds=50)
    found = dict(zip(METHODS, kernels.methods(settings, mb.RBF()), strict=True))
    alpha = found["AMM-UCB"].sequence.alpha0
    assert alpha == pytest.approx(0.04 / 0.25)
    assert found["DMM-UCB"].alpha == pytest.approx([alpha, 4 * alpha, 16 * alpha, 64 * alpha])
    assert [found[name].alpha for name in ("CMM-UCB", "AMM-UCB", "AY-GP-UCB", "IGP-UCB")] == [None, alpha, None, None]
    assert found["AY-GP-UCB"].sequence.alpha == alpha
    assert found["IGP-UCB"].sequence.eta == 2 / 50
    assert {each.sequence.norm_bound for each in found.values()} == {settings.norm_bound}


def test_widths_on_the_same_data_are_in_the_order_that_theory_demands(results):
    for r in results:
        cmm, dmm, amm, ay, _ = (r.same_widths[:, i] for i in range(5))
        assert (cmm <= dmm * (1 + 1e-6)).all()
        assert (dmm <= amm * (1 + 1e-6)).all()
        assert (amm < ay).all()
        np.testing.assert_allclose(cmm, r.own_widths[:, 0], rtol=1e-6)


def test_curves_are_cumulative_and_bounds_hold(results):
    for r in results:
        assert r.regret.shape == r.own_widths.shape == (3, 5, 12)
        assert (np.diff(r.regret, axis=2) >= 0).all()
        assert not r.missed.any()
        assert all(map(r.holds, range(5)))


def test_a_wrong_bound_is_counted():
    """Functions of a norm twice as large as stated."""
    settings = KernelSettings(**SMALL | {"norm_bound": 20.0}, sigma=0.001)
    found = kernels.problem(settings, 0)
    stated = KernelSettings(**SMALL | {"norm_bound": 2.0}, sigma=0.001)
    for method in kernels.methods(stated, found.kernel):
        assert kernels._play(stated, found, method).missed


def test_many_misses_break_the_promise(results):
    r = results[0]
    missed = np.array([[1.0, 0.0, 0.0, 0.0, 0.0]] * 3)
    broken = KernelComparison(r.settings, r.regret, r.own_widths, r.same_widths, missed, r.milliseconds)
    assert [broken.holds(i) for i in range(5)] == [False, True, True, True, True]


def test_results_resume_and_do_not_depend_on_it(tmp_path, results):
    settings, done = results[0].settings, []
    kernels.measure(settings, 1, folder=tmp_path)
    again = kernels.measure(settings, 3, folder=tmp_path, progress=done.append)
    assert done == [1, 2, 3]
    np.testing.assert_array_equal(again.regret, results[0].regret)
    np.testing.assert_array_equal(again.same_widths, results[0].same_widths)


def test_the_tables_have_a_row_per_method(results):
    columns, rows = kernels.table(results)
    assert len(rows) == 15
    assert all(len(row) == len(columns) for row in rows)
    assert rows[0][:2] == ("RBF", "CMM-UCB")
    mean, error = (float(part) for part in rows[0][2].split(" ± "))
    final = results[0].regret[:, 0, -1]
    assert mean == pytest.approx(final.mean(), abs=0.5)
    assert error == pytest.approx(final.std(ddof=1) / np.sqrt(3), abs=0.5)
    columns, rows = kernels.curves_table(results)
    assert len(rows) == 3 * 5 * 12
    assert all(len(row) == len(columns) for row in rows)


def test_one_repetition_has_no_error():
    alone = kernels.measure(KernelSettings(**SMALL), 1)
    assert "±" not in kernels.table([alone])[1][0][2]
    kernels.draw([alone])


def test_the_picture_has_two_panels_per_kernel(results):
    axes = kernels.draw(results).axes
    assert [ax.get_title() for ax in axes] == [*KERNELS, "", "", ""]
    assert len(axes[0].get_lines()) == len(METHODS)
