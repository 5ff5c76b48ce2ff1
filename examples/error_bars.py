"""Error bars for a linear model in a few lines: valid at all times at once, under any adaptive choice of data."""

import numpy as np

import mixbandit as mb

rng = np.random.default_rng(0)
phi = mb.RandomFourier(dim_in=1, dim=20, lengthscale=0.2, rng=1)
theta = rng.normal(size=20)  # unknown to the method; only ‖θ‖ ≤ 10 is stated


def measure(x: float) -> float:
    """A noisy measurement of the unknown function."""
    return float(phi([[x]])[0] @ theta + 0.1 * rng.normal())


cs = mb.MartingaleMixture(phi, sigma=0.1, norm_bound=10.0, delta=0.01)
grid = np.linspace(0.0, 1.0, 200)
for t in range(1, 41):
    x = grid[np.argmax(cs.upper(grid))]  # look where the optimum may still be: data chosen by earlier data
    cs.update(x, measure(x))
    if t % 10 == 0:
        best = grid[np.argmax(cs.lower(grid))]
        low, high = cs.lower(best)[0], cs.upper(best)[0]
        most = cs.upper(grid).max()
        print(f"t={t}: f({best:.2f}) is in [{low:.2f}, {high:.2f}]; the maximum is at most {most:.2f}")

truth = phi(grid[:, None]) @ theta
print(f"the truth: the maximum is {truth.max():.2f}, at {grid[truth.argmax()]:.2f}")
