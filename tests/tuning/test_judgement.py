"""The better of what the model and a configuration's own trials say, comparisons, and what is given back."""

import json
import math

import numpy as np
import optuna
import pandas as pd
import pytest

import mixbandit as mb
from mixbandit.tuning.comparing import Comparison, compare, pvalue
from mixbandit.tuning.evidence import Trials
from mixbandit.tuning.judgement import Judgement, Worth
from mixbandit.tuning.modelling import certifying
from mixbandit.tuning.recommending import certificate_fields
from tests.helpers.runs import SPACE as MIXED
from tests.helpers.runs import noisy

SPACE = mb.Space({"x": mb.Float(0.0, 1.0)})
STATED = {"reward_range": (0.0, 1.0), "samples": 50, "rows": "fresh"}


def run(seed=0, n=25, repeats=6, space=SPACE, chance=lambda p: 0.9 - 0.4 * (p["x"] - 0.4) ** 2, m=50):
    rng = np.random.default_rng(seed)
    tried = space.sample(n, rng=seed) + [{"x": 0.4}] * repeats + [{"x": 0.9}] * repeats
    return [(p, float(rng.binomial(m, chance(p)) / m)) for p in tried]


def judged(history, space=SPACE, refuted=False, moment=None, **stated):
    known = mb.Assumptions(**{**STATED, "direction": "maximize", **stated})
    rows = space.encode_all([p for p, _ in history])
    values = np.array([v for _, v in history])
    trials = Trials([p for p, _ in history], rows, values, np.zeros(len(values), np.int64))
    if moment is None:
        moment = certifying(known, space, None, None, rows, known.reward(values), ordered=True)
    return Judgement(space, known, moment, trials, refuted)


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_the_better_of_both_at_each_end(direction):
    history = run()
    judgement = judged(history, direction=direction)
    rows = judgement.own.distinct
    sign, shift = (1.0, 0.5) if direction == "maximize" else (-1.0, -0.5)
    model = judgement.moment.interval(judgement.moment.directions(rows))
    seen = set()
    for row, end, low, high in zip(rows, judgement.ends(rows), model.lower, model.upper, strict=True):
        ends = judgement.own.interval(row)
        own = sorted((sign * ends.lower, sign * ends.upper))
        assert (end.lower, end.upper) == pytest.approx((max(low + shift, own[0]), min(high + shift, own[1])))
        assert end.evidence == ("own trials" if own[0] > low + shift else "model")
        seen.add(end.evidence)
        worth = judgement.of_row(row)
        assert sorted((sign * worth.lower, sign * worth.upper)) == pytest.approx([end.lower, end.upper])
        assert worth.trials == ends.trials
    assert seen == {"model", "own trials"}
    untried = judgement.of({"x": 0.123456})
    assert (untried.evidence, untried.trials) == ("model", 0)


def test_a_contradiction_refutes_and_own_trials_stand():
    """A model of values near 0.2, and trials near 0.9 that it does not know of."""
    history = [({"x": 0.5}, 0.9)] * 30
    low = [({"x": 0.5}, 0.2)] * 30
    known = mb.Assumptions(**STATED, direction="maximize")
    rows = SPACE.encode_all([p for p, _ in low])
    rewards = known.reward(np.array([v for _, v in low]))
    moment = certifying(known, SPACE, None, None, rows, rewards, ordered=True)
    judgement = judged(history, moment=moment)
    (end,) = judgement.ends(np.array([[0.5]]))
    own = judgement.own.interval(np.array([0.5]))
    assert end.contradicts
    assert (end.lower, end.upper, end.evidence) == (own.lower, own.upper, "own trials")
    assert not judgement.trusted
    assert "contradict each other" in judgement.refutation
    assert not judgement.of({"x": 0.5}).trusted
    assert "NOT TRUSTED" in str(judgement.of({"x": 0.5}))
    found = certificate_fields(judgement, np.random.default_rng(0))
    assert not found["trusted"]
    assert judged(low, moment=moment).trusted
    assert "refute the stated assumptions" in judged(low, moment=moment, refuted=True).refutation


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_signs_of_comparisons(direction):
    """x = 0.4 has larger values than x = 0.9; whether that is better is another matter."""
    history = run(repeats=60)
    found = mb.certify(history, space=SPACE, direction=direction, **STATED)
    good, bad = {"x": 0.4}, {"x": 0.9}
    larger, smaller = found.compare(good, bad), found.compare(bad, good)
    assert larger.lower > 0.0
    assert (smaller.lower, smaller.upper) == pytest.approx((-larger.upper, -larger.lower), abs=1e-9)
    assert larger.lower <= 0.1 <= larger.upper
    assert larger.pvalue == smaller.pvalue < 0.01
    worse = bad if direction == "maximize" else good
    better = found.improvement(worse)
    assert better.lower > 0.0
    straight = found.compare(found.parameters, worse)
    sign = 1.0 if direction == "maximize" else -1.0
    assert sorted((sign * straight.lower, sign * straight.upper)) == pytest.approx([better.lower, better.upper])
    nothing = found.compare(good, good)
    assert nothing.lower <= 0.0 <= nothing.upper
    assert nothing.pvalue == 1.0
    assert found.compare(good, {"x": 0.0123}).pvalue == 1.0  # never tried
    tuner = mb.Tuner(SPACE, direction=direction, **STATED).learn(history)
    assert tuner.compare(good, bad).lower == pytest.approx(larger.lower, abs=1e-9)
    assert tuner.improvement(worse).lower == pytest.approx(better.lower, abs=2e-3)


