"""Model-based error bars: folded from the journal with one scale, valid whatever chose the arms and contexts."""

import numpy as np
import pytest
from scipy.stats import binomtest

import mixbandit as mb
from mixbandit.bandits import MemoryJournal
from mixbandit.bandits.contextual.anchored import Anchored
from mixbandit.errors import InvalidInput
from mixbandit.features import NamedContexts
from mixbandit.spending import Spending
from tests.bandits.contextual.worlds import contexts, lived, make

THETA = {"a": (0.5, 0.15), "b": (0.45, -0.15), "c": (0.3, 0.0)}


def mean(arm, x):
    return THETA[arm][0] + THETA[arm][1] * x


def world(n, seed=0, binary=True, **options):
    """A bandit that has seen n rewards, whose means are linear in x, and the contexts."""
    rng = np.random.default_rng(seed)
    bandit = mb.ContextualBandit(list(THETA), **{"rng": seed, "floor": 0.1, **options})
    for _ in range(n):
        step(bandit, rng, binary=binary)
    return bandit


def step(bandit, rng, *, binary=True):
    x = float(rng.uniform(-1.0, 1.0))
    choice = bandit.ask({"x": x})
    expected = mean(choice.arm, x)
    bandit.tell(choice, float(rng.random() < expected) if binary else expected)
    return x


def test_it_says_what_it_rests_on():
    bandit = world(200)
    found = bandit.interval({"x": 0.5}, norm_bound=2.0)
    assert found.arms == ("a", "b", "c")
    assert len(found) == 3
    assert found.trusted
    assert found.rewards == 200 - 16
    assert (found.lower <= found.estimate).all()
    assert (found.estimate <= found.upper).all()
    text = str(found)
    assert text.startswith("Expected rewards, from 184 rewards, with probability ≥ 0.95 at all times at once:\n  a  ")
    assert "linear in 2 features with ‖θ‖ ≤ 2 in the scale of the first 16 contexts, whose rewards do not count" in text
    assert "rewards lie in reward_range and depend on the past only through context and arm." in text
    assert "arrives" not in text
    assert "0.05" in str(found.ledger)
    assert found["b"] == (found.lower[1], found.upper[1])
    with pytest.raises(InvalidInput):
        found["z"]
    one = bandit.interval({"x": 0.5}, "b", norm_bound=2.0)
    assert (one.lower, one.upper) == found["b"]
    assert one.best == "b"
    assert one.shortfall == 0.0
    assert bandit.interval({"x": 0.5}, norm_bound=2.0, arms=["c", "b"]).arms == ("b", "c")
    assert "0.3-sub-Gaussian" in str(bandit.interval({"x": 0.5}, norm_bound=2.0, sigma=0.3))


def test_it_is_a_sequence_per_arm_in_the_frozen_scale():
    """The reference: the same rewards in sequences of their own, rows scaled by the first 16 contexts by hand."""
    rng, bandit, seen = np.random.default_rng(4), make(floor=0.3), []
    for t in range(140):
        context = {"x": float(rng.normal(5.0, 2.0)), "rare": float(t in (100, 130)), "topic": "ab"[int(t > 50)]}
        choice = bandit.ask(context)
        reward = float(rng.random())
        bandit.tell(choice, reward)
        seen.append((context, choice.arm, reward))
    first = np.array([context["x"] for context, _, _ in seen[:16]])
    names = ["intercept", "x", "rare", "topic=a", "topic=b"]
    features = bandit.state.features
    order = [names.index(features.name(column)) for column in range(features.dim)]

    def row(context):
        # "rare" has not varied in the first 16 contexts: it keeps the scale of its first change, by 1.
        z = (context["x"] - first.mean()) / first.std()
        columns = np.array([1.0, z, context["rare"], float(context["topic"] == "a"), float(context["topic"] == "b")])
        return columns[order]

    query = {"x": 4.0, "rare": 1.0, "topic": "b"}
    found = bandit.interval(query, norm_bound=3.0)
    delta = Spending(0.05).nth(5).delta / 6.0  # the scale of 2^4 contexts; half of it for three arms from the start
    for place, arm in enumerate("abc"):
        alone = mb.MartingaleMixture(5, sigma=0.5, norm_bound=3.0, delta=delta, reward_range=(0, 1))
        mine = [(row(context), reward) for context, name, reward in seen[16:] if name == arm]
        alone.update(np.array([x for x, _ in mine]), np.array([r for _, r in mine]))
        at = row(query)[None]
        assert found.lower[place] == pytest.approx(alone.lower(at)[0], abs=1e-6)
        assert found.upper[place] == pytest.approx(alone.upper(at)[0], abs=1e-6)


