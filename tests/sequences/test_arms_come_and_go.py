"""Arms that are added, removed and brought back: shares of δ, copies, files, merging, and bad input."""

import copy
import math
import pickle

import numpy as np
import pytest

import mixbandit as mb
from mixbandit._files import digest
from tests.helpers.arms import ARMS, DELTA, DIM, EACH, KNOWN, SHARES, STATED, alone, blocks, log, rows, teach

PROBES = np.random.default_rng(5).normal(size=(3, DIM))
ONE = EACH["standard"]


def bounds(found):
    """Of all arms that ever were, at some contexts."""
    every = [rows(PROBES, arm) for arm in range(len(found.moment.members))]
    return np.array([
        (found.lower(each), found.upper(each), found.lower(each, found.alpha0), found.upper(each, found.alpha0))
        for each in every
    ])  # fmt: skip


def known(found):
    """What a failed call must not change."""
    return digest(found.state_dict()), found.t, found.labels, bounds(found).tolist()


# Shares of δ


@pytest.mark.parametrize("known_arms", [0, 1, 4])
def test_parts_of_delta_add_up_to_at_most_delta(known_arms):
    found = mb.Blocks(ONE(DELTA), known_arms)
    for later in range(200):
        assert found.ledger.total <= DELTA * (1 + 1e-12)
        assert f"so far {later}" in str(found.ledger)
        found.add()
    spent = [found.of(label).delta for label in found.labels]
    assert spent == pytest.approx(
        [DELTA / (2 * max(known_arms, 1))] * known_arms + [DELTA / (2 * j * (j + 1)) for j in range(1, 201)], rel=1e-12
    )
    assert math.fsum(spent) <= DELTA
    assert math.fsum(spent[known_arms:]) == pytest.approx(DELTA / 2 * 200 / 201)
    assert found.delta == DELTA


def test_all_of_delta_is_for_the_first_arms_if_there_are_no_others():
    found = mb.Blocks(ONE(DELTA), 5, growing=False)
    assert [found.of(arm).delta for arm in range(5)] == pytest.approx([DELTA / 5] * 5)
    assert found.ledger.total == pytest.approx(DELTA)
    before = known(found)
    with pytest.raises(mb.InvalidInput, match="none can be added"):
        found.add()
    found.remove(3)
    assert found.add(3) == 3  # which is not a new arm
    assert known(found) == before


def test_parts_are_fixed_when_an_arm_arrives_and_never_used_again():
    found = blocks(added=0)
    found.update(rows(np.eye(DIM), [0, 1, 1]), [0.1, 0.2, 0.3])
    seen = {}
    for step in range(6):
        arm = found.add(f"arm {step}")
        seen[arm] = found.of(f"arm {step}").delta
        if step % 2:
            found.remove(f"arm {step}")
        found.remove(0) if step == 3 else None
    assert list(seen) == [KNOWN + step for step in range(6)]
    assert list(seen.values()) == pytest.approx([DELTA / (2 * j * (j + 1)) for j in range(1, 7)])
    assert {arm: found.of(f"arm {arm - KNOWN}").delta for arm in seen} == seen
    assert [found.of(arm).delta for arm in range(KNOWN)] == SHARES[:KNOWN]
    assert found.labels == [1, 2, 3, "arm 0", "arm 2", "arm 4"]
    # A label that comes back is the same arm at the same part.
    assert found.add("arm 3") == KNOWN + 3
    assert found.of("arm 3").delta == seen[KNOWN + 3]
    assert found.labels == [1, 2, 3, "arm 0", "arm 2", "arm 3", "arm 4"]


def test_adding_and_removing_changes_no_other_arm():
    found, own = blocks(), alone()
    teach(found, own, *log(), at_once=True)
    before = bounds(found)
    found.remove(1)
    found.add("new")
    found.remove("new")
    np.testing.assert_array_equal(bounds(found)[:ARMS], before)
    assert 1 not in found.labels
    assert len(found.interval(PROBES[0]).lower) == ARMS - 1
    np.testing.assert_array_equal(found.interval(PROBES[0], arms=[1]).upper, before[1, 1, 0])


def test_a_removed_arm_learns_late_rewards_and_comes_back_with_all_it_knows():
    found, own = blocks(), alone()
    contexts, arms, values = log()
    teach(found, own, contexts[:30], arms[:30], values[:30], at_once=True)
    found.remove(4)
    teach(found, own, contexts[30:], arms[30:], values[30:], at_once=True)
    assert found.add(4) == 4
    np.testing.assert_allclose(bounds(found)[4, :2], [own[4].lower(PROBES), own[4].upper(PROBES)], rtol=1e-9)
    assert found.t == 60