def test_a_comparison_is_no_worse_than_its_ends_and_than_the_model():
    found = mb.certify(run(repeats=20), space=SPACE, **STATED)
    for one, other in (({"x": 0.4}, {"x": 0.9}), ({"x": 0.1}, {"x": 0.7}), ({"x": 0.4}, {"x": 0.41})):
        a, b, both = found.of(one), found.of(other), found.compare(one, other)
        assert both.lower >= a.lower - b.upper - 1e-9
        assert both.upper <= a.upper - b.lower + 1e-9
        moment = found.judgement.moment
        directions = moment.directions(SPACE.encode_all([one, other]))
        most = float(moment.exact.maximum(directions[:1] - directions[1:])[0])
        assert both.upper <= most + 1e-9
    near = found.compare({"x": 0.4}, {"x": 0.41})
    assert near.upper - near.lower < 0.5 * (found.of({"x": 0.4}).upper - found.of({"x": 0.4}).lower)
    assert near.evidence == "model"


def pvalues(difference, runs, each=20, m=20, seed=3, kind="samples"):
    """P-values of two configurations among six, tried in turns, of which the first two are picked by their values."""
    found = []
    space = mb.Space({"c": mb.Categorical(list("abcdef"))})
    for number in range(runs):
        rng = np.random.default_rng([seed, number])
        history = []
        for _ in range(each):
            for i, c in enumerate("abcdef"):
                p = 0.5 + difference * (i == 0)
                value = float(rng.binomial(m, p) / m) if kind == "samples" else float(rng.normal(p, 0.1))
                history.append(({"c": c}, value))
        stated = {"samples": m} if kind == "samples" else {"sigma": 0.1} if kind == "sigma" else {"noise": "gaussian"}
        known = mb.Assumptions(reward_range=(0.0, 1.0), direction="maximize", **stated)
        rows = space.encode_all([p for p, _ in history])
        values = np.array([v for _, v in history])
        none = known.sequence(space).moment  # the p-value is by own trials alone
        trials = Trials([p for p, _ in history], rows, values, np.zeros(len(values), np.int64))
        judgement = Judgement(space, known, none, trials)
        means = [values[i::6].mean() for i in range(6)]
        best, worst = rows[int(np.argmax(means))], rows[int(np.argmin(means))]
        found.append(pvalue(judgement, best, worst))
    return np.array(found)


@pytest.mark.parametrize("kind", ["samples", "sigma", "gaussian"])
def test_pvalues_are_uniform_or_larger_if_nothing_differs(kind):
    """Though the best and the worst are picked after the fact."""
    found = pvalues(0.0, 300, kind=kind)
    for level in (0.01, 0.05, 0.2, 0.4):
        assert np.mean(found <= level) <= level + 2.5 * math.sqrt(level * (1 - level) / 300)
    assert found.min() > 0.0


@pytest.mark.parametrize("kind", ["samples", "sigma", "gaussian"])
def test_pvalues_are_small_if_something_differs(kind):
    assert np.median(pvalues(0.3, 10, kind=kind)) < 1e-3


