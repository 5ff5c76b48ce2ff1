"""A contextual bandit: stated probabilities, arms that come and go, rewards at any time."""

import copy
import itertools
import pickle
import threading

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chisquare

import mixbandit as mb
from mixbandit.bandits.rules import (
    ActingRule,
    Greedy,
    InverseGap,
    LeastRegretPerInformation,
    Optimism,
    Optimistic,
    Thompson,
    Uniform,
)
from mixbandit.errors import InvalidInput, NotStorable
from mixbandit.predictors import CosinesPerArm, Ensemble, Prediction, Predictor, RidgePerArm, SharedRidge
from mixbandit.search import Selection, Shares
from mixbandit.storage import record
from tests.bandits.contextual.worlds import behaviour, contexts, everything, lived, make


class Softmax(ActingRule):
    """As a user would write it."""

    name = "softmax"
    kind = "ContextualSoftmax"
    schema = record({})

    def select(self, view, offer, rng):
        mean, spread = view.predict(offer)
        weights = np.exp(4.0 * (mean + 0.1 * spread * rng.random()))
        return Selection(weights / weights.sum())


RULES = [Optimistic(), Greedy(), Thompson(), InverseGap(), Uniform(), Softmax()]


class RunningMeans(Predictor):
    """The mean reward of every arm, by its label."""

    kind = "ContextualRunningMeans"
    schema = record({})
    memory = record({"sums": lambda value, where: dict(value), "counts": lambda value, where: dict(value)})

    def __init__(self):
        self.sums, self.counts = {}, {}

    def predict(self, offer):
        counts = np.array([self.counts.get(label, 0) for label in offer.labels])
        sums = np.array([self.sums.get(label, 0.5) for label in offer.labels])
        return Prediction(sums / (counts + 1), 1.0 / np.sqrt(counts + 1.0))

    def after(self, offer, arm, reward):
        label, new = offer.labels[arm], RunningMeans()
        new.sums = {**self.sums, label: self.sums.get(label, 0.5) + reward}
        new.counts = {**self.counts, label: self.counts.get(label, 0) + 1}
        return new


def test_a_choice_says_what_to_play_and_how_probable_that_was():
    bandit = make()
    choice = bandit.ask({"tokens": 310, "topic": "code"})
    assert choice.arm in ("a", "b", "c")
    assert isinstance(choice.id, str)
    assert choice.group is None
    assert choice.probability == choice.probabilities[choice.arm]
    assert list(choice.probabilities) == ["a", "b", "c"] == bandit.arms
    assert sum(choice.probabilities.values()) == pytest.approx(1.0)
    assert min(choice.probabilities.values()) >= 0.2 / 3
    assert bandit.open == [choice.id]
    assert bandit.tell(choice, 0.4) is bandit
    assert bandit.open == []
    assert "1 decisions, 1 rewards" in repr(bandit)
    assert (
        repr(choice) == f"ContextualChoice(id={choice.id!r}, arm={choice.arm!r}, probability={choice.probability:.4g})"
    )
    np.testing.assert_array_equal(np.asarray(choice.probabilities), list(choice.probabilities.values()))
    with pytest.raises(KeyError):
        choice.probabilities["d"]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
@pytest.mark.parametrize("how", ["one by one", "together"])
def test_arms_are_drawn_with_the_probabilities_that_are_recorded(rule, how):
    bandit, given = make(rule=rule, floor=0.3), contexts(3000)
    for context in given[:60]:
        choice = bandit.ask(context)
        bandit.tell(choice, 0.9 if choice.arm == "b" else 0.1)
    choices = [bandit.ask(each) for each in given] if how == "one by one" else bandit.ask_many(given)
    assert min(min(choice.probabilities.values()) for choice in choices) >= 0.1 - 1e-12
    expected = np.sum([np.asarray(choice.probabilities) for choice in choices], axis=0)
    found = [sum(choice.arm == arm for choice in choices) for arm in bandit.arms]
    assert chisquare(found, expected).pvalue > 1e-3
    # Apart from each other, too: an arm is as frequent among choices of which it was improbable as it says.
    low = [choice for choice in choices if choice.probabilities["a"] < 0.5]
    share = sum(choice.probabilities["a"] for choice in low)
    assert abs(sum(choice.arm == "a" for choice in low) - share) < 5.0 * np.sqrt(share + 1.0)


