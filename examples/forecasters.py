"""A good forecaster tightens the error bars of a linear sequence; a bad one widens them and leaves them valid.

The unknown function depends on 2 of 30 features. The lasso, which expects sparsity, predicts rewards better than the
standard mixture does; a forecaster that predicts the opposite of the truth does worse. Needs scikit-learn.
"""

import numpy as np
from sklearn.linear_model import LassoCV

import mixbandit as mb
from mixbandit.mixtures import FromRegressor

rng = np.random.default_rng(0)
d, sigma = 30, 0.5
theta = np.zeros(d)
theta[:2] = 1.0, -1.0
actions = rng.normal(size=(400, d))
rewards = actions @ theta + sigma * rng.normal(size=400)
probes = rng.normal(size=(200, d))


class Opposite:
    """Wrong, and confident."""

    def predict(self, x: np.ndarray) -> tuple[float, float]:
        return float(-x @ theta), 0.01

    def update(self, x: np.ndarray, r: float) -> None:
        pass


mixtures = {
    "the standard mixture": mb.Standard(),
    "the lasso": FromRegressor(LassoCV(cv=3), sigma, refit_every=20),
    "both, in a Grid": mb.Grid([mb.Standard(), FromRegressor(LassoCV(cv=3), sigma, refit_every=20)]),
    "the opposite of the truth": Opposite(),
}
for name, mixture in mixtures.items():
    cs = mb.MartingaleMixture(d, sigma=sigma, norm_bound=2.0, delta=0.01, mixture=mixture).update(actions, rewards)
    lower, upper = cs.lower(probes), cs.upper(probes)
    held = bool(((lower <= probes @ theta) & (probes @ theta <= upper)).all())
    print(f"{name:26s} mean width {np.mean(upper - lower):6.2f}   holds the truth: {held}")
