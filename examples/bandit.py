"""A bandit from the first choice to a certificate, with a crash in the middle."""

import tempfile
from pathlib import Path

import numpy as np

import mixbandit as mb
from mixbandit.simulate import LinearEnvironment, stop_when

phi = mb.RandomFourier(dim_in=2, dim=20, lengthscale=0.5, rng=1)
box = mb.Box([0.0, 0.0], [1.0, 1.0])
theta = np.random.default_rng(2).normal(size=20)  # unknown to the bandit; only ‖θ‖ ≤ 10 is stated
environment = LinearEnvironment(phi, theta, box, sigma=0.1)


def bandit() -> mb.CMMUCB:
    """A new bandit with the same settings, as a script makes it whenever it starts."""
    return mb.CMMUCB(phi, actions=box, sigma=0.1, norm_bound=10.0, delta=0.01, rng=0, keep_history=True)


folder = Path(tempfile.mkdtemp())
checkpoint = folder / "run.mixbandit"
mb.run(bandit(), environment, rounds=100, checkpoint=checkpoint)  # ... and the machine crashes here

policy = bandit()  # a new process: it resumes from the file
records = mb.run(policy, environment, rounds=1000, checkpoint=checkpoint, stop_when=stop_when(gap=0.05, every=50))

print(f"{records}\n")
print(f"{policy.certificate()}\n")
print(f"{policy.regret_bound()}\n")
print(f"The truth, which the bandit does not know: the optimum is {environment.best(0):.4g}.")

records.to_csv(folder / "run.csv")
records.plot().savefig(folder / "run.png")
print(f"Records and plot are in {folder}.")