@pytest.mark.parametrize("n", [0, 1, 2, 15, 16, 31, 32, 200])
def test_asking_often_changes_nothing(n):
    rng, often = np.random.default_rng(0), world(0)
    for _ in range(n):
        often.interval({"x": 0.2}, norm_bound=2.0)
        step(often, rng)
    once = world(n)
    mine, theirs = (bandit.interval({"x": 0.2}, norm_bound=2.0) for bandit in (often, once))
    assert str(mine) == str(theirs)
    np.testing.assert_allclose(mine.lower, theirs.lower, rtol=0, atol=1e-9)
    np.testing.assert_allclose(mine.upper, theirs.upper, rtol=0, atol=1e-9)


def test_the_best_arm_and_its_shortfall_are_those_of_all_pairs():
    bandit = world(3000, binary=False, floor=1.0)
    for x in (-1.0, 0.0, 1.0):
        found = bandit.interval({"x": x}, norm_bound=1.0, sigma=0.05)
        pairs = found.upper[None, :] - found.lower[:, None]
        np.fill_diagonal(pairs, 0.0)
        most = pairs.max(axis=1)
        assert found.best == found.arms[int(most.argmin())]
        assert found.shortfall == pytest.approx(max(most.min(), 0.0))
    assert found.best == "a"
    assert found.shortfall == 0.0
    assert "Best: a; no other of these arms is better.\n" in str(found)
    unknown = str(world(0).interval({"x": 0.0}, norm_bound=1.0))
    assert "Safest: a; no other of these arms is better by more than 1.\n" in unknown


@pytest.mark.parametrize(
    "new",
    [{"topic": "new"}, {"size": 4.0}, {"x": None}, {"x": "none"}],
    ids=["unseen category", "number that had not varied", "first missing value", "category in place of a number"],
)
def test_what_is_new_in_a_context_is_as_uncertain_as_once_it_was_seen(new):
    bandit, rng = mb.ContextualBandit(["a"], (-9, 9), rng=0), np.random.default_rng(0)
    usual = {"x": 0.0, "size": 3.0, "topic": "code"}
    for _ in range(100):
        choice = bandit.ask({**usual, "x": float(rng.uniform(-1.0, 1.0))})
        bandit.tell(choice, float(rng.random() < 0.5))
    known = bandit.interval(usual, norm_bound=1.0, sigma=0.5)
    found = bandit.interval({**usual, **new}, norm_bound=1.0, sigma=0.5)
    bandit.ask({**usual, **new})
    seen = bandit.interval({**usual, **new}, norm_bound=1.0, sigma=0.5)
    np.testing.assert_allclose(found.lower, seen.lower, atol=1e-9)
    np.testing.assert_allclose(found.upper, seen.upper, atol=1e-9)
    assert (found.upper - found.lower > known.upper - known.lower + 0.5).all()
    assert "of them came later: in the scale of the first context with " in str(found)
    assert "came later" not in str(known)
    np.testing.assert_allclose(bandit.interval(usual, norm_bound=1.0, sigma=0.5).lower, known.lower, atol=1e-9)


def test_what_rows_do_not_show_is_said():
    bandit = mb.ContextualBandit(["a"], features=NamedContexts(own_columns=2, hashed_columns=1), rng=0)
    for t in range(32):  # the third number is clipped, and its reward does not count
        x = 1000.0 if t == 2 else float(t % 2)
        bandit.tell(bandit.ask({"x": x, "topic": "ab"[t % 2]}), 0.5)
    assert bandit.state.features.limited == 1
    known, far = {"x": 0.0, "topic": "a"}, {"x": 100.0, "topic": "a"}
    assert "clipped" not in str(bandit.interval(known, norm_bound=2.0))
    assert "the effect of the limit to which it was clipped" in str(bandit.interval(far, norm_bound=2.0))
    bandit.ask({"x": 0.0, "topic": "c"})
    assert "share a column" not in str(bandit.interval(known, norm_bound=2.0))
    assert "categories that share a column have the same effect" in str(
        bandit.interval({"x": 0.0, "topic": "d"}, norm_bound=2.0)
    )


