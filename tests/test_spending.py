"""How δ is divided: parts sum to at most δ, and every certificate has a ledger of what is really spent."""

import ast
import dataclasses
import math
import warnings
from pathlib import Path

import numpy as np
import optuna
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold

import mixbandit as mb
from mixbandit.integrations.mabwiser import MixBanditMAB
from mixbandit.integrations.sklearn import evaluation
from mixbandit.spending import Ledger, Spending, level_of_each, places, together
from mixbandit.tuning.evidence import divided
from mixbandit.tuning.ledgers import of_bounds
from mixbandit.tuning.modelling import certifying

PACKAGE = Path(mb.__file__).parent
DELTA = 0.05
SPACE = mb.Space({"x": mb.Float(0.0, 1.0)})
RANGE = {"reward_range": (0.0, 1.0)}
SHARES = {**RANGE, "samples": 100, "rows": "fresh"}


class TestParts:
    def test_named(self):
        parts = Spending(DELTA).named(model=0.4, own=0.2, refutations=0.4)
        assert [(part.name, part.delta) for part in parts] == [
            ("model", 0.4 * DELTA),
            ("own", 0.2 * DELTA),
            ("refutations", 0.4 * DELTA),
        ]
        assert "own" in parts
        assert "other" not in parts
        with pytest.raises(mb.InvalidInput, match="no part 'other', only model, own, refutations"):
            parts["other"]

    @pytest.mark.parametrize("shares", [{}, {"a": 0.7, "b": 0.4}, {"a": 0.0}, {"a": -0.1}, {"a": math.nan}, {"a": "x"}])
    def test_shares_that_are_no_division_are_refused(self, shares):
        with pytest.raises(mb.InvalidInput):
            Spending(DELTA).named(**shares)

    @pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, math.nan, "x", 1e-300])
    def test_delta_must_be_a_probability(self, delta):
        with pytest.raises(mb.InvalidInput, match="delta"):
            Spending(delta)

    def test_weights_may_differ_from_one_in_the_last_digit(self):
        parts = Spending(DELTA).weighted(0.7, 0.1, 0.1, 0.1)
        assert math.fsum(part.delta for part in parts) == pytest.approx(DELTA, rel=1e-12)

    def test_a_list(self):
        part = Spending(DELTA).each(7)
        assert part.delta == DELTA / 7
        assert part.level == math.log(7) - math.log(DELTA)
        with pytest.raises(mb.InvalidInput, match="n must be"):
            Spending(DELTA).each(0)

    def test_in_order(self):
        """Σ_{j ≤ n} 1/(j(j+1)) = 1 − 1/(n+1)."""
        n = 2000
        spent = math.fsum(Spending(DELTA).nth(j).delta for j in range(1, n + 1))
        assert spent == pytest.approx(DELTA * (1 - 1 / (n + 1)), rel=1e-12)
        assert Spending(DELTA).nth(3).delta == DELTA / places(3) == DELTA / 12

    def test_in_order_by_squares(self):
        """The rest of Σ 6/(πj)² after n is between 6/π²(n+1) and 6/π²n."""
        n = 2000
        spent = math.fsum(Spending(DELTA).nth_square(j).delta for j in range(1, n + 1))
        assert 6 / math.pi**2 / (n + 1) < 1 - spent / DELTA < 6 / math.pi**2 / n

    def test_parts_are_divided_further_and_know_their_path(self):
        part = Spending(DELTA).named(own=0.2, rest=0.8)["own"].nth(2).each(5)
        assert part.delta == pytest.approx(DELTA * 0.2 / 6 / 5, rel=1e-15)
        assert part.path == ("own", "no. 2", "each of 5")
        assert part.level == pytest.approx(-math.log(part.delta), rel=1e-15)

    def test_the_level_is_right_where_the_part_is_no_float(self):
        part = Spending(1e-200)
        for _ in range(15):
            part = part.each(10**18)
        assert part.delta == 0.0
        assert part.level == pytest.approx(470 * math.log(10), rel=1e-14)
        assert level_of_each(Spending(DELTA).level, math.log(6)) == Spending(DELTA).each(6).level

    def test_it_is_frozen(self):
        with pytest.raises(dataclasses.FrozenInstanceError):
            Spending(DELTA).delta = 0.5


