"""Arms with a parameter each: everything about one of them is what a sequence of its own would say."""

import tracemalloc

import numpy as np
import pytest
from scipy import optimize

import mixbandit as mb
from mixbandit.sequences.refutation import is_due
from tests.helpers.arms import (
    ARMS,
    AS_RIDGES,
    DELTA,
    DIM,
    EACH,
    KNOWN,
    SHARES,
    STATED,
    alone,
    blocks,
    log,
    rows,
    teach,
)

PROBES = np.vstack((np.random.default_rng(5).normal(size=(4, DIM)), np.eye(DIM)[0]))
NOTHING = np.zeros((1, DIM))
# Those whose closed form has a multiplier of its own.
WITH_MULTIPLIERS = [name for name in EACH if name not in ("OFUL", "IGP", "bounded", "unknown noise", "several kernels")]


def check(found, own, *, rtol=1e-9, alphas=(None, "alpha0")):
    """Bounds, closed forms and estimates of every arm."""
    for alpha in alphas:
        at = found.alpha0 if alpha == "alpha0" else alpha
        for probes in (PROBES, NOTHING):
            for arm, one in enumerate(own):
                lower, upper = one.lower(probes, at), one.upper(probes, at)
                slack = rtol * (np.abs(upper) + np.abs(lower) + (upper - lower))
                assert (np.abs(found.lower(rows(probes, arm), at) - lower) <= slack).all()
                assert (np.abs(found.upper(rows(probes, arm), at) - upper) <= slack).all()
    for probe in (*PROBES[:3], *NOTHING):
        seen = found.interval(probe)
        every = rows(np.tile(probe, (ARMS, 1)), np.arange(ARMS))
        np.testing.assert_allclose(seen.lower, found.lower(every), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(seen.upper, found.upper(every), rtol=1e-12, atol=1e-12)
        for arm, one in enumerate(own):
            moment = one.moment
            expected = moment.response.reward(moment.estimate.maximum(moment.directions(probe[None])))[0]
            expected = np.clip(expected, one.lower(probe)[0], one.upper(probe)[0])
            assert seen.estimate[arm] == pytest.approx(expected, rel=rtol, abs=rtol)


@pytest.mark.parametrize("at_once", [False, True], ids=["one by one", "at once"])
@pytest.mark.parametrize("name", EACH)
def test_every_arm_is_a_sequence_of_its_own_at_its_part_of_delta(name, at_once):
    found, own = blocks(EACH[name]), alone(EACH[name])
    check(found, own)
    teach(found, own, *log(), at_once=at_once)
    assert (found.moment.arms.ridges is not None) == (name in AS_RIDGES)
    assert found.t == 60
    check(found, own)


@pytest.mark.parametrize("name", WITH_MULTIPLIERS)
def test_closed_forms_at_other_multipliers(name):
    found, own = blocks(EACH[name]), alone(EACH[name])
    teach(found, own, *log(30), at_once=True)
    check(found, own, alphas=(0.1, [0.1, 0.2, 2.0]))


def test_known_noise_levels_are_those_of_the_arms_own_rewards():
    levels = np.random.default_rng(0).choice([0.1, 0.3, 0.9], size=60)
    contexts, arms, values = log()
    for name in ("standard", "grid", "misspecified"):
        found, own = blocks(EACH[name]), alone(EACH[name])
        found.update(rows(contexts, arms), values, sigma=levels)
        for arm in np.unique(arms):
            own[arm].update(contexts[arms == arm], values[arms == arm], sigma=levels[arms == arm])
        check(found, own)


def _contexts(case, rng):
    n = 2 if case == "fewer than features" else 40
    contexts = rng.normal(size=(n, DIM))
    return {
        "zero": np.zeros((n, DIM)),
        "one again and again": np.tile(contexts[:1], (n, 1)),
        "in a plane": contexts * [1.0, 1.0, 0.0],
        "on a line": contexts[:, :1] * np.array([[1.0, -2.0, 0.5]]),
        "fewer than features": contexts,
        "of different sizes": contexts * [1.0, 1e-2, 1e-4],
        "tiny": 1e-150 * contexts,
        "almost nothing": 1e-9 * contexts,
        "large": 1e3 * contexts,
        "larger than ridges can keep": 1e7 * contexts,
    }[case]


CASES = [
    "zero", "one again and again", "in a plane", "on a line", "fewer than features", "of different sizes", "tiny",
    "almost nothing", "large", "larger than ridges can keep",
]  # fmt: skip


@pytest.mark.parametrize("at_once", [False, True], ids=["one by one", "at once"])
@pytest.mark.parametrize("case", CASES)
def test_degenerate_contexts(case, at_once):
    rng = np.random.default_rng(1)
    contexts = _contexts(case, rng)
    parameter, arms = np.array([0.8, -0.3, 0.1]), np.full(len(contexts), 4)
    values = contexts @ parameter + STATED["sigma"] * rng.normal(size=len(contexts))
    found, own = blocks(), alone()
    teach(found, own, contexts, arms, values, at_once=at_once)
    # Large contexts leave fewer digits next to α: what is lost is allowed for, so that sets are larger.
    check(found, own, rtol=1e-5 if case == "large" else 1e-8)
    # An arm whose contexts would lose more digits has data of its own.
    assert (4 in found.moment.arms.own) == (case in ("tiny", "almost nothing", "larger than ridges can keep"))


@pytest.mark.parametrize("bound", [1.5, 1000.0])
def test_small_contexts_count_next_to_large_ones(bound):
    """An adversary may make a context almost as large as ridges can keep; what others say must not be lost."""
    one = mb.MartingaleMixture(2, sigma=0.3, norm_bound=bound, delta=DELTA)
    along, across = np.array([[0.95533649, 0.29552021], [-0.29552021, 0.95533649]])
    probes = np.vstack((along, across, np.eye(2)))
    for small in (1e-6, 1e-4, 1e-3, 5e-3, 1e-1):
        for reward in (0.0, 0.3, 1.2):
            found, own = mb.Blocks(one, 1, growing=False), one.copy()
            contexts = 0.3 * np.array([9e4 * along, small * across])
            found.update(rows(contexts, 0), [0.0, reward])
            own.update(contexts, [0.0, reward])
            assert not found.moment.arms.own
            for alpha in (None, 0.01, 1.0):
                slack = 1e-6 * (own.upper(probes, alpha) - own.lower(probes, alpha))
                assert (found.upper(rows(probes, 0), alpha) >= own.upper(probes, alpha) - slack).all()
                assert (found.lower(rows(probes, 0), alpha) <= own.lower(probes, alpha) + slack).all()


def test_an_arm_that_needs_data_of_its_own_goes_on_with_them():
    """Contexts of any size after usual ones, in one batch with those of other arms."""
    rng, found, own = np.random.default_rng(2), blocks(), alone()
    for scale in (1.0, 1e6, 1.0):
        contexts, arms = rng.normal(size=(30, DIM)), rng.choice([0, 1, 4], size=30)
        contexts[arms == 1] *= scale
        values = contexts @ [0.1, 0.2, 0.3] + STATED["sigma"] * rng.normal(size=30)
        teach(found, own, contexts[:15], arms[:15], values[:15], at_once=True)
        teach(found, own, contexts[15:], arms[15:], values[15:])
        check(found, own, rtol=1e-8)
    assert set(found.moment.arms.own) == {1}
    assert found.t == 90


SCALES = (1e-20, 1.0, 1e20)


@pytest.mark.parametrize("sigma", SCALES)
@pytest.mark.parametrize("bound", SCALES)
def test_at_extreme_scales_bounds_hold_what_the_arms_own_do(sigma, bound):
    rng = np.random.default_rng(0)
    stated, probes = {"sigma": sigma, "norm_bound": bound}, np.vstack((np.eye(DIM), 1e-150 * np.ones(DIM)))
    for size in (1e-170, 1e-150, 1e-12, 1.0, 1e12, 1e49):
        for reward in (0.0, 1.0, 1e49):
            found = mb.Blocks(mb.MartingaleMixture(DIM, **stated, delta=0.04), 2)
            one = mb.MartingaleMixture(DIM, **stated, delta=0.01)
            contexts, values = size * rng.normal(size=(5, DIM)), reward * rng.normal(size=5)
            found.update(rows(contexts, 1), values)
            one.update(contexts, values)
            assert found.is_empty == one.is_empty
            if one.is_empty:
                continue
            for alpha in (None, one.alpha0):
                lower, upper = one.lower(probes, alpha), one.upper(probes, alpha)
                slack = 1e-7 * (upper - lower)
                assert np.isfinite(found.upper(rows(probes, 1), alpha)).all()
                # Never narrower; wider where V is known to fewer digits than its factor.
                assert (found.upper(rows(probes, 1), alpha) >= upper - slack).all()
                assert (found.lower(rows(probes, 1), alpha) <= lower + slack).all()


@pytest.mark.parametrize("name", EACH)
def test_advantages_are_the_best_of_one_arm_less_the_worst_of_another(name):
    found, own = blocks(EACH[name]), alone(EACH[name])
    teach(found, own, *log(30), at_once=True)
    deviation = getattr(own[0], "misspecification", 0.0)
    for probe in PROBES[:2]:
        response = [one.moment.exact.interval(one.moment.directions(probe[None])) for one in own]
        low, high = ([float(ends[side][0]) for ends in response] for side in (0, 1))
        for arm in (0, 2, 5):
            expected = [0.0 if other == arm else high[other] - low[arm] for other in range(ARMS)]
            np.testing.assert_allclose(
                found.advantage(probe, arm), np.array(expected) + 2.0 * deviation, rtol=1e-9, atol=1e-9
            )
            np.testing.assert_allclose(found.advantage(probe, arm, over=[1, 3]), found.advantage(probe, arm)[[1, 3]])


def test_advantages_against_a_search_over_all_parameters():
    """The largest difference that parameters in both sets attain, by a solver that knows their definition only."""
    found, own = blocks(), alone()
    teach(found, own, *log(30), at_once=True)
    contexts, arms, values = log(30)
    probe = np.array([0.7, -1.1, 0.4])

    def within(arm):
        X, r, radius = contexts[arms == arm], values[arms == arm], own[arm].radius
        return [
            {"type": "ineq", "fun": lambda theta: radius**2 - np.sum((X @ theta - r) ** 2)},
            {"type": "ineq", "fun": lambda theta: STATED["norm_bound"] ** 2 - theta @ theta},
        ]

    def extreme(arm, sign):
        start = np.linalg.lstsq(contexts[arms == arm], values[arms == arm], rcond=None)[0]
        solved = optimize.minimize(lambda theta: -sign * probe @ theta, 0.5 * start, constraints=within(arm))
        assert solved.success
        return sign * -solved.fun

    expected = extreme(1, 1.0) - extreme(4, -1.0)
    assert found.advantage(probe, 4, over=[1])[0] == pytest.approx(expected, rel=1e-4)


# Refutation


def noisy(arm, n=400, seed=0):
    """Rewards as stated, but for one arm, whose noise is ten times larger."""
    rng = np.random.default_rng(seed)
    contexts, arms = rng.normal(size=(n, DIM)), rng.integers(ARMS, size=n)
    values = 0.3 * contexts[:, 0] + STATED["sigma"] * np.where(arms == arm, 10.0, 1.0) * rng.normal(size=n)
    return contexts, arms, values


@pytest.mark.parametrize("name", ["standard", "grid"])
@pytest.mark.parametrize("arm", [1, 5])
def test_noise_in_one_arm_is_found_and_named_and_stands(name, arm):
    contexts, arms, values = noisy(arm)
    one_by_one, at_once, in_parts = (blocks(EACH[name]) for _ in range(3))
    for context, number, value in zip(contexts, arms, values, strict=True):
        one_by_one.update([*context, number], value)
        if one_by_one.moment.is_refuted:
            break
    at_once.update(rows(contexts, arms), values)
    for part in np.array_split(np.arange(400), 7):
        in_parts.update(rows(contexts[part], arms[part]), values[part])
    for found in (one_by_one, at_once, in_parts):
        assert found.moment.refutation.endswith(f"for arm {arm}")
        assert found.is_refuted
        assert found.noise_refuted or found.is_empty
        others = np.flatnonzero(arms != arm)
        quiet = found.after(rows(contexts[others], arms[others]), values[others])
        assert quiet.moment.refutation == found.moment.refutation
        assert quiet.is_refuted
        assert mb.Blocks.from_state_dict(quiet.state_dict()).moment.refutation == found.moment.refutation


def test_an_empty_set_is_reported_after_noise_was_refuted_in_another_arm():
    found = blocks().update(rows(*noisy(1)[:2]), noisy(1)[2])
    assert found.noise_refuted
    assert not found.is_empty
    contexts = np.random.default_rng(1).normal(size=(100, DIM))
    for n in (1, 99):  # the set is empty after all of them
        found.update(rows(contexts[:n], 0), contexts[:n] @ [9.0, 9.0, 9.0])
        contexts = contexts[n:]
    assert found.is_empty
    assert found.noise_refuted
    with pytest.raises(mb.AssumptionsRefuted, match="empty"):
        found.upper([1.0, 0.0, 0.0, 0])
    quiet = found.after(rows(np.zeros((3, DIM)), 2), np.zeros(3))
    assert quiet.is_empty
    with pytest.raises(mb.AssumptionsRefuted, match="empty"):
        mb.Blocks.from_state_dict(quiet.state_dict()).interval(np.ones(DIM))


def test_expected_rewards_outside_their_range_are_reported():
    found = blocks(EACH["with a range"]).update(rows(np.tile(np.eye(DIM)[0], (60, 1)), 0), np.full(60, 1.45))
    with pytest.raises(mb.AssumptionsRefuted, match="reward_range"):
        found.interval(1.3 * np.eye(DIM)[0], arms=[0])
    found.interval(1.3 * np.eye(DIM)[0], arms=[1])


@pytest.mark.parametrize("inflation", [1.0, 1.3, 3.0])
def test_the_refutation_is_that_of_the_full_tests_when_a_full_test_is_due(inflation):
    agreed = told_early = 0
    for seed in range(4):
        rng, own = np.random.default_rng([seed, 9]), EACH["standard"](DELTA / (2 * KNOWN))
        found = blocks()
        for t in range(1, 200):
            context = rng.normal(size=DIM)
            value = float(0.4 * context[1] + inflation * STATED["sigma"] * rng.normal())
            found.update([*context, 2], value)
            own.update(context, value)
            if is_due(t):
                full = own.moment.full_refutation
                assert (found.moment.refutation is None) == (full is None)
                assert found.is_refuted == (full is not None)
                agreed += 1
            elif found.moment.refutation is not None:  # never before the full test would say so
                assert own.moment.full_refutation is not None
            else:  # whoever asks is told by the full tests at any time
                assert (found.is_refuted, found.is_empty) == (own.is_refuted, own.is_empty)
                told_early += own.is_refuted
            if found.moment.refutation is not None:
                assert found.moment.refutation == f"{own.moment.full_refutation}, for arm 2"
                break
    assert agreed > 10
    assert told_early or inflation != 1.3


def test_a_batch_is_tested_if_a_test_was_due_within_it():
    """As the arm's own sequence does it, in the same batches."""
    within = 0
    for seed in range(12):
        rng = np.random.default_rng([seed, 11])
        found, own, t = blocks(), EACH["standard"](SHARES[2]), 0
        while not own.moment.is_refuted and t < 600:
            n = int(rng.integers(1, 9))
            contexts = rng.normal(size=(n, DIM))
            values = 0.4 * contexts[:, 1] + 1.5 * STATED["sigma"] * rng.normal(size=n)
            found.update(rows(contexts, 2), values)
            own.update(contexts, values)
            t += n
            assert (found.moment.refutation is None) == (own.moment.refutation is None)
        within += own.moment.is_refuted and not is_due(t)
    assert within > 3


# The width, and what arms cost


def test_intervals_are_at_most_two_fifths_as_wide_as_those_of_one_set_for_all_arms():
    """Means over arms, contexts and seeds, at 10 arms of 5 features; it is a third."""
    arms, dim = 10, 5
    ratios = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        parameters = rng.normal(size=(arms, dim))
        parameters /= np.linalg.norm(parameters, axis=1)[:, None]
        apart = mb.Blocks(mb.MartingaleMixture(dim, sigma=0.5, norm_bound=1.0, delta=DELTA), arms)
        joint = mb.MartingaleMixture(mb.Disjoint(dim, arms), sigma=0.5, norm_bound=float(np.sqrt(arms)), delta=DELTA)
        contexts, chosen = rng.normal(size=(400, dim)) / np.sqrt(dim), rng.integers(arms, size=400)
        values = (contexts * parameters[chosen]).sum(axis=1) + 0.5 * rng.normal(size=400)
        asked = rows(np.repeat(rng.normal(size=(5, dim)), arms, axis=0), np.tile(np.arange(arms), 5))
        width = []
        for sequence in (apart, joint):
            sequence.update(rows(contexts, chosen), values)
            width.append(sequence.upper(asked) - sequence.lower(asked))
        assert (width[0] < width[1]).all()
        ratios.append(width[0].mean() / width[1].mean())
    assert max(ratios) <= 0.4


def test_ten_thousand_arms():
    found = mb.Blocks(mb.MartingaleMixture(DIM, **STATED, delta=DELTA), 10_000)
    contexts, arms, values = log(40)
    found.update(rows(contexts, 2000 * arms - 1 + (arms == 0)), values)
    seen = found.interval(PROBES[0], alpha=found.alpha0)
    assert seen.lower.shape == (10_000,)
    one = mb.MartingaleMixture(DIM, **STATED, delta=DELTA / 20_000).update(contexts[arms == 5], values[arms == 5])
    assert seen.upper[9999] == pytest.approx(one.upper(PROBES[0], one.alpha0)[0], rel=1e-9)
    assert found.interval(PROBES[0], arms=[9999]).upper[0] == pytest.approx(one.upper(PROBES[0])[0], rel=1e-9)
    choice = mb.UCB(found, mb.Arms(range(10_000)), rng=0, alpha=found.alpha0).ask(context=PROBES[0])
    assert choice.upper == pytest.approx(seen.upper.max(), rel=1e-9)


@pytest.mark.parametrize(("added", "beside"), [(False, 200), (True, 1000)], ids=["known", "added"])
def test_a_thousand_arms_take_the_memory_of_their_matrices_and_little_else(added, beside):
    arms, dim = 1000, 20
    contexts, values = np.random.default_rng(0).normal(size=(arms, dim)), np.zeros(arms)

    def learnt(count):
        found = mb.Blocks(mb.MartingaleMixture(dim, **STATED, delta=DELTA), 0 if added else count)
        for _ in range(count if added else 0):
            found.add()
        return found.update(rows(contexts, np.arange(arms) % count), values)

    learnt(2)  # so that what is imported late is there
    tracemalloc.start()
    try:
        found = learnt(arms)
        used = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    matrices = arms * dim * (dim + 2) * 8
    assert found.t == arms
    # For every arm a few numbers beside: its label, its radius, and those of its part of δ if it was added.
    assert used <= matrices + beside * arms + 100_000
