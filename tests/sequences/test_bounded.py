"""Values in a known range: definitions, degenerate data, saving, policies, and what refutes them."""

import numpy as np
import pytest

import mixbandit as mb
from tests.helpers.sequences import ACTIONS, PROBES

KERNEL = mb.RBF(0.4) + mb.ConstantKernel()
RNG = np.random.default_rng(0)
X = RNG.uniform(size=(30, 2))
P = 0.95 - 0.4 * (X[:, 0] - 0.5) ** 2 - 0.2 * (X[:, 1] - 0.3) ** 2
M = RNG.choice([10, 100], size=30)
R = RNG.binomial(M, P) / M
BOTH = {"features": mb.WithConstant(mb.RandomFourier(2, 12, rng=1)), "kernel": KERNEL}


def bounded(phi, **options):
    return mb.BoundedMixture(phi, **{"norm_bound": 2.0, "delta": 0.05, **options})


@pytest.fixture(params=BOTH)
def phi(request):
    return BOTH[request.param]


def test_the_e_value_is_its_definition():
    """ln M = Σ m ℓ(p, r) − C, with one forecast per value; and the set is where it is at most ln(1/δ)."""

    class Always:
        def predict(self, x):
            return 0.6, 0.02

        def update(self, x, r):
            pass

    from scipy.special import betaln

    rows, r, m = RNG.uniform(size=(6, 2)), np.array([0.5, 0.25, 1.0, 0.0, 0.75, 0.5]), np.array([2, 4, 1, 1, 4, 6])
    cs = bounded(2, mixture=Always()).update(rows, r, samples=m)
    theta = np.array([0.5, 0.4])
    p = rows @ theta
    total = 0.6 * 0.4 / 0.02 - 1
    a, b = 0.6 * total, 0.4 * total
    cost = -np.sum(betaln(a + m * r, b + m * (1 - r)) - betaln(a, b))
    expected = -np.sum(m * (r * np.log(p) + (1 - r) * np.log(1 - p))) - cost
    assert cs.log_evalue(theta) == pytest.approx(expected, rel=1e-9)
    for scale in np.linspace(0.05, 1.5, 30):
        inside = cs.log_evalue(scale * theta) <= -np.log(0.05) and 0 <= (scale * p).min() <= (scale * p).max() <= 1
        assert cs.contains(scale * theta) == inside
    assert isinstance(cs.mixture, Always)
    with pytest.raises(mb.NotStorable):
        cs.state_dict()


def test_a_forecaster_that_is_wrong_costs_width_only():
    class Wrong:
        def predict(self, x):
            return 0.05, 1e-4

        def update(self, x, r):
            pass

    wrong, default = (bounded(KERNEL, mixture=each).update(X, R, samples=M) for each in (Wrong(), None))
    assert (wrong.lower(X) <= default.lower(X) + 1e-9).all()
    assert (wrong.lower(X) <= P).all()


def test_exact_bounds_lie_within_those_of_ellipsoids(phi):
    wide, exact = (bounded(phi, exact=exact).update(X, R, samples=M) for exact in (False, True))
    assert (exact.upper(PROBES) <= wide.upper(PROBES) + 1e-9).all()
    assert (exact.lower(PROBES) >= wide.lower(PROBES) - 1e-9).all()
    assert (exact.upper(PROBES) - exact.lower(PROBES)).mean() < 0.95 * (wide.upper(PROBES) - wide.lower(PROBES)).mean()
    for alpha in (0.01, 1.0, 100.0, wide.alpha0):
        assert (wide.upper(PROBES, alpha=alpha) >= exact.upper(PROBES) - 1e-9).all()


def test_gradients_are_those_of_the_bounds(phi):
    for exact, rtol in ((False, 1e-4), (True, 2e-3)):
        cs = bounded(phi, exact=exact, reward_range=(-5.0, 5.0)).update(X, R, samples=10_000)
        found, step = cs.support(PROBES[:3]), 1e-5
        for j in range(2):
            shift = step * np.eye(2)[j]
            slope = (cs.upper(PROBES[:3] + shift) - cs.upper(PROBES[:3] - shift)) / (2 * step)
            np.testing.assert_allclose(found.grad[:, j], slope, rtol=rtol, atol=rtol)


