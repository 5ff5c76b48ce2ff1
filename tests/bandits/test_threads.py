"""Threads that share a bandit, a tuner or a sequence lose nothing; values that were handed out cannot be changed."""

import contextlib
import copy
import pickle
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import mixbandit as mb
from mixbandit.integrations.coba import MixBanditLearner
from mixbandit.integrations.mabwiser import MixBanditMAB
from mixbandit.tuning.confirming import Confirmation, nominated
from tests.helpers.worlds import BOX, PHI, SETTINGS, make, play, reward

THREADS, EACH = 4, 40


@pytest.fixture(autouse=True)
def hurried():
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def in_threads(work):
    with ThreadPoolExecutor(THREADS) as pool:
        return [part for found in pool.map(work, range(THREADS)) for part in found]


@pytest.mark.parametrize("strict", [False, True])
def test_threads_that_share_a_bandit_lose_no_reward(strict):
    policy = make("CMMUCB", strict=strict)

    def work(thread):
        names = []
        for t in range(EACH):
            choice = policy.ask()
            names.append(choice.id)
            assert choice.lower <= choice.upper
            policy.tell(choice.id, reward(choice, t))
        return names

    names = in_threads(work)
    assert len(set(names)) == policy.rounds == policy.sequence.t == THREADS * EACH
    assert policy.pending == ()


def test_threads_that_share_a_tuner_lose_no_value():
    tuner = mb.Tuner({"x": mb.Float(0.0, 1.0)}, sigma=0.1, norm_bound=2.0, exploration=0.1, rng=0)

    def work(thread):
        trials = [tuner.ask() for _ in range(10)]
        for trial in trials:
            tuner.tell(trial, 0.4)
        return [trial.id for trial in trials]

    assert len(set(in_threads(work))) == tuner.told == len(tuner.history) == THREADS * 10


def test_threads_that_share_a_sequence_lose_no_reward():
    sequence = mb.MartingaleMixture(PHI, **SETTINGS)
    policy = mb.UCB(mb.MartingaleMixture(PHI, **SETTINGS), BOX)
    rows = np.random.default_rng(0).uniform(size=(EACH, 2))
    for each in (sequence, policy.sequence):
        in_threads(lambda thread, each=each: [each.update(row, 0.1).t for row in rows])
        assert each.t == THREADS * EACH


def test_threads_that_share_a_mean_or_an_intersection_lose_nothing():
    values = np.random.default_rng(0).integers(0, 2, size=10 * EACH)
    mean = mb.MeanSequence()
    in_threads(lambda thread: [mean.update(value).t for value in values])
    assert mean.t == THREADS * len(values)
    assert mean.record.values.sum() == THREADS * values.sum()
    assert mean.interval() == mb.MeanSequence().update(mean.record.values).interval()
    rows = np.random.default_rng(0).uniform(size=(EACH, 2))
    both = mb.sequences.RunningIntersection(mb.MartingaleMixture(PHI, **SETTINGS), rows[:5])
    in_threads(lambda thread: [both.update(row, 0.1) for row in rows])
    assert both.sequence.t == THREADS * EACH
    now = both.sequence.moment.interval(both.sequence.moment.directions(both.actions))
    assert (both.lower >= now.lower).all()
    assert (both.upper <= now.upper).all()
    assert mean.copy().lock is not mean.lock
    for each in (mean, both):
        with each.lock:
            for other in (copy.deepcopy(each), pickle.loads(pickle.dumps(each))):
                assert other.lock is not each.lock


def test_threads_that_share_a_learner_of_another_library_lose_no_reward():
    mab = MixBanditMAB(["a", "b"], sigma=0.1, norm_bound=1.0)
    mab.fit(["a"], [0.1])
    in_threads(lambda thread: [mab.partial_fit(["ab"[thread % 2]], [0.1]) for _ in range(EACH)] and [])
    assert sum(policy.sequence.t for policy in mab.policies.values()) == 1 + THREADS * EACH
    learner = MixBanditLearner(sigma=0.1, norm_bound=1.0)
    learner.predict([0.1], [[1.0, 0.0], [0.0, 1.0]])
    in_threads(lambda thread: [learner.learn([0.1], [1.0, 0.0], 0.1) for _ in range(EACH)])
    assert learner.policy.sequence.t == THREADS * EACH


