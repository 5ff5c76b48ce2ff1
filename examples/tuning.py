"""Tune a support vector machine by noisy accuracies, with a crash in the middle, and certify the answer."""

import tempfile
from pathlib import Path

import numpy as np
from sklearn.svm import SVC

import mixbandit as mb
from mixbandit.paper.datasets import load_dataset

data = load_dataset("raisin")
half, rng = len(data.y) // 2, np.random.default_rng(0)
order = rng.permutation(len(data.y))
X, y = (data.X[order] - data.X.mean(axis=0)) / data.X.std(axis=0), data.y[order]

space = mb.Space(
    {
        "C": mb.Float(1e-2, 1e2, log=True),
        "kernel": mb.Categorical(["rbf", "poly", "sigmoid"]),
        "gamma": mb.Float(1e-3, 1e1, log=True),
        "degree": mb.Int(2, 4),
    },
    {"degree": ("kernel", ["poly"])},
)


def accuracy(parameters: dict[str, object]) -> float:
    """Accuracy on 100 validation rows, drawn anew for every trial."""
    model = SVC(**parameters, max_iter=5000).fit(X[:half], y[:half])
    drawn = rng.integers(half, len(y), size=100)
    return float((model.predict(X[drawn]) == y[drawn]).mean())


folder = Path(tempfile.mkdtemp())
known = mb.Assumptions(reward_range=(0, 1), samples=100)  # a value is the mean of 100 results in [0, 1]
tuner = mb.Tuner(space, known, rng=0)
for _ in range(40):
    trial = tuner.ask()
    tuner.tell(trial, accuracy(trial.parameters))
waiting = tuner.ask(2)  # two machines are working on these ...
tuner.save(folder / "tuner.mixbandit")  # ... and this one crashes

tuner = mb.Tuner.load(folder / "tuner.mixbandit")  # both trials are still pending
for trial in tuner.pending:
    tuner.tell(trial, accuracy(trial.parameters))
while tuner.told < 80:
    trial = tuner.ask()
    tuner.tell(trial, accuracy(trial.parameters))

print(tuner.certificate())
tuner.plot().savefig(folder / "tuner.png")
print(f"State and plot are in {folder}.")