def test_the_floor_is_shared_by_the_eligible_arms_and_0_allows_for_certainty():
    for floor in (0.0, 0.3, 1.0):
        bandit = make(floor=floor)
        bandit.tell(bandit.ask([1.0], arms=["b"]), 1.0)
        for arms in (None, ["a", "c"], ["c"]):
            choice = bandit.ask([1.0], arms=arms)
            assert set(choice.probabilities) == set(arms or "abc")
            assert min(choice.probabilities.values()) >= floor / len(choice.probabilities) - 1e-12
            assert sum(choice.probabilities.values()) == pytest.approx(1.0)
    assert make(floor=0.0).ask([1.0], arms=["a"]).probability == 1.0


def test_ties_share_the_probability():
    choice = make(floor=0.0).ask({"x": 1.0})
    assert list(choice.probabilities.values()) == pytest.approx([1 / 3] * 3)


def test_only_eligible_arms_are_chosen():
    bandit = make()
    arms = {bandit.ask({"x": 1.0}, arms=("c", "a")).arm for _ in range(100)}
    assert arms == {"a", "c"}
    assert list(bandit.ask({"x": 1.0}, arms=["c", "a"]).probabilities) == ["a", "c"]


def test_arms_come_and_go_and_a_removed_one_still_learns():
    bandit = make(floor=1.0)
    first = bandit.ask({"x": 1.0}, arms=["b"])
    bandit.remove_arm("b").add_arm("d")
    assert bandit.arms == ["a", "c", "d"]
    assert "b" not in {bandit.ask({"x": 1.0}).arm for _ in range(50)}
    bandit.tell(first, 1.0)
    bandit.add_arm("b")
    assert bandit.arms == ["a", "b", "c", "d"]
    prediction = bandit.state.predictor.predict(
        bandit.state.offer(np.ones(bandit.state.features.dim), np.arange(4), "abcd")
    )
    assert prediction.mean[1] > 0.1


@pytest.mark.parametrize("predictor", [None, RidgePerArm(), Ensemble([CosinesPerArm(30)])])
@pytest.mark.parametrize("rule", [None, Thompson(), InverseGap()])
def test_decisions_do_not_depend_on_where_the_range_of_rewards_lies(predictor, rule):
    """Predictors know rewards in [0, 1]: estimates of arms without rewards would be odd otherwise."""
    played = {}
    for low, high in ((0.0, 1.0), (-1024.0, -1023.0), (4096.0, 4112.0), (0.0, 2.0**-40)):
        bandit = mb.ContextualBandit(3, (low, high), predictor=predictor, rule=rule, rng=0)
        arms, rng = [], np.random.default_rng(1)
        for context in contexts(150):
            choice = bandit.ask(context)
            arms.append(choice.arm)
            bandit.tell(choice, low + (high - low) * (float(rng.integers(8)) + choice.arm) / 16.0)
        found = bandit.explain(choice)
        assert low <= found.estimate.min() + 0.3 * (high - low)
        assert found.estimate.max() <= high + 0.3 * (high - low)
        for arm, estimate in zip(found.arms, found.estimate, strict=True):
            total = sum(found.contributions[arm].values())
            assert total == pytest.approx(estimate, rel=1e-9, abs=1e-9 * (high - low))
        played[low] = arms
    assert len({tuple(arms) for arms in played.values()}) == 1


def test_labels_are_texts_or_numbers():
    assert mb.ContextualBandit([3, 1.5, "x"]).arms == [3, 1.5, "x"]
    assert mb.ContextualBandit(np.array([3, 4])).arms == [3, 4]
    assert mb.ContextualBandit(2).arms == [0, 1]
    wrong = ([True], [None], [("a", 1)], [float("nan")], ["a", "a"], "abc", None, 0, -1, [b"a"], [np.timedelta64(3)])
    huge, unordered, endless, table = [10**400], {"a", "b"}, itertools.count(), pd.DataFrame({"a": [1.0], "b": [2.0]})
    for bad in (*wrong, huge, unordered, endless, table, np.array(3.0), bytearray(b"ab")):
        with pytest.raises(InvalidInput):
            mb.ContextualBandit(bad)


