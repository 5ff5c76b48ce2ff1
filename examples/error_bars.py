"""Error bars for a linear model, without a bandit

They hold after every measurement at once with probability 0.99, although each measurement is placed by the ones before
it. The function is linear in 20 features, its parameter has norm at most 10, and the noise level is 0.1.

See docs/how-to/error-bars.md.
"""

from pathlib import Path

import numpy as np

import mixbandit as mb
from mixbandit.plots import bounds, figure, save

rng = np.random.default_rng(0)
phi = mb.RandomFourier(dim_in=1, dim=20, lengthscale=0.2, rng=1)
theta = rng.normal(size=20)  # unknown to the method, which is told only that ‖θ‖ ≤ 10


def measure(x: float) -> float:
    """A noisy measurement of the unknown function."""
    return float(phi([[x]])[0] @ theta + 0.1 * rng.normal())


cs = mb.MartingaleMixture(phi, sigma=0.1, norm_bound=10.0, delta=0.01)
grid = np.linspace(0.0, 1.0, 200)
xs, ys = [], []
for t in range(1, 41):
    xs.append(grid[np.argmax(cs.upper(grid))])  # measure where the maximum may still be
    ys.append(measure(xs[-1]))
    cs.update(xs[-1], ys[-1])
    if t % 10 == 0:
        best = grid[np.argmax(cs.lower(grid))]
        low, high = cs.lower(best)[0], cs.upper(best)[0]
        most = cs.upper(grid).max()
        print(f"t={t}: f({best:.2f}) is in [{low:.2f}, {high:.2f}]; the maximum is at most {most:.2f}")

truth = phi(grid[:, None]) @ theta
print(f"the truth: the maximum is {truth.max():.2f}, at {grid[truth.argmax()]:.2f}")

# The picture: only this needs matplotlib.
fig, (ax,) = figure(width=6.5, height=3.5)
bounds(ax, grid, cs.lower(grid), cs.upper(grid), truth=truth, data=(xs, ys), label="99 % error bars")
ax.set(xlabel="x", ylabel="f(x)", title="Error bars after 40 measurements that chase the maximum")
ax.legend()
save(fig, Path("out/examples/error_bars.png"))
