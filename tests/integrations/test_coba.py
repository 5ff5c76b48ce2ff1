"""Our policies in coba's experiments, beside its own learners."""

import copy
import itertools
import pickle
import subprocess
import sys

import coba
import numpy as np
import pytest
from coba.primitives import Categorical, is_batch
from coba.safety import SafeLearner

import mixbandit as mb
from mixbandit.bandits import Greedy, Uniform
from mixbandit.integrations.coba import MixBanditLearner

STATED = {"sigma": 0.1, "norm_bound": 3.0}
DETERMINED = [mb.CMMUCB, mb.AMMUCB, mb.OFUL, mb.IDS, Greedy]
RANDOM = [mb.FreqTS, Uniform]


def rewards_of(environments, learners, **options):
    """The mean reward of each learner in an experiment; coba logs what learners raise, and goes on without them."""
    result = coba.Experiment(environments, learners, **options).run(quiet=True)
    found = {}
    for row in result.interactions.to_dicts():
        found.setdefault(row["learner_id"], []).append(row["reward"])
    assert len(found) == len(learners)
    return [np.mean(found[number]) for number in range(len(learners))]


def linear(n=200, actions=5, context=3, action=3, seed=2):
    return coba.Environments.from_linear_synthetic(
        n, n_actions=actions, n_context_features=context, n_action_features=action, seed=seed
    )


@pytest.mark.parametrize(("context", "action"), [(3, 3), (3, 0), (0, 3), (0, 0)])
def test_an_experiment_with_linear_rewards(context, action):
    learners = [MixBanditLearner(**STATED), coba.LinUCBLearner(), coba.RandomLearner()]
    own, other, chance = rewards_of(linear(context=context, action=action), learners)
    assert own > chance
    assert own > other - 0.05


@pytest.mark.parametrize("policy", DETERMINED + RANDOM)
def test_every_policy_plays(policy):
    (reward,) = rewards_of(linear(n=30), [MixBanditLearner(policy, **STATED)])
    assert np.isfinite(reward)


@pytest.mark.parametrize("categorical", [False, True])
def test_classification(categorical):
    rows = [[x, Categorical(y, ["no", "yes"])] for x, y in [(0.1, "no"), (0.9, "yes"), (0.2, "yes"), (0.8, "no")] * 30]
    labels = ["low" if x < 0.5 else "high" for x, _ in rows]
    if categorical:  # otherwise actions are text
        labels = [Categorical(label, ["high", "low"]) for label in labels]
    environment = coba.Environments.from_supervised(rows, labels, label_type="C").materialize()
    own, chance = rewards_of(
        environment, [MixBanditLearner(sigma=0.5, norm_bound=3.0, exploration=0.3), coba.RandomLearner()]
    )
    assert own > chance + 0.2


def test_batches_fall_back_to_rows():
    learner = MixBanditLearner(**STATED)
    (batched,) = rewards_of(linear(n=40).batch(4), [learner])
    assert np.isfinite(batched)
    batch = type("Batch", (list,), {"is_batch": True})([[1.0], [2.0]])
    assert is_batch(batch)
    with pytest.raises(mb.InvalidInput, match="batches"):
        learner.predict(batch, batch)


@pytest.mark.heavy
def test_an_experiment_on_two_processes_gives_the_same(tmp_path):
    code = """
import coba
from mixbandit.integrations.coba import MixBanditLearner
if __name__ == "__main__":
    environments = coba.Environments.from_linear_synthetic(20, n_actions=3, seed=[1, 2])
    for processes in (1, 2):
        learner = MixBanditLearner(sigma=0.1, norm_bound=3.0)
        experiment = coba.Experiment(environments, learner)
        result = experiment.run(processes=processes, quiet=True)
        rows = result.interactions.to_dicts()
        print(sorted((row["environment_id"], row["index"], row["reward"]) for row in rows))
"""
    script = tmp_path / "experiment.py"  # a file, because coba starts processes afresh
    script.write_text(code)
    found = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, timeout=300)
    alone, together = found.stdout.splitlines()
    assert alone == together
    assert alone.count("(") == 40


@pytest.mark.parametrize("policy", DETERMINED)
def test_scores_are_those_of_what_is_played(policy):
    learner, rng = MixBanditLearner(policy, **STATED), np.random.default_rng(0)
    assert SafeLearner(learner).has_score
    for _ in range(20):
        context, actions = rng.normal(size=2).tolist(), [tuple(row) for row in rng.normal(size=(4, 2)).tolist()]
        scores = [learner.score(context, actions, action) for action in actions]
        played, probability = learner.predict(context, actions)
        assert probability == 1.0
        assert scores == [float(action is played) for action in actions]
        learner.learn(context, played, float(rng.normal() * 0.1), probability)


