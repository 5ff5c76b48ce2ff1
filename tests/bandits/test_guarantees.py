"""Regret bounds and refutations: what policies promise, and what they say when the assumptions are wrong."""

import warnings

import numpy as np
import pytest
from scipy.stats import binom

import mixbandit as mb
from tests.helpers.worlds import ARMS, BOX, PHI, SETTINGS, THETA, make, play, reward


def brute_force(policy, offers, chosen, bound):
    """Σ of (largest upper bound − lower bound of the choice) by definition."""
    return sum(bound.upper(arms).max() - bound.lower(a)[0] for arms, a in zip(offers, chosen, strict=True))


OF_ALL_KINDS = ["CMMUCB", "AMMUCB", "OFUL", "IDS", "FreqTS", "Uniform", "UCB over a grid, exploration 0.2"]


@pytest.mark.parametrize("name", OF_ALL_KINDS)
def test_the_data_dependent_forms_are_the_papers_sums(name):
    policy = make(name)
    alpha, widths, analytic = getattr(policy, "alpha", None), 0.0, 0.0
    for t in range(15):
        choice = policy.ask()
        top = policy.sequence.upper(ARMS.actions, alpha).max()
        widths += top - policy.sequence.lower(choice.action, alpha)[0]
        analytic += mb.regret.analytic_width(policy.sequence, choice.action)
        policy.tell(choice, reward(choice, t))
    bound = policy.regret_bound()
    assert bound.widths == pytest.approx(widths, rel=1e-9)
    assert bound.proof == "enumerated"
    assert bound.best == pytest.approx(widths, rel=1e-9)
    if name in ("CMMUCB", "AMMUCB"):
        # For UCB's own rule the closed form is never less.
        assert analytic >= bound.widths * (1 - 1e-9)


def test_the_closed_form_is_twice_radius_times_norm():
    policy, total, found = make("CMMUCB"), 0.0, 0.0
    Phi = np.empty((0, 8))
    for t in range(10):
        radius = policy.sequence.analytic_radius()
        choice = policy.ask()
        phi = PHI(choice.action)[0]
        total += 2 * radius * np.sqrt(phi @ np.linalg.solve(Phi.T @ Phi + 0.01 * np.eye(8), phi))
        found += mb.regret.analytic_width(policy.sequence, choice.action)
        Phi = np.vstack((Phi, phi))
        policy.tell(choice, reward(choice, t))
    assert found == pytest.approx(total, rel=1e-8)


def test_pending_choices_are_charged_against_told_rewards_only():
    """With rewards out, what is played is not the largest upper bound; the difference must be added."""
    policy = make("CMMUCB")
    play(policy, 3)
    before = policy.regret_bound().widths
    choices = policy.ask(n=3)
    upper = policy.sequence.upper(ARMS.actions).max()
    lowers = policy.sequence.lower([c.action for c in choices])
    assert policy.regret_bound().widths - before == pytest.approx(3 * upper - lowers.sum(), rel=1e-9)
    policy.cancel(choices[1])
    assert policy.regret_bound().widths - before == pytest.approx(2 * upper - lowers[[0, 2]].sum(), rel=1e-9)


@pytest.mark.parametrize("region", ["arms", "box"])
def test_hindsight_judges_all_choices_by_todays_set(region):
    policy = make("CMMUCB", region, keep_history=True)
    actions = play(policy, 25)
    bound = policy.regret_bound()
    sequence = policy.sequence
    if region == "arms":
        phi = PHI(ARMS.actions)
        total = 0.0
        for action in actions:
            own = PHI(action)[0]
            apart = sequence.upper(ARMS.actions).max() - sequence.lower(action)[0]
            ball = mb.MartingaleMixture(8, **SETTINGS).update(PHI(actions), _rewards(actions))
            total += min(apart, ball.upper(phi - own).max())
        assert bound.hindsight == pytest.approx(total, rel=1e-8)
        assert bound.hindsight_proof == "enumerated"
    else:
        grid = np.stack(np.meshgrid(*[np.linspace(0.0, 1.0, 61)] * 2), axis=-1).reshape(-1, 2)
        least = 25 * sequence.upper(grid).max() - sequence.lower(actions).sum()
        assert least * (1 - 1e-9) <= bound.hindsight <= least * 1.2
        assert bound.hindsight_proof == "branch-and-bound"
        assert bound.proof == "search"
        assert bound.best == bound.hindsight
    assert bound.hindsight < bound.widths
    truth = (PHI(ARMS.actions if region == "arms" else BOX.sample(5000, np.random.default_rng(0))) @ THETA).max()
    assert bound.hindsight >= (truth - PHI(actions) @ THETA).sum()


