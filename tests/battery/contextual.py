"""The life of a contextual bandit: asked, told late and twice, with arms that come and go, interrupted, killed, loaded.

What it did is kept in an account of its own, and what it learnt is compared with dense matrices.
"""

import copy
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

import mixbandit as mb
from mixbandit.bandits import ActingRule, MemoryJournal, Optimistic, Uniformly
from mixbandit.bandits.contextual import DecidedInContext
from mixbandit.bandits.contextual.events import folded
from mixbandit.bandits.contextual.state import State
from mixbandit.errors import MixbanditError
from mixbandit.search import Selection
from mixbandit.storage import record
from tests.bandits.contextual.worlds import behaviour, everything
from tests.battery.call import SAME_IDS
from tests.battery.machine import Life, live
from tests.battery.tally import silent
from tests.helpers.interrupts import at_line, finishes, survives

LOW, HIGH = -1.0, 2.0
WRONG_REWARDS = ("0.3", None, np.nan, np.inf, 10**400, 1j, np.ma.masked, [0.1, 0.2], 2.1, -1e60, object())
WRONG_CHOICES = (-1, 0.0, True, None, "0", "x-0", b"x", [[0]], np.array([0.0]), object())
WRONG_CONTEXTS = (object(), "code", 3.0, [], {"tokens": [1, 2]}, {"tokens": 1j}, {1.5: 1}, {"tokens": np.inf},
                  {"tokens": 1e60}, np.zeros((2, 2)), {b"x": 1}, {"tokens": b"x"})  # fmt: skip
WRONG_ARMS = ("a", [], ["nobody"], [None], [["a"]], {"a": 1}, 3, [True])
SIZES = {"a": {"size": 1.0, "kind": None}, "b": {"size": 2.0, "kind": "x"}, "c": {"size": 4.0, "kind": "y"}}
MORE = ("d", "e", 6, 0.5, "")  # arms that may come later
seeds = st.integers(0, 2**32 - 1)
lines = st.integers(1, 1500)


class Softmax(ActingRule):
    """A rule that uses random numbers before the arm is drawn."""

    name, kind = "softmax", "BatterySoftmax"
    schema = record({})

    def select(self, view, offer, rng):
        mean, spread = view.predict(offer)
        scores = 3.0 * (mean + spread * rng.random())
        weights = np.exp(scores - scores.max())
        return Selection(weights / weights.sum())


RULES = {"default": None, "greedy": Optimistic(0.0), "uniform": Uniformly(), "softmax": Softmax()}
WORLDS = ("named", "named", "vectors", "mapped", "described")


def context(world, seed):
    """A context as users pass it; in names it may lack some, have others, and have all sorts of values."""
    rng = np.random.default_rng(seed)
    if world in ("vectors", "mapped"):
        return rng.normal(2.0, 3.0, size=2)
    tokens = float(rng.choice([rng.lognormal(5.0), 1e12, -3.0, 0.0], p=[0.9, 0.03, 0.04, 0.03]))
    found = {
        "tokens": None if rng.random() < 0.1 else tokens,
        "topic": str(rng.choice(["code", "chat", "sums", f"rare {int(rng.integers(9))}"], p=[0.4, 0.3, 0.2, 0.1])),
        "urgent": bool(rng.random() < 0.2),
        "late": [None, 1.0, "text", True][int(rng.integers(4))] if rng.random() < 0.2 else None,
    }
    if rng.random() < 0.1:
        found.pop("topic")
    if rng.random() < 0.05:
        found["unknown"] = 3.0
    return found if rng.random() < 0.95 else {}


def catch_up(bandit):
    """Have a bandit learn what is new in its journal, as every call of it does first."""
    bandit.state_dict()


@dataclass
class Account:
    """What happened to a bandit."""

    arms: list = field(default_factory=list)  # all that ever were
    gone: set = field(default_factory=set)  # of them
    ids: list = field(default_factory=list)  # of all decisions
    played: dict = field(default_factory=dict)  # by id: the arm
    open: list = field(default_factory=list)  # ids, in order
    told: list = field(default_factory=list)  # ids and rewards
    cancelled: int = 0

    @property
    def present(self):
        return [arm for arm in self.arms if arm not in self.gone]

    def decided(self, name, arm):
        assert name not in self.played, "an id was issued twice"
        self.ids.append(name)
        self.played[name] = arm
        self.open.append(name)

    def rewarded(self, names, rewards):
        for name, reward in zip(names, rewards, strict=True):
            self.open.remove(name)
            self.told.append((name, float(reward)))

    def given_up(self, name):
        self.open.remove(name)
        self.cancelled += 1

    def came(self, label):
        if label in self.arms:
            self.gone.remove(label)
        else:
            self.arms.append(label)


