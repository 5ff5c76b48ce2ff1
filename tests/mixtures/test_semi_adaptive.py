"""The semi-adaptive mixture against dense matrices, one reward at a time, and against the truth."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

import mixbandit as mb
from mixbandit.mixtures import semi_adaptive
from mixbandit.models import as_model

SIGMA, DELTA = 0.3, 0.05
KERNEL = mb.ConstantKernel(1.0) + mb.RBF(0.4)
PHI = mb.RandomFourier(2, 6, rng=3)
LEVELS = [0.5**level for level in range(7)]


def reference(K, rewards, c, sigma=SIGMA, levels=None):
    """Forecasts (m, s², σ̂²) in the units of rewards and the cost, from the definition: no factor, nothing updated.

    With known noise levels σ_k, rows of K and rewards are multiplied by σ/σ_k first.
    """
    w = np.ones(len(rewards)) if levels is None else sigma / levels
    K, r = c * w[:, None] * w * K, w * rewards
    noise, errors, weight, cost, forecasts = 1.0, 0.0, 0.0, 0.0, []
    for j in range(len(r)):
        gain = np.linalg.solve(K[:j, :j] + noise * sigma**2 * np.eye(j), K[:j, j])
        mean, variance = gain @ r[:j], K[j, j] - gain @ K[:j, j]
        forecasts.append((mean, variance, noise * sigma**2))
        error = r[j] - mean
        predicted = max(0.0, variance + noise * sigma**2 - sigma**2)
        v = 1 + predicted / sigma**2
        cost += error**2 / v + sigma**2 * math.log(v)
        share = noise * sigma**2 / (variance + noise * sigma**2)
        errors, weight = errors + share**2 * error**2 / sigma**2, weight + share
        estimate = (2 + errors) / (2 + weight)
        if not 2**-0.75 <= estimate / noise <= 2**0.75:
            noise = min(LEVELS, key=lambda level: abs(math.log(level / estimate)))
    return np.array(forecasts).reshape(-1, 3), cost


def problem(seed, scatter=None):
    """Rewards of a smooth function that scatter as stated, or by this share of it."""
    rng = np.random.default_rng([6, seed])
    t = int(rng.integers(1, 60))
    actions = rng.uniform(size=(t, 2))
    if seed % 4 == 1:
        actions = actions[rng.integers(0, max(t // 3, 1), size=t)]
    share = [1.0, 0.4, 0.05, 0.0][seed % 4] if scatter is None else scatter
    rewards = 0.5 + 0.4 * np.sin(3 * actions[:, 0]) * actions[:, 1] + share * SIGMA * rng.normal(size=t)
    levels = SIGMA * 10.0 ** rng.uniform(-0.5, 0.5, size=t) if seed % 3 == 2 else None
    return actions, rewards, levels


def sequence(model, mixture, **stated):
    kind = mb.KernelMixture if isinstance(model, mb.Kernel) else mb.MartingaleMixture
    return kind(model, **{"sigma": SIGMA, "norm_bound": 5.0, "delta": DELTA, "mixture": mixture, **stated})


def cost_of(cs):
    return cs.radius**2 - 2 * cs.sigma**2 * math.log(1 / cs.delta)


def gram(model, actions):
    return model(actions, actions) if isinstance(model, mb.Kernel) else model(actions) @ model(actions).T


MODELS = {"kernel": KERNEL, "features": PHI}
model_of = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


@model_of
@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("c", [0.01, 0.1, 3.0])
def test_the_cost_is_that_of_the_definition(model, seed, c):
    actions, rewards, levels = problem(seed)
    cs = sequence(model, mb.SemiAdaptive(c)).update(actions, rewards, sigma=levels)
    expected = reference(gram(model, actions), rewards, c, levels=levels)[1]
    assert cost_of(cs) == pytest.approx(expected, rel=1e-8)
    assert cs.alpha0 == pytest.approx(SIGMA**2 / c)


@pytest.mark.parametrize("seed", range(8))
def test_with_another_kernel(seed):
    actions, rewards, levels = problem(seed)
    kernel = mb.Matern(2.5, 0.5, 2.0)
    expected = reference(kernel(actions, actions), rewards, 0.2, levels=levels)[1]
    for model in MODELS.values():
        for own in (kernel, kernel.__call__):
            cs = sequence(model, mb.SemiAdaptive(0.2, own)).update(actions, rewards, sigma=levels)
            assert cost_of(cs) == pytest.approx(expected, rel=1e-8)


def test_the_reference_uses_several_levels():
    """Else the tests above would say little."""
    used = set()
    for seed in range(24):
        actions, rewards, levels = problem(seed)
        used |= set(reference(KERNEL(actions, actions), rewards, 0.1, levels=levels)[0][:, 2] / SIGMA**2)
    assert {round(-math.log2(level)) for level in used} >= {0, 1, 2, 3}


@model_of
def test_at_the_stated_noise_it_is_scaled(model, monkeypatch):
    """Without an estimate, the forecasts are those of N(0, cΦΦᵀ), and so is their sum."""
    monkeypatch.setattr(semi_adaptive, "_START", 1e12)
    for seed in range(8):
        actions, rewards, levels = problem(seed)
        semi, scaled = (
            sequence(model, mixture).update(actions, rewards, sigma=levels)
            for mixture in (mb.SemiAdaptive(0.3), mb.Scaled(0.3))
        )
        assert semi.radius == pytest.approx(scaled.radius, rel=1e-9)


@model_of
def test_it_pays_where_rewards_scatter_less_than_stated(model):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        actions = rng.uniform(size=(200, 2))
        rewards = 0.4 + 0.1 * actions[:, 0] + 0.2 * SIGMA * rng.normal(size=200)
        semi, scaled = (
            sequence(model, mb.Grid([kind(c) for c in (0.01, 0.1, 1.0)])).update(actions, rewards)
            for kind in (mb.SemiAdaptive, mb.Scaled)
        )
        assert semi.radius < 0.85 * scaled.radius


def costs_along(model, actions, rewards, c=0.1):
    """The cost of every single reward."""
    cs = sequence(model, mb.SemiAdaptive(c))
    totals = [0.0, *(cost_of(cs.update(a, r)) for a, r in zip(actions, rewards, strict=True))]
    return np.diff(totals)


@model_of
def test_forecasts_do_not_know_their_reward_nor_later_ones(model):
    """The cost of reward j is (r_j − m)²/v + σ² ln v: three values of r_j give m and v, and the third must agree."""
    rng = np.random.default_rng(0)
    actions, rewards = rng.uniform(size=(30, 2)), 0.5 + 0.02 * rng.normal(size=30)
    base = costs_along(model, actions, rewards)
    forecasts = reference(gram(model, actions), rewards, 0.1)[0]
    for j in (0, 7, 29):
        mean, variance, noise = forecasts[j]
        v = max(1.0, (variance + noise) / SIGMA**2)
        for shift in (-5.0, 0.1, 3.0):
            changed = rewards.copy()
            changed[j] += shift
            found = costs_along(model, actions, changed)
            np.testing.assert_allclose(found[:j], base[:j], rtol=1e-9, atol=1e-13)
            assert found[j] == pytest.approx((changed[j] - mean) ** 2 / v + SIGMA**2 * math.log(v), rel=1e-8)


@model_of
def test_a_batch_is_one_reward_after_the_other_and_the_old_cost_stays(model):
    for seed in (2, 3, 6, 7):
        actions, rewards, levels = problem(seed)
        known = np.full(len(rewards), SIGMA) if levels is None else levels
        phi, start = PHI(actions), as_cost_of(model)
        at_once = start.learn(actions, phi, rewards, SIGMA / known)
        cost, moments = start, []
        for i in range(len(rewards)):
            moments.append((cost, cost.total(SimpleNamespace(derived={})), cost.state_dict()))
            # What is tried and dropped leaves no trace.
            cost.learn(actions[:2], phi[:2], np.array([9.0, -9.0]), None)
            cost = cost.learn(actions[[i]], phi[[i]], rewards[[i]], SIGMA / known[[i]])
        assert cost.total(SimpleNamespace(derived={})) == at_once.total(SimpleNamespace(derived={}))
        for before, total, state in moments:
            assert before.total(SimpleNamespace(derived={})) == total
            for name, value in before.state_dict().items():
                np.testing.assert_array_equal(value, state[name])


def as_cost_of(model, c=0.1):
    return mb.SemiAdaptive(c).cost(as_model(model, 2), SIGMA)


@model_of
@pytest.mark.parametrize("grid", [False, True])
def test_states_come_back_and_continue(model, grid):
    for seed in (0, 1, 2, 3):
        actions, rewards, levels = problem(seed)
        mixture = mb.Grid([mb.SemiAdaptive(0.1), mb.SemiAdaptive(1.0, mb.RBF())]) if grid else mb.SemiAdaptive(0.1)
        cs = sequence(model, mixture).update(actions, rewards, sigma=levels)
        again = type(cs).from_state_dict(cs.state_dict())
        assert repr(again.mixture) == repr(mixture)
        for each in (cs, again):
            each.update(actions, rewards + 0.01)
        assert again.radius == cs.radius


def damaged(state, changes):
    return {**state, "cost": {**state["cost"], **changes}}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"level": None}, "lacks 'level'"),
        ({"level": 7}, "level must be at most 6"),
        ({"level": 6}, "posterior|P must"),
        ({"scatter": None}, "lacks 'scatter'"),
        ({"scatter": np.array([1.0])}, "scatter must have shape"),
        ({"scatter": np.array([-1.0, 1.0])}, "scatter must not be negative"),
        ({"cost": 1e9}, "cost must fit"),
        ({"cost": None}, "lacks 'cost'"),
    ],
)
@model_of
def test_damaged_states_are_refused(model, changes, says):
    actions, rewards, _ = problem(0)
    cs = sequence(model, mb.SemiAdaptive(0.1)).update(actions, rewards)
    with pytest.raises(mb.DamagedState, match=says):
        type(cs).from_state_dict(damaged(cs.state_dict(), changes))


def test_other_damage_is_refused():
    actions, rewards, _ = problem(0)
    kernel = sequence(KERNEL, mb.SemiAdaptive(0.1)).update(actions, rewards)
    state = kernel.state_dict()
    for name in ("posterior", "actions", "weights"):
        with pytest.raises(mb.DamagedState, match=r"must fit|must be|must have"):
            type(kernel).from_state_dict(damaged(state, {name: 3.0 * state["cost"][name]}))
    linear = sequence(PHI, mb.SemiAdaptive(0.1)).update(actions, rewards)
    state = linear.state_dict()
    for name in ("gram", "moment", "P"):
        with pytest.raises(mb.DamagedState, match=r"must fit|must be"):
            type(linear).from_state_dict(damaged(state, {name: 3.0 * state["cost"][name]}))
    with pytest.raises(mb.DamagedState, match="steps must be"):
        type(linear).from_state_dict(damaged(state, {"steps": 1}))


def noise_of(kind, mean, rng):
    """Rewards with this mean whose noise is σ-sub-Gaussian at σ = 0.3, and mostly smaller."""
    if kind == "heteroscedastic":
        return mean + SIGMA * (0.1 if rng.random() < 0.8 else 1.0) * rng.normal()
    if kind == "by action":
        return mean + SIGMA * abs(math.sin(9.0 * mean)) * rng.normal()
    if kind == "bounded":  # values in an interval of length 2σ
        low, high = mean - 0.1 * SIGMA, mean + 1.9 * SIGMA
        return high if rng.random() < (mean - low) / (high - low) else low
    return mean + SIGMA * rng.normal()


@model_of
@pytest.mark.parametrize("kind", ["gaussian", "heteroscedastic", "by action", "bounded"])
@pytest.mark.parametrize("runs", [25, pytest.param(60, marks=pytest.mark.heavy)])
def test_the_truth_is_missed_in_at_most_a_share_delta_of_runs(model, kind, runs):
    """‖f* − r‖ ≤ R at all times, though actions go where the last error was large, and to new ones else."""
    rounds, misses, delta = 60, 0, 0.2
    for run in range(runs):
        rng = np.random.default_rng([7, run])
        cost = mb.Grid([mb.SemiAdaptive(c) for c in (0.01, 1.0)]).cost(as_model(model, 2), SIGMA)
        squares, last, missed = 0.0, None, False
        for _ in range(rounds):
            action = rng.uniform(size=2) if last is None else last
            mean = 0.3 * math.sin(5.0 * action[0]) + 0.2 * action[1]
            reward = noise_of(kind, mean, rng)
            cost = cost.learn(action[None], PHI(action[None]), np.array([reward]), None)
            squares += (reward - mean) ** 2
            last = action if abs(reward - mean) > SIGMA else None
            missed |= squares > cost.total(SimpleNamespace(derived={})) + 2 * SIGMA**2 * math.log(1 / delta)
        misses += missed
    assert stats.binomtest(misses, runs, delta, alternative="greater").pvalue > 0.01


@model_of
def test_rewards_that_are_all_equal_leave_little_to_learn(model):
    cs = sequence(model, mb.SemiAdaptive(0.1)).update(np.tile([0.3, 0.6], (300, 1)), np.full(300, 0.4))
    assert cs.moment.data.memory.state_dict()["level"] == 6
    assert cs.radius < sequence(model, mb.Scaled(0.1)).update(np.tile([0.3, 0.6], (300, 1)), np.full(300, 0.4)).radius
    assert cs.lower([[0.3, 0.6]]) <= 0.4 <= cs.upper([[0.3, 0.6]])


@model_of
def test_levels_rise_again_when_rewards_begin_to_scatter(model):
    rng = np.random.default_rng(0)
    actions = rng.uniform(size=(80, 2))
    cs = sequence(model, mb.SemiAdaptive(0.1)).update(actions[:40], np.full(40, 0.4))
    low = cs.moment.data.memory.state_dict()["level"]
    cs.update(actions[40:], 0.4 + SIGMA * rng.normal(size=40))
    assert cs.moment.data.memory.state_dict()["level"] < low


@model_of
@pytest.mark.parametrize("sigma", [1e-20, 1e-9, 1e9, 1e20])
@pytest.mark.filterwarnings("ignore::mixbandit.AssumptionsRefutedWarning")
def test_noise_that_is_tiny_or_huge(model, sigma):
    rng = np.random.default_rng(0)
    cs = sequence(model, mb.Grid([mb.SemiAdaptive(c) for c in (1e-6, 1.0)]), sigma=sigma, on_empty="inflate")
    for _ in range(3):
        cs.update(np.repeat(rng.uniform(size=(10, 2)), 2, axis=0), rng.normal(size=20))
        assert np.isfinite([cs.radius, cs.alpha0, *cs.upper([[0.5, 0.5]])]).all()
    assert type(cs).from_state_dict(cs.state_dict()).radius == cs.radius


@model_of
def test_before_the_first_reward(model):
    cs = sequence(model, mb.SemiAdaptive(0.1), dim_in=2) if model is KERNEL else sequence(model, mb.SemiAdaptive(0.1))
    assert cost_of(cs) == pytest.approx(0.0, abs=1e-15)
    again = type(cs).from_state_dict(cs.state_dict())
    actions, rewards, _ = problem(2)
    assert again.update(actions, rewards).radius == cs.update(actions, rewards).radius


def test_a_kernel_that_is_none_keeps_the_level():
    """No factor exists at another noise: forecasts stay as they are, and finite."""

    def indefinite(a, b):
        return np.where((a[:, None] == b).all(axis=2), 1.0, 5.0)

    actions = np.arange(80.0).reshape(40, 2)
    cs = sequence(mb.Identity(2), mb.SemiAdaptive(1.0, indefinite)).update(actions, np.zeros(40))
    assert cs.moment.data.memory.state_dict()["level"] == 0
    assert np.isfinite(cs.radius)


def test_a_list_of_kernels():
    actions, rewards, _ = problem(2)
    cs = mb.KernelMixture(
        [mb.RBF(0.2), mb.RBF(0.5)], sigma=SIGMA, norm_bound=5.0, mixture=mb.Grid([mb.SemiAdaptive(0.1)])
    )
    cs.update(actions, rewards)
    costs = [sequence(kernel, mb.SemiAdaptive(0.1), delta=0.01).update(actions, rewards) for kernel in (*cs.kernels,)]
    totals = np.array([cost_of(each) for each in costs])
    expected = -2 * SIGMA**2 * np.log(np.mean(np.exp(-totals / (2 * SIGMA**2))))
    assert cost_of(cs) == pytest.approx(expected, rel=1e-8)


def test_settings():
    assert repr(mb.SemiAdaptive(0.5)) == "SemiAdaptive(0.5)"
    assert repr(mb.SemiAdaptive(0.5, mb.RBF())).startswith("SemiAdaptive(0.5, RBF(")
    for make, says in (
        (lambda: mb.SemiAdaptive(0.0), "c must be positive"),
        (lambda: mb.SemiAdaptive(1.0, 3), "kernel must be a function"),
    ):
        with pytest.raises(mb.InvalidInput, match=says):
            make()
    with pytest.raises(mb.NotStorable, match="is code"):
        mb.SemiAdaptive(1.0, lambda a, b: a @ b.T).state_dict()