def _rewards(actions):
    noise = [0.1 * np.random.default_rng([3, t]).normal() for t in range(len(actions))]
    return PHI(actions) @ THETA + np.array(noise)


def test_hindsight_over_sets_that_change():
    policy = mb.CMMUCB(3, sigma=0.1, norm_bound=2.0, rng=0, keep_history=True)
    rng, theta = np.random.default_rng(0), np.array([1.0, -0.5, 0.2])
    regret = 0.0
    for _ in range(40):
        arms = rng.normal(size=(5, 3))
        choice = policy.ask(arms)
        regret += (arms @ theta).max() - choice.action @ theta
        policy.tell(choice, choice.action @ theta + 0.1 * rng.normal())
    bound = policy.regret_bound()
    assert regret <= bound.hindsight < bound.widths
    assert bound.best == bound.hindsight
    assert "40 choices" in str(bound)


def test_without_tracking_nothing_is_claimed():
    policy = make("FreqTS", "box", track_regret=False)
    play(policy, 3)
    bound = policy.regret_bound()
    assert bound.widths is bound.best is None
    assert "not known" in str(bound)


def test_a_search_is_marked_as_not_proven():
    policy = make("CMMUCB", "box")
    play(policy, 3)
    bound = policy.regret_bound()
    assert bound.best is None
    assert "NOT PROVEN" in str(bound)


def test_a_bayesian_bound_is_not_a_guarantee():
    policy = make("UCB over Bayes")
    play(policy, 3)
    assert policy.regret_bound().best is None
    assert "Bayesian" in str(policy.regret_bound())
    assert not policy.certificate().proven


def lying(on_empty, **stated):
    """A policy whose σ or norm bound is stated far too small."""
    return mb.CMMUCB(
        PHI, actions=ARMS, rng=0, delta=0.01, on_empty=on_empty, **{"sigma": 0.1, "norm_bound": 5.0} | stated
    )


@pytest.mark.parametrize("stated", [{"norm_bound": 0.05}, {"sigma": 1e-4}], ids=["B", "sigma"])
def test_wrong_assumptions_are_reported(stated):
    policy = lying("raise", **stated)
    with pytest.raises(mb.AssumptionsRefuted, match=r"at level delta=0.01 the data refute sigma=.*norm_bound="):
        play(policy, 200)
    assert policy.refuted
    assert "REFUTED at level 0.01" in str(policy.sequence.audit())
    rounds, t = policy.rounds, policy.sequence.t
    with pytest.raises(mb.AssumptionsRefuted):
        policy.certificate()
    assert (policy.rounds, policy.sequence.t) == (rounds, t)


@pytest.mark.parametrize("stated", [{"norm_bound": 0.05}, {"sigma": 1e-4}], ids=["B", "sigma"])
def test_with_inflate_it_warns_once_flags_and_goes_on(stated, tmp_path):
    policy = lying("inflate", **stated)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        play(policy, 120)
        assert [w.category for w in caught] == [mb.AssumptionsRefutedWarning]
        choice = policy.ask()
        certificate, bound = policy.certificate(), policy.regret_bound()
    assert policy.refuted
    assert not choice.trusted
    assert not certificate.proven
    assert "refute" in str(certificate)
    assert bound.best is None
    policy.save(tmp_path / "refuted")
    assert mb.load(tmp_path / "refuted").refuted


def test_a_refutation_stays_though_the_set_recovers():
    policy = mb.CMMUCB(1, actions=mb.Arms([[1.0]]), sigma=0.1, norm_bound=1.0, rng=0, on_empty="inflate")
    policy.learn([[1.0]], [1.6])
    with pytest.warns(mb.AssumptionsRefutedWarning):
        policy.ask()
    policy.learn([[1.0]] * 400, [0.0] * 400)
    assert not policy.sequence.is_refuted
    assert policy.refuted
    assert not policy.ask().trusted


