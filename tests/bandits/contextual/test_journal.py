"""The state is a fold of events, whoever folds them, and however many at once."""

import copy
from itertools import pairwise

import numpy as np
import pytest

import mixbandit as mb
from mixbandit.bandits import MemoryJournal
from mixbandit.bandits.contextual import DecidedInContext, RewardTold
from mixbandit.bandits.contextual.events import folded
from mixbandit.bandits.contextual.state import State
from mixbandit.errors import DamagedState
from tests.bandits.contextual.worlds import behaviour, contexts, everything, lived, make
from tests.extending.outside.lines import LinesJournal


def test_two_bandits_on_one_journal_are_one():
    journal = MemoryJournal()
    one, two = make(journal=journal), make(journal=journal)
    open_ = []
    for t, context in enumerate(contexts(60)):
        asking, telling = (one, two) if t % 2 else (two, one)
        open_.append(asking.ask(context))
        if t % 3:
            telling.tell(open_.pop(0).id, 0.5)
        if t == 20:
            one.add_arm("d")
        if t == 40:
            two.remove_arm("a")
    assert one.ask(context).arm in two.arms
    two.tell(open_.pop(0), 1.0)
    one.tell(open_.pop(0), 1.0)
    two.ask(context)
    one.ask(context)
    assert everything(one) == everything(two) == everything(make(journal=journal))
    assert one.arms == ["b", "c", "d"]
    ids = [event.id for event in journal.since(0) if isinstance(event, DecidedInContext)]
    assert len(set(ids)) == len(ids) == 63


@pytest.mark.parametrize("sort", ["named", "vectors", "features of arms"])
def test_a_journal_that_writes_events_down_leads_to_the_same_state(tmp_path, sort):
    """As in docs/how-to/extend.md: events are stored by `state_dict`, and come back by their family."""
    arms = {label: {"price": 1.0 + t} for t, label in enumerate("abc")} if sort == "features of arms" else list("abc")
    path, given = tmp_path / "events", [{**each, "tokens": 10.0**t} for t, each in enumerate(contexts(20))]
    if sort == "vectors":
        given = np.random.default_rng(0).normal(size=(20, 2)).tolist()

    def follow():
        features = 2 if sort == "vectors" else None
        return mb.ContextualBandit(arms, floor=0.3, rng=1, features=features, journal=LinesJournal(path))

    one, two = follow(), follow()
    for t, context in enumerate(given):
        asking, telling = (one, two) if t % 2 else (two, one)
        choice = asking.ask(context)
        if t % 3:
            telling.tell(choice.id, 0.5)
        if t == 9:
            telling.add_arm("d", {"price": 9.0} if sort == "features of arms" else None)
    three = follow()
    assert one.open == two.open == three.open  # all have read to the end
    assert behaviour(one) == behaviour(two) == behaviour(three)
    again = mb.ContextualBandit.from_state_dict(one.state_dict())
    assert everything(again) == everything(one)
    bounds = [bandit.interval(given[0], norm_bound=2.0) for bandit in (one, three, again)]
    assert len({str(each) for each in bounds}) == 1
    assert bounds[0].rewards > 0


def test_what_another_one_did_shows_at_once():
    journal = MemoryJournal()
    one, two = make(journal=journal), make(journal=journal)
    choice = one.add_arm("d").ask([1.0])
    assert two.arms == ["a", "b", "c", "d"]
    assert two.open == [choice.id]


