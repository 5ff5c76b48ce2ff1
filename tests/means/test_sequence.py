"""What users meet: errors, states, copies, comparisons."""

import math

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import mixbandit as mb
from mixbandit._files import digest
from mixbandit.errors import AssumptionsMissing, AssumptionsRefuted, DamagedState, InvalidInput

KINDS = {
    "range": ({}, {"samples": 20}),
    "single": ({"reward_range": (-1, 1)}, {}),
    "level": ({"reward_range": None, "sigma": 0.1}, {}),
    "gaussian": ({"noise": "gaussian"}, {}),
}
VALUES = [0.2, 0.7, 0.55, 0.6, 0.7, 0.31, 0.44]


def made(name):
    options, with_values = KINDS[name]
    return mb.MeanSequence(**options).update(VALUES, **with_values)


@pytest.mark.parametrize("name", KINDS)
def test_a_state_resumes_and_copies_are_apart(name, tmp_path):
    cs = made(name)
    again = mb.MeanSequence.from_state_dict(cs.state_dict())
    assert (again.interval(), again.pvalue(0.5), again.t) == (cs.interval(), cs.pvalue(0.5), 7)
    mb.save(cs, tmp_path / "a.state")
    loaded = mb.load(tmp_path / "a.state")
    assert loaded.update(0.5).interval() == cs.after(0.5).interval()
    before = digest(cs.state_dict())
    later = cs.after([0.5, 0.6])
    assert (later.t, cs.t, digest(cs.state_dict())) == (9, 7, before)
    assert cs.copy().interval() == cs.interval()
    assert repr(cs).startswith("MeanSequence(reward_range=")


@pytest.mark.parametrize("name", KINDS)
def test_without_values_nothing_is_known(name):
    cs = mb.MeanSequence(**KINDS[name][0])
    low, high = cs.interval()
    assert (low, high) == (cs.reward_range or (-math.inf, math.inf))
    assert (cs.log_evalue(0.5), cs.pvalue(0.5), cs.t) == (0.0, 1.0, 0)
    assert math.isnan(cs.mean)
    assert cs.update([]).t == 0


def test_the_mean_counts_samples():
    assert mb.MeanSequence().update([0.5, 0.8], samples=[1, 2]).mean == pytest.approx(0.7)
    assert mb.MeanSequence().update([True, False]).mean == 0.5


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"delta": 0.95}, "probability of an error, got 0.95"),
        ({"delta": 0.0}, "delta"),
        ({"reward_range": (1, 0)}, "reward_range"),
        ({"sigma": -1}, "sigma"),
        ({"noise": "cauchy"}, "gaussian"),
        ({"sigma": 0.1, "noise": "gaussian"}, "not both"),
    ],
)
def test_settings_that_cannot_be_used_are_named(options, words):
    with pytest.raises(InvalidInput, match=words):
        mb.MeanSequence(**options)


def test_nothing_known_is_an_error():
    with pytest.raises(AssumptionsMissing, match="nothing bounds the noise"):
        mb.MeanSequence(None)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([0.5, 1.2],), r"values\[1\] is 1.2, outside reward_range \(0, 1\)"),
        ((-1e-9,), "outside reward_range"),
        (([0.5, math.nan],), r"values\[1\]"),
        (([[0.5, 0.2]],), "shape"),
        (("0.5",), "values"),
        ((0.5, 0), "samples"),
        ((0.5, True), "samples"),
        (([0.5, 0.6], [1, 2.5]), r"samples\[1\]"),
        (([0.5, 0.6], [1, 2, 3]), "samples"),
    ],
)
def test_values_that_cannot_be_used_change_nothing(arguments, words):
    cs = made("range")
    before = digest(cs.state_dict())
    with pytest.raises(InvalidInput, match=words):
        cs.update(*arguments)
    assert digest(cs.state_dict()) == before


@pytest.mark.parametrize("name", ["level", "gaussian"])
def test_samples_are_for_results_in_a_range(name):
    with pytest.raises(InvalidInput, match="state one or the other"):
        made(name).update(0.5, samples=3)