def test_units_do_not_matter(phi):
    """Values, range and norm bound in other units; a shifted range needs an intercept, and so a larger norm."""
    plain = bounded(phi).update(X, R, samples=M)
    scaled = bounded(phi, norm_bound=20.0, reward_range=(0.0, 10.0)).update(X, 10 * R, samples=M)
    np.testing.assert_allclose(scaled.upper(PROBES), 10 * plain.upper(PROBES), rtol=1e-6)
    np.testing.assert_allclose(scaled.lower(PROBES), 10 * plain.lower(PROBES), rtol=1e-6)


def test_repeats_may_be_told_together_or_apart(phi):
    """L is the same either way; only the bank sees a difference."""
    apart = bounded(phi).update(np.repeat(X[:5], 2, axis=0), [0.5, 0.7, 0.8, 0.9] + [0.6] * 6, samples=10)
    likelihood = apart.moment.rule.likelihood(apart.moment.data).likelihood
    assert len(likelihood.values) == 5
    assert sorted(likelihood.values) == pytest.approx([0.6, 0.6, 0.6, 0.6, 0.85])
    assert (likelihood.counts == 20).all()


DEGENERATE = {
    "no data": ([], [], 1),
    "one value": ([0], [0.4], 10),
    "only zeros": (range(30), np.zeros(30), 100),
    "only ones": (range(30), np.ones(30), 100),
    "single results": (range(30), np.arange(30) % 2, 1),
    "one action again and again": ([0] * 20, np.linspace(0.7, 0.9, 20), 30),
    "a million results": (range(10), 0.6 + 0.001 * np.arange(10), 10**6),
    "very different counts": (range(10), np.full(10, 0.7), [1, 10**6] * 5),
}


@pytest.mark.parametrize("what", DEGENERATE)
@pytest.mark.parametrize("exact", [False, True])
def test_degenerate_data_give_ordered_finite_bounds(what, exact, phi):
    which, values, samples = DEGENERATE[what]
    cs = bounded(phi, norm_bound=4.0, exact=exact)
    if len(values):
        cs.update(X[list(which)], values, samples=samples)
    lower, upper = cs.lower(X), cs.upper(X)
    assert np.isfinite(lower).all()
    assert (lower <= upper).all()
    assert (lower >= 0).all()
    assert (upper <= 1).all()
    assert np.isfinite(cs.support(X[:3]).grad).all()
    assert not cs.is_refuted
    assert str(cs.audit())


def test_values_at_the_end_of_the_range_give_narrow_bounds():
    """2,000 results, all of them yes: a bound of about ln(1/δ)/2000 from the end, not its root."""
    cs = bounded(mb.Identity(1)).update(np.ones((20, 1)), np.ones(20), samples=100)
    assert cs.lower([[1.0]])[0] > 0.99


@pytest.mark.parametrize("norm_bound", [1e-20, 1e-6, 1e6, 1e20])
def test_huge_and_tiny_norm_bounds(norm_bound, phi):
    for ends in ((0.0, 1.0), (-3.0, 7.0)):
        cs = bounded(phi, norm_bound=norm_bound, reward_range=ends, on_empty="inflate", exact=True)
        cs.update(X[:8], np.full(8, 0.5), samples=100)
        # With θ = 0 expected values are 0, which is an end of the first range and not far from .5 in the second.
        assert cs.is_empty == (norm_bound < 1 and ends[0] == 0.0)
        if norm_bound > 1:
            assert (cs.lower(X) <= 0.5).all()
            assert (cs.upper(X) >= 0.5).all()


def test_few_rows_many_features_and_collinear_ones():
    cs = bounded(8, norm_bound=1.0).update(np.ones((3, 8)) / 8, [0.2, 0.3, 0.2], samples=50)
    assert cs.upper(np.ones(8) / 8)[0] < 0.5
    assert cs.upper(np.eye(8)[0])[0] > 0.6
    singular = bounded(mb.LinearKernel(), norm_bound=1.0).update(X, X @ [0.5, 0.4], samples=10)
    assert np.isfinite(singular.upper(PROBES)).all()