def test_an_arm_is_brought_back_by_its_label_only():
    """A number that happens to be the label of another arm must not make a new arm an old one."""
    found = mb.Blocks(ONE(DELTA), [1, 2]).remove(2)
    before = known(found)
    with pytest.raises(mb.InvalidInput, match="another arm has the label 2"):
        found.add()
    assert known(found) == before
    assert found.add("third") == 2
    assert found.add() == 3
    assert found.labels == [1, "third", 3]


# What others taught


def taught_blocks(seed=0):
    """Eight arms with parameters that are much alike and rewards, one without rewards, and one that they taught."""
    rng = np.random.default_rng(seed)
    centre = np.array([0.7, -0.5, 0.4])
    found = mb.Blocks(ONE(DELTA), 9)
    contexts, arms = rng.normal(size=(400, DIM)), rng.integers(8, size=400)
    parameters = centre + 0.05 * rng.normal(size=(8, DIM))
    found.update(rows(contexts, arms), (contexts * parameters[arms]).sum(axis=1) + 0.3 * rng.normal(size=400))
    found.add("taught", taught=True)
    found.add("alone")
    return found, centre, rng


def test_what_others_taught_is_a_mixture_that_is_fixed_at_arrival():
    found, centre, rng = taught_blocks()
    mixture = found.of("taught").mixture
    estimates = np.array([found.of(arm).moment.closed_form.centre for arm in range(8)])
    expected = mb.Grid([
        mb.Linear(estimates.mean(axis=0), np.diag(np.maximum(estimates.var(axis=0, ddof=1), 1e-4 * 1.5**2 / DIM))),
        mb.Linear(estimates.mean(axis=0), 0.1 * np.diag(estimates.var(axis=0, ddof=1))),
        mb.Scaled(1.5**2 / DIM),
    ])  # fmt: skip
    own = mb.MartingaleMixture(DIM, **STATED, delta=DELTA / 4, mixture=expected)
    contexts = rng.normal(size=(40, DIM))
    values = contexts @ centre + 0.3 * rng.normal(size=40)
    # Later rewards of those that taught change nothing.
    found.update(rows(contexts, 3), -values)
    found.update(rows(contexts, 9), values)
    own.update(contexts, values)
    assert found.of("taught").mixture is mixture
    np.testing.assert_allclose(bounds(found)[9, :2], [own.lower(PROBES), own.upper(PROBES)], rtol=1e-9)
    plain = mb.MartingaleMixture(DIM, **STATED, delta=DELTA / 4).update(contexts, values)
    assert (own.upper(PROBES) - own.lower(PROBES) < 0.9 * (plain.upper(PROBES) - plain.lower(PROBES))).all()


def test_without_others_nothing_is_taught():
    found = mb.Blocks(ONE(DELTA))
    found.add("first", taught=True)
    own = mb.MartingaleMixture(DIM, **STATED, delta=DELTA / 4, mixture=mb.Grid([1.5**2 / DIM]))
    contexts, _, values = log(20)
    np.testing.assert_allclose(
        found.update(rows(contexts, 0), values).upper(rows(PROBES, 0)),
        own.update(contexts, values).upper(PROBES),
        rtol=1e-9,
    )


@pytest.mark.parametrize("name", ["kernel", "OFUL", "unknown noise"])
def test_what_has_no_mixture_cannot_be_taught(name):
    found = blocks(EACH[name])
    before = found.labels
    with pytest.raises(mb.InvalidInput, match="no mixture in features"):
        found.add(taught=True)
    assert found.labels == before


# Copies, files and merging


def full(name="standard"):
    """Arms with rewards, of which one has gone, one has data of its own, and one was taught where that can be."""
    found = blocks(EACH[name])
    contexts, arms, values = log()
    found.update(rows(contexts, arms), values)
    if name != "bounded":
        found.update(rows(1e8 * np.eye(DIM), 3), np.zeros(DIM))
    found.remove(1)
    if name in ("standard", "grid"):
        found.add("taught", taught=True)
    return found.update([0.3, 0.2, 0.1, 4], 0.2)


COPIES = {
    "copy": lambda found: found.copy(),
    "deepcopy": copy.deepcopy,
    "pickle": lambda found: pickle.loads(pickle.dumps(found)),
    "state_dict": lambda found: mb.Blocks.from_state_dict(found.state_dict()),
}


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("name", ["standard", "features", "grid", "adaptive", "bounded", "kernel"])
def test_a_copy_goes_on_to_the_bit_and_by_itself(name, how):
    contexts, arms, values = log(20, seed=1)
    for found in (full(name), blocks(EACH[name])):
        _check_copy(found, COPIES[how](found), contexts, arms, values)


def _check_copy(found, again, contexts, arms, values):
    before = known(found)
    assert known(again) == before
    again.update(rows(contexts, arms), values)
    again.remove(2)
    again.add("another")
    assert known(found) == before
    found.update(rows(contexts, arms), values)
    found.remove(2)
    found.add("another")
    assert known(again) == known(found)


