"""The same kernel bounds by different routes: one reward at a time, at once, merged, stored; several kernels."""

import gc
import pickle

import numpy as np
import pandas as pd
import pytest

import mixbandit as mb
from mixbandit.data import Observations
from mixbandit.data.observations import KernelSpectrum
from mixbandit.sequences.refutation import NoiseTest, scales_of
from mixbandit.sets import RidgeEllipsoid
from tests.helpers.kernels import matrix, mixture_of, problem

RNG = np.random.default_rng(8)
ACTIONS = np.vstack((RNG.uniform(size=(20, 2)), RNG.uniform(size=(5, 2)).repeat(3, axis=0)))
REWARDS = np.sin(4 * ACTIONS[:, 0]) / 2 + 0.1 * RNG.normal(size=35)
PROBES = np.vstack((RNG.uniform(size=(6, 2)), ACTIONS[:2]))
LEVELS = np.where(np.arange(35) % 3, 0.1, 0.3)
SETTINGS = {"sigma": 0.1, "norm_bound": 3.0, "delta": 0.05}
ONE, SEVERAL = mb.RBF(0.4), [mb.RBF(0.4), mb.Matern(2.5, 0.7, 2.0)]


def kinds():
    for mixture in ("standard", "scaled", "grid", "gaussian", "adaptive"):
        for kernel, name in ((ONE, "one"), (SEVERAL, "several")):
            yield pytest.param(
                lambda kernel=kernel, mixture=mixture: mb.KernelMixture(
                    kernel, **SETTINGS, mixture=mixture_of(mixture, 2.0)
                ),
                id=f"{mixture}, {name}",
            )
    yield pytest.param(lambda: mb.OFULSequence(ONE, **SETTINGS), id="oful")
    yield pytest.param(lambda: mb.UnknownNoise(ONE, norm_bound=3.0, delta=0.05), id="unknown noise")
    yield pytest.param(
        lambda: mb.BoundedMixture(ONE, norm_bound=3.0, delta=0.05, reward_range=(-2.0, 2.0), samples=400), id="bounded"
    )
    yield pytest.param(lambda: mb.KernelMixture(ONE, **SETTINGS, misspecification=0.02), id="misspecified")


on_every_kind = pytest.mark.parametrize("make", list(kinds()))


def bounds(cs, alphas=True):
    found = [cs.lower(PROBES), cs.upper(PROBES)]
    if alphas:
        found += [cs.lower(PROBES, cs.alpha0), cs.upper(PROBES, cs.alpha0)]
    return np.array(found)


@on_every_kind
def test_one_reward_at_a_time_or_all_at_once(make):
    whole, grown = make().update(ACTIONS, REWARDS), make()
    for i, (action, reward) in enumerate(zip(ACTIONS, REWARDS, strict=True)):
        grown.update(action, reward)
        if i % 5 == 0:
            bounds(grown)
    np.testing.assert_allclose(bounds(grown), bounds(whole), rtol=1e-9)
    # Exact bounds first, or closed forms first: whatever was asked before.
    np.testing.assert_allclose(make().update(ACTIONS, REWARDS).upper(PROBES), whole.upper(PROBES), rtol=1e-9)


@on_every_kind
def test_copies_part_ways(make):
    cs = make().update(ACTIONS[:10], REWARDS[:10])
    before, one, other = bounds(cs), cs.copy(), cs.copy()
    one.update(ACTIONS[10:20], REWARDS[10:20])
    other.update(ACTIONS[20:], REWARDS[20:])
    first, second = bounds(one), bounds(other)
    np.testing.assert_array_equal(bounds(cs), before)
    apart = make().update(ACTIONS[:10], REWARDS[:10]).update(ACTIONS[20:], REWARDS[20:])
    np.testing.assert_allclose(second, bounds(apart), rtol=1e-9)
    np.testing.assert_array_equal(bounds(one), first)
    np.testing.assert_allclose(first, bounds(make().update(ACTIONS[:20], REWARDS[:20])), rtol=1e-9)


