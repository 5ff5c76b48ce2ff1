"""Ctrl-C at every instruction, and processes killed while they work: nothing may be lost, doubled or half done."""

import copy
import functools
import itertools
import os
import signal
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

import mixbandit as mb
from mixbandit._files import encoded
from mixbandit.simulate import ChangingArms
from tests.bandits.contextual.worlds import behaviour, contexts, lived
from tests.bandits.contextual.worlds import make as make_bandit
from tests.battery.tally import Tally, silent
from tests.helpers.interrupts import finishes, instructions, outlasts
from tests.helpers.worlds import ARMS, PHI, lasting, make, play, reward

SPACE = mb.Space({"x": mb.Float(0.0, 1.0), "kind": mb.Categorical(["a", "b"])})


def everything(subject):
    """All that it remembers; ids and times are never the same twice, and are left out."""
    return lasting(encoded(subject.state_dict(), "state"))


def tuner():
    features = mb.WithConstant(mb.RandomFourier(SPACE.dim, 8, 0.5, rng=0))
    return mb.Tuner(SPACE, features=features, reward_range=(0.0, 1.0), samples=20, rows="fresh", initial=3, rng=0)


# Interrupts


def interrupts(budget, seed, progress=silent):
    """Calls of policies and tuners, each interrupted at a random instruction: they have happened, or they have not.

    Every second case is a signal at a random moment instead, which may come inside compiled code.
    """
    tally = Tally("interrupts (Ctrl-C at a random instruction)")
    lives = {name: _Life(name, work) for name, work in LIVES.items()}
    with tempfile.TemporaryDirectory() as folder:
        deeds = list(_deeds(Path(folder)))
        for case in range(budget):
            rng = np.random.default_rng([seed, case])
            if case % 2:
                lives[list(LIVES)[int(rng.integers(len(LIVES)))]].interrupt(rng, tally, f"seed {seed}, case {case}")
                progress(case + 1)
                continue
            name, deed = deeds[int(rng.integers(len(deeds)))]
            try:
                before, after, length, subject, work, state, left_over = deed()
            except mb.MixbanditError as error:
                tally.fail(f"seed {seed}, case {case}: {name} cannot be done again from the same state: {error}")
                continue
            subject.state = state
            done = finishes(work, int(rng.integers(1, length + 1)), "opcode")
            now = everything(subject)
            if now not in (before, after) or (done and now != after):
                tally.fail(f"seed {seed}, case {case}: {name}, interrupted, is half done")
            elif left_over():
                tally.fail(f"seed {seed}, case {case}: {name}, interrupted, leaves {left_over()}")
            else:
                tally.note("done" if now == after else "not done")
            progress(case + 1)
    return tally


def _deeds(folder):
    """Calls by name, each with the states before and after it and its length in instructions."""
    for kind in ("CMMUCB", "AMMUCB", "IDS", "UCB over a grid, exploration 0.2"):
        for strict in (False, True):
            policy = make(kind, strict=strict, keep_history=True)
            play(policy, 3)
            first, second, third = policy.ask(n=3)
            policy.tell(second, reward(second, 4))
            calls = {
                "tell": lambda p=policy, c=first: p.tell(c, reward(c, 3)),
                "tell of two": lambda p=policy, c=(first, third): p.tell(list(c), [0.1, 0.2]),
                "ask": policy.ask,
                "ask for two": lambda p=policy: p.ask(n=2),
                "cancel": lambda p=policy, c=third: p.cancel(c, played=True),
                "adopt": lambda p=policy: p.adopt(ARMS.actions[4]),
                "learn": lambda p=policy: p.learn(ARMS.actions[:3], [0.1, 0.2, 0.3]),
                "save": lambda p=policy: p.save(folder / "policy"),
                "certificate": policy.certificate,
            }
            for name, work in calls.items():
                yield f"{name} of {kind}{' (strict)' if strict else ''}", _measured(policy, work, folder)
    tuned = tuner()
    for value in (0.2, 0.4, 0.5, 0.3):
        tuned.tell(tuned.ask(), value)
    trial, other = tuned.ask(2)
    calls = {
        "tell": lambda: tuned.tell(trial, 0.6),
        "ask": tuned.ask,
        "fail": lambda: tuned.fail(other),
        "adopt": lambda: tuned.adopt({"x": 0.5, "kind": "a"}),
        "learn": lambda: tuned.learn([({"x": 0.1, "kind": "b"}, 0.7), ({"x": 0.2, "kind": "a"}, 0.4)]),
        "save": lambda: tuned.save(folder / "tuner"),
    }
    for name, work in calls.items():
        yield f"{name} of a tuner", _measured(tuned, work, folder)
    decided = _Copied(lived(make_bandit()))
    first, second, *_ = decided.bandit.open
    given = [{"tokens": 3.0, "topic": "new"}, {"tokens": None, "topic": "code"}, {}]
    calls = {
        "ask": lambda: decided.bandit.ask(given[0]),
        "ask_many": lambda: decided.bandit.ask_many(given),
        "tell": lambda: decided.bandit.tell(first, 0.5),
        "tell_many": lambda: decided.bandit.tell_many([second, first], [0.5, 0.1]),
        "cancel": lambda: decided.bandit.cancel(first),
        "add_arm": lambda: decided.bandit.add_arm("new"),
        "remove_arm": lambda: decided.bandit.remove_arm("a"),
        "interval": lambda: decided.bandit.interval(given[1], norm_bound=2.0),
        "save": lambda: decided.bandit.save(folder / "bandit"),
    }
    for name, work in calls.items():
        yield f"{name} of a contextual bandit", _measured(decided, work, folder)


