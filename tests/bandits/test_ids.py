"""An id names one choice for good: nothing that is lost, copied or forked makes a bandit or a tuner issue it again."""

import copy
import os
import pickle

import numpy as np
import pytest

import mixbandit as mb
from tests.helpers.worlds import make, play, reward


def ids(policy, n):
    return [policy.ask().id for _ in range(n)]


@pytest.mark.parametrize("region", ["arms", "box"])
def test_choices_lost_after_the_last_save_are_refused_when_their_rewards_come(tmp_path, region):
    policy = make("CMMUCB", region)
    play(policy, 5)
    kept = policy.ask()
    policy.save(tmp_path / "bandit")
    lost = [policy.ask() for _ in range(4)]
    again = mb.load(tmp_path / "bandit")
    new = [again.ask() for _ in range(6)]
    assert not {choice.id for choice in lost} & {choice.id for choice in new}
    for late in (*lost, *(choice.id for choice in lost)):
        before = again.state
        with pytest.raises(mb.InvalidInput, match="made by another bandit, or lost"):
            again.tell(late, 0.3)
        with pytest.raises(mb.InvalidInput, match="made by another bandit, or lost"):
            again.cancel(late)
        assert again.state is before
    again.tell(kept.id, 0.2).tell([choice.id for choice in new], [0.1] * 6)
    assert again.sequence.t == 5 + 7


@pytest.mark.parametrize(
    "copied",
    [copy.copy, copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p)), lambda p: p.at(p.state),
     lambda p: type(p).from_state_dict(p.state_dict())],
    ids=["copy", "deepcopy", "pickle", "at", "state_dict"],
)  # fmt: skip
def test_copies_issue_ids_of_their_own_and_know_those_that_were_waiting(copied):
    policy = make("CMMUCB")
    play(policy, 3)
    waiting = policy.ask()
    other = copied(policy)
    both = ids(policy, 5) + ids(other, 5) + [c.id for c in policy.ask(n=2)] + [c.id for c in other.ask(n=2)]
    assert len(set(both)) == 14
    for each in (policy, other):
        each.tell(waiting.id, reward(waiting, 0))


def test_going_back_to_a_kept_state_issues_no_id_again():
    policy = make("AMMUCB")
    before = policy.state
    first = ids(policy, 3)
    policy.state = before
    assert not set(first) & set(ids(policy, 3))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_workers_issue_different_ids():
    policy = make("CMMUCB")
    own = [policy.ask().id]
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(write, str(policy.ask().id).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    theirs = os.read(read, 100).decode()
    own += ids(policy, 1)
    assert theirs not in own


def test_ids_do_not_change_what_is_chosen_and_are_text():
    one, two = make("FreqTS"), make("FreqTS")
    for t in range(20):
        a, b = one.ask(), two.ask()
        assert a.index == b.index
        assert a.number == b.number == t
        assert a.id != b.id
        assert isinstance(a.id, str)
        one.tell(a.id, reward(a, t))
        two.tell(np.array([b.id]), [reward(b, t)])


def tuned(**options):
    return mb.Tuner({"x": mb.Float(0.0, 1.0)}, sigma=0.1, norm_bound=2.0, rng=0, **options)


def test_trials_lost_after_the_last_save_are_refused_when_their_values_come(tmp_path):
    tuner = tuned()
    for _ in range(3):
        tuner.tell(tuner.ask(), 0.4)
    kept, note = tuner.ask(), tuner.adopt({"x": 0.25})
    tuner.save(tmp_path / "tuner")
    lost = [tuner.ask(), tuner.adopt({"x": 0.3})]
    again = mb.Tuner.load(tmp_path / "tuner")
    new = [again.ask(), again.adopt({"x": 0.7})]
    assert not {trial.id for trial in lost} & {trial.id for trial in new}
    for late in (*lost, *(trial.id for trial in lost)):
        with pytest.raises(mb.InvalidInput, match="asked for elsewhere, or lost"):
            again.tell(late, 0.3)
        with pytest.raises(mb.InvalidInput, match="asked for elsewhere, or lost"):
            again.fail(late)
    again.tell(kept.id, 0.2).tell(note, 0.3).tell(new[0].id, 0.4).fail(new[1])
    assert again.told == 6
    other = tuner.copy()
    assert not {tuner.ask().id, *(t.id for t in tuner.ask(3))} & {other.ask().id, *(t.id for t in other.ask(3))}
