"""Policies and certificates that rest on a kernel."""

import numpy as np
import pytest

import mixbandit as mb
from mixbandit.search import Advantage, Reach, bound_over_box
from tests.helpers.worlds import everything

KERNEL = mb.RBF([0.4, 0.6])
SETTINGS = {"sigma": 0.1, "norm_bound": 2.0, "delta": 0.05}
ARMS = mb.Arms(np.random.default_rng(2).uniform(size=(12, 2)), labels=[f"arm {i}" for i in range(12)])
MANY = mb.Arms(np.random.default_rng(3).uniform(size=(150, 2)))
BOX = mb.Box([0.0, 0.0], [1.0, 1.0])
REGIONS = {"arms": ARMS, "many arms": MANY, "box": BOX, "context": mb.Arms(np.linspace(0, 1, 7)[:, None])}


def truth(row):
    return float((KERNEL(np.atleast_2d(row), np.array([[0.2, 0.7], [0.8, 0.1]])) @ [1.2, -0.7])[0])


def reward(row, t):
    return truth(row) + 0.1 * np.random.default_rng([4, t]).normal()


def sequence(**options):
    return mb.KernelMixture(KERNEL, **SETTINGS, **options)


def named(kind):
    return lambda **options: kind(KERNEL, **SETTINGS, **options)


NAMED = {kind.__name__: named(kind) for kind in (mb.CMMUCB, mb.AMMUCB, mb.OFUL, mb.IDS)}
POLICIES = NAMED | {
    "UCB": lambda **options: mb.UCB(sequence(), **options),
    "UCB at a multiplier": lambda **options: mb.UCB(sequence(), alpha=0.03, **options),
    "UCB over a grid": lambda **options: mb.UCB(sequence(mixture=mb.Grid([0.3, 3.0])), exploration=0.5, **options),
    "UCB over several": lambda **options: mb.UCB(
        mb.KernelMixture([KERNEL, mb.Matern(2.5, [0.5, 0.5])], **SETTINGS), **options
    ),
    "UCB over bounded values": lambda **options: mb.UCB(
        mb.BoundedMixture(KERNEL, norm_bound=2.0, delta=0.05, reward_range=(-5.0, 5.0), samples=1000), **options
    ),
    "UCB over unknown noise": lambda **options: mb.UCB(mb.UnknownNoise(KERNEL, norm_bound=2.0, delta=0.05), **options),
}
EVERY = [(name, region) for name in POLICIES for region in ("arms", "box", "context")]
IN_ORDER = ("UCB over bounded values",)  # forecasters learn in the order of arrival
on_every_policy = pytest.mark.parametrize(("name", "region"), EVERY)


def make(name, region, **options):
    return POLICIES[name](actions=REGIONS[region], rng=7, **options)


def ask(policy, region, t):
    return policy.ask(context=[0.1 * (t % 10)]) if region == "context" else policy.ask()


def row_of(choice):
    return choice.action if choice.context is None else np.concatenate((choice.context, choice.action))


def play(policy, region, rounds, start=0):
    rows = []
    for t in range(start, start + rounds):
        choice = ask(policy, region, t)
        rows.append(row_of(choice))
        policy.tell(choice, reward(rows[-1], t))
    return np.array(rows)


@on_every_policy
def test_a_policy_plays_and_its_bounds_hold(name, region):
    policy = make(name, region)
    for t in range(8):
        choice = ask(policy, region, t)
        row = row_of(choice)
        assert choice.lower <= truth(row) <= choice.upper
        policy.tell(choice, reward(row, t))
    assert policy.sequence.t == 8
    assert not policy.sequence.is_refuted


@on_every_policy
def test_a_saved_policy_goes_on_to_the_bit(name, region, tmp_path):
    policy = make(name, region)
    play(policy, region, 9)
    late = [ask(policy, region, 9), ask(policy, region, 10)]
    policy.save(tmp_path / "policy")
    resumed = mb.load(tmp_path / "policy")
    assert everything(resumed) == everything(policy)
    for each in (policy, resumed):
        for choice in reversed(late):
            each.tell(choice.id, reward(row_of(choice), choice.number))
    np.testing.assert_array_equal(play(resumed, region, 4, 11), play(policy, region, 4, 11))
    assert everything(resumed) == everything(policy)


@pytest.mark.parametrize(("name", "region"), [each for each in EVERY if each[0] not in IN_ORDER])
def test_late_rewards_in_any_order(name, region):
    policy = make(name, region)
    choices = [ask(policy, region, t) for t in range(5)]
    for choice in reversed(choices):
        policy.tell(choice, reward(row_of(choice), choice.number))
    prompt = make(name, region)
    prompt.learn(np.array([row_of(c) for c in choices]), [reward(row_of(c), c.number) for c in choices])
    probe = np.array([[0.3, 0.8], [0.9, 0.1]])
    np.testing.assert_allclose(policy.sequence.upper(probe), prompt.sequence.upper(probe), rtol=1e-9)


@on_every_policy
def test_an_error_changes_nothing(name, region):
    policy = make(name, region)
    play(policy, region, 3)
    choice = ask(policy, region, 3)
    before = everything(policy)
    for wrong in (
        lambda: policy.tell(choice, float("nan")),
        lambda: policy.tell(99, 1.0),
        lambda: policy.learn([[1.0, 2.0, 3.0]], [0.0]),
        lambda: policy.learn([[1.0, np.inf]], [0.0]),
        lambda: policy.ask([[1.0, 2.0, 3.0]]),
        lambda: policy.tell(choice, 1e60),
    ):
        with pytest.raises(mb.InvalidInput):
            wrong()
        assert everything(policy) == before


