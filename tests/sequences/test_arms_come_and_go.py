"""Arms that are added, removed and brought back: shares of δ, copies, files, and merging."""

import copy
import math
import pickle

import numpy as np
import pytest

import mixbandit as mb
from tests.helpers.arms import (
    ARMS,
    DELTA,
    DIM,
    EACH,
    KNOWN,
    PROBES,
    SHARES,
    STATED,
    alone,
    blocks,
    bounds,
    full,
    known,
    log,
    rows,
    teach,
)

ONE = EACH["standard"]


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
