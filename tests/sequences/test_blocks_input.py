"""Arms with a parameter each: what users and files may get wrong."""

import math

import numpy as np
import pandas as pd
import pytest

import mixbandit as mb
from tests.helpers.arms import DELTA, DIM, EACH, PROBES, SHARES, STATED, blocks, full, known, log, rows

ONE = EACH["standard"]


def test_data_frames_and_lists_are_accepted():
    contexts, arms, values = log()
    frame = pd.DataFrame(contexts, columns=list("xyz")).assign(arm=arms)
    expected = known(blocks().update(rows(contexts, arms), values))
    assert known(blocks().update(frame, pd.Series(values))) == expected
    found = blocks().update(rows(contexts, arms).tolist(), values.tolist())
    assert known(found) == expected
    seen = found.interval(PROBES[0].tolist(), arms=np.array([1, 2]))
    np.testing.assert_array_equal(seen.upper, found.interval(pd.Series(PROBES[0]), arms=(1, 2)).upper)


def test_an_empty_batch_is_no_data():
    found = blocks().update(np.empty((0, DIM + 1)), [])
    assert known(found) == known(blocks())
    assert found.upper(np.empty((0, DIM + 1))).shape == (0,)
    assert found.interval(PROBES[0], arms=[]).lower.shape == (0,)
    assert found.advantage(PROBES[0], 1, over=[]).shape == (0,)
    nobody = mb.Blocks(ONE(DELTA))
    assert nobody.interval(PROBES[0]).upper.shape == (0,)
    assert known(mb.Blocks.from_state_dict(nobody.state_dict())) == known(nobody)


def test_reading_changes_nothing():
    contexts, arms, values = log()
    read, unread = blocks(), blocks()
    for row, value in zip(rows(contexts, arms), values, strict=True):
        read.update(row, value)
        unread.update(row, value)
        read.interval(row[:-1])
        read.advantage(row[:-1], 0)
        assert read.is_trusted
        repr(read)
    assert known(read) == known(unread)


def test_all_labels_are_those_of_the_arms_there():
    found = mb.Blocks(ONE(DELTA), ["a", 7, 0.5])
    found.add("b")
    found.remove(7)
    assert (found.labels, found.arms, found.t) == (["a", 0.5, "b"], 3, 0)
    assert "3 arms" in repr(found)
    assert len(found.interval(PROBES[0]).upper) == len(found.advantage(PROBES[0], 7)) == 3
    assert found.of(np.str_("a")).delta == found.of(np.int64(7)).delta == DELTA / 6


BAD_CALLS = {
    "an arm that is not there": (lambda b: b.update([0.0, 0.0, 0.0, 7], 0.0), r"0 … 6"),
    "half an arm": (lambda b: b.update([0.0, 0.0, 0.0, 0.5], 0.0), "number of an arm"),
    "a negative arm": (lambda b: b.upper([0.0, 0.0, 0.0, -1]), "number of an arm"),
    "an arm beyond all integers": (lambda b: b.lower([0.0, 0.0, 0.0, 1e100]), "number of an arm"),
    "a NaN arm": (lambda b: b.upper([0.0, 0.0, 0.0, np.nan]), r"actions\[0, 3\]"),
    "a NaN context": (lambda b: b.update([0.0, np.nan, 0.0, 1], 0.0), r"actions\[0, 1\]"),
    "a context without an arm": (lambda b: b.upper([0.0, 0.0, 0.0]), r"\(n, 4\)"),
    "contexts too large to learn": (lambda b: b.update([0.0, 0.0, 1e100, 1], 0.0), r"1e\+50"),
    "a NaN reward": (lambda b: b.update(rows(np.eye(DIM), 1), [0.0, np.nan, 0.0]), r"rewards\[1\]"),
    "a reward too large": (lambda b: b.update([0.0, 0.0, 1.0, 1], 1e60), r"1e\+50"),
    "too few rewards": (lambda b: b.update(rows(np.eye(DIM), 1), [0.0]), r"shape \(3,\)"),
    "a negative noise level": (lambda b: b.update([0.0, 0.0, 1.0, 1], 0.1, sigma=-1.0), "sigma"),
    "a short context": (lambda b: b.interval([1.0]), r"\(3,\)"),
    "text for a context": (lambda b: b.interval("abc"), "context must be numbers"),
    "an unknown label": (lambda b: b.interval(np.ones(DIM), arms=["x"]), "arm 'x' is unknown; there are 0, 1, 2"),
    "one label for many": (lambda b: b.interval(np.ones(DIM), arms="ab"), "list of labels"),
    "a label that is a list": (lambda b: b.of([1]), "arm|label"),
    "a label that is an array": (lambda b: b.of(np.arange(3)), "arm|label"),
    "an advantage of nobody": (lambda b: b.advantage(np.ones(DIM), "x"), "unknown"),
    "removing nobody": (lambda b: b.remove(None), "arm|label"),
    "a label twice": (lambda b: b.add(3), "there already"),
    "True for a label": (lambda b: b.add(True), "text or numbers"),
    "NaN for a label": (lambda b: b.add(math.nan), "text or numbers"),
    "taught by a word": (lambda b: b.add("new", taught="yes"), "taught"),
    "a multiplier of 0": (lambda b: b.upper([0.0, 0.0, 1.0, 1], alpha=0.0), "alpha"),
    "gradients": (lambda b: b.support([0.0, 0.0, 1.0, 1]), "arms only"),
    "an audit of all arms": (lambda b: b.audit(), "no audit"),
    "parameters of the wrong shape": (lambda b: b.contains(np.zeros((7, 2))), r"\(n, 3\)"),
    "parameters of too few arms": (lambda b: b.contains(np.zeros((2, DIM))), "row for each of 7 arms"),
    "a number for parameters": (lambda b: b.contains(5.0), "theta"),
}


