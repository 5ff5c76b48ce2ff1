"""Statements from rewards that were learnt out of order name the condition that they then rest on."""

import pytest

import mixbandit as mb
from tests.helpers.worlds import make, play, reward

SAYS = "when a reward arrives does not depend on its value"


def said(policy):
    return [SAYS in text for text in (policy.guarantee, str(policy.certificate()), str(policy.regret_bound()))]


@pytest.mark.parametrize("together", [False, True])
def test_the_condition_is_stated_once_rewards_were_learnt_out_of_order(together):
    policy, strict = make("CMMUCB"), make("CMMUCB", strict=True)
    for each in (policy, strict):
        play(each, 3)
        assert not any(said(each))
        first, second = each.ask(), each.ask()
        if together:
            each.tell([second, first], [reward(second, 4), reward(first, 3)])
        else:
            each.tell(second, reward(second, 4))
    assert all(said(policy))
    assert not any(said(strict))
    again = mb.CMMUCB.from_state_dict(policy.state_dict())
    play(again, 2)
    assert all(said(again))


def test_floors_that_tie_go_to_the_arm_that_looks_best():
    bandit = mb.CMMUCB(
        3, actions=[[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]], sigma=0.5, norm_bound=2.0, reward_range=(0, 1)
    )
    bandit.learn([[0, 0, 1.0]] * 3 + [[1.0, 0, 0]] * 3, [1.0, 1.0, 0.0, 0.0, 0.0, 1.0])
    found = bandit.certificate()
    assert found.lower == 0.0
    assert found.action.tolist() == [0.0, 0.0, 1.0]