class _Copied:
    """A contextual bandit that becomes a copy of the same one again, journal included, when its state is set."""

    def __init__(self, bandit):
        self._origin, self.bandit = bandit, copy.copy(bandit)

    @property
    def state(self):
        return None

    @state.setter
    def state(self, value):
        self.bandit = copy.copy(self._origin)

    def state_dict(self):
        self.bandit.state_dict()  # learns what its journal has and its state has not
        return {"behaviour": behaviour(self.bandit)}


def _measured(subject, work, folder):
    """The call with its states and its length, measured when first needed."""

    saved = {"policy", "tuner", "bandit"}

    def left_over():
        # A file half written, or a temporary one.
        names = sorted(path.name for path in folder.iterdir())
        for name in set(names) & saved:
            mb.load(folder / name)
        return [name for name in names if name not in saved]

    state = subject.state  # now: other calls of the same subject come in between

    @functools.cache
    def measured():
        subject.state = state
        before = everything(subject)
        work()  # what is compiled or imported at the first call does not count
        subject.state = state
        length = instructions(work)
        after = everything(subject)
        subject.state = state
        return before, after, length, subject, work, state, left_over

    return measured


def _live(policy, rounds=3):
    """Rounds of a policy, which must be whole whenever they end."""

    def check():
        assert policy.moment.t == policy.sequence.t == policy.rounds - len(policy.pending), "a reward was lost"
        assert len(policy.pending) <= 1

    def live():
        play(policy, rounds)
        policy.certificate()

    return live, check


def _live_bandit():
    bandit = make_bandit()

    def work():
        for context in contexts(6):
            bandit.tell(bandit.ask(context), 0.5)

    def check():
        again = mb.ContextualBandit.from_state_dict(bandit.state_dict())
        counts = bandit.state.counts
        assert behaviour(again) == behaviour(bandit), "the journal does not lead to the state"
        assert counts.decided - counts.told == len(bandit.open) <= 1, "a decision or a reward was lost"

    return work, check


def _live_run():
    policy, records = mb.CMMUCB(2, sigma=0.1, norm_bound=2.0, rng=0), mb.Records()

    def check():
        assert policy.pending == (), "a choice is pending that was never played"
        assert policy.sequence.t == len(records), "a reward was recorded and not told, or the reverse"

    world = ChangingArms(2, np.ones(2), arms=5, sigma=0.1, seed=0)
    return lambda: mb.run(policy, world, 8, records=records, progress=False), check


def _live_tuner():
    tuned = tuner()

    def check():
        assert tuned.pending == (), "a trial is pending that nobody runs"
        assert tuned.told == len(tuned.history) == tuned.state.bandit.rounds, "a value was lost or doubled"

    return lambda: tuned.optimize(lambda parameters: 0.5, 5), check


def _live_bounds():
    sequence = mb.MartingaleMixture(PHI, sigma=0.1, norm_bound=5.0).update(ARMS.actions[:4], [0.1, 0.2, 0.3, 0.4])

    def check():
        again = mb.MartingaleMixture(PHI, sigma=0.1, norm_bound=5.0).update(ARMS.actions[:4], [0.1, 0.2, 0.3, 0.4])
        np.testing.assert_array_equal(sequence.upper(ARMS.actions), again.upper(ARMS.actions))

    return lambda: sequence.upper(ARMS.actions), check


# What uses compiled code, from the beginning, so that nothing is known from an earlier call; and a check that no call
# was half done.
LIVES = {
    "rounds on arms": lambda: _live(make("CMMUCB")),
    "rounds on a box": lambda: _live(make("CMMUCB", "box"), 1),
    "rounds of AMMUCB": lambda: _live(make("AMMUCB")),
    "run": _live_run,
    "optimize": _live_tuner,
    "bounds": _live_bounds,
    "rounds of a contextual bandit": _live_bandit,
}


