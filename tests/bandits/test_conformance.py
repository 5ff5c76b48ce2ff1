"""One suite that every policy must pass, on arms and on a box."""

import dataclasses

import numpy as np
import pytest

import mixbandit as mb
from mixbandit.bandits import choosing
from tests.helpers.worlds import ARMS, BOX, PHI, POLICIES, THETA, everything, make, play, reward

EVERY = [pytest.param(name, region, id=f"{name}, {region}") for name in POLICIES for region in ("arms", "box")]
on_every_policy = pytest.mark.parametrize(("name", "region"), EVERY)


@on_every_policy
def test_a_choice_tells_what_to_play_and_what_is_known_of_it(name, region):
    policy = make(name, region)
    for t in range(5):
        choice = policy.ask()
        assert choice.number == t == policy.rounds - 1
        if region == "arms":
            np.testing.assert_array_equal(choice.action, ARMS.actions[choice.index])
            assert choice.label == ARMS.labels[choice.index]
        else:
            assert choice.index is choice.label is None
            assert (choice.action >= BOX.low).all()
            assert (choice.action <= BOX.high).all()
        # Bounds are the sequence's, unscaled, at the multiplier that the policy works with.
        alpha = getattr(policy, "alpha", None)
        assert choice.lower == pytest.approx(policy.sequence.lower(choice.action, alpha)[0], rel=1e-9, abs=1e-9)
        assert choice.upper == pytest.approx(policy.sequence.upper(choice.action, alpha)[0], rel=1e-9, abs=1e-9)
        assert choice.trusted
        assert [c.number for c in policy.pending] == [t]
        policy.tell(choice if t % 2 else choice.id, reward(choice, t))
        assert policy.pending == ()
    assert policy.sequence.t == 5
    assert policy.guarantee
    assert str(policy.rounds) in repr(policy)


@on_every_policy
def test_the_same_seed_plays_the_same(name, region):
    one, other = make(name, region), make(name, region)
    np.testing.assert_array_equal(play(one, 12), play(other, 12))
    assert everything(one) == everything(other)


@on_every_policy
def test_a_saved_policy_goes_on_to_the_bit(name, region, tmp_path):
    policy = make(name, region, keep_history=True)
    play(policy, 6)
    pending = [policy.ask(), policy.ask()]
    policy.save(tmp_path / "policy")
    resumed = mb.load(tmp_path / "policy")
    assert everything(resumed) == everything(policy)
    assert [dataclasses.astuple(c)[:1] for c in resumed.pending] == [(c.number,) for c in pending]
    for each in (policy, resumed):
        each.tell(pending[1].id, reward(pending[1], 0))
        each.tell(pending[0], reward(pending[0], 1))
    np.testing.assert_array_equal(play(resumed, 6, start=6), play(policy, 6, start=6))
    assert everything(resumed) == everything(policy)


@on_every_policy
def test_late_rewards_in_any_order(name, region):
    policy = make(name, region)
    choices = [policy.ask() for _ in range(5)]
    before = policy.sequence.t
    for choice in reversed(choices):
        policy.tell(choice, reward(choice, choice.number))
    assert policy.sequence.t == before + 5
    # Arrival order does not matter to what is known: every built-in mixture here is of data as a set.
    prompt = make(name, region)
    prompt.learn(np.array([c.action for c in choices]), [reward(c, c.number) for c in choices])
    probe = np.array([[0.3, 0.8]])
    np.testing.assert_allclose(policy.sequence.upper(probe), prompt.sequence.upper(probe), rtol=1e-9)


@on_every_policy
def test_bounds_use_told_rewards_only(name, region):
    policy = make(name, region)
    play(policy, 3)
    probe = np.array([[0.3, 0.8], [0.9, 0.1]])
    before = policy.sequence.upper(probe)
    policy.ask(n=4)
    policy.ask()
    np.testing.assert_array_equal(policy.sequence.upper(probe), before)


@on_every_policy
def test_batches_and_repeated_asks_differ(name, region):
    policy = make(name, region)
    play(policy, 2)
    batch = policy.ask(n=4)
    assert [c.number for c in batch] == [2, 3, 4, 5]
    assert len({tuple(c.action) for c in batch}) == 4
    if region == "box":
        again = [policy.ask() for _ in range(3)]
        assert len({tuple(c.action) for c in [*batch, *again]}) == 7
    policy.tell(batch, [0.1, 0.2, 0.3, 0.4])
    assert policy.sequence.t == 6


def test_a_batch_larger_than_the_arms_repeats_them():
    policy = make("CMMUCB")
    batch = policy.ask(n=30)
    counts = np.bincount([c.index for c in batch], minlength=12)
    assert counts.min() >= 2
    assert len(make("CMMUCB").ask(n=1)) == 1


