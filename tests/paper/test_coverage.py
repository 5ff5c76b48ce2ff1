"""Coverage, bounded to what a test can afford; `mixbandit coverage` does it in full."""

import csv
import dataclasses
import itertools
from pathlib import Path

import numpy as np
import pytest

import mixbandit as mb
from mixbandit.paper import coverage
from mixbandit.paper.coverage import Coverage, CoverageSettings
from mixbandit.paper.parallel import Workers
from mixbandit.simulate.environments import RANGED

EXACT = "bounded-exact"  # the set of "bounded", with bounds that take a hundred times as long
ANYTIME = [name for name in coverage.SEQUENCES if not name.startswith("bayes") and name != EXACT]
UNBOUNDED = tuple(noise for noise in coverage.NOISES if noise not in RANGED)
PROMISED = [name for name, arrival in coverage.ARRIVALS.items() if arrival.valid]


def assumed(*cells):
    """(sequence, noise, design, …) of every anytime sequence with what it assumes."""
    return [
        (s, *cell)
        for s in ANYTIME
        for cell in cells
        if coverage.assumes_this_noise(s, cell[0]) and coverage.assumes_this_design(s, cell[1])
    ]


def weak(sequence, design):
    """One action is a weak design, but for the sequences of one mean."""
    return design == "one mean" and not sequence.startswith("mean")


def briefly(sequence, noise, design, feedback):
    """Contexts are in another cell of the quick run."""
    heavy = weak(sequence, design) or (noise, design, feedback) == ("gaussian", "contexts", "independent")
    return pytest.param(sequence, noise, design, feedback, marks=[pytest.mark.heavy] if heavy else [])


@pytest.mark.parametrize(
    ("sequence", "noise", "design", "feedback"),
    [
        briefly(*cell)
        for cell in assumed(
            ("gaussian", "iid", "at once"),
            ("rademacher", "optimistic", "by value in order of play"),
            ("uniform", "chasing", "independent"),
            ("bernoulli", "contexts", "at once"),
            ("gaussian", "contexts", "independent"),
            ("beta", "one mean", "independent"),
            ("gaussian", "one mean", "at once"),
        )
    ],
)
def test_every_anytime_sequence_keeps_its_promise(sequence, noise, design, feedback):
    settings = CoverageSettings(sequence, noise, design, dim=3, rounds=30, feedback=feedback, late=10)
    result = coverage.measure(settings, runs=6 if sequence == "bounded" else 30)
    assert result.guarantee == "anytime"
    assert result.promised
    assert result.holds, result


@pytest.mark.parametrize(("sigma", "runs", "rounds"), [(0.5, 4, 15), (0.05, 6, 15)])
@pytest.mark.parametrize("noise", RANGED)
@pytest.mark.parametrize("sequence", ["bounded", "mean"])
def test_promises_hold_next_to_an_end(sequence, noise, sigma, runs, rounds):
    design = "one mean" if sequence == "mean" else "chasing"
    settings = CoverageSettings(sequence, noise, design, dim=3, rounds=rounds, sigma=sigma, means="near an end")
    result = coverage.measure(settings, runs=runs)
    assert result.promised
    assert result.holds, result


def test_exact_bounds_are_those_of_the_same_set():
    settings = CoverageSettings(EXACT, "bernoulli", "chasing", dim=2, rounds=6)
    assert coverage.measure(settings, runs=2).holds
    theta = np.array([0.3, 0.8])
    ours, exact = (coverage.SEQUENCES[name](theta, 0.5, 0.05) for name in ("bounded", EXACT))
    for sequence in (ours, exact):
        sequence.update(np.array([[0.5, 0.5], [0.9, 0.1]]), np.array([1.0, 0.0]))
    for other in (theta, np.array([0.8, 0.01]), np.array([0.0, 1.0])):
        assert ours.contains(other) == exact.contains(other)


def worth_minutes(sequence, noise, design):
    """Leaves out what other cells say already: one action is a weak design, and coin flips stand for a range."""
    one_mean = sequence.startswith("mean")
    return one_mean == (design == "one mean") and (
        sequence in ("bounded", "mean") or noise in (*UNBOUNDED, "bernoulli")
    )


