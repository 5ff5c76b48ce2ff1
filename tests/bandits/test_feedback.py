"""Rewards as they come in life: lost, wrong, interrupted, of odd types."""

import warnings

import numpy as np
import pytest

import mixbandit as mb
from mixbandit.sequences import Moment
from tests.helpers.worlds import ARMS, PHI, everything, make, play, reward


def test_a_choice_that_was_never_played_leaves_no_trace_in_the_bounds():
    policy = mb.CMMUCB(1, sigma=0.1, norm_bound=1.0, rng=0)
    policy.ask([[0.2]])
    before = policy.regret_bound()
    policy.cancel(policy.ask([[1e8]]))
    after = policy.regret_bound()
    assert (after.widths, after.rounds) == (before.widths, 1)  # to the bit, whatever the scale of what was cancelled
    assert policy.rounds == 2


def test_a_choice_whose_reward_is_lost_still_counts():
    policy = mb.Uniform(1, actions=[[1.0], [0.0]], sigma=0.1, norm_bound=1.0, rng=0, keep_history=True)
    regret = 0.0
    for t in range(50):
        choice = policy.ask()
        regret += 1.0 - choice.action[0]
        if t % 10:
            policy.cancel(choice, played=True)
        else:
            policy.tell(choice, choice.action[0])
    bound = policy.regret_bound()
    assert bound.rounds == 50
    assert min(bound.widths, bound.hindsight) >= regret


@pytest.mark.parametrize("strict", [False, True])
def test_a_minute_without_results_changes_nothing(strict):
    policy = make("CMMUCB", strict=strict)
    play(policy, 3)
    policy.ask()
    before = everything(policy)
    policy.tell([], [])
    assert everything(policy) == before


def test_a_reward_that_could_not_be_learnt_is_refused_at_once():
    policy = make("CMMUCB", strict=True)
    first, second = policy.ask(n=2)
    before = everything(policy)
    for bad in (1e60, float("nan")):
        with pytest.raises(mb.InvalidInput, match="reward"):
            policy.tell(second, bad)
        with pytest.raises(mb.InvalidInput, match="reward"):
            policy.tell(second, 1e45, sigma=1e-10)
    assert everything(policy) == before
    policy.tell(second, reward(second, 0)).tell(first, reward(first, 1))
    assert policy.sequence.t == 2


def test_a_reward_that_is_held_back_can_be_withdrawn():
    policy = make("CMMUCB", strict=True)
    first, second = policy.ask(n=2)
    policy.tell(second, 0.1)
    policy.cancel(second)
    policy.tell(first, reward(first, 0))
    assert policy.sequence.t == 1


class Failing:
    """A forecaster that fails when it is told so."""

    fails = False

    def predict(self, x):
        if Failing.fails:
            raise OSError("no connection")
        return 0.0, 1.0

    def update(self, x, r):
        pass


@pytest.mark.parametrize("strict", [False, True])
def test_a_failing_forecaster_loses_nothing(strict):
    policy = mb.CMMUCB(2, actions=ARMS.actions, sigma=0.1, norm_bound=5.0, mixture=Failing(), rng=0, strict=strict)
    choices = policy.ask(n=3)
    Failing.fails = True
    try:
        if strict:
            policy.tell(choices[1], 0.1)
            with pytest.raises(OSError, match="connection"):
                policy.cancel(choices[0])
        with pytest.raises(OSError, match="connection"):
            policy.tell(choices[0], 0.2)
        assert choices[0].id in [choice.id for choice in policy.pending]
        assert policy.sequence.t == 0
    finally:
        Failing.fails = False
    policy.tell(choices[0], 0.2)
    assert policy.sequence.t == (2 if strict else 1)


def test_an_interrupt_never_lets_a_reward_count_twice(monkeypatch):
    policy = make("CMMUCB")
    choice = policy.ask()

    def interrupted(self, *arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Moment, "with_data", interrupted)
        with pytest.raises(KeyboardInterrupt):
            policy.tell(choice, 0.1)
    policy.tell(choice, reward(choice, 0))
    assert policy.sequence.t == 1
    assert policy.regret_bound().rounds == 1


def test_clicks_and_arrays_of_ids():
    policy = mb.CMMUCB(PHI, actions=ARMS, sigma=0.5, norm_bound=5.0, rng=0)
    choices = policy.ask(n=3)
    policy.tell(choices[0], True)
    policy.tell(np.array([c.id for c in choices[1:]]), np.array([False, True]))
    by_hand = mb.MartingaleMixture(PHI, sigma=0.5, norm_bound=5.0)
    by_hand.update([c.action for c in choices], [1.0, 0.0, 1.0])
    np.testing.assert_allclose(policy.sequence.upper(ARMS.actions), by_hand.upper(ARMS.actions), rtol=1e-12)


