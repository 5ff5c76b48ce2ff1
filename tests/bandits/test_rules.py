"""What each policy plays, against its definition written out."""

import numpy as np
import pytest

import mixbandit as mb
from mixbandit.bandits import View
from tests.helpers.worlds import ARMS, BOX, PHI, SETTINGS, THETA, make, play, reward

RNG = np.random.default_rng(5)
GRID = np.stack(np.meshgrid(*[np.linspace(0.0, 1.0, 41)] * 2), axis=-1).reshape(-1, 2)


def taught(policy, n=9, seed=0):
    rng = np.random.default_rng(seed)
    actions = rng.uniform(size=(n, 2))
    return policy.learn(actions, PHI(actions) @ THETA + 0.1 * rng.normal(size=n))


@pytest.mark.parametrize("exploration", [0.0, 0.2, 1.0, 1.7])
@pytest.mark.parametrize("alpha", [None, 0.01, 0.3, [0.003, 0.01, 0.1]])
def test_ucb_plays_estimate_plus_exploration_times_the_way_to_the_upper_bound(alpha, exploration):
    sequence = mb.MartingaleMixture(PHI, **SETTINGS)
    policy = taught(mb.UCB(sequence, ARMS, alpha, exploration, rng=0))
    low, high = (bound(ARMS.actions, alpha) for bound in (sequence.lower, sequence.upper))
    of = alpha if isinstance(alpha, float) else sequence.alpha0  # the closed form whose centre is the ridge estimate
    estimate = 0.5 * (sequence.lower(ARMS.actions, of) + sequence.upper(ARMS.actions, of))
    score = estimate + exploration * (high - estimate)
    choice = policy.ask()
    assert score[choice.index] == pytest.approx(score.max(), rel=1e-9)
    assert (choice.lower, choice.upper) == pytest.approx((low[choice.index], high[choice.index]), rel=1e-9)

    on_box = taught(mb.UCB(mb.MartingaleMixture(PHI, **SETTINGS), BOX, alpha, exploration, rng=0))

    def scores(rows):
        estimate = 0.5 * (sequence.lower(rows, of) + sequence.upper(rows, of))
        return estimate + exploration * (sequence.upper(rows, alpha) - estimate)

    assert scores(on_box.ask().action)[0] >= scores(GRID).max() - 1e-9


@pytest.mark.parametrize("model", [PHI, mb.RBF(0.5)], ids=["features", "kernel"])
def test_a_policy_that_acts_on_several_multipliers_is_stored_with_them(model, tmp_path):
    kind = mb.KernelMixture if isinstance(model, mb.RBF) else mb.MartingaleMixture
    policy = taught(mb.UCB(kind(model, **SETTINGS), ARMS, alpha=[0.003, 0.01, 0.1], rng=0))
    policy.save(tmp_path / "policy")
    again = mb.load(tmp_path / "policy")
    assert again.alpha == policy.alpha == (0.003, 0.01, 0.1)
    assert again.state_dict()["rule"]["alpha"] == [0.003, 0.01, 0.1]
    one, other = policy.ask(), again.ask()
    np.testing.assert_array_equal(one.action, other.action)
    assert (one.lower, one.upper) == (other.lower, other.upper)
    assert one.upper == pytest.approx(policy.sequence.upper(one.action, alpha=[0.003, 0.01, 0.1])[0], rel=1e-12)
    for broken in ([], [0.1, -1.0], "x", [[0.1]]):
        state = policy.state_dict()
        state["rule"]["alpha"] = broken
        with pytest.raises(mb.DamagedState, match=r"rule\.alpha"):
            mb.UCB.from_state_dict(state)


def test_several_multipliers_keep_the_regret_bound_known_in_advance_if_alpha0_is_among_them():
    sequence = mb.MartingaleMixture(PHI, **SETTINGS)
    assert "regret.worst_case" in mb.UCB(sequence, ARMS, alpha=[0.5, sequence.alpha0]).guarantee
    assert "No a priori" in mb.UCB(sequence, ARMS, alpha=[0.5, 0.7]).guarantee


def test_the_named_ones_have_the_papers_settings():
    cmm, amm, oful = (make(name) for name in ("CMMUCB", "AMMUCB", "OFUL"))
    assert isinstance(cmm.sequence, mb.MartingaleMixture)
    assert isinstance(cmm.sequence.mixture, mb.Standard)
    assert (cmm.alpha, cmm.exploration) == (None, 1.0)
    assert amm.alpha == pytest.approx(0.1**2)
    assert isinstance(oful.sequence, mb.OFULSequence)
    assert oful.sequence.alpha0 == pytest.approx(0.1**2)
    assert mb.CMMUCB(3, sigma=1.0, norm_bound=1.0).sequence.delta == 0.01


