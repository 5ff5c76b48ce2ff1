"""One frozen state: undo, copies and interrupts need nothing else; bounds are those of their moment."""

import copy
import dataclasses
import pickle
import random

import numpy as np
import pytest

import mixbandit as mb
from mixbandit.bandits import persistent
from tests.helpers.interrupts import finishes
from tests.helpers.worlds import ARMS, BOX, PHI, SETTINGS, everything, make, play, reward


def test_a_persistent_map_is_a_dict_that_keeps_its_past():
    rng = random.Random(0)
    now, expected, past = persistent.EMPTY, {}, []
    for key in range(3000):
        now, expected = persistent.put(now, key, str(key)), {**expected, key: str(key)}
        for gone in rng.sample(sorted(expected), k=min(len(expected), rng.choice([0, 0, 1, 2]))):
            now = persistent.drop(now, gone)
            expected = {k: v for k, v in expected.items() if k != gone}
        if key % 100 == 0:
            past.append((now, expected))
    for tree, items in [*past, (now, expected)]:
        assert dict(persistent.items(tree)) == items
        assert list(persistent.values(tree)) == list(items.values())  # in the order of the keys
        for key in (-1, 0, 31, 32, 1023, 1024, 2999, 40_000):
            assert persistent.get(tree, key) == items.get(key)
    assert persistent.drop(now, 99_999) is now


def test_the_bounds_of_a_choice_are_those_of_its_moment_however_late_they_are_read():
    policy, twin = make("CMMUCB"), make("CMMUCB")
    play(policy, 3)
    play(twin, 3)
    late, early = policy.ask(), twin.ask()
    known = early.lower, early.upper
    play(policy, 20, start=3)
    policy.learn(ARMS.actions, PHI(ARMS.actions) @ np.ones(8) * 0.1)
    assert (late.lower, late.upper) == known


def test_what_a_policy_learns_its_sequence_knows_and_the_other_way_round():
    cs = mb.MartingaleMixture(PHI, **SETTINGS)
    policy = mb.UCB(cs, ARMS, rng=0)
    assert policy.sequence is cs
    play(policy, 5)
    assert cs.t == 5
    cs.update(ARMS.actions[:2], [0.1, 0.2])
    assert policy.moment.t == 7
    # A second policy on the same sequence goes on by itself.
    other = mb.UCB(cs, ARMS, rng=0)
    play(other, 3)
    assert (cs.t, policy.moment.t, other.moment.t) == (7, 7, 10)


def test_a_state_that_was_kept_can_be_gone_back_to():
    for region in ("arms", "box"):
        policy = make("CMMUCB", region, keep_history=True)
        play(policy, 4)
        before, remembered = policy.state, everything(policy)
        copy = policy.at(policy.state)
        policy.ask(n=3)
        play(policy, 5, start=4)
        policy.certificate()
        policy.state = before
        assert everything(policy) == remembered == everything(copy)
        np.testing.assert_array_equal(play(policy, 3, start=4), play(copy, 3, start=4))


def test_pending_choices_are_anticipated_one_by_one_as_they_are_all_at_once():
    """What a batch anticipates step by step, a policy that was saved in between anticipates from the beginning."""
    policy = make("AMMUCB")
    play(policy, 4)
    choices = [policy.ask() for _ in range(4)]
    again = mb.AMMUCB.from_state_dict(policy.state_dict())
    assert again.ask().index == policy.ask().index
    policy.tell(choices[1], reward(choices[1], 9))
    again.tell(choices[1].id, reward(choices[1], 9))
    assert again.ask().index == policy.ask().index


class Counting:
    """A feature function that counts the rows it sees."""

    def __init__(self):
        self.rows = 0

    def __call__(self, actions):
        self.rows += len(actions)
        return np.column_stack((np.ones(len(actions)), actions))


@pytest.mark.parametrize("kind", [mb.CMMUCB, mb.AMMUCB, mb.FreqTS])
def test_features_of_fixed_arms_are_evaluated_once(kind):
    counting = Counting()
    features = mb.FromCallable(counting, dim_in=2, dim=3)
    arms = mb.Arms(np.random.default_rng(0).uniform(size=(200, 2)))
    policy = kind(features, actions=arms, sigma=0.1, norm_bound=2.0, rng=0)
    policy.tell(policy.ask(), 0.3)
    seen = counting.rows
    for _ in range(10):
        policy.tell(policy.ask(), 0.3)
    assert counting.rows - seen <= 10 * 5  # of the chosen arm alone, to learn from it and to report its bounds