@pytest.mark.heavy
@pytest.mark.parametrize("feedback", PROMISED)
@pytest.mark.parametrize(
    ("sequence", "noise", "design"),
    [cell for cell in assumed(*itertools.product(coverage.NOISES, coverage.DESIGNS)) if worth_minutes(*cell)],
)
def test_every_anytime_sequence_keeps_its_promise_in_every_cell(sequence, noise, design, feedback):
    settings = CoverageSettings(sequence, noise, design, rounds=50, seed=1, feedback=feedback)
    result = coverage.measure(settings, runs=15 if sequence == "bounded" else 60, workers=Workers(2))
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
    [
        {"noise": "cauchy"},
        {"design": "lazy"},
        {"feedback": "never"},
        {"means": "somewhere"},
        {"late": 0},
        {"dim": 0},
        {"rounds": 0},
        {"delta": 1.0},
        {"sigma": -1.0},
    ],
)
def test_bad_settings_are_named(spoil):
    with pytest.raises(mb.InvalidInput, match=next(iter(spoil))):
        dataclasses.replace(CoverageSettings(), **spoil)


@pytest.mark.parametrize("noise", ["rademacher", "uniform", "bernoulli"])
def test_a_sequence_for_gaussian_noise_is_not_measured_with_another(noise):
    with pytest.raises(mb.InvalidInput, match=f"assumes gaussian noise, got noise='{noise}'"):
        CoverageSettings("unknown-noise", noise)


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        (("bounded", "gaussian"), r"assumes results in a range \(bernoulli, beta, two-point\), got noise='gaussian'"),
        (("mean-gaussian", "beta", "one mean"), "assumes gaussian noise, got noise='beta'"),
        (("mean", "beta", "chasing"), "is for one mean, got design='chasing'"),
    ],
)
def test_what_a_sequence_does_not_assume_is_refused(cell, words):
    with pytest.raises(mb.InvalidInput, match=words):
        CoverageSettings(*cell)


def test_means_near_an_end_are_for_results_in_a_range():
    with pytest.raises(mb.InvalidInput, match="means='near an end' needs results in a range"):
        CoverageSettings(means="near an end")
    ends = set()
    for run in range(10):
        world = coverage.World(CoverageSettings(noise="beta", means="near an end"), run)
        expected = world.options() @ world.theta
        assert (expected < coverage.NEAR).all() or (expected > 1.0 - coverage.NEAR).all()
        ends.add(bool(expected[0] > 0.5))
    assert ends == {False, True}


@pytest.mark.parametrize("noise", RANGED)
@pytest.mark.parametrize("sigma", [0.5, 0.05])
def test_rewards_in_a_range_are_means_of_results_in_it(noise, sigma):
    world = coverage.World(CoverageSettings(noise=noise, sigma=sigma, design="one mean", means="near an end"), run=0)
    (action,) = world.options()
    rewards = np.array([world.reward(action) for _ in range(2000)])
    assert action @ world.theta == world.theta[0]
    assert 0.0 <= rewards.min() <= rewards.max() <= 1.0
    assert rewards.mean() == pytest.approx(world.theta[0], abs=5 * rewards.std() / np.sqrt(2000))


def test_contexts_are_offered_to_every_arm_and_theta_stacks_one_vector_per_arm():
    settings = CoverageSettings(design="contexts", dim=3)
    world = coverage.World(settings, run=0)
    blocks = world.options().reshape(coverage.ARMS, coverage.ARMS, 3)
    (context,) = {tuple(blocks[arm, arm]) for arm in range(coverage.ARMS)}
    assert any(context)
    assert np.count_nonzero(blocks) == coverage.ARMS * 3
    assert np.linalg.norm(world.theta.reshape(coverage.ARMS, 3), axis=1) == pytest.approx(np.ones(coverage.ARMS))


def arrivals(feedback, rounds=60):
    """Per reward in the order in which it counts: the round of play, the round of arrival, its noise."""
    world = coverage.World(CoverageSettings(dim=2, feedback=feedback, late=7), run=0)
    played, counted = [], []
    for t in range(1, rounds + 1):
        action = world.options()[0]
        world.play(t, action)
        played.append(tuple(action))
        for told, reward in world.arrived(t):
            counted.append((1 + played.index(tuple(told)), t, reward - told @ world.theta))
    return counted


