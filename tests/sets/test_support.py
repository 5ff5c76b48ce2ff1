"""Exact bounds against a conic solver, against their optimality conditions, and their gradients."""

import os
import subprocess
import sys

import numpy as np
import pytest

import mixbandit as mb
from mixbandit.sequences.conic import ConicReference
from mixbandit.sets import dual
from tests.helpers.instances import FAMILIES, Instance, draw

INSTANCES = 500


@pytest.fixture(params=["compiled", "numpy"])
def solver(request, monkeypatch):
    """Both solvers of the dual must pass everything here."""
    if request.param == "numpy":
        monkeypatch.setattr(dual, "_compiled_kernel", lambda: None)
    else:
        assert dual._compiled_kernel() is not None
    return request.param


@pytest.fixture(scope="module")
def conic() -> dict[int, tuple[float, float] | None]:
    """Lower and upper bounds by CLARABEL for every instance; None where it finds the set empty."""
    bounds: dict[int, tuple[float, float] | None] = {}
    for seed in range(INSTANCES):
        instance = draw(seed)
        reference = ConicReference(instance.sequence())
        bounds[seed] = None
        if not reference.is_empty():
            bounds[seed] = reference.lower(instance.phi)[0], reference.upper(instance.phi)[0]
    return bounds


@pytest.mark.parametrize("family", FAMILIES)
def test_exact_bounds_and_verdicts_equal_the_conic_solvers(family, solver, conic):
    for seed in range(FAMILIES.index(family), INSTANCES, len(FAMILIES)):
        instance = draw(seed)
        assert instance.family == family
        cs = instance.sequence()
        assert cs.is_empty == (conic[seed] is None), seed
        if conic[seed] is None:
            continue
        ours = cs.lower(instance.phi)[0], cs.upper(instance.phi)[0]
        np.testing.assert_allclose(ours, conic[seed], rtol=0.0, atol=1e-6 * instance.scale, err_msg=str(seed))


@pytest.mark.heavy
def test_exact_bounds_and_verdicts_equal_the_conic_solvers_on_many_more():
    for seed in range(INSTANCES, 5000):
        instance = draw(seed)
        cs = instance.sequence()
        reference = ConicReference(cs)
        assert cs.is_empty == reference.is_empty(), seed
        if not cs.is_empty:
            ours = cs.lower(instance.phi)[0], cs.upper(instance.phi)[0]
            theirs = reference.lower(instance.phi)[0], reference.upper(instance.phi)[0]
            np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=1e-6 * instance.scale, err_msg=str(seed))


def test_the_instances_cover_every_case_and_empty_sets(conic):
    seen = {str(draw(seed).sequence().support(draw(seed).phi).case[0]) for seed in conic if conic[seed]}
    assert seen == {"origin", "ball", "ellipsoid", "interior"}
    assert sum(bounds is None for bounds in conic.values()) >= 20


@pytest.mark.parametrize("family", FAMILIES)
def test_the_maximiser_satisfies_the_optimality_conditions(family, solver):
    """Primal feasibility, stationarity φ = λΦᵀ(Φθ−r) + μθ with λ, μ ≥ 0, and complementary slackness."""
    for seed in range(FAMILIES.index(family), 400, len(FAMILIES)):
        instance = draw(seed)
        cs = instance.sequence()
        if cs.is_empty:
            continue
        support = cs.support(instance.phi)
        theta, value = support.theta[0], support.value[0]
        assert value == pytest.approx(cs.upper(instance.phi)[0], abs=1e-12 * instance.scale)
        assert value == pytest.approx(instance.phi @ theta, abs=1e-9 * instance.scale)
        residual = instance.Phi @ theta - instance.r
        assert np.linalg.norm(theta) <= instance.norm_bound * (1 + 1e-9)
        # What rounding of Φθ − r itself allows.
        noise = 1e-14 * (np.linalg.norm(instance.Phi) * instance.norm_bound + np.linalg.norm(instance.r))
        assert np.linalg.norm(residual) <= cs.radius * (1 + 1e-8) + noise
        if support.case[0] in ("ball", "interior"):
            assert np.linalg.norm(theta) == pytest.approx(instance.norm_bound, rel=1e-9)
        if support.case[0] in ("ellipsoid", "interior"):
            assert np.linalg.norm(residual) == pytest.approx(cs.radius, rel=1e-6, abs=noise)
        # φ ∝ Φᵀ(Φθ−r) + αθ with α = 0 for the ellipsoid and ∞ for the ball: the angle between both sides vanishes.
        normal = {
            "origin": instance.phi,
            "ball": theta,
            "ellipsoid": instance.Phi.T @ residual,
            "interior": instance.Phi.T @ residual + support.alpha[0] * theta,
        }[str(support.case[0])]
        if np.linalg.norm(instance.Phi) * noise < 1e-8 * np.linalg.norm(normal):
            cosine = instance.phi @ normal / (np.linalg.norm(instance.phi) * np.linalg.norm(normal))
            assert cosine == pytest.approx(1.0, abs=1e-7)


