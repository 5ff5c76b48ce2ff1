"""The test for noise larger than stated, against its definition and in simulation."""

import numpy as np
import pytest
from scipy.stats import binom

import mixbandit as mb
from mixbandit.data import Factor
from mixbandit.sequences import refutation


def definition(Phi, r, sigma, scales, theta):
    """ln of the mean of E_{c,κ}(θ), with t×t matrices."""
    t = len(r)
    logs = []
    for scale in scales:
        for inflation in refutation._INFLATIONS:
            T = scale * Phi @ Phi.T + (inflation - 1.0) * sigma**2 * np.eye(t)
            spread = np.eye(t) + T / sigma**2
            residual = Phi @ theta - r
            quadratic = (residual @ residual - r @ np.linalg.solve(spread, r)) / sigma**2
            logs.append(0.5 * (quadratic - np.linalg.slogdet(spread)[1]))
    return np.logaddexp.reduce(logs) - np.log(len(logs))


def seen(Phi, r):
    return Factor(Phi.shape[1]).learn(Phi, r)


def nearest(Phi, r, norm_bound):
    """The least residual over the norm ball, by projected gradients, and its minimiser."""
    step = 1.0 / max(np.linalg.norm(Phi, 2) ** 2, 1e-300)
    theta, momentum, weight = np.zeros(Phi.shape[1]), np.zeros(Phi.shape[1]), 1.0
    for _ in range(20_000):
        new = momentum - step * Phi.T @ (Phi @ momentum - r)
        new *= min(1.0, norm_bound / max(np.linalg.norm(new), 1e-300))
        if (momentum - new) @ (new - theta) > 0.0:  # restart where momentum leads away
            weight = 1.0
        next_weight = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * weight**2))
        momentum = new + (weight - 1.0) / next_weight * (new - theta)
        if np.linalg.norm(new - theta) <= 1e-15 * norm_bound:
            break
        theta, weight = new, next_weight
    return float(np.sum((Phi @ new - r) ** 2)), new


def instances():
    rng = np.random.default_rng(0)
    for t, d in ((1, 1), (1, 4), (5, 3), (3, 6), (12, 12), (40, 4)):
        for norm_bound in (1e-6, 0.3, 1.0, 1e4):
            yield rng.normal(size=(t, d)), 2.0 * rng.normal(size=t), norm_bound
    for norm_bound in (1e-6, 0.3, 1e4):
        yield np.zeros((0, 3)), np.zeros(0), norm_bound
        yield rng.normal(size=(6, 3)), np.zeros(6), norm_bound
        yield np.zeros((6, 3)), rng.normal(size=6), norm_bound
        yield np.tile(rng.normal(size=3), (7, 1)), rng.normal(size=7), norm_bound
        yield np.repeat(rng.normal(size=(2, 4)), 5, axis=0), rng.normal(size=10), norm_bound
        yield np.outer(np.arange(5.0), np.ones(2)), rng.normal(size=5), norm_bound
        yield rng.normal(size=(8, 2)) @ rng.normal(size=(2, 4)), rng.normal(size=8), norm_bound  # singular by rounding