@pytest.mark.parametrize("policy", RANDOM)
def test_policies_that_draw_do_not_claim_probabilities(policy):
    learner = MixBanditLearner(policy, **STATED)
    assert not SafeLearner(learner).has_score
    with pytest.raises(mb.InvalidInput, match="score"):
        learner.score(None, [1, 2], 1)
    played = set()
    for _ in range(30):
        action, probability = learner.predict(None, [(1, 0), (0, 1)])
        assert probability is None
        learner.learn(None, action, 0.0, probability)
        played.add(action)
    assert len(played) == 2  # every round draws anew


def test_what_is_learnt_are_products_of_context_and_action():
    rng, learner = np.random.default_rng(0), MixBanditLearner(**STATED)
    contexts, actions = rng.normal(size=(30, 2)), rng.normal(size=(30, 3))
    rewards = 0.5 + contexts[:, 0] * actions[:, 1] + 0.1 * rng.normal(size=30)
    for x, a, r in zip(contexts.tolist(), actions.tolist(), rewards.tolist(), strict=True):
        learner.learn(x, a, r, None, extra=1)
    x, a = np.column_stack((np.ones(30), contexts)), np.column_stack((np.ones(30), actions))
    expected = mb.MartingaleMixture(12, **STATED).update(np.einsum("ni,nj->nij", x, a).reshape(30, 12), rewards)
    row = np.einsum("i,j->ij", x[0], a[0]).ravel()
    asked = np.concatenate((contexts[0], actions[0]))
    assert learner.policy.sequence.upper(asked) == pytest.approx(expected.upper(row), rel=1e-9)
    assert learner.policy.sequence.lower(asked) == pytest.approx(expected.lower(row), rel=1e-9)


def test_features_of_your_own():
    features = mb.RandomFourier(dim_in=3, dim=10, rng=0)
    learner = MixBanditLearner(**STATED, features=features)
    learner.predict([0.1, 0.2], [0.3, 0.4])
    assert learner.policy.sequence.features is features
    assert learner.params["features"] == "RandomFourier"
    with pytest.raises(mb.InvalidInput, match="length 3"):
        MixBanditLearner(**STATED, features=features).predict([0.1], [0.3, 0.4])


@pytest.mark.parametrize(
    ("context", "actions", "width"),
    [
        (None, [1, 2, 3], 2),
        (None, [(1, 0), (0, 1)], 3),
        (2.5, [[1, 2], [3, 4]], 6),
        (True, [np.array([1.0, 2.0])], 6),
        (np.array([True]), np.array([[1.0, 2.0]]).tolist(), 6),
        ((1, (0, 1, 0)), [1.5], 10),
        (Categorical("b", ["a", "b"]), [Categorical("x", ["x", "y"])], 9),
        ([0.5, Categorical("b", ["a", "b"])], [np.float64(1.0)], 8),
        ([0.5], ["buy", "sell", "hold"], 8),
    ],
)
def test_contexts_and_actions_of_all_kinds(context, actions, width):
    learner = MixBanditLearner(**STATED)
    action, _ = learner.predict(context, actions)
    assert any(action is each for each in actions)
    learner.learn(context, action, 1.0, 0.5)
    assert learner.policy.sequence.features.dim == width


def test_text_must_be_known():
    learner = MixBanditLearner(**STATED)
    with pytest.raises(mb.InvalidInput, match="predict has not offered any yet"):
        learner.learn([0.5], "buy", 1.0, None)
    learner.predict([0.5], ["buy", "sell"])
    learner.learn([0.5], "sell", 1.0, None)
    assert learner.score([0.5], ["sell"], "sell") == 1.0
    with pytest.raises(mb.InvalidInput, match="unknown text action 'hold'"):
        learner.predict([0.5], ["buy", "hold"])


def test_numbers_beside_text_are_labels():
    """They were rows of one number, so that 1 and the only text action had the same features."""
    learner, actions = MixBanditLearner(**STATED), ["a", 1]
    learner.predict(None, actions)
    for _ in range(20):
        learner.learn(None, "a", 1.0)
        learner.learn(None, 1, 0.0)
    assert learner.predict(None, actions)[0] == "a"
    assert [learner.score(None, actions, action) for action in actions] == [1.0, 0.0]
    for unknown in (2, [1.0], None):
        with pytest.raises(mb.InvalidInput, match="unknown action"):
            learner.learn(None, unknown, 0.0)
    with pytest.raises(mb.InvalidInput, match="text or numbers"):
        learner.predict(None, ["a", [1.0]])