def test_gaussian_noise_is_refused_where_values_pile_up_at_an_end():
    cs = mb.MeanSequence(noise="gaussian").update([0.97, 0.99, 1.0])
    with pytest.raises(InvalidInput, match="several values equal 1, an end of reward_range"):
        cs.update(1.0)
    assert cs.t == 3
    with pytest.raises(InvalidInput, match="several values equal 0"):
        mb.MeanSequence(noise="gaussian").update([0.0, 0.1, 0.0])
    assert mb.MeanSequence(None, noise="gaussian").update([1.0, 1.0, 0.9]).t == 3


def test_equal_values_say_nothing_about_an_unknown_level():
    cs = mb.MeanSequence(noise="gaussian").update([0.4] * 50)
    assert cs.interval() == (0.0, 1.0)
    assert cs.pvalue(0.9) == 1.0


def test_a_mean_outside_of_its_range_is_refuted():
    cs = mb.MeanSequence(sigma=0.01).update([3.0] * 20)
    with pytest.raises(AssumptionsRefuted, match="reward_range=None"):
        cs.interval()


def test_means_must_lie_in_the_range():
    with pytest.raises(InvalidInput, match=r"mean must lie in \[0, 1\]"):
        made("range").pvalue(1.5)
    with pytest.raises(InvalidInput, match="alternative"):
        made("range").pvalue(0.5, "both")


def test_the_ends_of_the_range_as_means():
    cs = mb.MeanSequence().update([0.0, 0.0])
    assert cs.log_evalue(0.0) < 0.0
    assert cs.log_evalue(1.0) == math.inf
    assert (cs.pvalue(0.0), cs.pvalue(1.0)) == (1.0, 0.0)
    assert cs.update(0.3).log_evalue(0.0) == math.inf


@pytest.mark.parametrize("field", ["values", "samples", "delta", "reward_range", "noise"])
def test_damaged_states_are_refused(field):
    state = made("range").state_dict()
    for bad in ("x", [[1.0]], -3.0, [5.0, 0.5]):
        with pytest.raises(DamagedState):
            mb.MeanSequence.from_state_dict({**state, field: bad})
    with pytest.raises(DamagedState, match=field):
        mb.MeanSequence.from_state_dict({name: part for name, part in state.items() if name != field})


# --- comparisons


def test_pairs_that_are_equal_hardly_widen_the_interval():
    """The example of the design: 3 % of 3,000 rows differ, and 75 % of those are won."""
    a, b = np.zeros(3000), np.zeros(3000)
    a[:68], b[68:90] = 1.0, 1.0
    order = np.random.default_rng(0).permutation(3000)
    found = mb.compare_means(a[order], b[order], paired=True)
    assert found.lower > 0.005
    assert found.lower < 46 / 3000 < found.upper
    assert found.pvalue < 1e-3


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("options", [{}, {"sigma": 0.2, "reward_range": None}, {"noise": "gaussian"}])
def test_the_pvalue_is_the_level_at_which_the_interval_excludes_zero(paired, options):
    rng = np.random.default_rng(1)
    a, b = rng.uniform(0.2, 1.0, 120), rng.uniform(0.0, 0.8, 120)
    found = mb.compare_means(a, b, paired=paired, **options)
    assert 1e-150 < found.pvalue < 0.5
    # Two sides whose evidence is multiplied are searched with a little more than δ allows: see `_together`.
    for factor, excludes in ((1.001 if paired or "noise" in options else 1.1, True), (0.999, False)):
        at = mb.compare_means(a, b, delta=found.pvalue * factor, paired=paired, **options)
        assert (at.lower > 0.0) == excludes
    assert found.paired is paired


def test_equal_sides_are_not_told_apart():
    x = np.random.default_rng(2).random(50)
    for found in (mb.compare_means(x, x), mb.compare_means(x, x, paired=True)):
        assert found.pvalue == 1.0
        assert found.lower < 0.0 < found.upper


def test_samples_count_on_each_side():
    many = mb.compare_means(0.9, 0.8, a_samples=1000, b_samples=2000)
    few = mb.compare_means(0.9, 0.8, a_samples=20, b_samples=2000)
    assert many.lower > 0.0 > few.lower
    assert many.upper < few.upper