def test_the_best_of_many_arms_is_found_lazily():
    for name in ("CMMUCB", "UCB over several", "AMMUCB"):
        policy = make(name, "many arms")
        play(policy, "many arms", 10)
        choice = policy.ask()
        upper = policy.sequence.upper(MANY.actions, alpha=getattr(policy, "alpha", None))
        assert choice.upper == pytest.approx(upper.max(), rel=1e-6)


def test_what_has_no_theory_says_so():
    with pytest.raises(mb.NoTheory):
        mb.FreqTS(KERNEL, actions=ARMS, **SETTINGS)
    with pytest.raises(mb.InvalidInput):
        mb.BayesCredible(KERNEL, sigma=0.1)
    with pytest.raises(mb.InvalidInput):
        mb.GeneralLambda(KERNEL, **SETTINGS)
    with pytest.raises(mb.InvalidInput):
        mb.IDS([KERNEL], actions=ARMS, **SETTINGS)
    with pytest.raises(mb.InvalidInput):
        mb.KernelMixture(KERNEL, **SETTINGS).update([[0.1, 0.2]], [0.0]).contains([0.0, 0.0])


def test_the_length_of_rows_must_be_known_to_a_policy():
    with pytest.raises(mb.InvalidInput, match="dim_in"):
        mb.UCB(mb.KernelMixture(mb.RBF(0.3), **SETTINGS))
    policy = mb.UCB(mb.KernelMixture(mb.RBF(0.3), **SETTINGS, dim_in=3), actions=ARMS, rng=0)
    assert policy.ask(context=[0.5]).action.shape == (2,)
    with pytest.raises(mb.InvalidInput):
        policy.ask()
    with pytest.raises(mb.InvalidInput):
        mb.UCB(mb.KernelMixture(mb.OverlapKernel([2, 3, 4]), **SETTINGS), actions=ARMS, rng=0).ask()


GRID = np.stack(np.meshgrid(np.linspace(0, 1, 60), np.linspace(0, 1, 60)), axis=-1).reshape(-1, 2)
MODELS = {
    "rbf": KERNEL,
    "matern": mb.Matern(1.5, 0.8),
    "rough": mb.Matern(0.5, 2.0),
    "product": mb.RBF(0.7) * mb.PolynomialKernel(2) + 0.1,
    "several": [KERNEL, mb.Matern(2.5, [0.7, 0.7])],
}


@pytest.mark.parametrize("name", MODELS)
def test_proven_bounds_hold_everywhere(name):
    rng = np.random.default_rng(5)
    rows = rng.uniform(size=(15, 2))
    cs = mb.KernelMixture(MODELS[name], sigma=0.3, norm_bound=2.0, delta=0.05)
    cs.update(rows, [0.5 * truth(row) + 0.05 * rng.normal() for row in rows])
    moment = cs.moment
    directions = moment.directions(GRID)
    proven = bound_over_box(moment.exact.maximum, Reach(2.0), moment.model, BOX, tolerance=0.05, max_evaluations=4000)
    largest = float(moment.exact.maximum(directions).max())
    assert proven.upper >= largest - 1e-9
    assert proven.attained <= proven.upper
    own = moment.directions(np.array([[0.4, 0.4]]))
    ahead = Advantage(moment.exact, own)
    gap = bound_over_box(ahead.maximum, Reach(2.0), moment.model, BOX, tolerance=0.05, max_evaluations=4000)
    assert gap.upper >= float(ahead.maximum(directions).max()) - 1e-9


def test_a_bound_that_ignores_how_far_directions_stray_is_found_out(monkeypatch):
    from mixbandit.models import KernelModel

    monkeypatch.setattr(KernelModel, "stray", lambda model, centres, halves: np.zeros(len(centres)))
    cs = mb.KernelMixture(mb.RBF(0.1), sigma=0.3, norm_bound=2.0).update([[0.5, 0.5]], [-1.0])
    proven = bound_over_box(cs.moment.exact.maximum, Reach(2.0), cs.moment.model, BOX, start=np.array([0.5, 0.5]))
    assert proven.upper < float(cs.upper(GRID).max()) - 1e-3


@pytest.mark.parametrize("region", ["arms", "box"])
@pytest.mark.parametrize("name", ["CMMUCB", "UCB over several", "OFUL"])
def test_certificates_tell_the_truth(name, region):
    policy = make(name, region)
    play(policy, region, 12)
    found = policy.certificate()
    over = GRID if region == "box" else ARMS.actions
    values = np.array([truth(row) for row in over])
    assert found.proven
    assert found.proof == ("branch-and-bound" if region == "box" else "enumerated")
    assert found.lower <= truth(found.action) <= found.upper
    assert values.max() <= found.optimum_upper
    assert values.max() - truth(found.action) <= found.gap
    assert found.optimum_upper >= policy.sequence.upper(over).max() - 1e-9
    assert found.gap <= found.optimum_upper - found.lower + 1e-9


def test_a_kernel_without_bounds_over_cells_is_not_proven():
    from sklearn.gaussian_process.kernels import RBF

    policy = mb.UCB(mb.KernelMixture(RBF(0.4), **SETTINGS, dim_in=2), actions=BOX, rng=0)
    play(policy, "box", 3)
    found = policy.certificate()
    assert found.proof == "search"
    assert not found.proven
    with pytest.raises(mb.MixbanditError):
        policy.save("never written")
