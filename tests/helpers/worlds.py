"""Small problems that the tests of policies play on."""

import numpy as np

import mixbandit as mb
from mixbandit._files import encoded

PHI = mb.RandomFourier(dim_in=2, dim=8, lengthscale=0.6, rng=0)
THETA = np.random.default_rng(1).normal(size=8)
ARMS = mb.Arms(np.random.default_rng(2).uniform(size=(12, 2)), labels=[f"arm {i}" for i in range(12)])
BOX = mb.Box([0.0, 0.0], [1.0, 1.0])
REGIONS = {"arms": ARMS, "box": BOX, "context": mb.Arms(ARMS.actions[:, :1])}  # the last leaves room for a context
SETTINGS = {"sigma": 0.1, "norm_bound": 5.0, "delta": 0.05}

NAMED = {
    "CMMUCB": mb.CMMUCB,
    "AMMUCB": mb.AMMUCB,
    "OFUL": mb.OFUL,
    "IDS": mb.IDS,
    "FreqTS": mb.FreqTS,
    "Greedy": mb.Greedy,
    "Uniform": mb.Uniform,
}


def _ucb(sequence):
    def make(phi, *, actions=None, rng=None, **options):
        return mb.UCB(sequence(phi), actions, rng=rng, **options)

    return make


# Other sequences under the same roof.
POLICIES = NAMED | {
    "UCB over a grid, exploration 0.2": lambda phi, **options: mb.CMMUCB(
        phi,
        **{key: value for key, value in options.items() if key not in SETTINGS},
        **SETTINGS,
        mixture=mb.Grid([0.1, 1.0]),
        exploration=0.2,
    ),
    "UCB over Bayes": _ucb(lambda phi: mb.BayesCredible(phi, sigma=0.1)),
    "UCB over general lambda": _ucb(lambda phi: mb.GeneralLambda(phi, **SETTINGS, lam=30.0)),
    "UCB with misspecification and range": _ucb(
        lambda phi: mb.MartingaleMixture(phi, **SETTINGS, misspecification=0.01, reward_range=(-6.0, 6.0))
    ),
}

# For the battery alone: some depend on the order of rewards, or are told no noise level.
OTHERS = {
    "UCB over an adaptive mixture": _ucb(lambda phi: mb.MartingaleMixture(phi, **SETTINGS, mixture=mb.Adaptive())),
    "UCB with misspecification": _ucb(lambda phi: mb.MartingaleMixture(phi, **SETTINGS, misspecification=0.05)),
    "UCB over bounded values": _ucb(
        lambda phi: mb.BoundedMixture(phi, norm_bound=5.0, delta=0.05, reward_range=(-8.0, 8.0), samples=1000)
    ),
    "UCB over unknown noise": _ucb(lambda phi: mb.UnknownNoise(phi, norm_bound=5.0, delta=0.05)),
}


def make(name, region="arms", **options):
    stated = SETTINGS if name in NAMED or "grid" in name else {}
    return (POLICIES | OTHERS)[name](PHI, actions=REGIONS[region], **{"rng": 7, **stated, **options})


def reward(choice, t):
    """A reward that depends on the action and the round alone."""
    return float(PHI(choice.action)[0] @ THETA + 0.1 * np.random.default_rng([3, t]).normal())


def play(policy, rounds, start=0):
    """Ask and tell; the actions chosen, (rounds, 2)."""
    actions = []
    for t in range(start, start + rounds):
        choice = policy.ask()
        actions.append(choice.action)
        policy.tell(choice, reward(choice, t))
    return np.array(actions)


def everything(policy):
    """All that a policy remembers, comparable."""
    return lasting(encoded(policy.state_dict(), "policy"))


def lasting(value):
    """What is the same whenever it is made: ids and times never are."""
    if isinstance(value, dict):
        return {name: lasting(part) for name, part in value.items() if name not in ("run", "time")}
    return [lasting(part) for part in value] if isinstance(value, list) else value
