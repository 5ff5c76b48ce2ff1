"""Policies that act on arms with a parameter each."""

import copy
import pickle

import numpy as np
import pytest

import mixbandit as mb
from mixbandit.bandits import MemoryJournal
from tests.helpers.arms import ARMS, DIM, EACH, blocks, log, rewards, rows
from tests.helpers.worlds import everything

RULES = {
    "exact": {},
    "closed form": {"alpha": 0.09},
    "less exploration": {"exploration": 0.3},
}
NAMES = ["standard", "features", "with a range", "grid", "misspecified", "kernel"]


def make(name="standard", **options):
    found = blocks(EACH[name])
    return mb.UCB(found, mb.Arms(range(ARMS)), **{"rng": 3, "keep_history": True, **options})


def contexts(n, seed=0):
    return np.random.default_rng([4, seed]).normal(size=(n, DIM)) / 2


def told(choice, context, t):
    return float(rewards(np.atleast_2d(context), np.array([choice.index]), seed=t)[0])


def play(policy, n, seed=0):
    chosen = []
    for t, context in enumerate(contexts(n, seed)):
        choice = policy.ask(context=context)
        policy.tell(choice, told(choice, context, t))
        chosen.append(choice.index)
    return chosen


@pytest.mark.parametrize("how", RULES)
@pytest.mark.parametrize("name", NAMES)
def test_the_arm_with_the_largest_score_is_played(name, how):
    """Against the scores of all arms, each from its own sequence."""
    policy = make(name, **RULES[how])
    alpha, share = RULES[how].get("alpha"), RULES[how].get("exploration", 1.0)
    for t, context in enumerate(contexts(25)):
        known = policy.sequence.interval(context, alpha=alpha)
        choice = policy.ask(context=context)
        if share == 1.0:
            assert known.upper[choice.index] >= known.upper.max() - 1e-9
        else:
            alone = [policy.sequence.of(arm).moment for arm in range(ARMS)]
            each = [(one.estimate, one.exact, one.directions(context[None])) for one in alone]
            scores = [e.maximum(x)[0] + share * (s.maximum(x)[0] - e.maximum(x)[0]) for e, s, x in each]
            assert scores[choice.index] >= max(scores) - 1e-9
        assert choice.lower == pytest.approx(known.lower[choice.index], rel=1e-9, abs=1e-12)
        assert choice.upper == pytest.approx(known.upper[choice.index], rel=1e-9, abs=1e-12)
        policy.tell(choice, told(choice, context, t))
    assert policy.sequence.t == 25


