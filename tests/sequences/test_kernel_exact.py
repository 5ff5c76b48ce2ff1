"""Exact bounds of kernels against a conic program, gradients against differences, and orders that must hold."""

import warnings

import numpy as np
import pytest

import mixbandit as mb
from tests.helpers.kernels import CASES, Conic, matrix, mixture_of, problem, radius

heavy = pytest.mark.heavy
SEEDS = [*range(30), *(pytest.param(seed, marks=heavy) for seed in range(30, 330))]


@pytest.mark.parametrize("seed", SEEDS)
def test_exact_bounds_are_those_of_a_conic_program(seed):
    p = problem(seed)
    cs, by_hand = p.sequence, radius(p)
    if by_hand is not None:
        # Eigenvalues that rounding hides count as much as they may.
        hidden = 1e-14 * float(p.weights**2 @ matrix(p.kernel, p.actions).diagonal()) / cs.alpha0
        assert (1.0 - 1e-6) * by_hand <= cs.radius <= (1.0 + 1e-6 + hidden) * by_hand
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        program = Conic(p, cs.radius if by_hand is None else by_hand)
        upper = program.upper()
        lower = None if upper is None else -program.upper(sign=-1.0)
    assert cs.is_empty == (upper is None)
    if upper is None:
        with pytest.raises(mb.AssumptionsRefuted):
            cs.upper(p.queries)
        return
    solved = np.isfinite(upper) & np.isfinite(lower)
    assert solved.mean() >= 0.5
    np.testing.assert_array_equal(cs.upper(p.queries)[p.reach == 0.0], 0.0)
    solved &= p.reach > 0.0
    apart = np.abs(np.stack((cs.upper(p.queries) - upper, cs.lower(p.queries) - lower)))[:, solved]
    assert (apart <= 1e-5 * p.reach[solved]).all()


def instances(n, **options):
    found = [problem(1000 + seed, refuted=False, **options) for seed in range(n)]
    return [p for p in found if not p.sequence.is_empty]


def test_more_work_gives_tighter_bounds():
    """CMM ≤ DMM ≤ AMM at every multiplier of the list, and AMM ≤ AY-GP-UCB at α = σ²/c."""
    for p in instances(40):
        cs, queries = p.sequence, p.queries
        alphas = [cs.alpha0, 10 * cs.alpha0, 0.1 * cs.alpha0]
        exact, best = cs.upper(queries), cs.upper(queries, alpha=alphas)
        # Exact bounds round up what may lie outside the span of what was seen.
        slack = 1e-6 * (p.reach + np.abs(best))
        assert (exact <= best + slack).all()
        assert (cs.lower(queries) >= cs.lower(queries, alpha=alphas) - slack).all()
        each = np.array([cs.upper(queries, alpha=alpha) for alpha in alphas])
        np.testing.assert_allclose(best, each.min(axis=0), rtol=1e-9, atol=1e-9 * p.reach.max())
        if type(p.mixture) in (mb.Standard, mb.Scaled):
            rival = mb.OFULSequence(p.kernel, **p.settings, alpha=p.sigma**2 / p.mixture.c)
            rival.update(p.actions, p.rewards, sigma=p.levels)
            half = each[0] - 0.5 * (each[0] + cs.lower(queries, alpha=cs.alpha0))
            wider = rival.upper(queries) - 0.5 * (rival.upper(queries) + rival.lower(queries))
            assert (half <= wider + slack).all()


# Where they have derivatives, and no finite differences of their own.
SMOOTH = [name for name in CASES if name not in ("matern 1/2", "scikit-learn", "long", "huge variance")]


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_are_differences(name):
    rng = np.random.default_rng(3)
    kernel, other = CASES[name], mb.RBF(1.3)
    actions, queries = rng.uniform(size=(8, 5)), rng.uniform(size=(3, 5))
    size = np.sqrt(matrix(kernel, actions).diagonal().max())
    rewards = size * 0.3 * rng.normal(size=8)
    for mixture in ("standard", "grid"):
        settings = {"sigma": 0.3 * size, "norm_bound": 2.0, "delta": 0.05, "mixture": mixture_of(mixture)}
        for cs in (mb.KernelMixture(kernel, **settings), mb.KernelMixture([kernel, other], **settings)):
            cs.update(actions, rewards)
            for alpha in (None, cs.alpha0, 3 * cs.alpha0, [cs.alpha0, 5 * cs.alpha0]):
                found = cs.support(queries, alpha=alpha)
                assert found.theta is None
                np.testing.assert_allclose(found.value, cs.upper(queries, alpha=alpha), rtol=1e-9)
                slopes = differences(lambda x, cs=cs, alpha=alpha: cs.upper(x, alpha=alpha), queries)
                np.testing.assert_allclose(found.grad, slopes, rtol=1e-3, atol=1e-3 * np.abs(slopes).max())