@on_every_kind
def test_pickles_and_states_go_on(make):
    cs = make().update(ACTIONS[:20], REWARDS[:20])
    bounds(cs)
    again = pickle.loads(pickle.dumps(cs))
    stored = type(cs).from_state_dict(cs.state_dict())
    fresh = make().update(ACTIONS[:20], REWARDS[:20])
    for each in (cs, again, stored, fresh):
        each.update(ACTIONS[20:], REWARDS[20:])
    np.testing.assert_array_equal(bounds(stored), bounds(fresh))
    np.testing.assert_allclose(bounds(again), bounds(cs), rtol=1e-9)
    np.testing.assert_allclose(bounds(stored), bounds(cs), rtol=1e-9)
    empty = type(cs).from_state_dict(make().state_dict())
    np.testing.assert_array_equal(empty.upper(PROBES), make().upper(PROBES))


@on_every_kind
def test_damaged_states_are_refused(make):
    cs = make().update(ACTIONS[:12], REWARDS[:12])
    state = cs.state_dict()
    name = "kernels" if "kernels" in state else "kernel"
    for missing in (name, "observations"):
        with pytest.raises(mb.DamagedState):
            type(cs).from_state_dict({key: value for key, value in state.items() if key != missing})
    seen = state["observations"]
    spoilt = [
        {"actions": seen["actions"][:-1]},
        {"actions": np.full((12, 2), np.nan)},
        {"actions": np.ones((12, 3))},
        {"rewards": np.full(12, np.inf)},
        {"rewards": np.full(12, 1e60)},
        {"rewards": "text"},
        {"weights": -np.ones(12)},
        {"weights": np.ones(3)},
    ]
    for each in spoilt:
        with pytest.raises(mb.MixbanditError):
            type(cs).from_state_dict(state | {"observations": seen | each})
    for damaged in (None, "text", 3, {}, [], [3], {"type": "RBF"}):
        with pytest.raises(mb.MixbanditError):
            type(cs).from_state_dict(state | {name: damaged})
    for width in (3, 0, -1, "2"):
        with pytest.raises(mb.MixbanditError):
            type(cs).from_state_dict(state | {"dim_in": width})


MERGEABLE = [kind for kind in kinds() if not any(word in kind.id for word in ("gaussian", "adaptive", "bounded"))]


@pytest.mark.parametrize("make", MERGEABLE)
def test_merging_is_one_pass(make):
    one, other = make().update(ACTIONS[:15], REWARDS[:15]), make().update(ACTIONS[15:], REWARDS[15:])
    whole = bounds(make().update(ACTIONS, REWARDS))
    bounds(one)
    np.testing.assert_allclose(bounds(one.merge(other)), whole, rtol=1e-9)
    np.testing.assert_allclose(bounds(other.merge(one)), whole, rtol=1e-7)
    # With one that has seen nothing yet, not even how long actions are.
    assert make().dim_in is None
    for merged in (one.merge(make()), make().merge(one)):
        assert merged.dim_in == 2
        np.testing.assert_allclose(bounds(merged), bounds(one), rtol=1e-9)
        with pytest.raises(mb.InvalidInput):
            merged.update([[1.0, 2.0, 3.0]], [0.0])


def test_what_does_not_fit_is_not_merged():
    cs = mb.KernelMixture(ONE, **SETTINGS).update(ACTIONS, REWARDS)
    others = [
        mb.KernelMixture(mb.RBF(0.5), **SETTINGS),
        mb.KernelMixture(SEVERAL, **SETTINGS),
        mb.KernelMixture(ONE, **(SETTINGS | {"sigma": 0.2})),
        mb.KernelMixture(ONE, **SETTINGS, mixture=mb.Scaled(2.0)),
        mb.KernelMixture(ONE, **SETTINGS, dim_in=3),
        mb.MartingaleMixture(ONE, **SETTINGS),
    ]
    for other in others:
        with pytest.raises(mb.NotMergeable):
            cs.merge(other)
        with pytest.raises(mb.NotMergeable):
            other.merge(cs)
    for learning in (mb.Adaptive(), mb.Gaussian(0.0, mb.RBF())):
        other = mb.KernelMixture(SEVERAL, **SETTINGS, mixture=learning)
        with pytest.raises(mb.NotMergeable, match="order"):
            other.merge(other)


