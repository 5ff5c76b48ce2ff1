"""Ridge regression on random cosines, against the regression written out."""

import numpy as np
import pytest

from mixbandit.errors import DamagedState, InvalidInput
from mixbandit.predictors import CosinesPerArm, Predictor
from mixbandit.search import ArmsOffer

ARMS = 3


def offer(x, arms=range(ARMS)):
    numbers = np.array(list(arms))
    return ArmsOffer(lambda: np.zeros((len(numbers), 1)), context=np.asarray(x, dtype=float), arms=numbers)


def world(n, d=2, seed=0):
    """Contexts with an intercept, the arms played, and rewards that no linear model explains."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([np.ones(n), rng.normal(size=(n, d))])
    arms = rng.integers(ARMS, size=n)
    rewards = np.sin(2.0 * x[:, 1] + arms) + 0.1 * rng.normal(size=n)
    return x, arms, rewards


def begun(d=2, **options):
    predictor = CosinesPerArm(**{"cosines": 40, "ridge": 0.5, **options})
    return predictor.for_arms(ARMS).rescaled(np.eye(d + 1, 1), np.eye(1))


def taught(predictor, x, arms, rewards):
    for context, arm, reward in zip(x, arms, rewards, strict=True):
        predictor = predictor.after(offer(context, [arm]), 0, float(reward))
    return predictor


def features(predictor, x, n):
    """The first n contexts set the scale, up to a power of two."""
    seen = x[: 1 << (min(n, 128).bit_length() - 1)]
    frequencies = np.column_stack([
        np.random.default_rng((predictor.seed, 1 + j)).standard_normal(predictor.cosines) for j in range(x.shape[1])
    ]) / (predictor.lengthscale * np.sqrt(seen.var(axis=0).sum()))  # fmt: skip
    phases = np.random.default_rng(predictor.seed).uniform(0.0, 2.0 * np.pi, predictor.cosines)
    inside = np.sqrt(2.0 / predictor.cosines) * np.cos(x @ frequencies.T + phases)
    return np.column_stack([np.ones(len(x)), inside])


@pytest.mark.parametrize("n", [2, 7, 64, 127, 128, 129, 300])
@pytest.mark.parametrize("lengthscale", [0.5, 1.0])
def test_it_is_ridge_regression_on_cosines(n, lengthscale):
    x, arms, rewards = world(n + 5)
    predictor = taught(begun(lengthscale=lengthscale), x[:n], arms[:n], rewards[:n])
    phi = features(predictor, x, n)
    for context, row in zip(x[n:], phi[n:], strict=True):
        mean, spread = predictor.predict(offer(context))
        np.testing.assert_allclose(predictor.means(offer(context)), mean, rtol=1e-12)
        own = []
        for arm in range(ARMS):
            mine = phi[:n][arms[:n] == arm]
            gram = mine.T @ mine + 0.5 * np.eye(len(row))
            assert mean[arm] == pytest.approx(
                row @ np.linalg.solve(gram, mine.T @ rewards[:n][arms[:n] == arm]), abs=1e-9
            )
            own.append(np.sqrt(row @ np.linalg.solve(gram, row)))
        np.testing.assert_allclose(spread / spread[0], np.array(own) / own[0], rtol=1e-8)


def test_its_spread_has_the_noise_level_of_one_step_errors():
    x, arms, rewards = world(200)
    predictor, level = taught(begun(lengthscale=0.5), x[:128], arms[:128], rewards[:128]), None
    errors, seen = predictor.errors, 128
    for context, arm, reward in zip(x[128:], arms[128:], rewards[128:], strict=True):
        mean, spread = predictor.predict(offer(context))
        level = np.sqrt((0.5**2 + errors) / (1 + seen))
        predictor, expected, own = predictor.scored(offer(context, [arm]), 0, float(reward))
        assert (expected, own) == (pytest.approx(mean[arm], abs=1e-12), pytest.approx(spread[arm], rel=1e-9))
        errors += (reward - mean[arm]) ** 2 / (1.0 + (spread[arm] / level) ** 2)
        seen += 1
    assert predictor.errors == pytest.approx(errors, rel=1e-9)
    assert level < 0.35  # what is not noise was learnt


def test_it_learns_what_is_not_linear():
    x, arms, rewards = world(1500)
    predictor = taught(begun(cosines=100), x[:1400], arms[:1400], rewards[:1400])
    found = [predictor.means(offer(context))[arm] for context, arm in zip(x[1400:], arms[1400:], strict=True)]
    assert np.mean((np.array(found) - rewards[1400:]) ** 2) < 0.1 * rewards[1400:].var()


@pytest.mark.parametrize("n", [40, 200])
def test_a_change_of_scale_changes_no_prediction_once_the_cosines_stand(n):
    """Before, frequencies are made for the new scale, as if it had been known."""
    x, arms, rewards = world(n + 3)
    change = np.array([[1.0, 0.0, 0.0], [-0.7, 2.0, 0.0], [0.3, 0.0, 0.5], [0.0, 0.0, 0.0]])
    before = taught(begun(), x[:n], arms[:n], rewards[:n])
    after = before.rescaled(change, np.eye(1))
    if n > 128:
        for context in x[n:]:
            found = after.predict(offer(change @ context))
            np.testing.assert_allclose(found, before.predict(offer(context)), rtol=1e-9, atol=1e-12)
        new = change @ x[n] + [0.0, 0.0, 0.0, 1.5]  # a column that was 0 until now, and counts from here on
        assert np.abs(after.means(offer(new)) - after.means(offer(change @ x[n]))).max() > 1e-3
    else:
        rows = x[:n] @ change.T
        other = CosinesPerArm(cosines=40, ridge=0.5).for_arms(ARMS).rescaled(np.eye(4, 1), np.eye(1))
        other = taught(other, rows[:32], arms[:32], rewards[:32])
        # The scale is that of all contexts so far, and not of the first power of two.
        unit = np.sqrt(rows.var(axis=0).sum() / rows[:32].var(axis=0).sum())
        np.testing.assert_allclose(after.frequencies * unit, other.frequencies, rtol=1e-12)
    with pytest.raises(InvalidInput, match="cannot go on with those of 2"):
        after.rescaled(np.eye(3, 2), np.eye(1))


def test_a_scale_that_grows_a_lot_leaves_no_noise():
    """A number that had hardly varied, and then does: its old unit was tiny."""
    x, arms, rewards = world(200)
    x[:, 2] = 0.0
    before = taught(begun(), x, arms, rewards)
    for stretch in (1e-3, 1e-13):
        after = before.rescaled(np.diag([1.0, 1.0, stretch]), np.eye(1))
        norms = np.linalg.norm(after.frequencies, axis=0)
        assert norms[2] <= 2.0 * norms[1]
        for context in x[:5]:  # where the number was as always, nothing changes
            np.testing.assert_allclose(after.predict(offer(context)), before.predict(offer(context)), rtol=1e-9)
        moved = after.means(offer(x[0] + [0.0, 0.0, 0.1])) - after.means(offer(x[0]))
        assert 0.0 < np.abs(moved).max() < 0.2


def test_a_column_that_was_always_the_same_and_is_moved_changes_nothing():
    x, arms, rewards = world(200)
    x[:, 2] = 0.0
    before = taught(begun(), x, arms, rewards)
    change = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [-0.7, 0.0, 0.0]])
    for context in x[:5]:
        np.testing.assert_allclose(
            before.rescaled(change, np.eye(1)).predict(offer(change @ context)),
            before.predict(offer(context)),
            rtol=1e-9,
        )


def test_arms_that_come_late_know_nothing():
    x, arms, rewards = world(50)
    predictor = taught(begun(), x, arms, rewards).for_arms(ARMS + 1)
    mean, spread = predictor.predict(offer(x[0], range(ARMS + 1)))
    assert mean[ARMS] == 0.0
    assert spread[ARMS] > spread[:ARMS].max()
    np.testing.assert_array_equal(predictor.predict(offer(x[0], [0, 2])).mean, mean[[0, 2]])


@pytest.mark.parametrize("n", [0, 1, 50, 128, 129, 200])
def test_stored(n):
    x, arms, rewards = world(200)
    predictor = taught(begun(), x[:n], arms[:n], rewards[:n])
    again = Predictor.family.load(predictor.state_dict())
    for one in (predictor, again):
        np.testing.assert_array_equal(one.predict(offer(x[0])), predictor.predict(offer(x[0])))
    rest = x[n:], arms[n:], rewards[n:]
    np.testing.assert_array_equal(
        taught(predictor, *rest).predict(offer(x[0])), taught(again, *rest).predict(offer(x[0]))
    )


def test_what_is_stored_is_checked():
    x, arms, rewards = world(50)
    state = taught(begun(), x, arms, rewards).state_dict()
    for broken in (
        {"cosines": 39}, {"ridge": 0.4}, {"count": 51}, {"arms": state["arms"][:-1]}, {"arms": [9] * 50},
        {"frequencies": np.zeros((40, 2))}, {"rewards": np.zeros(3)}, {"errors": -1.0}, {"seed": -1},
    ):  # fmt: skip
        with pytest.raises(DamagedState):
            Predictor.family.load({**state, **broken})


@pytest.mark.parametrize(
    "options", [{"cosines": 0}, {"lengthscale": 0.0}, {"ridge": -1.0}, {"noise": 0.0}, {"seed": -1}, {"seed": 0.5}]
)
def test_settings_are_checked(options):
    with pytest.raises(InvalidInput, match=next(iter(options))):
        CosinesPerArm(**options)