def test_params_are_columns_and_copies_are_independent():
    learner = MixBanditLearner(mb.AMMUCB, **STATED, alpha=0.5, mixture=mb.Scaled(2.0), seed=7)
    assert learner.params == {
        "family": "AMMUCB",
        **STATED,
        "delta": 0.01,
        "alpha": 0.5,
        "mixture": "Scaled",
        "seed": 7,
    }
    assert SafeLearner(learner).full_name.startswith("AMMUCB(sigma=0.1")
    with pytest.raises(mb.InvalidInput, match="yet"):
        _ = learner.policy
    learner.learn([1.0], [0.5], 0.2, 1.0)
    for twin in (copy.deepcopy(learner), pickle.loads(pickle.dumps(learner))):
        twin.learn([1.0], [0.5], 0.2, 1.0)
        assert (twin.policy.moment.t, learner.policy.moment.t) == (2, 1)


CONTAINING_ITSELF = [0.1]
CONTAINING_ITSELF += [CONTAINING_ITSELF, CONTAINING_ITSELF]


@pytest.mark.parametrize(
    "call",
    [
        lambda learner: learner.predict("text", [[0.1]]),
        lambda learner: learner.predict([0.1], ["a", "b"]),
        lambda learner: learner.learn([0.1], "a", 0.1, 1.0),
        lambda learner: learner.predict({"x": 1.0}, [[0.1]]),
        lambda learner: learner.predict([0.1], [{"x": 1.0}]),
        lambda learner: learner.predict([0.1], []),
        lambda learner: learner.predict([0.1], None),
        lambda learner: learner.predict([0.1], 5),
        lambda learner: learner.predict([0.1], "ab"),
        lambda learner: learner.predict([0.1], {0: 1.0}),
        lambda learner: learner.predict([0.1], [None]),
        lambda learner: learner.predict([0.1], [[0.1], [0.1, 0.2]]),
        lambda learner: learner.predict([0.1, 0.2], [[0.1]]),
        lambda learner: learner.predict(None, [[0.1]]),
        lambda learner: learner.predict([np.nan], [[0.1]]),
        lambda learner: learner.score([0.1], [[0.1]], [0.2]),
        lambda learner: learner.learn([0.1], [0.1], np.nan, 1.0),
        lambda learner: learner.learn([0.1], [0.1], "much", 1.0),
        lambda learner: learner.learn([0.1], [0.1, 0.2], 1.0, 1.0),
        lambda learner: learner.learn([0.1], [1e80], 1.0, 1.0),
        lambda learner: learner.predict(CONTAINING_ITSELF, [[0.1]]),
        lambda learner: learner.predict([0.1], [CONTAINING_ITSELF]),
        lambda learner: learner.learn([0.1], CONTAINING_ITSELF, 0.1, 1.0),
    ],
)
def test_bad_input_is_refused_and_changes_nothing(call):
    learner = MixBanditLearner(**STATED)
    learner.learn([0.3], [0.4], 0.1, 1.0)
    before = learner.policy
    with pytest.raises(mb.MixbanditError):
        call(learner)
    assert learner.policy is before


@pytest.mark.parametrize(
    "settings",
    [{"sigma": 0.0}, {"delta": 2.0}, {"policy": mb.UCB}, {"policy": "OFUL"}, {"seed": 0.5}, {"features": 3}],
)
def test_bad_settings_are_refused(settings):
    with pytest.raises(mb.MixbanditError):
        MixBanditLearner(**{**STATED, **settings})


def test_coba_is_not_needed_to_define_a_learner():
    code = """
import sys
import mixbandit.integrations.coba, mixbandit.integrations.mabwiser
print("coba" in sys.modules, "mabwiser" in sys.modules)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["False", "False"]


@pytest.mark.parametrize("work", [
    lambda learner: learner.predict([0.1], np.array(3)),
    lambda learner: learner.predict([0.1], [itertools.count(), [1.0]]),
    lambda learner: learner.predict(itertools.count(), ["a", "b"]),
    lambda learner: learner.learn([0.1], itertools.count(), 0.5),
])  # fmt: skip
def test_actions_that_are_no_list_or_never_end_are_refused(work):
    with pytest.raises(mb.InvalidInput):
        work(MixBanditLearner(sigma=0.1, norm_bound=1.0))