BAD = {
    "above the range": ((X[:2], [0.5, 1.5]), {}, r"rewards\[1\] must lie in reward_range=\(0, 1\), got 1.5"),
    "below the range": ((X[:1], [-0.1]), {}, r"rewards must lie in reward_range"),
    "NaN": ((X[:2], [0.5, np.nan]), {}, r"rewards\[1\]"),
    "half a sample": ((X[:1], [0.5]), {"samples": 2.5}, "samples must be integers"),
    "no samples": ((X[:1], [0.5]), {"samples": 0}, "samples must be integers"),
    "too many samples": ((X[:1], [0.5]), {"samples": 1e13}, "samples must be integers"),
    "samples of another length": ((X[:2], [0.5, 0.5]), {"samples": [1, 2, 3]}, r"shape \(2,\), got \(3,\)"),
    "a sigma": ((X[:1], [0.5]), {"sigma": 0.1}, "need a stated sigma"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_updates_are_named_and_change_nothing(what, phi):
    (arguments, options, says), cs = BAD[what], bounded(phi).update(X[:3], R[:3])
    with pytest.raises(mb.InvalidInput, match=says):
        cs.update(*arguments, **options)
    assert cs.t == 3


@pytest.mark.parametrize(
    "bad",
    [
        {"misspecification": 0.1},
        {"mixture": mb.Scaled(1.0)},
        {"mixture": 3},
        {"exact": "yes"},
        {"samples": 0},
        {"reward_range": (1.0, 0.0)},
        {"reward_range": None},
        {"suspects": mb.RBF(0.1)},
        {"norm_bound": 0.0},
        {"on_empty": "clip"},
    ],
)
def test_bad_settings_are_named(bad):
    with pytest.raises(mb.InvalidInput):
        bounded(2, **bad)
    with pytest.raises(mb.InvalidInput, match="list of kernels"):
        bounded([KERNEL, mb.RBF(1.0)])


def test_it_is_saved_with_a_kernel_and_with_features(phi, tmp_path):
    cs = bounded(phi, samples=7, exact=True, mixture=mb.Bank([mb.RBF(1.0)], share=0.1), suspects=[mb.RBF(0.05)])
    cs.update(X[:9], R[:9]).update(X[9:12], R[9:12], samples=M[9:12])
    mb.save(cs, tmp_path / "cs")
    again = mb.load(tmp_path / "cs")
    assert again.difference(cs) is None
    for one in (cs, again):
        one.update(X[12:15], R[12:15])
    np.testing.assert_array_equal(cs.upper(PROBES), again.upper(PROBES))


def test_damaged_trials_are_refused():
    state = bounded(BOTH["features"]).update(X, R, samples=M).state_dict()
    trials = state["trials"]
    for bad in (
        None,
        trials | {"values": trials["values"] + 1.0},
        trials | {"counts": trials["counts"] + 0.5},
        trials | {"phi": trials["phi"][:, :3]},
        trials | {"phi": None},
        {name: part[:5] for name, part in trials.items()},
    ):
        with pytest.raises(mb.MixbanditError):
            mb.BoundedMixture.from_state_dict(state | {"trials": bad})


def test_sequences_with_learning_forecasters_cannot_be_merged(phi):
    one = bounded(phi).update(X, R)
    with pytest.raises(mb.NotMergeable):
        one.merge(bounded(phi).update(X, R))


def test_running_intersections_do_not_take_a_sigma_for_a_number_of_samples(phi):
    running = mb.RunningIntersection(bounded(phi), PROBES)
    with pytest.raises(mb.InvalidInput, match="need a stated sigma"):
        running.update(X, R, sigma=5)
    first = running.update(X[:10], R[:10]).upper.copy()
    assert (running.update(X[10:], R[10:]).upper <= first).all()


def test_rules_without_a_theory_for_it_say_so(phi):
    for kind in (mb.ThompsonSampling, mb.InformationDirected):
        with pytest.raises(mb.NoTheory):
            kind(bounded(phi), mb.Arms(X[:4]))


def test_policies_act_on_it_and_certify(phi):
    policy = mb.UCB(bounded(phi, samples=100), mb.Box([0.0, 0.0], [1.0, 1.0]), rng=0)
    rng = np.random.default_rng(1)
    for _ in range(4):
        choices = policy.ask(n=2)
        for choice in choices:
            policy.tell(choice, rng.binomial(100, 0.8) / 100)
    with pytest.raises(mb.InvalidInput, match="reward must lie in"):
        policy.tell(policy.ask(), 1.01)
    found = policy.certificate()
    assert found.trusted
    assert found.lower > 0.4
    assert "independent results" in str(found)
    assert policy.regret_bound().widths is not None


def test_too_small_a_norm_bound_and_the_least_one(phi):
    cs = bounded(phi, norm_bound=0.2, on_empty="inflate").update(X, R, samples=100)
    assert cs.is_empty
    audit = cs.audit()
    assert audit.refuted
    least = audit.least_norm_bound
    assert least > 0.2
    with pytest.warns(mb.AssumptionsRefutedWarning):
        assert (cs.lower(PROBES) <= cs.upper(PROBES)).all()
    with pytest.raises(mb.AssumptionsRefuted, match="empty"):
        bounded(phi, norm_bound=0.2).update(X, R, samples=100).lower(PROBES)
    # The same values, and so nearly the same forecasts, under other norm bounds.
    assert bounded(phi, norm_bound=0.999 * least).update(X, R, samples=100).is_empty
    assert not bounded(phi, norm_bound=1.001 * least).update(X, R, samples=100).is_empty


def test_scatter_beyond_that_of_results_is_found_in_repeats():
    rng = np.random.default_rng(3)
    rows = np.repeat(X[:1], 31, axis=0)
    honest = rng.binomial(100, 0.9, size=31) / 100
    shaken = rng.binomial(100, np.clip(0.9 + 0.07 * rng.normal(size=31), 0, 1)) / 100
    fine, noisy = (bounded(KERNEL, samples=100, on_empty="inflate").update(rows, r) for r in (honest, shaken))
    assert not fine.is_refuted
    assert "30 values at actions tried before do not show" in str(fine.audit())
    assert noisy.noise_refuted
    assert "scatter around every" in str(noisy.audit())
    assert noisy.moment.is_refuted
    assert "hardly tested" in str(bounded(KERNEL).update(X, R, samples=M).audit())


def test_suspects_find_what_the_model_does_not_allow():
    rows = np.linspace(0, 1, 40)[:, None]
    r = np.where(np.arange(40) // 4 % 2, 0.9, 0.6)
    smooth = bounded(mb.RBF(1.0) + mb.ConstantKernel(), suspects=[mb.RBF(0.05)], on_empty="inflate", samples=30)
    assert smooth.update(rows, r).suspect_refuted
    calm = bounded(mb.RBF(1.0) + mb.ConstantKernel(), suspects=[mb.RBF(0.05)], samples=30)
    assert not calm.update(rows, np.full(40, 0.7)).suspect_refuted


def test_it_is_narrower_than_hoeffding_near_an_end():
    rng = np.random.default_rng(4)
    x = rng.uniform(size=(100, 2))
    r = rng.binomial(100, 0.97, size=100) / 100
    known = bounded(KERNEL, samples=100).update(x, r)
    hoeffding = mb.MartingaleMixture(
        KERNEL, sigma=0.05, norm_bound=2.0, delta=0.05, mixture=mb.Grid([0.01, 0.1, 1.0]), reward_range=(0.0, 1.0)
    ).update(x, r)
    closed = (known.lower(ACTIONS) - hoeffding.lower(ACTIONS)) / (0.97 - hoeffding.lower(ACTIONS))
    assert closed.mean() > 1 / 3
