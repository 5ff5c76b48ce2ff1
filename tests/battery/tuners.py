"""The life of a tuner: asked, told late, wrong and twice, interrupted, killed while saving, taught other runs."""

import tempfile
from pathlib import Path

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

import mixbandit as mb
from mixbandit._files import encoded
from mixbandit.bandits import Thompson
from mixbandit.errors import MixbanditError
from tests.battery.machine import Life, live
from tests.battery.tally import silent
from tests.helpers.interrupts import finishes, survives
from tests.helpers.worlds import lasting

SPACES = {
    "numbers": mb.Space({"x": mb.Float(0.1, 10.0, log=True), "n": mb.Int(1, 5)}),
    "grid": mb.Space({"kind": mb.Categorical(["a", "b", 3]), "step": mb.Float(0.0, 1.0, step=0.25)}),
    "conditional": mb.Space(
        {"kind": mb.Categorical(["linear", "poly"]), "degree": mb.Int(2, 4), "__float__": mb.Float(0.0, 1.0)},
        {"degree": ("kind", ["poly"])},
    ),
}
ASSUMPTIONS = {
    "range": {"reward_range": (0.0, 1.0), "samples": 50, "rows": "fresh"},
    "level": {"sigma": 0.1, "norm_bound": 3.0},
    "down": {"reward_range": (-1.0, 2.0), "samples": 200, "rows": "fresh", "direction": "minimize"},
}
WRONG_VALUES = ("0.3", None, np.nan, np.inf, -np.inf, 10**400, 1j, np.complex128(0.2 + 1j), np.ma.masked, [0.5, 0.6])
seeds = st.integers(0, 2**32 - 1)


def everything(tuner):
    return lasting(encoded(tuner.state_dict(), "tuner"))


def but_for_refutation(remembered):
    return {**remembered, "policy": {**remembered["policy"], "refuted": None}}