def test_eligible_arms_may_come_in_any_iterable():
    bandit = make()
    for given in ({"a", "b"}, ("a", "b"), iter(["a", "b"]), np.array(["a", "b"]), pd.Series(["a", "b"])):
        assert bandit.ask([1.0], arms=given).arm in ("a", "b")


def test_long_labels_are_cut_in_messages():
    bandit = mb.ContextualBandit(["x" * 100_000, "y"])
    with pytest.raises(InvalidInput) as caught:
        bandit.remove_arm("z")
    assert len(str(caught.value)) < 200


def test_ids_are_never_issued_twice_and_a_seed_gives_the_same_arms_again():
    one, two = make(), make()
    first, second = ([bandit.ask({"x": 1.0}) for _ in range(30)] for bandit in (one, two))
    assert [choice.arm for choice in first] == [choice.arm for choice in second]
    assert len({choice.id for choice in first + second}) == 60
    other = make(rng=4)
    assert [choice.arm for choice in first] != [other.ask({"x": 1.0}).arm for _ in range(30)]


def test_many_decisions_and_rewards_are_those_of_one_by_one_bit_for_bit():
    for rule in (*RULES, Optimistic(0.3)):
        for arms in (None, ["a", "c"]):
            one, many, given = make(rule=rule), make(rule=rule), contexts(150)
            rng = np.random.default_rng(5)
            for start in (0, 40, 41, 110):
                part = given[start : start + 40]
                singly, together = [one.ask(each, arms=arms) for each in part], many.ask_many(part, arms=arms)
                assert [each.arm for each in singly] == [each.arm for each in together]
                order, rewards = rng.permutation(len(part)), rng.random(len(part))
                for i in order:
                    one.tell(singly[i], rewards[i])
                many.tell_many([together[i] for i in order], rewards[order])
            assert behaviour(one) == behaviour(many)


def test_contexts_of_any_form_lead_to_the_same_decisions():
    table = pd.DataFrame(contexts(60))
    columns = list(table.columns)
    forms = {
        "dicts": [dict(zip(columns, row, strict=True)) for row in table.itertuples(index=False)],
        "tuples": list(table.itertuples(index=False)),
        "series": [row for _, row in table.astype(object).iterrows()],
    }
    found = {}
    for name, given in forms.items():
        bandit = make()
        choices = [bandit.ask(each) for each in given]
        bandit.tell_many(choices, np.linspace(0, 1, 60))
        found[name] = [choice.arm for choice in choices + bandit.ask_many(given)]
    bandit = make()
    choices = bandit.ask_many(table)
    bandit.tell_many(choices, np.linspace(0, 1, 60))
    found["table"] = [choice.arm for choice in choices + bandit.ask_many(table)]
    assert found["dicts"] == found["tuples"] == found["series"] == found["table"]


def test_arrays_lists_and_numbered_dicts_are_the_same():
    rows, found = np.random.default_rng(0).normal(size=(50, 3)), []
    for given in (rows, rows.tolist(), [dict(enumerate(row)) for row in rows.tolist()]):
        bandit = make()
        choices = bandit.ask_many(given)
        bandit.tell_many(choices, np.linspace(0, 1, 50))
        found.append([choice.arm for choice in choices] + [bandit.ask(each).arm for each in given])
    assert found[0] == found[1] == found[2]


def test_without_features_there_is_only_an_intercept():
    bandit = make(floor=0.1)
    for _ in range(100):
        choice = bandit.ask()
        bandit.tell(choice, 0.9 if choice.arm == "c" else 0.2)
    assert bandit.ask().probabilities["c"] > 0.9
    assert bandit.state.features.dim == 1


def test_it_learns_which_arm_is_best_in_which_context():
    bandit, given = make(floor=0.05), contexts(1500)
    for context in given:
        choice = bandit.ask(context)
        best = {"code": "a", "chat": "b", "sums": "c"}[context["topic"]]
        bandit.tell(choice, 0.8 if choice.arm == best else 0.3)
    for topic, best in (("code", "a"), ("chat", "b"), ("sums", "c")):
        assert bandit.ask({"tokens": 200.0, "topic": topic, "urgent": False}).probabilities[best] > 0.9


