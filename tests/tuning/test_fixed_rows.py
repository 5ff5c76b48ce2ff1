"""Values on fixed rows: intervals that hold for a fixed list, none for a search by values, and finalists."""

import dataclasses
import json
import math
import pickle

import numpy as np
import optuna
import pandas as pd
import pytest
from scipy.stats import beta, binom

import mixbandit as mb
from mixbandit.tuning.fixed_rows import chernoff_ends

optuna.logging.set_verbosity(optuna.logging.WARNING)
STATED = {"reward_range": (0, 1), "samples": 200}
PAIRS = [({"C": 1.0, "kernel": "rbf"}, 0.9), ({"C": 10.0, "kernel": "rbf"}, 0.95), ({"C": 1.0, "kernel": "poly"}, 0.5)]
FIXED = {"rows": "fixed", "fixed_list": True}


def kl(r, p):
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(r > 0, r * np.log(r / p), 0.0) + np.where(r < 1, (1 - r) * np.log((1 - r) / (1 - p)), 0.0)


@pytest.mark.parametrize("samples", [1, 30, 359, 10_000])
@pytest.mark.parametrize("log_odds", [1.0, 7.3, 40.0])
def test_the_ends_lie_where_the_divergence_is_what_it_may_be(samples, log_odds):
    r = np.array([0.0, 0.003, 0.2, 0.5, 0.97, 1.0])
    lower, upper = chernoff_ends(r, np.array(float(samples)), log_odds)
    assert (lower <= r).all()
    assert (r <= upper).all()
    for end, inside in ((lower, lower > 1e-12), (upper, upper < 1 - 1e-12)):
        np.testing.assert_allclose(samples * kl(r, end)[inside], log_odds, rtol=1e-6)
    assert lower[0] == 0.0
    assert upper[-1] == 1.0
    assert upper[0] == pytest.approx(-math.expm1(-log_odds / samples), rel=1e-9)
    assert lower[-1] == pytest.approx(math.exp(-log_odds / samples), rel=1e-9, abs=1e-12)


def test_the_ends_of_very_many_samples_keep_their_digits():
    """Where kl is about d²/(2p(1−p)), and a difference of logarithms would have no digits left."""
    lower, upper = chernoff_ends(np.array(0.3), np.array(1e14), 5.0)
    half = math.sqrt(2 * 0.3 * 0.7 * 5.0 / 1e14)
    assert 0.3 - lower == pytest.approx(half, rel=1e-4)
    assert upper - 0.3 == pytest.approx(half, rel=1e-4)


@pytest.mark.parametrize("n", [1, 5, 60, 500])
def test_intervals_contain_those_of_clopper_and_pearson(n):
    """Which are exact for yes-or-no results: Chernoff's are wider, but not by much."""
    right, level = np.arange(n + 1), 0.001
    lower, upper = chernoff_ends(right / n, np.array(float(n)), math.log(2 / level))
    with np.errstate(invalid="ignore"):
        exact_lower = np.where(right == 0, 0.0, beta.ppf(level / 2, right, n - right + 1))
        exact_upper = np.where(right == n, 1.0, beta.ppf(1 - level / 2, right + 1, n - right))
    assert (lower <= exact_lower + 1e-12).all()
    assert (upper >= exact_upper - 1e-12).all()
    assert ((upper - lower) <= 1.35 * (exact_upper - exact_lower)).all()


@pytest.mark.parametrize("p", [0.01, 0.3, 0.5, 0.92, 0.999])
@pytest.mark.parametrize("n", [10, 300])
def test_the_error_of_a_side_is_at_most_its_share(p, n):
    """Exactly, by the probabilities of all outcomes."""
    right, share = np.arange(n + 1), 0.02
    lower, upper = chernoff_ends(right / n, np.array(float(n)), math.log(1 / share))
    chance = binom.pmf(right, n, p)
    assert chance[lower > p].sum() <= share
    assert chance[upper < p].sum() <= share


