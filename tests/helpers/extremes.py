"""Sequences with settings and data of any allowed size, for tests of what arithmetic makes of them.

Each case is reproducible from its seed and number. A case raises AssertionError where a number is not honest; errors of
ours and warnings that assumptions are refuted are outcomes like others.
"""

import warnings

import numpy as np

import mixbandit as mb
from mixbandit._checks import LARGEST_DATUM, LARGEST_SETTING, SMALLEST_SETTING

SETTING = np.log10(SMALLEST_SETTING), np.log10(LARGEST_SETTING)
DATUM = -50.0, np.log10(LARGEST_DATUM)
DIRECTION = -200.0, 200.0


def size(rng, ends):
    """A positive number: one of the ends or 1, moderate, or anything between the ends."""
    low, high = ends
    exponents = (rng.choice([low, 0.0, high]), rng.uniform(max(low, -3.0), min(high, 3.0)), rng.uniform(low, high))
    kind = int(rng.integers(4))
    # Ends through text: 10.0**50 may be the float above 1e50, which is refused.
    return float(f"1e{exponents[0]:.0f}") if kind == 0 else float(10.0 ** exponents[min(kind, 2)])


class Stubborn:
    """A forecaster that says one thing of any size, with alternating signs."""

    def __init__(self, rng):
        self.mean, self.variance = (float(rng.integers(2)) * size(rng, DATUM) for _ in range(2))

    def predict(self, x):
        return self.mean, self.variance

    def update(self, x, r):
        self.mean = -self.mean


def kernel(rng):
    scales = size(rng, SETTING), size(rng, SETTING)
    return mb.RBF(*scales) if rng.integers(2) else mb.Matern(float(rng.choice([0.5, 1.5, 2.5])), *scales)


def linear_mixture(rng, d):
    kind = rng.integers(3)
    if kind == 0:
        return mb.Standard()
    if kind == 1:
        return mb.Scaled(size(rng, SETTING))
    root = rng.normal(size=(d, d))
    covariance = root @ root.T + np.eye(d)
    return mb.Linear(
        rng.normal(size=d) * size(rng, (-50, 49)), 0.5 * (covariance + covariance.T) * size(rng, (-39, 38))
    )


def mixture(rng, d, nested=False):
    beta = None if rng.integers(2) else size(rng, SETTING)
    match int(rng.integers(6 if nested else 7)):
        case 0 | 1:
            return linear_mixture(rng, d)
        case 2:
            return mb.Gaussian(float(rng.integers(2)) * size(rng, DATUM), kernel(rng))
        case 3:
            return mb.Adaptive(beta)
        case 4:
            return mb.Adaptive(beta, kernel(rng))
        case 5:
            return Stubborn(rng)
    return mb.Grid([mixture(rng, d, nested=True) for _ in range(rng.integers(1, 4))])


def sequence(rng):
    """A sequence without data."""
    d = int(rng.integers(1, 5))
    sigma, norm_bound = size(rng, SETTING), size(rng, SETTING)
    settings = {"norm_bound": norm_bound, "delta": float(rng.choice([0.01, 1e-200, 1 - 1e-16, size(rng, (-200, -1))]))}
    on_empty = {"on_empty": str(rng.choice(["raise", "inflate"]))}
    range_ = None if rng.integers(3) else (-size(rng, DIRECTION), size(rng, DIRECTION))
    bounded = {**settings, **on_empty, "reward_range": range_}
    deviation = {"misspecification": float(rng.integers(2)) * size(rng, SETTING)}
    match int(rng.integers(8)):
        case 4:
            alpha = None if rng.integers(2) else size(rng, SETTING)
            return mb.OFULSequence(d, sigma=sigma, alpha=alpha, **settings, **on_empty)
        case 5:
            return mb.BayesCredible(d, sigma=sigma, mixture=linear_mixture(rng, d), **settings)
        case 6:
            return mb.UnknownNoise(d, **bounded, **deviation)
        case 7:
            weight = None if rng.integers(2) else float(rng.uniform(0.0, 1.99)) / sigma**2
            return mb.GeneralLambda(d, sigma=sigma, lam=weight, mixture=linear_mixture(rng, d), **bounded)
    return mb.MartingaleMixture(d, sigma=sigma, mixture=mixture(rng, d), **bounded, **deviation)


def rows(rng, n, d, ends):
    """Rows of one size, of sizes of their own, with columns of sizes of their own, of small integers, or moderate."""
    plain = rng.normal(size=(n, d))
    match int(rng.integers(5)):
        case 0:
            plain *= size(rng, ends)
        case 1:
            plain *= 10.0 ** rng.uniform(*ends, size=(n, 1))
        case 2:
            plain *= 10.0 ** rng.uniform(*ends, size=(1, d))
        case 3:
            plain = np.round(plain)
    return np.clip(plain, -float(f"1e{ends[1]:.0f}"), float(f"1e{ends[1]:.0f}"))


