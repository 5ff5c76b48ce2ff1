"""The randomised control: its share, its groups, and the probabilities over both."""

import itertools

import numpy as np
import pytest
from scipy.stats import binomtest, chisquare

import mixbandit as mb
from mixbandit.bandits.rules import Greedy, InverseGap, Optimistic, Thompson, Uniform
from mixbandit.errors import DamagedState, InvalidInput
from mixbandit.search import Shares
from tests.bandits.contextual.worlds import behaviour, contexts, lived, make


def taught(**options):
    bandit = make(**options)
    for context in contexts(60):
        choice = bandit.ask(context)
        bandit.tell(choice, 0.9 if choice.arm == "b" else 0.1)
    return bandit


@pytest.mark.parametrize(
    "rule", [Optimistic(), Greedy(), Thompson(), InverseGap(), Uniform()], ids=lambda rule: rule.name
)
@pytest.mark.parametrize("how", ["one by one", "together"])
@pytest.mark.parametrize("arms", [None, ["a", "c"], ["b", "c"]], ids=str)
def test_probabilities_are_those_over_control_and_treatment(rule, how, arms):
    bandit, given = taught(rule=rule, floor=0.3, control=mb.Control("c", share=0.2)), contexts(2000, seed=1)
    many = how == "together"
    choices = bandit.ask_many(given, arms=arms) if many else [bandit.ask(each, arms=arms) for each in given]
    names = list(choices[0].probabilities)
    table = np.array([np.asarray(choice.probabilities) for choice in choices])
    found = [sum(choice.arm == arm for choice in choices) for arm in names]
    assert chisquare(found, table.sum(axis=0)).pvalue > 1e-3
    np.testing.assert_allclose(table.sum(axis=1), 1.0)
    assert table.min() >= 0.3 / len(names) - 1e-12  # the floor, with the control counted in
    assert table[:, names.index("c")].min() >= 0.2 + 0.3 / len(names) - 1e-12
    control = [choice for choice in choices if choice.group == "control"]
    assert {choice.arm for choice in control} == {"c"}
    assert {choice.group for choice in choices} == {"control", "treatment"}
    assert binomtest(len(control), len(choices), 0.2).pvalue > 1e-3
    # What the treatment plays does not depend on the draw of the group.
    treated = [choice for choice in choices if choice.group == "treatment"]
    own = np.array([(np.asarray(c.probabilities) - 0.2 * np.array([n == "c" for n in names])) / 0.8 for c in treated])
    assert chisquare([sum(choice.arm == arm for choice in treated) for arm in names], own.sum(axis=0)).pvalue > 1e-3


def test_without_its_arm_there_is_no_control_and_no_group():
    bandit = make(control=mb.Control("c", share=0.5), floor=0.0)
    choices = [bandit.ask(each, arms=["a", "b"]) for each in contexts(50)]
    assert {choice.group for choice in choices} == {None}
    assert set(choices[0].probabilities) == {"a", "b"}
    bandit.remove_arm("c")
    assert {bandit.ask(each).group for each in contexts(20)} == {None}
    bandit.add_arm("c")
    assert {bandit.ask(each).group for each in contexts(50)} == {"control", "treatment"}


def test_a_bandit_without_control_has_no_groups():
    assert make().ask([1.0]).group is None


def test_control_is_stored_and_replayed(tmp_path):
    bandit = lived(make(control=mb.Control("b", share=0.3)))
    assert {"control", "treatment", None} == {
        event.get("group") for event in bandit.state_dict()["events"] if "group" in event
    }
    bandit.save(tmp_path / "bandit")
    again = mb.load(tmp_path / "bandit")
    assert again.control == bandit.control == mb.Control("b", 0.3)
    assert behaviour(again) == behaviour(bandit)
    assert [again.ask(each).group for each in contexts(20)] == [bandit.ask(each).group for each in contexts(20)]
    assert "30 % control on 'b'" in repr(again)


def test_what_is_stored_of_a_control_is_checked():
    state = make(control=mb.Control("b", share=0.3)).state_dict()
    for wrong in ({"arm": "b", "share": 2.0}, {"arm": None, "share": 0.1}, {"arm": "b"}, {"arm": "z", "share": 0.1}, 3):
        with pytest.raises(DamagedState, match="control"):
            mb.ContextualBandit.from_state_dict({**state, "control": wrong})
    del state["control"]  # as older files are
    assert mb.ContextualBandit.from_state_dict(state).control is None


def test_groups_that_do_not_fit_the_control_are_found():
    bandit = lived(make(control=mb.Control("b", share=0.3)))
    state = bandit.state_dict()
    for change in (
        {"control": None},
        {"control": {"arm": "c", "share": 0.3}},
        {"events": [{**e, "group": "control"} if "group" in e else e for e in state["events"]]},
        {"events": [{**e, "group": None} if "group" in e else e for e in state["events"]]},
    ):
        with pytest.raises(DamagedState, match=r"another control|other arms"):
            mb.ContextualBandit.from_state_dict({**state, **change})
    journal = mb.bandits.MemoryJournal()
    make(control=mb.Control("b", share=0.3), journal=journal).ask({"x": 1.0})
    with pytest.raises(DamagedState, match="another control"):
        make(journal=journal)


@pytest.mark.parametrize(
    ("control", "message"),
    [
        (lambda: "c", "control must be None, or a mixbandit.Control"),
        (lambda: mb.Control("d"), "control must name one of the arms, got 'd'"),
        (lambda: mb.Control("c", share=0.0), "share"),
        (lambda: mb.Control("c", share=1.0), "share"),
        (lambda: mb.Control(None), "labels of arms"),
        (lambda: mb.Control("c", share=0.995), "floor and the share of the control"),
    ],
)
def test_settings_are_checked(control, message):
    with pytest.raises(InvalidInput, match=message):
        make(control=control())


def test_shares_blend():
    for arm, share in itertools.product(range(4), (0.1, 0.7)):
        for shares in (Shares(4, (1,), (1.0,)), Shares(4, (0, 2), (0.5, 0.2), 0.15), Shares(4, (), (), 0.25)):
            expected = (1.0 - share) * shares.array()
            expected[arm] += share
            blended = shares.blended(arm, share)
            np.testing.assert_allclose(blended.array(), expected, rtol=1e-15)
            assert blended.fitting(4) is blended
