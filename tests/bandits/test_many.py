"""Many decisions at once are those that `ask` would make one by one."""

import numpy as np
import pytest

import mixbandit as mb
from mixbandit.errors import InvalidInput

ARMS = mb.Arms(np.eye(5), labels="abcde")
THETA = np.random.default_rng(7).normal(size=9) / 2
KINDS = (mb.CMMUCB, mb.AMMUCB, mb.OFUL, mb.IDS)


def experienced(kind, rounds=60, **options):
    rng = np.random.default_rng(0)
    policy = kind(9, actions=ARMS, sigma=0.1, norm_bound=3.0, rng=0, **options)
    for _ in range(rounds):
        choice = policy.ask(context=rng.normal(size=4))
        policy.tell(choice, float(choice.row @ THETA) + 0.1 * rng.normal())
    return policy


@pytest.mark.parametrize("kind", KINDS)
def test_they_are_the_choices_of_ask(kind):
    policy, contexts = experienced(kind), np.random.default_rng(1).normal(size=(60, 4))
    before = policy.state
    found = policy.choose_many(contexts)
    assert policy.state is before
    one_by_one = [policy.at(policy.state).ask(context=context) for context in contexts]
    assert found.indices.tolist() == [choice.index for choice in one_by_one]
    np.testing.assert_allclose(found.lower, [choice.lower for choice in one_by_one], rtol=1e-8)
    np.testing.assert_allclose(found.upper, [choice.upper for choice in one_by_one], rtol=1e-8)
    np.testing.assert_array_equal(found.rows, [choice.row for choice in one_by_one])
    assert found.trusted


def test_sets_of_arms_may_differ():
    rng = np.random.default_rng(2)
    policy, sets = experienced(mb.CMMUCB), rng.normal(size=(30, 7, 9))
    found = policy.choose_many(arms=sets)
    for arms, index, upper in zip(sets, found.indices, found.upper, strict=True):
        bounds = policy.sequence.upper(arms)
        assert bounds[index] == pytest.approx(bounds.max(), rel=1e-9)
        assert upper == pytest.approx(bounds.max(), rel=1e-9)
    contexts = rng.normal(size=(30, 4))
    both = policy.choose_many(contexts, arms=rng.normal(size=(30, 6, 5)))
    np.testing.assert_array_equal(both.rows[:, :4], contexts)


@pytest.mark.parametrize("make", [mb.FreqTS, mb.Uniform])
def test_random_rules_decide_too(make):
    options = {} if make is mb.Uniform else {"sigma": 0.1, "norm_bound": 3.0}
    if make is mb.Uniform:
        sequence = mb.MartingaleMixture(9, sigma=0.1, norm_bound=3.0)
        policy = mb.UniformSampling(sequence, ARMS, rng=0)
    else:
        policy = make(9, actions=ARMS, rng=0, **options)
    found = policy.choose_many(np.random.default_rng(3).normal(size=(200, 4)))
    assert len(set(found.indices.tolist())) > 1
    assert (found.lower <= found.upper).all()


def test_ties_are_broken_at_random():
    policy = mb.AMMUCB(9, actions=ARMS, sigma=0.1, norm_bound=3.0, rng=0)
    counts = np.bincount(policy.choose_many(np.ones((500, 4))).indices, minlength=5)
    assert (counts > 50).all()


def test_kernels_and_features_decide():
    rng = np.random.default_rng(4)
    sequence = mb.KernelMixture(mb.RBF(1.0), sigma=0.1, norm_bound=3.0, delta=0.1)
    policy = mb.UCB(
        sequence.update(rng.uniform(size=(20, 3)), rng.normal(size=20) * 0.1), mb.Arms(rng.uniform(size=(6, 2)))
    )
    found = policy.choose_many(rng.uniform(size=(15, 1)))
    one_by_one = [policy.at(policy.state).ask(context=row[:1]) for row in found.rows]
    assert found.indices.tolist() == [choice.index for choice in one_by_one]


def test_learning_from_decisions_is_learning_their_rows():
    policy = experienced(mb.AMMUCB)
    found = policy.choose_many(np.random.default_rng(5).normal(size=(40, 4)))
    policy.learn(found.rows, found.rows @ THETA)
    assert policy.sequence.t == 100


@pytest.mark.parametrize("kind", KINDS)
def test_a_choice_for_each_context(kind):
    policy, contexts = experienced(kind, keep_history=True), np.random.default_rng(6).normal(size=(25, 4))
    found = policy.choose_many(contexts)
    before = policy.regret_bound().widths
    choices = policy.ask(contexts=contexts)
    assert [choice.index for choice in choices] == found.indices.tolist()
    assert [choice.label for choice in choices] == ["abcde"[index] for index in found.indices]
    np.testing.assert_allclose([choice.lower for choice in choices], found.lower, rtol=1e-9)
    assert len(policy.pending) == 25
    assert policy.rounds == 85
    copy = mb.policy_from_state_dict(policy.state_dict()) if hasattr(mb, "policy_from_state_dict") else None
    assert copy is None or len(copy.pending) == 25
    policy.tell(choices, [float(choice.row @ THETA) for choice in choices])
    assert policy.sequence.t == 85
    bound = policy.regret_bound()
    assert bound.widths > before
    assert bound.hindsight is not None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"contexts": [[1.0, 2.0]]}, r"contexts must have shape \(n, 4\)"),
        ({"contexts": [[1.0, 2.0, 3.0, np.nan]]}, "must be finite"),
        ({}, "pass contexts"),
        ({"contexts": np.ones((3, 4)), "arms": np.ones((2, 5, 5))}, "got 2 sets for 3 contexts"),
        ({"contexts": np.ones((3, 4)), "arms": np.ones((3, 5, 9))}, "leave no room"),
        ({"arms": np.ones((0, 5, 9))}, "no length 0"),
        ({"arms": np.full((2, 5, 9), np.inf)}, "must be finite"),
    ],
)
def test_bad_input_is_named(arguments, message):
    policy = experienced(mb.AMMUCB, rounds=3)
    before = policy.state
    with pytest.raises(InvalidInput, match=message):
        policy.choose_many(**arguments)
    assert policy.state is before


def test_a_box_has_no_arms_and_contexts_come_alone():
    with pytest.raises(InvalidInput, match="choose_many needs arms"):
        mb.AMMUCB(3, actions=mb.Box([0, 0], [1, 1]), sigma=0.1, norm_bound=1.0).choose_many([[1.0]])
    with pytest.raises(InvalidInput, match="one choice for each"):
        experienced(mb.AMMUCB, rounds=1).ask(contexts=np.ones((2, 4)), n=2)