def must_be_numbers(**found):
    for name, value in found.items():
        assert not np.isnan(np.asarray(value, dtype=np.float64)).any(), f"{name} is {value}"


def learn_and_ask(seed, case):
    """Make a sequence, let it learn, ask it for everything it can say. The outcome in a word."""
    rng = np.random.default_rng([seed, case])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", mb.AssumptionsRefutedWarning)
        try:
            cs = sequence(rng)
        except mb.InvalidInput:
            return "refused"
        outcomes = [_learn(rng, cs) for _ in range(rng.integers(1, 4))]
    return "refuted" if "refuted" in outcomes else "answered"


def _learn(rng, cs):
    n, d, stated = int(rng.integers(1, 5)), cs.features.dim, getattr(cs, "sigma", None)
    features = rows(rng, n, d, DATUM)
    rewards = np.clip(rng.normal(size=n) * size(rng, DATUM), -LARGEST_DATUM, LARGEST_DATUM)
    if rng.integers(2):  # rewards that the norm bound allows
        theta = rng.normal(size=d)
        theta *= cs.norm_bound * rng.uniform() / np.linalg.norm(theta)
        rewards = np.clip(features @ theta, -LARGEST_DATUM, LARGEST_DATUM)
    levels = [size(rng, SETTING) for _ in range(n)] if stated is not None and rng.integers(3) == 0 else None
    before = cs.moment
    try:
        cs.update(features, rewards, levels)
    except mb.InvalidInput:
        assert cs.moment is before, "an error changed the sequence"
    asked = np.vstack((rows(rng, 3, d, DIRECTION), np.zeros((1, d)), features[:1]))
    outcome = "answered"
    for alpha in (None, cs.alpha0, size(rng, (-100, 100))):
        try:
            _ask(cs, asked, alpha)
        except mb.InvalidInput:
            pass  # a multiplier that the sequence does not have
        except mb.AssumptionsRefuted:
            outcome = "refuted"
    _read(cs, rng.normal(size=d) * size(rng, DATUM))
    return outcome


def _ask(cs, asked, alpha):
    upper, lower = cs.upper(asked, alpha), cs.lower(asked, alpha)
    found = cs.support(asked, alpha)
    must_be_numbers(upper=upper, lower=lower, support=found.value, theta=found.theta, grad=found.grad)
    slack = 1e-6 * np.abs(lower) + 1e-6 * np.abs(upper)
    assert (lower - slack <= upper).all(), f"{lower} exceeds {upper} at alpha={alpha}"


def _read(cs, theta):
    must_be_numbers(alpha0=cs.alpha0, refuted=cs.is_refuted)
    cs.contains(theta)
    if hasattr(cs, "radius"):
        must_be_numbers(radius=cs.radius)
    if not hasattr(cs, "analytic_radius"):
        return
    try:
        must_be_numbers(analytic=cs.analytic_radius())
        str(cs.audit())
        must_be_numbers(evalue=cs.log_evalue(theta), pvalue=cs.pvalue(theta))
    except (mb.AssumptionsRefuted, mb.InvalidInput):
        pass  # an e-value against one θ needs a linear function


def learn_the_truth(seed, case):
    """Rewards without noise: the parameter behind them is never excluded, whatever the mixture. The outcome in a word.

    The residuals of the truth are 0, and the squared radius of a set is at least 0. That leaves rounding.
    """
    rng = np.random.default_rng([seed, case, 1])
    try:
        cs = sequence(rng)
    except mb.InvalidInput:
        return "refused"
    if cs.guarantee != "anytime" or getattr(cs, "reward_range", None) is not None:
        return "without such a guarantee"
    cs.on_empty = "inflate"
    d, sigma = cs.features.dim, getattr(cs, "sigma", 1.0)
    # Small integers times a power of two: products and sums are exact, so that all rounding is ours.
    unit = 2.0 ** np.floor(np.log2(cs.norm_bound / 64.0))
    theta = rng.integers(-16, 17, size=d) * unit
    n = int(rng.integers(1, 9)) if rng.integers(10) else 300
    features = rng.integers(-8, 9, size=(n, d)) * 2.0 ** rng.integers(-100, 101)
    rewards = features @ theta
    if np.abs(rewards).max() > LARGEST_DATUM:
        return "too large"
    cs.update(features, rewards)
    assert not cs.is_empty, f"{cs} is empty"
    assert not cs.noise_refuted, f"{cs}: the noise is refuted"
    assert cs.contains(theta), f"{cs} does not contain the truth"
    asked = np.vstack((rng.integers(-8, 9, size=(4, d)).astype(np.float64), features[:2]))
    for alpha in (None, cs.alpha0):
        lower, upper = cs.lower(asked, alpha), cs.upper(asked, alpha)
        missed = ~((lower <= asked @ theta) & (asked @ theta <= upper))
        assert not missed.any(), f"{cs}: {asked[missed] @ theta} not in [{lower[missed]}, {upper[missed]}], {alpha=}"
    return "below rounding" if sigma < 1e-16 * np.abs(rewards).max() else "covered"
