"""Coverage, bounded to what a test can afford; `mixbandit coverage` does it in full."""

import dataclasses

import numpy as np
import pytest

import mixbandit as mb
from mixbandit.paper import coverage
from mixbandit.paper.coverage import Coverage, CoverageSettings
from mixbandit.paper.parallel import Workers

ANYTIME = [name for name in coverage.SEQUENCES if not name.startswith("bayes")]


@pytest.mark.parametrize("sequence", ANYTIME)
@pytest.mark.parametrize(
    ("noise", "design"),
    [("gaussian", "iid"), ("rademacher", "optimistic"), ("uniform", "chasing"), ("bernoulli", "optimistic")],
)
def test_every_anytime_sequence_keeps_its_promise(sequence, noise, design):
    settings = CoverageSettings(sequence, noise, design, dim=3, rounds=40)
    result = coverage.measure(settings, runs=60)
    assert result.guarantee == "anytime"
    assert result.holds, result


@pytest.mark.heavy
@pytest.mark.parametrize("design", coverage.DESIGNS)
@pytest.mark.parametrize("noise", coverage.NOISES)
@pytest.mark.parametrize("sequence", ANYTIME)
def test_every_anytime_sequence_keeps_its_promise_under_every_noise_and_design(sequence, noise, design):
    result = coverage.measure(
        CoverageSettings(sequence, noise, design, rounds=100, seed=1), runs=200, workers=Workers(2)
    )
    assert result.holds, result


def overconfident(theta, sigma, delta):
    """A sequence told a third of the true noise level."""
    return mb.MartingaleMixture(len(theta), sigma=sigma / 3, delta=delta, norm_bound=float(np.linalg.norm(theta)))


def test_an_invalid_sequence_is_caught():
    result = coverage.measure(CoverageSettings("overconfident", rounds=40), runs=60, factory=overconfident)
    assert not result.holds
    assert result.misses > 30


def test_a_wrong_prior_breaks_bayes_and_not_ours():
    ours, bayes = (
        coverage.measure(CoverageSettings(name, dim=3, rounds=20), runs=40) for name in ("wrong-prior", "bayes-wrong")
    )
    assert ours.holds
    assert bayes.guarantee == "bayesian"
    assert not bayes.holds


@pytest.mark.parametrize("noise", coverage.NOISES)
def test_noise_is_sub_gaussian_at_the_stated_level(noise):
    """E exp(λε) ≤ exp(λ²σ²/2) up to Monte-Carlo error, and the mean is the expected reward."""
    settings = CoverageSettings(noise=noise, sigma=0.25, dim=3)
    world = coverage._World(settings, np.random.default_rng(0))
    action = world.pool()[0]
    noises = np.array([world.reward(action) for _ in range(20_000)]) - action @ world.theta
    assert abs(noises.mean()) < 5 * 0.25 / np.sqrt(20_000)
    for strength in (-4.0, -1.0, 1.0, 4.0):
        growth = np.exp(strength * noises)
        slack = 5 * growth.std() / np.sqrt(20_000)
        assert growth.mean() <= np.exp(strength**2 * 0.25**2 / 2) + slack


def test_runs_do_not_depend_on_jobs_or_interruption(tmp_path):
    settings = CoverageSettings(rounds=15, dim=2)
    whole = coverage.measure(settings, runs=12)
    assert coverage.measure(settings, runs=12, workers=Workers(2)) == whole

    def stop_after_five(done):
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        coverage.measure(settings, runs=12, folder=tmp_path, progress=stop_after_five)
    started = []
    resumed = coverage.measure(settings, runs=12, folder=tmp_path, progress=started.append)
    assert started[0] == 5
    assert resumed == whole
    assert len(list(tmp_path.iterdir())) == 1


def test_a_damaged_result_file_is_refused(tmp_path):
    settings = CoverageSettings(rounds=5, dim=2)
    coverage.measure(settings, runs=3, folder=tmp_path)
    (file,) = tmp_path.iterdir()
    whole = file.read_text()
    for damaged in (whole.replace("# {", "# {{"), whole.replace("repetition,", ""), whole + "3\n", ""):
        file.write_text(damaged)
        with pytest.raises(mb.DamagedState, match="damaged"):
            coverage.measure(settings, runs=3, folder=tmp_path)


def result(misses, runs, delta=0.05):
    settings = CoverageSettings(delta=delta)
    return Coverage(settings, "anytime", (1,) * misses + (0,) * (runs - misses))


def test_the_verdict_is_a_binomial_test():
    from scipy.stats import binomtest

    for misses in (0, 1, 60, 90, 1000):
        ours = result(misses, 1000)
        theirs = binomtest(misses, 1000, 0.05, alternative="greater")
        assert ours.pvalue == pytest.approx(theirs.pvalue, rel=1e-9)
        two_sided = binomtest(misses, 1000, 0.05).proportion_ci(method="exact")
        assert ours.interval == pytest.approx((two_sided.low, two_sided.high), rel=1e-6)
    assert result(60, 1000).holds
    assert not result(90, 1000).holds


@pytest.mark.parametrize(
    "spoil",
    [{"noise": "cauchy"}, {"design": "lazy"}, {"dim": 0}, {"rounds": 0}, {"delta": 1.0}, {"sigma": -1.0}],
)
def test_bad_settings_are_named(spoil):
    with pytest.raises(mb.InvalidInput, match=next(iter(spoil))):
        dataclasses.replace(CoverageSettings(), **spoil)


def test_a_factory_needs_a_name_of_its_own(tmp_path):
    with pytest.raises(mb.InvalidInput, match="needs a new name"):
        coverage.measure(CoverageSettings("standard"), runs=1, factory=overconfident, folder=tmp_path)


def test_settings_are_plain_numbers_and_bernoulli_has_a_limit():
    settings = CoverageSettings(dim=np.int64(2), seed=np.int64(3))
    assert (type(settings.dim), type(settings.seed)) == (int, int)
    with pytest.raises(mb.InvalidInput, match="coin flips"):
        CoverageSettings(noise="bernoulli", sigma=1e-12)
    with pytest.raises(mb.InvalidInput, match="seed"):
        CoverageSettings(seed=-1)


def test_an_unknown_sequence_is_named():
    with pytest.raises(mb.InvalidInput, match="standard, scaled"):
        coverage.measure(CoverageSettings("magic"), runs=1)