def test_both_solvers_give_the_same_answers(monkeypatch):
    for seed in range(200):
        instance = draw(seed)
        cs = instance.sequence()
        if cs.is_empty:
            continue
        queries = np.vstack((instance.phi, instance.Phi))
        compiled = cs.support(queries)
        with monkeypatch.context() as patch:
            patch.setattr(dual, "_compiled_kernel", lambda: None)
            vectorised = cs.support(queries)
        scale = instance.norm_bound * np.linalg.norm(queries, axis=1).clip(1e-300)
        assert np.max(np.abs(compiled.value - vectorised.value) / scale) < 1e-12
        np.testing.assert_array_equal(compiled.case, vectorised.case)
        np.testing.assert_allclose(compiled.theta, vectorised.theta, atol=1e-7 * instance.norm_bound)


@pytest.mark.parametrize("norm_bound", [2.0, 1.1, 1.0])
@pytest.mark.parametrize("t", [4, 30])
def test_the_gradient_agrees_with_finite_differences(norm_bound, t, solver):
    rng = np.random.default_rng(t)
    phi = mb.RandomFourier(dim_in=3, dim=8, rng=1)
    theta = rng.normal(size=8)
    theta /= np.linalg.norm(theta)
    actions, probes = rng.uniform(size=(t, 3)), rng.uniform(size=(20, 3))
    rewards = phi(actions) @ theta + 0.05 * rng.normal(size=t)
    cs = mb.MartingaleMixture(phi, sigma=0.05, norm_bound=norm_bound).update(actions, rewards)
    h = 1e-5
    for alpha in (None, cs.alpha0):
        grad = cs.support(probes, alpha=alpha).grad
        for i in range(3):
            step = h * np.eye(3)[i]
            rise = cs.upper(probes + step, alpha=alpha) - cs.upper(probes - step, alpha=alpha)
            np.testing.assert_allclose(grad[:, i], rise / (2 * h), atol=1e-6)


@pytest.mark.parametrize("factor", [1e12, 1e20, 1e30, 1e45])
@pytest.mark.parametrize("sigma", [1.0, 1e-12])
def test_exact_bounds_stay_exact_when_the_multiplier_is_tiny(factor, sigma, solver):
    """Fewer rows than dimensions: the best α is of the size of the excess, here down to 1e-114 of s_max."""
    rng = np.random.default_rng(0)
    Phi = rng.normal(size=(2, 3))
    r = Phi @ [0.5, 0.3, 0.1]
    cs = mb.MartingaleMixture(3, sigma=sigma, norm_bound=1.0).update(factor * Phi, factor * r)
    support = cs.support([1.0, 0.0, 0.0])
    assert support.case[0] == "interior"
    # Noiseless, as far as floats can tell: θ is known but for the null space.
    null = np.linalg.svd(Phi)[2][2]
    least_squares = np.linalg.lstsq(Phi, r, rcond=None)[0]
    expected = least_squares[0] + abs(null[0]) * np.sqrt(1 - least_squares @ least_squares)
    assert support.value[0] == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose(np.linalg.norm(support.theta), 1.0, rtol=1e-6)


def test_the_maximiser_stays_in_the_ball_where_the_null_part_is_rounding(solver):
    for seed in range(100):
        rng = np.random.default_rng(seed)
        U = np.linalg.qr(rng.normal(size=(4, 4)))[0]
        Phi = np.outer(rng.normal(size=5), U[0]) + 1e-12 * np.outer(rng.normal(size=5), U[1])
        theta = rng.normal(size=4)
        cs = mb.MartingaleMixture(4, sigma=1e-4, norm_bound=float(np.linalg.norm(theta)))
        cs.update(Phi, Phi @ theta + 1e-4 * rng.normal(size=5))
        if cs.is_empty:
            continue
        support = cs.support(U)
        assert np.linalg.norm(support.theta, axis=1).max() <= cs.norm_bound * (1 + 1e-6)


