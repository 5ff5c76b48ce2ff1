"""A bandit, from the first choice to a certificate

It explores a square, crashes after 100 rounds, resumes from its file, and stops once nothing can be better than its
recommendation by more than 0.05. Everything it reports holds with probability 0.99, for rewards that are linear in the
features, a parameter of norm at most 10 and noise of level 0.1.

See docs/how-to/bandits.md.
"""

from pathlib import Path

import numpy as np

import mixbandit as mb
from mixbandit.plots import save
from mixbandit.simulate import LinearEnvironment, stop_when

phi = mb.RandomFourier(dim_in=2, dim=20, lengthscale=0.5, rng=1)
square = mb.Box([0.0, 0.0], [1.0, 1.0])
theta = np.random.default_rng(2).normal(size=20)  # unknown to the bandit, which is told only that ‖θ‖ ≤ 10
environment = LinearEnvironment(phi, theta, square, sigma=0.1)


def new_bandit() -> mb.CMMUCB:
    """Same settings each time, as in a script that is started again."""
    return mb.CMMUCB(phi, actions=square, sigma=0.1, norm_bound=10.0, delta=0.01, rng=0, keep_history=True)


out = Path("out/examples")
checkpoint = out / "bandit.mixbandit"
checkpoint.unlink(missing_ok=True)  # of an earlier run of this example
mb.run(new_bandit(), environment, rounds=100, checkpoint=checkpoint)  # ... and the machine crashes

policy = new_bandit()  # a new process, which resumes from the file
records = mb.run(policy, environment, rounds=1000, checkpoint=checkpoint, stop_when=stop_when(gap=0.05, every=50))
records.to_csv(out / "bandit.csv")

print(f"{records}\n")
print(f"{policy.certificate()}\n")
print(f"{policy.regret_bound()}\n")
print(f"The true optimum, which the bandit does not know: {environment.best(0):.4g}")

# The picture.
fig = records.plot()
fig.suptitle(f"CMM-UCB stops after {len(records)} rounds: nothing is better by more than 0.05")
fig.axes[1].set(ylim=(-0.5, 1.3))  # the first bounds are far wider
save(fig, out / "bandit.png")