def test_files_say_what_was_merged(tmp_path):
    found = full("features").merge(blocks(EACH["features"]).update([1.0, 0.0, 0.0, 2], 0.1))
    assert found.merged
    mb.save(found, tmp_path / "file")
    assert mb.load(tmp_path / "file").merged


@pytest.mark.parametrize("name", ["standard", "features", "grid", "misspecified", "OFUL", "kernel"])
def test_merging_is_the_same_as_one_pass_over_all_rewards(name):
    contexts, arms, values = log(80)
    shards = [
        blocks(EACH[name]).update(rows(contexts[part], arms[part]), values[part])
        for part in np.array_split(np.arange(80), 3)
    ]
    one = blocks(EACH[name]).update(rows(contexts, arms), values)
    merged = shards[0].merge(shards[1]).merge(shards[2])
    assert merged.t == 80
    assert merged.merged
    np.testing.assert_allclose(bounds(merged), bounds(one), rtol=1e-8, atol=1e-9)
    for shard in shards:
        assert shard.t in (26, 27)
    # And it goes on.
    more = log(20, seed=3)
    for each in (merged, one):
        each.update(rows(*more[:2]), more[2])
    np.testing.assert_allclose(bounds(merged), bounds(one), rtol=1e-8, atol=1e-9)


def test_what_was_taught_stays_when_shards_are_merged():
    shards = [mb.Blocks(ONE(DELTA), 1) for _ in range(2)]
    for shard in shards:
        shard.add("taught", taught=True)
    mixture = shards[0].of("taught").mixture
    merged = shards[0].merge(shards[1].update([*np.ones(DIM), 0], 0.1))
    assert repr(merged.of("taught").mixture) == repr(mixture)
    assert repr(merged.of(0).mixture) != repr(mixture)


def test_merging_keeps_refutations_and_removals():
    noisy = blocks().update(rows(np.ones((200, DIM)), 1), 9.0 * np.random.default_rng(0).normal(size=200))
    assert noisy.is_refuted
    other = blocks().update(rows(np.eye(DIM), 2), [0.1, 0.2, 0.3])
    for merged in (noisy.merge(other), other.merge(noisy)):
        assert merged.moment.refutation == noisy.moment.refutation
        assert merged.is_refuted
    noisy.remove(3).remove(0)
    assert noisy.merge(other.remove(3)).labels == [0, 1, 2, 4, 5]


def test_shards_that_together_refute_are_refuted():
    rng = np.random.default_rng(0)
    contexts, half = rng.normal(size=(200, DIM)), np.arange(200) < 100
    values = np.where(half, 1.0, -1.0) * (contexts @ [0.8, 0.8, 0.8])
    shards = [blocks().update(rows(contexts[part], 1), values[part]) for part in (half, ~half)]
    assert not any(shard.is_refuted for shard in shards)
    merged = shards[0].merge(shards[1])
    own = EACH["standard"](SHARES[1]).update(contexts, values)
    assert own.is_refuted
    assert merged.is_refuted


DIFFERENT = {
    "another kind": (lambda: EACH["standard"](DELTA), "cannot be merged"),
    "other arms": (lambda: blocks(added=3), "arms of the sequences differ"),
    "other labels": (lambda: mb.Blocks(ONE(DELTA), list("abcdef")), "arms of the sequences differ"),
    "other settings": (lambda: blocks(EACH["scaled"]), "mixture"),
    "another delta": (lambda: blocks(lambda delta: ONE(2 * delta)), "delta"),
    "other shares": (lambda: mb.Blocks(ONE(DELTA), ARMS), "how they share δ"),
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_what_differs_cannot_be_merged(what):
    make, says = DIFFERENT[what]
    with pytest.raises(mb.NotMergeable, match=says):
        blocks().merge(make())


def test_what_a_user_does_with_a_part_changes_no_arm():
    found = full()
    before = known(found)
    found.sequence.update(np.eye(DIM), np.zeros(DIM))
    found.of(4).update(np.eye(DIM), np.zeros(DIM))
    one = ONE(DELTA)
    other = mb.Blocks(one, 2)
    one.update(np.eye(DIM), np.zeros(DIM))
    assert other.t == other.of(0).t == other.sequence.t == found.sequence.t == 0
    assert known(found) == before
    assert known(mb.Blocks.from_state_dict(found.state_dict())) == before


def test_restated_arms_keep_their_labels():
    found = mb.Blocks(ONE(DELTA), ["a", "b"]).update([*np.ones(DIM), 1], 0.1)
    found.add("c")
    again = found.restated(sequence=EACH["grid"](DELTA))
    assert (again.labels, again.t) == (["a", "b"], 0)
    assert found.restated(arms=3).labels == [0, 1, 2]


# Bad input


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
