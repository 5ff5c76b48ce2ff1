"""Our MAB beside MABWiser's: the same calls on the same data, answers of the same kind."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("mabwiser", reason="needs mixbandit[bench]")

from mabwiser.mab import MAB, LearningPolicy

from mixbandit.integrations.mabwiser import MixBanditMAB

ARMS, WIDTH = ["red", "green", "blue"], 3
THETA = {"red": [1.0, 0.0, 0.0], "green": [0.0, 1.0, 0.0], "blue": [0.0, 0.0, 1.0], "pink": [0.6, 0.6, 0.5]}


def theirs(contextual=True):
    return MAB(list(ARMS), LearningPolicy.LinUCB(alpha=1.0) if contextual else LearningPolicy.UCB1(alpha=1.0))


def ours():
    return MixBanditMAB(list(ARMS), sigma=0.1, norm_bound=1.0)


def log(n=300, arms=ARMS, seed=0):
    rng = np.random.default_rng(seed)
    contexts, decisions = rng.normal(size=(n, WIDTH)), rng.choice(arms, size=n)
    rewards = np.array([x @ THETA[str(arm)] for x, arm in zip(contexts, decisions, strict=True)])
    return decisions, rewards + 0.1 * rng.normal(size=n), contexts


def kind(answer):
    """The shape of an answer: types, lengths and keys, without the numbers."""
    if isinstance(answer, list):
        return [kind(each) for each in answer]
    return (
        {key: isinstance(value, float) for key, value in answer.items()} if isinstance(answer, dict) else type(answer)
    )


@pytest.mark.parametrize("as_table", [False, True])
def test_a_life_with_contexts(as_table):
    decisions, rewards, contexts = log()
    fresh = np.random.default_rng(1).normal(size=(50, WIDTH))
    if as_table:
        decisions, rewards, contexts = pd.Series(decisions), pd.Series(rewards), pd.DataFrame(contexts)
    answers = []
    for mab in (theirs(), ours()):
        assert mab.fit(decisions[:100], rewards[:100], contexts[:100]) is None
        assert mab.partial_fit(decisions[100:], rewards[100:], contexts[100:]) is None
        found = [mab.predict(fresh), mab.predict(fresh[:1]), mab.predict_expectations(fresh[:2])]
        found += [mab.predict_expectations(fresh[:1]), list(mab.arms), mab.is_contextual]
        assert mab.add_arm("pink") is None
        mab.partial_fit(*log(n=60, arms=["pink"], seed=2))
        found += [mab.predict(fresh), mab.predict_expectations(fresh[:1]), list(mab.arms)]
        assert mab.remove_arm("red") is None
        found += [mab.predict(fresh), mab.predict_expectations(fresh[:1]), list(mab.arms)]
        answers.append(found)
    for other, own in zip(*answers, strict=True):
        assert kind(own) == kind(other)
    best = [max(["green", "blue", "pink"], key=lambda arm, x=x: x @ THETA[arm]) for x in fresh]
    for found in answers:  # with this much data both know what is best
        assert np.mean([a == b for a, b in zip(found[9], best, strict=True)]) > 0.9


def test_a_life_without_contexts():
    answers = []
    for mab in (theirs(contextual=False), ours()):
        mab.fit(["red", "green", "blue"], [0.1, 0.5, 0.2])
        mab.partial_fit(["red", "green", "blue"] * 30, [0.1, 0.5, 0.2] * 30)
        found = [mab.predict(), mab.predict_expectations(), mab.predict([[0.0], [1.0]])]
        found += [mab.predict_expectations([[0.0], [1.0]]), mab.is_contextual]
        answers.append(found)
    for other, own in zip(*answers, strict=True):
        assert kind(own) == kind(other)
    assert answers[1][0] == "green"


@pytest.mark.parametrize(
    "call",
    [
        lambda mab: mab.predict(np.ones((1, WIDTH))),  # before fit
        lambda mab: mab.fit(["red"], [0.1, 0.2], [[1.0] * WIDTH]),
        lambda mab: mab.fit(["red"], [np.nan], [[1.0] * WIDTH]),
        lambda mab: mab.add_arm("red"),
        lambda mab: mab.add_arm(None),
        lambda mab: mab.remove_arm("pink"),
    ],
)
def test_what_one_refuses_the_other_refuses(call):
    for mab in (theirs(), ours()):
        with pytest.raises(Exception):  # noqa: B017, PT011 - MABWiser raises all kinds
            call(mab)


def test_ridge_estimates_agree_where_the_regularisation_does():
    """LinGreedy with l2_lambda = σ² is the ridge estimate at α₀ = σ²."""
    other = MAB(list(ARMS), LearningPolicy.LinGreedy(epsilon=0.0, l2_lambda=0.01))
    own, fresh = ours(), np.random.default_rng(1).normal(size=(5, WIDTH))
    for mab in (other, own):
        mab.fit(*log())
    for a, b in zip(own.predict_expectations(fresh), other.predict_expectations(fresh), strict=True):
        assert a == pytest.approx(b, rel=1e-6)