def test_closed_forms_do_not_need_the_decomposition():
    """Ridge regression and the decomposition give the same closed form; only the former is quick."""
    for mixture in ("standard", "grid", "adaptive"):
        for levels in (None, LEVELS):
            quick = mb.KernelMixture(ONE, **SETTINGS, mixture=mixture_of(mixture)).update(ACTIONS, REWARDS, levels)
            for alpha in (quick.alpha0, 0.3, 2e-3):
                found = quick.moment.rule.outer(quick.moment.data, alpha)
                assert isinstance(found, RidgeEllipsoid)
                slow = mb.KernelMixture(ONE, **SETTINGS, mixture=mixture_of(mixture)).update(ACTIONS, REWARDS, levels)
                ball = slow.moment.rule.set(slow.moment.data)
                expected = ball.closed_form(alpha)
                directions = slow.moment.directions(PROBES)
                np.testing.assert_allclose(found.maximum(directions), expected.maximum(directions), rtol=1e-8)
                np.testing.assert_allclose(-found.maximum(-directions), -expected.maximum(-directions), rtol=1e-8)
                assert found.radius == pytest.approx(expected.radius, rel=1e-8)


def by_hand(cs, members, probes):
    """The largest bounds of the members that are left, with R from all of them."""
    sigma, t = cs.sigma, len(REWARDS)
    costs = []
    for kernel in members:
        S = np.eye(t) + matrix(kernel, ACTIONS) / sigma**2
        costs.append(REWARDS @ np.linalg.solve(S, REWARDS) + sigma**2 * np.linalg.slogdet(S)[1])
    pooled = -2 * sigma**2 * (np.logaddexp.reduce(-np.array(costs) / (2 * sigma**2)) - np.log(len(members)))
    squared = pooled + 2 * sigma**2 * np.log(1 / cs.delta)
    ends = []
    for kernel, cost in zip(members, costs, strict=True):
        # A level at which the member alone has the same radius.
        level = np.exp(-(squared - cost) / (2 * sigma**2))
        if not 1e-190 < level < 1.0:
            continue
        alone = mb.KernelMixture(kernel, sigma=sigma, norm_bound=cs.norm_bound, delta=level).update(ACTIONS, REWARDS)
        if not alone.is_empty:
            ends.append((alone.lower(probes), alone.upper(probes)))
    lower, upper = np.array(ends).transpose(1, 0, 2)
    return np.sqrt(squared), lower.min(axis=0), upper.max(axis=0), len(ends)


def test_bounds_of_several_kernels_are_the_loosest_of_those_left():
    # A long length-scale cannot follow the function.
    members = [mb.RBF(0.4), mb.Matern(2.5, 0.7, 2.0), mb.RBF(50.0)]
    cs = mb.KernelMixture(members, **SETTINGS).update(ACTIONS, REWARDS)
    radius, lower, upper, left = by_hand(cs, members, PROBES)
    assert cs.radius == pytest.approx(radius, rel=1e-7)
    np.testing.assert_allclose(cs.lower(PROBES), lower, rtol=1e-6)
    np.testing.assert_allclose(cs.upper(PROBES), upper, rtol=1e-6)
    assert left == len(cs.possible_kernels) == 2
    assert cs.possible_kernels == tuple(members[:2])
    assert (cs.upper(PROBES) <= cs.upper(PROBES, alpha=cs.alpha0) + 1e-9).all()
    assert "RBF(lengthscale=50.0" in repr(cs)


def test_a_refuted_kernel_says_nothing_any_more():
    """A linear function does not fit; far away its bounds would be by far the loosest."""
    cs = mb.KernelMixture([ONE, mb.LinearKernel()], **SETTINGS)
    far = np.array([[8.0, 8.0]])
    np.testing.assert_allclose(cs.upper(far), 3.0 * np.sqrt(128.0))
    cs.update(ACTIONS, REWARDS)
    assert cs.possible_kernels == (ONE,)
    for alpha in (None, cs.alpha0, [cs.alpha0, 1.0]):
        reach = 3.0 if alpha is None else 10.0
        assert -reach <= cs.lower(far, alpha)[0] <= cs.upper(far, alpha)[0] <= reach