def test_how_rewards_arrive():
    at_once = arrivals("at once")
    assert [(play, arrival) for play, arrival, _ in at_once] == [(t, t) for t in range(1, 61)]
    noise = {play: value for play, _, value in at_once}

    independent = arrivals("independent")
    assert {arrival - play for play, arrival, _ in independent} == {0, 7}
    late = [value for play, arrival, value in independent if arrival > play]
    assert min(late) < 0 < max(late)
    assert {play: value for play, _, value in independent}.items() <= noise.items()  # the same stream

    by_value = arrivals("by value")
    assert all((arrival - play, value < 0) in ((0, False), (7, True)) for play, arrival, value in by_value)

    in_order = arrivals("by value in order of play")
    assert [play for play, _, _ in in_order] == list(range(1, len(in_order) + 1))
    assert all(arrival >= play + 7 * (value < 0) for play, arrival, value in in_order)


def test_the_table_by_sequence_names_the_worst_cell(tmp_path):
    def cell(sequence, design, misses):
        return Coverage(CoverageSettings(sequence, design=design), "anytime", (1,) * misses + (0,) * (100 - misses))

    cells = [cell("standard", "iid", 1), cell("standard", "contexts", 3), cell("oful", "iid", 60)]
    coverage.write_by_sequence(tmp_path / "table.csv", cells, command="as typed")
    comment, _, *rows = (tmp_path / "table.csv").read_text().splitlines()
    assert comment.endswith("command: as typed")
    assert rows == [
        'standard,anytime,2,4 of 200,"gaussian, contexts, at once",3 of 100,within δ',
        'oful,anytime,1,60 of 100,"gaussian, iid, at once",60 of 100,misses',
    ]


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


RESULTS = Path(__file__).parents[2] / "docs" / "results"


def committed(name):
    """What made a committed grid, and its cells."""
    comment, *lines = (RESULTS / name).read_text().splitlines()
    kinds = {field.name: type(field.default) for field in dataclasses.fields(CoverageSettings)}
    cells = []
    for row in csv.DictReader(lines):
        settings = CoverageSettings(**{key: kinds[key](value) for key, value in row.items() if key in kinds})
        missed, runs = int(row["misses"]), int(row["runs"])
        cells.append(Coverage(settings, row["guarantee"], (1,) * missed + (0,) * (runs - missed)))
    return comment, cells


def test_the_committed_grid_is_complete_and_holds():
    comment, cells = committed("coverage.csv")
    assert "; command: mixbandit coverage " in comment
    assert len({cell.settings for cell in cells}) == len(cells) >= 60
    assert {cell.runs for cell in cells} == {1000}
    for sequence, noise in {(cell.settings.sequence, cell.settings.noise) for cell in cells}:
        crossed = {
            (cell.settings.design, cell.settings.feedback)
            for cell in cells
            if (cell.settings.sequence, cell.settings.noise) == (sequence, noise)
        }
        assert ("contexts", "independent") in crossed
    assert all(cell.holds for cell in cells if cell.promised)


@pytest.mark.parametrize(
    ("name", "sequences", "cells"),
    [
        ("bounded", {"bounded"}, 12),
        ("bounded_exact", {EXACT}, 4),
        ("mean", {"mean", "mean-sigma", "mean-gaussian"}, 32),
        ("unknown_noise", {"unknown-noise"}, 8),
    ],
)
def test_what_was_committed_of_the_other_sequences_holds(name, sequences, cells):
    comment, found = committed(f"coverage_{name}.csv")
    assert "; command: mixbandit coverage " in comment
    assert len({cell.settings for cell in found}) == len(found) == cells
    assert {cell.settings.sequence for cell in found} == sequences
    assert all(cell.promised and cell.holds for cell in found)


@pytest.mark.parametrize("grid", ["coverage", "coverage_mean"])
def test_the_committed_table_by_sequence_is_that_of_the_grid(tmp_path, grid):
    comment, cells = committed(f"{grid}.csv")
    coverage.write_by_sequence(tmp_path / "again.csv", cells)
    table, again = (
        path.read_text().splitlines() for path in (RESULTS / f"{grid}_by_sequence.csv", tmp_path / "again.csv")
    )
    assert table[0] == comment
    assert table[1:] == again[1:]