def test_greedy_plays_the_ridge_estimate():
    policy = taught(make("Greedy"))
    actions = np.random.default_rng(0).uniform(size=(9, 2))
    rng = np.random.default_rng(0)
    rng.uniform(size=(9, 2))
    r = PHI(actions) @ THETA + 0.1 * rng.normal(size=9)
    Phi = PHI(actions)
    ridge = np.linalg.solve(Phi.T @ Phi + 0.01 * np.eye(8), Phi.T @ r)
    assert policy.ask().index == int(np.argmax(PHI(ARMS.actions) @ ridge))


def information_ratio(sequence, optimum, actions):
    """Δ²/I from the definitions, with V formed explicitly."""
    rng = np.random.default_rng(0)
    data = rng.uniform(size=(9, 2))
    V = PHI(data).T @ PHI(data) + 0.01 * np.eye(8)
    phi = PHI(actions)
    w = np.einsum("ni,ij,nj->n", phi, np.linalg.inv(V), phi)
    return (optimum - sequence.lower(actions)) ** 2 / np.log1p(w)


def test_ids_plays_the_least_squared_regret_per_information():
    policy = taught(make("IDS"))
    upper = policy.sequence.upper(ARMS.actions)
    ratio = information_ratio(policy.sequence, upper.max(), ARMS.actions)
    assert policy.ask().index == int(np.argmin(ratio))

    on_box = taught(make("IDS", "box"))
    optimum = on_box.sequence.upper(GRID).max()
    action = on_box.ask().action
    # The search knows a slightly larger optimum than the grid does, which makes its ratio a little larger.
    found = information_ratio(on_box.sequence, optimum, action[None])[0]
    assert found <= information_ratio(on_box.sequence, optimum, GRID).min() * 1.001


def test_ids_avoids_what_teaches_nothing_unless_it_costs_nothing():
    arms = mb.Arms([[0.0, 0.0], [1.0, 0.0], [0.0, 0.5]])
    policy = mb.IDS(2, actions=arms, sigma=0.1, norm_bound=1.0, rng=0)
    assert all(policy.ask().index != 0 for _ in range(5))
    only = mb.IDS(2, actions=mb.Arms([[0.0, 0.0]]), sigma=0.1, norm_bound=1.0, rng=0)
    assert only.ask().index == 0
    with pytest.raises(mb.InvalidInput, match="OFULSequence"):
        mb.InformationDirected(mb.MartingaleMixture(2, sigma=0.1, norm_bound=1.0))


@pytest.mark.parametrize("n", [0, 4, 60])
def test_thompson_draws_from_the_stated_normal(n):
    policy = make("FreqTS")
    if n:
        taught(policy, n)
    rng = np.random.default_rng(0)
    Phi = PHI(rng.uniform(size=(n, 2)))
    r = Phi @ THETA + 0.1 * rng.normal(size=n)
    V = Phi.T @ Phi + 0.01 * np.eye(8)
    centre, cov = np.linalg.solve(V, Phi.T @ r), 0.1**2 * 9 * 8 * np.log(7 / 0.05) * np.linalg.inv(V)
    view, axes = View(policy.moment, 7), np.eye(8)
    draws = np.array([policy.rule.drawn(view, np.random.default_rng(i)).maximum(axes) for i in range(4000)])
    root = np.linalg.cholesky(cov)
    white = np.linalg.solve(root, (draws - centre).T)
    # Standard normal in 8 dimensions: means and covariances within five standard errors.
    assert np.abs(white.mean(axis=1)).max() < 5 / np.sqrt(4000)
    assert np.abs(np.cov(white) - np.eye(8)).max() < 5 * np.sqrt(2 / 4000)


def test_uniform_covers_everything():
    policy = make("Uniform")
    assert {policy.ask().index for _ in range(200)} == set(range(12))
    on_box = make("Uniform", "box")
    actions = np.array([on_box.ask().action for _ in range(100)])
    assert actions.min() < 0.1
    assert actions.max() > 0.9


