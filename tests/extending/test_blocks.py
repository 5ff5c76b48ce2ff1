"""A user's belief: a set per arm behind directions that only it understands."""

import numpy as np
import pytest

import mixbandit as mb
from tests.extending.outside.blocks import PerArm

STATED = {"sigma": 0.2, "norm_bound": 1.5}
THETA = np.array([[0.8, -0.3], [0.1, 0.9], [-0.5, 0.4], [0.7, 0.1]])
DELTA = 0.08


def world(rows, rng):
    means = np.array([THETA[int(arm)] @ x for *x, arm in rows])
    return means, means + STATED["sigma"] * rng.choice((-1.0, 1.0), size=len(rows))


@pytest.fixture(scope="module")
def taught():
    """A sequence after 80 rewards, and those: rows and rewards. The last arm has none."""
    rng = np.random.default_rng(3)
    rows = np.column_stack((rng.normal(size=(80, 2)), rng.integers(3, size=80)))
    rewards = world(rows, rng)[1]
    return PerArm(4, 2, **STATED, delta=DELTA).update(rows, rewards), rows, rewards


def own(arm, rows, rewards):
    """The sequence of one arm, with its share of δ."""
    mine = rows[:, 2] == arm
    cs = mb.MartingaleMixture(2, **STATED, delta=DELTA / 4)
    return cs.update(rows[mine, :2], rewards[mine]) if mine.any() else cs


ASKED = np.array([[0.4, -1.0, 2], [0.3, 0.2, 0], [1.0, 1.0, 3], [0.0, 0.7, 0], [-0.6, 0.1, 1]])


def test_bounds_are_those_of_the_arms_own_sequences(taught):
    cs, rows, rewards = taught
    for upper, lower, (*x, arm) in zip(cs.upper(ASKED), cs.lower(ASKED), ASKED, strict=True):
        alone = own(arm, rows, rewards)
        assert upper == pytest.approx(alone.upper([x])[0], rel=1e-12)
        assert lower == pytest.approx(alone.lower([x])[0], rel=1e-12)
    assert cs.t == 80
    assert cs.delta == DELTA


def test_one_at_a_time_or_all_at_once_is_the_same(taught):
    cs, rows, rewards = taught
    slow = PerArm(4, 2, **STATED, delta=DELTA)
    for row, reward in zip(rows, rewards, strict=True):
        slow.update(row, reward)
    np.testing.assert_allclose(slow.upper(ASKED), cs.upper(ASKED), rtol=1e-9)


def test_maximum_interval_and_support_agree(taught):
    found = taught[0].moment.exact
    one = taught[0].moment.directions(ASKED)
    for directions in (one, -one, one - one[1], one[1:] - one[0]):
        low, high = found.interval(directions)
        np.testing.assert_allclose(high, found.maximum(directions), rtol=1e-9)
        np.testing.assert_allclose(low, -found.maximum(-directions), rtol=1e-9)
        support = found.support(directions)
        np.testing.assert_allclose(support.value, high, rtol=1e-9)
        # The maximiser, times the direction, is the maximum.
        np.testing.assert_allclose((support.points * directions.phi).sum(axis=(1, 2)), high, rtol=1e-7)


def test_differences_are_over_one_parameter_for_each_arm(taught):
    """Between actions of one arm they are those of its own set; between arms they are the sum of two."""
    cs, rows, rewards = taught
    belief = cs.moment
    directions = belief.directions(ASKED)
    apart = belief.exact.maximum(directions - directions[1])  # action 1 is of arm 0, as is action 3
    assert apart[1] == pytest.approx(0.0, abs=1e-12)
    alone = own(0, rows, rewards)
    same = alone.moment.exact.maximum(ASKED[3:4, :2] - ASKED[1:2, :2])[0]
    assert apart[3] == pytest.approx(same, rel=1e-12)
    assert same < cs.upper(ASKED[3:4])[0] - cs.lower(ASKED[1:2])[0]  # what nothing but the two intervals would say
    for i in (0, 2, 4):
        assert apart[i] == pytest.approx(cs.upper(ASKED[i : i + 1])[0] - cs.lower(ASKED[1:2])[0], rel=1e-12)