class BanditLife(Life):
    @initialize(
        world=st.sampled_from(WORLDS),
        acting=st.sampled_from(sorted(RULES)),
        floor=st.sampled_from([0.0, 0.01, 0.3, 1.0]),
        control=st.sampled_from([None, None, 0.2]),
        with_rival=st.sampled_from([False, False, True]),
    )
    def begin(self, world, acting, floor, control, with_rival):
        self.world, self.acting, self.floor, self.draws_by_id = world, acting, floor, with_rival
        self.control = None if control is None or floor == 1.0 else mb.Control(next(iter(SIZES)), control)
        options = {"features": 2} if world == "mapped" else {}
        self.make = lambda **more: mb.ContextualBandit(
            SIZES if world == "described" else list(SIZES), (LOW, HIGH),
            rule=RULES[acting], floor=floor, control=self.control, rng=3, **options, **more,
        )  # fmt: skip
        journal = {"journal": MemoryJournal()} if with_rival else {}
        self.bandit, self.rival = self.make(**journal), self.make(**journal) if with_rival else None
        self.account = Account(list(SIZES))
        self.folder = tempfile.TemporaryDirectory()
        self.file = Path(self.folder.name) / "bandit"
        self.bandit.save(self.file)
        self.saved = everything(self.bandit)

    def teardown(self):
        if hasattr(self, "folder"):
            self.the_journal_leads_to_the_state(0)
            self.has_learnt_what_dense_matrices_say()
            self.folder.cleanup()
        super().teardown()

    def context(self, seed):
        return context(self.world, seed)

    def eligible(self, seed):
        """Arms to choose among: mostly all."""
        present = self.account.present
        if seed % 4 or not present:
            return None
        rng = np.random.default_rng(seed)
        return [present[i] for i in rng.permutation(len(present))[: 1 + seed // 4 % len(present)]]

    def reward(self, seed):
        return float(
            np.random.default_rng(seed).choice([LOW, HIGH, 0.0, np.random.default_rng(seed).uniform(LOW, HIGH)])
        )

    def made(self, choices, arms):
        """Check new choices, and enter them into the books."""
        wanted = [arm for arm in self.account.present if arms is None or arm in arms]
        for choice in choices:
            shares = np.asarray(choice.probabilities)
            assert list(choice.probabilities) == wanted
            assert abs(shares.sum() - 1.0) < 1e-9
            assert shares.min() >= self.floor / len(wanted) * (1.0 - 1e-9)
            assert (
                0.0 < choice.probability == choice.probabilities[choice.arm] == dict(choice.probabilities)[choice.arm]
            )
            controlled = self.control is not None and self.control.arm in wanted
            assert (choice.group is not None) == controlled
            if choice.group == "control":
                assert choice.arm == self.control.arm
            if (self.acting == "uniform" or self.floor == 1.0) and not controlled:
                np.testing.assert_allclose(shares, 1.0 / len(wanted), rtol=1e-12)
            self.account.decided(choice.id, choice.arm)

    def refuses(self, work):
        state, count = self.bandit.state, len(self.bandit.journal)
        try:
            work()
        except MixbanditError:
            assert self.bandit.state is state
            assert len(self.bandit.journal) == count
        else:
            raise AssertionError("nonsense was accepted")

    # What users do

    @precondition(lambda self: self.account.present)
    @rule(seed=seeds)
    def ask(self, seed):
        arms = self.eligible(seed)
        self.made([self.bandit.ask(self.context(seed), arms=arms)], arms)

    @precondition(lambda self: self.account.present)
    @rule(seed=seeds, n=st.integers(0, 20))
    def ask_many(self, seed, n):
        """The same as asking one by one, bit for bit."""
        contexts, arms = [self.context(seed + i) for i in range(n)], self.eligible(seed)
        twin, other = copy.copy(self.bandit), copy.copy(self.bandit)
        with SAME_IDS:  # on which the random numbers depend, where the journal was passed in
            twin.ask_many(contexts, arms=arms)
            for each in contexts:
                other.ask(each, arms=arms)
        assert behaviour(twin) == behaviour(other)
        table = np.array(contexts) if self.world in ("vectors", "mapped") and n else contexts
        self.made(self.bandit.ask_many(table, arms=arms), arms)

    @precondition(lambda self: self.account.open)
    @rule(which=seeds, seed=seeds)
    def tell(self, which, seed):
        name, reward = self.account.open[which % len(self.account.open)], self.reward(seed)
        self.bandit.tell(name, reward)
        self.account.rewarded([name], [reward])

    @precondition(lambda self: self.account.open)
    @rule(seed=seeds, share=st.floats(0.0, 1.0))
    def tell_many(self, seed, share):
        """The same as telling one by one, bit for bit."""
        order = np.random.default_rng(seed).permutation(len(self.account.open))
        names = [self.account.open[i] for i in order[: int(share * len(order))]]
        rewards = [self.reward(seed + i) for i in range(len(names))]
        twin, other = copy.copy(self.bandit), copy.copy(self.bandit)
        twin.tell_many(names, rewards)
        for name, reward in zip(names, rewards, strict=True):
            other.tell(name, reward)
        assert behaviour(twin) == behaviour(other)
        self.bandit.tell_many(names, rewards)
        self.account.rewarded(names, rewards)

    @precondition(lambda self: self.account.open)
    @rule(which=seeds)
    def cancel(self, which):
        name = self.account.open[which % len(self.account.open)]
        self.bandit.cancel(name)
        self.account.given_up(name)

    @rule(which=seeds)
    def add_arm(self, which):
        absent = [label for label in (*self.account.arms, *MORE) if label not in self.account.present]
        if absent:
            label = absent[which % len(absent)]
            self.bandit.add_arm(label, self.described(label, which))
            self.account.came(label)

    def described(self, label, seed):
        """The features of an arm that comes for the first time."""
        if self.world != "described" or label in self.account.arms:
            return None
        return {"size": float(seed % 7), "kind": ("x", "z")[seed % 2]}

    @precondition(lambda self: self.account.present)
    @rule(which=seeds)
    def remove_arm(self, which):
        label = self.account.present[which % len(self.account.present)]
        self.bandit.remove_arm(label)
        self.account.gone.add(label)

    @precondition(lambda self: self.account.present)
    @rule(seed=seeds, sigma=st.sampled_from([None, 0.5]))
    def look(self, seed, sigma):
        """Looking changes nothing."""
        before = everything(self.bandit)
        found = self.bandit.interval(self.context(seed), arms=self.eligible(seed), norm_bound=3.0, sigma=sigma)
        assert np.isfinite([found.lower, found.upper]).all()
        assert (found.lower <= found.upper).all()
        assert found.shortfall >= 0.0
        assert str(found)
        assert repr(self.bandit)
        assert everything(self.bandit) == before

    # What others do

    @precondition(lambda self: self.rival is not None and self.account.present)
    @rule(seed=seeds)
    def another_process_decides(self, seed):
        """A bandit on the same journal knows all that this one knows, and the other way round."""
        choice = self.rival.ask(self.context(seed))
        catch_up(self.bandit)
        self.made([choice], None)
        if seed % 2:
            reward = self.reward(seed)
            self.rival.tell(choice, reward)
            self.account.rewarded([choice.id], [reward])
            catch_up(self.bandit)
        catch_up(self.rival)
        assert behaviour(self.rival) == behaviour(self.bandit)

    # What goes wrong

    @rule(value=st.sampled_from(WRONG_REWARDS), choice=st.sampled_from(WRONG_CHOICES))
    def tell_nonsense(self, value, choice):
        self.refuses(lambda: self.bandit.tell(choice, 0.5))
        self.refuses(lambda: self.bandit.cancel(choice))
        self.refuses(lambda: self.bandit.tell_many([choice], [0.5]))
        if self.account.open:
            first = self.account.open[0]
            self.refuses(lambda: self.bandit.tell(first, value))
            self.refuses(
                lambda: self.bandit.tell_many(
                    [*self.account.open[1:], first, first], [0.1] * (len(self.account.open) + 1)
                )
            )
            self.refuses(lambda: self.bandit.tell_many([first], [0.1, 0.2]))

    @precondition(lambda self: len(self.account.ids) > len(self.account.open))
    @rule(which=seeds)
    def tell_twice(self, which):
        gone = [name for name in self.account.ids if name not in self.account.open]
        self.refuses(lambda: self.bandit.tell(gone[which % len(gone)], 0.1))
        self.refuses(lambda: self.bandit.cancel(gone[which % len(gone)]))

    @rule(wrong=st.sampled_from(WRONG_CONTEXTS), arms=st.sampled_from(WRONG_ARMS), seed=seeds)
    def ask_nonsense(self, wrong, arms, seed):
        self.refuses(lambda: self.bandit.ask(wrong))
        self.refuses(lambda: self.bandit.ask_many([self.context(seed), wrong]))
        self.refuses(lambda: self.bandit.ask(self.context(seed), arms=arms))
        self.refuses(lambda: self.bandit.add_arm(None))
        self.refuses(lambda: self.bandit.remove_arm("nobody"))
        if self.account.present:
            self.refuses(lambda: self.bandit.add_arm(self.account.present[0]))
        if self.account.gone:
            self.refuses(lambda: self.bandit.remove_arm(min(self.account.gone, key=str)))
            self.refuses(lambda: self.bandit.ask(self.context(seed), arms=list(self.account.gone)))

    @precondition(lambda self: not self.draws_by_id)  # else a twin decides differently
    @rule(
        what=st.sampled_from(["ask", "ask_many", "tell", "tell_many", "cancel", "arms"]),
        seed=seeds,
        line=seeds,
    )
    def interrupt(self, what, seed, line):
        """Ctrl-C at a random line: the call has happened, or it has not."""
        work, record_it = self._deed(what, seed)
        twin, before = copy.copy(self.bandit), behaviour(self.bandit)
        with at_line(0, lambda: None) as left:
            work(twin)
        after = behaviour(twin)
        known = set(self.account.ids)
        finishes(lambda: work(self.bandit), 1 + int(np.random.default_rng(line).integers(-left[0])))
        catch_up(self.bandit)  # the journal may have what the interrupt kept from the state
        now = behaviour(self.bandit)
        assert now in (before, after), "an interrupt left half a call"
        if now == after != before:
            record_it([each for each in self.bandit.open if each not in known])

    def _deed(self, what, seed):
        """A call, and how it is entered into the books with the ids of new decisions."""
        waiting, present = self.account.open, self.account.present
        if what == "tell" and waiting:
            name, reward = waiting[seed % len(waiting)], self.reward(seed)
            return lambda b: b.tell(name, reward), lambda _: self.account.rewarded([name], [reward])
        if what == "tell_many" and waiting:
            names, rewards = list(waiting[: 1 + seed % 5]), [self.reward(seed + i) for i in range(5)]
            rewards = rewards[: len(names)]
            return lambda b: b.tell_many(names, rewards), lambda _: self.account.rewarded(names, rewards)
        if what == "cancel" and waiting:
            name = waiting[seed % len(waiting)]
            return lambda b: b.cancel(name), lambda _: self.account.given_up(name)
        if what == "arms" and len(present) > 1:
            label = present[seed % len(present)]
            return lambda b: b.remove_arm(label), lambda _: self.account.gone.add(label)
        if not present:
            label = self.account.arms[seed % len(self.account.arms)]
            return lambda b: b.add_arm(label), lambda _: self.account.came(label)
        contexts = [self.context(seed + i) for i in range(1 if what == "ask" else 4)]
        return lambda b: b.ask_many(contexts), self._found

    def _found(self, names):
        """Enter decisions that an interrupt kept from whoever asked."""
        made = {event.id: event for event in self.bandit.journal.since(0) if isinstance(event, DecidedInContext)}
        for name in names:
            self.account.decided(name, self.account.arms[made[name].arm])

    @rule(seed=seeds)
    def save_and_load(self, seed):
        """What is loaded goes on with the same decisions."""
        self.bandit.save(self.file)
        self.saved = everything(self.bandit)
        again = mb.load(self.file)
        assert everything(again) == self.saved
        twin, other = copy.copy(self.bandit), copy.copy(again)
        for each in (twin, other) if self.account.present else ():
            with SAME_IDS:
                choices = each.ask_many([self.context(seed + i) for i in range(3)])
                each.tell(choices[1], 0.5).ask(self.context(seed))
        assert behaviour(twin) == behaviour(other)
        self.bandit, self.rival = again, None

    @rule(line=lines)
    def die_while_saving(self, line):
        """A kill leaves the file of before or the new one."""
        new = everything(self.bandit)
        done = survives(lambda: self.bandit.save(self.file), line)
        found = everything(mb.load(self.file))
        assert found == new if done else found in (self.saved, new)
        self.saved = found

    @rule(seed=seeds)
    def part_ways(self, seed):
        """What happens to a copy the bandit does not know, and the other way round."""
        before = everything(self.bandit)
        twin = copy.copy(self.bandit)
        assert everything(twin) == before
        if self.account.present:
            choice = twin.ask(self.context(seed))
            assert choice.id not in self.account.played
            twin.tell(choice, 0.5)
            self.refuses(lambda: self.bandit.tell(choice, 0.5))
        twin.add_arm("only there", None if self.world != "described" else {"size": 1.0})
        assert everything(self.bandit) == before

    # What must be true all the time

    @invariant()
    def nothing_is_lost_or_doubled(self):
        if not hasattr(self, "bandit"):
            return
        bandit, account = self.bandit, self.account
        assert bandit.arms == account.present
        assert bandit.open == account.open
        assert bandit.state.counts == (len(account.ids), len(account.told), account.cancelled)
        assert len(bandit.journal) == bandit.state.seen

    @rule(seed=seeds)
    def the_journal_leads_to_the_state(self, seed):
        """Bit for bit, however many events are folded at once."""
        state, events = State.start(*self.bandit.origin), list(self.bandit.journal.since(0))
        rng = np.random.default_rng(seed)
        while events:
            size = int(rng.integers(1, 12))
            state, events = folded(self.bandit, state, events[:size]), events[size:]
        mine = self.bandit.state
        for ours, theirs in ((mine.predictor, state.predictor), (mine.features, state.features)):
            np.testing.assert_equal(ours.state_dict(), theirs.state_dict())
        assert mine.roster.active == state.roster.active
        assert mine.counts == state.counts
        assert everything(mb.ContextualBandit.from_state_dict(self.bandit.state_dict())) == everything(self.bandit)

    @rule()
    def has_learnt_what_dense_matrices_say(self):
        """Ridge regression by its definition, on rows in the scale of now."""
        if not self.account.told:
            return
        state, account = self.bandit.state, self.account
        contexts = {e.id: e.context for e in self.bandit.journal.since(0) if isinstance(e, DecidedInContext)}
        numbers = np.arange(len(account.arms))
        rows = {name: state.features.row(read) for name, read in contexts.items()}
        told = [(name, (reward - LOW) / (HIGH - LOW)) for name, reward in account.told]  # as predictors know them
        described = state.roster.rows
        query = rows[account.ids[-1]]
        found = state.predictor.predict(state.offer(query, numbers, tuple(account.arms))).mean
        for number, arm in enumerate(account.arms):
            if described is None:
                own = [(rows[name], reward) for name, reward in told if account.played[name] == arm]
                x = query
            else:
                arms = {name: account.arms.index(account.played[name]) for name, _ in told}
                own = [(np.kron(rows[name], described[arms[name]]), reward) for name, reward in told]
                x = np.kron(query, described[number])
            phi = np.array([row for row, _ in own]).reshape(-1, len(x))
            gram = phi.T @ phi + self.bandit.origin[2].ridge * np.eye(len(x))
            expected = x @ np.linalg.solve(gram, phi.T @ np.array([reward for _, reward in own]))
            scale = max(1.0, float(np.linalg.norm(x)))
            assert abs(found[number] - expected) <= 1e-6 * scale, (arm, found[number], expected)


def run(budget, seed, progress=silent):
    return live(BanditLife, "lives of a contextual bandit (steps)", budget, seed, progress)