def test_a_pvalue_is_the_level_at_which_intervals_part():
    history = run(repeats=30)
    judgement = judged(history)
    p = compare(judgement, {"x": 0.4}, {"x": 0.9}).pvalue
    for delta, apart in ((1.02 * p, True), (0.98 * p, False)):
        own = judged(history, delta=delta).own
        good, bad = own.interval(np.array([0.4])), own.interval(np.array([0.9]))
        assert (good.lower > bad.upper) == apart


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
@pytest.mark.parametrize(
    "stated",
    [STATED, {"sigma": 0.07, "reward_range": (0, 1)}, {"noise": "gaussian", "norm_bound": 2.0}],
    ids=["samples", "sigma", "gaussian"],
)
def test_of_the_recommended_one_is_the_certificate(stated, direction):
    history = run(repeats=20)
    found = mb.certify(history, space=SPACE, direction=direction, **stated)
    worth = found.of(found.parameters)
    assert isinstance(worth, Worth)
    assert worth.interval == pytest.approx(found.interval, rel=1e-12)
    assert (worth.evidence, worth.trials, worth.trusted) == (found.evidence, found.tried, found.trusted)
    tuner = mb.Tuner(SPACE, direction=direction, **stated).learn(history)
    assert tuner.interval(found.parameters) == pytest.approx(found.interval, rel=1e-9)
    recommended = tuner.recommend()
    mine = tuner.certificate()
    assert (recommended.parameters, recommended.tried, recommended.evidence) == (
        mine.parameters,
        mine.tried,
        mine.evidence,
    )
    assert recommended.interval == pytest.approx(mine.interval, rel=1e-12)
    assert tuner.certificate(tried=True).tried > 0
    assert tuner.recommend(tried=True).tried > 0
    assert tuner.recommend("mean", tried=True).tried > 0
    worst = -math.inf if direction == "maximize" else math.inf
    assert worst not in mine.interval


def test_a_certificate_made_by_hand_knows_no_other_configuration():
    alone = mb.tuning.StudyCertificate({"x": 0.5}, 0.4, 0.6, 0.7, 0.3, "range", t=3, delta=0.05, assumptions="none")
    for ask in (alone.of, alone.improvement, lambda p: alone.compare(p, p)):
        with pytest.raises(mb.InvalidInput, match="made by hand"):
            ask({"x": 0.5})


WIDE = mb.Space(
    {
        "C": mb.Float(1e-3, 1e3, log=True),
        "f": mb.Float(0.1, 0.7),
        "n": mb.Int(1, 100_000, log=True),
        "b": mb.Categorical([True, False]),
        "o": mb.Categorical([None, "", "None", 1, 0.1]),
    }
)
GIVEN = [
    {"C": 0.1, "f": 0.3, "n": 7, "b": True, "o": None},
    {"C": 0.30000000000000004, "f": 0.1, "n": 99_999, "b": False, "o": "None"},
    {"C": 1e-3, "f": 0.7, "n": 1, "b": True, "o": 0.1},
    {"C": 3.0, "f": 0.55, "n": 12_345, "b": False, "o": 1},
    {"C": 123.456, "f": 1 / 3, "n": 3, "b": True, "o": ""},
]


def same(one, other):
    return list(one) == list(other) and all(
        type(one[name]) is type(other[name]) and one[name] == other[name] for name in one
    )


@pytest.mark.parametrize("best", [0, 1, *(pytest.param(i, marks=pytest.mark.heavy) for i in range(2, len(GIVEN)))])
def test_configurations_come_back_exactly_as_they_were_given(best, tmp_path):
    history = [(p, 0.95 if i == best else 0.1) for i, p in enumerate(GIVEN) for _ in range(6)]
    stated = {**STATED, "features": mb.Identity(WIDE.dim)}
    tuner = mb.Tuner(WIDE, **stated, rng=0)
    for p, v in history:
        tuner.tell(tuner.adopt(p), v)
    tuner.save(tmp_path / "t")
    for one in (tuner, mb.Tuner.load(tmp_path / "t"), mb.Tuner(WIDE, **stated).learn(history)):
        assert same(one.recommend(tried=True).parameters, GIVEN[best])
        assert same(one.certificate(tried=True).parameters, GIVEN[best])
        assert [told.parameters for told in one.history] == [p for p, _ in history]
        assert all(same(told.parameters, p) for told, (p, _) in zip(one.history, history, strict=True))
    found = mb.certify(history, space=WIDE, **stated)
    if found.tried:
        assert same(found.parameters, GIVEN[best])
    assert found.of(GIVEN[best]).trials == 6
    waiting = tuner.adopt(GIVEN[best])
    assert same(waiting.parameters, GIVEN[best])
    assert same(tuner.pending[0].parameters, GIVEN[best])