@pytest.mark.parametrize("what", BAD_CALLS)
def test_bad_input_is_named_and_changes_nothing(what):
    call, says = BAD_CALLS[what]
    found = full()
    before = known(found)
    with pytest.raises(mb.InvalidInput, match=says):
        call(found)
    assert known(found) == before


BAD_SETTINGS = {
    "no sequence": (lambda: mb.Blocks(3), "confidence sequence"),
    "one with rewards": (lambda: mb.Blocks(ONE(DELTA).update(np.ones(DIM), 0.1), 2), "must be new"),
    "one that holds on average only": (lambda: mb.Blocks(mb.BayesCredible(DIM, sigma=1.0), 2), "δ cannot be shared"),
    "a kernel without a length": (lambda: mb.Blocks(mb.KernelMixture(mb.RBF(), **STATED), 2), "dim_in"),
    "blocks of blocks": (lambda: mb.Blocks(blocks(), 2), "delta"),
    "a negative number of arms": (lambda: mb.Blocks(ONE(DELTA), -1), "got -1"),
    "True arms": (lambda: mb.Blocks(ONE(DELTA), True), "got True"),
    "too many arms": (lambda: mb.Blocks(ONE(DELTA), 10**9), "up to 10,000,000"),
    "text for arms": (lambda: mb.Blocks(ONE(DELTA), "abc"), "got 'abc'"),
    "an arm twice": (lambda: mb.Blocks(ONE(DELTA), ["a", "b", "a"]), "'a' occurs more than once"),
    "an arm twice, as two numbers": (lambda: mb.Blocks(ONE(DELTA), [1, 1.0]), "more than once"),
    "nobody for ever": (lambda: mb.Blocks(ONE(DELTA), growing=False), "at least one arm"),
    "a part too small for a delta": (lambda: mb.Blocks(ONE(1e-200), 9), "at least 1e-200"),
}


@pytest.mark.parametrize("what", BAD_SETTINGS)
def test_bad_settings_are_named(what):
    make, says = BAD_SETTINGS[what]
    with pytest.raises(mb.InvalidInput, match=says):
        make()


def test_a_part_too_small_for_a_delta_adds_no_arm():
    found = mb.Blocks(ONE(3e-200))
    with pytest.raises(mb.InvalidInput, match="at least 1e-200"):
        found.add()
    assert (found.labels, len(found.moment.members)) == ([], 0)


DAMAGES = {
    "a label too many": lambda state: {"labels": [*state["labels"], "x"]},
    "labels that are the same": lambda state: {"labels": [0, *state["labels"][:-1]]},
    "a label that is None": lambda state: {"labels": [None, *state["labels"][1:]]},
    "fewer arms than known": lambda state: {"arms": 30},
    "arms gone that never were": lambda state: {"gone": [99]},
    "data for nobody": lambda state: {"own": [3, 99]},
    "data for one arm twice": lambda state: {"own": [3, 3]},
    "data without an arm": lambda state: {"own": []},
    "an arm at another part of delta": lambda state: {"beliefs": [ONE(DELTA).state_dict(), state["beliefs"][1]]},
    "an arm of another kind": lambda state: {"beliefs": [EACH["OFUL"](SHARES[3]).state_dict(), state["beliefs"][1]]},
    "no ridges": lambda state: {"ridges": None},
    "ridges of fewer arms": lambda state: {
        "ridges": state["ridges"] | {name: state["ridges"][name][:-1] for name in ("stack", "numbers")}
    },
    "ridges at another multiplier": lambda state: {"ridges": state["ridges"] | {"alpha": 7.0}},
    "a number for words": lambda state: {"refuted": 5},
    "nothing for arms": lambda state: {"undecided": None},
    "another version": lambda state: {"version": 99},
}


@pytest.mark.parametrize("what", DAMAGES)
def test_damage_is_found_when_a_state_is_read(what):
    state = full().state_dict()
    assert state["own"] == [3, 6]
    with pytest.raises(mb.DamagedState):
        mb.Blocks.from_state_dict(state | DAMAGES[what](state))
