"""A journal of a user's own: a process is killed, and another one goes on from what it kept."""

import os
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import mixbandit as mb
from mixbandit.bandits import Policy
from mixbandit.storage import from_line
from tests.extending.outside import Boltzmann, LeastSquares, Sometimes
from tests.extending.outside.lines import LinesJournal

LIVES_AND_IS_KILLED = """
    import os, signal, sys
    from tests.extending.test_journals import make
    policy = make(sys.argv[1])
    for t in range(9):
        first, second = policy.ask(n=2)
        policy.tell(first, 0.1 * t)
        if t % 3 == 0:
            policy.cancel(second)
        policy.save(sys.argv[1] + ".saved") if t == 4 else None
    print(*[repr(float(b)) for b in policy.sequence.upper(policy.actions.rows)], policy.rounds, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def make(path):
    arms = mb.Arms(np.random.default_rng(0).normal(size=(5, 3)), labels=list("abcde"))
    sequence = mb.MartingaleMixture(3, sigma=0.5, norm_bound=2.0, delta=0.05)
    return Policy(sequence, arms, rule=Sometimes(0.2), rng=7, journal=LinesJournal(path))


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """The journal of a process that was killed, and the last words of that."""
    path = tmp_path_factory.mktemp("journal") / "events.jsonl"
    command = [sys.executable, "-c", textwrap.dedent(LIVES_AND_IS_KILLED), str(path)]
    known = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    found = subprocess.run(command, capture_output=True, text=True, check=False, env=known)
    assert found.returncode == -signal.SIGKILL, found.stderr
    *bounds, rounds = found.stdout.split()
    return path, np.array(bounds, dtype=float), int(rounds)


def test_another_process_knows_all_that_the_killed_one_did(killed):
    path, bounds, rounds = killed
    policy = make(path)
    assert policy.rounds == rounds == 18
    assert len(policy.pending) == 6
    np.testing.assert_array_equal(policy.sequence.upper(policy.actions.rows), bounds)
    # So does one that was saved half way, and reads only what came later.
    saved = mb.load(f"{path}.saved")
    assert saved.rounds == 10
    saved.follow(LinesJournal(path))
    np.testing.assert_array_equal(saved.sequence.upper(policy.actions.rows), bounds)
    mine, theirs = policy.at(policy.state).ask(n=3), saved.at(saved.state).ask(n=3)
    assert [c.label for c in mine] == [c.label for c in theirs]
    assert [c.probability for c in mine] == [c.probability for c in theirs]


def test_the_log_knows_every_probability(killed):
    path, _, _ = killed
    decided = [event for event in LinesJournal(path).since(0) if event.kind == "decided"]
    assert len(decided) == 18
    for event in decided:
        assert event.probabilities.array().sum() == pytest.approx(1.0)
        assert event.probabilities.of_arm(event.arm) > 0.0
    assert min(event.probabilities.of_arm(event.arm) for event in decided) == pytest.approx(0.04)


def test_two_processes_share_one_journal(tmp_path):
    first, second = make(tmp_path / "shared"), make(tmp_path / "shared")
    choice = first.ask()
    second.follow(second.journal).tell(choice.id, 0.5)
    first.follow(first.journal)
    assert not first.pending
    assert first.sequence.t == second.sequence.t == 1


def test_a_damaged_line_is_named_and_a_torn_one_was_never_kept(tmp_path):
    policy = make(tmp_path / "damaged")
    policy.ask()
    whole = (tmp_path / "damaged").read_text()
    (tmp_path / "damaged").write_text(whole + whole[:40])
    again = make(tmp_path / "damaged")
    assert again.rounds == 1
    again.ask()
    assert make(tmp_path / "damaged").rounds == 2
    (tmp_path / "damaged").write_text(whole[:40] + "\n")
    with pytest.raises(mb.DamagedState, match="cannot be read"):
        make(tmp_path / "damaged")
    with pytest.raises(mb.DamagedState):
        from_line("[" * 100_000)


def test_what_a_full_disk_did_not_keep_may_be_told_again(tmp_path, monkeypatch):
    policy = make(tmp_path / "events")

    def full(handle):
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="disk full"):
            policy.learn(np.eye(3)[:1], [1.0])
    policy.learn(np.eye(3)[:1], [1.0])
    assert policy.sequence.t == make(tmp_path / "events").sequence.t == 1


def test_a_predictor_follows_the_journal_too(tmp_path):
    def acting(path):
        arms = mb.Arms(np.random.default_rng(0).normal(size=(5, 3)))
        sequence = mb.MartingaleMixture(3, sigma=0.5, norm_bound=2.0, delta=0.05)
        known = {"rule": Boltzmann(0.1), "predictor": LeastSquares(3), "rng": 7}
        return Policy(sequence, arms, journal=LinesJournal(path), **known)

    policy = acting(tmp_path / "events")
    for t in range(8):
        policy.tell(policy.ask(), 0.1 * t)
    policy.learn(np.eye(3), [0.1, 0.2, 0.3])
    policy.ask()
    again = acting(tmp_path / "events")
    for mine, theirs in zip(policy.at(policy.state).ask(n=2), again.at(again.state).ask(n=2), strict=True):
        assert mine.index == theirs.index
        np.testing.assert_array_equal(mine.probabilities, theirs.probabilities)


def test_choices_that_an_interrupted_run_never_played_are_cancelled_in_its_journal(tmp_path):
    class Breaks(mb.FunctionEnvironment):
        def reward(self, t, choice):
            if t == 5:
                raise KeyboardInterrupt
            return super().reward(t, choice)

    policy = make(tmp_path / "run")
    world = Breaks(lambda action: float(action.sum()), actions=policy.actions)
    with pytest.raises(KeyboardInterrupt):
        mb.run(policy, world, 20, progress=False)
    assert policy.sequence.t == 5
    assert not policy.pending
    assert LinesJournal(tmp_path / "run").since(0)[-1].kind == "cancelled"
    again = make(tmp_path / "run")
    assert again.rounds == policy.rounds == 6
    assert not again.pending


SHARES_THE_WORK = """
    import sys
    from tests.extending.test_journals import make
    policy = make(sys.argv[1])
    for t in range(25):
        policy.tell(policy.ask(), 0.01 * t)
"""


def test_two_processes_at_once_lose_nothing_and_decide_nothing_twice(tmp_path):
    path = tmp_path / "shared"
    known = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", textwrap.dedent(SHARES_THE_WORK), str(path)]
    workers = [subprocess.Popen(command, env=known) for _ in range(2)]
    assert [worker.wait() for worker in workers] == [0, 0]
    decided = [event for event in LinesJournal(path).since(0) if event.kind == "decided"]
    # Each has a number, and so random numbers, of its own.
    assert [int(event.id.rpartition("-")[2]) for event in decided] == list(range(50))
    assert len({event.id.rpartition("-")[0] for event in decided}) >= 2
    policy = make(path)
    assert (policy.rounds, policy.sequence.t, policy.pending) == (50, 50, ())