def test_a_policy_asks_tells_and_certifies():
    rng, x = np.random.default_rng(0), np.array([0.5, 0.3])
    bandit = mb.UCB(PerArm(4, 2, **STATED, delta=DELTA), np.arange(4.0)[:, None], keep_history=True, rng=0)
    for _ in range(150):
        context = rng.normal(size=2)
        choice = bandit.ask(context=context)
        mean, reward = world(choice.row[None], rng)
        assert choice.lower <= mean[0] <= choice.upper
        bandit.tell(choice, reward[0])
    four = bandit.ask(context=x, n=4)
    assert sorted(choice.index for choice in four) == [0, 1, 2, 3]
    found, means = bandit.certificate(context=x), THETA @ x
    assert found.proven
    assert found.lower <= means[int(found.action[0])] <= found.upper
    assert found.optimum_upper >= means.max()
    assert found.gap >= means.max() - means[int(found.action[0])]
    assert not found.vacuous
    assert "for each of 4 arms" in str(found)
    regret = bandit.regret_bound()
    assert regret.hindsight <= regret.widths
    assert bandit.sequence.contains(THETA)
    assert not bandit.sequence.contains(THETA + 1.0)


def test_bounds_hold_for_all_arms_at_once():
    """The parameters leave the product of the sets in at most a share δ of all runs, whatever chose the arms."""
    missed, runs = 0, 60
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        cs = PerArm(4, 2, sigma=0.2, norm_bound=1.5, delta=0.2)
        inside = True
        for _ in range(25):
            x = rng.normal(size=2)
            rows = np.column_stack((np.tile(x, (4, 1)), np.arange(4.0)))
            row = rows[[cs.upper(rows).argmax()]]
            inside &= cs.update(row, world(row, rng)[1]).contains(THETA)
        missed += not inside
    assert missed / runs <= 0.2


def test_a_block_that_is_refuted_refutes_the_belief():
    cs = PerArm(4, 2, **STATED, delta=DELTA)
    cs.update([[1.0, 0.0, 0]], [0.1])
    assert not cs.is_refuted
    cs.update([[1.0, 0.0, 2]], [50.0])
    assert cs.is_refuted
    with pytest.raises(mb.AssumptionsRefuted, match="for each of 4 arms"):
        cs.upper(ASKED)
    assert not mb.Policy(cs, ASKED, rule=mb.bandits.Uniformly(), rng=0).moment.is_trusted


@pytest.mark.parametrize("arm", [-1.0, 4.0, 0.5])
def test_only_its_arms_have_directions(arm):
    with pytest.raises(mb.InvalidInput, match="rows must end with the number of an arm below 4"):
        PerArm(4, 2, **STATED).upper([[0.1, 0.2, arm]])


def test_what_it_does_not_have_is_refused():
    cs = PerArm(4, 2, **STATED)
    for ask in (
        lambda: cs.upper(ASKED, alpha=1.0),
        lambda: cs.alpha0,
        lambda: cs.support(ASKED),
        cs.audit,
        lambda: cs.update(ASKED, np.zeros(5), sigma=0.1),
        lambda: mb.UCB(cs, mb.Box([-1.0, -1.0, 0.0], [1.0, 1.0, 3.0])),
    ):
        with pytest.raises(mb.InvalidInput, match=r"closed form|known at arms only|no audit|noise levels"):
            ask()
    with pytest.raises(mb.NotMergeable, match="PerArm"):
        cs.merge(cs)
    with pytest.raises(mb.NoTheory):
        mb.Policy(cs, ASKED, rule=mb.bandits.Thompson())
    assert cs.difference(PerArm(5, 2, **STATED)) == "arms: 4 and 5"
    assert cs.difference(cs.after(ASKED, np.zeros(5))) is None
