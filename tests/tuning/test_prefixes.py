"""A refutation at any time stands: the prefixes of a run are tested, not only the whole."""

import itertools

import numpy as np
import optuna
import pandas as pd
import pytest

import mixbandit as mb
from mixbandit.tuning.prefixes import looked_at

SPACE = mb.Space({"x": mb.Float(0.0, 1.0)})
STATED = {"space": SPACE, "sigma": 0.1, "norm_bound": 3.0}


def hidden(*early, after=0, zeros=200):
    """A run in which some values refute sigma, and many others hide it."""
    rng = np.random.default_rng(0)
    values = [*[0.0] * after, *early, *[0.0] * zeros]
    return [({"x": 0.5 + 0.01 * rng.uniform()}, value) for value in values]


def as_study(history):
    study = optuna.create_study(direction="maximize")
    for parameters, value in history:
        trial = optuna.trial.create_trial(
            params=parameters, distributions={"x": optuna.distributions.FloatDistribution(0.0, 1.0)}, value=value
        )
        study.add_trial(trial)
    return study


def as_table(history):
    return pd.DataFrame([{"number": i, **parameters, "value": value} for i, (parameters, value) in enumerate(history)])


@pytest.mark.parametrize("form", [list, as_study, as_table])
@pytest.mark.parametrize("after", [0, 7])
def test_a_prefix_that_refutes_stands_though_the_whole_does_not(form, after):
    history = hidden(0.6, -0.6, after=after)
    with pytest.warns(mb.AssumptionsRefutedWarning, match=rf"\(after {after + 2} trials\)"):
        found = mb.certify(form(history), **STATED)
    assert not found.audit.noise_refuted
    assert not found.audit.refuted
    assert not found.trusted
    assert not found.proven
    assert found.refuted_after == after + 2
    assert f"the first {after + 2} of {len(history)} trials refute the stated assumptions" in str(found)
    assert mb.certify(form(hidden(after=after)), **STATED).trusted


def test_a_run_that_is_refuted_as_a_whole_says_when():
    rng = np.random.default_rng(0)
    fine = [({"x": x}, 0.02 * rng.normal()) for x in rng.uniform(size=100)]
    wild = [({"x": 0.5}, value) for value in rng.choice((-2.0, 2.0), 200)]
    with pytest.warns(mb.AssumptionsRefutedWarning):
        found = mb.certify([*fine, *wild], **STATED)
    assert 100 < found.refuted_after < 150
    assert mb.certify(fine, **STATED).refuted_after is None


def test_a_range_that_early_trials_contradict():
    """Values outside the range of expected ones, which nothing else forbids, and then others that hide it."""
    early, later = [({"x": 0.5}, 1.6)] * 15, [({"x": 0.5}, 0.9)] * 3000
    stated = {"space": SPACE, "sigma": 0.3, "norm_bound": 30.0}
    assert mb.certify([*early, *later[:5]], **stated).trusted
    with pytest.warns(mb.AssumptionsRefutedWarning):
        found = mb.certify([*early, *later], **stated, reward_range=(0.0, 1.0))
    assert found.refuted_after <= 15
    assert found.interval[0] < 1.0  # what all trials say
    assert mb.certify(later, **stated, reward_range=(0.0, 1.0)).trusted


def test_a_table_sorted_by_value_is_tested_as_a_whole():
    """Its first rows are the luckiest ones: taken for a run of their own, they would refute true assumptions."""
    rng = np.random.default_rng(2)
    history = [({"x": float(x)}, 0.1 * rng.normal()) for x in rng.uniform(size=4000)]
    stated = {"space": SPACE, "sigma": 0.1, "norm_bound": 0.01}
    assert mb.certify(history, **stated).trusted
    for sign in (-1.0, 1.0):
        by_value = sorted(history, key=lambda pair: sign * pair[1])
        assert mb.certify(by_value, **stated).trusted
        assert mb.Tuner(SPACE, sigma=0.1, norm_bound=0.01).learn([*by_value[1:30], by_value[0]]).refuted


@pytest.mark.parametrize("runs", [25, pytest.param(100, marks=pytest.mark.heavy)])
def test_true_assumptions_are_refuted_in_no_more_runs_than_delta(runs):
    alarms = 0
    for run in range(runs):
        rng = np.random.default_rng([3, run])
        history = [({"x": float(x)}, 0.3 * np.sin(3 * x) + 0.1 * rng.normal()) for x in rng.uniform(size=60)]
        tuner = mb.Tuner(SPACE, sigma=0.1, norm_bound=3.0, delta=0.1).learn(history)
        alarms += tuner.refuted
    assert alarms <= 0.2 * runs


@pytest.mark.parametrize("n", [1, 2, 19, 20, 21, 25, 70, 1000, 10**6])
def test_few_prefixes_are_looked_at_and_all_of_the_first(n):
    ends = looked_at(n)
    assert ends == sorted(set(ends))
    assert ends[: min(n, 20)] == list(range(1, min(n, 20) + 1))
    assert ends[-1] == n
    assert len(ends) <= 70
    assert max(b / a for a, b in itertools.pairwise(ends[19:])) < 1.3 if n > 20 else True