def test_a_journal_that_is_passed_in_shares_no_random_numbers():
    """Bandits with one seed: in a journal of their own they draw alike, in a shared one each draws anew."""
    alone = [[each.arm for each in make(floor=1.0).ask_many(np.ones((40, 1)))] for _ in range(2)]
    assert alone[0] == alone[1]
    shared = [make(floor=1.0, journal=MemoryJournal()) for _ in range(2)]
    assert shared[0].ask_many(np.ones((40, 1)))[0].id != shared[1].ask_many(np.ones((40, 1)))[0].id
    arms = [[each.arm for each in bandit.ask_many(np.ones((40, 1)))] for bandit in shared]
    assert arms[0] != arms[1]
    # Nor do those that were copied from it, or loaded.
    stored = shared[0].state_dict()
    alike = [copy.copy(shared[0]), copy.copy(shared[0]), *(mb.ContextualBandit.from_state_dict(stored) for _ in "ab")]
    arms = [tuple(each.arm for each in bandit.ask_many(np.ones((40, 1)))) for bandit in alike]
    assert len(set(arms)) == 4


def test_decisions_say_how_many_events_were_known():
    bandit = make()
    first = bandit.ask([1.0])
    bandit.tell(first, 0.5)
    second, third = bandit.ask_many([[1.0], [2.0]])
    assert [each.as_of for each in (first, second, third)] == [0, 2, 3]


def test_whatever_is_folded_at_once_the_state_is_the_same():
    bandit = lived(make(), 60)
    events = bandit.journal.since(0)
    assert any(isinstance(one, RewardTold) and isinstance(other, RewardTold) for one, other in pairwise(events))
    state = State.start(*bandit.origin)
    for event in events:
        state = event.after(bandit, state)
    singly = mb.ContextualBandit.from_state_dict(bandit.state_dict())
    singly._state = state
    assert everything(singly) == everything(bandit)
    singly._state = folded(bandit, State.start(*bandit.origin), events)
    assert everything(singly) == everything(bandit)


def test_a_reward_may_overtake_that_of_an_earlier_decision_and_this_is_remembered():
    bandit = make()
    first, second, third = bandit.ask_many([[1.0], [2.0], [3.0]])
    bandit.tell(first, 0.1)
    assert not bandit.state.reordered
    bandit.tell(third, 0.1)
    assert bandit.state.reordered
    bandit.tell(second, 0.1)
    many = make()
    asked = many.ask_many(np.ones((100, 1)))
    many.tell_many(asked, np.full(100, 0.5))
    assert not many.state.reordered
    asked = many.ask_many(np.ones((100, 1)))
    many.tell_many(asked[1:], np.full(99, 0.5))
    assert many.state.reordered
    assert many.open == [asked[0].id]


def test_a_journal_that_others_append_to_meanwhile():
    """The append is refused once: the decision is made again, with another id, and nothing is lost."""

    class Contested(MemoryJournal):
        def append(self, events, number):
            if self.rivals:
                rival = self.rivals.pop()
                rival.ask({"tokens": 1.0})
            return super().append(events, number)

    journal = Contested()
    journal.rivals = []
    one, rival = make(journal=journal), make(journal=journal)
    for act in (
        lambda: one.ask({"tokens": 2.0}),
        lambda: one.ask_many([{"tokens": 2.0}] * 3),
        lambda: one.tell(one.open[0], 0.5),
        lambda: one.tell_many(one.open[:2], [0.5, 0.1]),
        lambda: one.cancel(one.open[0]),
        lambda: one.add_arm("d"),
        lambda: one.remove_arm("a"),
    ):
        journal.rivals = [rival]
        before = len(journal)
        act()
        assert not journal.rivals
        assert len(journal) > before + 1
        rival.ask({"tokens": 3.0})
    one.ask({"tokens": 3.0})
    rival.ask({"tokens": 3.0})
    one.ask({"tokens": 3.0})
    rival._catch_up()
    assert everything(one) == everything(rival)


