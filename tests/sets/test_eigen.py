"""Exact bounds of many directions in the eigenbasis of ridge regression equal those by decomposition of all rows."""

import numpy as np
import pytest

import mixbandit as mb
from mixbandit.sets import KrylovBall
from mixbandit.sets.eigen import Eigenbasis, example
from tests.sets.test_krylov import hostile

pytest.importorskip("numba")


def problems(count):
    """Hostile sets that have an eigenbasis, the same ones by decomposition, and 30 directions."""
    for seed in range(count):
        cs, directions = hostile(seed)
        quick = cs.moment.rule.set(cs.moment.data)
        if isinstance(quick, KrylovBall) and quick._eigenbasis is not None:
            rng = np.random.default_rng(seed)
            directions = np.vstack((directions, rng.normal(size=(30 - len(directions), directions.shape[1]))))
            directions = directions[np.linalg.norm(directions, axis=1) > 0.0]
            yield quick, cs.moment.rule.ball(cs.moment.data).opened(), directions


def test_bounds_equal_those_of_a_decomposition():
    solved = asked = 0
    for quick, whole, directions in problems(400):
        low, high = whole.interval(directions)
        scale = np.maximum(np.maximum(np.abs(low), np.abs(high)), high - low)
        size, inside = quick._eigenbasis.coordinates(directions)
        found = size * quick._eigenbasis.solve(inside, attaining=False).value
        here = ~np.isnan(found)
        asked, solved = asked + len(found), solved + np.count_nonzero(here)
        np.testing.assert_allclose((found / scale)[here], (high / scale)[here], rtol=0, atol=1e-9)
        # With those that had to be found in another way, from either end.
        np.testing.assert_allclose(quick.maximum(directions) / scale, high / scale, rtol=0, atol=1e-9)
        np.testing.assert_allclose(np.array(quick.interval(directions)) / scale, (low, high) / scale, rtol=0, atol=1e-9)
    assert solved > 0.8 * asked > 1000


def test_maximisers_attain_the_maximum_in_the_set():
    checked = 0
    for quick, whole, directions in problems(400):
        found, expected = quick.support(directions), whole.support(directions)
        low = -whole.maximum(-directions)
        scale = np.maximum(np.maximum(np.abs(low), np.abs(expected.value)), expected.value - low)
        np.testing.assert_allclose(found.value / scale, expected.value / scale, rtol=0, atol=1e-9)
        attained = np.einsum("nd,nd->n", found.points, directions)
        np.testing.assert_allclose(attained / scale, found.value / scale, rtol=0, atol=1e-8)
        for point in found.points:
            assert whole.contains(point, 1e-6)
        # Where both constraints bind, maximisers are on the sphere; where the norm bound does not, its multiplier is 0.
        norms = np.linalg.norm(found.points, axis=1) / whole.norm_bound
        np.testing.assert_allclose(norms[found.alpha > 0.0], 1.0, atol=1e-5)
        agree = found.case == expected.case
        assert np.count_nonzero(agree) >= 0.9 * len(agree)
        checked += len(agree)
    assert checked > 1000


def test_few_directions_and_many_are_bounded_alike():
    rng = np.random.default_rng(0)
    theta = rng.normal(size=30)
    rows = rng.normal(size=(90, 30)) / np.sqrt(30)
    cs = mb.MartingaleMixture(30, sigma=0.1, norm_bound=float(np.linalg.norm(theta)))
    cs.update(rows, rows @ theta + 0.1 * rng.normal(size=90))
    assert cs.moment.exact._eigenbasis is not None
    directions = rng.normal(size=(50, 30))
    many = cs.upper(directions)
    np.testing.assert_allclose([cs.upper(row)[0] for row in directions], many, rtol=1e-10)
    with np.errstate(all="raise"):
        for size in (1e-150, 1e150):  # squares leave the range of floats
            np.testing.assert_allclose(cs.upper(size * directions), size * many, rtol=1e-9)


def test_rows_that_are_left_to_another_way_hold_nothing_of_what_memory_held_before(monkeypatch):
    """A product with such rows warned of invalid values, rarely, where memory held infinities."""
    near, directions = example()
    coordinates = Eigenbasis(near, lambda *_: None).coordinates(directions)[1]

    def leaves_all(*arguments):
        arguments[-3].fill(np.nan)

    monkeypatch.setattr(np, "empty", lambda shape: np.full(shape, np.inf))
    solved = Eigenbasis(near, leaves_all).solve(coordinates, attaining=True)
    assert np.isnan(solved.value).all()
    assert not solved.points.any()