@pytest.mark.parametrize("kind", ["yes or no", "values", "one of many"])
def test_unpaired_bounds_are_those_of_all_pairs_of_means(kind):
    """All (x, y) whose evidence together is below 1/δ, by a grid."""
    rng = np.random.default_rng(5)
    sides = {
        "yes or no": (rng.random(300) < 0.7, rng.random(80) < 0.5),
        "values": (rng.uniform(0.2, 1.0, 90), rng.beta(2, 5, 60)),
        "one of many": (rng.random(2000) < 0.9, [0.3, 0.4, 0.8]),
    }[kind]
    x = np.linspace(1e-6, 1.0 - 1e-6, 801)
    one, other = (np.array([mb.MeanSequence().update(v).log_evalue(p) for p in x]) for v in sides)
    apart = (x[:, None] - x)[one[:, None] + other < math.log(20.0)]
    found, spacing = mb.compare_means(*sides), 2 * (x[1] - x[0])
    assert apart.min() - 2 * spacing <= found.lower <= apart.min()
    assert apart.max() <= found.upper <= apart.max() + 2 * spacing
    assert found.pvalue == pytest.approx(min(1.0, math.exp(-(one + other).min())), rel=0.1)


@pytest.mark.heavy
def test_unpaired_comparisons_miss_rarely_though_looked_at_often():
    missed = 0
    for run in range(200):
        rng = np.random.default_rng([4, run])
        a, b = rng.random(120) < 0.6, rng.random(120) < 0.6
        # A look after every ten values, and more of the side that is behind: both may depend on what was seen.
        n = m = 10
        wrong = False
        while n < 120 and m < 120:
            found = mb.compare_means(a[:n], b[:m])
            wrong |= found.pvalue <= 0.05
            assert (found.lower > 0.0 or found.upper < 0.0) <= (found.pvalue <= 0.05)
            n, m = (n + 10, m) if a[:n].mean() < b[:m].mean() else (n, m + 10)
        missed += wrong
    assert missed <= 10


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"paired": True, "a_samples": 5}, "samples do not apply"),
        ({"paired": 1}, "paired must be True or False"),
        ({"delta": 0.9}, "probability of an error"),
        ({"reward_range": (0, 0.5), "paired": True}, "outside reward_range"),
        ({"reward_range": (0, 0.5)}, "outside reward_range"),
    ],
)
def test_comparisons_that_cannot_be_made(options, words):
    with pytest.raises(InvalidInput, match=words):
        mb.compare_means([0.5, 0.9], [0.2, 0.1], **options)


@pytest.mark.parametrize(
    ("a", "b"), [([3.0, 3.1], [5.0, 5.0]), ([3.0, 3.1], [0.5, 0.5]), ([0.5], [-7.0]), ([1e50], [-1e50])]
)
def test_values_far_outside_of_the_range_of_their_means_refute_what_is_stated(a, b):
    with pytest.raises(AssumptionsRefuted, match=r"sigma=0.1 with reward_range=\(0.0, 1.0\).*reward_range=None"):
        mb.compare_means(a, b, (0.0, 1.0), sigma=0.1)
    assert mb.compare_means(a, b, None, sigma=0.1).lower <= np.mean(a) - np.mean(b)


def test_values_somewhat_outside_of_the_range_of_their_means_leave_all_pairs_that_explain_them():
    a, b, delta = [1.2, 1.25], [1.05], 0.05
    x = np.linspace(0.0, 1.0, 1001)
    one, other = (np.array([mb.MeanSequence(sigma=0.1).update(v).log_evalue(p) for p in x]) for v in (a, b))
    apart = (x[:, None] - x)[one[:, None] + other < -math.log(delta)]
    found = mb.compare_means(a, b, sigma=0.1, delta=delta)
    assert apart.min() - 0.002 <= found.lower <= apart.min()
    assert apart.max() <= found.upper <= apart.max() + 0.002