@on_every_policy
@pytest.mark.parametrize(
    ("tell", "says"),
    [
        (lambda p, c: p.tell(c, float("nan")), "reward.*nan"),
        (lambda p, c: p.tell(c, float("inf")), "reward"),
        (lambda p, c: p.tell(c, None), "reward must be a number"),
        (lambda p, c: p.tell(c, "good"), "reward must be a number"),
        (lambda p, c: p.tell(99, 1.0), "choice 99 is unknown"),
        (lambda p, c: p.tell(-1, 1.0), "choice -1 is unknown"),
        (lambda p, c: p.tell(0, 1.0), "choice 0 has already been told or cancelled"),
        (lambda p, c: p.tell("3", 1.0), "choice .3. is unknown"),
        (lambda p, c: p.tell([c, c], [1.0, 2.0]), "twice"),
        (lambda p, c: p.tell([c], [1.0, 2.0]), "one reward per choice, got 2 for 1"),
        (lambda p, c: p.tell(c, 1.0, sigma=-1.0), "sigma must be positive"),
        (lambda p, c: p.tell([c, 99], [1.0, 2.0]), "choice 99"),
        (lambda p, c: p.tell(dataclasses.replace(c, action=c.action + 1.0), 1.0), "another bandit"),
        (lambda p, c: p.cancel(0), "already been told or cancelled"),
        (lambda p, c: p.ask(n=0), "n must be an integer ≥ 1"),
        (lambda p, c: p.ask(context=[1.0]), "no room for a context"),
        (lambda p, c: p.ask([[1.0, 2.0, 3.0]]), "dimension 3"),
        (lambda p, c: p.ask([[np.nan, 2.0]]), "arms must be"),
        (lambda p, c: p.learn([[1.0, 2.0]], [np.nan]), "rewards"),
        (lambda p, c: p.certificate(over=[["a"]]), "over must be"),
    ],
)
def test_an_error_changes_nothing(name, region, tell, says):
    policy = make(name, region)
    play(policy, 2)
    choice = policy.ask()
    before = everything(policy)
    with pytest.raises(mb.InvalidInput, match=says):
        tell(policy, choice)
    assert everything(policy) == before


@on_every_policy
def test_an_interrupted_ask_changes_nothing(name, region, monkeypatch):
    policy = make(name, region)
    play(policy, 2)
    before = everything(policy)

    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(choosing, "made", interrupted)
    with pytest.raises(KeyboardInterrupt):
        policy.ask(n=3)
    assert everything(policy) == before


@on_every_policy
def test_looking_changes_nothing(name, region):
    policy = make(name, region, keep_history=True)
    play(policy, 4)
    policy.ask()
    before = everything(policy)
    certificate, bound = policy.certificate(), policy.regret_bound()
    assert everything(policy) == before
    assert policy.certificate().gap == certificate.gap
    assert bound.rounds == 5


@on_every_policy
def test_strict_counts_in_order_of_play(name, region):
    policy = make(name, region, strict=True)
    choices = policy.ask(n=4)
    policy.tell(choices[2], 0.2)
    policy.tell(choices[1], 0.1)
    assert policy.sequence.t == 0
    assert [c.number for c in policy.pending] == [0, 3]
    with pytest.raises(mb.InvalidInput, match="already been told"):
        policy.tell(choices[2], 0.2)
    policy.tell(choices[0], 0.0)
    assert policy.sequence.t == 3
    policy.cancel(choices[3])
    assert policy.pending == ()


def test_strict_releases_what_a_cancelled_choice_held_back(tmp_path):
    policy = make("CMMUCB", strict=True)
    first, second, third = policy.ask(n=3)
    policy.tell([second, third], [1.0, 2.0], sigma=[0.1, 0.2])
    policy.save(tmp_path / "held")
    for each in (policy, mb.load(tmp_path / "held")):
        each.cancel(first.id)
        assert each.sequence.t == 2
        expected = mb.MartingaleMixture(PHI, sigma=0.1, norm_bound=5.0, delta=0.05)
        expected.update([second.action, third.action], [1.0, 2.0], sigma=[0.1, 0.2])
        np.testing.assert_array_equal(each.sequence.upper([[0.2, 0.2]]), expected.upper([[0.2, 0.2]]))


@on_every_policy
def test_it_learns(name, region):
    """Enough that later rewards beat chance, but for the policy that is chance."""
    policy = make(name, region)
    actions = play(policy, 60)
    value = PHI(actions) @ THETA
    chance = float(np.mean(PHI(BOX.sample(4000, np.random.default_rng(0))) @ THETA))
    if name != "Uniform":
        assert value[-20:].mean() > chance