class TunerLife(Life):
    @initialize(
        space=st.sampled_from(sorted(SPACES)),
        stated=st.sampled_from(sorted(ASSUMPTIONS)),
        initial=st.integers(0, 4),
        acting=st.sampled_from(["default", "exact", "Thompson"]),
    )
    def begin(self, space, stated, initial, acting):
        self.space = SPACES[space]
        rules = {"default": {}, "exact": {"exact": True, "exploration": 1.0}, "Thompson": {"acting": Thompson()}}
        features = mb.WithConstant(mb.RandomFourier(self.space.dim, 6, 0.5, rng=0))
        self.make = lambda: mb.Tuner(
            self.space, features=features, initial=initial, rng=3, **rules[acting], **ASSUMPTIONS[stated]
        )
        self.tuner = self.make()
        self.waiting, self.history, self.rounds, self.refuted = {}, [], 0, False
        self.folder = tempfile.TemporaryDirectory()
        self.file = Path(self.folder.name) / "tuner"
        self.tuner.save(self.file)
        self.saved = everything(self.tuner)

    def teardown(self):
        if hasattr(self, "folder"):
            self.agrees_with_a_tuner_that_learnt_everything_at_once()
            self.folder.cleanup()
        super().teardown()

    def value(self, seed):
        low, high = self.tuner.assumptions.reward_range or (-0.5, 0.5)
        return float(np.random.default_rng(seed).uniform(low, high)) if seed % 7 else 0.5 * (low + high)

    # What users do

    def note_asked(self, trials):
        for trial in trials:
            assert self.space.same(trial.parameters, self.space.decode(self.space.encode(trial.parameters)))
            low, high = trial.interval
            assert low <= high or not trial.trusted
            # Ids of choices that were moved to the nearest configuration are skipped.
            assert trial.number >= self.rounds
            self.rounds = trial.number + 1
            self.waiting[trial.number] = trial

    @rule()
    def ask(self):
        self.note_asked([self.tuner.ask()])

    @rule(n=st.integers(1, 3))
    def ask_for_several(self, n):
        self.note_asked(self.tuner.ask(n))

    @rule(seed=seeds)
    def adopt(self, seed):
        (parameters,) = self.space.sample(1, rng=seed)
        trial = self.tuner.adopt(parameters)
        assert trial.parameters == parameters
        self.note_asked([trial])

    @precondition(lambda self: self.waiting)
    @rule(which=seeds, seed=seeds, by_id=st.booleans())
    def tell(self, which, seed, by_id):
        trial = self.any_waiting(which)
        value = self.value(seed)
        self.tuner.tell(trial.id if by_id else trial, value)
        self.note_told(trial, value)

    def any_waiting(self, which):
        return self.waiting[sorted(self.waiting)[which % len(self.waiting)]]

    def note_told(self, trial, value):
        del self.waiting[trial.number]
        self.history.append((trial.parameters, value))

    @precondition(lambda self: self.waiting)
    @rule(which=seeds)
    def fail(self, which):
        trial = self.any_waiting(which)
        self.tuner.fail(trial)
        del self.waiting[trial.number]

    @rule(seed=seeds, n=st.integers(1, 4))
    def learn(self, seed, n):
        run = [(parameters, self.value(seed + i)) for i, parameters in enumerate(self.space.sample(n, rng=seed))]
        self.tuner.learn(run)
        self.history += run

    @precondition(lambda self: self.history)
    @rule(by=st.sampled_from(["lower", "mean"]))
    def look(self, by):
        before = but_for_refutation(everything(self.tuner))
        found = self.tuner.recommend(by)
        assert self.space.same(found.parameters, self.space.decode(self.space.encode(found.parameters)))
        again = self.tuner.interval(found.parameters)
        np.testing.assert_allclose(found.interval, again, rtol=1e-9, atol=1e-12)
        str(self.tuner.audit())
        assert but_for_refutation(everything(self.tuner)) == before

    # What goes wrong

    @precondition(lambda self: self.waiting)
    @rule(which=seeds, value=st.sampled_from(WRONG_VALUES))
    def tell_nonsense(self, which, value):
        number = self.any_waiting(which).id
        self.refuses(lambda: self.tuner.tell(number, value))
        if self.tuner.assumptions.sigma is None:
            self.refuses(lambda: self.tuner.tell(number, 7.0))

    @rule(seed=seeds)
    def tell_twice_or_of_an_unknown_trial(self, seed):
        gone = [number for number in range(self.rounds) if number not in self.waiting] or [self.rounds]
        self.refuses(lambda: self.tuner.tell(gone[seed % len(gone)], 0.5))
        self.refuses(lambda: self.tuner.fail(gone[seed % len(gone)]))
        self.refuses(lambda: self.tuner.tell("0", 0.5))

    @rule(which=st.sampled_from([{}, {"nonsense": 1}, {"x": np.nan, "n": 1}, {"kind": [], "step": 0.1}, None]))
    def give_nonsense(self, which):
        self.refuses(lambda: self.tuner.adopt(which))
        self.refuses(lambda: self.tuner.interval(which))
        self.refuses(lambda: self.tuner.learn([(which, 0.5)]))
        self.refuses(lambda: self.tuner.ask(0))

    def refuses(self, work):
        before = self.tuner.state
        try:
            work()
        except MixbanditError:
            assert self.tuner.state.history is before.history
            assert self.tuner.state.bandit.pending is before.bandit.pending
            assert self.tuner.state.bandit.moment is before.bandit.moment
        else:
            raise AssertionError("nonsense was accepted")

    @rule(what=st.sampled_from(["ask", "tell", "fail", "learn", "adopt"]), seed=seeds, line=st.integers(1, 1500))
    def interrupt(self, what, seed, line):
        work, record = self._deed(what, seed)
        twin = self.tuner.copy()
        before = but_for_refutation(everything(self.tuner))
        result = work(twin)
        after = but_for_refutation(everything(twin))
        finishes(lambda: work(self.tuner), line)
        now = but_for_refutation(everything(self.tuner))
        assert now in (before, after), "an interrupt left half a call"
        if now == after != before:
            record(result)

    def _deed(self, what, seed):
        if what in ("tell", "fail") and self.waiting:
            trial = self.any_waiting(seed)
            if what == "fail":
                return lambda tuner: tuner.fail(trial), lambda _: self.waiting.pop(trial.number)
            value = self.value(seed)
            return lambda tuner: tuner.tell(trial, value), lambda _: self.note_told(trial, value)
        if what == "learn":
            run = [(parameters, self.value(seed)) for parameters in self.space.sample(2, rng=seed)]
            return lambda tuner: tuner.learn(run), lambda _: self.history.extend(run)
        if what == "adopt":
            (parameters,) = self.space.sample(1, rng=seed)
            return lambda tuner: tuner.adopt(parameters), self.note_latest
        return lambda tuner: tuner.ask(), self.note_latest

    def note_latest(self, _):
        """The trial as the tuner has it: that of a copy has another id."""
        self.note_asked([self.tuner.pending[-1]])

    @rule()
    def save_and_load(self):
        self.tuner.save(self.file)
        self.saved = everything(self.tuner)
        self.tuner = mb.Tuner.load(self.file)
        assert everything(self.tuner) == self.saved

    @rule(line=st.integers(1, 600))
    def die_while_saving(self, line):
        new = everything(self.tuner)
        done = survives(lambda: self.tuner.save(self.file), line)
        found = everything(mb.load(self.file))
        assert found == new if done else found in (self.saved, new)
        self.saved = found

    # What must be true all the time

    @invariant()
    def nothing_is_lost_or_doubled(self):
        if not hasattr(self, "tuner"):
            return
        tuner = self.tuner
        assert [trial.number for trial in tuner.pending] == sorted(self.waiting)
        for trial in tuner.pending:
            assert self.space.same(trial.parameters, self.waiting[trial.number].parameters)
        assert tuner.told == len(self.history)
        assert [told.value for told in tuner.history] == [value for _, value in self.history]
        assert tuner.refuted or not self.refuted, "a refutation was forgotten"
        self.refuted = tuner.refuted

    @rule()
    def agrees_with_a_tuner_that_learnt_everything_at_once(self):
        for told, (parameters, _) in zip(self.tuner.history, self.history, strict=True):
            assert self.space.same(told.parameters, parameters)
        once = self.make()
        if self.history:
            once.learn(self.history)
        for probe in self.space.sample(3, rng=0):
            ours, theirs = self.tuner.interval(probe), once.interval(probe)
            np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-9)


def run(budget, seed, progress=silent):
    return live(TunerLife, "lives of a tuner (steps)", budget, seed, progress)
