"""One suite that every confidence sequence must pass."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mixbandit as mb
from tests.helpers.sequences import (
    ACTIONS,
    LEVELLED,
    LEVELS,
    OF_CLOSED_FORMS,
    PHI,
    PROBES,
    REWARDS,
    SEQUENCES,
    SETTINGS,
)


@pytest.fixture(params=SEQUENCES)
def make(request):
    return SEQUENCES[request.param]


@pytest.fixture
def cs(make):
    return make().update(ACTIONS, REWARDS)


def bounds(cs):
    return np.stack((cs.lower(PROBES), cs.upper(PROBES)))


def test_it_is_a_sequence(cs):
    assert isinstance(cs, mb.ConfidenceSequence)
    assert cs.guarantee in ("anytime", "bayesian")
    assert (cs.t, cs.delta) == (50, 0.05)
    assert cs.alpha0 > 0
    assert "t=50" in repr(cs)


def test_bounds_are_ordered_finite_and_of_the_right_shape(make):
    for cs in (make(), make().update(ACTIONS, REWARDS)):
        lower, upper = bounds(cs)
        assert lower.shape == upper.shape == (9,)
        assert np.isfinite(lower).all()
        assert (lower <= upper).all()
        assert cs.upper(PROBES[0]).shape == (1,)
        assert cs.upper(np.empty((0, 2))).shape == (0,)
        assert cs.support(np.empty((0, 2))).grad.shape == (0, 2)


def test_data_narrow_the_bounds(make):
    before, after = bounds(make()), bounds(make().update(ACTIONS, REWARDS))
    assert np.mean(after[1] - after[0]) < 0.5 * np.mean(before[1] - before[0])


def test_support_is_consistent(cs, request):
    name = request.node.callspec.params["make"]
    # Exact bounds of bounded values come from a search that is good to about six digits.
    rtol = 1e-5 if name == "bounded, exact" else 1e-9
    support = cs.support(PROBES)
    np.testing.assert_allclose(support.value, cs.upper(PROBES), rtol=1e-12)
    attained = np.sum(PHI(PROBES) * support.theta, axis=1) + getattr(cs, "misspecification", 0.0)
    np.testing.assert_allclose(attained, support.value, rtol=rtol)
    np.testing.assert_allclose(support.grad, PHI.vjp(PROBES, support.theta), rtol=1e-12)
    assert name in OF_CLOSED_FORMS or all(cs.contains(theta, rtol=rtol) for theta in support.theta)
    assert not any(cs.contains(theta + 0.05 * PHI(a)[0]) for theta, a in zip(support.theta, PROBES, strict=True))
    assert not support.inflated


def test_the_closed_form_at_alpha0_is_an_upper_bound(cs):
    assert (cs.upper(PROBES, alpha=cs.alpha0) >= cs.upper(PROBES) - 1e-12).all()
    assert (cs.lower(PROBES, alpha=cs.alpha0) <= cs.lower(PROBES) + 1e-12).all()


def test_one_row_at_a_time_or_many(make, cs):
    rows = make()
    for action, reward in zip(ACTIONS, REWARDS, strict=True):
        assert rows.update(action, reward) is rows
    np.testing.assert_allclose(bounds(rows), bounds(cs), rtol=1e-9)


def test_reading_changes_nothing(make):
    read, unread = make(), make()
    for action, reward in zip(ACTIONS, REWARDS, strict=True):
        read.update(action, reward)
        unread.update(action, reward)
        read.support(PROBES)
    np.testing.assert_array_equal(bounds(read), bounds(unread))


def test_a_copy_is_independent(cs):
    before, twin = bounds(cs), cs.copy()
    twin.update(ACTIONS, REWARDS)
    np.testing.assert_array_equal(bounds(cs), before)
    assert (twin.t, cs.t) == (100, 50)
    assert not np.array_equal(bounds(twin), before)


def test_state_dict_goes_on_to_the_bit(make):
    cs = make().update(ACTIONS[:20], REWARDS[:20]).update(ACTIONS[20], REWARDS[20])
    again = type(cs).from_state_dict(cs.state_dict())
    for action, reward in zip(ACTIONS[21:], REWARDS[21:], strict=True):
        for one in (cs, again):
            one.update(action, reward)
    np.testing.assert_array_equal(bounds(cs), bounds(again))
    assert again.t == 50


def test_state_dict_without_data_and_without_sharing(make):
    state = make().state_dict()
    again = type(make()).from_state_dict(state)
    np.testing.assert_array_equal(bounds(again), bounds(make()))
    cs = make().update(ACTIONS, REWARDS)
    state = cs.state_dict()
    again, before = type(cs).from_state_dict(state), bounds(cs)

    def spoil(value):
        for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else []:
            spoil(item)
        if isinstance(value, np.ndarray) and value.ndim:
            value[:] = 7.0

    spoil(state)
    np.testing.assert_array_equal(bounds(cs), before)
    np.testing.assert_array_equal(bounds(again), before)
    for one in (cs, again):
        one.update(ACTIONS[:3], REWARDS[:3])
    np.testing.assert_array_equal(bounds(cs), bounds(again))


def test_damaged_memories_are_refused(cs):
    state = cs.state_dict()
    memory = state.get("cost") or state.get("weighted") or {}
    for name, value in memory.items():
        if isinstance(value, float | np.ndarray):
            for damaged in (np.full(np.shape(value), np.nan), np.ones((2, 9)), "text", None):
                key = "cost" if "cost" in state else "weighted"
                with pytest.raises(mb.DamagedState):
                    type(cs).from_state_dict(state | {key: memory | {name: damaged}})


def test_state_dict_holds_plain_values_only(cs):
    json.dumps(cs.state_dict(), default=lambda array: array.tolist() if type(array) is np.ndarray else 1 / 0)


def test_a_wrong_state_is_refused(cs):
    state = cs.state_dict()
    for spoil in ({"type": "Other"}, {"version": 99}, {"version": None}):
        with pytest.raises(mb.DamagedState):
            type(cs).from_state_dict(state | spoil)
    for missing in ("delta", "features", "statistics"):
        with pytest.raises(mb.DamagedState, match=missing):
            type(cs).from_state_dict({k: v for k, v in state.items() if k != missing})
    for name in ("features", "statistics"):
        for damaged in (None, "text", 3, {}):
            with pytest.raises(mb.MixbanditError):
                type(cs).from_state_dict(state | {name: damaged})
    with pytest.raises(mb.DamagedState, match="mapping"):
        type(cs).from_state_dict([state])
    with pytest.raises(mb.MixbanditError, match="dimension"):
        type(cs).from_state_dict(state, features=mb.RandomFourier(2, 5, rng=0))


def test_features_may_be_given_again(cs):
    again = type(cs).from_state_dict(cs.state_dict(), features=PHI)
    np.testing.assert_array_equal(bounds(cs), bounds(again))


def test_data_frames_and_lists_are_accepted(make, cs):
    frame = pd.DataFrame(ACTIONS, columns=["x", "y"])
    from_frame = make().update(frame, pd.Series(REWARDS))
    from_lists = make().update(ACTIONS.tolist(), REWARDS.tolist())
    np.testing.assert_array_equal(bounds(from_frame), bounds(cs))
    np.testing.assert_array_equal(bounds(from_lists), bounds(cs))
    np.testing.assert_array_equal(cs.upper(pd.DataFrame(PROBES)), cs.upper(PROBES))


def test_an_empty_batch_is_no_data(make):
    cs = make().update(np.empty((0, 2)), [])
    assert cs.t == 0


@pytest.mark.parametrize("make", LEVELLED.values(), ids=LEVELLED)
def test_noise_levels_are_weights(make):
    """A reward of noise 2σ counts as one of half the weight, whether given once or per reward."""
    known = make().update(ACTIONS, REWARDS, sigma=LEVELS)
    assert np.mean(np.diff(bounds(known), axis=0)) > np.mean(np.diff(bounds(make().update(ACTIONS, REWARDS)), axis=0))
    one = make().update(ACTIONS, REWARDS, sigma=0.2)
    each = make().update(ACTIONS, REWARDS, sigma=np.full(50, 0.2))
    np.testing.assert_array_equal(bounds(one), bounds(each))
    same = make().update(ACTIONS, REWARDS, sigma=0.1)
    np.testing.assert_allclose(bounds(same), bounds(make().update(ACTIONS, REWARDS)), rtol=1e-12)


# For others the kernel sees the actions, or the levels enter in a way of their own, tested where they are.
LINEAR = [name for name in LEVELLED if name not in ("gaussian", "grid of anything", "misspecified", "general lambda")]


@pytest.mark.parametrize("name", LINEAR)
def test_noise_levels_divide_rows_and_rewards(name):
    weights = 0.1 / LEVELS
    known = SEQUENCES[name]().update(ACTIONS, REWARDS, sigma=LEVELS)
    by_hand = SEQUENCES[name](6).update(weights[:, None] * PHI(ACTIONS), weights * REWARDS)
    np.testing.assert_allclose(known.upper(PROBES), by_hand.upper(PHI(PROBES)), rtol=1e-9)
    np.testing.assert_allclose(known.lower(PROBES), by_hand.lower(PHI(PROBES)), rtol=1e-9)


BAD_UPDATES = {
    "a NaN reward": ((ACTIONS[:2], [0.0, np.nan]), {}, r"rewards\[1\] .* got nan"),
    "an infinite reward": ((ACTIONS[:2], [np.inf, 0.0]), {}, r"rewards\[0\] .* got inf"),
    "a NaN action": (([[0.0, np.nan]], [0.0]), {}, r"actions\[0, 1\]"),
    "a reward too large to square": (([[0.0, 1.0]], [1e60]), {}, r"at most 1e\+50"),
    "an action too large for anything": (([[0.0, 1e210]], [0.0]), {}, r"at most 1e\+200"),
    "a noise level that makes the reward too large": ((ACTIONS[:1], [1.0]), {"sigma": 1e-160}, "sigma must lie in"),
    "a wrong width": ((np.ones((3, 4)), np.ones(3)), {}, r"\(n, 2\) or \(2,\), got \(3, 4\)"),
    "too many dimensions": ((np.ones((3, 2, 1)), np.ones(3)), {}, r"got \(3, 2, 1\)"),
    "too few rewards": ((ACTIONS[:3], REWARDS[:2]), {}, r"rewards must have shape \(3,\), got \(2,\)"),
    "text": ((ACTIONS[:1], ["much"]), {}, "must be numbers"),
    "a negative noise level": ((ACTIONS[:2], REWARDS[:2]), {"sigma": [0.1, -0.1]}, "sigma must be positive"),
    "noise levels of another length": (
        (ACTIONS[:2], REWARDS[:2]),
        {"sigma": [0.1] * 3},
        r"shape \(2,\), got \(3,\)",
    ),
}


@pytest.mark.parametrize("what", BAD_UPDATES)
def test_a_bad_update_is_named_and_changes_nothing(cs, what):
    arguments, options, says = BAD_UPDATES[what]
    before = bounds(cs)
    with pytest.raises(mb.InvalidInput, match=says):
        cs.update(*arguments, **options)
    assert cs.t == 50
    np.testing.assert_array_equal(bounds(cs), before)


@pytest.mark.parametrize("alpha", [0.0, -1.0, np.nan, np.inf, "x"])
def test_a_bad_multiplier_is_named(cs, alpha):
    with pytest.raises(mb.InvalidInput, match="alpha must be"):
        cs.upper(PROBES, alpha=alpha)


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        ({"sigma": 0.0}, "sigma must be positive and finite, got 0.0"),
        ({"sigma": -1.0}, "sigma"),
        ({"sigma": np.nan}, "sigma"),
        ({"norm_bound": 0.0}, "norm_bound"),
        ({"norm_bound": np.inf}, "norm_bound"),
        ({"delta": 0.0}, "delta must lie strictly between 0 and 1, got 0.0"),
        ({"delta": 1.0}, "delta"),
        ({"delta": np.nan}, "delta"),
        ({"delta": "1%"}, "delta must be a number"),
        ({"delta": 1e-250}, "delta must be at least 1e-200"),
        ({"sigma": 1e-21}, r"sigma must lie in \[1e-20, 1e\+20\]"),
        ({"norm_bound": 1e60}, r"norm_bound must lie in"),
        ({"sigma": True}, "sigma must be a number"),
        ({"sigma": np.True_}, "sigma must be a number"),
        ({"sigma": 10**400}, "sigma must be a number"),
    ],
)
@pytest.mark.parametrize("kind", [mb.MartingaleMixture, mb.OFULSequence, mb.IGPSequence, mb.BayesCredible])
def test_bad_settings_are_named(kind, spoil, says):
    with pytest.raises(mb.InvalidInput, match=says):
        kind(3, **(SETTINGS | spoil))


EXTREMES = [1e-20, 1e-8, 1.0, 1e8, 1e20]


@pytest.mark.parametrize(
    "kind", [mb.MartingaleMixture, mb.GeneralLambda, mb.OFULSequence, mb.IGPSequence, mb.BayesCredible]
)
@pytest.mark.parametrize("sigma", EXTREMES)
@pytest.mark.parametrize("norm_bound", EXTREMES)
def test_extreme_scales_give_finite_bounds_or_a_named_error(kind, sigma, norm_bound):
    rng = np.random.default_rng(0)
    for size in (1e-170, 1e-50, 1e-12, 1.0, 1e12, 1e49):
        for reward in (0.0, 1e-40, 1.0, 1e49):
            cs = kind(3, sigma=sigma, norm_bound=norm_bound, delta=1e-10)
            cs.update(size * rng.normal(size=(5, 3)), reward * rng.normal(size=5))
            queries = np.vstack((np.eye(3), 1e-150 * np.ones(3), np.zeros(3)))
            try:
                lower, upper = cs.lower(queries), cs.upper(queries)
            except mb.AssumptionsRefuted:
                continue
            assert np.isfinite(lower).all()
            assert np.isfinite(upper).all()
            assert (lower <= upper).all()


@pytest.mark.parametrize("kind", [mb.OFULSequence, mb.BayesCredible])
def test_another_multiplier_than_the_fixed_one_is_refused(kind):
    with pytest.raises(mb.InvalidInput, match=r"fixed in advance at 0\.01"):
        kind(3, **SETTINGS).upper([1.0, 0.0, 0.0], alpha=0.5)


OF_0_1_0 = json.loads((Path(__file__).parents[1] / "fixtures" / "expected-bounds.json").read_text())


@pytest.mark.parametrize("name", OF_0_1_0)
def test_bounds_are_those_of_version_0_1_0(name):
    """Exact and closed-form bounds on this problem, as that version gave them."""
    cs, expected = SEQUENCES[name]().update(ACTIONS, REWARDS), OF_0_1_0[name]
    assert cs.alpha0 == pytest.approx(expected["alpha0"], rel=1e-12)
    found = {
        "lower": cs.lower(PROBES),
        "upper": cs.upper(PROBES),
        "closed lower": cs.lower(PROBES, cs.alpha0),
        "closed upper": cs.upper(PROBES, cs.alpha0),
    }
    for bound, values in found.items():
        np.testing.assert_allclose(values, expected[bound], rtol=1e-12, atol=1e-12)
