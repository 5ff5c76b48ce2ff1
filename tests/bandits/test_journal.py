"""The state of a policy is its settings with its events applied, whoever applies them."""

import numpy as np
import pytest

import mixbandit as mb
from mixbandit._files import digest
from mixbandit.bandits import Cancelled, Decided, Event, Learnt, MemoryJournal, Policy, Refuted, Told, Uniformly
from tests.helpers.worlds import everything

PHI = mb.RandomFourier(dim_in=2, dim=6, lengthscale=1.0, rng=0)
ARMS = mb.Arms(np.random.default_rng(1).uniform(size=(6, 2)), labels=list("abcdef"))
BOX = mb.Box([0.0, 0.0], [1.0, 1.0])


def make(actions, journal=None, **options):
    known = {"sigma": 0.1, "norm_bound": 5.0, "reward_range": (-3.0, 3.0), "on_empty": "inflate", "rng": 3}
    return mb.CMMUCB(PHI, actions=actions, journal=journal, keep_history=True, **known, **options)


def lived(policy, seed=0, spread=0.1):
    """A life with everything that can happen to a policy."""
    rng, late = np.random.default_rng(seed), []
    arms = policy.actions.rows is not None
    for t in range(12):
        late += policy.ask(n=2)
        if arms and t % 3 == 0:
            late += policy.ask(mb.Arms(rng.uniform(size=(4, 2)), labels=[1, 2, 3, 4]), n=2)
        chosen = late.pop(int(rng.integers(len(late))))
        policy.tell(chosen, float(spread * rng.normal()), sigma=0.2 if t % 4 == 0 else None)
        if t % 5 == 4:
            policy.cancel(late.pop(0), played=t % 2 == 0)
        if t % 6 == 5:
            policy.tell([late.pop(0), late.pop(0).id], [0.1, 0.2])
            policy.learn(rng.uniform(size=(3, 2)), [0.1, 0.2, 0.3])
    policy.adopt(ARMS.actions[2])
    policy.sequence.update([0.5, 0.5], 0.3)
    return policy


def comparable(policy):
    """All that a policy remembers; bounds of pending choices, which depend on where a solver began, to ten digits."""
    state = everything(policy)
    for choice in state["ledger"]["open"]:
        for name in ("lower", "upper", "width"):
            choice[name] = round(choice[name], 10)
    state["account"]["widths"] = round(state["account"]["widths"], 9)
    return state


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("actions", [ARMS, BOX], ids=["arms", "box"])
@pytest.mark.parametrize("spread", [0.1, 1.0], ids=["quiet", "refuted"])
@pytest.mark.filterwarnings("ignore::mixbandit.AssumptionsRefutedWarning")
def test_whoever_follows_the_journal_goes_on_alike(actions, strict, spread):
    journal = MemoryJournal()
    policy = lived(make(actions, journal, strict=strict), spread=spread)
    assert policy.refuted == (spread == 1.0)
    again = make(actions, journal, strict=strict)
    assert comparable(again) == comparable(policy)
    assert digest(again.state.moment.data.state_dict()) == digest(policy.state.moment.data.state_dict())
    for mine, theirs in zip(policy.at(policy.state).ask(n=3), again.at(again.state).ask(n=3), strict=True):
        np.testing.assert_array_equal(mine.action, theirs.action)
        assert mine.id != theirs.id
    # Rewards of choices that another process made are told by their ids.
    waiting = policy.pending[0]
    again.tell(waiting.id, 0.05)
    policy.follow(journal)
    assert comparable(policy) == comparable(again)


def test_a_journal_changes_nothing_but_rounding():
    alone, recorded = lived(make(ARMS)), lived(make(ARMS, MemoryJournal()))
    assert alone.rounds == recorded.rounds
    assert [c.index for c in alone.pending] == [c.index for c in recorded.pending]
    grid = np.random.default_rng(2).uniform(size=(20, 2))
    np.testing.assert_allclose(alone.sequence.upper(grid), recorded.sequence.upper(grid), rtol=1e-12)


