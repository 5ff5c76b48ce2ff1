"""One of every kind of confidence sequence, on one small problem."""

import numpy as np

import mixbandit as mb

RNG = np.random.default_rng(0)
PHI = mb.RandomFourier(dim_in=2, dim=6, rng=1)
THETA = RNG.normal(size=6) / 3
ACTIONS = RNG.uniform(size=(50, 2))
REWARDS = PHI(ACTIONS) @ THETA + 0.1 * RNG.normal(size=50)
PROBES = RNG.uniform(size=(9, 2))
LEVELS = np.where(np.arange(50) % 2, 0.2, 0.1)

SETTINGS = {"sigma": 0.1, "norm_bound": 2.0, "delta": 0.05}
BOUNDED = {"norm_bound": 2.0, "delta": 0.05, "reward_range": (-3.0, 3.0), "samples": 1000}
COVARIANCE = np.diag(np.arange(1.0, 7.0))
SEQUENCES = {
    "standard": lambda phi=PHI: mb.MartingaleMixture(phi, **SETTINGS),
    "scaled": lambda phi=PHI: mb.MartingaleMixture(phi, **SETTINGS, mixture=mb.Scaled(0.3)),
    "linear": lambda phi=PHI: mb.MartingaleMixture(phi, **SETTINGS, mixture=mb.Linear(THETA / 2, COVARIANCE)),
    "grid": lambda phi=PHI: mb.MartingaleMixture(phi, **SETTINGS, mixture=mb.Grid([0.1, 1.0])),
    "gaussian": lambda phi=PHI: mb.MartingaleMixture(phi, **SETTINGS, mixture=mb.Gaussian(0.1, mb.RBF(0.5))),
    "adaptive": lambda phi=PHI: mb.MartingaleMixture(phi, **SETTINGS, mixture=mb.Adaptive()),
    "grid of anything": lambda phi=PHI: mb.MartingaleMixture(
        phi, **SETTINGS, mixture=mb.Grid([1.0, mb.Linear(THETA, COVARIANCE), mb.Adaptive(kernel=mb.Matern())])
    ),
    "misspecified": lambda phi=PHI: mb.MartingaleMixture(phi, **SETTINGS, misspecification=0.01),
    "with a range": lambda phi=PHI: mb.MartingaleMixture(phi, **SETTINGS, reward_range=(-1.0, 1.0)),
    "general lambda": lambda phi=PHI: mb.GeneralLambda(phi, **SETTINGS, lam=0.4 / 0.1**2),
    "unknown noise": lambda phi=PHI: mb.UnknownNoise(phi, norm_bound=2.0, delta=0.05),
    "unknown noise, misspecified": lambda phi=PHI: mb.UnknownNoise(
        phi, norm_bound=2.0, delta=0.05, misspecification=0.01
    ),
    "bounded": lambda phi=PHI: mb.BoundedMixture(phi, **BOUNDED),
    "bounded, exact": lambda phi=PHI: mb.BoundedMixture(phi, **BOUNDED, exact=True),
    "bounded, own bank": lambda phi=PHI: mb.BoundedMixture(
        phi, **BOUNDED, mixture=mb.Bank([mb.RBF(0.5), mb.Matern()], scales=[0.01], noises=[0.05], share=0.1)
    ),
    "oful": lambda phi=PHI: mb.OFULSequence(phi, **SETTINGS),
    "oful at another alpha": lambda phi=PHI: mb.OFULSequence(phi, **SETTINGS, alpha=0.5),
    "igp": lambda phi=PHI: mb.IGPSequence(phi, **SETTINGS),
    "igp with a horizon": lambda phi=PHI: mb.IGPSequence(phi, **SETTINGS, horizon=50),
    "bayes": lambda phi=PHI: mb.BayesCredible(phi, **SETTINGS),
    "bayes, scaled prior": lambda phi=PHI: mb.BayesCredible(phi, **SETTINGS, mixture=mb.Scaled(0.3)),
    "bayes, linear prior": lambda phi=PHI: mb.BayesCredible(phi, **SETTINGS, mixture=mb.Linear(THETA / 2, COVARIANCE)),
}

# Those whose rewards may come with noise levels of their own.
LEVELLED = {name: make for name, make in SEQUENCES.items() if not name.startswith(("unknown noise", "bounded"))}
# Those whose bounds are the best of several closed forms, attained outside of the set itself.
OF_CLOSED_FORMS = ("bounded", "bounded, own bank")