def test_maximisers_are_contained_at_a_large_signal():
    rng = np.random.default_rng(0)
    Phi = 1e4 * rng.normal(size=(300, 6))
    theta = rng.normal(size=6)
    r = Phi @ theta + 0.01 * rng.normal(size=300)
    for kind in (mb.MartingaleMixture, mb.OFULSequence, mb.BayesCredible):
        cs = kind(6, sigma=0.01, norm_bound=1.5 * float(np.linalg.norm(theta))).update(Phi, r)
        assert all(cs.contains(point) for point in cs.support(rng.normal(size=(200, 6))).theta)
        assert not any(cs.contains(point + 1e-5 * theta) for point in cs.support(theta).theta)


def test_a_numba_that_does_not_work_is_done_without(tmp_path):
    """Installed but broken, as after an upgrade of numpy."""
    (tmp_path / "numba.py").write_text("raise ImportError('Numba needs NumPy 2.0 or less')")
    code = "import mixbandit as mb; print(mb.MartingaleMixture(2, sigma=1, norm_bound=1).upper([3.0, 4.0])[0])"
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert float(run.stdout) == pytest.approx(5.0)
    assert "numba is installed but does not work" in run.stderr


@pytest.mark.parametrize("exponent", [-170, -120, 120, 190])
def test_bounds_scale_with_the_direction(exponent, solver):
    instance = draw(0)
    cs, factor = instance.sequence(), 10.0**exponent
    np.testing.assert_allclose(cs.upper(factor * instance.phi), factor * cs.upper(instance.phi), rtol=1e-12)
    np.testing.assert_allclose(cs.lower(factor * instance.phi), factor * cs.lower(instance.phi), rtol=1e-12)
    np.testing.assert_allclose(
        cs.upper(factor * instance.phi, alpha=cs.alpha0),
        factor * cs.upper(instance.phi, alpha=cs.alpha0),
        rtol=1e-12,
    )


def test_a_batch_with_all_kinds_of_rows_equals_its_rows(solver):
    instance = draw(2)
    cs = instance.sequence()
    d = instance.Phi.shape[1]
    queries = np.vstack((np.zeros(d), instance.phi, instance.Phi, 1e-170 * np.ones(d), np.eye(d)))
    batch = cs.support(queries)
    for i, row in enumerate(queries):
        one = cs.support(row)
        np.testing.assert_allclose(batch.value[i], one.value[0], rtol=1e-12)
        np.testing.assert_allclose(batch.theta[i], one.theta[0], atol=1e-7 * instance.norm_bound)


def touching_set(shift: float) -> mb.MartingaleMixture:
    """One reward so far out that the set shrinks to a point at shift = 0, and is empty beyond."""

    class Confident:
        def predict(self, x):
            return 1.0, 0.0

        def update(self, x, r):
            pass

    # R² = (r−1)² + 2σ²ln(1/δ); the ball allows residuals of at least r − 1.
    gap = 0.5
    radius2 = (gap + shift) ** 2
    r = 1.0 + np.sqrt(radius2 / 2)
    sigma = np.sqrt((radius2 / 2) / (2 * np.log(100.0)))
    cs = mb.MartingaleMixture(2, sigma=sigma, norm_bound=r - gap, mixture=Confident())
    return cs.update([1.0, 0.0], r)


def test_a_set_that_is_a_point_up_to_rounding_is_neither_empty_nor_wide(solver):
    cs = touching_set(0.0)
    assert not cs.is_empty
    point = cs.norm_bound
    assert cs.upper([1.0, 0.0])[0] == pytest.approx(point, abs=1e-6)
    assert cs.lower([1.0, 0.0])[0] == pytest.approx(point, abs=1e-6)
    assert touching_set(-1e-6).is_empty
    assert not touching_set(1e-6).is_empty


def test_the_support_of_an_instance_does_not_depend_on_its_units():
    """Rewards in other units, features in other units: the bounds follow."""
    base = draw(40)
    expected = base.sequence().upper(base.phi)[0]
    for unit in (1e-6, 1e6):
        rewards = Instance(
            base.family, base.Phi, unit * base.r, unit * base.sigma, unit * base.norm_bound, base.delta,
            mb.Scaled(unit**2), base.phi,
        )  # fmt: skip
        assert rewards.sequence().upper(base.phi)[0] == pytest.approx(unit * expected, rel=1e-9)
        features = Instance(
            base.family, unit * base.Phi, base.r, base.sigma, base.norm_bound / unit, base.delta,
            mb.Scaled(1 / unit**2), unit * base.phi,
        )  # fmt: skip
        assert features.sequence().upper(unit * base.phi)[0] == pytest.approx(expected, rel=1e-9)