def test_a_comparison_is_refuted_exactly_where_no_pair_of_means_is_left():
    """On both sides of the border, which rounding must not blur into another error."""
    a, b = [1.2, 1.25], [-0.1]
    least = sum(mb.MeanSequence(sigma=0.1).update(v).log_evalue(end) for v, end in ((a, 1.0), (b, 0.0)))
    for nats in (1e-12, 1e-9, 1e-6, 3e-6, 1e-3):
        assert mb.compare_means(a, b, sigma=0.1, delta=math.exp(-least - nats)).upper <= 1.0
        with pytest.raises(AssumptionsRefuted):
            mb.compare_means(a, b, sigma=0.1, delta=math.exp(-least + nats))


def test_pairs_must_be_as_many_on_both_sides():
    with pytest.raises(InvalidInput, match="b_values"):
        mb.compare_means([0.5, 0.9], [0.2], paired=True)


@pytest.mark.parametrize("values", [[1.0, 0.999992], [0.0, 8e-6], [0.0, 0.0, 2e-9], [1.0, 1.0 - 2e-9, 0.999]])
def test_results_next_to_an_end_have_an_interval(values):
    """Counts alone, a few millionths of a result, put the bound below the smallest float."""
    sequence = mb.MeanSequence(delta=0.05).update(values)
    low, high = sequence.interval()
    assert 0.0 <= low < sequence.mean < high <= 1.0
    for bound in (low, high):
        assert bound in (0.0, 1.0) or sequence.log_evalue(bound) == pytest.approx(np.log(20.0), abs=1e-6)


def test_values_of_other_noise_levels_count_by_their_precision():
    """Against the mixture by its definition: the mean drawn from N(μ, gσ²), values N(mean, σ_k²), g = 1."""
    rng = np.random.default_rng(0)
    levels = rng.uniform(0.05, 0.5, size=7)
    values = 0.3 + levels * rng.normal(size=7)
    sequence = mb.MeanSequence(None, 0.05, sigma=0.2).update(values[:3], sigma=levels[:3])
    sequence.update(values[3:], sigma=levels[3:])
    for mean in (0.0, 0.3, 0.7):
        prior, noise = 0.2**2, np.diag(levels**2)
        mixed = multivariate_normal(np.full(7, mean), noise + prior).logpdf(values)
        assert sequence.log_evalue(mean) == pytest.approx(
            mixed - multivariate_normal(np.full(7, mean), noise).logpdf(values)
        )
    low, high = sequence.interval()
    assert sequence.log_evalue(low) == pytest.approx(math.log(20.0))
    assert sequence.log_evalue(high) == pytest.approx(math.log(20.0))
    assert sequence.pvalue(high) <= 0.05 * (1.0 + 1e-9)
    # Four values of the stated level say as much as their mean, which has half of it.
    plain = mb.MeanSequence(None, sigma=0.2).update([0.1, 0.3, 0.2, 0.6])
    assert mb.MeanSequence(None, sigma=0.2).update(0.3, sigma=0.1).interval() == pytest.approx(plain.interval())
    again = mb.MeanSequence.from_state_dict(sequence.state_dict())
    assert again.interval() == sequence.interval()


@pytest.mark.parametrize(
    ("options", "arguments", "words"),
    [
        ({}, {"sigma": 0.1}, "need a stated sigma"),
        ({"sigma": 0.1}, {"sigma": 0.0}, "must be positive"),
        ({"sigma": 0.1}, {"sigma": math.nan}, "sigma"),
        ({"sigma": 0.1}, {"sigma": [0.1, 0.2]}, "sigma"),
        ({"sigma": 0.1}, {"sigma": 1e-9}, "a factor of a million"),
        ({"sigma": 0.1}, {"sigma": 0.1, "samples": 3}, "not both"),
    ],
)
def test_noise_levels_that_cannot_be_used_change_nothing(options, arguments, words):
    sequence = mb.MeanSequence((0.0, 1.0), **options).update([0.5])
    before = sequence.interval()
    with pytest.raises(mb.InvalidInput, match=words):
        sequence.update([0.4], **arguments)
    assert (sequence.t, sequence.interval()) == (1, before)


def test_a_comparison_reads_as_a_sentence():
    assert str(mb.MeanComparison(-0.01234, 0.5, 0.0312, False)) == "The difference lies in [-0.01234, 0.5]; p = 0.0312."