def test_contexts_are_kept():
    contexts = np.random.default_rng(0).uniform(size=(5, 1))
    one, journal = mb.Arms([[0.0], [0.5], [1.0]], labels=["x", "y", "z"]), MemoryJournal()
    policy = make(one, journal)
    for choice in policy.ask(contexts=contexts):
        policy.tell(choice, 0.1)
    policy.tell(policy.ask(context=[0.3]), 0.2)
    policy.ask([[0.1], [0.2]], context=[0.4])
    policy.ask(contexts=contexts[:2], arms=np.random.default_rng(3).uniform(size=(2, 4, 1)))
    again = make(one, journal)
    assert comparable(again) == comparable(policy)
    first = journal.since(0)[0]
    assert isinstance(first, Decided)
    assert first.label in ("x", "y", "z")
    np.testing.assert_array_equal(first.context, contexts[0])


def test_events_know_what_was_decided_and_with_what_probability():
    journal = MemoryJournal()
    policy = Policy(mb.MartingaleMixture(2, sigma=0.1, norm_bound=1.0), np.eye(2), rule=Uniformly(), journal=journal)
    choice = policy.ask()
    policy.tell(choice, 0.5).cancel(policy.ask())
    decided, told, _, cancelled = journal.since(0)
    assert decided.probabilities.array().tolist() == [0.5, 0.5]
    assert decided.id == told.id == choice.id
    assert decided.as_of == 0
    assert (told.value, told.sigma) == (0.5, None)
    assert isinstance(cancelled, Cancelled)
    assert not cancelled.played
    assert decided.time <= told.time


def test_events_come_back_from_plain_values():
    journal = MemoryJournal()
    lived(make(BOX, journal))
    lived(make(ARMS, journal_of := MemoryJournal()))
    for event in [*journal.since(0), *journal_of.since(0), Refuted(1.0)]:
        state = event.state_dict()
        assert digest(Event.family.load(state).state_dict()) == digest(state)
    with pytest.raises(mb.DamagedState, match=r"event\.value must be a number, got 'x'"):
        Event.family.load({**Told("a-1", 0.0, 1.0).state_dict(), "value": "x"})


def test_a_saved_policy_reads_only_what_is_new(tmp_path):
    journal = MemoryJournal()
    policy = make(ARMS, journal)
    for reward in (0.1, 0.2, 0.3):
        policy.tell(policy.ask(), reward)
    policy.save(tmp_path / "policy")
    lost = policy.ask()
    policy.tell(policy.ask(), 0.4)
    again = mb.load(tmp_path / "policy").follow(journal)
    assert comparable(again) == comparable(policy)
    again.tell(lost.id, 0.7)
    assert again.rounds == 5


def test_what_cannot_be_kept_changes_nothing():
    class Full(MemoryJournal):
        def append(self, events, number):
            raise OSError("disk full")

    policy = make(ARMS, MemoryJournal())
    choice = policy.ask()
    before = policy.state
    policy.follow(Full(policy.journal.since(0)))
    for act in (policy.ask, lambda: policy.tell(choice, 0.1), lambda: policy.cancel(choice)):
        with pytest.raises(OSError, match="disk full"):
            act()
        assert policy.state is before


def test_another_state_would_not_be_that_of_the_journal():
    policy = make(ARMS, MemoryJournal())
    with pytest.raises(mb.InvalidInput, match=r"policy\.at\(state\)"):
        policy.state = policy.state
    copy = policy.at(policy.state)
    copy.ask()
    assert copy.journal is None
    assert policy.rounds == 0


def test_a_journal_of_another_policy_is_damage():
    journal = MemoryJournal()
    policy = make(ARMS, journal)
    policy.ask(n=2)
    with pytest.raises(mb.DamagedState, match="is not the next one: 0 were made before it"):
        make(ARMS, MemoryJournal(journal.since(1)))
    with pytest.raises(mb.DamagedState, match="event 0 of the journal is 7"):
        make(ARMS, MemoryJournal([7]))


def test_a_refutation_that_was_seen_stands_for_all():
    journal = MemoryJournal()
    policy = make(ARMS, journal)
    policy.refuted = True  # as if a certificate had found out; to follow the events is not to look at certificates
    assert isinstance(journal.since(0)[-1], Refuted)
    assert make(ARMS, journal).refuted