@pytest.mark.parametrize("make", [mb.CMMUCB, mb.AMMUCB, mb.OFUL])
def test_a_refutation_by_the_noise_alone_stays_though_later_rewards_hide_it(make, tmp_path):
    policy = make(1, actions=mb.Arms([[1.0]]), sigma=0.1, norm_bound=3.0, rng=0, on_empty="inflate")
    policy.learn([[1.0]] * 2, [0.5, -0.5])
    assert not policy.sequence.is_empty
    with pytest.warns(mb.AssumptionsRefutedWarning, match="residuals are larger than sigma allows"):
        choice = policy.ask()
    assert not choice.trusted
    policy.tell(choice, 0.0).learn([[1.0]] * 100, [0.0] * 100)
    assert not policy.sequence.is_refuted
    for each in (policy, policy.at(policy.state)):
        assert each.refuted
        assert not each.ask().trusted
        assert not each.certificate().trusted
        assert not each.regret_bound().trusted
    policy.save(tmp_path / "refuted")
    assert mb.load(tmp_path / "refuted").refuted


@pytest.mark.heavy
def test_true_assumptions_are_refuted_in_no_more_runs_than_delta():
    """Noise at its stated level, the norm bound tight, 1,000 runs; what may be wrong is what the paper bounds by δ."""
    delta, alarms = 0.05, 0
    for run in range(1000):
        rng = np.random.default_rng([11, run])
        theta = rng.normal(size=3)
        policy = mb.CMMUCB(
            3, actions=mb.Arms(rng.normal(size=(8, 3))), sigma=0.5, norm_bound=float(np.linalg.norm(theta)),
            delta=delta, rng=rng, on_empty="inflate", track_regret=False,
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", mb.AssumptionsRefutedWarning)
            for _ in range(60):
                choice = policy.ask()
                policy.tell(choice, choice.action @ theta + 0.5 * rng.normal())
        alarms += policy.refuted
    assert binom.sf(alarms - 1, 1000, delta) > 0.001


def test_a_contradicted_range_counts_as_a_refutation():
    policy = mb.CMMUCB(
        1, actions=mb.Arms([[1.0]]), sigma=0.1, norm_bound=5.0, reward_range=(0.0, 1.0), on_empty="inflate", rng=0
    )
    policy.learn([[1.0]] * 50, [3.0] * 50)  # fits the norm bound, not the range
    assert not policy.refuted
    with pytest.warns(mb.AssumptionsRefutedWarning, match="outside reward_range"):
        choice = policy.ask()
    assert not choice.trusted
    assert policy.refuted
    assert policy.regret_bound().best is None


def contradicted(on_empty):
    """A range that the data contradict at one arm, while the set and the noise look fine."""
    cs = mb.MartingaleMixture(2, sigma=0.1, norm_bound=10.0, delta=0.05, reward_range=(0.0, 1.0), on_empty=on_empty)
    policy = mb.UCB(cs, np.eye(2), rng=0, keep_history=True)
    policy.adopt([1.0, 0.0])
    return policy.learn(np.repeat(np.eye(2), 50, axis=0), np.repeat([3.0, 0.5], 50))


@pytest.mark.parametrize("look", ["ask", "certificate", "regret_bound"])
def test_a_contradicted_range_is_remembered_whoever_noticed_it(look):
    policy = contradicted("raise")
    with pytest.raises(mb.AssumptionsRefuted, match="outside reward_range"):
        getattr(policy, look)()
    assert policy.refuted
    policy = contradicted("inflate")
    with pytest.warns(mb.AssumptionsRefutedWarning, match="outside reward_range"):
        getattr(policy, look)()
    assert policy.refuted
    assert not policy.regret_bound().trusted
    policy = contradicted("inflate")
    with pytest.warns(mb.AssumptionsRefutedWarning, match="outside reward_range"):
        policy.sequence.lower([[1.0, 0.0]])  # the user's own look counts as well
    assert policy.refuted