def test_arms_with_features_share_what_they_teach():
    bandit = mb.ContextualBandit({"s": [1.0, 0.0], "m": [2.0, 0.0], "l": [3.0, 1.0]}, floor=0.1, rng=0)
    assert isinstance(bandit.state.predictor, SharedRidge)
    rng = np.random.default_rng(0)
    for _ in range(300):
        x = float(rng.normal())
        choice = bandit.ask([x])
        size = {"s": 1, "m": 2, "l": 3}[choice.arm]
        bandit.tell(choice, float(np.clip(0.2 * size + 0.05 * x, 0, 1)))
    bandit.add_arm("xl", [4.0, 1.0])  # of which nothing was told
    assert bandit.ask([0.0]).probabilities["xl"] > 0.9
    assert bandit.arms == ["s", "m", "l", "xl"]
    with pytest.raises(InvalidInput, match="needs features"):
        bandit.add_arm("xxl")
    with pytest.raises(InvalidInput, match="have no features"):
        make().add_arm("d", [1.0])
    again = mb.ContextualBandit.from_state_dict(bandit.state_dict())
    assert everything(again) == everything(bandit)


def test_features_of_arms_count_as_they_are_in_the_scale_of_all_arms_at_the_start():
    prices = np.array([1.0, 1.01, 5.0])  # 5 is far outside of those before it
    bandit = mb.ContextualBandit({f"at {price}": {"price": price} for price in prices})
    np.testing.assert_allclose(bandit.state.roster.rows[:, 1], (prices - prices.mean()) / prices.std())
    bandit.add_arm("at 90", {"price": 90.0})  # the fourth, so that the scale changes
    prices = np.append(prices, 90.0)
    np.testing.assert_allclose(bandit.state.roster.rows[:, 1], (prices - prices.mean()) / prices.std())
    again = mb.ContextualBandit.from_state_dict(bandit.state_dict())
    np.testing.assert_array_equal(again.state.roster.rows, bandit.state.roster.rows)
    with pytest.raises(InvalidInput, match=r"features of arm 'x' .*unknown name 'colour'"):
        bandit.add_arm("x", {"colour": 1})
    with pytest.raises(InvalidInput, match="features of arm 'a' "):
        mb.ContextualBandit({"a": 1, "b": 2})


@pytest.mark.parametrize("with_features", [False, True])
def test_what_is_learnt_is_a_dense_ridge_regression_in_the_scale_of_now(with_features):
    arms = {"a": [1.0, 2.0], "b": [0.0, 1.0], "c": [2.0, 5.0]} if with_features else ["a", "b", "c"]
    predictor, rng = SharedRidge() if with_features else RidgePerArm(), np.random.default_rng(3)
    bandit = mb.ContextualBandit(arms, predictor=predictor, floor=0.5, rng=2)
    given, told = [], []
    for t in range(150):
        context = [float(rng.normal(3.0, 2.0)), float(rng.lognormal(2.0)), float(t % 3 == 0)]
        choice = bandit.ask(context)
        reward = float(rng.random())
        bandit.tell(choice, reward)
        given.append((context, choice.arm))
        told.append(reward)
        if with_features and t == 80:
            bandit.add_arm("d", [9.0, 1.0])
    state = bandit.state
    rows = [state.features.row(state.features.read(context)) for context, _ in given]
    query = np.append(1.0, rng.normal(size=3))
    numbers = np.arange(len(bandit.arms))
    found = state.predictor.predict(state.offer(query, numbers, tuple(bandit.arms)))
    errors = []
    for number, arm in enumerate(bandit.arms):
        if with_features:
            of_arms = state.roster.rows
            phi = np.array(
                [np.kron(row, of_arms[bandit.arms.index(name)]) for row, (_, name) in zip(rows, given, strict=True)]
            )
            r, x = np.array(told), np.kron(query, of_arms[number])
        else:
            mine = [i for i, (_, name) in enumerate(given) if name == arm]
            phi, r, x = np.array([rows[i] for i in mine]), np.array(told)[mine], query
        gram = phi.T @ phi + 0.1 * np.eye(len(x))
        assert found.mean[number] == pytest.approx(x @ np.linalg.solve(gram, phi.T @ r), rel=1e-7, abs=1e-9)
        errors.append(np.sqrt(x @ np.linalg.solve(gram, x)))
    ratio = found.spread / np.array(errors)
    assert ratio == pytest.approx([ratio[0]] * len(ratio), rel=1e-7)
    assert 0.2 < ratio[0] < 0.5  # the noise level of uniform rewards is .29