def test_nothing_is_shared_with_the_caller():
    policy = mb.CMMUCB(mb.Interaction(2, 2), actions=ARMS.actions, sigma=0.1, norm_bound=1.0, rng=0)
    x = np.array([1.0, 0.0])
    choice = policy.ask(context=x)
    x[:] = 7.0
    np.testing.assert_array_equal(choice.context, [1.0, 0.0])
    with pytest.raises(AttributeError):
        policy.actions = None


def test_one_arm_given_as_a_vector_is_explained():
    policy = mb.CMMUCB(3, sigma=0.1, norm_bound=1.0)
    with pytest.raises(mb.InvalidInput, match="for a single arm, a list of one row"):
        policy.ask([1.0, 0.0, 0.0])


def test_a_refutation_warns_once_and_at_the_users_line():
    policy = mb.CMMUCB(PHI, actions=ARMS, sigma=1e-4, norm_bound=5.0, on_empty="inflate", rng=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for t in range(60):
            choice = policy.ask()
            policy.tell(choice, reward(choice, t))
        policy.certificate()
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_labels_that_would_not_come_back_are_refused(tmp_path):
    policy = mb.CMMUCB(PHI, sigma=0.1, norm_bound=5.0, rng=0)
    policy.ask(mb.Arms(ARMS.actions, labels=[("tuple", i) for i in range(12)]))
    with pytest.raises(mb.NotStorable, match="tuple"):
        policy.save(tmp_path / "file")
    odd = mb.CMMUCB(PHI, actions=mb.Arms(ARMS.actions[:2], labels=["\udc80", "ß"]), sigma=0.1, norm_bound=5.0)
    odd.save(tmp_path / "file")
    assert mb.load(tmp_path / "file").actions == odd.actions


def test_what_is_promised_in_advance_depends_on_the_settings():
    applies = "`regret.worst_case` bounds"
    assert applies in make("CMMUCB").guarantee
    assert applies in make("AMMUCB").guarantee
    assert applies in make("CMMUCB", mixture=mb.Scaled(0.5)).guarantee
    for options in ({"misspecification": 0.1}, {"mixture": mb.Grid([0.1, 1.0])}):
        assert applies not in make("CMMUCB", **options).guarantee
    assert applies not in make("AMMUCB", alpha=0.5).guarantee
    assert applies not in make("OFUL").guarantee
    with pytest.raises(mb.InvalidInput, match="alpha ≥ alpha0"):
        mb.UCB(mb.MartingaleMixture(2, sigma=1.0, norm_bound=1.0, misspecification=0.1), alpha=0.5)


def test_play_goes_on_after_all_of_that():
    policy = make("CMMUCB")
    policy.cancel(policy.ask())
    assert play(policy, 3).shape == (3, 2)


def test_what_somebody_else_chose_counts_as_if_it_had_been_chosen_here():
    policy = mb.CMMUCB(1, actions=[[1.0], [0.0], [0.5]], sigma=0.1, norm_bound=1.0, rng=0, keep_history=True)
    choice = policy.adopt([0.5])
    assert (choice.index, choice.number, policy.rounds) == (2, 0, 1)
    assert [c.number for c in policy.pending] == [0]
    policy.tell(choice, 0.5)
    assert policy.sequence.t == 1
    bound = policy.regret_bound()
    assert bound.rounds == 1
    assert min(bound.widths, bound.hindsight) >= 0.5  # what was lost against the best arm
    twin = mb.CMMUCB(1, actions=[[1.0], [0.0], [0.5]], sigma=0.1, norm_bound=1.0, rng=0)
    twin.learn([[0.5]], [0.5])
    assert policy.sequence.upper([[1.0]]) == twin.sequence.upper([[1.0]])


def test_only_what_can_be_chosen_can_be_adopted():
    arms = mb.CMMUCB(1, actions=[[1.0], [0.0]], sigma=0.1, norm_bound=1.0)
    box = mb.CMMUCB(PHI, actions=mb.Box([0.0, 0.0], [1.0, 1.0]), sigma=0.1, norm_bound=1.0)
    for policy, bad, message in (
        (arms, [0.3], "not one of the 2 arms"),
        (box, [1.5, 0.0], "outside the box"),
        (box, [0.0], "action"),
    ):
        before = everything(policy)
        with pytest.raises(mb.InvalidInput, match=message):
            policy.adopt(bad)
        assert everything(policy) == before
    mixed = mb.Tuner({"n": mb.Int(1, 5)}, reward_range=(0, 1)).policy
    with pytest.raises(mb.InvalidInput, match="not allowed"):
        mixed.adopt([0.3])


def test_a_noise_level_that_cannot_be_used_is_refused_though_the_reward_has_to_wait():
    """Held back unchecked, it would keep the rewards of earlier choices from being told."""
    policy = make("UCB over general lambda", strict=True)
    first, second = policy.ask(n=2)
    before = policy.state
    with pytest.raises(mb.InvalidInput, match="lambda must be"):
        policy.tell(second, 0.1, sigma=0.3)
    assert policy.state is before
    policy.tell(second, 0.1).tell(first, 0.2)
    assert policy.moment.t == 2
