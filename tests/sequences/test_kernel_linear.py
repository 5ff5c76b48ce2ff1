"""A linear kernel is features: the same bounds by another route, never tighter than the features allow."""

import numpy as np
import pytest

import mixbandit as mb

heavy = pytest.mark.heavy
KINDS = ("plain", "repeated", "badly conditioned", "of all sizes", "of rank one")
MIXTURES = {
    "standard": lambda rng, scale: mb.Standard(),
    "scaled": lambda rng, scale: mb.Scaled(10.0 ** rng.uniform(-3.0, 4.0)),
    "grid": lambda rng, scale: mb.Grid([0.01, 1.0, scale**2]),
}
EPS = np.finfo(float).eps
SEEDS = [*range(60), *(pytest.param(seed, marks=heavy) for seed in range(60, 1500))]
# Up to this ratio of the largest eigenvalue to α or to the least one nothing of a direction is lost to rounding. Beyond
# it bounds are wider than those of features, by what rounding may have hidden.
RESOLVED = 1e4


def data(seed):
    rng = np.random.default_rng([5, seed])
    d = int(rng.integers(1, 7))
    t = int(rng.choice([0, 1, d, 3 * d, 60]))
    rows, kind = rng.normal(size=(t, d)), KINDS[seed % len(KINDS)]
    if kind == "repeated" and t:
        rows = rows[rng.integers(max(t // 4, 1), size=t)]
    elif kind == "badly conditioned":
        rows *= np.geomspace(1.0, 10.0 ** -rng.integers(2, 9), d)
    elif kind == "of all sizes":
        rows *= 10.0 ** rng.uniform(-4.0, 4.0, size=(t, 1))
    elif kind == "of rank one":
        rows = rows[:, :1] * rng.normal(size=(1, d))
    sigma, norm_bound = 10.0 ** rng.uniform(-8.0, 3.0), 10.0 ** rng.uniform(-4.0, 6.0)
    theta = rng.normal(size=d)
    theta *= norm_bound * rng.uniform() / np.linalg.norm(theta)
    levels = sigma * 10.0 ** rng.uniform(-1.0, 1.0, size=t) if rng.random() < 0.3 else None
    rewards = rows @ theta + (sigma if levels is None else levels) * rng.normal(size=t)
    queries = np.vstack((rng.normal(size=(3, d)), rows[:2], rows[:1] + 1e-7, np.zeros((1, d))))
    return rng, rows, rewards, levels, queries, {"sigma": sigma, "norm_bound": norm_bound, "delta": 0.05}


def pairs(seed):
    """Sequences of a linear kernel and of features, on the same data."""
    rng, rows, rewards, levels, queries, settings = data(seed)
    name = sorted(MIXTURES)[seed % len(MIXTURES)]
    mixture, d = MIXTURES[name](rng, settings["norm_bound"]), rows.shape[1]
    made = {
        "mixture": (mb.KernelMixture, mb.MartingaleMixture, settings | {"mixture": mixture}),
        "oful": (mb.OFULSequence, mb.OFULSequence, settings),
    }
    if levels is None:
        noise = {key: value for key, value in settings.items() if key != "sigma"}
        made["unknown noise"] = (mb.UnknownNoise, mb.UnknownNoise, noise)
    weighted = rows if levels is None else rows * (settings["sigma"] / levels)[:, None]
    singular = np.linalg.svd(weighted, compute_uv=False) if len(rows) else np.ones(1)
    kept = singular[singular > 1e-14 * singular[0]]
    largest, condition = float(singular @ singular), (kept[0] / kept[-1]) ** 2
    for kind, (one, other, options) in made.items():
        ours, theirs = one(mb.LinearKernel(), **options), other(d, **options)
        for each in (ours, theirs):
            each.update(rows, rewards, sigma=levels)
        yield kind, ours, theirs, queries, largest, condition, settings["norm_bound"] * np.linalg.norm(queries, axis=1)


@pytest.mark.parametrize("seed", SEEDS)
def test_bounds_are_those_of_features(seed):
    for kind, ours, theirs, queries, largest, condition, reach in pairs(seed):
        ratio = largest / theirs.alpha0
        if theirs.is_empty or ours.is_empty:
            assert theirs.is_empty or not ours.is_empty
            assert ratio > RESOLVED or ours.is_empty == theirs.is_empty
            continue
        expected, found = theirs.upper(queries), ours.upper(queries)
        below, above = theirs.lower(queries), ours.lower(queries)
        # Ellipsoids around a centre that rounding moves: there is no set that must contain the other one.
        # It moves by about a rounding for each unit of the ratio, differently on every processor.
        tolerance = 1e-9 if kind != "oful" else max(1e-8, EPS * ratio)
        tolerance = max(tolerance, 1e-17 * ratio if kind == "mixture" else 0.0) if ratio < 1e10 else 1e-6
        size = reach + (np.abs(expected) + np.abs(below) if kind == "oful" else 0.0)
        assert (found >= expected - tolerance * size).all(), ((expected - found) / size.max(), kind, ratio)
        assert (above <= below + tolerance * size).all(), ((above - below) / size.max(), kind, ratio)
        if max(ratio, condition) <= RESOLVED:
            assert (found <= expected + 1e-6 * size).all(), ((found - expected) / size.max(), kind, ratio)
            assert (above >= below - 1e-6 * size).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_closed_forms_are_those_of_features(seed):
    _, ours, theirs, queries, largest, condition, reach = next(iter(pairs(seed)))
    if theirs.is_empty or ours.is_empty:
        return
    exact = theirs.upper(queries)
    for alpha in (theirs.alpha0, 100.0 * theirs.alpha0, 0.01 * theirs.alpha0):
        found, expected = ours.upper(queries, alpha=alpha), theirs.upper(queries, alpha=alpha)
        # Valid in any case, and equal where squares of singular values can be told apart.
        assert (found >= exact - 1e-6 * reach).all()
        if max(largest / alpha, condition) <= RESOLVED:
            size = reach + np.abs(expected)
            np.testing.assert_allclose(found / (size + 1e-300), expected / (size + 1e-300), rtol=0.0, atol=1e-5)


def test_misspecified_bounds_are_those_of_features():
    rng = np.random.default_rng(0)
    for t in (2, 5, 40):
        rows, queries = rng.normal(size=(t, 3)), rng.normal(size=(5, 3))
        rewards = rows @ np.array([0.3, -0.2, 0.5]) + 0.1 * rng.normal(size=t)
        for mixture in (mb.Standard(), mb.Grid([0.1, 1.0])):
            settings = {"sigma": 0.1, "norm_bound": 2.0, "misspecification": 0.05, "mixture": mixture}
            ours = mb.KernelMixture(mb.LinearKernel(), **settings).update(rows, rewards)
            theirs = mb.MartingaleMixture(3, **settings).update(rows, rewards)
            for alpha in (None, 0.02, 1.0):
                found, expected = ours.upper(queries, alpha=alpha), theirs.upper(queries, alpha=alpha)
                assert (found >= expected - 1e-9).all()
                np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-5)


def test_a_rank_that_rounding_hides_refutes_nothing():
    """Eigenvalues below the rounding error of the largest, in the mixture's units far above the noise.

    They used to explain noise at no cost: the set was empty, and the truth refuted.
    """
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(40, 1))
    rewards = rows[:, 0] * 1e-4 + 4e-7 * rng.normal(size=40)
    cs = mb.KernelMixture(mb.LinearKernel(), sigma=4e-7, norm_bound=1.2e-4, mixture=mb.Scaled(400.0))
    cs.update(rows, rewards)
    theirs = mb.MartingaleMixture(1, sigma=4e-7, norm_bound=1.2e-4, mixture=mb.Scaled(400.0)).update(rows, rewards)
    assert not cs.is_empty
    assert cs.radius >= (1.0 - 1e-9) * theirs.radius
    assert cs.upper([1.0])[0] >= theirs.upper([1.0])[0] - 1e-13


def test_a_rank_that_rounding_hides_takes_its_volume():
    """Singular values of 1e-8 vanish from the kernel's matrix, but not next to noise of 1e-9."""
    rows, rewards = np.diag([1.0, *[1e-8] * 5]), np.array([1e-3, *[0.0] * 5])
    settings = {"sigma": 1e-9, "norm_bound": 1e-2}
    ours = mb.OFULSequence(mb.LinearKernel(), **settings).update(rows, rewards)
    theirs = mb.OFULSequence(6, **settings).update(rows, rewards)
    assert ours.ellipsoid_radius >= theirs.ellipsoid_radius
    ours = mb.UnknownNoise(mb.LinearKernel(), norm_bound=1e-2).update(rows, rewards)
    theirs = mb.UnknownNoise(6, norm_bound=1e-2).update(rows, rewards)
    assert ours.radius >= (1.0 - 1e-9) * theirs.radius