def test_a_seed_and_a_round_make_the_randomness():
    """What was drawn before does not matter: only the seed, the round and what is known."""
    one, other = make("FreqTS", "box"), make("FreqTS", "box")
    play(one, 5)
    for t in range(5):
        other.certificate()  # looking draws from elsewhere
        choice = other.ask()
        other.tell(choice, reward(choice, t))
    np.testing.assert_array_equal(one.ask().action, other.ask().action)
    assert make("Uniform", "box", rng=1).ask().action.tolist() != make("Uniform", "box", rng=2).ask().action.tolist()
    assert (BOX.low <= one.ask().action).all()


def test_choices_that_were_told_hold_no_moment():
    """They are kept in records and lists for long, and a moment holds matrices."""
    policy = make("CMMUCB")
    choices = []
    for t in range(3):
        choices.append(policy.ask())
        policy.tell(choices[-1], reward(choices[-1], t))
    assert all(choice.moment is None for choice in choices)
    again = dataclasses.replace(choices[0], label="other")
    assert (again.lower, again.upper) == (choices[0].lower, choices[0].upper)
    with pytest.raises(mb.InvalidInput, match="neither bounds nor a moment"):
        _ = mb.Choice(0, np.zeros(2)).lower


@pytest.mark.parametrize("strict", [False, True])
def test_an_interrupt_at_any_line_leaves_the_state_before_or_the_state_after(strict):
    policy = make("AMMUCB", strict=strict, keep_history=True)
    play(policy, 3)
    first, second, _ = policy.ask(n=3)
    kept, before = policy.state, everything(policy)
    for work in (
        lambda: policy.tell(first, reward(first, 3)),
        lambda: policy.ask(n=2),
        lambda: policy.cancel(second, played=True),
        lambda: policy.adopt(ARMS.actions[4]),
    ):
        policy.state = kept
        work()
        after, lines, done = everything(policy), 0, False
        while not done:
            lines, policy.state = lines + 1, kept
            done = finishes(work, lines)
            assert everything(policy) in (before, after)
        assert lines > 20
        assert everything(policy) == after


def test_pending_and_cancelled_choices_hold_no_moment_that_has_passed():
    policy = make("AMMUCB")
    early = [policy.ask() for _ in range(3)]
    late = policy.ask()
    policy.tell(late, reward(late, 0))
    assert all(choice.moment is None for choice in early)
    now = policy.ask()
    assert now.moment is policy.moment
    policy.cancel(now)
    assert now.moment is None
    policy.learn(ARMS.actions[:1], [0.1])
    assert all(choice.moment is None for choice in policy.pending)


def test_a_copied_policy_goes_on_by_itself():
    policy = make("CMMUCB")
    play(policy, 3)
    twin = copy.copy(policy)
    play(twin, 2, start=3)
    assert (policy.moment.t, policy.sequence.t, twin.moment.t, twin.sequence.t) == (3, 3, 5, 5)


@pytest.mark.parametrize("name", ["CMMUCB", "AMMUCB", "OFUL", "UCB over Bayes"])
def test_policies_and_choices_travel_between_processes(name):
    policy = make(name)
    play(policy, 4)
    choice = policy.ask()
    for travelled in (pickle.loads(pickle.dumps((policy, choice))), copy.deepcopy((policy, choice))):
        again, same = travelled
        assert (same.lower, same.upper, same.trusted) == (choice.lower, choice.upper, choice.trusted)
        assert everything(again) == everything(policy)
        again.tell(same, reward(same, 4))
        assert (again.sequence.t, policy.sequence.t) == (5, 4)


@pytest.mark.parametrize("name", ["CMMUCB", "AMMUCB", "OFUL", "IDS", "FreqTS"])
@pytest.mark.parametrize("region", ["arms", "box"])
def test_a_loaded_policy_with_several_pending_choices_goes_on_bit_for_bit(name, region, tmp_path):
    policy = make(name, region)
    play(policy, 5)
    policy.ask(n=3)
    policy.ask()
    policy.save(tmp_path / "policy")
    again = mb.load(tmp_path / "policy")
    for _ in range(2):
        np.testing.assert_array_equal(policy.ask().action, again.ask().action)