@pytest.mark.parametrize(
    "act",
    [
        lambda b, c: b.tell(c, 1.5),
        lambda b, c: b.tell(c, float("nan")),
        lambda b, c: b.tell(c, "1"),
        lambda b, c: b.tell("unknown-3", 0.5),
        lambda b, c: b.tell(3, 0.5),
        lambda b, c: b.tell(None, 0.5),
        lambda b, c: b.tell_many([c, c], [0.1, 0.2]),
        lambda b, c: b.tell_many([c], [0.1, 0.2]),
        lambda b, c: b.tell_many([c, "x"], [0.1, 0.2]),
        lambda b, c: b.tell_many([c], [2.0]),
        lambda b, c: b.tell_many(c.id, [0.2]),
        lambda b, c: b.tell_many(None, [0.2]),
        lambda b, c: b.cancel("x"),
        lambda b, c: b.ask(object()),
        lambda b, c: b.ask("code"),
        lambda b, c: b.ask({"tokens": [1, 2]}),
        lambda b, c: b.ask({"tokens": 1.0}, arms=["z"]),
        lambda b, c: b.ask({"tokens": 1.0}, arms=[]),
        lambda b, c: b.ask({"tokens": 1.0}, arms="a"),
        lambda b, c: b.ask({"tokens": 1.0}, arms=[["a"]]),
        lambda b, c: b.ask({"tokens": 1.0}, arms=[True]),
        lambda b, c: b.ask({"tokens": 1.0}, arms=itertools.count()),
        lambda b, c: b.ask({"tokens": 1.0}, arms=pd.DataFrame({"a": [1.0], "b": [2.0]})),
        lambda b, c: b.ask({10**400: 1.0}),
        lambda b, c: b.ask_many(itertools.count()),
        lambda b, c: b.tell_many({c}, [0.2]),
        lambda b, c: b.ask_many([{"tokens": 1.0}, {"tokens": 1j}]),
        lambda b, c: b.ask_many({"tokens": 1.0}),
        lambda b, c: b.add_arm("a"),
        lambda b, c: b.add_arm(None),
        lambda b, c: b.add_arm("e", {"x": 1.0}),
        lambda b, c: b.remove_arm("z"),
        lambda b, c: b.interval({"tokens": 1.0}, norm_bound=-1.0),
        lambda b, c: b.interval({"tokens": 1.0}, "z", norm_bound=1.0),
        lambda b, c: b.interval({"tokens": 1.0}, norm_bound=1.0, sigma=0.0),
        lambda b, c: b.interval(object(), norm_bound=1.0),
        lambda b, c: b.interval({"tokens": 1.0}, "a", norm_bound=1.0, arms=["a", "b"]),
    ],
)
def test_errors_change_nothing(act):
    bandit = lived(make())
    choice = bandit.ask({"tokens": 3.0, "topic": "code", "urgent": True})
    before, events = everything(bandit), len(bandit.journal)
    with pytest.raises(InvalidInput):
        act(bandit, choice)
    assert everything(bandit) == before
    assert len(bandit.journal) == events


def test_rewards_are_told_once():
    bandit = make()
    first, second = bandit.ask([1.0]), bandit.ask([2.0])
    bandit.tell(first, 1)
    with pytest.raises(InvalidInput, match="already been told"):
        bandit.tell(first.id, 1)
    bandit.cancel(second)
    with pytest.raises(InvalidInput, match="already been told or cancelled"):
        bandit.tell(second, 1)
    assert bandit.state.counts == (2, 1, 1)
    bandit.tell_many([], [])
    assert bandit.ask_many([]) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reward_range": (1, 0)}, "reward_range"),
        ({"floor": -0.1}, "floor"),
        ({"floor": 1.1}, "floor"),
        ({"delta": 0}, "delta"),
        ({"rule": "greedy"}, "rule"),
        ({"rule": Optimism()}, "acts on proven bounds"),
        ({"rule": LeastRegretPerInformation()}, "acts on proven bounds"),
        ({"predictor": RidgePerArm}, "predictor"),
        ({"predictor": SharedRidge()}, "SharedRidge needs arms with features"),
        ({"journal": "decisions.db"}, "journal"),
        ({"rng": -1}, "rng"),
        ({"features": "x"}, "features"),
        ({"features": 1_000_000}, "up to 10,000 features"),
    ],
)
def test_settings_are_checked(options, message):
    given = {"reward_range": (0, 1), **options}
    with pytest.raises(InvalidInput, match=message):
        mb.ContextualBandit(["a", "b"], **given)


