"""The life of a policy: asked, told late, wrong and twice, interrupted, killed while saving, loaded, merged."""

import copy
import tempfile
from pathlib import Path

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

import mixbandit as mb
from mixbandit.errors import AssumptionsRefuted, MixbanditError, NotMergeable
from tests.battery.ledger import Ledger
from tests.battery.machine import Life, live
from tests.battery.tally import silent
from tests.helpers.instances import prior
from tests.helpers.interrupts import finishes, survives
from tests.helpers.worlds import ARMS, NAMED, OTHERS, PHI, POLICIES, REGIONS, SETTINGS, THETA, everything, make

SIGMA = SETTINGS["sigma"]
PROBES = np.random.default_rng(5).uniform(size=(4, 2))
MIXTURES = ("CMMUCB", "AMMUCB", "FreqTS", "Greedy", "Uniform")  # on the standard mixture
WRONG_REWARDS = (
    "0.3",
    None,
    np.nan,
    np.inf,
    10**400,
    1j,
    np.complex128(0.2 + 1j),
    np.ma.masked,
    [0.1, 0.2],
    1e60,
    object(),
)
WRONG_CHOICES = (-1, 10**9, 0.0, True, None, "0", [[0]], np.array([0.0]))
EXACT = ("CMMUCB", "FreqTS", "Uniform", "UCB with misspecification")  # report what their sequence reports
BOUNDED = "UCB over bounded values"
# They refuse a level per reward, or such large ones.
STATED_LEVEL = ("UCB over unknown noise", "UCB over general lambda", BOUNDED)
# On arms a step takes a millisecond, on a box ten.
WORLDS = st.sampled_from(("arms",) * 6 + ("context",) * 3 + ("box",))
kinds = st.sampled_from(sorted(POLICIES | OTHERS))
seeds = st.integers(0, 2**32 - 1)
lines = st.integers(1, 600)


def but_for_refutation(remembered):
    """What a policy remembers, but for whether the data refute its assumptions: looking may find that out."""
    return {**remembered, "refuted": None}