def test_policies_that_share_a_journal_take_turns():
    journal = MemoryJournal()
    one, two = make(ARMS, journal), make(ARMS, journal)
    choices = [policy.ask() for policy in (one, two, one, two)]
    assert [int(choice.id.rpartition("-")[2]) for choice in choices] == [0, 1, 2, 3]
    assert len({choice.id for choice in choices}) == 4
    for policy, choice in zip((two, two, one, one), choices, strict=True):
        policy.tell(choice.id, 0.1)
    with pytest.raises(mb.InvalidInput, match="already been told"):
        two.tell(choices[3].id, 0.9)
    assert comparable(one.follow(journal)) == comparable(two)
    assert one.sequence.t == 4


def test_whoever_is_overtaken_decides_again():
    class Busy(MemoryJournal):
        """Somebody else is always faster the first time."""

        def append(self, events, number):
            if rival is not None and not self.overtaken:
                self.overtaken = True
                rival.tell(rival.ask(), 0.3)
            return super().append(events, number)

    rival, journal = None, Busy()
    journal.overtaken = False
    policy, other = make(ARMS, journal), make(ARMS, journal)
    rival = other
    for act in (policy.ask, lambda: policy.learn([[0.1, 0.2]], [0.5]), lambda: policy.adopt(ARMS.actions[1])):
        journal.overtaken = False
        act()
    assert comparable(policy) == comparable(other.follow(journal))
    assert (policy.rounds, policy.sequence.t, len(policy.pending)) == (5, 4, 2)


def test_a_journal_that_takes_nothing_is_damaged():
    class Stuck(MemoryJournal):
        def append(self, events, number):
            return False

    policy = make(ARMS, Stuck())
    with pytest.raises(mb.DamagedState, match="takes nothing after the 0 events"):
        policy.ask()
    assert policy.rounds == 0


def test_decisions_among_other_actions_are_damage():
    journal = MemoryJournal()
    make(ARMS, journal).ask()
    turned = mb.Arms(ARMS.actions, labels=list("bcdefa"))
    for other in (turned, mb.Arms(2.0 * ARMS.actions, labels=list("abcdef")), mb.Arms(ARMS.actions[:1]), BOX):
        with pytest.raises(mb.DamagedState, match="among other actions"):
            make(other, MemoryJournal(journal.since(0)))
    with pytest.raises(mb.DamagedState, match="event 0 of the journal does not fit"):
        make(mb.Arms(np.eye(3)[:, :1]), MemoryJournal(journal.since(0)))


@pytest.mark.parametrize(
    "event",
    [
        Learnt(0.0, np.ones((1, 3)), np.ones(1)),
        Learnt(0.0, np.ones((2, 2)), np.ones(1)),
        Learnt(0.0, np.ones((1, 2)), np.array([np.nan])),
        Learnt(0.0, np.ones((1, 2)), np.array([1e300])),
        Learnt(0.0, np.ones((1, 2)), np.ones(1), np.array([-3.0])),
        Told("a-0", 0.0, 1.0),
    ],
)
def test_events_that_could_not_have_happened_are_damage(event):
    with pytest.raises(mb.DamagedState, match="event 0 of the journal does not fit this policy"):
        make(ARMS, MemoryJournal([event]))


def test_rewards_outside_their_range_are_damage_for_whoever_rests_on_it():
    sequence = mb.BoundedMixture(2, norm_bound=1.0, delta=0.05, reward_range=(0.0, 1.0))
    with pytest.raises(mb.DamagedState, match="reward_range"):
        mb.UCB(sequence, np.eye(2), journal=MemoryJournal([Learnt(0.0, np.eye(2)[:1], np.array([5.0]))]))


def test_a_life_without_a_journal_cannot_begin_one():
    policy = make(ARMS)
    policy.ask()
    with pytest.raises(mb.InvalidInput, match="has decided without a journal"):
        policy.follow(MemoryJournal())


def test_a_refutation_in_a_journal_stands():
    policy = make(ARMS, MemoryJournal())
    policy.refuted = True
    with pytest.raises(mb.InvalidInput, match="stands"):
        policy.refuted = False


@pytest.mark.parametrize("journal", [None, 5, "decisions.db", [], object(), MemoryJournal])
def test_what_is_no_journal_is_refused(journal):
    with pytest.raises(mb.InvalidInput, match="journal must be a journal such as MemoryJournal"):
        make(ARMS).follow(journal)
