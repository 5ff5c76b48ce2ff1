import numpy as np
import pytest

import mixbandit as mb
from mixbandit.bandits import Choice
from mixbandit.simulate.environments import NOISES, largest_expected, noisy

PHI = mb.RandomFourier(dim_in=2, dim=10, lengthscale=0.4, rng=0)
THETA = np.random.default_rng(0).normal(size=10)
BOX = mb.Box([0.0, 0.0], [1.0, 1.0])


def choice(action, context=None):
    return Choice(0, np.asarray(action, dtype=float), None, -1.0, 1.0, context=context)


def test_the_optimum_over_a_box_is_found_and_proven():
    environment = mb.LinearEnvironment(PHI, THETA, BOX, sigma=0.1)
    grid = np.stack(np.meshgrid(*[np.linspace(0, 1, 401)] * 2), axis=-1).reshape(-1, 2)
    best = (PHI(grid) @ THETA).max()
    assert best - 1e-9 <= environment.best(0) <= best + 1e-3
    assert environment.optimum_proven
    arms = mb.LinearEnvironment(PHI, THETA, grid[::500], sigma=0.1)
    assert arms.best(3) == pytest.approx((PHI(grid[::500]) @ THETA).max())
    assert largest_expected(mb.Identity(8), np.ones(8), mb.Box(np.zeros(8), np.ones(8))) == (pytest.approx(8.0), False)


def test_rounds_depend_on_the_seed_alone():
    one, same, other = (mb.ChangingArms(4, np.ones(4), arms=7, sigma=0.5, seed=seed) for seed in (1, 1, 2))
    for t in (5, 0, 3):  # in any order
        np.testing.assert_array_equal(one.offer(t).arms.actions, same.offer(t).arms.actions)
        assert one.reward(t, choice(np.ones(4))) == same.reward(t, choice(np.ones(4)))
        assert one.reward(t, choice(np.ones(4))) != other.reward(t, choice(np.ones(4)))
        assert one.best(t) == (one.offer(t).arms.actions @ np.ones(4)).max()
    assert not np.array_equal(one.offer(0).arms.actions, one.offer(1).arms.actions)
    assert one.fingerprint() == same.fingerprint() != other.fingerprint()


def test_arms_of_ones_own_making():
    environment = mb.ChangingArms(2, [1.0, 0.0], sigma=0.1, draw=lambda rng: rng.choice([0.0, 1.0], size=(3, 2)))
    assert set(environment.offer(0).arms.actions.ravel()) <= {0.0, 1.0}


def test_contexts():
    phi = mb.Interaction(1, 1)
    environment = mb.LinearEnvironment(
        phi, [2.0], mb.Box([-1.0], [1.0]), sigma=0.1, context=lambda rng: rng.choice([-1.0, 1.0], size=1)
    )
    contexts = [environment.offer(t).context for t in range(10)]
    assert {float(x[0]) for x in contexts} == {-1.0, 1.0}
    assert environment.expected(0, choice([0.5], context=contexts[0])) == pytest.approx(contexts[0][0])
    assert [environment.best(t) for t in range(3)] == pytest.approx([2.0] * 3)
    with pytest.raises(mb.InvalidInput, match="need a context"):
        mb.LinearEnvironment(phi, [2.0], mb.Box([-1.0], [1.0]), sigma=0.1)
    with pytest.raises(mb.InvalidInput, match="no room for a context"):
        mb.LinearEnvironment(1, [2.0], mb.Box([-1.0], [1.0]), sigma=0.1, context=lambda rng: [1.0])


@pytest.mark.parametrize("law", NOISES)
def test_noise_has_the_stated_mean_and_at_most_the_stated_spread(law):
    rng = np.random.default_rng(0)
    rewards = np.array([noisy(0.3, law, 0.25, rng) for _ in range(20_000)])
    assert rewards.mean() == pytest.approx(0.3, abs=5 * 0.25 / np.sqrt(20_000))
    assert rewards.std() <= 0.25 * 1.03


def test_bernoulli_refuses_what_is_no_probability():
    environment = mb.LinearEnvironment(1, [1.0], [[1.5], [0.2]], sigma=0.5, noise="bernoulli")
    assert environment.reward(0, choice([0.2])) in (0.0, 1.0)
    with pytest.raises(mb.InvalidInput, match=r"probabilities, got 1\.5"):
        environment.reward(0, choice([1.5]))


def test_fingerprints_tell_environments_apart():
    base = mb.ChangingArms(2, [1.0, 0.0], arms=5, sigma=0.1)
    others = [
        mb.ChangingArms(2, [1.0, 0.0], arms=6, sigma=0.1),
        mb.ChangingArms(2, [1.0, 0.0], arms=5, sigma=0.1, noise="uniform"),
        mb.ChangingArms(2, [1.0, 0.0], arms=5, sigma=0.1, draw=lambda rng: [[1.0, 0.0]]),
        mb.ChangingArms(mb.RandomLayer(2, 2, rng=0), [1.0, 0.0], arms=5, sigma=0.1),
    ]
    assert all(base.fingerprint() != other.fingerprint() for other in others)
    one, other = (mb.LinearEnvironment(2, [1.0, 0.0], rows, sigma=0.1) for rows in ([[1.0, 0.0]], [[2.0, 0.0]]))
    assert one.fingerprint() != other.fingerprint()


def test_a_function():
    seen = []

    def function(action):
        seen.append(action.copy())
        action[:] = 9.0  # rude, and harmless
        return 1.5

    environment = mb.FunctionEnvironment(function, BOX, expected=lambda a: a.sum(), best=2.0)
    played = choice([0.25, 0.5])
    assert environment.reward(0, played) == 1.5
    assert environment.expected(0, played) == 0.75
    assert environment.best(7) == 2.0
    np.testing.assert_array_equal(seen, [[0.25, 0.5]])
    assert mb.FunctionEnvironment(function).expected(0, played) is None
    with pytest.raises(mb.InvalidInput, match="returned must be a number, got 'good'"):
        mb.FunctionEnvironment(lambda a: "good").reward(0, played)


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: mb.LinearEnvironment(2, [1.0], BOX, sigma=0.1), "theta must have shape"),
        (lambda: mb.LinearEnvironment(2, [1.0, 1.0], BOX, sigma=0.0), "sigma must be positive"),
        (lambda: mb.LinearEnvironment(2, [1.0, 1.0], BOX, sigma=1.0, noise="cauchy"), "cauchy"),
        (lambda: mb.ChangingArms(2, [1.0, 1.0], arms=0, sigma=1.0), "arms"),
        (lambda: mb.ChangingArms(2, [1.0, 1.0], sigma=1.0, seed=-1), "seed"),
        (lambda: mb.FunctionEnvironment("f"), "callable"),
    ],
)
def test_bad_settings_are_refused(build, says):
    with pytest.raises(mb.InvalidInput, match=says):
        build()