def test_what_others_append_meanwhile_is_for_the_next_time():
    class Busy(MemoryJournal):
        calls = 0

        def since(self, number):
            self.calls -= 1
            if self.calls == 0:  # between two looks at the journal
                rival.ask_many([{"x": 0.1, "topic": each} for each in "abcdefgh"])
                rival.add_arm("d")
            return super().since(number)

    journal = Busy()
    bandit, rival = make(journal=journal), make(journal=journal)
    for _ in range(20):
        bandit.tell(bandit.ask({"x": 0.5, "topic": "a"}), 1.0)
    rival.ask({"x": 0.5, "topic": "a"})
    journal.calls = 2
    assert bandit.interval({"x": 0.5, "topic": "a"}, norm_bound=2.0).arms == ("a", "b", "c")
    assert journal.calls < 0
    assert bandit.interval({"x": 0.5, "topic": "a"}, norm_bound=2.0).arms == ("a", "b", "c", "d")


def test_late_and_lost_rewards_are_mentioned():
    bandit = world(50)
    first, second, third = (bandit.ask({"x": 0.1 * t}) for t in range(3))
    bandit.tell(second, 1.0)
    assert "when a reward arrives does not depend on its value" in str(bandit.interval({"x": 0.0}, norm_bound=2.0))
    bandit.cancel(first)
    assert "(1 cancelled choice)" in str(bandit.interval({"x": 0.0}, norm_bound=2.0))
    bandit.tell(third, 1.0)


def test_rewards_that_refute_the_assumptions_are_not_trusted():
    bandit, rng = mb.ContextualBandit(["a"], rng=0), np.random.default_rng(0)
    for _ in range(400):
        choice = bandit.ask({"x": float(rng.normal())})
        bandit.tell(choice, float(rng.random() < 0.5))
    assert bandit.interval({"x": 0.0}, norm_bound=2.0).trusted
    refuted = bandit.interval({"x": 0.0}, norm_bound=2.0, sigma=0.05)
    assert not refuted.trusted
    assert "NOT TRUSTED" in str(refuted)


def test_arms_that_come_later_have_intervals_too():
    bandit = lived(make())
    found = bandit.interval({"tokens": 100.0, "topic": "code", "urgent": False}, norm_bound=3.0)
    assert found.arms == tuple(bandit.arms)
    bandit.remove_arm("c")
    assert "c" not in bandit.interval({"tokens": 100.0, "topic": "code", "urgent": False}, norm_bound=3.0).arms


def test_rows_that_stay_are_those_at_the_time():
    """What a context's row was when it came is what it is in the end: only columns that were 0 are new."""
    features, anchored, rows = make().origin[1], None, []
    given = [{**context, "late": float(t > 60) * t} for t, context in enumerate(contexts(150, seed=2))]
    for t, context in enumerate(given):
        read = (features if anchored is None else anchored.features).read(context)
        if anchored is None:
            features = features.after(read)
            anchored = Anchored(features) if t == 7 else None
        else:
            anchored = anchored.after(read)
        if anchored is not None:
            rows.append((read, anchored.row(read, 12)))
    assert anchored.features.version > features.version + 2
    for read, row in rows:
        np.testing.assert_allclose(anchored.row(read, 12), row, atol=1e-9)


def wrong_anywhere(seed, n=150):
    """Whether an interval excludes the truth at any time, for an adversary that stops when it may be so."""
    rng = np.random.default_rng(seed)
    bandit, last = mb.ContextualBandit(list(THETA), rng=seed, floor=0.05, delta=0.2), False
    for t in range(n):
        # Contexts depend on rewards, and so does the scale: after a success they are larger.
        x = float(rng.uniform(-1.0, 1.0)) * (1.0 if last else 0.2)
        choice = bandit.ask({"x": x})
        last = rng.random() < mean(choice.arm, x)
        bandit.tell(choice, float(last))
        if t % 6 == 5:
            for at in (-1.0, 1.0):
                found = bandit.interval({"x": at}, norm_bound=1.0)
                truth = np.array([mean(arm, at) for arm in THETA])
                if ((found.lower > truth) | (found.upper < truth)).any():
                    return True
    return False


def test_intervals_cover_the_truth():
    assert sum(map(wrong_anywhere, range(12))) <= 6


@pytest.mark.heavy
def test_intervals_cover_the_truth_in_many_runs():
    wrong = sum(map(wrong_anywhere, range(300)))
    assert binomtest(wrong, 300, 0.2, alternative="greater").pvalue > 1e-3
