"""Merging shards is one pass over all data."""

import itertools

import numpy as np
import pytest

import mixbandit as mb
from tests.helpers.sequences import SEQUENCES

BOUNDED = [name for name in SEQUENCES if name.startswith("bounded")]

# Those that learn in order, and one whose range the rewards here leave.
NOT_MERGED = ("adaptive", "gaussian", "grid of anything", "with a range", *BOUNDED)
MERGEABLE = {
    **{name: make for name, make in SEQUENCES.items() if name not in NOT_MERGED},
    "grid": lambda phi: mb.MartingaleMixture(phi, sigma=0.1, norm_bound=2.0, mixture=mb.Grid([0.01, 1.0, 100.0])),
}
PHI = mb.RandomFourier(dim_in=2, dim=6, rng=1)


def shards(condition, seed=0):
    rng = np.random.default_rng(seed)
    U = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    Phi = rng.normal(size=(120, 6)) * np.geomspace(1.0, 1.0 / condition, 6) @ U
    r = Phi @ rng.normal(size=6) / 3 + 0.1 * rng.normal(size=120)
    edges = [0, 1, 40, 41, 100, 120]
    return Phi, r, [(Phi[a:b], r[a:b]) for a, b in itertools.pairwise(edges)], rng.normal(size=(10, 6))


@pytest.mark.parametrize("name", MERGEABLE)
@pytest.mark.parametrize("condition", [1.0, 1e6, 1e12])
def test_merged_equals_one_pass_in_any_grouping(name, condition):
    Phi, r, parts, queries = shards(condition)
    one = MERGEABLE[name](6).update(Phi, r)
    a, b, c, d, e = (MERGEABLE[name](6).update(*part) for part in parts)
    groupings = [
        a.merge(b).merge(c).merge(d).merge(e),
        e.merge(d.merge(c.merge(b.merge(a)))),
        a.merge(b).merge(c.merge(d).merge(e)),
        d.merge(a).merge(e.merge(c)).merge(b),
    ]
    unit = 2.0 * np.linalg.norm(queries, axis=1)
    for merged in groupings:
        assert merged.t == 120
        assert np.max(np.abs(merged.upper(queries) - one.upper(queries)) / unit) < 1e-10
        assert np.max(np.abs(merged.lower(queries) - one.lower(queries)) / unit) < 1e-10
        if isinstance(one, mb.MartingaleMixture):
            assert merged.radius == pytest.approx(one.radius, rel=1e-10)
    assert (a.t, b.t) == (1, 39)  # the shards are as before


def test_a_merged_sequence_goes_on():
    Phi, r, _, queries = shards(1.0)
    left = mb.MartingaleMixture(6, sigma=0.1, norm_bound=2.0).update(Phi[:50], r[:50])
    right = mb.MartingaleMixture(6, sigma=0.1, norm_bound=2.0).update(Phi[50:90], r[50:90])
    merged = left.merge(right).update(Phi[90:], r[90:])
    one = mb.MartingaleMixture(6, sigma=0.1, norm_bound=2.0).update(Phi, r)
    np.testing.assert_allclose(merged.upper(queries), one.upper(queries), rtol=1e-10)


def test_weights_survive_a_merge():
    make = lambda: mb.MartingaleMixture(1, sigma=0.1, norm_bound=2.0, misspecification=0.1)  # noqa: E731
    one = make().update([[1.0]] * 4, [0.1] * 4, sigma=[0.1, 0.2, 0.1, 0.2])
    merged = (
        make()
        .update([[1.0]] * 2, [0.1] * 2, sigma=[0.1, 0.2])
        .merge(make().update([[1.0]] * 2, [0.1] * 2, sigma=[0.1, 0.2]))
    )
    np.testing.assert_allclose(merged.upper([[1.0]]), one.upper([[1.0]]), rtol=1e-12)


BASE = {"sigma": 0.1, "norm_bound": 2.0, "delta": 0.05}


@pytest.mark.parametrize(
    ("other", "says"),
    [
        (lambda: mb.OFULSequence(PHI, **BASE), "OFULSequence"),
        (lambda: mb.MartingaleMixture(PHI, **(BASE | {"sigma": 0.2})), "differ in sigma: 0.1 and 0.2"),
        (lambda: mb.MartingaleMixture(PHI, **(BASE | {"delta": 0.01})), "delta"),
        (lambda: mb.MartingaleMixture(PHI, **(BASE | {"norm_bound": 1.0})), "norm_bound"),
        (lambda: mb.MartingaleMixture(PHI, **BASE, mixture=mb.Scaled(2.0)), "mixture"),
        (lambda: mb.MartingaleMixture(PHI, **BASE, misspecification=0.1), "misspecification"),
        (lambda: mb.MartingaleMixture(mb.RandomFourier(2, 6, rng=2), **BASE), "features"),
        (lambda: mb.MartingaleMixture(6, **BASE), "features"),
    ],
)
def test_what_differs_is_named(other, says):
    with pytest.raises(mb.NotMergeable, match=says):
        mb.MartingaleMixture(PHI, **BASE).merge(other())


@pytest.mark.parametrize(
    "mixture", [mb.Adaptive(), mb.SemiAdaptive(1.0), mb.Gaussian(0.0, mb.RBF()), mb.Grid([1.0, mb.Adaptive()])]
)
def test_what_learns_in_order_is_not_mergeable(mixture):
    one, other = (mb.MartingaleMixture(PHI, **BASE, mixture=mixture) for _ in range(2))
    with pytest.raises(mb.NotMergeable, match="order"):
        one.merge(other)


def test_feature_functions_must_be_the_same_object():
    f, g = (mb.FromCallable(lambda a: a, 2, 2) for _ in range(2))
    mb.MartingaleMixture(f, **BASE).merge(mb.MartingaleMixture(f, **BASE))
    with pytest.raises(mb.NotMergeable, match="same feature function object"):
        mb.MartingaleMixture(f, **BASE).merge(mb.MartingaleMixture(g, **BASE))
    lam = lambda t, x: 1.0  # noqa: E731
    one = mb.GeneralLambda(2, **BASE, lam=lam)
    with pytest.raises(mb.NotMergeable, match="lam"):
        one.merge(mb.GeneralLambda(2, **BASE, lam=lambda t, x: 1.0))
    assert one.merge(mb.GeneralLambda(2, **BASE, lam=lam)).t == 0
    with pytest.raises(mb.NotMergeable, match="MartingaleMixture"):
        one.merge(mb.MartingaleMixture(2, **BASE))
