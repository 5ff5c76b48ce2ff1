"""Statements from rewards that were learnt out of order name the condition that they then rest on."""

from collections import defaultdict

import numpy as np
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


@pytest.mark.parametrize("played", [False, True])
@pytest.mark.parametrize("strict", [False, True])
def test_cancelled_choices_are_a_condition_of_statements(played, strict):
    """Whoever tells clicks and cancels misses sees nothing but clicks, in order of play."""
    policy = make("CMMUCB", strict=strict)
    play(policy, 3)
    policy.cancel(policy.ask(), played=played)
    condition = "no value of a reward decided that it is lost (1 cancelled choice)"
    for each in (policy, mb.CMMUCB.from_state_dict(policy.state_dict())):
        for text in (each.guarantee, str(each.certificate()), str(each.regret_bound())):
            assert condition in text
        assert not any(said(each))


def test_floors_that_tie_go_to_the_arm_that_looks_best():
    bandit = mb.CMMUCB(
        3, actions=[[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]], sigma=0.5, norm_bound=2.0, reward_range=(0, 1)
    )
    bandit.learn([[0, 0, 1.0]] * 3 + [[1.0, 0, 0]] * 3, [1.0, 1.0, 0.0, 0.0, 0.0, 1.0])
    found = bandit.certificate()
    assert found.lower == 0.0
    assert found.action.tolist() == [0.0, 0.0, 1.0]


RATES = np.array([0.2, 0.3, 0.4])
RUNS, ROUNDS, LATE, DELTA = 30, 300, 100, 0.05


def clicks_first(strict, seed):
    """Readers whose clicks are told at once and whose misses LATE readers later.

    Returns whether a bound ever was wrong, and whether certificates named the condition, after the first reward that
    was learnt out of order.
    """
    rng = np.random.default_rng([28, seed])
    bandit = mb.CMMUCB(
        3, actions=np.eye(3), sigma=0.5, norm_bound=1.0, reward_range=(0, 1), delta=DELTA, strict=strict, rng=seed
    )
    waiting, said_so, wrong = defaultdict(list), [], False
    for t in range(ROUNDS):
        bandit.tell(waiting[t], np.zeros(len(waiting[t])))
        choice = bandit.ask()
        if rng.random() < RATES[choice.index]:
            bandit.tell(choice, 1.0)
        else:
            waiting[t + LATE].append(choice)
        if bandit.state.reordered or t % 20 == 0:
            found = bandit.certificate()
            wrong |= found.lower > RATES[int(np.argmax(found.action))]
            said_so += [SAYS in str(found)] if bandit.state.reordered else []
    return wrong, said_so


@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore::mixbandit.AssumptionsRefutedWarning")
def test_clicks_before_misses_are_named_as_a_condition_and_harmless_in_order_of_play():
    hasty, strict = ([clicks_first(strict, seed) for seed in range(RUNS)] for strict in (False, True))
    assert sum(wrong for wrong, _ in hasty) > RUNS / 2  # what the condition is there for
    for _, said_so in hasty:
        assert said_so
        assert all(said_so)
    assert sum(wrong for wrong, _ in strict) <= DELTA * RUNS
    assert not any(said_so for _, said_so in strict)