def test_the_share_of_a_configuration_is_delta_over_all_ends():
    """ln(2NK/δ): two sides, N configurations, K folds; the floors of the folds are averaged."""
    results = {f"split{k}_test_score": [0.9 - 0.1 * k, 0.8, 0.5] for k in range(4)}
    results["params"] = [{"a": i} for i in range(3)]
    found = mb.certify(results, fixed_list=True, delta=0.1, **STATED)
    for i in range(3):
        scores = np.array([results[f"split{k}_test_score"][i] for k in range(4)])
        lower, upper = chernoff_ends(scores, np.array(200.0), math.log(2 * 3 * 4 / 0.1))
        assert found.of({"a": i}).interval == pytest.approx((lower.mean(), upper.mean()))
    assert found.interval == found.of(found.action).interval
    assert found.folds == 4
    assert "4 models fitted for the folds" in found.details()


def ever_wrong(runs, rng, wrong, bound):
    """Few enough wrong runs, by a binomial test."""
    misses = sum(wrong(rng) for _ in range(runs))
    assert binom.sf(misses - 1, runs, bound) > 1e-3, misses
    return misses


def certified_values(values, samples, delta):
    """The certificate of values (N, K) of a fixed list."""
    results = {f"split{k}_test_score": column for k, column in enumerate(values.T)}
    results["params"] = [{"a": i} for i in range(len(values))]
    return mb.certify(results, fixed_list=True, samples=samples, reward_range=(0, 1), delta=delta)


def is_wrong(found, truth):
    """Whether any statement is wrong: an interval, the best possible value, or the gap."""
    low, high = found.intervals.T
    best = truth[found.action["a"]]
    outside = ((truth < low) | (truth > high)).any()
    return outside or truth.max() > found.best_possible or truth.max() - best > found.gap


def test_a_fixed_list_holds_on_shared_rows():
    """Configurations whose results on a row are strongly correlated; δ is large so that a wrong formula would show."""
    truth, m, delta = np.array([0.5, 0.6, 0.9, 0.93, 0.95]), 40, 0.5

    def wrong(rng):
        difficulty = rng.uniform(size=m)  # shared by all configurations
        own = np.where(rng.uniform(size=(5, m)) < 0.7, difficulty, rng.uniform(size=(5, m)))
        values = (own < truth[:, None]).mean(axis=1)
        return is_wrong(certified_values(values[:, None], m, delta), truth)

    assert ever_wrong(600, np.random.default_rng(0), wrong, delta) > 5  # the test has something to see


def test_folds_hold_for_the_mean_of_the_fitted_models():
    """The model of a fold depends on the rows of the others: its accuracy on new rows is random."""
    K, m, delta, N = 3, 30, 0.4, 4

    def wrong(rng):
        labels = rng.uniform(size=(K, m)) < 0.75
        values, truth = np.empty((N, K)), np.empty((N, K))
        for i in range(N):
            for k in range(K):
                share = np.delete(labels, k, axis=0).mean()  # "fitted" to the other folds
                p = 0.75 if share + 0.02 * i > 0.75 else 0.25  # predicts True, or False
                values[i, k] = labels[k].mean() if p == 0.75 else 1 - labels[k].mean()
                truth[i, k] = p
        return is_wrong(certified_values(values, m, delta), truth.mean(axis=1))

    ever_wrong(300, np.random.default_rng(1), wrong, delta)


def test_results_between_0_and_1_are_covered_as_well():
    m, delta, a, b = 20, 0.5, np.array([0.3, 2.0, 8.0]), np.array([0.1, 2.0, 1.0])

    def wrong(rng):
        values = rng.beta(a[:, None], b[:, None], size=(3, m)).mean(axis=1)
        return is_wrong(certified_values(values[:, None], m, delta), a / (a + b))

    ever_wrong(400, np.random.default_rng(2), wrong, delta)


def test_gaussian_values_with_a_stated_level():
    truth, delta, sigma = np.array([[-3.0], [0.0], [0.4]]), 0.5, 0.3

    def wrong(rng):
        values = truth + sigma * rng.normal(size=(3, 1))
        history = [({"a": i}, float(v)) for i, v in enumerate(values[:, 0])]
        return is_wrong(mb.certify(history, sigma=sigma, delta=delta, **FIXED), truth[:, 0])

    assert ever_wrong(400, np.random.default_rng(3), wrong, delta) > 5


