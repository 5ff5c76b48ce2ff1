"""Arms with a parameter each, their rewards, and confidence sequences for one of them."""

import numpy as np

import mixbandit as mb
from mixbandit._files import digest

DIM, KNOWN = 3, 4
STATED = {"sigma": 0.3, "norm_bound": 1.5}
DELTA = 0.05
ARMS = KNOWN + 2  # two are added later
# δ/(2K) for those known at the start, then δ/4 and δ/12.
SHARES = [DELTA / 8] * KNOWN + [DELTA / 4, DELTA / 12]
PROBES = np.random.default_rng(5).normal(size=(3, DIM))
FOURIER = mb.RandomFourier(DIM, 5, rng=2)


class RunningMean:
    """A forecaster of a user's own, which must not learn from other arms."""

    def __init__(self):
        self.rewards = []

    def predict(self, x):
        return (float(np.mean(self.rewards)), 0.2) if self.rewards else (0.0, 0.5)

    def update(self, x, r):
        self.rewards.append(r)


def _martingale(**options):
    return lambda delta: mb.MartingaleMixture(DIM, **STATED, delta=delta, **options)


# Those that `Blocks` keeps as ridge regressions.
AS_RIDGES = {
    "standard": _martingale(),
    "scaled": _martingale(mixture=mb.Scaled(0.3)),
    "with a range": _martingale(reward_range=(-1.0, 1.2)),
    "features": lambda delta: mb.MartingaleMixture(FOURIER, **STATED, delta=delta),
    "a bound that binds": lambda delta: mb.MartingaleMixture(DIM, sigma=0.3, norm_bound=0.5, delta=delta),
    "a bound that does not": lambda delta: mb.MartingaleMixture(DIM, sigma=0.3, norm_bound=100.0, delta=delta),
}
OTHERS = {
    "grid": _martingale(mixture=mb.Grid([0.1, 1.0])),
    "linear": _martingale(mixture=mb.Linear(np.full(DIM, 0.3), np.diag([0.5, 1.0, 2.0]))),
    "grid of linear": _martingale(mixture=mb.Grid([1.0, mb.Linear(np.full(DIM, 0.3), 0.1 * np.eye(DIM))])),
    "adaptive": _martingale(mixture=mb.Adaptive()),
    "a user's forecaster": _martingale(mixture=RunningMean()),
    "misspecified": _martingale(misspecification=0.05),
    "OFUL": lambda delta: mb.OFULSequence(DIM, **STATED, delta=delta),
    "IGP": lambda delta: mb.IGPSequence(DIM, **STATED, delta=delta),
    "general lambda": lambda delta: mb.GeneralLambda(DIM, **STATED, delta=delta),
    "unknown noise": lambda delta: mb.UnknownNoise(DIM, norm_bound=1.5, delta=delta),
    "bounded": lambda delta: mb.BoundedMixture(DIM, norm_bound=1.5, delta=delta, reward_range=(-6.0, 6.0), samples=100),
    "kernel": lambda delta: mb.KernelMixture(mb.RBF(0.8), dim_in=DIM, **STATED, delta=delta),
    "several kernels": lambda delta: mb.KernelMixture([mb.RBF(0.8), mb.Matern()], dim_in=DIM, **STATED, delta=delta),
}
EACH = AS_RIDGES | OTHERS


def blocks(make=EACH["standard"], *, added=2, **options):
    """Arms before any reward: some known at the start, some added."""
    found = mb.Blocks(make(DELTA), KNOWN, **options)
    for _ in range(added):
        found.add()
    return found


def alone(make=EACH["standard"]):
    """A sequence of its own for each of these arms, at the same part of δ."""
    return [make(share) for share in SHARES]


def rewards(contexts, arms, seed=0):
    """Rewards of arms whose parameters are of about length 0.5; the noise depends on the seed."""
    parameters = 0.5 * np.random.default_rng(7).normal(size=(ARMS, DIM)) / np.sqrt(DIM)
    noise = np.random.default_rng([8, seed]).normal(size=len(contexts))
    return (contexts * parameters[arms]).sum(axis=1) + STATED["sigma"] * noise


def log(n=60, seed=0):
    """Contexts, arms and rewards; one arm has none."""
    rng = np.random.default_rng(seed)
    contexts, arms = 0.6 * rng.normal(size=(n, DIM)), rng.choice([0, 1, 3, 4, 5], size=n)
    return contexts, arms, rewards(contexts, arms, seed)


def rows(contexts, arms):
    """Contexts (n, d) and arms, one for all or one for each, as rows."""
    contexts = np.atleast_2d(contexts)
    return np.column_stack((contexts, np.broadcast_to(arms, len(contexts))))


def teach(found, own, contexts, arms, values, *, at_once=False):
    """Rewards for the arms together, and for each alone; one after the other or all at once."""
    if at_once:
        found.update(rows(contexts, arms), values)
        for arm in np.unique(arms):
            own[arm].update(contexts[arms == arm], values[arms == arm])
        return
    for context, arm, value in zip(contexts, arms, values, strict=True):
        found.update([*context, arm], value)
        own[arm].update(context, value)


def full(name="standard"):
    """Arms with rewards, of which one has gone, one has data of its own, and one was taught where that can be."""
    found = blocks(EACH[name])
    contexts, arms, values = log()
    found.update(rows(contexts, arms), values)
    if name != "bounded":
        found.update(rows(1e8 * np.eye(DIM), 3), np.zeros(DIM))
    found.remove(1)
    if name in ("standard", "grid"):
        found.add("taught", taught=True)
    return found.update([0.3, 0.2, 0.1, 4], 0.2)


def bounds(found):
    """Of all arms that ever were, at some contexts."""
    every = [rows(PROBES, arm) for arm in range(len(found.moment.members))]
    return np.array([
        (found.lower(each), found.upper(each), found.lower(each, found.alpha0), found.upper(each, found.alpha0))
        for each in every
    ])  # fmt: skip


def known(found):
    """What a failed call must not change."""
    return digest(found.state_dict()), found.t, found.labels, bounds(found).tolist()
