"""Exact bounds from ridge regression and a Krylov space equal those from a decomposition of all rows."""

import gc

import numpy as np
import pytest

import mixbandit as mb
from mixbandit._compiling import off
from mixbandit.sets import KrylovBall, krylov

KINDS = ("compiled", "numpy")


def hostile(seed):
    """A sequence with features of any scale and rank, some learnt at once and some one by one, and directions."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(8, 60))
    t = int(rng.integers(9, 5 * d))
    rank = int(rng.integers(1, d + 1)) if rng.random() < 0.5 else d
    base = rng.normal(size=(rank, d)) * 10.0 ** rng.uniform(-3, 1.5, size=(rank, 1)) / np.sqrt(d)
    rows = rng.normal(size=(t, rank)) @ base if rng.random() < 0.5 else base[rng.integers(rank, size=t)]
    theta = rng.normal(size=d)
    norm_bound = float(np.linalg.norm(theta)) * 10.0 ** rng.choice([0, 0, 0.01, 0.3, 1, 2])
    sigma = 10.0 ** rng.uniform(-3, 0.5)
    mixture = mb.Scaled(10.0 ** rng.uniform(-2, 2))
    cs = mb.MartingaleMixture(d, sigma=sigma, norm_bound=norm_bound, on_empty="inflate", mixture=mixture)
    rewards, cut = rows @ theta + sigma * rng.normal(size=t), int(rng.integers(0, t + 1))
    cs.update(rows[:cut], rewards[:cut])
    for k in range(max(cut, t - 60), t):
        cs.update(rows[k], rewards[k])
    return cs, np.vstack((rows[rng.integers(t, size=3)], rng.normal(size=(5, d))))


def explained(seed):
    """Rewards far above the noise, explained by few directions: ‖q‖² is up to 1e8 times αB²."""
    rng = np.random.default_rng([13, seed])
    d, rank = int(rng.integers(8, 60)), int(rng.integers(1, 5))
    t = int(rng.integers(40, 5 * d + 40))
    rows = rng.normal(size=(t, rank)) @ (10.0 ** rng.uniform(0.5, 1.7, size=(rank, 1)) * rng.normal(size=(rank, d)))
    rows /= np.sqrt(d)
    theta, sigma = rng.normal(size=d), 10.0 ** rng.uniform(-3.5, -1)
    norm_bound = float(np.linalg.norm(theta)) * 10.0 ** rng.choice([0, 0.01, 0.3])
    mixture = mb.Scaled(10.0 ** rng.uniform(-2, 1))
    cs = mb.MartingaleMixture(d, sigma=sigma, norm_bound=norm_bound, on_empty="inflate", mixture=mixture)
    rewards = rows @ theta + sigma * rng.normal(size=t)
    cs.update(rows[:-9], rewards[:-9])
    for row, reward in zip(rows[-9:], rewards[-9:], strict=True):
        cs.update(row, reward)
    return cs, rng.normal(size=(4, d))


# Both are known to much less than these 1e-9. In quadruple precision, over 1,150 of these sequences, ridge regression
# is at most 3e-11 too tight or 5e-12 too wide, and decompositions are at most 2.2e-10 too wide. At α₀ ridge regression
# would be 2.1e-9 too wide at seed 73, and with numpy alone 5e-10 too tight: ‖q‖² is 3e6 α₀B² there, and the least
# eigenvalue of M is 5e7 times less than the largest, whose rounding it feels.
@pytest.mark.parametrize("kind", KINDS)
def test_bounds_equal_those_of_a_decomposition(kind):
    solve = krylov.interval if kind == "compiled" else krylov.interval_by_numpy
    solved = asked = 0
    for seed in range(150):
        cs, directions = hostile(seed)
        data, rule = cs.moment.data, cs.moment.rule
        quick = rule.set(data)
        if not isinstance(quick, KrylovBall):
            continue
        low, high = rule.ball(data).opened().interval(directions)
        for row, lower, upper in zip(directions, low, high, strict=True):
            size, asked = np.linalg.norm(row), asked + 1
            found = next((end for view in quick._views if (end := solve(view, row @ view.root / size))), None)
            if found is None:
                continue
            solved += 1
            scale = max(abs(lower), abs(upper), upper - lower)
            np.testing.assert_allclose(size * np.array(found), (lower, upper), rtol=0, atol=1e-9 * scale)
            # What is left out is added: never tighter than the truth by more than rounding.
            assert size * found[1] >= upper - 1e-9 * scale
            assert size * found[0] <= lower + 1e-9 * scale
    assert solved > 0.5 * asked > 200


@pytest.mark.parametrize("kind", [*KINDS, "many"])
def test_rewards_far_above_the_noise_cost_no_digits(kind):
    """Rounding M, of size 1/α, changes ρ by about eps‖q‖²/(αB²) of itself: at α₀ up to 3e-9 of a bound here."""
    solve = krylov.interval if kind == "compiled" else krylov.interval_by_numpy
    elsewhere = solved = 0
    for seed in range(150):
        cs, directions = explained(seed)
        data, rule = cs.moment.data, cs.moment.rule
        quick = rule.set(data)
        if not isinstance(quick, KrylovBall):
            continue
        elsewhere += all(view.alpha > rule.ridge_alpha for view in quick._views)
        low, high = rule.ball(data).opened().interval(directions)
        if kind == "many":
            found = np.transpose(quick.interval(directions))
        else:
            found = np.full((len(directions), 2), np.nan)
            for ends, row in zip(found, directions, strict=True):
                size = np.linalg.norm(row)
                answers = (solve(view, row @ view.root / size) for view in quick._views)
                ends[:] = next((size * np.array(answer) for answer in answers if answer is not None), np.nan)
        scale = np.maximum(np.maximum(np.abs(low), np.abs(high)), high - low)
        known = ~np.isnan(found[:, 0])
        error = np.abs(found - np.transpose((low, high))) / scale[:, None]
        assert (error[known] <= 2e-10).all(), (seed, error.max())
        solved += int(known.sum())
    assert elsewhere > 20
    assert solved > 100


def test_the_usual_round_takes_no_decomposition(monkeypatch):
    rng = np.random.default_rng(0)
    theta = rng.normal(size=20)
    policy = mb.CMMUCB(20, sigma=0.1, norm_bound=float(np.linalg.norm(theta)), rng=0)

    def play(rounds):
        for _ in range(rounds):
            choice = policy.ask(rng.normal(size=(10, 20)) / np.sqrt(20))
            policy.tell(choice, float(choice.action @ theta) + 0.1 * rng.normal())

    play(50)
    decomposed = []
    monkeypatch.setattr(KrylovBall, "support", lambda *_: pytest.fail("support needs a decomposition"))
    rule = type(policy.moment.rule)
    real = rule.ball
    monkeypatch.setattr(rule, "ball", lambda self, data: decomposed.append(1) or real(self, data))
    play(200)
    assert len(decomposed) <= 2


def test_rounds_leave_nothing_to_the_garbage_collector():
    rng = np.random.default_rng(0)
    policy = mb.CMMUCB(20, sigma=0.1, norm_bound=5.0, rng=0)

    def play(rounds):
        for _ in range(rounds):
            policy.tell(policy.ask(rng.normal(size=(10, 20)) / np.sqrt(20)), 0.1 * rng.normal())

    play(60)
    gc.collect()
    gc.disable()
    try:
        play(64)
        assert gc.collect() < 64
    finally:
        gc.enable()


@pytest.mark.parametrize("kind", KINDS)
def test_choices_are_those_of_the_exact_bounds(kind):
    rng = np.random.default_rng(1)
    for d in (8, 30, 64):
        theta = rng.normal(size=d)
        policy = mb.CMMUCB(d, sigma=0.1, norm_bound=float(np.linalg.norm(theta)), rng=0)
        for t in range(3 * d):
            arms = rng.normal(size=(12, d)) / np.sqrt(d)
            if kind == "numpy":
                with off():
                    choice = policy.ask(arms)
            else:
                choice = policy.ask(arms)
            if t % 5 == 0 or t < 12:
                exact = policy.moment.rule.ball(policy.moment.data).opened()
                upper = exact.maximum(arms)
                assert upper[choice.index] == pytest.approx(upper.max(), rel=1e-8)
                assert choice.upper == pytest.approx(upper.max(), rel=1e-8)
                assert choice.lower == pytest.approx(-exact.maximum(-arms)[choice.index], rel=1e-7, abs=1e-8)
            policy.tell(choice, float(choice.action @ theta) + 0.1 * rng.normal())


def test_directions_of_any_size_are_bounded():
    cs, directions = hostile(1)
    assert isinstance(cs.moment.exact, KrylovBall)
    one = cs.upper(directions[4])[0]
    for scale in (1e-150, 1e150):
        assert cs.upper(scale * directions[4])[0] == pytest.approx(scale * one, rel=1e-8)
    assert cs.upper(np.zeros(directions.shape[1]))[0] == 0.0


def test_ridge_regression_by_steps_is_that_of_all_rows_at_once():
    rng = np.random.default_rng(2)
    for d in (1, 3, 20):
        rows, rewards = rng.normal(size=(500, d)), rng.normal(size=500)
        cs = mb.MartingaleMixture(d, sigma=0.1, norm_bound=5.0)
        for k, (row, reward) in enumerate(zip(rows, rewards, strict=True), 1):
            cs.update(row, reward)
            ridge = cs.moment.data.ridge(0.01)
            if k % 37 == 0:
                V = rows[:k].T @ rows[:k] + 0.01 * np.eye(d)
                np.testing.assert_allclose(ridge.root @ ridge.root.T @ V, np.eye(d), atol=1e-9)
                theta = np.linalg.solve(V, rows[:k].T @ rewards[:k])
                np.testing.assert_allclose(ridge.theta, theta, rtol=1e-8, atol=1e-10)
                np.testing.assert_allclose(ridge.root @ ridge.white, theta, rtol=1e-8, atol=1e-10)
                residual = rows[:k] @ theta - rewards[:k]
                assert ridge.loss == pytest.approx(residual @ residual + 0.01 * theta @ theta, rel=1e-9)
                assert ridge.log_det == pytest.approx(np.linalg.slogdet(V / 0.01)[1], rel=1e-10)
                assert ridge.norm2 == pytest.approx(theta @ theta, rel=1e-9)
                near = min(1.0, 0.5 / np.linalg.norm(theta)) * theta
                at_near = rows[:k] @ near - rewards[:k]
                assert ridge.loss + ridge.towards(0.5) == pytest.approx(at_near @ at_near, rel=1e-9)


def test_the_largest_width_of_folded_rows_bounds_all_later_ones():
    rng = np.random.default_rng(3)
    cs = mb.MartingaleMixture(10, sigma=0.1, norm_bound=5.0).update(rng.normal(size=(40, 10)), rng.normal(size=40))
    for _ in range(70):
        data = cs.moment.data
        directions = rng.normal(size=(50, 10))
        directions /= np.linalg.norm(directions, axis=1)[:, None]
        assert (data.ridge(0.01).widths(directions) <= data.folded.spread(0.01) * (1 + 1e-9)).all()
        smallest = np.linalg.eigvalsh(data.factor[:, :-1].T @ data.factor[:, :-1])[0]
        assert data.folded.least_eigenvalue <= smallest * (1 + 1e-9)
        for alpha in (1e-3, 0.01, 10.0):
            assert 0.0 < data.folded.known_eigenvalue(alpha) <= smallest * (1 + 1e-9)
        cs.update(rng.normal(size=10), 0.0)