def test_a_level_and_a_range():
    half = 0.1 * math.sqrt(2 * math.log(2 * 3 / 0.05))
    found = mb.certify(PAIRS, sigma=0.1, reward_range=(0, 1), **FIXED)
    assert found.of(PAIRS[1][0]).interval == pytest.approx((0.95 - half, 1.0))
    assert found.of(PAIRS[2][0]).interval == pytest.approx((0.5 - half, 0.5 + half))
    with pytest.warns(mb.AssumptionsRefutedWarning, match="a noise level of 0.1"):
        found = mb.certify([*PAIRS, ({"C": 2.0, "kernel": "rbf"}, 9.0)], sigma=0.1, reward_range=(0, 1), **FIXED)
    assert not found.trusted
    assert not found.proven
    assert str(found).startswith("WARNING")


def test_extreme_scores():
    found = mb.certify([({"a": 0}, 0.0), ({"a": 1}, 1.0)], **FIXED, **STATED)
    rest = math.exp(-math.log(4 / 0.05) / 200)
    assert found.of({"a": 0}).interval == pytest.approx((0.0, 1 - rest))
    assert found.of({"a": 1}).interval == pytest.approx((rest, 1.0))
    assert found.best_possible == 1.0
    assert found.gap == 0.0
    assert "No other configuration on the list (2 in all) has an expected value that is larger." in str(found)


@pytest.mark.parametrize("reward_range", [(0, 1), (-2, 0), (10, 11)])
def test_minimising_is_maximising_the_negative(reward_range):
    low, high = reward_range
    losses = [({"a": i}, low + (high - low) * v) for i, v in enumerate((0.1, 0.02, 0.5))]
    down = mb.certify(losses, reward_range=reward_range, samples=100, direction="minimize", **FIXED)
    up = mb.certify([(p, -v) for p, v in losses], reward_range=(-high, -low), samples=100, **FIXED)
    assert down.action == up.action == {"a": 1}
    assert down.interval == pytest.approx((-up.interval[1], -up.interval[0]))
    assert down.best_possible == pytest.approx(-up.best_possible)
    assert down.gap == pytest.approx(up.gap)
    assert down.of({"a": 1}).interval == pytest.approx(down.interval)
    assert f"at most {down.interval[1]:.4g}" in str(down)
    assert "smaller by more than" in str(down)


def test_the_first_two_lines_say_what_to_do():
    found = mb.certify(PAIRS, **FIXED, **STATED)
    first, second = str(found).splitlines()
    assert first.startswith("Use {'C': 10.0, 'kernel': 'rbf'}: on new rows its expected value is at least 0.8")
    assert first.endswith("with probability at least 0.95.")
    assert second.startswith("No other configuration on the list (3 in all) has an expected value that is larger by")
    assert second.endswith(f"by more than {found.gap:.4g}.")
    assert found.gap == pytest.approx(found.of(PAIRS[0][0]).upper - found.interval[0])
    assert "fixed before any value on these rows was seen" in found.details()
    assert found.parameters == found.action == PAIRS[1][0]
    assert (found.evidence, found.about, found.tried) == ("fixed list", "new rows", 3)