def test_rewards_learnt_by_a_policy_and_by_the_sequence_are_the_same():
    policy, found = make(), blocks()
    for t, context in enumerate(contexts(40)):
        choice = policy.ask(context=context)
        value = told(choice, context, t)
        policy.tell(choice, value)
        found.update([*context, choice.index], value)
    probe = contexts(1, seed=9)[0]
    for one, other in zip(policy.sequence.interval(probe), found.interval(probe), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_a_context_beyond_what_ridges_keep_is_learnt_by_a_policy():
    policy, found = make(), blocks()
    for scale in (1.0, 1e-9, 0.0, 1e8, 1.0):
        context = scale * contexts(1)[0]
        choice = policy.ask(context=context)
        policy.tell(choice, 0.1)
        found.update([*context, choice.index], 0.1)
    every = rows(np.tile(contexts(1)[0], (ARMS, 1)), np.arange(ARMS))
    np.testing.assert_allclose(policy.sequence.upper(every), found.upper(every), rtol=1e-12)


@pytest.mark.parametrize("name", ["standard", "grid"])
def test_pending_choices_differ_and_bounds_use_told_rewards_only(name):
    policy = make(name)
    play(policy, 10)
    probe = contexts(1, seed=9)[0]
    before = policy.sequence.interval(probe)
    batch = policy.ask(n=4, context=probe)
    assert len({choice.index for choice in batch}) == 4
    assert policy.sequence.t == 10
    for one, other in zip(policy.sequence.interval(probe), before, strict=True):
        np.testing.assert_array_equal(one, other)
    assert [choice.upper for choice in batch] == pytest.approx(before.upper[[choice.index for choice in batch]])


@pytest.mark.parametrize("name", ["standard", "grid"])
def test_pending_choices_count_as_if_they_had_returned_what_is_expected(name):
    policy = make(name)
    play(policy, 20)
    context, expecting = contexts(1, seed=9)[0], policy.sequence.copy()
    for _ in range(8):
        known, choice = expecting.interval(context), policy.ask(context=context)
        assert known.upper[choice.index] >= known.upper.max() - 1e-9
        expecting.update([*context, choice.index], known.estimate[choice.index])


def test_late_rewards_in_any_order():
    late, prompt = make(), make()
    asked = contexts(12)
    choices = [late.ask(context=context) for context in asked]
    values = [told(choice, context, t) for t, (choice, context) in enumerate(zip(choices, asked, strict=True))]
    for i in reversed(range(12)):
        late.tell(choices[i], values[i])
    prompt.learn(rows(asked, np.array([choice.index for choice in choices])), values)
    probe = contexts(1, seed=9)[0]
    for one, other in zip(late.sequence.interval(probe), prompt.sequence.interval(probe), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)


@pytest.mark.parametrize("name", ["standard", "with a range", "misspecified"])
def test_a_certificate_is_about_the_best_lower_bound(name):
    policy = make(name)
    play(policy, 40)
    for context in contexts(5, seed=9):
        known = policy.sequence.interval(context)
        found = policy.certificate(context=context)
        best = int(known.lower.argmax())
        assert found.proof == "enumerated"
        assert found.trusted
        assert found.delta == policy.sequence.delta
        assert found.lower == pytest.approx(known.lower[best], rel=1e-9)
        assert found.optimum_upper == pytest.approx(known.upper.max(), rel=1e-9)
        assert known.lower[int(found.action[-1])] == pytest.approx(known.lower.max(), rel=1e-9)
        # No other arm is better by more: arms have nothing in common.
        others = np.delete(known.upper, int(found.action[-1]))
        assert found.gap >= max(others.max() - found.lower, 0.0) - 1e-9
        apart = np.delete(policy.sequence.advantage(context, int(found.action[-1])), int(found.action[-1]))
        assert found.gap <= max(apart.max(), 0.0) + 1e-9


def test_the_regret_bound_adds_up_widths():
    policy, widths = make(), []
    for t, context in enumerate(contexts(20)):
        known = policy.sequence.interval(context)
        choice = policy.ask(context=context)
        widths.append(known.upper.max() - known.lower[choice.index])
        policy.tell(choice, told(choice, context, t))
    found = policy.regret_bound()
    assert found.widths == pytest.approx(sum(widths), rel=1e-9)
    assert found.hindsight <= found.widths
    assert (found.rounds, found.delta, found.trusted) == (20, policy.sequence.delta, True)


COPIES = {"copy": copy.copy, "deepcopy": copy.deepcopy, "pickle": lambda policy: pickle.loads(pickle.dumps(policy))}


@pytest.mark.parametrize("how", [*COPIES, "a file"])
@pytest.mark.parametrize("name", ["standard", "grid", "kernel"])
def test_a_copy_goes_on_to_the_bit(name, how, tmp_path):
    policy = make(name)
    play(policy, 15)
    policy.ask(n=2, context=contexts(1)[0])
    if how == "a file":
        policy.save(tmp_path / "policy")
        again = mb.load(tmp_path / "policy")
    else:
        again = COPIES[how](policy)
    before = everything(policy)
    assert everything(again) == before
    assert play(again, 10, seed=2) == play(copy.copy(policy), 10, seed=2)
    assert everything(policy) == before
    play(policy, 10, seed=2)
    assert everything(again) == everything(policy)


def test_an_arm_that_is_added_to_the_sequence_of_a_policy_is_played():
    policy = make()
    play(policy, 20)
    waiting = policy.ask(context=contexts(1)[0])
    number = policy.sequence.add("new")
    assert policy.sequence.labels[-1] == "new"
    choice = policy.ask(context=3.0 * contexts(1)[0], arms=mb.Arms([0, number]))
    assert choice.index == 1  # about which nothing is known
    policy.tell(choice, 0.1)
    policy.tell(waiting, 0.1)
    assert policy.sequence.of("new").t == 1
    policy.sequence.remove(0)
    assert 0 not in policy.sequence.labels
    with pytest.raises(mb.InvalidInput, match="number of an arm"):
        policy.ask(context=contexts(1)[0], arms=mb.Arms([number + 1]))


def test_a_refutation_in_one_arm_ends_what_is_promised():
    policy = make()
    rng = np.random.default_rng(0)
    for t, context in enumerate(contexts(300)):
        choice = policy.ask(context=context)
        policy.tell(choice, told(choice, context, t) + (9.0 * rng.normal() if choice.index == 2 else 0.0))
        if policy.moment.is_refuted:
            break
    assert policy.moment.refutation.endswith("for arm 2")
    for ask in (policy.certificate, policy.ask):
        with pytest.raises(mb.AssumptionsRefuted, match="for arm 2"):
            ask(context=contexts(1)[0])
    policy.learn(rows(np.zeros((2, DIM)), 3), [0.0, 0.0])
    assert policy.refuted


def test_what_is_learnt_in_batches_from_a_log_is_what_was_played():
    policy = make("standard", alpha=0.09)
    asked, arms, values = log()
    policy.learn(rows(asked, arms), values)
    chosen = policy.choose_many(contexts(20))
    for context, index, upper in zip(contexts(20), chosen.indices, chosen.upper, strict=True):
        known = policy.sequence.interval(context, alpha=0.09)
        assert known.upper[index] >= known.upper.max() - 1e-9
        assert upper == pytest.approx(known.upper[index], rel=1e-9)


def test_looking_changes_nothing():
    policy = make()
    play(policy, 15)
    choice = policy.ask(context=contexts(1)[0])
    before = everything(policy)
    repr(policy)
    policy.certificate(context=contexts(1)[0])
    policy.regret_bound()
    policy.choose_many(contexts(5))
    policy.sequence.interval(contexts(1)[0])
    policy.sequence.advantage(contexts(1)[0], 0)
    policy.sequence.of(1).update(contexts(3), np.zeros(3))
    policy.sequence.sequence.update(contexts(3), np.zeros(3))
    assert choice.upper
    assert everything(policy) == before


BAD = {
    "a context that is too short": (lambda p: p.ask(context=[1.0]), "context"),
    "no context": (lambda p: p.ask(), "context|shape|actions"),
    "an arm that is not there": (lambda p: p.ask(context=contexts(1)[0], arms=mb.Arms([ARMS])), "number of an arm"),
    "half an arm": (lambda p: p.ask(context=contexts(1)[0], arms=mb.Arms([0.5])), "number of an arm"),
    "a NaN reward": (lambda p: p.tell(p.pending[0], np.nan), "reward"),
    "rewards of an arm that is not there": (lambda p: p.learn(rows(contexts(2), ARMS), [0.0, 0.0]), "number of an arm"),
    "a box": (lambda p: mb.UCB(p.sequence, mb.Box([0.0] * 4, [1.0] * 4)), "arms only"),
    "Thompson sampling": (lambda p: p.sequence.moment.sampled(np.random.default_rng(0), 1.0), "no parameter to draw"),
}


@pytest.mark.parametrize("what", BAD)
def test_an_error_is_named_and_changes_nothing(what):
    call, says = BAD[what]
    policy = make()
    play(policy, 5)
    policy.ask(context=contexts(1)[0])
    before = everything(policy)
    with pytest.raises(mb.InvalidInput, match=says):
        call(policy)
    assert everything(policy) == before


def test_an_arm_cannot_be_added_behind_the_back_of_a_journal():
    """Who follows the journal would not know the arm."""
    policy = make(journal=MemoryJournal())
    before = everything(policy)
    with pytest.raises(mb.InvalidInput, match="journal"):
        policy.sequence.add("new")
    assert everything(policy) == before


def test_strict_policies_learn_in_order_of_play():
    late, prompt = make(strict=True), make()
    asked = contexts(3)
    choices = [late.ask(context=context) for context in asked]
    for number in (2, 1):
        late.tell(choices[number], 0.1 * number)
        assert late.sequence.t == 0
    late.tell(choices[0], 0.0)
    assert late.sequence.t == 3
    for context, choice in zip(asked, choices, strict=True):
        prompt.learn(rows(context, choice.index), 0.1 * choice.number)
    for one, other in zip(late.sequence.interval(asked[0]), prompt.sequence.interval(asked[0]), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)
