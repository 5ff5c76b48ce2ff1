import pytest

from mixbandit.paper.delays import FEEDBACKS, DelaySettings, measure
from mixbandit.paper.parallel import Workers
from mixbandit.paper.store import SIGNIFICANCE, binomial_pvalue


def test_what_theory_promises():
    valid = {
        (feedback, strict)
        for feedback in FEEDBACKS
        for strict in (False, True)
        if DelaySettings(feedback, strict).valid
    }
    assert ("by value", False) not in valid
    assert ("by value", True) in valid
    assert not {("lost by value", False), ("lost by value", True)} & valid


@pytest.mark.parametrize("strict", [False, True], ids=["arrival", "play"])
@pytest.mark.parametrize("feedback", ["at once", "independent", "lost independently"])
def test_what_is_promised_holds(feedback, strict):
    assert measure(DelaySettings(feedback, strict, rounds=60), 15).holds


def test_rewards_lost_by_value_break_the_bounds(tmp_path):
    result = measure(DelaySettings("lost by value"), 12, folder=tmp_path)
    assert result.misses >= 10
    assert not result.holds
    assert measure(DelaySettings("lost by value"), 12, folder=tmp_path) == result


@pytest.mark.heavy
def test_order_of_play_saves_what_order_of_arrival_loses():
    arrival, play = (measure(DelaySettings("by value", strict), 60, workers=Workers(2)) for strict in (False, True))
    assert not arrival.holds
    assert play.holds


def test_the_binomial_test():
    assert binomial_pvalue(0, 100, 0.05) == 1.0
    assert binomial_pvalue(5, 100, 0.05) > 0.5
    assert binomial_pvalue(20, 100, 0.05) < SIGNIFICANCE
