"""Anyone's run: read, certified, refuted, refused."""

import dataclasses
import logging

import numpy as np
import optuna
import pandas as pd
import pytest
from typer.testing import CliRunner

import mixbandit as mb
from mixbandit.certificates import certificate
from mixbandit.cli import app
from mixbandit.errors import SamplesMissingWarning
from mixbandit.integrations.optuna import StopOnGap
from mixbandit.tuning.default_model import default_kernel, default_suspects
from mixbandit.tuning.runs import read_run as read_history
from tests.helpers.runs import SPACE, noisy, objective, worth

optuna.logging.set_verbosity(logging.WARNING)


@pytest.fixture(scope="module")
def study():
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
    rng = np.random.default_rng(0)
    study.optimize(lambda trial: objective(trial, rng), n_trials=80)
    return study


COMPLETE = optuna.trial.TrialState.COMPLETE
STATED = {"reward_range": (0.0, 1.0), "samples": 100, "rows": "fresh"}


def by_hand(rows, values, kind):
    """The model's part of δ = 0.05 is 0.02, of up to 500 trials 0.018; the scale of values is 1, their middle 0.5."""
    known = {"norm_bound": 2.0, "delta": 0.018, "reward_range": (-0.5, 0.5)}
    if kind == "samples":
        cs = mb.BoundedMixture(default_kernel(SPACE), samples=100, suspects=default_suspects(SPACE), **known)
    else:
        mixture = mb.Grid([mb.SemiAdaptive(c) for c in (0.01, 0.1, 1.0)])
        cs = mb.MartingaleMixture(default_kernel(SPACE), sigma=0.05, mixture=mixture, **known)
    return cs.update(rows, np.asarray(values) - 0.5)


def own_by_hand(rows, values, row, kind, numbers):
    """A configuration's own trials get δ·0.2/(i(i+1)), where it is the i-th that is not known to repeat another."""
    keys = [tuple(np.round(each, 9)) for each in rows]
    place = keys.index(tuple(np.round(row, 9)))
    i = 1 + numbers[place] - (place - len(set(keys[:place])))
    values = [v for each, v in zip(rows, values, strict=True) if np.allclose(each, row, rtol=0.0, atol=1e-9)]
    delta = 0.05 * 0.2 / (i * (i + 1))
    if kind == "samples":
        return mb.MeanSequence((0.0, 1.0), delta).update(values, samples=100)
    return mb.MeanSequence(None, delta, sigma=0.05).update(values)


@pytest.mark.parametrize("kind", ["samples", "sigma"])
def test_a_tpe_study_gets_the_certificate_of_the_same_data_by_hand(study, kind):
    found = mb.certify(study, reward_range=(0.0, 1.0), **({"samples": 100} if kind == "samples" else {"sigma": 0.05}))
    complete = [t for t in study.trials if t.state.name == "COMPLETE"]
    rows, values = list(read_history(study).rows), [t.value for t in complete]
    # Encoded all at once, as by certify: a last digit that differs may decide whether a tiny eigenvalue counts as 0,
    # which moves bounds of this kernel by some 1e-9.
    assert np.abs(rows - SPACE.encode_all([t.params for t in complete])).max() <= 1e-15
    cs, best = by_hand(rows, values, kind), SPACE.encode(found.action)
    # Of every configuration that was tried, and not only of the best one.
    lowers = []
    for trial, row in zip(complete, rows, strict=True):
        own, worth = own_by_hand(rows, values, row, kind, [t.number for t in complete]), found.of(trial.params)
        lower, upper = cs.lower(row)[0] + 0.5, cs.upper(row)[0] + 0.5
        assert worth.lower == pytest.approx(max(lower, own.lower()), abs=1e-9)
        assert worth.upper == pytest.approx(min(upper, own.upper()), abs=1e-9)
        assert worth.evidence == ("own trials" if own.lower() > lower else "model")
        lowers.append(worth.lower)
    assert found.lower == pytest.approx(found.of(found.action).lower, abs=1e-9)
    assert found.upper == pytest.approx(found.of(found.action).upper, abs=1e-9)
    again = certificate(cs.moment, SPACE.region, np.random.default_rng(0))
    # A configuration that was tried is preferred to an untried one if it costs little of the interval.
    most = max(*lowers, again.lower + 0.5)
    assert most - 0.1 * (again.upper - again.lower) - 1e-4 <= found.lower <= most + 1e-4
    assert found.tried == sum(np.allclose(row, best) for row in rows)
    assert found.optimum_upper == pytest.approx(again.optimum_upper + 0.5, abs=5e-3)
    assert found.gap == pytest.approx(found.optimum_upper - found.lower, abs=5e-3)
    assert found.t == len(complete) == 72
    assert found.left_out == {"PRUNED": 8}
    assert found.proven


