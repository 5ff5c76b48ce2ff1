"""Trials that overlap: shares follow their numbers, and values count in the order in which trials were completed."""

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState

import mixbandit as mb
from mixbandit.integrations.optuna.confirming import marked
from mixbandit.tuning.runs import read_run

optuna.logging.set_verbosity(optuna.logging.ERROR)
STATED = {"reward_range": (0.0, 1.0), "samples": 100, "rows": "fresh"}
SPACE = mb.Space({"c": mb.Int(0, 9)})


def ask(study, c, nomination=None):
    attributes = {} if nomination is None else {"mixbandit_nomination": nomination}
    study.enqueue_trial({"c": c}, user_attrs=attributes)
    trial = study.ask()
    trial.suggest_int("c", 0, 9)
    return trial


def shares(run):
    own = mb.certify(run, space=SPACE, **STATED).judgement.own
    return {c: own.share_by_order(SPACE.encode({"c": c})) for c in range(10)}


def forms(study, tmp_path):
    frame = study.trials_dataframe()
    frame.to_csv(tmp_path / "study.csv", index=False)
    return study, frame, frame[frame["state"] == "COMPLETE"], tmp_path / "study.csv"


def test_trials_that_end_in_reverse_order(tmp_path):
    study = optuna.create_study(direction="maximize")
    running = [ask(study, c) for c in range(6)]
    known = {}
    for trial in reversed(running):
        study.tell(trial, 0.5 + 0.01 * trial.number)
        c = trial.number
        for run in forms(study, tmp_path):
            assert shares(run)[c] == pytest.approx(0.2 * 0.05 / ((c + 1) * (c + 2)))
            read = read_run(run, space=SPACE)
            assert read.numbers.tolist() == list(range(5, c - 1, -1))
            assert read.values.tolist() == pytest.approx([0.5 + 0.01 * i for i in range(5, c - 1, -1)])
        found = mb.certify(study, space=SPACE, **STATED)
        assert "how long one takes must not have depended on its value" in found.details()
        # What was said before is still said: each look goes on along one path.
        rows = found.judgement.own.trials
        assert all(value == rows.values[i] for i, value in known.items())
        known = dict(enumerate(rows.values.tolist()))
    in_order = optuna.create_study(direction="maximize")
    for c in range(6):
        in_order.tell(ask(in_order, c), 0.5 + 0.01 * c)
    assert "how long" not in mb.certify(in_order, space=SPACE, **STATED).details()


def test_two_workers_that_nominate_at_once_do_not_spend_one_share_twice(tmp_path):
    study = optuna.create_study(direction="maximize")
    for c in range(4):
        study.tell(ask(study, c), 0.5)
    first, second = ask(study, 1, nomination=1), ask(study, 2, nomination=1)
    study.tell(second, 0.55)
    for run in forms(study, tmp_path)[:2]:
        own = mb.certify(run, space=SPACE, **STATED).judgement.own
        assert not own.trials.nominations.any()  # number 1 belongs to the trial that is still running
    assert [each.row.tolist() for each in marked(study.trials, SPACE)] == [SPACE.encode({"c": 1}).tolist()]
    study.tell(first, 0.6)
    study.tell(ask(study, 1, nomination=1), 0.6)
    for run in forms(study, tmp_path):
        trials = mb.certify(run, space=SPACE, **STATED).judgement.own.trials
        assert trials.nominations.tolist() == [0, 0, 0, 0, 0, 1, 1]
        assert trials.configurations[5]["c"] == 1
    assert {trial.state for trial in study.trials} == {TrialState.COMPLETE}


def test_numbers_that_are_no_numbers_of_trials_tell_no_order():
    import pandas

    table = pandas.DataFrame({"number": [-1, 0, 1], "params_c": [1, 2, 3], "value": [0.5, 0.7, 0.6]})
    assert not read_run(table).ordered
    assert not read_run(table.assign(number=[0.5, 1, 2])).ordered
    assert read_run(table.assign(number=[5, 3, 9])).numbers.tolist() == [3, 5, 9]
    assert np.array_equal(read_run(table.assign(number=[5, 3, 9])).values, [0.7, 0.5, 0.6])