def test_a_ledger_prints_parts_and_sum():
    whole = mb.Spending(0.05)
    parts = whole.named(model=0.4, own=0.5)
    ledger = whole.ledger("a bound is wrong", parts["model"].line("the model"), parts["own"].line(how="in order"))
    assert str(ledger) == (
        "The probability that a bound is wrong is at most 0.05:\n"
        "   0.02  the model\n"
        "  0.025  own (in order)\n"
        "  0.045  in all"
    )
    assert ledger.in_words() == "0.02 for the model, 0.025 for own (in order)"
    both = together("anything is wrong", "each has a delta", whole.line("one"), whole.line("other"))
    assert both.delta == both.total == 0.1
    assert str(both).startswith("The probability that anything is wrong is at most 0.1, because each has a delta:\n")


def values_of(n, seed=0, samples=100):
    rng = np.random.default_rng(seed)
    x = rng.random(n)
    return pd.DataFrame({"x": x, "value": rng.binomial(samples, 0.9 - 0.2 * (x - 0.4) ** 2) / samples})


def certified(n=12, ordered=True, **stated):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return mb.certify(values_of(n), ordered=ordered, space=SPACE, **stated)


def tuned():
    """Trials, then confirmations of nominated configurations."""
    tuner = mb.Tuner(SPACE, **SHARES, rng=0)
    rng = np.random.default_rng(0)
    return tuner.optimize(lambda p: rng.binomial(100, 0.9 - 0.2 * p["x"] ** 2) / 100, 15, confirmations=6)


def studied():
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(0))
    study.optimize(lambda trial: round(0.9 - 0.2 * trial.suggest_float("x", 0.0, 1.0) ** 2, 2), n_trials=8)
    return study


ROWS = np.random.default_rng(1).random((200, 2))
LABELS = np.arange(200) % 3 + (ROWS[:, 0] > 2)
FEWER = np.asarray(ROWS[:, 0] > 0.5, dtype=int)


def searched(cv, labels=FEWER):
    return GridSearchCV(DummyClassifier(), {"strategy": ["prior", "stratified"]}, cv=cv).fit(ROWS, labels)


def raced(trials=7):
    search = mb.MixBanditSearchCV(
        LogisticRegression(), {"C": [0.01, 0.1, 1.0, 10.0]}, n_trials=trials, cv=5, random_state=0
    )
    return search.fit(ROWS, FEWER)


def bandit():
    return mb.CMMUCB(2, actions=np.eye(2), sigma=0.1, norm_bound=1.0, delta=DELTA, rng=0).learn(np.eye(2), [0.1, 0.2])


def credible():
    sequence = mb.BayesCredible(2, sigma=0.1, delta=DELTA).update(np.eye(2), [0.1, 0.2])
    return mb.UCB(sequence, actions=np.eye(2)).certificate()


def armed():
    mab = MixBanditMAB([1, 2, 3], sigma=0.1, norm_bound=1.0, delta=DELTA)
    mab.fit([1, 2, 3], [0.1, 0.2, 0.3])
    for arm in (4, 5, 6, 7):
        mab.add_arm(arm)
    mab.remove_arm(2)
    return mab


