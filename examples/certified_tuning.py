"""Tune a support vector machine, confirm the finalists, certify the answer, and compare it with the present one."""

import functools

import numpy as np
from sklearn.datasets import load_digits
from sklearn.svm import SVC

import mixbandit as mb

X, y = load_digits(return_X_y=True)
X, rng = X / 16.0, np.random.default_rng(0)
order = rng.permutation(len(y))
training, others = order[:300], order[300:]


@functools.cache
def hits(C: float, gamma: float) -> np.ndarray:
    """Which of the other rows the model gets right. The same rows and no seed: training is not random."""
    model = SVC(C=C, gamma=gamma).fit(X[training], y[training])
    return model.predict(X[others]) == y[others]


def accuracy(parameters: dict[str, float]) -> float:
    """Accuracy on 100 rows, drawn anew for every trial."""
    return float(rng.choice(hits(**parameters), size=100).mean())


present = {"C": 1.0, "gamma": 0.01}  # what is in use
space = {"C": mb.Float(1e-1, 1e3, log=True), "gamma": mb.Float(1e-4, 1.0, log=True)}
tuner = mb.Tuner(space, reward_range=(0, 1), samples=100, rng=0)
for _ in range(5):
    tuner.tell(tuner.adopt(present), accuracy(present))
for _ in range(40):
    trial = tuner.ask()
    tuner.tell(trial, accuracy(trial.parameters))
print(f"After {tuner.told} trials:\n{tuner.certificate()}\n")

confirmation = tuner.confirm(20)
for trial in confirmation:
    tuner.tell(trial, accuracy(trial.parameters))
found = tuner.certificate()
print(f"After {20 - confirmation.unused} confirmations:\n{found}\n")
print(f"Better than before? {found.improvement(over=present)}\n")
print(f"And more? {tuner.plan(floor=0.97)}\n")

# Here, unlike in practice, the truth is known.
truth, before = (float(hits(**parameters).mean()) for parameters in (found.parameters, present))
print(f"On all {len(others)} rows: {truth:.4f}, and {before:.4f} before.")