class _Life:
    """Work that is interrupted by a signal at a moment up to its usual duration."""

    def __init__(self, name, begin):
        self.name, self.begin = name, begin

    @functools.cached_property
    def seconds(self):
        for _ in range(2):  # what is compiled or imported at the first call does not count
            work, _ = self.begin()
            started = time.perf_counter()
            work()
        return time.perf_counter() - started

    def interrupt(self, rng, tally, case):
        after = float(rng.uniform(0.0, self.seconds))
        work, check = self.begin()
        try:
            done = outlasts(work, after)
            check()
        except Exception as error:  # SystemError, or half a call
            tally.fail(f"{case}: {self.name}, interrupted, ends with {type(error).__name__}: {error}")
        else:
            tally.note("done" if done else "not done")


# Kills


def kills(budget, seed, progress=silent):
    """Children that work and save, killed at a random moment: what they reported done is in the file, once."""
    tally = Tally("kills (SIGKILL at a random moment)")
    subjects = [_PolicySaves, _TunerSaves, _BanditSaves, _Run]
    with tempfile.TemporaryDirectory() as folder:
        made = [kind(Path(folder) / kind.__name__) for kind in subjects]
        for case in range(budget):
            rng = np.random.default_rng([seed, case])
            subject = made[int(rng.integers(len(made)))]
            before = subject.count()
            completed = _killed(subject.work, float(rng.uniform(0.0, 0.05)))
            try:
                after = subject.count()
            except Exception as error:
                tally.fail(f"seed {seed}, case {case}: {type(subject).__name__}: {type(error).__name__}: {error}")
                continue
            most = max([before, *completed])
            if most <= after <= most + subject.ahead:
                tally.note("file whole, nothing lost")
            else:
                name = type(subject).__name__
                tally.fail(f"seed {seed}, case {case}: {name}: {most} were reported saved, the file has {after}")
            progress(case + 1)
    return tally


def _killed(work, after):
    """What a child that does `work` reports before it is killed."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():  # numpy's threads are idle, and the child only computes and writes
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            work(lambda count: os.write(writer, f"{count}\n".encode()))
        finally:
            os._exit(1)
    os.close(writer)
    time.sleep(after)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(reader) as reports:
        return [int(line) for line in reports.read().split()]


class _PolicySaves:
    """A policy that is saved after every round."""

    ahead = 1  # a save may be done and not yet reported

    def __init__(self, file):
        self.file = file
        make("CMMUCB").save(file)

    def work(self, report):
        policy = mb.load(self.file)
        while True:
            choice = policy.ask()
            policy.tell(choice, reward(choice, choice.number))
            policy.save(self.file)
            report(policy.moment.t)

    def count(self):
        policy = mb.load(self.file)
        assert policy.moment.t == policy.rounds == policy.sequence.t, "a reward was lost or doubled"
        return policy.rounds


class _TunerSaves(_PolicySaves):
    """A tuner that is saved after every value."""

    def __init__(self, file):
        self.file = file
        tuner().save(file)

    def work(self, report):
        tuned = mb.load(self.file)
        while True:
            tuned.tell(tuned.ask(), 0.5)
            tuned.save(self.file)
            report(tuned.told)

    def count(self):
        tuned = mb.load(self.file)
        assert len(tuned.history) == tuned.told
        assert not tuned.pending
        return tuned.told


class _BanditSaves(_PolicySaves):
    """A contextual bandit that is saved after every reward."""

    def __init__(self, file):
        self.file = file
        make_bandit().save(file)

    def work(self, report):
        bandit = mb.load(self.file)
        for context in itertools.cycle(contexts(20)):
            bandit.tell(bandit.ask(context), 0.5)
            bandit.save(self.file)
            report(bandit.state.counts.told)

    def count(self):
        bandit = mb.load(self.file)
        counts = bandit.state.counts
        assert counts.decided == counts.told
        assert not bandit.open
        return counts.told


class _Run(_PolicySaves):
    """`run` with a checkpoint after every round: what a killed run resumes from is what a run in one go records."""

    ahead = 10**9  # it reports nothing; its file may only grow

    def __init__(self, file):
        self.file = file
        self.reference = mb.Records()
        self.player = self._policy()
        self._play(1)

    def _policy(self):
        return mb.AMMUCB(2, sigma=0.1, norm_bound=2.0, rng=0)

    def _world(self):
        return ChangingArms(2, np.ones(2), arms=5, sigma=0.1, seed=0)

    def _play(self, rounds, progress=False):
        options = {"checkpoint": self.file, "checkpoint_seconds": 0.0, "progress": progress}
        return mb.run(self._policy(), self._world(), rounds, **options)

    def work(self, report):
        self._play(100_000, lambda done, rounds: None)

    def count(self):
        found = self._play(1)
        if len(found) > len(self.reference):
            mb.run(self.player, self._world(), len(found), records=self.reference, progress=False)
        for name in ("reward", "lower", "upper"):
            ours, theirs = (records.column(name)[: len(found)] for records in (found, self.reference))
            np.testing.assert_array_equal(ours, theirs)
        return len(found)
