"""Coverage, bounded to what a test can afford; `mixbandit coverage` does it in full."""

import dataclasses

import numpy as np
import pytest

import mixbandit as mb
from mixbandit.paper import coverage
from mixbandit.paper.coverage import Coverage, CoverageSettings
from mixbandit.paper.parallel import Workers

ANYTIME = [name for name in coverage.SEQUENCES if not name.startswith("bayes")]
PROMISED = [name for name, arrival in coverage.ARRIVALS.items() if arrival.valid]


def assumed(*cells):
    """(sequence, noise, …) of every anytime sequence with the noises that it assumes."""
    return [(s, *cell) for s in ANYTIME for cell in cells if coverage.assumes_this_noise(s, cell[0])]


@pytest.mark.parametrize(
    ("sequence", "noise", "design", "feedback"),
    assumed(
        ("gaussian", "iid", "at once"),
        ("rademacher", "optimistic", "by value in order of play"),
        ("uniform", "chasing", "independent"),
        ("bernoulli", "contexts", "at once"),
        ("gaussian", "contexts", "independent"),
    ),
)
def test_every_anytime_sequence_keeps_its_promise(sequence, noise, design, feedback):
    settings = CoverageSettings(sequence, noise, design, dim=3, rounds=40, feedback=feedback)
    result = coverage.measure(settings, runs=40)
    assert result.guarantee == "anytime"
    assert result.promised
    assert result.holds, result


@pytest.mark.heavy
@pytest.mark.parametrize("feedback", PROMISED)
@pytest.mark.parametrize("design", coverage.DESIGNS)
@pytest.mark.parametrize(("sequence", "noise"), assumed(*((noise,) for noise in coverage.NOISES)))
def test_every_anytime_sequence_keeps_its_promise_in_every_cell(sequence, noise, design, feedback):
    settings = CoverageSettings(sequence, noise, design, rounds=60, seed=1, feedback=feedback)
    result = coverage.measure(settings, runs=100, workers=Workers(2))
    assert result.holds, result


def overconfident(theta, sigma, delta):
    """A sequence told a third of the true noise level."""
    return mb.MartingaleMixture(len(theta), sigma=sigma / 3, delta=delta, norm_bound=float(np.linalg.norm(theta)))


@pytest.mark.parametrize(
    ("design", "feedback"), [("iid", "at once"), ("contexts", "at once"), ("contexts", "independent")]
)
def test_an_invalid_sequence_is_caught(design, feedback):
    settings = CoverageSettings("overconfident", design=design, rounds=40, feedback=feedback)
    result = coverage.measure(settings, runs=60, factory=overconfident)
    assert result.promised
    assert not result.holds
    assert result.misses > 30


def test_bad_news_that_comes_late_is_caught_unless_the_order_of_play_is_kept():
    settings = CoverageSettings("standard", design="optimistic", dim=2, rounds=120, late=100)
    arrival, play = (
        coverage.measure(dataclasses.replace(settings, feedback=feedback), runs=12)
        for feedback in ("by value", "by value in order of play")
    )
    assert not arrival.promised
    assert not arrival.holds
    assert play.promised
    assert play.holds


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
    world = coverage.World(settings, run=0)
    action = world.options()[0]
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