def test_threads_that_share_confirmations_get_as_many_as_were_asked_for():
    met = threading.Barrier(2)

    def judge():
        with contextlib.suppress(threading.BrokenBarrierError):
            met.wait(timeout=0.5)  # both threads meet here, unless one at a time asks
        return tuner.judgement

    tuner = mb.Tuner({"x": mb.Float(0.0, 1.0)}, sigma=0.1, norm_bound=2.0, exploration=0.1, rng=0)
    tuner.optimize(lambda parameters: 0.5, 5)
    judgement = tuner.judgement
    shared = Confirmation(1, lambda: nominated(judgement, 1, ()), judge, lambda finalist: finalist.number)
    with ThreadPoolExecutor(2) as pool:
        found = [part for part in pool.map(lambda _: next(shared, None), range(2)) if part is not None]
    assert len(found) == 1
    assert shared.unused == 0


def test_a_refutation_seen_by_one_thread_waits_for_what_another_is_told():
    policy = make("CMMUCB", on_empty="inflate")
    # Filters of warnings count for all threads, so they are set before the other one can warn.
    with ThreadPoolExecutor(1) as pool, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with policy.lock:  # as in the middle of `tell`
            seen = pool.submit(policy.sequence.refute, "residuals are too large")
            with pytest.raises(TimeoutError):
                seen.result(timeout=0.3)
            assert not policy.state.refuted
        seen.result(timeout=20)
    assert policy.state.refuted


def test_copies_pickles_and_files_of_what_has_a_lock_work():
    policy = make("CMMUCB")
    play(policy, 3)
    tuner = mb.Tuner({"x": mb.Float(0.0, 1.0)}, sigma=0.1, norm_bound=2.0, rng=0)
    for each in (policy, tuner):
        with each.lock:  # held, and not passed on
            for other in (copy.copy(each), copy.deepcopy(each), pickle.loads(pickle.dumps(each))):
                assert other.lock is not each.lock
                with ThreadPoolExecutor(1) as pool:
                    pool.submit(other.ask).result(timeout=20)


@pytest.mark.parametrize("region", ["arms", "box"])
def test_what_was_handed_out_cannot_be_changed(region):
    policy = make("CMMUCB", region)
    several = policy.ask(n=2)
    for choice in (policy.ask(), *several, *policy.pending, *type(policy).from_state_dict(policy.state_dict()).pending):
        with pytest.raises(ValueError, match="read-only"):
            choice.action[:] = 0.0
        with pytest.raises(ValueError, match="read-only"):
            choice.row[:] = 0.0
        if choice.direction is not None:
            with pytest.raises(ValueError, match="read-only"):
                choice.direction[:] = 0.0


def test_contexts_are_copied_and_read_only():
    policy = make("CMMUCB", "context")
    context, contexts = np.array([0.3]), np.array([[0.3], [0.4]])
    choices = [policy.ask(context=context), policy.adopt(policy.actions.actions[0], context=context)]
    choices += policy.ask(contexts=contexts)
    context[:] = contexts[:] = 0.9
    assert [choice.context[0] for choice in choices] == [0.3, 0.3, 0.3, 0.4]
    for choice in choices:
        for part in (choice.action, choice.context):
            with pytest.raises(ValueError, match="read-only"):
                part[:] = 0.0
    changed = np.array([0.2, 0.7])
    plain = make("CMMUCB", "box")
    adopted = plain.adopt(changed)
    changed[:] = 0.0
    np.testing.assert_array_equal(adopted.action, [0.2, 0.7])


def test_certificates_and_tables_of_parameters_are_copies():
    policy = make("CMMUCB", "arms")
    play(policy, 3)
    first = policy.certificate()
    kept = first.action.copy()
    first.action[:] = 0.0
    np.testing.assert_array_equal(policy.certificate().action, kept)
    tuner = mb.Tuner({"x": mb.Float(0.0, 1.0), "k": mb.Categorical(["a", "b"])}, sigma=0.1, norm_bound=2.0, rng=0)
    trial = tuner.ask()
    known = dict(trial.parameters)
    tuner.pending[0].parameters["x"] = 0.123
    tuner.tell(trial.id, 0.4)
    assert tuner.history[0].parameters == known
    tuner.history[0].parameters["x"] = 0.123
    assert tuner.history[0].parameters == known