def test_what_a_certificate_says_as_plain_values():
    rng = np.random.default_rng(0)
    history = [(p, noisy(p, rng)) for p in MIXED.sample(30, rng=0)]
    found = mb.certify(history, space=MIXED, reward_range=(0, 1), samples=100, rows="fresh")
    stored = json.loads(found.to_json())
    assert stored == found.to_dict()
    assert stored["parameters"] == found.parameters
    assert stored["interval"] == list(found.interval)
    assert (stored["evidence"], stored["tried"], stored["trials"]) == (found.evidence, found.tried, 30)
    assert stored["summary"] == str(found)
    assert len(str(found).splitlines()) == 2
    page = found.to_html()
    assert page == found._repr_html_()
    assert "<details>" in page
    # A name with markup in it stays text.
    odd = mb.Space({"<b>x": mb.Float(0, 1)})
    pairs = [({"<b>x": float(x)}, 0.5) for x in np.linspace(0, 1, 5)]
    assert "<b>x" not in mb.certify(pairs, space=odd, **STATED).to_html()


def test_the_order_of_play_of_tables(tmp_path):
    """A column of numbers tells it, or the user; without it configurations share δ alike, and there are no prefixes."""
    history = run(n=12, repeats=8)
    frame = pd.DataFrame([{"x": p["x"], "value": v} for p, v in history])
    numbered = frame.assign(number=range(len(frame)), params_x=frame["x"])[["number", "params_x", "value"]]
    listed = mb.certify(history, space=SPACE, **STATED)
    shuffled = numbered.sample(frac=1.0, random_state=0)
    for table, options in ((numbered, {}), (shuffled, {}), (frame, {"ordered": True})):
        found = mb.certify(table, space=SPACE, **options, **STATED)
        assert found.ordered
        assert found.interval == pytest.approx(listed.interval, abs=1e-9)
    numbered.to_csv(tmp_path / "n.csv", index=False)
    assert mb.certify(tmp_path / "n.csv", space=SPACE, **STATED).interval == pytest.approx(listed.interval, abs=1e-9)
    plain = mb.certify(frame, space=SPACE, **STATED)
    assert not plain.ordered
    assert "The order of play is not known" in plain.details()
    known = mb.MeanSequence((0, 1), 0.05 * 0.2 / 14).update(frame["value"][12:20].to_numpy(), samples=50)
    assert plain.judgement.own.interval(np.array([0.4])).lower == pytest.approx(known.lower(), abs=1e-12)
    # Nothing depends on the order of rows then.
    again = mb.certify(frame.sample(frac=1.0, random_state=1), space=SPACE, **STATED)
    assert again.interval == pytest.approx(plain.interval, abs=1e-6)
    assert again.best_possible == pytest.approx(plain.best_possible, abs=1e-6)
    doubled = numbered.assign(number=0)
    assert mb.certify(doubled, space=SPACE, **STATED).unused["number"] == "no different numbers"
    unordered = mb.certify(history, space=SPACE, ordered=False, **STATED)
    assert not unordered.ordered
    assert unordered.interval == pytest.approx(plain.interval, abs=1e-6)
    study = optuna.create_study(direction="maximize")
    kind = {"x": optuna.distributions.FloatDistribution(0.0, 1.0)}
    study.add_trials([optuna.create_trial(params={"x": x}, distributions=kind, value=0.5) for x in (0.4, 0.5)])
    with pytest.raises(mb.InvalidInput, match="ordered applies only to tables"):
        mb.certify(study, space=SPACE, ordered=True, **STATED)


def test_words():
    assert str(Worth(0.5, 0.75, "own trials", 1)) == "in [0.5, 0.75], according to its own trials (tried 1 time)"
    assert "never tried" in str(Worth(0.5, 0.75, "model", 0))
    text = str(Comparison(-0.1, 0.2, "model", 0.034, False))
    assert text.startswith("The difference lies in [-0.1, 0.2], according to the model; p = 0.034")
    assert "NOT TRUSTED" in text