def study(n=12):
    found = optuna.create_study(direction="minimize", sampler=optuna.samplers.TPESampler(seed=0))

    def objective(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        trial.suggest_float("constant", 1.0, 1.0)
        if trial.number == 3:
            raise optuna.TrialPruned
        return x

    found.optimize(objective, n_trials=n)
    return found


@pytest.mark.parametrize("form", ["study", "frame", "csv"])
def test_studies_and_tables_on_fixed_rows(form, tmp_path):
    run, options = study(), {}
    history = run
    if form != "study":
        history, options = run.trials_dataframe(), {"direction": "minimize"}
        history.to_csv(tmp_path / "x.csv")
        history = history if form == "frame" else tmp_path / "x.csv"
    only = mb.certify(history, rows="fixed", **options)
    assert only.about == "these rows only"
    assert only.on_these_rows == pytest.approx(run.best_value)
    assert only.left_out == {"PRUNED": 1}
    listed = mb.certify(history, **FIXED, **STATED, **options)
    assert listed.about == "new rows"
    assert listed.direction == "minimize"
    assert listed.tried == 11
    worth = listed.of(run.best_params)  # with what never varies
    assert worth.lower < run.best_value < worth.upper
    # The pruned configuration was on the list.
    ends = chernoff_ends(np.array(run.best_value), np.array(200.0), math.log(2 * 12 / 0.05))
    assert listed.interval == pytest.approx([float(end) for end in ends], rel=1e-6)


def test_only_feasible_configurations_are_recommended():
    frame = pd.DataFrame({"params_x": [0.1, 0.2, 0.3], "value": [0.9, 0.8, 0.7], "state": ["COMPLETE"] * 3,
                          "system_attrs_constraints": [(1.0,), (-1.0,), (0.0,)]})  # fmt: skip
    for found in (mb.certify(frame, **FIXED, **STATED), mb.certify(frame, rows="fixed")):
        assert found.action == {"x": 0.2}
        assert found.infeasible == 1
        assert "1 of 3 are not known to be feasible" in found.details()
    frame["system_attrs_constraints"] = [(1.0,)] * 3
    with pytest.raises(mb.InvalidInput, match="none of 3 configurations is known to satisfy"):
        mb.certify(frame, rows="fixed")


def test_fresh_rows_are_the_default():
    assert type(mb.certify(PAIRS, **STATED)).__name__ == "StudyCertificate"
    with pytest.raises(mb.InvalidInput, match='state rows="fixed" as well'):
        mb.certify(PAIRS, fixed_list=True, **STATED)
    with pytest.raises(mb.InvalidInput, match="mixture does not apply to fixed rows"):
        mb.certify(PAIRS, rows="fixed", mixture=mb.Standard(), **STATED)


@pytest.mark.parametrize("stated", [{}, STATED, {"sigma": 0.1}, {"reward_range": (0, 1)}])
@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_a_search_by_values_promises_nothing_about_new_rows(stated, direction):
    """Whatever is read of it, as text or as numbers."""
    found = mb.certify(PAIRS, rows="fixed", direction=direction, **stated)
    ends = (0.0, 1.0) if "reward_range" in stated else (-math.inf, math.inf)
    assert not found.proven
    assert found.trusted
    assert found.about == "these rows only"
    assert found.guarantee == "none"
    assert found.interval == ends
    assert found.best_possible == (ends[1] if direction == "maximize" else ends[0])
    assert found.gap == ends[1] - ends[0]
    assert {found.of(p).interval for p, _ in PAIRS} == {ends}
    assert not any(found.of(p).trusted for p, _ in PAIRS)
    assert found.on_these_rows == (0.95 if direction == "maximize" else 0.5)
    first, second = str(found).splitlines()
    rest = found.details().splitlines()[2:]
    assert first.startswith("ON THESE ROWS ONLY")
    assert first.endswith("nothing is guaranteed about new rows.")
    assert "on new rows, any of them may be, by any amount" in second
    assert "certify_finalists" in " ".join(rest)
    assert "probability" not in found.details()
    stored = found.to_dict()
    assert stored["proven"] is False
    assert stored["about"] == "these rows only"
    assert json.loads(json.dumps(stored, allow_nan=False)) == stored


def test_finalists_get_their_share_each():
    found = mb.certify_finalists([(p, v) for p, v in PAIRS], samples=200, reward_range=(0, 1), delta=0.1)
    ends = chernoff_ends(np.array(0.95), np.array(200.0), math.log(2 * 3 / 0.1))
    assert found.interval == pytest.approx([float(end) for end in ends])
    assert (found.evidence, found.about, found.tried, found.delta) == ("fresh rows", "new rows", 3, 0.1)
    assert "fresh rows, on which neither training nor the choice of finalists depended" in found.details()
    assert "No other finalist (3 in all)" in str(found)
    assert found.to_dict() == mb.certify_finalists(PAIRS, mb.Assumptions((0, 1), 200, delta=0.1)).to_dict()


def test_finalists_may_have_rows_of_their_own():
    mixed = [({"a": 1}, 0.9, 100), ({"a": 2}, 0.9, 1000), ({"a": 3}, 0.9)]
    found = mb.certify_finalists(mixed, samples=300, reward_range=(0, 1))
    widths = {p["a"]: np.diff(found.of(p).interval)[0] for p, *_ in mixed}
    assert widths[2] < widths[3] < widths[1]
    assert found.action == {"a": 2}
    assert "mean of 100 to 1,000 independent results" in found.details()
    level = mb.certify_finalists([({"a": 1}, 3.0), ({"a": 2}, 4.0)], sigma=0.1, direction="minimize")
    assert level.action == {"a": 1}


def test_finalists_hold_after_any_search():
    """The best of many by luck, measured once more."""
    truth, m, delta = np.full(50, 0.7), 60, 0.5

    def wrong(rng):
        luck = rng.binomial(m, truth)
        best = np.argsort(-luck)[:3]
        fresh = rng.binomial(m, truth[best]) / m
        found = mb.certify_finalists(
            [({"a": int(i)}, float(v)) for i, v in zip(best, fresh, strict=True)],
            samples=m, reward_range=(0, 1), delta=delta)  # fmt: skip
        return any(not low <= 0.7 <= high for low, high in found.intervals)

    ever_wrong(400, np.random.default_rng(4), wrong, delta)


@pytest.mark.parametrize(
    ("finalists", "stated", "message"),
    [
        ([], STATED, r"finalists must be a list of \(parameters, value\)"),
        ({"a": 1}, STATED, "finalists must be a list"),
        ([(1, 0.5)], STATED, "finalists must be a list"),
        ([({"a": 1}, "x")], STATED, "value must be a number, got 'x'"),
        ([({"a": 1}, math.nan)], STATED, "must be finite"),
        ([({"a": 1}, 1.5)], STATED, "lies outside reward_range"),
        ([({"a": 1}, 0.5, 0)], STATED, "samples must be an integer ≥ 1"),
        ([({"a": 1}, 0.5, 9)], {"sigma": 0.1}, "sigma or the samples of each finalist, not both"),
        ([({"a": 1}, 0.5)], {"reward_range": (0, 1)}, "state samples"),
        ([({"a": 1}, 0.5, 9)], {}, "state reward_range"),
    ],
)
def test_finalists_that_cannot_be_certified(finalists, stated, message):
    with pytest.raises(mb.InvalidInput, match=message):
        mb.certify_finalists(finalists, **stated)


def test_any_listed_configuration_has_an_interval():
    array, flag = np.array([1, 2]), [({"a": True}, 0.1), ({"a": 1}, 0.5), ({"a": "1"}, 0.7), ({"a": [1, 2]}, 0.8)]
    found = mb.certify_finalists([*flag, ({"a": array}, 0.9), ({"a": 1}, 0.6)], **STATED)
    assert found.of({"a": True}).upper < 0.3
    ends = [
        float(chernoff_ends(np.array(v), np.array(200.0), math.log(12 / 0.05))[i]) for i, v in enumerate((0.5, 0.6))
    ]
    assert found.of({"a": 1}).interval == pytest.approx(ends)  # twice on the list: the hull
    assert found.of({"a": np.array([1, 2])}).upper > 0.9
    with pytest.raises(mb.InvalidInput, match=r"\{'a': 3\} is not among the 6"):
        found.of({"a": 3})
    with pytest.raises(mb.InvalidInput, match="is not among"):
        found.of({})
    with pytest.raises(mb.InvalidInput, match="parameters must be a dict"):
        found.of(3)


def test_a_certificate_is_a_value():
    found = mb.certify(PAIRS, **FIXED, **STATED)
    assert pickle.loads(pickle.dumps(found)).to_dict() == found.to_dict()
    assert dataclasses.replace(found) == found
    assert json.loads(json.dumps(found.to_dict())) == found.to_dict()
    assert found.possible == ()
    assert "configurations=" not in repr(found)


def test_a_perfect_finalist_beside_the_recommended_one_is_not_ruled_out():
    known = {"reward_range": (0.0, 1.0), "samples": 100}
    found = mb.certify_finalists([({"x": 1}, 1.0), ({"x": 2}, 1.0)], **known)
    second = str(found).splitlines()[1]
    assert found.proof == "range"
    assert second == (
        f"Nothing rules out that another finalist (2 in all) is better, by up to {found.gap:.4g}: its expected value "
        "may be 1, the end of its range."
    )
    perfect = mb.certify_finalists([({"x": 1}, 1.0), ({"x": 2}, 0.9)], **known)
    assert perfect.proof == "enumerated"
    listed = mb.certify(
        [({"x": 1}, 0.0), ({"x": 2}, 0.0)], direction="minimize", rows="fixed", fixed_list=True, **known
    )
    assert "its expected value may be 0, the end of its range." in str(listed)