def test_pending_choices_count_as_if_they_had_brought_what_is_expected():
    policy = taught(make("AMMUCB"))
    first, second = policy.ask(), policy.ask()
    rng = np.random.default_rng(0)
    data = rng.uniform(size=(9, 2))
    r = PHI(data) @ THETA + 0.1 * rng.normal(size=9)
    Phi = PHI(data)
    V = Phi.T @ Phi + 0.01 * np.eye(8)
    ridge = np.linalg.solve(V, Phi.T @ r)
    # By hand: the same estimate, a larger Gram matrix, and its radius.
    phi = PHI(first.action)[0]
    V2 = V + np.outer(phi, phi)
    rho = 0.01 * (np.linalg.slogdet(V2 / 0.01)[1] + 2 * np.log(20.0)) + 0.01 * 25.0
    arms = PHI(ARMS.actions)
    score = arms @ ridge + np.sqrt(rho * np.einsum("ni,ij,nj->n", arms, np.linalg.inv(V2), arms))
    assert second.index == int(np.argmax(score))


def test_anticipation_leaves_estimate_and_sequence_alone_and_never_refutes():
    sequence = mb.MartingaleMixture(2, sigma=0.01, norm_bound=1.0).update([[1.0, 0.0]], [1.02])
    # 1.02 is more than the norm bound allows: so many rewards like it would refute, were they not only imagined.
    acting = sequence.moment.expecting(np.array([[1.0, 0.0]] * 400))
    assert sequence.t == 1
    assert acting.t == 401
    assert acting.is_empty
    assert np.isfinite(acting.upper(np.array([[1.0, 0.0]])).values).all()
    moment = taught(make("CMMUCB")).moment
    acting = moment.expecting(np.array([[0.2, 0.9]])).expecting(np.array([[0.7, 0.1]]))
    directions = PHI(GRID)
    centres = [sum(m.interval(directions, m.closed_form)[:2]) for m in (moment, acting)]
    np.testing.assert_allclose(centres[1], centres[0], rtol=1e-8, atol=1e-9)


def test_a_clear_winner_may_be_asked_again_but_not_within_a_batch():
    """Late rewards must not force arms that are known to be bad."""
    arms = mb.Arms(np.eye(3))
    policy = mb.CMMUCB(3, actions=arms, sigma=0.1, norm_bound=2.0, rng=0)
    policy.learn(np.repeat(np.eye(3), 200, axis=0), np.repeat([1.0, 0.0, -1.0], 200))
    assert [policy.ask().index for _ in range(5)] == [0] * 5
    assert sorted(c.index for c in policy.ask(n=3)) == [0, 1, 2]
    assert [c.index for c in policy.ask(n=3, distinct=False)] == [0, 0, 0]


def test_at_a_corner_of_a_box_pending_choices_still_differ():
    policy = mb.CMMUCB(2, actions=mb.Box([0.0, 0.0], [1.0, 1.0]), sigma=0.01, norm_bound=2.0, rng=0)
    policy.learn(np.tile(np.eye(2), (50, 1)), np.ones(100))
    actions = np.array([policy.ask().action for _ in range(6)])
    assert len({tuple(a) for a in actions}) == 6
    assert actions.min() > 0.99
    assert actions.max() <= 1.0


def test_ties_are_broken_by_the_seed():
    arms = mb.Arms(np.eye(6))
    firsts = [mb.CMMUCB(6, actions=arms, sigma=1.0, norm_bound=1.0, rng=seed).ask().index for seed in range(40)]
    assert len(set(firsts)) > 3
    again = [mb.CMMUCB(6, actions=arms, sigma=1.0, norm_bound=1.0, rng=seed).ask().index for seed in range(40)]
    assert firsts == again


def test_a_changing_set_and_labels():
    policy = mb.CMMUCB(2, sigma=0.1, norm_bound=1.0, rng=0)
    with pytest.raises(mb.InvalidInput, match="no fixed actions"):
        policy.ask()
    choice = policy.ask(mb.Arms([[1.0, 0.0], [0.0, 0.1]], labels=["big", "small"]))
    assert choice.label == "big"
    policy.tell(choice, 0.5)
    assert policy.ask([[0.0, 2.0]]).index == 0
    with pytest.raises(mb.InvalidInput, match="pass them as `over`"):
        policy.certificate()
    assert policy.certificate(over=[[1.0, 0.0], [0.0, 0.1]]).proof == "enumerated"