def test_one_kernel_in_a_list_is_that_kernel():
    alone = mb.KernelMixture(ONE, **SETTINGS).update(ACTIONS, REWARDS, sigma=LEVELS)
    listed = mb.KernelMixture([ONE], **SETTINGS).update(ACTIONS, REWARDS, sigma=LEVELS)
    np.testing.assert_allclose(bounds(listed), bounds(alone), rtol=1e-7)
    assert not listed.is_refuted


def test_all_kernels_refuted():
    cs = mb.KernelMixture([mb.RBF(20.0), mb.RBF(50.0)], **SETTINGS).update(ACTIONS, 5 * REWARDS)
    assert cs.is_empty
    assert cs.possible_kernels == ()
    with pytest.raises(mb.AssumptionsRefuted):
        cs.upper(PROBES)
    going_on = mb.KernelMixture([mb.RBF(20.0), mb.RBF(50.0)], **SETTINGS, on_empty="inflate")
    going_on.update(ACTIONS, 5 * REWARDS)
    with pytest.warns(mb.AssumptionsRefutedWarning):
        assert np.isfinite(going_on.upper(PROBES)).all()
    with pytest.warns(mb.AssumptionsRefutedWarning):
        assert going_on.support(PROBES).inflated


def test_more_multipliers_and_kernels_than_numpy_chooses_from():
    cs = mb.KernelMixture(ONE, **SETTINGS).update(ACTIONS, REWARDS)
    alphas = list(np.geomspace(1e-3, 10.0, 100))
    np.testing.assert_allclose(cs.support(PROBES, alpha=alphas).value, cs.upper(PROBES, alpha=alphas), rtol=1e-9)
    many = mb.KernelMixture([mb.RBF(scale) for scale in np.linspace(0.3, 1.0, 70)], **SETTINGS)
    many.update(ACTIONS[:5], REWARDS[:5])
    np.testing.assert_allclose(many.support(PROBES).value, many.upper(PROBES), rtol=1e-7)


@pytest.mark.parametrize("kernel", [ONE, SEVERAL], ids=["one", "several"])
def test_the_past_is_forgotten(kernel):
    """Neither the data nor the sets of earlier moments stay alive, whatever was asked of them."""

    def alive():
        gc.collect()
        return sum(type(each) is Observations for each in gc.get_objects())

    before, cs = alive(), mb.KernelMixture(kernel, **SETTINGS, mixture=mb.Grid([0.1, 1.0]))
    for i in range(30):
        cs.update(ACTIONS[i], REWARDS[i])
        bounds(cs)
        cs.upper(PROBES, alpha=0.1 + 0.01 * i)
    assert alive() - before <= 8
    assert len(pickle.dumps(cs)) < 100_000


def test_the_multipliers_of_the_past_are_forgotten():
    def kept():
        gc.collect()
        return sum(type(each).__name__ == "BlockCholesky" for each in gc.get_objects())

    before, cs = kept(), mb.KernelMixture(ONE, **SETTINGS)
    for i in range(30):
        cs.update(ACTIONS[i], REWARDS[i])
        for k in range(6):
            cs.upper(PROBES, alpha=0.1 + 0.001 * (6 * i + k))
    assert kept() - before <= 70
    for k in range(100):  # at one moment
        cs.upper(PROBES, alpha=1.0 + k)
    assert kept() - before <= 70


def test_several_kernels_learn_in_quadratic_time():
    """What a pool computed for one moment is extended at the next one, not made again."""
    made = []

    class Counted(mb.RBF):
        def matrix(self, A, B):
            made.append(len(A) * len(B))
            return super().matrix(A, B)

    cs = mb.KernelMixture([Counted(0.4), Counted(0.6)], **SETTINGS, mixture=mb.Grid([0.1, 1.0, 10.0]))
    for i in range(35):
        made.clear()
        cs.update(ACTIONS[i], REWARDS[i])
        cs.upper(PROBES, alpha=0.3)
    # Up to 12 ridge regressions at two kernels, each a new row; a whole matrix would be 35 times as much.
    assert sum(made) <= 2 * 16 * 35 + 2 * 35 * len(PROBES)


