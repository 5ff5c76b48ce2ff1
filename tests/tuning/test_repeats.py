"""Whether repeats of a configuration scatter more than `samples` allows."""

import math

import numpy as np
import pytest
from scipy import integrate, optimize
from scipy.special import betaln

import mixbandit as mb
from mixbandit.tuning.repeats import _INFLATIONS, _WEIGHTS, Repeats, Scatter, _log_evalues, scatter_of_repeats

M, DELTA = 100, 0.1


def known(samples=M, reward_range=(0.0, 1.0), delta=DELTA):
    return mb.Assumptions(reward_range=reward_range, samples=samples, rows="fresh", delta=delta)


def forecast(before, m, inflation):
    """The Beta law of the next q, given the values before it: its mean and its variance, as MATH section 11 has it."""
    k = len(before)
    mean = min(max((m * sum(before) + 0.5) / (k * m + 1.0), 0.005), 0.995)
    most = mean * (1.0 - mean)
    variance = min(most / m * (inflation / k + inflation - 1.0), 0.9 * most)
    size = most / variance - 1.0
    return mean * size, (1.0 - mean) * size


def log_evalue(values, m, inflation, p):
    """Ln E(p) of one configuration, factor by factor."""
    total = 0.0
    for k in range(1, len(values)):
        a, b = forecast(values[:k], m, inflation)
        hits = m * values[k]
        total += betaln(a + hits, b + m - hits) - betaln(a, b)
        total -= hits * math.log(p) + (m - hits) * math.log(1.0 - p)
    return total


def worst(values, m, inflation):
    """The least of them over p, by a search."""
    found = optimize.minimize_scalar(
        lambda p: log_evalue(values, m, inflation, p),
        bounds=(1e-9, 1 - 1e-9),
        method="bounded",
        options={"xatol": 1e-12},
    )
    return found.fun


def by_hand(sequence, m):
    """(configuration, value) in order of play: the largest e-value ever."""
    seen, ever = {}, 0.0
    for configuration, value in sequence:
        seen.setdefault(configuration, []).append(value)
        parts = [
            math.log(weight) + sum(worst(v, m, inflation) for v in seen.values() if len(v) > 1)
            for inflation, weight in zip(_INFLATIONS, _WEIGHTS, strict=True)
        ]
        if len(seen[configuration]) > 1:
            ever = max(ever, float(np.logaddexp.reduce(parts)))
    return ever


def grouped(sequence):
    configurations = np.array([c for c, _ in sequence])
    values = np.array([v for _, v in sequence])
    places = [np.flatnonzero(configurations == c) for c in dict.fromkeys(configurations.tolist())]
    return [Repeats(at, values[at]) for at in places if len(at) > 1]


def test_weights_are_a_mixture():
    assert sum(_WEIGHTS) == pytest.approx(1.0, abs=1e-12)
    assert min(_INFLATIONS) > 1.0