@pytest.mark.parametrize("actions", [mb.Arms([0.0, 0.5, 1.0]), mb.Box([0.0], [1.0])], ids=["arms", "box"])
def test_a_context_comes_before_the_action(actions, tmp_path):
    # The reward is x·a: the best action depends on the sign of the context.
    phi = mb.Interaction(mb.Identity(1), mb.FromCallable(lambda a: np.hstack((np.ones_like(a), a)), 1, 2))
    policy = mb.CMMUCB(phi, actions=actions, sigma=0.05, norm_bound=2.0, rng=0, keep_history=True)
    with pytest.raises(mb.InvalidInput, match="pass a context"):
        policy.ask()
    with pytest.raises(mb.InvalidInput, match="context must have shape"):
        policy.ask(context=[1.0, 2.0])
    rng = np.random.default_rng(1)
    for _ in range(60):
        x = float(rng.choice([-1.0, 1.0]))
        choice = policy.ask(context=[x])
        assert choice.action.shape == (1,)
        assert choice.context == [x]
        policy.tell(choice, x * choice.action[0] + 0.05 * rng.normal())
    assert policy.ask(context=[1.0]).action[0] > 0.9
    assert policy.ask(context=[-1.0]).action[0] < 0.1
    certificate = policy.certificate(context=[1.0])
    assert certificate.action == pytest.approx([1.0])
    policy.save(tmp_path / "file")
    with pytest.raises(mb.InvalidInput, match="pass it again"):
        mb.load(tmp_path / "file")
    resumed = mb.load(tmp_path / "file", features=phi)
    assert resumed.ask(context=[0.3]).action == policy.ask(context=[0.3]).action


def test_disjoint_arms_learn_apart():
    phi = mb.Disjoint(1, arms=3)
    policy = mb.CMMUCB(phi, actions=mb.Arms(range(3)), sigma=0.1, norm_bound=3.0, rng=0)
    slopes = np.array([0.2, -1.0, 0.9])
    rng = np.random.default_rng(0)
    for _ in range(80):
        x = rng.uniform(0.5, 1.0)
        choice = policy.ask(context=[x])
        policy.tell(choice, slopes[choice.index] * x + 0.1 * rng.normal())
    assert policy.ask(context=[1.0]).index == 2


def test_noise_levels_of_single_rewards_are_kept():
    policy, by_hand = make("CMMUCB"), mb.MartingaleMixture(PHI, **SETTINGS)
    choices = policy.ask(n=2)
    policy.tell(choices[0], 0.3, sigma=0.5).tell(choices[1], 0.1)
    by_hand.update(choices[0].action, 0.3, sigma=0.5).update(choices[1].action, 0.1)
    np.testing.assert_array_equal(policy.sequence.upper(GRID), by_hand.upper(GRID))


def test_exploration_says_what_it_costs():
    sentences = {e: make("CMMUCB", exploration=e).guarantee for e in (0.5, 1.0, 2.0)}
    assert "no regret bound is known in advance" in sentences[0.5]
    assert "worst_case" in sentences[1.0]
    assert "times 1.5" in sentences[2.0]
    assert "NOT PROVEN" not in sentences[1.0]
    assert "Nothing is guaranteed" in mb.UCB(mb.BayesCredible(2, sigma=1.0)).guarantee


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: mb.UCB("sequence"), "confidence sequence"),
        (lambda: mb.UCB(mb.OFULSequence(2, sigma=1.0, norm_bound=1.0), alpha=5.0), "fixed in advance"),
        (lambda: make("CMMUCB", exploration=-1.0), "exploration"),
        (lambda: mb.CMMUCB(1, actions=[[1.0, 2.0]], sigma=1.0, norm_bound=1.0), "dimension 2"),
        (lambda: mb.CMMUCB(1, sigma=1.0, norm_bound=1.0, rng="seed"), "rng"),
        (lambda: mb.AMMUCB(1, sigma=1.0, norm_bound=1.0, alpha=0.0), "alpha"),
        (lambda: mb.UCB(mb.OFULSequence(2, sigma=1.0, norm_bound=1.0), alpha=[1.0, 5.0]), "fixed in advance"),
        (lambda: mb.UCB(mb.MartingaleMixture(2, sigma=1.0, norm_bound=1.0), alpha=[]), "empty list"),
        (lambda: mb.UCB(mb.MartingaleMixture(2, sigma=1.0, norm_bound=1.0), alpha=[1.0, -2.0]), "alpha"),
    ],
)
def test_bad_settings_are_refused(build, says):
    with pytest.raises(mb.InvalidInput, match=says):
        build()


def test_play_and_reward_are_what_the_other_tests_think():
    policy = make("CMMUCB")
    actions = play(policy, 3)
    assert actions.shape == (3, 2)
    assert reward(policy.ask(), 0) == pytest.approx(float(PHI(policy.pending[0].action)[0] @ THETA), abs=0.5)