def test_inputs_of_any_type_and_length():
    cs = mb.KernelMixture(ONE, **SETTINGS)
    assert cs.dim_in is None
    np.testing.assert_allclose(cs.upper(PROBES), 3.0)
    np.testing.assert_allclose(cs.upper(np.ones((2, 7))), 3.0)
    cs.update(pd.DataFrame(ACTIONS, columns=["x", "y"]), pd.Series(REWARDS))
    assert cs.dim_in == 2
    expected = cs.upper(PROBES)
    np.testing.assert_array_equal(cs.upper(pd.DataFrame(PROBES)), expected)
    lists = mb.KernelMixture(ONE, **SETTINGS).update(ACTIONS.tolist(), REWARDS.tolist())
    np.testing.assert_array_equal(lists.upper(PROBES.tolist()), expected)
    single = ACTIONS.astype(np.float32)
    narrow = mb.KernelMixture(ONE, **SETTINGS).update(single, REWARDS)
    np.testing.assert_array_equal(
        narrow.upper(PROBES), mb.KernelMixture(ONE, **SETTINGS).update(single.astype(float), REWARDS).upper(PROBES)
    )
    for bad in ([[1.0, 2.0, 3.0]], np.ones((2, 2, 2)), [], [[]], [["a", "b"]], [[np.nan, 0.0]]):
        before = cs.state_dict()
        with pytest.raises(mb.InvalidInput):
            cs.update(bad, [0.0])
        with pytest.raises(mb.InvalidInput):
            cs.upper(bad)
        assert repr(before) == repr(cs.state_dict())
    number = mb.KernelMixture(ONE, **SETTINGS).update(0.3, 1.0)
    assert number.dim_in == 1
    assert number.upper([0.3, 0.4, 0.5]).shape == (3,)


def test_negative_zero_is_zero():
    rows = np.array([[0.0, 1.0], [-0.0, 1.0], [0.0, 1.0]])
    cs = mb.KernelMixture(ONE, **SETTINGS).update(rows, [0.1, 0.2, 0.0])
    other = mb.KernelMixture(ONE, **SETTINGS).update(np.abs(rows), [0.1, 0.2, 0.0])
    np.testing.assert_array_equal(bounds(cs), bounds(other))
    np.testing.assert_array_equal(cs.upper([[-0.0, 1.0]]), cs.upper([[0.0, 1.0]]))


NEEDS_COLUMNS = [mb.OverlapKernel([2, 3, 4]), mb.RBF(0.3).on([0, 5]), [mb.RBF(0.3), mb.RBF(0.3).on([4])]]


@pytest.mark.parametrize("kernel", NEEDS_COLUMNS)
def test_rows_that_are_too_short_for_the_kernel_are_named(kernel):
    for ask in (
        lambda cs: cs.upper(PROBES),
        lambda cs: cs.update(ACTIONS, REWARDS),
        lambda cs: cs.support(PROBES),
    ):
        with pytest.raises(mb.InvalidInput, match="length at least"):
            ask(mb.KernelMixture(kernel, **SETTINGS))
    with pytest.raises(mb.InvalidInput, match="length at least"):
        mb.KernelMixture(kernel, **SETTINGS, dim_in=2)


@pytest.mark.parametrize("kernel", [mb.RBF(0.3).on([0, 1]), mb.OverlapKernel([0, 1, 2]) * mb.RBF(0.5).on([3])])
def test_without_data_nothing_but_the_norm_bound_counts(kernel):
    """Also while the kernel is all that says how long rows must be."""
    rows = np.random.default_rng(0).uniform(size=(4, 6))
    cs = mb.KernelMixture(kernel, **SETTINGS)
    np.testing.assert_allclose(cs.upper(rows), 3.0 * np.sqrt(kernel(rows, rows).diagonal()))
    assert cs.support(rows).grad.shape == (4, 6)
    assert np.isfinite(cs.support(rows, alpha=1.0).grad).all()