FITTED = {name: DummyClassifier(strategy=name).fit(ROWS, FEWER) for name in ("prior", "stratified", "uniform")}
A, B = np.random.default_rng(2).random((2, 30))
CERTIFICATES = {
    "bandit": lambda: bandit().certificate(),
    "bandit, Bayesian": credible,
    "samples": lambda: certified(**SHARES),
    "samples, planned": lambda: certified(**SHARES, planned=5),
    "samples, order unknown": lambda: certified(ordered=False, **SHARES),
    "samples, a kernel with suspects of its own": lambda: certified(**SHARES, features=mb.RBF(0.3)),
    "samples, several kernels": lambda: certified(**SHARES, features=[mb.RBF(0.3), mb.Matern(1.5, 0.2)]),
    "pool": lambda: certified(**RANGE, samples=100, pool=3000),
    "range": lambda: certified(**RANGE),
    "sigma": lambda: certified(**RANGE, sigma=0.05),
    "Gaussian": lambda: certified(**RANGE, noise="gaussian"),
    "refuted": lambda: certified(**RANGE, sigma=1e-4),
    "tuner": lambda: tuned().certificate(),
    "study": lambda: mb.certify(studied(), **SHARES),
    "grid": lambda: mb.certify(searched(KFold(5)), **RANGE, samples=40),
    "grid, stratified": lambda: mb.certify(searched(5), **RANGE, samples=40),
    "grid, sigma": lambda: mb.certify(searched(5), **RANGE, sigma=0.1),
    "finalists": lambda: mb.certify_finalists([({"x": 1}, 0.9), ({"x": 2}, 0.8)], **RANGE, samples=50),
    "fitted, one": lambda: mb.certify_fitted(FITTED["prior"], ROWS, FEWER),
    "fitted, three": lambda: mb.certify_fitted(FITTED, ROWS, FEWER, scoring="balanced_accuracy"),
    "fitted, loss": lambda: mb.certify_fitted(FITTED, ROWS, FEWER, scoring="neg_brier_score"),
    "race": lambda: raced().certificate_,
}
OTHERS = {
    "arms": lambda: armed().ledger,
    "means": lambda: mb.compare_means(A, B).ledger,
    "means, sigma": lambda: mb.compare_means(A, B, sigma=0.3).ledger,
    "means, Gaussian": lambda: mb.compare_means(A, B, noise="gaussian").ledger,
    "means, nothing yet": lambda: mb.compare_means(A, []).ledger,
    "pairs": lambda: mb.compare_means(A, B, paired=True).ledger,
    "configurations": lambda: certified(**SHARES).compare({"x": 0.1}, {"x": 0.2}).ledger,
    "pairs of configurations": lambda: certified(**SHARES).compare({"x": 0.1}, {"x": 0.2}, [(0.5, 0.6)] * 5).ledger,
}


def check(ledger):
    assert isinstance(ledger, Ledger)
    assert ledger.lines
    assert all(line.delta > 0.0 for line in ledger.lines)
    assert ledger.total <= ledger.delta * (1 + 1e-12), str(ledger)


@pytest.mark.filterwarnings("ignore::mixbandit.AssumptionsRefutedWarning")
@pytest.mark.parametrize("made", CERTIFICATES.values(), ids=CERTIFICATES.keys())
def test_ledgers_of_certificates_sum_to_at_most_delta(made):
    """A claim at more than the stated δ says so, with the reason; all others are made at δ."""
    found = made()
    assert found.ledgers
    for ledger in found.ledgers:
        check(ledger)
        assert ledger.reason or ledger.delta == found.delta
        assert bool(ledger.reason) == (ledger.delta > found.delta)
    assert not found.ledgers[0].reason


@pytest.mark.parametrize("made", OTHERS.values(), ids=OTHERS.keys())
def test_ledgers_of_other_answers_sum_to_at_most_delta(made):
    found = made()
    check(found)
    assert found.delta == DELTA


PRINTED = ["samples", "pool", "refuted", "finalists", "grid, stratified", "fitted, three", "race"]


@pytest.mark.parametrize("name", PRINTED)
@pytest.mark.filterwarnings("ignore::mixbandit.AssumptionsRefutedWarning")
def test_details_print_the_ledgers(name):
    found = CERTIFICATES[name]()
    printed = found.ledgers if found.trusted else found.ledgers[-1:]
    assert all(str(ledger) in found.details() for ledger in printed)
    assert found.details().count("The probability that") == len(printed)


def test_nothing_is_spent_where_nothing_is_guaranteed():
    assert mb.certify(values_of(5), **RANGE, rows="fixed").ledgers == ()
    assert raced(trials=20).certificate_.ledgers == ()  # every fold of every configuration


