"""Many pending choices are summed up: the same decisions, at a cost that does not grow."""

import copy

import numpy as np
import pytest

import mixbandit as mb
from mixbandit.bandits import choosing
from mixbandit.bandits import state as states
from mixbandit.bandits.crowd import Crowd


def test_a_crowd_has_the_gram_matrix_of_its_rows():
    rng = np.random.default_rng(0)
    rows, crowd, versions = {}, Crowd.of([]), []
    for number in range(300):
        rows[number] = rng.normal(size=6)
        crowd = crowd.with_row(number, rows[number])
        if number % 3 == 2:
            gone = int(rng.choice(list(rows)))
            del rows[gone]
            crowd = crowd.without(gone)
        if number % 40 == 39:
            versions.append((crowd, dict(rows)))
    for old, then in versions:  # old values stay as they were
        matrix = np.array(list(then.values()))
        np.testing.assert_allclose(old.factor.T @ old.factor, matrix.T @ matrix, rtol=1e-10, atol=1e-10)
        assert old.count == len(then)
    assert crowd.without(10_000) is crowd
    assert crowd.without(next(number for number in range(300) if number not in rows)) is crowd


@pytest.mark.parametrize("kind", [mb.AMMUCB, mb.CMMUCB, mb.OFUL])
def test_decisions_are_those_of_all_pending_rows(kind, monkeypatch):
    """Against the same policy that adds the pending rows one by one."""

    def played(most):
        monkeypatch.setattr(states, "MOST_ROWS", most)
        monkeypatch.setattr(choosing, "MOST_ROWS", most)
        rng = np.random.default_rng(1)
        theta = rng.normal(size=9)
        policy, chosen = kind(9, sigma=0.1, norm_bound=4.0, rng=0), []
        for t in range(150):
            choice = policy.ask(rng.normal(size=(8, 9)))
            chosen.append(choice.index)
            if t > 40:
                late = policy.pending[int(rng.integers(len(policy.pending)))]
                policy.tell(late, float(late.action @ theta) + 0.1 * rng.normal())
            if t == 100:
                policy.cancel(policy.pending[0])
        return chosen, policy

    summed, policy = played(16)
    assert policy.state.crowd is not None
    one_by_one, other = played(10_000)
    assert other.state.crowd is None
    assert summed == one_by_one


def test_a_copy_and_a_file_go_on_alike(tmp_path):
    rng = np.random.default_rng(2)
    policy = mb.AMMUCB(5, actions=mb.Arms(rng.normal(size=(7, 5))), sigma=0.1, norm_bound=3.0, rng=0)
    for _ in range(40):
        policy.ask()
    for choice in policy.pending[:10]:
        policy.tell(choice, 0.3)
    policy.ask()
    policy.save(tmp_path / "policy")
    loaded, copied = mb.load(tmp_path / "policy"), copy.copy(policy)
    for each in (loaded, copied):
        each.tell(each.pending[0], 0.1)
    assert loaded.ask().index == copied.ask().index