def test_it_holds(study):
    found = mb.certify(study, **STATED)
    grid = [{"C": c, "kernel": "rbf"} for c in np.geomspace(1e-2, 1e2, 200)]
    assert found.interval[0] <= worth(found.action) <= found.interval[1]
    assert max(map(worth, grid)) <= found.best_possible
    assert max(map(worth, grid)) - worth(found.action) <= found.gap
    (c,) = (part for part in found.possible if part.name == "C")
    assert any(low <= 10**0.5 <= high for low, high in c.values)
    assert 0.0 < c.share <= 1.0


@pytest.mark.parametrize("trials", [400, pytest.param(1500, marks=pytest.mark.heavy)])
def test_what_is_possible_shrinks_to_the_best_with_data(trials):
    rng = np.random.default_rng(1)
    history = [(p, float(rng.binomial(2000, worth(p))) / 2000) for p in SPACE.sample(trials, rng=2)]
    found = mb.certify(history, space=SPACE, reward_range=(0.0, 1.0), samples=2000, rows="fresh")
    parts = {part.name: part for part in found.possible}
    assert parts["kernel"].values == ("rbf",)
    assert parts["degree"].values == ()
    assert parts["C"].share < 1.0
    ((low, high),) = parts["C"].values
    assert low < 10**0.5 < high
    assert "kernel: 'rbf' (50%)" in found.details()


def test_minimising_is_maximising_the_negative():
    rng = np.random.default_rng(3)
    history = [(p, noisy(p, rng)) for p in SPACE.sample(100, rng=4)]
    up = mb.certify(history, space=SPACE, **STATED)
    down = mb.certify([(p, 1.0 - v) for p, v in history], space=SPACE, direction="minimize", **STATED)
    assert down.interval == pytest.approx((1.0 - up.upper, 1.0 - up.lower), abs=1e-6)
    assert down.best_possible == pytest.approx(1.0 - up.best_possible, abs=2e-3)
    assert down.gap == pytest.approx(up.gap, abs=2e-3)
    assert "at most" in str(down)
    assert "Nothing rules out a better configuration: expected values may reach 0, the end of the stated" in str(down)
    assert "Nothing rules out a better configuration: expected values may reach 1, the end of the stated" in str(up)


@pytest.mark.parametrize("kind", ["study", "frame of a study", "frame", "csv", "pairs"])
def test_all_forms_of_a_history_are_read_alike(study, kind, tmp_path):
    frame = study.trials_dataframe()
    complete = [t for t in study.trials if t.state.name == "COMPLETE"]
    plain = pd.DataFrame([{**t.params, "accuracy": t.value} for t in complete])
    plain.to_csv(tmp_path / "x.csv", index=False)
    given = {
        "study": (study, {}),
        "frame of a study": (frame, {}),
        "frame": (plain, {"value": "accuracy"}),
        "csv": (tmp_path / "x.csv", {"value": "accuracy"}),
        "pairs": ([(t.params, t.value) for t in complete], {}),
    }
    history, options = given[kind]
    run = read_history(history, space=SPACE, **options)
    np.testing.assert_allclose(run.rows, [SPACE.encode(t.params) for t in complete], atol=1e-12)
    np.testing.assert_allclose(run.values, [t.value for t in complete])
    assert run.direction == "maximize"
    if kind in ("study", "frame of a study"):
        assert run.left_out == {"PRUNED": 8}


def test_the_space_of_a_study_is_found_with_its_condition(study):
    run = read_history(study)
    assert run.space == SPACE
    assert not run.inferred
    spanned = read_history([(t.params, t.value) for t in study.trials if t.value is not None])
    assert spanned.inferred
    assert spanned.space.conditions == {"degree": ("kernel", ("poly",))}
    assert "inferred from the trials" in mb.certify([(t.params, 0.5) for t in study.trials[:5]], **STATED).details()