@pytest.mark.parametrize(("Phi", "r", "norm_bound"), list(instances()))
def test_the_least_residual_over_the_ball_is_the_one_that_a_search_finds(Phi, r, norm_bound):
    found = refutation.least_residual(seen(Phi, r).spectrum, norm_bound)
    expected, _ = nearest(Phi, r, norm_bound)
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)
    if norm_bound == 1e4:
        least_squares = np.linalg.lstsq(Phi, r, rcond=None)[0]
        assert found == pytest.approx(np.sum((Phi @ least_squares - r) ** 2), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(("Phi", "r", "norm_bound"), list(instances()))
@pytest.mark.parametrize("sigma", [0.1, 2.0])
def test_it_is_the_least_mean_of_the_mixtures(Phi, r, norm_bound, sigma):
    rng, (t, d) = np.random.default_rng(1), Phi.shape
    scales = refutation.scales_of(1.0, d)
    test = refutation.NoiseTest(sigma, 0.05, norm_bound, scales)
    found = test.log_evalue(seen(Phi, r).spectrum, t)
    _, best = nearest(Phi, r, norm_bound)
    assert found == pytest.approx(definition(Phi, r, sigma, scales, best), rel=1e-7, abs=1e-7)
    for _ in range(5):  # no parameter in the ball has a smaller e-value
        other = rng.normal(size=d)
        other *= norm_bound * rng.uniform() / np.linalg.norm(other)
        assert found <= definition(Phi, r, sigma, scales, other) + 1e-7 * (1.0 + abs(found))


def test_without_a_norm_bound_it_is_at_least_squares():
    rng = np.random.default_rng(4)
    Phi, r = rng.normal(size=(12, 3)), rng.normal(size=12)
    bounded, free = (refutation.NoiseTest(0.1, 0.05, bound, (0.3, 0.03)) for bound in (1e6, None))
    spectrum = seen(Phi, r).spectrum
    assert free.log_evalue(spectrum, 12) == pytest.approx(bounded.log_evalue(spectrum, 12), rel=1e-12)


@pytest.mark.parametrize(
    "make", [mb.MartingaleMixture, mb.OFULSequence, mb.IGPSequence, mb.BayesCredible, mb.GeneralLambda]
)
def test_the_shortcut_never_hides_a_refutation(make):
    rng = np.random.default_rng(0)
    refuted = 0
    for i in range(400):
        t, d = int(rng.integers(1, 40)), int(rng.integers(1, 6))
        sigma, delta = float(10 ** rng.uniform(-1, 0.5)), 0.05
        if i % 2:  # near the border at a level that leaves the shortcut little room
            t, d, sigma, delta = 60, 1, float(rng.uniform(0.4, 0.55)), 1e-9
        norm_bound = (10.0, 0.5, 0.01)[i % 3]
        Phi, r = rng.normal(size=(t, d)), rng.normal(size=t)
        cs = make(d, sigma=sigma, norm_bound=norm_bound, delta=delta).update(Phi, r)
        test = refutation.NoiseTest(sigma, delta, norm_bound, refutation.scales_of(norm_bound, d))
        full = test.log_evalue(seen(Phi, r).spectrum, t) >= -np.log(delta)
        assert full == cs.noise_refuted
        refuted += full
    assert 50 < refuted < 350


def test_the_shortcut_is_necessary_whatever_is_expected_of_the_noise():
    """Rewards that any parameter could explain, but none in the ball, are best told by the least κ."""
    rng, passed = np.random.default_rng(8), 0
    for _ in range(2000):
        t, sigma = int(rng.integers(1, 100)), float(10 ** rng.uniform(-2, 2))
        least_squares = float(rng.choice((0.0, rng.uniform(0.0, 3.0 * t))) * sigma**2)
        residual = least_squares + float(rng.uniform(0.0, t) * sigma**2)
        test, inflations = refutation.NoiseTest(sigma, 0.1, 1.0, (1.0,)), refutation._INFLATIONS
        best = np.max(0.5 * ((residual - least_squares / inflations) / sigma**2 - t * np.log(inflations)))
        may = test.may_refute(residual, least_squares, t)
        assert may or best < np.log(10.0)
        passed += not may
    assert passed > 500


def test_where_the_shortcut_matters_the_set_has_not_been_made():
    """The closed form's route, by ridge regression, and the exact one's, by singular values, agree."""
    rng = np.random.default_rng(5)
    verdicts = set()
    for _ in range(200):
        t = int(rng.integers(1, 30))
        Phi = rng.normal(size=(t, 3))
        cs = mb.MartingaleMixture(3, sigma=0.3, norm_bound=1.0, delta=0.1)
        cs.update(Phi, Phi @ rng.normal(size=3) * rng.uniform() + rng.uniform(0.2, 0.6) * rng.normal(size=t))
        by_set = cs.copy()
        _ = by_set.moment.exact
        assert by_set.noise_refuted == cs.noise_refuted
        verdicts.add(cs.noise_refuted)
    assert verdicts == {True, False}


def cliff(t, rng):
    """A step, which 100 random Fourier features of norm at most 2 cannot follow, and which huge ones can."""
    phi = mb.RandomFourier(1, 100, lengthscale=0.2, rng=0)
    x = rng.uniform(size=(t, 1))
    return phi, x, np.where(x[:, 0] < 0.5, 0.2, 0.8) + 0.05 * rng.normal(size=t)


def test_a_cliff_that_only_huge_parameters_can_follow_is_seen():
    phi, x, rewards = cliff(150, np.random.default_rng(0))
    spectrum = seen(phi(x), rewards).spectrum
    before = refutation.NoiseTest(0.05, 0.05, None, (4.0 / 100,)).log_evalue(spectrum, 150)
    now = refutation.NoiseTest(0.05, 0.05, 2.0, refutation.scales_of(2.0, 100)).log_evalue(spectrum, 150)
    assert before < -20.0
    assert now > 20.0
    for make in (mb.MartingaleMixture, mb.OFULSequence, mb.IGPSequence, mb.GeneralLambda, mb.BayesCredible):
        assert make(phi, sigma=0.05, norm_bound=2.0, delta=0.05).update(x, rewards).noise_refuted
    assert not mb.BayesCredible(phi, sigma=0.05, delta=0.05).update(x, rewards).noise_refuted


def false_alarms(runs, rounds, law, delta=0.1, d=4, sigma=0.5):
    """Runs in which true assumptions are refuted at some time, with ‖θ*‖ = B and actions that chase the error."""
    test, alarms = refutation.NoiseTest(sigma, delta, 1.0, refutation.scales_of(1.0, d)), 0
    for run in range(runs):
        rng = np.random.default_rng([13, run])
        theta = rng.normal(size=d)
        theta /= np.linalg.norm(theta)
        gram, moment, data = np.eye(d), np.zeros(d), Factor(d)
        for t in range(1, rounds + 1):
            error = np.linalg.solve(gram, moment) - theta
            x = error / np.linalg.norm(error) if t % 2 else rng.normal(size=d)
            noise = sigma * (rng.normal() if law == "gaussian" else rng.choice((-1.0, 1.0)))
            reward = x @ theta + noise
            gram, moment = gram + np.outer(x, x), moment + reward * x
            data = data.learn(x[None], np.array([reward]))
            if t % 3 == 0 and test.refutes(data.spectrum, t):
                alarms += 1
                break
    return alarms


@pytest.mark.parametrize("law", ["gaussian", "rademacher"])
def test_a_design_that_chases_the_error_raises_no_more_alarms_than_delta(law):
    assert binom.sf(false_alarms(150, 45, law) - 1, 150, 0.1) > 0.001


@pytest.mark.heavy
@pytest.mark.parametrize("law", ["gaussian", "rademacher"])
def test_a_thousand_runs_raise_no_more_alarms_than_delta(law):
    assert binom.sf(false_alarms(1000, 90, law) - 1, 1000, 0.1) > 0.001


@pytest.mark.parametrize(
    "make", [mb.MartingaleMixture, mb.OFULSequence, mb.IGPSequence], ids=["mixture", "OFUL", "IGP"]
)
def test_noise_three_times_as_large_as_stated_is_refuted_soon(make):
    rng = np.random.default_rng(1)
    cs = make(4, sigma=0.1, norm_bound=100.0, delta=0.01)
    while not cs.is_refuted and cs.t < 60:
        cs.update(x := rng.normal(size=4), x.sum() + 0.3 * rng.normal())
    assert 5 < cs.t < 40
    assert not cs.is_empty


@pytest.mark.parametrize(("d", "extra"), [(5, 12), (20, 26), pytest.param(50, 62, marks=pytest.mark.heavy)])
def test_how_soon_noise_three_times_as_large_is_found_is_as_the_documentation_says(d, extra):
    found = []
    for run in range(25):
        rng = np.random.default_rng([d, run])
        theta = rng.normal(size=d) / np.sqrt(d)
        cs = mb.MartingaleMixture(d, sigma=0.1, norm_bound=2.0, delta=0.01)
        while not cs.noise_refuted:
            cs.update(x := rng.normal(size=d), x @ theta + 0.3 * rng.normal())
        found.append(cs.t - d)
    assert np.median(found) == pytest.approx(extra, rel=0.2)


def test_the_audit_says_so():
    rng = np.random.default_rng(1)
    Phi = rng.normal(size=(60, 4))
    cs = mb.MartingaleMixture(4, sigma=0.1, norm_bound=10.0).update(Phi, Phi.sum(axis=1) + 0.3 * rng.normal(size=60))
    audit = cs.audit()
    assert audit.noise_refuted
    assert not audit.refuted
    assert str(audit).startswith("REFUTED at level 0.01: residuals of every linear function")
    honest = mb.MartingaleMixture(4, sigma=0.3, norm_bound=10.0).update(Phi, Phi.sum(axis=1))
    assert not honest.audit().noise_refuted


def test_a_misspecified_function_refutes_unless_misspecification_is_stated():
    x = np.linspace(-1.0, 1.0, 80)[:, None]
    rewards = x[:, 0] + 0.5 * np.sign(np.sin(9 * x[:, 0]))
    assert mb.MartingaleMixture(1, sigma=0.1, norm_bound=2.0).update(x, rewards).noise_refuted
    assert not mb.MartingaleMixture(1, sigma=0.1, norm_bound=2.0, misspecification=0.5).update(x, rewards).noise_refuted


def test_stated_noise_levels_count():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(50, 2))
    levels = np.where(np.arange(50) % 2, 1.0, 0.1)
    rewards = x.sum(axis=1) + levels * rng.normal(size=50)
    cs = mb.MartingaleMixture(2, sigma=0.1, norm_bound=10.0)
    assert cs.copy().update(x, rewards).noise_refuted
    assert not cs.copy().update(x, rewards, sigma=levels).noise_refuted