GROWING = {
    "samples": SHARES,
    "few samples": {**SHARES, "samples": 5},
    "sigma": {**RANGE, "sigma": 0.05},
    "Gaussian": {**RANGE, "noise": "gaussian"},
}


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("stated", GROWING.values(), ids=GROWING.keys())
def test_looks_before_and_after_a_change_of_sequences_spend_one_part(stated, ordered):
    """The model's sequence changes after 500, 1,000 or 2,000 trials; each has a part of its own."""
    known = mb.Assumptions(**stated, direction="maximize", delta=DELTA)
    frame = values_of(2001, samples=5)
    rows, rewards = frame[["x"]].to_numpy(), known.reward(frame["value"].to_numpy())
    rules = {}
    for n in (1, 499, 500, 501, 999, 1000, 1001, 1999, 2000, 2001):
        rule = certifying(known, SPACE, None, None, rows[:n], rewards[:n], ordered=ordered).rule
        rules[type(rule), type(getattr(rule, "mixture", None)), rule.model.dim is None, rule.delta] = rule
    assert 2 <= len(rules) <= 3
    spent = math.fsum(rule.delta for rule in rules.values())
    assert 0.99 * divided(DELTA)["model"].delta < spent <= divided(DELTA)["model"].delta * (1 + 1e-12)
    for rule in rules.values():
        check(of_bounds(DELTA, rule.delta))
        assert math.fsum(part.delta for part in rule.tests) <= rule.delta * (1 + 1e-12)


@pytest.mark.parametrize("name", ["samples", "samples, planned", "samples, order unknown", "tuner"])
def test_what_own_trials_spend_is_in_the_ledger(name):
    found = CERTIFICATES[name]()
    own, (_, tried, nominated) = found.judgement.own, found.ledgers[0].lines
    assert math.fsum(own.share_by_order(row) for row in own.distinct) <= tried.delta * (1 + 1e-12)
    numbers = set(own.trials.nominations.tolist()) - {0}
    assert bool(numbers) == (name == "tuner")
    assert math.fsum(own.share_by_nomination(j) for j in range(1, 1000)) <= nominated.delta * (1 + 1e-12)


def test_what_arms_spend_is_in_the_ledger():
    mab = armed()
    present, added = mab.ledger.lines
    parts = {arm: policy.sequence.delta for arm, policy in mab.policies.items()}
    assert parts[1] == parts[3] == pytest.approx(present.delta / 3, rel=1e-12)
    assert [parts[arm] for arm in (4, 5, 6, 7)] == pytest.approx(
        [added.delta / 2, added.delta / 6, added.delta / 12, added.delta / 20], rel=1e-12
    )


def test_what_folds_spend_is_in_the_ledger(monkeypatch):
    spent, exact = [], evaluation.fold_intervals

    def spied(candidates, known, delta):
        spent.append((len(candidates), delta))
        return exact(candidates, known, delta)

    monkeypatch.setattr(evaluation, "fold_intervals", spied)
    found = raced().certificate_
    ((count, each),) = spent
    assert count * each <= found.ledgers[0].total * (1 + 1e-12)
    assert each == pytest.approx(DELTA / 4)


def test_suspects_share_what_tests_have():
    stated = {"sigma": 0.1, "norm_bound": 1.0, "delta": DELTA}
    plain = mb.KernelMixture(mb.RBF(0.3), **stated).moment.rule.tests
    both = mb.KernelMixture(mb.RBF(0.3), **stated, suspects=[mb.RBF(0.1)]).moment.rule.tests
    assert [(part.name, part.delta) for part in plain] == [("noise", DELTA)]
    assert [(part.name, part.delta) for part in both] == [("noise", DELTA / 2), ("suspects", DELTA / 2)]


def test_claims_beyond_delta_say_so():
    assert certified(**SHARES, features=mb.RBF(0.3)).ledgers[-1].delta == pytest.approx(4.4 * DELTA)
    # The default model turns to features beyond 2,000 trials, and what tests a growing run begins again.
    assert certified(**SHARES).ledgers[-1].delta == pytest.approx(6.4 * DELTA)
    fitted = CERTIFICATES["fitted, three"]()
    assert [ledger.delta for ledger in fitted.ledgers] == pytest.approx([DELTA, DELTA, 1.5 * DELTA])


@pytest.mark.parametrize("features", [None, mb.RBF(0.3)], ids=["the default model", "a stated one"])
def test_the_sentence_about_false_alarms_says_what_the_ledger_says(features):
    frame = pd.concat([values_of(30)] * 2, ignore_index=True)
    frame["value"] += np.repeat([0.1, -0.4], 30)
    frame["value"] = frame["value"].clip(0.0, 1.0).round(2)
    known = {**SHARES, "samples": 10_000}
    with pytest.warns(mb.AssumptionsRefutedWarning) as told:
        found = mb.certify(frame, space=SPACE, features=features, **known)
    assert not found.trusted
    total = found.ledgers[-1].total
    assert total == pytest.approx((6.4 if features is None else 4.4) * DELTA)
    says = f"all tests of a certificate together raise a false alarm with probability at most {total:.4g}"
    assert says in str(told[0].message)
    assert says in str(found).splitlines()[0]
    tuner = mb.Tuner(SPACE, features=features, rng=0, **known)
    with pytest.warns(mb.AssumptionsRefutedWarning) as told:
        tuner.learn(frame).certificate()
    assert says.capitalize() in str(told[0].message)