@pytest.mark.parametrize(("a", "b", "r"), [(3.0, 5.0, 0.2), (40.0, 2.5, 0.9)])
def test_the_factors_of_the_reference_are_integrals(a, b, r):
    """E[q^{mr}(1−q)^{m(1−r)}] for q ~ Beta(a, b)."""
    m = 10

    def density(q):
        return math.exp((a + m * r - 1) * math.log(q) + (b + m * (1 - r) - 1) * math.log(1 - q) - betaln(a, b))

    expected = integrate.quad(density, 0.0, 1.0, epsabs=0.0)[0]
    assert math.exp(betaln(a + m * r, b + m * (1 - r)) - betaln(a, b)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("inflated", [1.0, 12.0, 40.0])
def test_it_is_the_product_by_hand(seed, inflated):
    """Interleaved groups, some of which are never repeated; large e-values and small ones, and the largest ever."""
    rng = np.random.default_rng(seed)
    sequence = []
    for configuration in [*rng.integers(0, 4, 14).tolist(), 9]:
        p = 0.2 + 0.2 * (configuration % 4)
        value = rng.normal(p, math.sqrt(inflated * p * (1 - p) / M))
        sequence.append((configuration, float(np.clip(value, 0.01, 0.99))))
    found = scatter_of_repeats(grouped(sequence), known())
    assert found.log_evalue == pytest.approx(by_hand(sequence, M), rel=1e-6, abs=1e-6)
    assert found.log_evalue > 0.0 or inflated < 40.0
    assert found.repeats == sum(len(group.values) - 1 for group in grouped(sequence))
    # The same values in another range and direction.
    wide = [(c, 10.0 - 4.0 * v) for c, v in sequence]
    mirrored = scatter_of_repeats(grouped(wide), known(reward_range=(6.0, 10.0)))
    assert mirrored.log_evalue == pytest.approx(found.log_evalue, abs=1e-9)


def test_the_largest_ever_stands():
    """Values far apart, and then many that agree, which hide it."""
    early = [(0, v) for v in (0.2, 0.8, 0.3, 0.7)]
    then = scatter_of_repeats(grouped(early), known())
    later = scatter_of_repeats(grouped([*early, *[(1, 0.5)] * 200]), known())
    assert then.refuted
    assert later.log_evalue == then.log_evalue
    # In another order of play it is another process: nothing was ever as large.
    first = scatter_of_repeats(grouped([*[(1, 0.5)] * 200, *early]), known())
    assert first.log_evalue < then.log_evalue
    assert by_hand([*[(1, 0.5)] * 30, *early], M) == pytest.approx(
        scatter_of_repeats(grouped([*[(1, 0.5)] * 30, *early]), known()).log_evalue, rel=1e-6
    )


def test_without_repeats_nothing_is_tested():
    found = scatter_of_repeats([], known())
    assert found == Scatter(0, 0.0, DELTA)
    assert not found.tested
    assert not found.refuted
    assert "could not be tested" in str(found)
    assert "REFUTED" in str(Scatter(3, 5.0, 0.05))


@pytest.mark.parametrize("inflation", _INFLATIONS)
@pytest.mark.parametrize("p", [0.05, 0.5, 0.9])
def test_at_the_truth_each_factor_has_mean_one(inflation, p):
    """A martingale for yes-or-no results: given any past, the mean over all outcomes of the next value is 1."""
    m, hits = 10, np.arange(11)
    log_chance = np.array([math.lgamma(m + 1) - math.lgamma(h + 1) - math.lgamma(m - h + 1) for h in hits])
    chance = np.exp(log_chance + hits * math.log(p) + (m - hits) * math.log(1 - p))
    rng = np.random.default_rng(0)
    for n in (1, 2, 7):
        past = (rng.binomial(m, p, n) / m).tolist()
        steps = [log_evalue([*past, h / m], m, inflation, p) - log_evalue(past, m, inflation, p) for h in hits]
        assert chance @ np.exp(steps) == pytest.approx(1.0, rel=1e-9)


def test_at_the_truth_the_mean_is_at_most_one_by_monte_carlo():
    """At the worst p it is smaller still."""
    rng, final = np.random.default_rng(1), []
    for _ in range(3000):
        values = rng.binomial(M, 0.7, 6) / M
        at_worst = [math.exp(log) for log in _all_at_worst(values)]
        final.append(np.dot(_WEIGHTS, at_worst))
    assert np.mean(final) <= 1.0 + 3 * np.std(final) / math.sqrt(len(final))


def _all_at_worst(values):
    return _log_evalues(np.asarray(values), float(M))[-1]


def runs(p, inflation, n, groups, count, seed, m=M):
    """How many of `count` runs are refuted; values are means of m results, of a p that varies from value to value."""
    alarms = 0
    for run in range(count):
        rng = np.random.default_rng([seed, run])
        centre = np.full((groups, n), p)
        if inflation > 1.0:
            spread = math.sqrt((inflation - 1.0) * p * (1.0 - p) / m)
            centre = np.clip(rng.normal(p, spread, (groups, n)), 0.0, 1.0)
        values = rng.binomial(m, centre) / m
        sequence = [(c, float(values[c, k])) for k in range(n) for c in range(groups)]
        alarms += scatter_of_repeats(grouped(sequence), known(m)).refuted
    return alarms


@pytest.mark.parametrize(("p", "m"), [(0.5, M), (0.95, M), (0.3, 1), (0.99, 20)])
def test_false_alarms(p, m):
    """In at most a share δ of runs, whenever one looks: the largest e-value of 30 repeats counts."""
    assert runs(p, 1.0, 16, 2, 400, seed=5, m=m) <= DELTA * 400


@pytest.mark.parametrize("p", [0.5, 0.8])
def test_training_noise_is_found(p):
    """1.8 times the spread, in 30 repeats of one configuration."""
    assert runs(p, 1.8**2, 31, 1, 200, seed=6) >= 0.85 * 200


def test_certificates_are_not_trusted_if_repeats_scatter_more_than_samples_allow():
    rng = np.random.default_rng(0)
    calm = [({"x": float(x)}, float(rng.binomial(M, 0.6)) / M) for x in rng.uniform(size=10)]
    noisy = [({"x": 0.5}, float(rng.binomial(M, p)) / M) for p in np.clip(rng.normal(0.6, 0.15, 12), 0, 1)]
    with pytest.warns(mb.AssumptionsRefutedWarning):
        found = mb.certify(
            [*calm, *noisy], space=mb.Space({"x": mb.Float(0, 1)}), reward_range=(0, 1), samples=M, rows="fresh"
        )
    assert found.judgement.scatter.refuted
    assert not found.trusted
    assert "REFUTED" in found.details()
    fine = mb.certify(
        [*calm, *calm], space=mb.Space({"x": mb.Float(0, 1)}), reward_range=(0, 1), samples=M, rows="fresh"
    )
    assert fine.judgement.scatter.repeats == 10
    assert fine.trusted


def test_repeats_that_never_vary_are_told():
    """As confirmations on the same rows are: nothing there refutes, and nothing is confirmed either."""
    run = [({"x": 0.1 * i}, 0.5 + 0.01 * i) for i in range(5)]
    for repeats, value, told in ((4, 0.54, True), (3, 0.54, False), (6, 1.0, False)):
        found = mb.certify([*run, *[({"x": 0.9}, value)] * repeats], reward_range=(0, 1), samples=100, rows="fresh")
        assert found.trusted
        assert (f"{repeats - 1} repeated values are exactly equal" in found.details()) is told
        assert str(found).startswith("CAUTION: ") is told
        assert ("state rows=&quot;fixed&quot;" in mb.report(found).split('class="verdict"')[0]) is told
    varied = mb.certify(
        [*run, *[({"x": 0.9}, 0.54)] * 5, ({"x": 0.9}, 0.55)], reward_range=(0, 1), samples=100, rows="fresh"
    )
    assert "are exactly equal" not in varied.details()