def test_general_lambda_tests_the_noise_with_any_weights():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(60, 3))
    levels = np.where(np.arange(60) % 2, 0.4, 0.1)
    rewards = x.sum(axis=1) + levels * rng.normal(size=60)
    plain = mb.MartingaleMixture(3, sigma=0.1, norm_bound=3.0)
    for lam in (None, 3.0, lambda t, action: 1.0 + t % 2):
        cs = mb.GeneralLambda(3, sigma=0.1, norm_bound=3.0, lam=lam)
        assert cs.copy().update(x, rewards).noise_refuted
        assert plain.copy().update(x, rewards).noise_refuted
        assert not cs.copy().update(x, rewards, sigma=levels).noise_refuted
        halves = cs.copy().update(x[:30], rewards[:30]), cs.copy().update(x[30:], rewards[30:])
        assert halves[0].merge(halves[1]).noise_refuted
        assert "not tested" not in str(cs.audit())
    assert cs.update(x, rewards).audit().noise_refuted


def test_general_lambda_of_an_old_state_says_that_the_noise_is_not_tested():
    cs = mb.GeneralLambda(1, sigma=0.1, norm_bound=10.0).update(np.ones((20, 1)), np.tile([-5.0, 5.0], 10))
    assert cs.noise_refuted
    state = cs.state_dict()
    assert mb.GeneralLambda.from_state_dict(state).noise_refuted
    del state["weighted"]["standardised"]
    old = mb.GeneralLambda.from_state_dict(state)
    old.update(np.ones((20, 1)), np.tile([-5.0, 5.0], 10))
    for each in (old, old.merge(cs), cs.merge(old)):
        assert not each.noise_refuted
        assert each.audit().residual_spread is None
        assert "noise is larger than stated is not tested" in str(each.audit())


@pytest.mark.parametrize("law", ["gaussian", "rademacher"])
@pytest.mark.parametrize("runs", [100, pytest.param(300, marks=pytest.mark.heavy)])
def test_true_noise_is_refuted_in_no_more_runs_than_delta(law, runs):
    """At any of 80 times; adaptive actions would make no difference, as the theory does not look at them."""
    delta, alarms = 0.1, 0
    for run in range(runs):
        rng = np.random.default_rng([9, run])
        cs = mb.MartingaleMixture(3, sigma=0.5, norm_bound=3.0, delta=delta)
        for _ in range(80):
            x = rng.normal(size=3)
            draw = rng.normal() if law == "gaussian" else rng.choice((-1.0, 1.0))
            cs.update(x, x.sum() + 0.5 * draw)
            if cs.noise_refuted:
                alarms += 1
                break
    assert binom.sf(alarms - 1, runs, delta) > 0.001