def test_a_study_without_a_bound_on_the_noise_is_refused_with_help(study):
    with pytest.raises(mb.AssumptionsMissing, match=r"reward_range=\(0, 1\) and samples"):
        mb.certify(study)
    with pytest.raises(mb.AssumptionsMissing, match="norm_bound"):
        mb.certify(study, sigma=0.05)
    assert mb.certify(study, sigma=0.05, norm_bound=2.0).t == 72


def test_wrong_assumptions_are_refuted(study):
    """Values of noise 0.04 that are said to average 100,000 results each."""
    with pytest.warns(mb.AssumptionsRefutedWarning, match=r"expected values in \[0, 1\]") as told:
        found = mb.certify(study, reward_range=(0.0, 1.0), samples=100_000, rows="fresh")
    assert len(told) == 1
    assert not found.trusted
    assert not found.proven
    assert found.possible == ()
    assert str(found).startswith("WARNING")
    assert "REFUTED" in found.details()
    # There are several tests, and each has its own δ.
    alarms = "all tests of a certificate together raise a false alarm with probability at most 0.32"
    assert found.ledgers[-1].total == pytest.approx(0.32)
    assert alarms in str(told[0].message)
    assert alarms in str(found).splitlines()[0]
    assert alarms not in mb.certify(study, **STATED).details()


def many_objectives():
    return optuna.create_study(directions=["maximize", "minimize"])


def changing_ranges():
    study = optuna.create_study()
    for high in (1.0, 2.0):
        study.enqueue_trial({})
        study.optimize(lambda trial, high=high: trial.suggest_float("x", 0.0, high), n_trials=1)
    return study


def without_a_reason():
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(
        lambda trial: trial.suggest_float("x", 0, 1) + (trial.suggest_float("y", 0, 1) if trial.number % 2 else 0.0),
        n_trials=6,
    )
    return study


@pytest.mark.parametrize(
    ("history", "options", "message"),
    [
        (many_objectives(), {}, "single objective"),
        (optuna.create_study(), {}, "no completed trial"),
        (changing_ranges(), {}, "range of 'x' changed"),
        (without_a_reason(), {}, "'y' is missing from some trials"),
        (pd.DataFrame({"x": [1.0, 2.0], "score": [0.1, 0.2]}), {}, "no column 'value'"),
        (pd.DataFrame({"x": [1.0, 2.0], "value": ["a", "b"]}), {}, "must hold numbers"),
        (pd.DataFrame({"x": [1.0, 1.0], "value": [0.1, 0.2]}), {}, "no parameter varies"),
        (pd.DataFrame({"x": [1.0, 2.0], "value": [0.1, 0.2]}), {"direction": "up"}, "direction"),
        (pd.DataFrame({"x": [1.0, 2.0], "value": [0.1, 0.2]}), {"space": {"x": 1}}, "space must be a Space"),
        (
            pd.DataFrame({"x": [1.0, 2.0], "value": [0.1, 0.2]}),
            {"features": mb.Identity(3)},
            r"the space has \(1\), got 3",
        ),
        (pd.DataFrame({"x": [1.0, 2.0], "value": [0.1, 0.2]}), {"reward_range": (1, 0)}, "low < high"),
        (pd.DataFrame({"x": [1.0, 2.0], "value": [0.1, 0.2]}), {"sigma": 0.1}, "not both"),
        (42, {}, "history must be"),
    ],
)
def test_what_cannot_be_certified_is_refused(history, options, message):
    with pytest.raises(mb.InvalidInput, match=message):
        mb.certify(history, **{**STATED, **options})