def test_values_beyond_all_floats_are_refused_without_a_warning():
    cs = mb.KernelMixture(mb.PolynomialKernel(50), **SETTINGS)
    with pytest.raises(mb.InvalidInput, match="the kernel's values"):
        cs.update([[1e40, 1.0]], [0.0])
    cs.update([[1.0, 1.0]], [0.0])
    for ask in (cs.upper, cs.lower, cs.support):
        with pytest.raises(mb.InvalidInput, match="the kernel's values"):
            ask([[1e20, 1.0]])


def test_the_radius_of_a_closed_form_takes_one_multiplier():
    cs = mb.KernelMixture(ONE, **SETTINGS).update(ACTIONS, REWARDS)
    assert cs.analytic_radius(0.3) > 0.0
    with pytest.raises(mb.InvalidInput, match="alpha"):
        cs.analytic_radius([0.1, 0.2])


def test_lists_of_multipliers_are_checked():
    cs = mb.KernelMixture(ONE, **SETTINGS).update(ACTIONS, REWARDS)
    nested = 0.1
    for _ in range(70):  # deeper than numpy goes
        nested = [nested]
    for bad in ([], [0.1, -1.0], [0.1, "x"], [[0.1]], nested, np.ones((2, 2)), np.empty(0)):
        with pytest.raises(mb.InvalidInput, match="alpha"):
            cs.upper(PROBES, alpha=bad)
    np.testing.assert_array_equal(cs.upper(PROBES, alpha=np.array([0.1, 1.0])), cs.upper(PROBES, alpha=(0.1, 1.0)))


DEGENERATE = {
    "rewards all equal": (ONE, ACTIONS, np.full(35, 0.4)),
    "one action a thousand times": (ONE, np.full((1000, 2), 0.3), 0.1 * np.random.default_rng(0).normal(size=1000)),
    "two actions almost the same": (ONE, np.array([[0.3, 0.3], [0.3 + 1e-9, 0.3]]), np.array([0.1, -0.1])),
    "a singular matrix": (mb.RBF(1e4), ACTIONS, 0.1 * np.random.default_rng(0).normal(size=35)),
    "a constant kernel": (mb.ConstantKernel(), ACTIONS, 0.1 * np.random.default_rng(0).normal(size=35)),
    "the origin of a linear kernel": (mb.LinearKernel(), np.zeros((3, 2)), np.array([0.1, -0.1, 0.0])),
    "tiny variance": (mb.RBF(0.4, 1e-8), ACTIONS, REWARDS * 1e-4),
    "huge variance": (mb.RBF(0.4, 1e8), ACTIONS, REWARDS * 1e4),
}


@pytest.mark.parametrize("case", DEGENERATE)
@pytest.mark.parametrize("mixture", ["standard", "grid", "adaptive"])
def test_degenerate_data_give_ordered_finite_bounds(case, mixture):
    kernel, actions, rewards = DEGENERATE[case]
    if mixture == "adaptive":
        actions, rewards = actions[:200], rewards[:200]
    scale = float(np.sqrt(max(matrix(kernel, actions).diagonal().max(), 1.0 if "origin" in case else 0.0)))
    sigma = 0.1 * scale if "variance" in case else 0.1
    for given in (kernel, [kernel, kernel * 2.0]):
        cs = mb.KernelMixture(given, sigma=sigma, norm_bound=3.0, mixture=mixture_of(mixture)).update(actions, rewards)
        probes = np.vstack((PROBES, actions[:3], np.zeros((1, 2))))
        assert not cs.is_empty
        for alpha in (None, cs.alpha0, [cs.alpha0, 1.0]):
            lower, upper = cs.lower(probes, alpha), cs.upper(probes, alpha)
            assert np.isfinite(lower).all()
            assert np.isfinite(upper).all()
            assert (lower <= upper + 1e-9 * scale).all()
            assert np.isfinite(cs.support(probes, alpha).grad).all()
        # What was observed is believed, up to the noise.
        means = np.array([rewards[(actions == row).all(axis=1)].mean() for row in actions[:3]])
        slack = 0.3 * scale if "almost" in case or "singular" in case or "constant" in case else 1e-9 * scale
        if "variance" not in case:
            assert (cs.lower(actions[:3]) <= means + slack).all()
            assert (cs.upper(actions[:3]) >= means - slack).all()
        if "origin" in case:
            np.testing.assert_array_equal(cs.upper(np.zeros((1, 2))), 0.0)


