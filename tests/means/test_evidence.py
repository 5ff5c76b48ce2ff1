"""E-values and intervals against their definitions, and where arithmetic is hard."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp
from scipy import optimize, stats

import mixbandit as mb
from tests.means.reference import log_portfolio, log_student, set_by_grid

LEVEL = math.log(20.0)


def fractions(rng, n, kind):
    return {
        "uniform": lambda: rng.random(n),
        "narrow": lambda: 0.94 + 0.01 * rng.uniform(-1, 1, n),
        "yes or no": lambda: (rng.random(n) < 0.8).astype(float),
        "with ends": lambda: np.clip(rng.normal(0.7, 0.3, n), 0.0, 1.0),
    }[kind]()


@pytest.mark.parametrize("kind", ["uniform", "narrow", "yes or no", "with ends"])
@pytest.mark.parametrize("n", [1, 7, pytest.param(15, marks=pytest.mark.heavy)])
def test_evalues_of_single_values_follow_their_definition(kind, n):
    x = fractions(np.random.default_rng([n, 1]), n, kind)
    cs = mb.MeanSequence().update(x)
    for p in (0.02, 0.5, 0.8, 0.93, 0.999):
        assert cs.log_evalue(p) == pytest.approx(log_portfolio(p, x), rel=1e-10, abs=1e-9)


@pytest.mark.parametrize("p", [0.05, 0.4, 0.9])
def test_means_of_results_and_single_values_go_together(p):
    rng = np.random.default_rng(3)
    r, m, x = np.array([0.25, 0.9]), np.array([4, 50]), rng.random(6)
    both = mb.MeanSequence().update(r, m).update(x)
    assert both.log_evalue(p) == pytest.approx(log_portfolio(p, x, zip(r, m.tolist(), strict=True)), abs=2e-8)
    alone = mb.MeanSequence().update(r, m)
    assert alone.log_evalue(p) == pytest.approx(log_portfolio(p, [], zip(r, m.tolist(), strict=True)), rel=1e-9)


PARTS = [(0.01, 2), (0.2, 3), (0.77, 2), (0.999, 7), (1e-9, 2), (0.9999999990476063, 5), (0.03758830314949586, 5)]


@pytest.mark.parametrize(("r", "m"), PARTS)
@pytest.mark.parametrize("singles", [[0.3, 0.6], [0.9999, 0.04], [0.5] * 150], ids=["two", "next to an end", "many"])
def test_parts_of_a_result_never_make_evidence_too_large(r, m, singles):
    """They leave a kink at the ends of the integrand, where midpoints exceeded the integral by up to .0143 nats."""
    cs = mb.MeanSequence().update(r, m).update(singles)
    for p in (6e-4, 0.5, 0.97):
        true = log_portfolio(p, singles, [(r, m)])
        for found in (cs.log_evalue(p), cs.evidence.log_path(cs.record, p)[0][-1]):
            assert true - 2e-8 < found <= true + 1e-11 * (1.0 + abs(true))


def test_parts_that_add_up_to_a_result_leave_no_more_than_they_should_on_the_way():
    """The last total is whole, the totals before it are not."""
    cs = mb.MeanSequence().update([0.25, 0.25], [2, 2]).update([0.3]).update([0.5, 0.5], [2, 3])
    path = cs.evidence.log_path(cs.record, 0.9)[0]
    for t in range(1, 6):
        means = [(0.25, 2), (0.25, 2), None, (0.5, 2), (0.5, 3)][:t]
        true = log_portfolio(0.9, [0.3] if t > 2 else [], [each for each in means if each])
        assert true - 2e-8 < path[t - 1] <= true + 1e-11


@pytest.mark.parametrize("kind", ["uniform", "narrow", "with ends"])
@pytest.mark.parametrize("n", [200, 3000])
def test_many_values_agree_with_a_fine_quadrature(kind, n):
    x = fractions(np.random.default_rng([n, 2]), n, kind)
    cs = mb.MeanSequence().update(x)
    angle = (np.arange(20_000) + 0.5) * np.pi / 40_000
    for p in (cs.lower(), cs.mean, cs.upper(), 0.3, 0.99):
        a, b = np.sin(angle) ** 2 / p, np.cos(angle) ** 2 / (1 - p)
        logs = sum(np.log(x_i * a + (1 - x_i) * b) for x_i in x)
        true = np.logaddexp.reduce(logs) - math.log(len(angle))
        # More than 1,024 different values are spread over as many: a little less evidence, never more.
        assert true - (1e-7 if n < 1000 else 1e-3 * (1 + abs(true))) < cs.log_evalue(p) <= true + 1e-7


@pytest.mark.parametrize("kind", ["uniform", "narrow", "yes or no", "with ends"])
@pytest.mark.parametrize(("n", "delta"), [(1, 0.05), (12, 0.05), (90, 1e-6), (300, 0.05)])
def test_intervals_are_what_a_grid_finds(kind, n, delta):
    x = fractions(np.random.default_rng([n, 3]), n, kind)
    cs = mb.MeanSequence(delta=delta).update(x)
    low, high, spacing = set_by_grid(cs.log_evalue, -math.log(delta), 1e-9, 1.0 - 1e-9, 1001)
    assert low - spacing <= cs.lower() <= low
    assert high <= cs.upper() <= high + spacing
    for end in cs.interval():
        if 0.0 < end < 1.0:
            assert cs.log_evalue(end) == pytest.approx(-math.log(delta), abs=1e-6)


def test_evidence_is_log_convex_in_the_mean():
    rng = np.random.default_rng(4)
    for kind in ("uniform", "narrow", "with ends"):
        cs = mb.MeanSequence().update(fractions(rng, 150, kind))
        logs = np.array([cs.log_evalue(p) for p in np.linspace(0.01, 0.99, 200)])
        assert (np.diff(logs, 2) > -1e-7).all()


def test_betting_on_values_never_does_worse_than_the_beta_mixture():
    rng = np.random.default_rng(5)
    for kind in ("uniform", "narrow", "with ends"):
        x = fractions(rng, 60, kind)
        ones, zeros = x.sum(), (1 - x).sum()
        with mp.workdps(30):
            for p in (0.2, 0.7, 0.95):
                beta = mp.log(mp.beta(ones + 0.5, zeros + 0.5) / mp.pi) - ones * mp.log(p) - zeros * mp.log(1 - p)
                assert mb.MeanSequence().update(x).log_evalue(p) >= float(beta) - 1e-9


@pytest.mark.parametrize(("ones", "zeros"), [(1, 0), (0, 1), (0, 50), (10**6, 0), (999_999, 1), (5, 10**6), (40, 25)])
@pytest.mark.parametrize("delta", [0.05, 1e-6])
def test_counts_agree_with_many_digits(ones, zeros, delta):
    n = ones + zeros
    cs = mb.MeanSequence(delta=delta).update(ones / n, samples=n)
    with mp.workdps(60):

        def excess(p):
            known = mp.log(mp.beta(ones + mp.mpf("0.5"), zeros + mp.mpf("0.5")) / mp.pi)
            return known - ones * mp.log(p) - zeros * mp.log(1 - p) + mp.log(delta)

        def root(inside, outside):
            for _ in range(200):
                middle = (inside + outside) / 2
                inside, outside = (inside, middle) if excess(middle) > 0 else (middle, outside)
            return inside

        centre = mp.mpf(ones) / n
        tiny = mp.mpf(10) ** -40
        lower = root(centre if zeros else 1 - tiny, tiny) if ones else mp.mpf(0)
        upper = root(centre if ones else tiny, 1 - tiny) if zeros else mp.mpf(1)
        assert float(abs(cs.lower() - lower)) <= 2e-8 * float(lower)
        assert float(abs(cs.upper() - upper)) <= 2e-8 * float(max(1 - upper, mp.mpf(10) ** -7))


@pytest.mark.parametrize("m", [1, 10**6, 10**12])
@pytest.mark.parametrize("value", [0.0, 0.3, 1.0])
def test_one_value_of_any_weight(value, m):
    cs = mb.MeanSequence(delta=1e-6).update(value, samples=m)
    low, high = cs.interval()
    assert 0.0 <= low <= value <= high <= 1.0
    assert high - low < 12.0 / math.sqrt(m)
    assert (low == 0.0) == (value == 0.0)
    assert (high == 1.0) == (value == 1.0)


def test_a_million_values():
    rng = np.random.default_rng(6)
    for x in (rng.random(1_000_000), (rng.random(1_000_000) < 0.999).astype(float)):
        low, high = mb.MeanSequence().update(x).interval()
        assert low < x.mean() < high
        assert high - low < 2 * 4.6 * x.std() / 1000


def test_other_ranges_are_a_change_of_units():
    rng = np.random.default_rng(7)
    x = fractions(rng, 80, "with ends")
    base = mb.MeanSequence(delta=0.01).update(x)
    for low, high in ((-1.0, 1.0), (1000.0, 1001.0), (-3e8, 7e8)):
        moved = mb.MeanSequence((low, high), delta=0.01).update(np.clip(low + (high - low) * x, low, high))
        for ours, theirs in zip(moved.interval(), base.interval(), strict=True):
            assert ours == pytest.approx(low + (high - low) * theirs, rel=1e-12, abs=1e-7 * (high - low))


def test_a_known_level_is_the_normal_mixture():
    rng = np.random.default_rng(8)
    x = rng.normal(0.3, 0.2, 25)
    cs = mb.MeanSequence(None, 0.01, sigma=0.2).update(x)
    for mean in (0.2, 0.31, 1.0):
        # The mean of the values is N(μ, σ²/t), and N(μ, σ²/t + σ²) under the mixture.
        scale = 0.2 / 5
        mixed = stats.norm.logpdf(x.mean(), mean, math.hypot(scale, 0.2))
        assert cs.log_evalue(mean) == pytest.approx(mixed - stats.norm.logpdf(x.mean(), mean, scale), rel=1e-9)
    for end in cs.interval():
        assert cs.log_evalue(end) == pytest.approx(-math.log(0.01), rel=1e-9)
    assert mb.MeanSequence((0.29, 0.3), sigma=0.2).update(x).upper() == 0.3


def test_an_unknown_level_is_the_t_mixture():
    rng = np.random.default_rng(9)
    x = rng.normal(0.3, 0.2, 12)
    cs = mb.MeanSequence(None, 0.05, noise="gaussian").update(x)
    for mean in (0.1, 0.3, 0.9):
        assert cs.log_evalue(mean) == pytest.approx(log_student(mean, x), rel=1e-8, abs=1e-8)
    low, high = cs.interval()
    assert cs.log_evalue(low) == pytest.approx(LEVEL, rel=1e-9)
    assert cs.log_evalue(high) == pytest.approx(LEVEL, rel=1e-9)
    assert high == pytest.approx(optimize.brentq(lambda m: cs.log_evalue(m) - LEVEL, cs.mean, 100.0), rel=1e-9)


@pytest.mark.parametrize(("n", "half_width"), [(10, 2.4), (20, 1.16), (50, 0.63)])
def test_half_widths_of_the_t_mixture_are_those_of_the_design(n, half_width):
    x = np.linspace(-1.0, 1.0, n)
    x /= math.sqrt(x.var(ddof=1))
    low, high = mb.MeanSequence(None, 0.00125, noise="gaussian").update(x).interval()
    assert 0.5 * (high - low) == pytest.approx(half_width, rel=0.05)
    assert mb.MeanSequence(None, 0.00125, noise="gaussian").update(x[:6]).interval() == (-math.inf, math.inf)


VALUES = st.lists(st.sampled_from([0.0, 1e-12, 0.1, 0.5, 0.93, 0.94, 1.0 - 1e-12, 1.0]), min_size=1, max_size=12)


@given(VALUES, st.sampled_from([0.5, 0.05, 1e-6]))
@settings(max_examples=60, deadline=None)
def test_intervals_hold_the_mean_and_mirror(values, delta):
    cs = mb.MeanSequence(delta=delta).update(values)
    low, high = cs.interval()
    assert 0.0 <= low <= cs.mean <= high <= 1.0
    assert cs.log_evalue(cs.mean) <= 1e-9
    mirrored = mb.MeanSequence((-1.0, 0.0), delta=delta).update([-x for x in values])
    assert mirrored.interval() == pytest.approx((-high, -low), abs=1e-8)


@given(st.lists(st.sampled_from([0.0, 0.2, 0.6, 1.0]), min_size=2, max_size=9), st.floats(0.02, 0.98))
@settings(max_examples=40, deadline=None)
def test_pvalues_are_one_over_the_largest_evidence_so_far(values, mean):
    cs, seen = mb.MeanSequence(), []
    sides = {side: [0.0] for side in ("two-sided", "greater", "less")}
    for value in values:
        cs.update(value)
        seen.append(cs.log_evalue(mean))
        grid = np.linspace(1e-6, 1.0 - 1e-6, 101)
        sides["two-sided"].append(seen[-1])
        for side, beyond in (("greater", grid[grid <= mean]), ("less", grid[grid >= mean])):
            sides[side].append(min([cs.log_evalue(p) for p in beyond] + [seen[-1]]))
        for side, logs in sides.items():
            expected = math.exp(-max(logs))
            # The grid misses the least evidence by a little, where that is at most 1 and says nothing.
            assert cs.pvalue(mean, side) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("options", [{}, {"sigma": 0.3}, {"noise": "gaussian"}])
def test_pvalues_and_bounds_do_not_depend_on_batches(options):
    x = np.random.default_rng(10).random(40)
    whole, single = mb.MeanSequence(**options).update(x), mb.MeanSequence(**options)
    last = 1.0
    for value in x:
        single.update(value)
        assert single.pvalue(0.4) <= last
        last = single.pvalue(0.4)
    assert (whole.interval(), whole.pvalue(0.4)) == (single.interval(), single.pvalue(0.4))


def test_paths_of_every_length_agree_with_single_evalues():
    rng = np.random.default_rng(11)
    x = fractions(rng, 3000, "uniform")
    for values, samples in (
        (x, None),
        ([0.4, 0.6, 0.4501, 0.5, 0.4499, 0.45], [1, 1, 10**7, 1, 10**7, 7]),
        (np.round(x), None),
    ):
        weights = itertools.repeat(None) if samples is None else samples
        cs, top = mb.MeanSequence(), 0.0
        for i, (value, weight) in enumerate(zip(values, weights, strict=False)):
            cs.update(value, weight)
            if len(values) < 10 or i % 250 == 0 or i == len(values) - 1:
                top = max(top, cs.log_evalue(0.45))
        # Moments between are skipped here, and so is the little that more than 1,024 points lose.
        assert -math.log(cs.pvalue(0.45)) >= top - 2e-3
        assert -math.log(cs.pvalue(0.45)) <= 1.2 * top + 1.0