def test_a_rule_that_does_not_know_its_probabilities_is_refused():
    class Drawn(ActingRule):
        name = "drawn"

        def select(self, view, offer, rng):
            return Selection(Shares.even(len(offer), (0,)), marginal=False)

    with pytest.raises(InvalidInput, match="how probable"):
        make(rule=Drawn()).ask([1.0])


def test_a_predictor_and_a_rule_of_ones_own():
    bandit = lived(make(predictor=RunningMeans(), rule=Softmax()))
    again = mb.ContextualBandit.from_state_dict(bandit.state_dict())
    assert everything(again) == everything(bandit)
    assert again.state.predictor.counts == bandit.state.predictor.counts
    assert [each.arm for each in again.ask_many(contexts(9))] == [each.arm for each in bandit.ask_many(contexts(9))]

    class Secret(ActingRule):
        def select(self, view, offer, rng):
            return Selection(Shares.even(len(offer), (0,)))

    with pytest.raises(NotStorable):
        make(rule=Secret()).state_dict()


def test_predictions_that_are_none_are_refused():
    class Broken(RunningMeans):
        def predict(self, offer):
            return Prediction(np.full(len(offer), np.nan), np.ones(len(offer)))

    bandit = make(predictor=Broken())
    for ask in (lambda: bandit.ask([1.0]), lambda: bandit.ask_many([[1.0], [2.0]])):
        with pytest.raises(InvalidInput, match="finite"):
            ask()
    assert bandit.state.seen == 0


def test_a_copy_goes_on_alone_and_alike():
    bandit = lived(make())
    for other in (copy.copy(bandit), copy.deepcopy(bandit), pickle.loads(pickle.dumps(bandit))):
        assert everything(other) == everything(bandit)
        before, choice = everything(bandit), other.ask({"tokens": 1.0})
        other.tell(choice, 0.5)
        assert everything(bandit) == before
        assert copy.copy(bandit).ask({"tokens": 1.0}).arm == choice.arm


@pytest.mark.parametrize("n", [0, 1, 40])
def test_a_file_restores_it_bit_for_bit(tmp_path, n):
    bandit = lived(make(), n) if n else make()
    mb.save(bandit, tmp_path / "bandit.json")
    again = mb.load(tmp_path / "bandit.json")
    assert everything(again) == everything(bandit)
    for context in contexts(20, seed=9):
        mine, theirs = bandit.ask(context), again.ask(context)
        assert mine.arm == theirs.arm
        assert dict(mine.probabilities) == dict(theirs.probabilities)
        bandit.tell(mine, 0.5)
        again.tell(theirs, 0.5)
    assert behaviour(again) == behaviour(bandit)
    assert set(bandit.open) == set(again.open)


def test_a_transformer_is_passed_again():
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(np.random.default_rng(0).normal(size=(50, 3)))
    bandit = mb.ContextualBandit(["a", "b"], features=scaler, rng=0)
    for x in np.random.default_rng(1).normal(size=(20, 3)):
        bandit.tell(bandit.ask(x), 0.5)
    with pytest.raises(InvalidInput, match="pass it again"):
        mb.ContextualBandit.from_state_dict(bandit.state_dict())
    again = mb.ContextualBandit.from_state_dict(bandit.state_dict(), scaler)
    assert everything(again) == everything(bandit)


def test_threads_may_share_it():
    bandit, given = make(), contexts(50)

    def work():
        for context in given:
            bandit.tell(bandit.ask(context), 0.5)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert bandit.state.counts == (200, 200, 0)
    assert everything(mb.ContextualBandit.from_state_dict(bandit.state_dict())) == everything(bandit)