# Formulas that a theorem states, and a mark on an axis: nothing is divided between statements there.
FORMULAS = {"plots.py": 1, "paper/general_lambda.py": 1, "bandits/rules/thompson.py": 1}


def divides_delta(node):
    """Whether an expression is a product or a quotient of something named delta."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult | ast.Div):
        return False
    return any(getattr(side, "id", getattr(side, "attr", "")).strip("_") == "delta" for side in (node.left, node.right))


def test_no_other_module_divides_delta():
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        count = sum(map(divides_delta, ast.walk(ast.parse(path.read_text()))))
        if count:
            found[path.relative_to(PACKAGE).as_posix()] = count
    assert found == FORMULAS


def pruning(n, confirmations):
    """A study whose trials take turns, then every other one is pruned, and at the end, "a" is confirmed."""
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(0))
    space = {"c": optuna.distributions.CategoricalDistribution(["a", "b", "d"])}
    rng, certificates = np.random.default_rng(3), []
    marks = [0] * n + [None] * 4 + [1] * confirmations
    for i, mark in enumerate([1, *marks]):
        study.enqueue_trial(
            {"c": "a" if mark else "abd"[i % 3]}, user_attrs={"mixbandit_nomination": 1} if mark else {}
        )
        trial = study.ask(space)
        trial.report(0.5, 0)
        if mark is None and i % 2:
            study.tell(trial, None, optuna.trial.TrialState.PRUNED)
        else:
            study.tell(trial, rng.binomial(100, 0.8) / 100)
        if i in (n, n + 4 + confirmations):
            certificates.append(mb.certify(study, **SHARES))
    return certificates


def test_looks_before_and_after_the_first_pruning_spend_delta_once():
    """After it, only confirmations are spent on: their part, and the sequences that it was spent on before."""
    before, after = pruning(8, 6)
    assert after.t == 7 < before.t
    old, new = before.judgement, after.judgement
    assert new.own.trials.confirmations
    assert not old.own.trials.confirmations
    spent = {"model": old.moment.rule.delta, "nominated": old.own.share_by_nomination(1)}
    assert spent["nominated"] == new.own.share_by_nomination(1) == divided(DELTA)["nominated"].delta / 2
    assert all(new.own.share_by_order(row) == 0.0 for row in [*old.own.distinct, *new.own.distinct])
    mean = mb.MeanSequence((0.0, 1.0), spent["nominated"]).update(new.own.trials.values, samples=100)
    assert after.interval == pytest.approx((mean.lower(), mean.upper()), abs=1e-12)
    # The model says no more than without any value, and nothing of what was not confirmed.
    assert (old.bounding.t, new.bounding.t, new.moment.t) == (before.t, 0, after.t)
    assert after.of({"c": "b"}).interval == (0.0, 1.0)
    assert after.compare({"c": "b"}, {"c": "d"}).lower == -1.0
    (ledger, _) = after.ledgers
    check(ledger)
    assert ledger.total == pytest.approx(DELTA)
    assert "before the first trial was pruned" in after.details()


def test_confirmations_are_certified_alone_over_a_box_as_well():
    """Where the model has no value at all to go by."""
    frame = values_of(8).assign(
        number=range(8), state=["COMPLETE"] * 7 + ["PRUNED"], mixbandit_nomination=[0] * 3 + [1] * 5
    )
    frame.loc[3:, "x"] = 0.4
    frame.loc[7, "mixbandit_nomination"] = 0
    found = mb.certify(frame.rename(columns={"x": "params_x"}), space=SPACE, **SHARES)
    assert found.t == 4
    assert found.parameters == {"x": 0.4}
    assert found.lower == found.judgement.own.interval(np.array([0.4])).lower > 0.0
    assert found.of({"x": 0.39}).interval == (0.0, 1.0)
    assert [part.share for part in found.possible] == [1.0]
