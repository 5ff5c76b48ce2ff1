"""Choices know with what probability they were made: what is recorded is what is drawn from."""

import numpy as np
import pytest
from scipy.stats import chisquare

import mixbandit as mb
from mixbandit.bandits import ActingRule, LeastRegretPerInformation, Optimism, Policy, Thompson, Uniformly
from mixbandit.search import ArmsOffer, Selection, Selections, Shares, Stream

ARMS = mb.Arms(np.eye(4), labels=list("abcd"))
GIVEN = np.array([0.5, 0.3, 0.2, 0.0])


class Stated(ActingRule):
    name = "stated shares"

    def select(self, view, offer, rng):
        weights = GIVEN[np.flatnonzero(offer.rows.any(axis=0))] if len(offer) < 4 else GIVEN
        return Selection(weights / weights.sum())


def policy(rule, kind=mb.MartingaleMixture, **options):
    return Policy(kind(4, sigma=0.5, norm_bound=2.0, delta=0.05), ARMS, rule=rule, track_regret=False, **options)


def counts_of(choices):
    return np.bincount([choice.index for choice in choices], minlength=4)


@pytest.mark.parametrize("how", ["one by one", "contexts"])
def test_arms_are_drawn_with_the_probabilities_that_are_recorded(how):
    n = 4000
    if how == "contexts":
        features = mb.Interaction(1, 4)
        bandit = Policy(
            mb.MartingaleMixture(features, sigma=0.5, norm_bound=2.0, delta=0.05), ARMS, rule=Stated(), rng=1
        )
        choices = bandit.ask(contexts=np.ones((n, 1)))
    else:
        bandit = policy(Stated(), rng=0)
        choices = [bandit.ask() for _ in range(n)]
    for choice in choices[:5]:
        np.testing.assert_allclose(choice.probabilities, GIVEN)
        assert choice.probability == pytest.approx(GIVEN[choice.index])
    counts = counts_of(choices)
    assert counts[3] == 0
    assert chisquare(counts[:3], n * GIVEN[:3]).pvalue > 1e-4
    # The importance weight of every arm that can be played has mean 1.
    for arm in range(3):
        weights = [(c.index == arm) / c.probabilities[arm] for c in choices]
        assert abs(np.mean(weights) - 1.0) < 5.0 * np.std(weights) / np.sqrt(n)


def test_choose_many_states_the_probability_of_what_it_chose():
    features = mb.Interaction(1, 4)
    bandit = Policy(mb.MartingaleMixture(features, sigma=0.5, norm_bound=2.0, delta=0.05), ARMS, rule=Stated(), rng=1)
    found = bandit.choose_many(np.ones((500, 1)))
    np.testing.assert_allclose(found.probability, GIVEN[found.indices])


def test_the_best_arm_is_certain_and_arms_that_tie_share():
    bandit = policy(Optimism(), rng=0)
    first = bandit.ask()
    np.testing.assert_allclose(first.probabilities, 0.25)
    bandit.tell(first, -1.0)
    second = bandit.ask()
    others = [arm for arm in range(4) if arm != first.index]
    expected = np.zeros(4)
    expected[others] = 1.0 / 3.0
    np.testing.assert_allclose(second.probabilities, expected)
    sequence = mb.OFULSequence(4, sigma=0.5, norm_bound=2.0, delta=0.05)
    sequence.update(np.diag([1.0, 2.0, 3.0, 4.0]), [0.1, 0.2, 0.3, 0.9])
    chosen = Policy(sequence, ARMS, rule=LeastRegretPerInformation(), rng=0).ask()
    assert chosen.probability == 1.0


def test_nobody_knows_the_probabilities_of_thompson_sampling_and_of_a_box():
    bandit = policy(Thompson(), rng=0)
    assert bandit.ask().probability is None
    assert bandit.ask().probabilities is None
    assert bandit.choose_many(arms=np.eye(4)).probability is None
    box = mb.CMMUCB(2, actions=mb.Box([0.0, 0.0], [1.0, 1.0]), sigma=0.5, norm_bound=1.0)
    assert box.ask().probability is None


def test_in_a_batch_what_was_taken_has_probability_0():
    first, second, third = policy(Uniformly(), rng=0).ask(n=3)
    assert first.probabilities.tolist() == [0.25] * 4
    assert second.probabilities[first.index] == 0.0
    np.testing.assert_allclose(second.probabilities.sum(), 1.0)
    assert third.probability == pytest.approx(0.5)
    assert third.probabilities[[first.index, second.index]].tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([0.5, 0.5], r"each of 4 arms a probability, got shape \(2,\)"),
        ([0.5, 0.6, 0.0, 0.0], "sum to 1"),
        ([1.5, -0.5, 0.0, 0.0], "at least 0"),
        ([np.nan, 0.5, 0.5, 0.0], "at least 0"),
        ("abcd", "probabilities"),
    ],
)
def test_shares_that_are_none_are_refused_and_nothing_changes(given, message):
    class Wrong(Stated):
        def select(self, view, offer, rng):
            return Selection(given)

    bandit = policy(Wrong(), rng=0)
    before = bandit.state
    with pytest.raises(mb.InvalidInput, match=message):
        bandit.ask()
    assert bandit.state is before