def test_a_journal_that_loses_events_or_has_others_is_refused():
    class Deaf(MemoryJournal):
        def append(self, events, number):
            return False

    bandit = make(journal=Deaf())
    with pytest.raises(DamagedState, match="takes nothing"):
        bandit.ask([1.0])
    assert bandit.state.seen == 0
    with pytest.raises(DamagedState, match="event 0 of the journal"):
        make(journal=MemoryJournal(["what"]))
    vectors = mb.ContextualBandit(["a", "b", "c"], features=2)
    vectors.ask([1.0, 2.0])
    with pytest.raises(DamagedState, match="event 0 of the journal"):
        make(features=3, journal=vectors.journal)
    named = make()
    named.ask({"tokens": 1.0, "topic": "code"})
    with pytest.raises(DamagedState, match="event 0 of the journal"):
        make(features=3, journal=named.journal)
    other = lived(make())
    with pytest.raises(DamagedState, match="among other arms"):
        mb.ContextualBandit(["x"], (0, 1), journal=other.journal)
    with pytest.raises(DamagedState, match="among other arms"):  # or the same in another order
        mb.ContextualBandit(["b", "c", "a"], (0, 1), journal=other.journal)
    journal = MemoryJournal()
    wide = mb.ContextualBandit(["a", "b", "c"], (0, 2), journal=journal)
    wide.tell(wide.ask([1.0]), 2.0)
    with pytest.raises(DamagedState, match="reward_range"):
        make(journal=journal)


def test_an_interrupt_after_the_append_loses_nothing():
    bandit, other = make(), make()
    for each in (bandit, other):
        each.ask([1.0])
    kept, state = bandit.journal, bandit.state
    bandit.ask([2.0])
    other.ask([2.0])
    bandit._state = state  # as if Ctrl-C had come between the append and the assignment
    bandit.ask([3.0])
    other.ask([3.0])
    assert len(kept) == 3
    assert behaviour(bandit) == behaviour(other)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda s: s["events"][0].update(id="x-7"), "not the next one"),
        (lambda s: s["events"][0].update(arm=9), "among other arms"),
        (lambda s: s["events"][0].update(arm=-1), "arm"),
        (lambda s: s["events"][0].update(label="z"), "among other arms"),
        (lambda s: s["events"][0].update(offered=[2, 1]), "among other arms"),
        (lambda s: s["events"][0]["shares"].update(size=4, rest=0.0), "among other arms"),
        (lambda s: s["events"][0]["shares"].update(values=[0.9], arms=[0]), "sum to 1"),
        (lambda s: s["events"][0].update(context=7), "context"),
        (lambda s: s["events"][0].update(as_of=5), "order"),
        (lambda s: s["events"].pop(0), "is unknown"),
        (lambda s: s["events"].append(s["events"][-1]), "not the next one"),
        (lambda s: s["events"].append({"type": "reward", "id": "x-0", "time": 0.0, "value": 0.5}), "unknown|already"),
        (lambda s: s["events"].append({"type": "refuted", "time": 0.0}), "no event of a context"),
        (lambda s: s["events"].append({"type": "what"}), "unknown type"),
        (lambda s: s["events"].append({"type": "arm added", "time": 0.0, "label": True, "features": None}), "label"),
        (
            lambda s: s["events"].append({"type": "arm added", "time": 0.0, "label": "e", "features": 1.0}),
            "no features",
        ),
        (lambda s: s["predictor"]["ridges"].update(alpha=0.7), "ridge"),
        (lambda s: s.update(events=None), "events"),
        (lambda s: s.update(labels=["a", "a", "b"]), "differ"),
        (lambda s: s.update(labels=["a"]), "among other arms|unknown"),
        (lambda s: s.update(floor=2.0), "floor"),
        (lambda s: s.update(arm_features=[1]), "arm_features"),
        (lambda s: s.update(version=2), "version"),
        (lambda s: s.pop("rule"), "rule"),
        (lambda s: s.update(reward_range=[0.0, 0.01]), "reward_range"),
    ],
)
def test_damage_is_found(damage, message):
    bandit = make()
    for context in contexts(5):
        bandit.tell(bandit.ask(context), 0.5)
    bandit.ask(context)
    state = bandit.state_dict()
    damage(state)
    with pytest.raises(DamagedState, match=message):
        mb.ContextualBandit.from_state_dict(state)