class PolicyLife(Life):
    @initialize(kind=kinds, world=WORLDS, strict=st.booleans(), history=st.booleans(), loud=st.booleans())
    def begin(self, kind, world, strict, history, loud):
        self.kind, self.world = kind, world
        options = {"strict": strict, "keep_history": history}
        if kind in NAMED and not loud:
            options["on_empty"] = "inflate"
        self.options = options
        self.policy = make(kind, world, **options)
        self.ledger = Ledger(strict, PHI.dim_in)
        self.refuted = False
        self.folder = tempfile.TemporaryDirectory()
        self.file = Path(self.folder.name) / "policy"
        self.policy.save(self.file)
        self.saved = everything(self.policy)

    def teardown(self):
        if hasattr(self, "folder"):
            self.agrees_with_a_sequence_that_saw_everything_at_once()
            self.folder.cleanup()
        super().teardown()

    # What users do

    def offered(self, seed):
        rng = np.random.default_rng(seed)
        if self.world == "context":
            return {"arms": rng.uniform(size=(5, 1)), "context": rng.uniform(size=1)}
        if self.world == "arms" and seed % 3 == 0:
            return {"arms": rng.uniform(size=(4, 2))}
        return {}

    def reward(self, row, seed):
        """What the world returns; once in a while far from what was promised."""
        wild = 50.0 if seed % 97 == 0 and self.kind != BOUNDED else 0.0  # which refuses what its range does not hold
        return float(PHI(row)[0] @ THETA + SIGMA * np.random.default_rng(seed).normal() + wild)

    def attempt(self, work, record):
        """Do `work` on the policy and enter it into the books; refuted assumptions may refuse it."""
        try:
            result = work(self.policy)
        except AssumptionsRefuted:
            assert self.policy.refuted
        else:
            record(result)

    def made(self, choices):
        """Note what the policy's own sequence says of the choices now: their bounds must stay those of this moment."""
        exact = self.kind in EXACT and not self.policy.refuted
        sequence = self.policy.sequence
        known = (lambda row: (sequence.lower(row)[0], sequence.upper(row)[0])) if exact else (lambda row: None)
        self.ledger.made(choices, known)

    def check_bounds(self, number):
        """Before a choice goes: its bounds, mostly read now for the first time, are those of when it was made."""
        entry = self.ledger.waiting[number]
        if entry.bounds is not None:
            np.testing.assert_allclose((entry.choice.lower, entry.choice.upper), entry.bounds, rtol=1e-9)

    @rule(seed=seeds)
    def ask(self, seed):
        self.attempt(lambda policy: policy.ask(**self.offered(seed)), lambda choice: self.made([choice]))

    @rule(seed=seeds, n=st.integers(1, 4), distinct=st.booleans())
    def ask_for_several(self, seed, n, distinct):
        offered = self.offered(seed)
        self.attempt(lambda policy: policy.ask(**offered, n=n, distinct=distinct), self.made)

    @rule(seed=seeds)
    def adopt(self, seed):
        rng = np.random.default_rng(seed)
        context = {"context": rng.uniform(size=1)} if self.world == "context" else {}
        action = rng.uniform(size=2) if self.world == "box" else REGIONS[self.world].actions[seed % 12]
        self.attempt(lambda policy: policy.adopt(action, **context), lambda choice: self.made([choice]))

    @precondition(lambda self: self.ledger.pending)
    @rule(which=seeds, seed=seeds, by_id=st.booleans(), level=st.sampled_from([None, None, 0.3, 0.5]))
    def tell(self, which, seed, by_id, level):
        """Any of the choices that wait: mostly late."""
        number = self.ledger.pending[which % len(self.ledger.pending)]
        entry = self.ledger.waiting[number]
        reward = self.reward(entry.row, seed)
        if level is not None and self.kind in STATED_LEVEL:
            self.refuses(lambda: self.policy.tell(entry.choice, reward, sigma=level))
            level = None
        self.policy.tell(entry.choice.id if by_id else entry.choice, reward, sigma=level)
        self.check_bounds(number)
        self.ledger.told([number], [reward], [level])

    @precondition(lambda self: len(self.ledger.pending) > 1)
    @rule(seed=seeds, share=st.floats(0.2, 1.0))
    def tell_several(self, seed, share):
        rng = np.random.default_rng(seed)
        numbers = [int(n) for n in rng.permutation(self.ledger.pending)][
            : max(1, int(share * len(self.ledger.pending)))
        ]
        rewards = [self.reward(self.ledger.waiting[number].row, seed + number) for number in numbers]
        self.policy.tell([self.ledger.waiting[number].choice for number in numbers], rewards)
        self.ledger.told(numbers, rewards, [None] * len(numbers))

    @precondition(lambda self: self.ledger.waiting)
    @rule(which=seeds, played=st.booleans())
    def cancel(self, which, played):
        number = sorted(self.ledger.waiting)[which % len(self.ledger.waiting)]
        self.policy.cancel(self.ledger.waiting[number].choice.id, played=played)
        self.check_bounds(number)
        self.ledger.gone(number, played)

    @rule(seed=seeds, n=st.integers(1, 5))
    def learn(self, seed, n):
        rows = np.random.default_rng(seed).uniform(size=(n, 2))
        rewards = [self.reward(row, seed + i) for i, row in enumerate(rows)]
        self.policy.learn(rows, rewards)
        self.ledger.learnt_elsewhere(rows, rewards)

    @rule()
    def look(self):
        """Looking changes nothing but what is known about refutations."""
        before = everything(self.policy)
        over = {"context": np.array([0.5]), "over": ARMS.actions[:, :1]} if self.world == "context" else {}
        try:
            found = self.policy.certificate(**over, proof="search" if self.world == "box" else None)
            assert found.lower <= found.upper or not found.trusted
            self.policy.regret_bound()
            if self.kind in MIXTURES:
                str(self.policy.audit())
        except AssumptionsRefuted:
            assert self.policy.refuted
        assert but_for_refutation(everything(self.policy)) == but_for_refutation(before)

    # What goes wrong

    @precondition(lambda self: self.ledger.pending)
    @rule(value=st.sampled_from(WRONG_REWARDS), which=seeds)
    def tell_nonsense(self, value, which):
        number = self.ledger.pending[which % len(self.ledger.pending)]
        waiting = self.ledger.waiting[number].choice.id
        self.refuses(lambda: self.policy.tell(waiting, value))
        self.refuses(lambda: self.policy.tell(waiting, 0.1, sigma=-1.0))
        self.refuses(lambda: self.policy.cancel(waiting, played=np.array([True, False])))

    @rule(choice=st.sampled_from(WRONG_CHOICES))
    def tell_of_a_choice_that_is_none(self, choice):
        self.refuses(lambda: self.policy.tell(choice, 0.1))
        self.refuses(lambda: self.policy.cancel(choice))

    @precondition(lambda self: self.ledger.rounds > len(self.ledger.pending))
    @rule(which=seeds)
    def tell_twice(self, which):
        gone = sorted(set(range(self.ledger.rounds)) - set(self.ledger.pending))
        self.refuses(lambda: self.policy.tell(gone[which % len(gone)], 0.1))

    @precondition(lambda self: len(self.ledger.pending) > 1)
    @rule(value=st.sampled_from(WRONG_REWARDS))
    def tell_several_with_nonsense_among_them(self, value):
        first, second, *_ = self.ledger.pending
        self.refuses(lambda: self.policy.tell([first, second], [0.1, value]))
        self.refuses(lambda: self.policy.tell([first, first], [0.1, 0.2]))
        self.refuses(lambda: self.policy.tell([first, second], [0.1]))

    @rule(seed=seeds)
    def ask_nonsense(self, seed):
        wrong = ({"n": 0}, {"arms": np.ones((2, 5))}, {"arms": [[np.nan, 0.0]]}, {"n": "two"}, {"arms": []})
        self.refuses(lambda: self.policy.ask(**wrong[seed % len(wrong)]))
        self.refuses(lambda: self.policy.learn(np.ones((2, 2)), [0.1, np.nan]))

    def refuses(self, work):
        before = self.policy.state
        try:
            work()
        except MixbanditError:
            # Seeing that the assumptions are refuted is the one thing that an error may leave behind.
            assert all(a is b for a, b in zip(self.policy.state._replace(refuted=before.refuted), before, strict=True))
        else:
            raise AssertionError("nonsense was accepted")

    @rule(what=st.sampled_from(["ask", "tell", "cancel", "adopt", "learn"]), seed=seeds, line=lines)
    def interrupt(self, what, seed, line):
        """Ctrl-C at a random line: the call has happened, or it has not."""
        work, record = self._deed(what, seed)
        twin = copy.copy(self.policy)
        before = but_for_refutation(everything(self.policy))
        try:
            result = work(twin)
        except AssumptionsRefuted:
            return
        after = but_for_refutation(everything(twin))
        finishes(lambda: work(self.policy), line)
        now = but_for_refutation(everything(self.policy))
        assert now in (before, after), "an interrupt left half a call"
        if now == after != before:
            record(result)

    def _deed(self, what, seed):
        waiting = self.ledger.pending
        if what in ("tell", "cancel") and waiting:
            number = waiting[seed % len(waiting)]
            entry = self.ledger.waiting[number]
            if what == "cancel":
                return lambda p: p.cancel(entry.choice.id), lambda _: self.ledger.gone(number, played=False)
            reward = self.reward(entry.row, seed)
            return lambda p: p.tell(entry.choice.id, reward), lambda _: self.ledger.told([number], [reward], [None])
        if what == "learn":
            rows = np.random.default_rng(seed).uniform(size=(2, 2))
            rewards = [self.reward(row, seed + i) for i, row in enumerate(rows)]
            return lambda policy: policy.learn(rows, rewards), lambda _: self.ledger.learnt_elsewhere(rows, rewards)
        offered = self.offered(seed)
        # The twin's choice has an id of its own.
        return lambda policy: policy.ask(**offered), lambda _: self.made([self.policy.pending[-1]])

    @rule()
    def save_and_load(self):
        self.policy.save(self.file)
        self.saved = everything(self.policy)
        again = mb.load(self.file)
        assert type(again) is type(self.policy)
        assert everything(again) == self.saved
        self.policy = again

    @rule(line=lines)
    def die_while_saving(self, line):
        """A kill leaves the file of before or the new one."""
        new = everything(self.policy)
        done = survives(lambda: self.policy.save(self.file), line)
        found = everything(mb.load(self.file))
        assert found == new if done else found in (self.saved, new)
        self.saved = found

    @rule(seed=seeds)
    def merge(self, seed):
        """Shards make what one pass makes, and stay as they are."""
        rng = np.random.default_rng(seed)
        rows = rng.uniform(size=(3, 2))
        rewards = [self.reward(row, seed + i) for i, row in enumerate(rows)]
        before = self.policy.state
        other = self.fresh().update(rows, rewards)
        try:
            merged = self.policy.sequence.merge(other)
        except NotMergeable:
            assert "adaptive" in self.kind or self.kind == BOUNDED
            return
        assert self.policy.state is before
        known = copy.deepcopy(self.ledger)
        known.learnt_elsewhere(rows, rewards)
        self.same_bounds(merged, known)

    @rule(seed=seeds)
    def part_ways(self, seed):
        """What a copy learns the policy does not know, and the other way round."""
        rng = np.random.default_rng(seed)
        rows, others = rng.uniform(size=(2, 2)), rng.uniform(size=(2, 2))
        theirs = copy.deepcopy(self.ledger)
        twin = copy.copy(self.policy)
        for mine, learner, known in ((others, self.policy, self.ledger), (rows, twin, theirs)):
            rewards = [self.reward(row, 97 * (seed + i) + 1) for i, row in enumerate(mine)]  # none of them wild
            learner.learn(mine, rewards)
            known.learnt_elsewhere(mine, rewards)
        self.same_bounds(self.policy.sequence, self.ledger)
        self.same_bounds(twin.sequence, theirs)

    # What must be true all the time

    @invariant()
    def nothing_is_lost_or_doubled(self):
        if not hasattr(self, "policy"):
            return
        policy, ledger = self.policy, self.ledger
        assert [choice.number for choice in policy.pending] == ledger.pending
        assert policy.rounds == ledger.rounds
        assert policy.moment.t == policy.sequence.t == len(ledger.learnt)
        for choice in policy.pending:
            np.testing.assert_array_equal(choice.row, ledger.waiting[choice.number].row)
        assert policy.refuted or not self.refuted, "a refutation was forgotten"
        self.refuted = policy.refuted

    @rule()
    def agrees_with_a_sequence_that_saw_everything_at_once(self):
        self.same_bounds(self.policy.sequence, self.ledger)
        bound = self.policy.state.settled
        assert bound == self.ledger.played

    def fresh(self):
        return make(self.kind, "arms", **self.options).sequence

    def same_bounds(self, sequence, ledger):
        rows, rewards, levels = ledger.data(SIGMA)
        once = self.fresh()
        if len(rewards):
            once.update(rows, rewards, sigma=None if self.kind in STATED_LEVEL else levels)
        assert sequence.t == len(rewards)
        assert sequence.moment.is_empty == once.moment.is_empty
        try:
            ours, theirs = ((s.lower(PROBES), s.upper(PROBES)) for s in (sequence, once))
        except AssumptionsRefuted:
            return
        np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-9)
        self.contains_what_the_definition_contains(sequence, rows, rewards, levels)

    def contains_what_the_definition_contains(self, sequence, rows, rewards, levels):
        """The set by its definition: ‖W(Φθ − r)‖ ≤ R and ‖θ‖ ≤ B, with R from the t×t matrices of the paper."""
        if self.kind not in MIXTURES:
            return
        weights = SIGMA / levels
        Phi = PHI(rows) * weights[:, None] if len(rewards) else np.zeros((0, PHI.dim))
        r = rewards * weights
        theta0, Sigma0 = prior(sequence.mixture, PHI.dim)
        error = Phi @ theta0 - r
        noise = np.eye(len(r)) + Phi @ Sigma0 @ Phi.T / SIGMA**2
        log_volume = np.linalg.slogdet(noise)[1] + 2.0 * np.log(1.0 / SETTINGS["delta"])
        radius2 = error @ np.linalg.solve(noise, error) + SIGMA**2 * log_volume
        rng = np.random.default_rng(len(r))
        for size in (0.1, 1.0, 5.0):
            theta = THETA + size * rng.normal(size=PHI.dim) / np.sqrt(PHI.dim)
            slack = radius2 - np.sum((Phi @ theta - r) ** 2)
            inside = slack >= 0.0 and np.linalg.norm(theta) <= SETTINGS["norm_bound"]
            if abs(slack) > 1e-6 * radius2:
                assert sequence.contains(theta) == inside
            if inside:
                truth = PHI(PROBES) @ theta
                assert (sequence.upper(PROBES) >= truth - 1e-9).all()
                assert (sequence.lower(PROBES) <= truth + 1e-9).all()


def run(budget, seed, progress=silent):
    return live(PolicyLife, "lives of a policy (steps)", budget, seed, progress)
