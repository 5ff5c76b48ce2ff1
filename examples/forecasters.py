"""Any forecaster can tighten the error bars

The better a forecaster predicts rewards, the narrower the bars; a bad one widens them and leaves them valid. Here the
function depends on 2 of 30 features. The lasso, which expects that, predicts better than the standard mixture. A
forecaster that predicts the opposite of the truth does far worse, and its bars still contain the truth.

See docs/how-to/mixtures.md.
"""

from pathlib import Path

import numpy as np
from sklearn.linear_model import LassoCV

import mixbandit as mb
from mixbandit.mixtures import FromRegressor
from mixbandit.plots import COLOURS, figure, save

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
    "standard mixture": mb.Standard(),
    "lasso": FromRegressor(LassoCV(cv=3), sigma, refit_every=20),
    "both, in a Grid": mb.Grid([mb.Standard(), FromRegressor(LassoCV(cv=3), sigma, refit_every=20)]),
    "opposite of the truth": Opposite(),
}
widths = {}
for name, mixture in mixtures.items():
    cs = mb.MartingaleMixture(d, sigma=sigma, norm_bound=2.0, delta=0.01, mixture=mixture).update(actions, rewards)
    lower, upper = cs.lower(probes), cs.upper(probes)
    covered = np.mean((lower <= probes @ theta) & (probes @ theta <= upper))
    widths[name] = float(np.mean(upper - lower))
    print(f"{name:22s} mean width {widths[name]:6.2f}, contains the truth at {covered:.0%} of the points")

# The picture.
fig, (ax,) = figure(width=6.5, height=2.5)
bars = ax.barh(list(widths), list(widths.values()), color=COLOURS[0])
ax.bar_label(bars, fmt="%.1f", padding=3)
ax.invert_yaxis()
ax.set(xlabel="mean width of the 99 % error bars", title="Good forecasts narrow the error bars", xlim=(0, 25))
save(fig, Path("out/examples/forecasters.png"))
