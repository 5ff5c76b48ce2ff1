"""Every way of acting crossed with every kind of sequence: it plays, or says that it has no theory for that."""

import itertools

import numpy as np
import pytest

import mixbandit as mb
from mixbandit.bandits import LeastRegretPerInformation, Optimism, Policy, Thompson, Uniformly, View
from tests.helpers.sequences import PHI, SEQUENCES
from tests.helpers.worlds import everything

RULES = [Optimism(), Optimism(exploration=0.3), LeastRegretPerInformation(), Thompson(), Uniformly()]
ACTIONS = {
    "arms": mb.Arms(np.random.default_rng(4).uniform(size=(9, 2))),
    "box": mb.Box([0.0, 0.0], [1.0, 1.0]),
}
THETA = 0.2 * np.ones(6)


def has_theory(rule, belief):
    return rule.takes is None or rule.name in belief.theories


def pairs():
    for name, rule, region in itertools.product(SEQUENCES, RULES, ACTIONS):
        slow = (name, rule, region) == ("bounded, exact", RULES[1], "box")  # as long as twenty others
        title = f"{name}-{rule.name} {rule.settings() or ''}-{region}"
        yield pytest.param(name, rule, region, id=title, marks=[pytest.mark.heavy] if slow else [])


@pytest.mark.parametrize(("name", "rule", "region"), list(pairs()))
def test_every_pair_plays_or_says_that_it_has_no_theory(name, rule, region):
    sequence = SEQUENCES[name]()
    if not has_theory(rule, sequence.moment):
        with pytest.raises(mb.NoTheory, match=rf"{rule.name} needs .*{sequence.moment.rule.kind}"):
            Policy(sequence, ACTIONS[region], rule=rule)
        return
    policy = Policy(sequence, ACTIONS[region], rule=rule, rng=0, quick=True)
    for t in range(4):
        choice = policy.ask()
        policy.tell(choice, float(PHI(choice.action)[0] @ THETA) + 0.1 * np.random.default_rng(t).normal())
        assert choice.lower <= choice.upper
    batch = policy.ask(n=3)
    assert len(batch) == 3
    again = Policy.from_state_dict(policy.state_dict())
    assert everything(again) == everything(policy)
    np.testing.assert_array_equal(again.ask().action, policy.ask().action)


def test_sequences_support_rules_that_there_are():
    supported = {theory for make in SEQUENCES.values() for theory in make().moment.rule.theories}
    assert supported == {rule.name for rule in RULES if rule.takes is not None}


def draws(sequence, n=3000):
    view, axes = View(sequence.moment, 5), np.eye(sequence.moment.model.dim)
    return np.array([Thompson().drawn(view, np.random.default_rng(i)).maximum(axes) for i in range(n)])


def test_thompson_sampling_draws_as_widely_over_general_lambda_as_over_the_mixture_that_it_is():
    """At λ = 1/σ² they are one method. Read from rows stored times √λ, draws were 1/σ times too narrow."""
    rng = np.random.default_rng(0)
    settings = {"sigma": 0.1, "norm_bound": 2.0, "delta": 0.05}
    X = rng.normal(size=(30, 3))
    r = X @ [0.5, -0.2, 0.1] + 0.1 * rng.normal(size=30)
    plain, general = (kind(3, **settings).update(X, r) for kind in (mb.MartingaleMixture, mb.GeneralLambda))
    V = X.T @ X + 0.01 * np.eye(3)
    spread = 0.1 * np.sqrt(9 * 3 * np.log(5 / 0.05))
    for sequence in (plain, general):
        white = np.linalg.cholesky(V).T @ (draws(sequence) - np.linalg.solve(V, X.T @ r)).T / spread
        assert np.abs(white.mean(axis=1)).max() < 5 / np.sqrt(3000)
        assert np.abs(np.cov(white) - np.eye(3)).max() < 5 * np.sqrt(2 / 3000)


@pytest.mark.parametrize("kind", [mb.CMMUCB, mb.AMMUCB, mb.OFUL, mb.IDS, mb.FreqTS])
def test_named_algorithms_take_the_same_keywords_and_refuse_what_they_have_no_use_for(kind):
    stated = {"actions": ACTIONS["arms"], "sigma": 0.1, "norm_bound": 2.0, "delta": 0.05, "rng": 0}
    assert repr(kind(PHI, **stated)).startswith(f"{kind.__name__}(")
    optional = {
        "mixture": mb.Scaled(0.3),
        "reward_range": (-3.0, 3.0),
        "misspecification": 0.1,
        "alpha": 0.02,
        "exploration": 0.5,
    }
    for name, value in optional.items():
        if name in kind.takes:
            assert kind(PHI, **stated, **{name: value}).ask().index is not None
        else:
            with pytest.raises(mb.InvalidInput, match=f"{kind.__name__} does not take {name}"):
                kind(PHI, **stated, **{name: value})
    assert "expected reward" in kind.ask.__doc__