def differences(value, rows, step=1e-4):
    out = np.empty(rows.shape)
    for i in range(rows.shape[1]):
        move = step * np.eye(rows.shape[1])[i]
        out[:, i] = (value(rows + move) - value(rows - move)) / (2 * step)
    return out


@pytest.mark.parametrize("several", [False, True])
def test_gradients_of_differences_of_actions(several):
    rng = np.random.default_rng(4)
    kernel = [mb.RBF(0.5), mb.Matern(2.5, 0.8)] if several else mb.RBF(0.5)
    cs = mb.KernelMixture(kernel, sigma=0.2, norm_bound=2.0).update(rng.uniform(size=(9, 2)), rng.normal(size=9) / 3)
    moment, own = cs.moment, rng.uniform(size=(1, 2))
    queries = rng.uniform(size=(5, 2))

    def best(rows, sets=moment.exact):
        return sets.maximum(moment.directions(rows) - moment.directions(own))

    for sets in (moment.exact, moment.closed_form, moment.at((cs.alpha0, 1.0))):
        directions, pullback = moment.model.linearised(queries)
        found = sets.support(directions - moment.directions(own))
        np.testing.assert_allclose(found.value, best(queries, sets), rtol=1e-9)
        slopes = differences(lambda rows, sets=sets: best(rows, sets), queries)
        np.testing.assert_allclose(pullback(found.points), slopes, rtol=1e-4, atol=1e-5)
        # Never more than the difference of the two bounds, and nothing for the action itself.
        apart = sets.maximum(moment.directions(queries)) + sets.maximum(-moment.directions(own))
        assert (found.value <= apart + 1e-9).all()
        assert best(own, sets) == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("factor", [1e-3, 7.0, 1e4])
def test_units_do_not_matter(factor):
    """Rewards, σ and B in other units; a kernel of another variance with B and c in its units."""
    for p in instances(15, mixture="scaled", most=12):
        cs, c = p.sequence, p.mixture.c
        settings = {"sigma": factor * p.sigma, "norm_bound": factor * p.norm_bound, "delta": p.delta}
        # c is the square of a function's norm.
        other = mb.KernelMixture(p.kernel, **settings, mixture=mb.Scaled(factor**2 * c))
        other.update(p.actions, factor * p.rewards, sigma=None if p.levels is None else factor * p.levels)
        slack = 1e-7 * p.reach.max()
        for alpha, scaled in ((None, None), (cs.alpha0, other.alpha0)):
            expected = cs.upper(p.queries, alpha=alpha)
            np.testing.assert_allclose(other.upper(p.queries, scaled) / factor, expected, rtol=1e-7, atol=slack)
        stretched = mb.KernelMixture(
            mb.SumKernel([p.kernel]) * factor if isinstance(p.kernel, mb.Kernel) else factor * p.kernel,
            sigma=p.sigma, norm_bound=p.norm_bound / np.sqrt(factor), delta=p.delta, mixture=mb.Scaled(c / factor),
        )  # fmt: skip
        stretched.update(p.actions, p.rewards, sigma=p.levels)
        np.testing.assert_allclose(stretched.upper(p.queries), cs.upper(p.queries), rtol=1e-7, atol=slack)


def test_the_order_of_rows_does_not_matter():
    for p in instances(15, mixture="grid"):
        turned = np.random.default_rng(0).permutation(len(p.rewards))
        other = mb.KernelMixture(p.kernel, **p.settings, mixture=p.mixture)
        levels = None if p.levels is None else p.levels[turned]
        other.update(p.actions[turned], p.rewards[turned], sigma=levels) if len(turned) else None
        np.testing.assert_allclose(
            other.upper(p.queries), p.sequence.upper(p.queries), rtol=1e-7, atol=1e-7 * p.reach.max()
        )