def test_shares_take_little_memory_and_come_back():
    floor = np.full(1000, 0.01 / 1000)
    floor[7] += 0.99
    shares = Shares.checked(floor, 1000)
    assert shares.arms == (7,)
    np.testing.assert_allclose(shares.array(), floor, rtol=1e-12)
    assert Shares.from_state_dict(shares.state_dict()) == shares
    draws = np.array([shares.draw(np.random.default_rng(i)) for i in range(2000)])
    assert 0.97 < (draws == 7).mean() < 1.0


def test_an_impossible_arm_is_never_drawn_among_many():
    chances = np.tile([0.0, 1.0, 3.0], (20_000, 1))
    found = Selections(chances).drawn(Stream(0))
    counts = np.bincount(found, minlength=3)
    assert counts[0] == 0
    assert chisquare(counts[1:], 20_000 * np.array([0.25, 0.75])).pvalue > 1e-4


def test_part_of_an_offer_keeps_its_places():
    offer = ArmsOffer(np.eye(4), np.eye(4), labels=tuple("abcd"))
    part = offer.restricted(np.array([True, False, True, True])).restricted(np.array([False, True, True]))
    assert part.labels == ("c", "d")
    assert part.places.tolist() == [2, 3]
    assert part.whole == 4
    for wrong in ([True], np.zeros(2, dtype=bool), [1, 0]):
        with pytest.raises(mb.InvalidInput, match="mask must have 2 truth values"):
            part.restricted(wrong)


class Guarded(Stated):
    """Never the first arm of those offered."""

    def __init__(self, how):
        self.how = how

    def select(self, view, offer, rng):
        part = offer.restricted(np.arange(len(offer)) > 0) if len(offer) > 1 else offer
        return part.uniform(rng) if self.how == "uniform" else part.maximise(view.belief.exact, rng)


@pytest.mark.parametrize("how", ["uniform", "maximise"])
def test_an_arm_that_a_rule_leaves_out_is_never_played(how):
    bandit = policy(Guarded(how), rng=0)
    choices = [bandit.ask() for _ in range(60)]
    assert {choice.index for choice in choices} == {1, 2, 3}
    assert all(choice.probabilities[0] == 0.0 < choice.probability for choice in choices)
    many = bandit.choose_many(arms=np.tile(np.eye(4), (200, 1, 1)))
    assert set(many.indices) == {1, 2, 3}
    for first, second in (policy(Guarded(how), rng=seed).ask(n=2) for seed in range(20)):
        assert first.index != 0
        left_out = min({0, 1, 2, 3} - {first.index})
        assert second.index not in (left_out, first.index)
        assert second.probabilities[[left_out, first.index]].tolist() == [0.0, 0.0]
        assert second.probability == second.probabilities[second.index] > 0.0


@pytest.mark.parametrize(
    "shares",
    [
        Shares(3, (0,), (1.0,)),
        Shares(4, (0,), (0.2,)),
        Shares(4, (1, 0), (0.9, 0.1)),
        Shares(4, (7,), (1.0,)),
        Shares(4, (0, 1), (2.0, -1.0)),
        Shares(4, (0,), (np.nan,)),
        Shares(4, (), ()),
        None,
    ],
)
def test_shares_made_by_hand_are_checked(shares):
    class Wrong(Stated):
        def select(self, view, offer, rng):
            return shares if shares is None else Selection(shares)

    with pytest.raises(mb.InvalidInput):
        policy(Wrong(), rng=0).ask()


@pytest.mark.parametrize(
    "chances",
    [np.full((3, 4), np.nan), np.zeros((3, 4)), np.full((3, 4), -1.0), np.ones((3, 3)), [[1.0] * 4] * 2, np.inf],
)
def test_chances_of_many_decisions_are_checked(chances):
    class Wrong(Stated):
        def select_many(self, view, rows, directions, arms, rng):
            return Selections(chances)

    with pytest.raises(mb.InvalidInput, match="chances"):
        policy(Wrong(), rng=0).choose_many(arms=np.tile(np.eye(4), (3, 1, 1)))


def test_tiny_chances_are_chances():
    found = Selections(np.tile([1e-310, 3e-310, 0.0, 0.0], (4000, 1))).fitting(4000, 4).drawn(Stream(0))
    assert chisquare(np.bincount(found, minlength=4)[:2], [1000, 3000]).pvalue > 1e-4


def test_decisions_that_are_not_recorded_are_drawn_anew_once_their_rewards_are_learnt():
    bandit, seen = policy(Uniformly(), rng=0), []
    for _ in range(200):
        found = bandit.choose_many(arms=np.eye(4)[None])
        assert found.indices == bandit.choose_many(arms=np.eye(4)[None]).indices  # nothing was learnt in between
        seen.append(int(found.indices[0]))
        bandit.learn(found.rows, [0.1])
    assert chisquare(np.bincount(seen, minlength=4)).pvalue > 1e-4


def test_the_largest_upper_bound_is_not_taken_from_a_rule_of_a_user():
    class Boasts(Stated):
        def select(self, view, offer, rng):
            return Selection(GIVEN[: len(offer)] / GIVEN[: len(offer)].sum(), optimum=np.nan)

    sequence = mb.MartingaleMixture(4, sigma=0.5, norm_bound=2.0, delta=0.05)
    bandit = Policy(sequence, ARMS, rule=Boasts(), rng=0)
    bandit.tell(bandit.ask(), 0.3)
    assert bandit.regret_bound().widths == pytest.approx(4.0)