def test_one_action_many_times_is_its_mean():
    kernel, actions, rewards = DEGENERATE["one action a thousand times"]
    cs = mb.KernelMixture(kernel, **SETTINGS).update(actions, rewards)
    plain = mb.MartingaleMixture(1, **SETTINGS).update(np.ones((1000, 1)), rewards)
    for alpha in (None, cs.alpha0):
        assert cs.upper(actions[0], alpha)[0] == pytest.approx(plain.upper([1.0], alpha)[0], abs=1e-6)
        assert cs.lower(actions[0], alpha)[0] == pytest.approx(plain.lower([1.0], alpha)[0], abs=1e-6)


def test_directions_that_outlive_the_data_they_met():
    """The same directions asked of one moment after the other, forth and back: caches must not mix them up."""
    for seed in range(6):
        p = problem(seed, name="rbf", mixture="standard", refuted=False)
        moments = [mb.KernelMixture(p.kernel, **p.settings).moment]
        for action, reward in zip(p.actions, p.rewards, strict=True):
            moments.append(moments[-1].after(action[None], np.array([reward])))
        directions = moments[0].directions(p.queries)
        part, own = directions[1:3], directions[0]
        for i in np.random.default_rng(seed).permutation(len(moments))[:15]:
            fresh = moments[i].directions(p.queries)
            for sets in (moments[i].exact, moments[i].closed_form):
                np.testing.assert_allclose(sets.maximum(directions), sets.maximum(fresh), rtol=1e-12)
                np.testing.assert_allclose(sets.maximum(-directions), sets.maximum(-fresh), rtol=1e-12)
                np.testing.assert_allclose(sets.maximum(part), sets.maximum(fresh)[1:3], rtol=1e-9)
                expected = sets.maximum(fresh[1:3] - fresh[0])
                assert (sets.maximum(part) != sets.maximum(part - own)).any()
                np.testing.assert_allclose(sets.maximum(part - own), expected, rtol=1e-9)
                np.testing.assert_allclose(sets.maximum(part - own), expected, rtol=1e-9)


@pytest.mark.parametrize("kernel", [ONE, SEVERAL], ids=["one", "several"])
def test_closed_forms_and_their_tests_take_no_decomposition(kernel, monkeypatch):
    """O(t²) a round, tests of the assumptions included, while these hold."""
    made = []
    start = KernelSpectrum.__init__
    monkeypatch.setattr(KernelSpectrum, "__init__", lambda self, *parts: (made.append(1), start(self, *parts))[1])
    rng = np.random.default_rng(2)
    rivals = [mb.KernelMixture(kernel, **SETTINGS)]
    if kernel is ONE:
        rivals.append(mb.OFULSequence(kernel, **SETTINGS))
    for cs in rivals:
        for _ in range(60):
            action = rng.uniform(size=2)
            cs.update(action, 0.5 * np.sin(4 * action[0]) + 0.1 * rng.normal())
            cs.upper(PROBES, alpha=cs.alpha0)
            assert not cs.is_refuted
    assert len(made) <= 5


@pytest.mark.parametrize("size", [0.1, 0.2, 0.35, 1.0])
def test_the_shortcut_hides_no_refutation(size):
    """Asked before or after the set was made, which decides by which route the noise is tested."""
    rng = np.random.default_rng(6)
    for seed in range(5):
        rows = rng.uniform(size=(40, 2)) if seed % 2 else np.repeat(rng.uniform(size=(10, 2)), 4, axis=0)
        rewards = 0.5 * np.sin(4 * rows[:, 0]) + size * rng.normal(size=40)
        for make in (lambda: mb.KernelMixture(ONE, **SETTINGS), lambda: mb.OFULSequence(ONE, **SETTINGS)):
            quick, slow = make().update(rows, rewards), make().update(rows, rewards)
            rule, data = slow.moment.rule, slow.moment.data
            noise = NoiseTest(0.1, 0.05, 3.0, scales_of(3.0, None))
            rule.set(data)
            expected = noise.refutes(data.spectrum, data.count)
            assert quick.noise_refuted == slow.noise_refuted == expected