def test_a_bad_csv_file_is_named(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("x,value\n1,2,3\n")
    with pytest.raises(mb.InvalidInput, match="line 2 has 3 fields"):
        mb.certify(path, **STATED)
    path.write_text("x,value\n")
    with pytest.raises(mb.InvalidInput, match="at least one row"):
        mb.certify(path, **STATED)


def test_rows_without_a_value_do_not_count(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("# a comment\nx,flag,value\n0.5,True,0.4\n1.5,False,\n0.25,True,0.6\n2.5,False,0.1\n")
    run = read_history(path)
    assert run.left_out == {"without a value": 1}
    assert run.configurations[0] == {"x": 0.5, "flag": True}
    assert list(run.values) == [0.4, 0.6, 0.1]


def test_the_command_line_certifies_files_and_storages(study, tmp_path):
    run = CliRunner().invoke
    complete = [t for t in study.trials if t.state.name == "COMPLETE"]
    path = tmp_path / "x.csv"
    pd.DataFrame([{**t.params, "value": t.value} for t in complete]).to_csv(path, index=False)
    stated = ["--range", "0", "1", "--samples", "100"]
    result = run(app, ["certify", str(path), *stated])
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("Use {")  # what is being done goes to stderr
    storage = f"sqlite:///{tmp_path / 'x.db'}"
    optuna.copy_study(
        from_study_name=study.study_name, from_storage=study._storage, to_storage=storage, to_study_name="a"
    )
    result = run(app, ["certify", storage, *stated])
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("CAUTION: 8 trials ended without a value.")
    assert result.stdout.splitlines()[1].startswith("Use {")  # what is being done goes to stderr
    optuna.create_study(storage=storage, study_name="b")
    for arguments, text in (
        ([storage], "several studies"),
        ([storage, "--study", "c"], "no study 'c'"),
        ([str(tmp_path / "no.csv")], "there is no file"),
        ([str(path), "--direction", "up"], "--direction"),
    ):
        result = run(app, ["certify", *arguments, *stated])
        assert result.exit_code == 2, result.output
        assert text in result.output
    assert run(app, ["certify", str(path)]).exit_code == 2
    assert run(app, ["certify", str(path), "--range", "0", "1", "--samples", "1000000"]).exit_code == 3


def test_certificates_of_studies_are_certificates(study):
    found = mb.certify(study, **STATED)
    assert isinstance(found, mb.Certificate)
    assert {field.name for field in dataclasses.fields(mb.Certificate)} <= set(vars(found))


def test_a_certificate_is_about_a_configuration_that_exists():
    # More integers than are listed: a search may end between two of them.
    space = mb.Space({"n": mb.Int(1, 100_000, log=True)})
    stated = {"sigma": 0.01, "norm_bound": 2.0}
    cs = mb.MartingaleMixture(
        default_kernel(space), delta=0.018, mixture=mb.Grid([mb.SemiAdaptive(c) for c in (0.01, 0.1, 1.0)]), **stated
    )
    for values in ([0.4, 0.4, 0.3, 0.0], [0.0, 0.39, 0.4, 0.0], [0.3, 0.4, 0.4, 0.0]):
        tried = [1, 2, 4, 50]
        found = mb.certify(list(zip([{"n": n} for n in tried], values, strict=True)), space=space, **stated)
        assert isinstance(found.action["n"], int)
        row, now = space.encode(found.action), cs.copy().update(space.encode_all([{"n": n} for n in tried]), values)
        assert found.tried == (found.action["n"] in tried)
        own = -np.inf
        if found.tried:
            i = tried.index(found.action["n"]) + 1
            own = mb.MeanSequence(None, 0.05 * 0.2 / (i * (i + 1)), sigma=0.01).update(values[i - 1]).lower()
        assert found.lower == pytest.approx(max(now.lower(row)[0], own), abs=1e-9)
        assert found.of(found.action).interval == pytest.approx(found.interval, rel=1e-12)
        assert found.gap == pytest.approx(found.optimum_upper - found.lower)


def test_what_varies_beside_the_space_is_not_certified():
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(lambda t: 0.5 * t.suggest_float("x", 0, 1) + 0.3 * t.suggest_float("y", 0, 1), n_trials=3)
    with pytest.raises(mb.InvalidInput, match="varies 'y'"):
        mb.certify(study, space=mb.Space({"x": mb.Float(0, 1)}), **STATED)


def test_a_file_with_the_index_of_a_frame_and_an_address_of_a_storage(tmp_path):
    frame = pd.DataFrame({"x": [0.1, 0.5, 0.9], "value": [0.5, 0.6, 0.5]})
    frame.to_csv(tmp_path / "runs.csv")
    assert set(mb.certify(tmp_path / "runs.csv", **STATED).action) == {"x"}
    with pytest.raises(mb.InvalidInput, match=r"optuna\.load_study"):
        mb.certify("sqlite:///study.db", **STATED)
    result = CliRunner().invoke(app, ["certify", f"sqlite:///{tmp_path}/none.db", "--range", "0", "1"])
    assert result.exit_code == 2
    assert not (tmp_path / "none.db").exists()


def test_a_range_without_samples_says_that_values_are_single_results():
    with pytest.warns(SamplesMissingWarning, match=r"such as 0\.5 counts as one single result"):
        found = mb.certify([({"x": 0.1}, 0.5), ({"x": 0.9}, 0.5)], reward_range=(0.0, 1.0))
    assert "values that are single results (samples not stated)" in found.details()
    assert "the end of the stated range" in str(found)


def test_the_command_line_speaks_of_its_own_options(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text("x,value\n0.1,0.5\n0.9,0.6\n")
    for options, message in (
        ([], "--range LOW HIGH"),
        (["--range", "1", "0"], "low < high"),
        (["--range", "0", "1", "--value", "y"], "no column 'y'"),
    ):
        result = CliRunner().invoke(app, ["certify", str(path), *options])
        assert result.exit_code == 2
        assert message in " ".join(result.output.replace("│", " ").split())


def constrained(direction="maximize", system="new"):
    """The larger x, the better; but only x ≤ 0.5 is allowed."""
    study = optuna.create_study(direction=direction, sampler=optuna.samplers.RandomSampler(seed=0))
    space = {"x": optuna.distributions.FloatDistribution(0.0, 1.0)}
    for i in range(21):
        x = i / 20
        violated = {"new": {"constraints:a": x - 0.5, "constraints:b": -1.0}, "old": {"constraints": [x - 0.5, -1.0]}}
        attributes = {**violated, "none": {}}[system if i != 5 else "none"]  # one trial has none
        value = 0.2 + 0.5 * x if direction == "maximize" else 0.7 - 0.5 * x
        study.add_trial(
            optuna.trial.create_trial(
                params={"x": x}, distributions=space, value=value, system_attrs=attributes, state=COMPLETE
            )
        )
    return study


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
@pytest.mark.parametrize("system", ["new", "old"])
def test_infeasible_trials_are_not_recommended(direction, system):
    study = constrained(direction, system)
    assert (
        mb.certify(constrained(direction, "none"), reward_range=(0.0, 1.0), samples=10_000, rows="fresh").action["x"]
        > 0.7
    )
    found = mb.certify(study, reward_range=(0.0, 1.0), samples=10_000, rows="fresh")
    assert found.action == study.best_params == {"x": 0.5}
    assert found.infeasible == 11  # ten are not allowed, of one it is not known
    assert found.t == 21
    assert "11 of 21 trials are not known to be feasible" in found.details()
    low, high = found.interval
    assert low <= 0.45 <= high
    # What no configuration can beat covers the feasible ones.
    assert found.best_possible >= 0.7 if direction == "maximize" else found.best_possible <= 0.2
    assert found.gap == pytest.approx(found.optimum_upper - found.lower)
    free = mb.certify(constrained(direction, "none"), reward_range=(0.0, 1.0), samples=10_000, rows="fresh")
    assert free.infeasible is None
    assert "feasible" not in free.details()


def test_constraints_in_a_table_count_as_well(tmp_path):
    columns = ("value", "params", "system_attrs", "state")
    for system in ("new", "old"):
        frame = constrained(system=system).trials_dataframe(attrs=columns)
        frame.to_csv(tmp_path / "runs.csv")
        for history in (frame, tmp_path / "runs.csv"):
            found = mb.certify(history, reward_range=(0.0, 1.0), samples=10_000, rows="fresh")
            assert found.action == {"x": 0.5}
            assert found.infeasible == 11
    frame = frame.assign(system_attrs_constraints="soon")
    with pytest.raises(mb.InvalidInput, match="must hold constraints"):
        mb.certify(frame, **STATED)


def test_without_a_feasible_trial_there_is_nothing_to_recommend():
    study = optuna.create_study(direction="maximize")
    space = {"x": optuna.distributions.FloatDistribution(0.0, 1.0)}
    stop = StopOnGap(0.9, every=1, **STATED)
    for x in (0.1, 0.6):
        attributes = {"constraints": [1.0]}
        study.add_trial(
            optuna.trial.create_trial(params={"x": x}, distributions=space, value=x, system_attrs=attributes)
        )
        stop(study, study.trials[-1])  # which waits
    with pytest.raises(mb.InvalidInput, match="none of the 2 completed trials"):
        mb.certify(study, **STATED)
    study.add_trial(
        optuna.trial.create_trial(params={"x": 0.5}, distributions=space, value=0.5, system_attrs={"constraints": [0]})
    )
    with pytest.raises(RuntimeError, match="inside"):  # study.stop() outside of optimize
        stop(study, study.trials[-1])
    assert stop.certificate.action == {"x": 0.5}


def test_assumptions_without_a_direction_take_the_studys():
    study = optuna.create_study(direction="minimize", sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(lambda trial: 0.2 + 0.5 * trial.suggest_float("x", 0.0, 1.0), n_trials=30)
    by_object = mb.certify(study, mb.Assumptions(reward_range=(0.0, 1.0), samples=1000, rows="fresh"))
    by_words = mb.certify(study, reward_range=(0.0, 1.0), samples=1000, rows="fresh")
    assert by_object.direction == by_words.direction == "minimize"
    assert by_object.interval == by_words.interval
    assert by_object.action["x"] < 0.2
    upwards = mb.certify(
        study, mb.Assumptions(reward_range=(0.0, 1.0), samples=1000, rows="fresh", direction="maximize")
    )
    assert upwards.action["x"] > 0.8


ONE_HIT = [({"x": 1}, 0.0), ({"x": 2}, 1.0), ({"x": 3}, 0.0)]
NOTHING_RULES_OUT = "Nothing rules out a better configuration: expected values may reach"


@pytest.mark.parametrize("space", [None, mb.Space({"x": mb.Int(1, 3)}), mb.Space({"x": mb.Float(0.0, 4.0)})])
def test_what_follows_from_the_range_alone_rules_nothing_out(space):
    """However configurations were searched: each of the three was looked at, too."""
    stated = {"reward_range": (0.0, 1.0), "samples": 1, "rows": "fresh", "space": space}
    found = mb.certify(ONE_HIT, **stated)
    assert found.proof == "range"
    assert found.to_dict()["proof"] == "range"
    assert str(found).splitlines()[-1] == f"{NOTHING_RULES_OUT} 1, the end of the stated range."
    misses = [(parameters, 1.0 - value) for parameters, value in ONE_HIT]
    down = mb.certify(misses, direction="minimize", **stated)
    assert str(down).splitlines()[-1] == f"{NOTHING_RULES_OUT} 0, the end of the stated range."


def test_what_own_trials_rule_out_is_ruled_out():
    history = [({"x": x}, value) for x, value in enumerate([0.9, 0.3, 0.3] * 20)]
    history = [({"x": p["x"] % 3}, value) for p, value in history]
    found = mb.certify(history, reward_range=(0.0, 1.0), samples=100, rows="fresh")
    assert found.proof == "enumerated"
    assert "No other configuration in the space beats it." in str(found)


def test_an_inferred_space_is_named_as_a_condition_of_the_model_only():
    """As it grows, the model is another one; what own trials say stays the same, and so does their part of delta."""
    history = [({"x": x}, value) for x, value in zip((0.4, 0.6, 0.5, 0.4, 0.4, 0.9, 0.1), (0.7, 0.6) * 4, strict=False)]
    known = {"reward_range": (0.0, 1.0), "samples": 100, "rows": "fresh"}
    looks = [mb.certify(history[:n], **known) for n in (5, 6, 7)]
    for found in looks:
        assert "holds if this space was fixed before them" in found.details()
        assert "each space spends the model's part of delta again: pass `space`" in found.details()
        own = found.judgement.own
        rows = _three(found)
        assert [own.interval(row) for row in rows] == [looks[0].judgement.own.interval(row) for row in _three(looks[0])]
        assert [own.share_by_order(row) for row in rows] == pytest.approx([0.005, 0.05 / 30, 0.05 / 60], rel=1e-12)
    assert "inferred" not in mb.certify(history, space=mb.Space({"x": mb.Float(0.0, 1.0)}), **known).details()
    by_model = dataclasses.replace(looks[0], evidence="model")
    assert "(based on a model of all trials over a space inferred from them, on new rows as stated; " in str(by_model)


def _three(found):
    return [found.judgement.space.encode({"x": x}) for x in (0.4, 0.6, 0.5)]
